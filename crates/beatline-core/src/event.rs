//! What observers are told.

use std::sync::Arc;
use std::time::Duration;

use crate::{Due, Moment, Outcome, RunFacts, RunId, SharedError, SkipReason, Timestamp};

/// Is told everything that happens to jobs.
///
/// Called synchronously, from the driver, from workers and from threads that
/// use handles, with no lock held; events of one run arrive in order, events of
/// different jobs in any. It must not block: it stands in the path of every
/// run. A panic is caught and counted, and harms neither the job nor other
/// observers.
///
/// Closures `Fn(&Event)` are observers.
pub trait Observer: Send + Sync + 'static {
    /// One thing happened.
    fn observe(&self, event: &Event);
}

impl<F: Fn(&Event) + Send + Sync + 'static> Observer for F {
    fn observe(&self, event: &Event) {
        self(event);
    }
}

/// One thing that happened.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Event {
    /// Both clocks when it happened.
    pub at: Moment,
    /// The job it happened to; `None` for what concerns the scheduler as a
    /// whole. Nameless one-shots have the empty name.
    pub job: Option<Arc<str>>,
    /// What happened.
    pub kind: EventKind,
}

impl Event {
    /// An event; schedulers make them.
    #[must_use]
    pub const fn new(at: Moment, job: Option<Arc<str>>, kind: EventKind) -> Self {
        Self { at, job, kind }
    }
}

/// What happened.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum EventKind {
    /// The job was added.
    Added,
    /// Occurrences became due and were decided on: one event a decision, however
    /// many it covers. Persisting `cursor` per job name is enough to continue
    /// after a restart.
    Decided(Decided),
    /// Occurrences that had been waiting will not start after all.
    Skipped {
        /// Why.
        reason: SkipReason,
        /// How many.
        count: u64,
    },
    /// A run started.
    Started(RunFacts),
    /// A run ended.
    Finished(Finished),
    /// A fixed-rate job cannot keep up: its starts are later than the
    /// tolerance. Told once, at the first late start of an episode.
    FellBehind {
        /// How late that start was.
        by: Duration,
    },
    /// A start was on time again after the job had fallen behind.
    CaughtUp,
    /// The trigger has no further occurrence. The job leaves the scheduler when
    /// its last run has ended.
    Exhausted,
    /// The trigger broke its contract; the job is scheduled no more.
    Faulted {
        /// What it did.
        reason: Arc<str>,
    },
    /// The job was cancelled.
    Removed {
        /// How many of its runs were still active.
        running: u64,
    },
    /// The runtime did not come to due work in time, or a poll does not end.
    Stalled(Stalled),
    /// The wall clock was set, or the machine was suspended: it moved against the
    /// monotonic clock. Forwards, what lies between was missed; backwards, jobs on
    /// the wall clock hold or begin anew.
    ClockJump {
        /// How far.
        by: Duration,
        /// Whether into the past.
        backward: bool,
    },
    /// A callback of the user's panicked and was contained.
    CallbackPanicked {
        /// Which kind of callback.
        callback: Callback,
        /// The panic's text.
        message: Arc<str>,
    },
    /// The scheduler began to shut down.
    ShuttingDown,
}

/// One decision about due occurrences of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Decided {
    /// The newest due instant this decision covers; everything up to it is now
    /// accounted for.
    pub cursor: Due,
    /// The same by the wall clock, for a store that outlives the process.
    pub cursor_wall: Timestamp,
    /// How many occurrences it covers.
    pub due: u64,
    /// Whether `due` is a lower bound, because the trigger could only be walked.
    pub at_least: bool,
    /// How many of them were coalesced into a later one.
    pub coalesced: u64,
    /// How late the scheduler came to the newest.
    pub lateness: Duration,
    /// Whether that is beyond the misfire tolerance.
    pub misfire: bool,
    /// What became of the newest.
    pub verdict: Verdict,
}

impl Decided {
    /// A decision; schedulers make them.
    #[must_use]
    pub const fn new(cursor: Due, cursor_wall: Timestamp, verdict: Verdict) -> Self {
        Self {
            cursor,
            cursor_wall,
            due: 1,
            at_least: false,
            coalesced: 0,
            lateness: Duration::ZERO,
            misfire: false,
            verdict,
        }
    }
}

/// What became of an occurrence in the decision about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Verdict {
    /// It was accepted as this run.
    Accepted(RunId),
    /// It waits for earlier runs to end.
    Buffered,
    /// It was skipped.
    Skipped(SkipReason),
}

/// How a run ended.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Finished {
    /// The run.
    pub run: RunFacts,
    /// Its due instant by the wall clock.
    pub due: Timestamp,
    /// How it ended.
    pub outcome: Outcome,
    /// Its error, for a failed, panicked or timed-out run.
    pub error: Option<SharedError>,
    /// How long it ran.
    pub duration: Duration,
    /// How many runs of the job have failed in a row, this one included.
    pub failures_in_a_row: u64,
}

impl Finished {
    /// The end of a run; schedulers make them.
    #[must_use]
    pub const fn new(run: RunFacts, due: Timestamp, outcome: Outcome, duration: Duration) -> Self {
        Self { run, due, outcome, error: None, duration, failures_in_a_row: 0 }
    }
}

/// The runtime stood still, or a poll does not end.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stalled {
    /// How long so far, or in all if it is over.
    pub lag: Duration,
    /// Whether it is over.
    pub over: bool,
    /// The job whose poll is, or was, under way; `None` if it is none of ours.
    pub culprit: Option<Arc<str>>,
    /// Whether due work had to wait, or only one poll is taking long while the
    /// runtime's other workers go on.
    pub driver_late: bool,
}

impl Stalled {
    /// A stall; schedulers make them.
    #[must_use]
    pub const fn new(lag: Duration, culprit: Option<Arc<str>>) -> Self {
        Self { lag, over: false, culprit, driver_late: false }
    }
}

/// A kind of callback that users give to the scheduler.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Callback {
    /// An [`Observer`], `on_failure` included.
    Observer,
    /// An overlap policy.
    OverlapPolicy,
    /// A trigger.
    Trigger,
    /// The `Drop` of something a run owned.
    Drop,
}

impl Callback {
    /// The words for logs, such as `overlap policy`.
    #[must_use]
    pub const fn label(self) -> &'static str {
        match self {
            Callback::Observer => "observer",
            Callback::OverlapPolicy => "overlap policy",
            Callback::Trigger => "trigger",
            Callback::Drop => "drop of a run's value",
        }
    }
}
