//! What happens to occurrences that were missed.

use std::time::Duration;

use crate::Error;

/// What a job does about occurrences it is late for.
///
/// An occurrence is *missed* when the scheduler comes to it later than the
/// tolerance: the process stood still, the machine slept, the runtime was
/// stalled, or [`last_due`] says where an earlier process stopped.
///
/// ```text
///   due      10:10   10:20   10:30          the process stood still 10:05–10:37
///   ran                         └──▶ 10:37  late 7 min, coalesced 2
/// ```
///
/// The default is `FireOnce { Latest }` with a tolerance of one second: however
/// many instants were missed, one run makes up for them, and it is told how
/// many and since when. The phase of the schedule is always kept.
///
/// [`last_due`]: https://docs.rs/beatline-scheduler
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Misfire {
    /// Lateness up to this counts as on time. It decides what is *reported* as
    /// a misfire. Default 1 s.
    pub tolerance: Duration,
    /// What becomes of the missed occurrences.
    pub policy: MisfirePolicy,
}

/// What becomes of missed occurrences.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum MisfirePolicy {
    /// One run for the newest; the others are `Skipped{Coalesced}` and the run
    /// is told how many there were and since when.
    #[default]
    FireOnceLatest,
}

impl Misfire {
    /// The default, spelled out: one run for the newest missed occurrence.
    #[must_use]
    pub const fn fire_once_latest() -> Self {
        Self { tolerance: Duration::from_secs(1), policy: MisfirePolicy::FireOnceLatest }
    }

    /// With another tolerance. [`Duration::MAX`] never reports a misfire.
    #[must_use]
    pub const fn tolerance(mut self, tolerance: Duration) -> Self {
        self.tolerance = tolerance;
        self
    }

    /// Checks that the parts fit together. Called when a job is added.
    ///
    /// # Errors
    ///
    /// None of today's policies can be wrong; the method is there so that one
    /// that can be is refused in the one place where everything is.
    pub fn validate(&self) -> Result<(), Error> {
        Ok(())
    }
}

impl Default for Misfire {
    fn default() -> Self {
        Self::fire_once_latest()
    }
}
