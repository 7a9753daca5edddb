//! What a step of the state machine wants done, outside the job's lock.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use beatline_core::{Decided, Outcome, RunFacts, SharedError, SkipReason};
use futures::channel::oneshot;

use super::ledger::{Ended, LastError};

/// What is to be done after a step. All of it is optional, most of it rare.
#[derive(Debug, Default)]
#[must_use = "effects are to be carried out"]
pub struct Effects {
    /// Hand this occurrence to a worker.
    pub hand_off: Option<RunFacts>,
    /// Put an entry with this deadline into the timer.
    pub arm: Option<i64>,
    /// Tell of a decision about due occurrences.
    pub decided: Option<Decided>,
    /// Tell of a decision about a requested run.
    pub requested: Option<Decided>,
    /// Tell of occurrences that had been waiting and will not start.
    pub withdrawn: Option<(SkipReason, u64)>,
    /// Tell that the policy panicked.
    pub policy_panic: Option<Arc<str>>,
    /// Tell that the trigger broke its contract.
    pub fault: Option<Arc<str>>,
    /// Tell that there is no further occurrence.
    pub exhausted: bool,
    /// The job is over: take it out of the registry.
    pub retired: bool,
    /// An error that another took the place of: the user's, dropped outside the lock.
    pub replaced_error: Option<LastError>,
    /// Answer those who waited.
    pub answers: Vec<(oneshot::Sender<Ended>, Ended)>,
}

/// Whether a run may start.
#[derive(Debug)]
pub enum Gate {
    /// It has started.
    Passed {
        /// The job fell behind with this start, by so much.
        fell_behind: Option<Duration>,
        /// The job had been behind and this start is on time.
        caught_up: bool,
    },
    /// It was skipped.
    Refused(Box<Effects>),
}

/// How a run ended.
#[derive(Clone, Debug)]
pub struct Ending {
    /// The outcome.
    pub outcome: Outcome,
    /// The error of a failure.
    pub error: Option<SharedError>,
    /// How long it ran.
    pub duration: Duration,
    /// How many failures in a row that makes.
    pub failures_in_a_row: u64,
}

/// What a cancellation found.
#[derive(Debug)]
pub enum Removal {
    /// The job was scheduled.
    Cancelled {
        /// What is to be done.
        effects: Box<Effects>,
        /// How many runs are going on.
        running: u64,
        /// The deadline of its entry in the timer, now without meaning;
        /// `i64::MAX` if there is none.
        deadline: i64,
    },
    /// It had been cancelled before, or was over by itself.
    AlreadyGone,
}

pub(super) fn timed_out_error(timeout: Option<Duration>) -> SharedError {
    Arc::new(TimedOutError { after: timeout.unwrap_or_default() })
}

/// The error of a run that outlasted its time-out.
#[derive(Debug)]
struct TimedOutError {
    after: Duration,
}

impl fmt::Display for TimedOutError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "timed out after {:?}", self.after)
    }
}

impl std::error::Error for TimedOutError {}
