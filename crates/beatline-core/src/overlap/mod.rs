//! What happens when an occurrence is due while earlier runs are active.

mod allow_all;
mod buffer;
mod skip;

use std::time::Duration;

pub use buffer::{Keep, Overflow};

use crate::{Due, Error, Monotonic};

/// What happens to an occurrence that is due while earlier runs of the same job
/// are active.
///
/// # Who calls it, when, and how
///
/// The scheduler calls [`decide`](OverlapPolicy::decide) exactly once for each
/// occurrence that the misfire stage lets through and for each requested run,
/// in the order of their due instants, under that job's own lock and no other.
/// It is called whether or not anything is active. It must not block, and must
/// not call back into the scheduler. It must be a pure function of the view: the
/// same view, the same answer.
///
/// # What the scheduler promises
///
/// * Never more than [`max_concurrent`](OverlapPolicy::max_concurrent) runs are
///   active. An answer of [`Decision::Start`] above it becomes
///   `Skipped{Overlap}`.
/// * Never more than [`buffer`](OverlapPolicy::buffer) occurrences wait. What
///   happens to the one too many is part of the answer.
/// * When a run ends, the longest-waiting occurrence starts at once; the policy
///   is not asked again.
/// * Whatever the answer, the occurrence is counted: it started, or it was
///   skipped for the reason named here.
///
/// A policy that panics is contained and counted, and that one occurrence is
/// `Skipped{Overlap}`; the next one asks again.
///
/// # An implementation
///
/// Let an occurrence wait if the run before it is about to end, drop it if that
/// run has only begun:
///
/// ```
/// use beatline_core::{Decision, OverlapPolicy, OverlapView};
/// use std::time::Duration;
///
/// #[derive(Debug)]
/// struct Patient;
///
/// impl OverlapPolicy for Patient {
///     fn decide(&self, view: &OverlapView<'_>) -> Decision {
///         match view.oldest_age() {
///             None => Decision::Start,
///             Some(age) if age > Duration::from_secs(20) => Decision::Buffer,
///             Some(_) => Decision::Skip,
///         }
///     }
///     fn buffer(&self) -> usize {
///         1
///     }
/// }
/// ```
///
/// And a wrong one. A policy that keeps its own count of runs misses those that
/// panicked or were aborted, and blocks its job for ever; the view counts for it:
///
/// ```
/// # use beatline_core::{Decision, OverlapPolicy, OverlapView};
/// # struct Counting { running: std::sync::atomic::AtomicUsize }
/// # impl OverlapPolicy for Counting {
/// fn decide(&self, _view: &OverlapView<'_>) -> Decision {
///     // wrong: who subtracts when a run panics?
///     match self.running.fetch_add(1, std::sync::atomic::Ordering::Relaxed) {
///         0 => Decision::Start,
///         _ => Decision::Skip,
///     }
/// }
/// # }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not say what to do with overlapping runs",
    label = "expected an overlap policy",
    note = "use a variant of `Overlap`, such as `Overlap::Skip`, or implement `OverlapPolicy`"
)]
pub trait OverlapPolicy: Send + Sync + 'static {
    /// What to do with the occurrence in the view.
    fn decide(&self, view: &OverlapView<'_>) -> Decision;

    /// How many runs may be active at once, unless the job says otherwise.
    /// The default is 1.
    fn max_concurrent(&self) -> usize {
        1
    }

    /// How many occurrences may wait at once. The default is 0.
    fn buffer(&self) -> usize {
        0
    }

    /// Whether the policy's settings make sense; called once, when the job is
    /// added.
    ///
    /// # Errors
    ///
    /// [`Error::Invalid`] names the setting and says what would be right.
    fn validate(&self) -> Result<(), Error> {
        Ok(())
    }

    /// The built-in policy this is, if it is one: the scheduler then decides
    /// without a virtual call. Not for other crates to override.
    #[doc(hidden)]
    fn built_in(&self) -> Option<Overlap> {
        None
    }

    /// A word or two for labels and logs.
    fn describe(&self) -> String {
        "custom".to_owned()
    }
}

/// What a policy answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Decision {
    /// Start now; above the limit of active runs, `Skipped{Overlap}`.
    Start,
    /// Do not run: `Skipped{Overlap}`.
    Skip,
    /// Wait at the back; if the buffer is full, the *new* occurrence is
    /// `Skipped{BufferFull}`.
    ///
    /// This and the two below wait for the end of a run: with nothing active
    /// there is none, and the occurrence starts.
    Buffer,
    /// Wait at the back; if the buffer is full, the *longest-waiting* one makes
    /// room as `Skipped{BufferFull}`.
    BufferDropOldest,
    /// Wait at the back; if the buffer is full, the *newest waiting* one makes
    /// room as `Skipped{Superseded}`.
    BufferSupersede,
}

/// What a policy may base its answer on.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct OverlapView<'a> {
    /// The monotonic clock, read when the present decision began.
    pub now: Monotonic,
    /// The occurrence in question: its nominal due instant.
    pub due: Due,
    /// How late the scheduler comes to it.
    pub lateness: Duration,
    /// How many runs are active: handed over or running, not yet ended.
    pub active: usize,
    /// How many may be active.
    pub max_concurrent: usize,
    /// How many occurrences wait already.
    pub buffered: usize,
    /// The active runs, oldest first.
    pub runs: &'a [ActiveRun],
}

