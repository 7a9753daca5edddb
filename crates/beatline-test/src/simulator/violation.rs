//! What a simulation can find wrong.

use std::fmt;
use std::time::Duration;

/// A promise of the scheduler, as the design numbers them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Invariant {
    /// I1: due = started + skipped + pending, started = running + outcomes, and
    /// every count is what the simulator counted.
    Conservation,
    /// I2: nothing starts before it is due, nor after a cancel or a shutdown.
    NeverEarly,
    /// I3: a due instant is started at most once.
    NeverTwice,
    /// An occurrence on the wall clock is decided on no later than the driver looks
    /// at that clock.
    OnTime,
    /// A job on the wall clock is not silent for long, however the clock is set.
    NeverSilent,
    /// I4: no more active runs and waiting occurrences than allowed.
    Limits,
    /// I5: a job never just vanishes.
    NeverVanishes,
    /// I6: equal deadlines are accepted in order.
    Order,
    /// I7: the loop is never busy.
    NeverBusy,
    /// A decision, a fate or a record is not what the rules say.
    Rules,
    /// The engine panicked.
    Panic,
    /// The same seed did something else the second time.
    Determinism,
}

impl Invariant {
    /// The words for reports.
    #[must_use]
    pub const fn label(self) -> &'static str {
        match self {
            Invariant::Conservation => "I1 conservation",
            Invariant::NeverEarly => "I2 never early",
            Invariant::NeverTwice => "I3 never twice",
            Invariant::OnTime => "on time",
            Invariant::NeverSilent => "never silent",
            Invariant::Limits => "I4 limits",
            Invariant::NeverVanishes => "I5 never vanishes",
            Invariant::Order => "I6 order",
            Invariant::NeverBusy => "I7 never busy",
            Invariant::Rules => "rules",
            Invariant::Panic => "panic",
            Invariant::Determinism => "determinism",
        }
    }
}

/// A broken promise, and how to see it again.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Violation {
    /// The seed that shows it.
    pub seed: u64,
    /// How many fires the simulation was made for; the seed alone does not say.
    pub fires: u64,
    /// The promise.
    pub invariant: Invariant,
    /// After how many steps.
    pub step: u64,
    /// After how much virtual time.
    pub elapsed: Duration,
    /// What was expected and what was found.
    pub message: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { seed, fires, invariant, step, elapsed, message } = self;
        write!(f, "seed {seed} ({fires} fires): {}: {message} (step {step}, after {elapsed:?})", invariant.label())
    }
}

impl std::error::Error for Violation {}

/// A broken promise before it is known where.
pub(super) type Check = Result<(), Broken>;

#[derive(Debug)]
pub(super) struct Broken {
    pub(super) invariant: Invariant,
    pub(super) message: String,
}

/// Fails with `message` unless `holds`.
pub(super) fn check(holds: bool, invariant: Invariant, message: impl FnOnce() -> String) -> Check {
    if holds { Ok(()) } else { Err(Broken { invariant, message: message() }) }
}