impl<'a> OverlapView<'a> {
    /// A view with nothing active and nothing waiting; for tests of policies,
    /// which then set the fields that matter.
    #[must_use]
    pub const fn new(now: Monotonic, due: Due) -> Self {
        Self { now, due, lateness: Duration::ZERO, active: 0, max_concurrent: 1, buffered: 0, runs: &[] }
    }

    /// This view with these active runs.
    #[must_use]
    pub const fn with_runs(mut self, runs: &'a [ActiveRun]) -> Self {
        self.runs = runs;
        self.active = runs.len();
        self
    }

    /// Whether one more run may start.
    #[must_use]
    pub const fn has_room(&self) -> bool {
        self.active < self.max_concurrent
    }

    /// How long the oldest active run has been active; `None` if none is.
    #[must_use]
    pub fn oldest_age(&self) -> Option<Duration> {
        self.runs.first().map(|run| self.now.saturating_since(run.accepted))
    }
}

/// A run that a policy sees as active.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ActiveRun {
    /// When it was accepted.
    pub accepted: Monotonic,
    /// When it started; `None` while it is on its way to a worker.
    pub started: Option<Monotonic>,
}

impl ActiveRun {
    /// A run accepted and started at these instants.
    #[must_use]
    pub const fn new(accepted: Monotonic, started: Option<Monotonic>) -> Self {
        Self { accepted, started }
    }
}

/// The built-in overlap policies.
///
/// One job with a period of 10 s, whose run due at 0 lasts 23 s and whose others
/// last 4 s (`━` running, `·` waiting, `x` skipped):
///
/// ```text
///   due           0         10        20        30        40
///   Skip          ━━━━━━━━━━x━━━━━━━━━x━━       ━━━━      ━━━━
///   BufferOne     ━━━━━━━━━━··········x··━━━━   ━━━━      ━━━━      keep First: 10 runs 23→27
///   BufferOne     ━━━━━━━━━━··········x··━━━━   ━━━━      ━━━━      keep Latest: 20 runs 23→27
///   BufferAll     ━━━━━━━━━━·············━━━━━━━━━━━━     ━━━━      10 at 23, 20 at 27, 30 at 31
///   AllowAll      ━━━━━━━━━━━━━━━━━━━━━━━       ━━━━      ━━━━      10→14 and 20→24 beside it
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum Overlap {
    /// The new occurrence is `Skipped{Overlap}`; the run goes on. With
    /// `max_concurrent(n)`, up to n runs side by side before that.
    #[default]
    Skip,
    /// One occurrence may wait for the end of the run.
    BufferOne {
        /// Which one, if several want to.
        keep: Keep,
    },
    /// Up to `cap` occurrences wait, first in, first out.
    BufferAll {
        /// How many may wait; more than zero. [`Overlap::buffer_all`] takes
        /// 1,000.
        cap: usize,
        /// Which one gives way when that many wait already.
        overflow: Overflow,
    },
    /// Every occurrence starts, up to 1,000 at once unless the job's
    /// `max_concurrent` says otherwise; above that `Skipped{Overlap}`.
    AllowAll,
}

impl Overlap {
    /// [`Overlap::BufferAll`] with room for 1,000, the newest giving way.
    #[must_use]
    pub const fn buffer_all() -> Self {
        Overlap::BufferAll { cap: buffer::DEFAULT_CAP, overflow: Overflow::DropNewest }
    }

    /// The decision as a function of what it depends on: whether one more run
    /// may start.
    #[must_use]
    pub const fn decision(self, has_room: bool) -> Decision {
        match self {
            Overlap::Skip => skip::decide(has_room),
            Overlap::BufferOne { keep } => buffer::decide_one(keep, has_room),
            Overlap::BufferAll { overflow, .. } => buffer::decide_all(overflow, has_room),
            Overlap::AllowAll => allow_all::decide(),
        }
    }
}

impl OverlapPolicy for Overlap {
    fn decide(&self, view: &OverlapView<'_>) -> Decision {
        self.decision(view.has_room())
    }

    fn max_concurrent(&self) -> usize {
        match self {
            Overlap::AllowAll => allow_all::DEFAULT_MAX_CONCURRENT,
            _ => 1,
        }
    }

    fn buffer(&self) -> usize {
        match self {
            Overlap::Skip | Overlap::AllowAll => 0,
            Overlap::BufferOne { .. } => 1,
            Overlap::BufferAll { cap, .. } => *cap,
        }
    }

    fn validate(&self) -> Result<(), Error> {
        match self {
            Overlap::BufferAll { cap: 0, .. } => Err(Error::invalid(
                "overlap.cap",
                "is 0, so nothing could wait; give it room for at least 1, or use `Overlap::Skip`",
            )),
            _ => Ok(()),
        }
    }

    fn built_in(&self) -> Option<Overlap> {
        Some(*self)
    }

    fn describe(&self) -> String {
        match self {
            Overlap::Skip => "skip".to_owned(),
            Overlap::BufferOne { keep: Keep::First } => "buffer one, keep first".to_owned(),
            Overlap::BufferOne { keep: Keep::Latest } => "buffer one, keep latest".to_owned(),
            Overlap::BufferAll { cap, overflow: Overflow::DropNewest } => format!("buffer all, {cap}, drop newest"),
            Overlap::BufferAll { cap, overflow: Overflow::DropOldest } => format!("buffer all, {cap}, drop oldest"),
            Overlap::AllowAll => "allow all".to_owned(),
        }
    }
}
