//! A job's state as its users see it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use beatline_core::{Moment, Monotonic, Outcome, SkipReason, Timestamp};

use super::active::UNSET;
use super::ledger::LastError;
use super::{State, Upcoming};

/// What a job is waiting for.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Condition {
    /// Its next due instant is known.
    Scheduled,
    /// Its trigger waits for the end of a run.
    AwaitingCompletion,
    /// It runs on demand only.
    Idle,
    /// Its trigger has no further occurrence.
    Exhausted,
    /// Its trigger broke the contract; it runs on demand only.
    Faulted {
        /// What the trigger did.
        reason: Arc<str>,
    },
    /// It was cancelled.
    Cancelled,
}

/// The books of one job, read under its lock: the sums agree with each other at
/// any moment.
///
/// `due = started + Σ skipped + pending` and `started = running + Σ outcomes`.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Statistics {
    /// Occurrences that became due, requested runs included.
    pub due: u64,
    /// Runs that started.
    pub started: u64,
    /// Occurrences that wait: in the buffer, or on their way to a worker.
    pub pending: u64,
    /// Runs that have started and not ended.
    pub running: u64,
    /// Ended runs by outcome; see [`Statistics::outcome`].
    pub outcomes: [u64; Outcome::LABELS.len()],
    /// Skipped occurrences by reason; see [`Statistics::skipped`].
    pub skipped: [u64; SkipReason::LABELS.len()],
    /// Decisions that came later than the misfire tolerance.
    pub misfires: u64,
    /// Panics contained besides those of runs: in drops and in the policy.
    pub contained_panics: u64,
    /// Failures since the last completed run.
    pub failures_in_a_row: u64,
    /// When the last run started, by the wall clock.
    pub last_run_at: Option<Timestamp>,
    /// When the last run ended.
    pub last_end_at: Option<Timestamp>,
    /// When a run last completed.
    pub last_success_at: Option<Timestamp>,
    /// How the last run ended.
    pub last_outcome: Option<Outcome>,
    /// The error a run ended in last.
    pub last_error: Option<LastError>,
    /// How long the last run took, in steps of a microsecond, at most 71 minutes.
    pub last_duration: Duration,
    /// The longest run.
    pub max_duration: Duration,
    /// The mean over all runs that ended.
    pub mean_duration: Duration,
    /// How late the scheduler came to the last occurrence that started; waiting
    /// for earlier runs is not part of it.
    pub last_lateness: Duration,
    /// The greatest lateness.
    pub max_lateness: Duration,
    /// The mean lateness.
    pub mean_lateness: Duration,
    /// For how long the oldest active run has been running.
    pub oldest_running: Option<Duration>,
}

impl Statistics {
    /// How many runs have started; the same as `started`.
    #[must_use]
    pub fn run_count(&self) -> u64 {
        self.started
    }

    /// How many runs are going on; the same as `running`.
    #[must_use]
    pub fn active(&self) -> u64 {
        self.running
    }

    /// How many runs ended so.
    #[must_use]
    pub fn outcome(&self, outcome: Outcome) -> u64 {
        self.outcomes[outcome.index()]
    }

    /// How many occurrences were skipped for this reason.
    #[must_use]
    pub fn skipped(&self, reason: SkipReason) -> u64 {
        self.skipped[reason.index()]
    }

    /// How many occurrences were skipped.
    #[must_use]
    pub fn skipped_total(&self) -> u64 {
        self.skipped.iter().sum()
    }

    /// How many runs have ended.
    #[must_use]
    pub fn ended(&self) -> u64 {
        self.outcomes.iter().sum()
    }

    /// How many runs failed, panicked or timed out.
    #[must_use]
    pub fn failures(&self) -> u64 {
        self.outcomes[Outcome::Failed.index()]
            + self.outcomes[Outcome::Panicked.index()]
            + self.outcomes[Outcome::TimedOut.index()]
    }

    /// Whether every due instant is accounted for. Always true; a check for
    /// tests and for those who want to see it.
    #[must_use]
    pub fn is_balanced(&self) -> bool {
        self.due == self.started + self.skipped_total() + self.pending && self.started == self.running + self.ended()
    }

    /// The outcomes that occurred, by label.
    #[must_use]
    pub fn outcomes_by_label(&self) -> BTreeMap<&'static str, u64> {
        nonzero(&Outcome::LABELS, &self.outcomes)
    }

    /// The skip reasons that occurred, by label.
    #[must_use]
    pub fn skipped_by_label(&self) -> BTreeMap<&'static str, u64> {
        nonzero(&SkipReason::LABELS, &self.skipped)
    }

    /// Adds another job's books to these: counts and sums, not the last ones.
    pub(crate) fn add(&mut self, other: &Statistics) {
        self.due += other.due;
        self.started += other.started;
        self.pending += other.pending;
        self.running += other.running;
        for (mine, theirs) in self.outcomes.iter_mut().zip(other.outcomes) {
            *mine += theirs;
        }
        for (mine, theirs) in self.skipped.iter_mut().zip(other.skipped) {
            *mine += theirs;
        }
        self.misfires += other.misfires;
        self.contained_panics += other.contained_panics;
    }

    pub(crate) const fn empty() -> Self {
        Self {
            due: 0,
            started: 0,
            pending: 0,
            running: 0,
            outcomes: [0; Outcome::LABELS.len()],
            skipped: [0; SkipReason::LABELS.len()],
            misfires: 0,
            contained_panics: 0,
            failures_in_a_row: 0,
            last_run_at: None,
            last_end_at: None,
            last_success_at: None,
            last_outcome: None,
            last_error: None,
            last_duration: Duration::ZERO,
            max_duration: Duration::ZERO,
            mean_duration: Duration::ZERO,
            last_lateness: Duration::ZERO,
            max_lateness: Duration::ZERO,
            mean_lateness: Duration::ZERO,
            oldest_running: None,
        }
    }
}

fn nonzero<const N: usize>(labels: &[&'static str; N], counts: &[u64; N]) -> BTreeMap<&'static str, u64> {
    labels.iter().copied().zip(*counts).filter(|(_, count)| *count > 0).collect()
}

impl State {
    /// What the job is waiting for.
    pub fn condition(&self) -> Condition {
        match self.upcoming {
            Upcoming::At(_) => Condition::Scheduled,
            Upcoming::AfterCompletion(_) => Condition::AwaitingCompletion,
            Upcoming::Idle => Condition::Idle,
            Upcoming::Exhausted => Condition::Exhausted,
            Upcoming::Faulted => {
                let fault = self.cold.as_ref().and_then(|cold| cold.fault.clone());
                Condition::Faulted { reason: fault.unwrap_or_else(|| Arc::from("")) }
            }
            Upcoming::Cancelled => Condition::Cancelled,
        }
    }

    /// Whether the job was cancelled.
    pub fn is_job_cancelled(&self) -> bool {
        self.upcoming == Upcoming::Cancelled
    }

    /// Whether the timer's entry with this deadline is the valid one.
    pub fn is_armed(&self, deadline: i64) -> bool {
        self.armed == deadline
    }

    /// The next due instant on the job's line, if it is known.
    pub fn next_due(&self) -> Option<i64> {
        match self.upcoming {
            Upcoming::At(at) => Some(at),
            _ => None,
        }
    }

    /// Active runs, waiting occurrences.
    pub fn load(&self) -> (usize, usize) {
        (self.active.len(), self.buffered())
    }

    /// Whether this run is active.
    pub fn is_active(&mut self, run: beatline_core::RunId) -> bool {
        self.active.find(run.0).is_some()
    }

    /// How many runs are going on that nobody can drop, those that wait for the
    /// shutdown themselves aside.
    pub(crate) fn blocking(&self) -> u64 {
        let blocking = self.active.iter().filter(|run| run.blocking && run.has_started() && !run.inside_shutdown);
        blocking.count() as u64
    }

    /// The books, as `now` sees them.
    pub fn statistics(&self, now: Moment) -> Statistics {
        let ledger = &self.ledger;
        let wall = |at: i64| (at != UNSET).then(|| now.wall_at(Monotonic::from_nanoseconds(at)));
        let running = self.active.iter().filter(|run| run.has_started()).count() as u64;
        let mut statistics = Statistics {
            due: ledger.due,
            started: ledger.started,
            pending: (self.active.len() + self.buffered()) as u64 - running,
            running,
            last_run_at: wall(ledger.last_start),
            last_end_at: wall(ledger.last_end),
            last_success_at: wall(ledger.last_success),
            last_outcome: ledger.last_outcome,
            last_duration: micros(ledger.duration_last),
            max_duration: micros(ledger.duration_max),
            last_lateness: micros(ledger.lateness_last),
            max_lateness: micros(ledger.lateness_max),
            mean_lateness: mean(ledger.lateness_sum, ledger.started),
            oldest_running: self
                .active
                .iter()
                .filter(|run| run.has_started())
                .map(|run| run.started)
                .min()
                .map(|started| now.monotonic.saturating_since(Monotonic::from_nanoseconds(started))),
            ..Statistics::empty()
        };
        if let Some(cold) = &self.cold {
            statistics.outcomes = cold.counts.outcomes;
            statistics.skipped = cold.counts.skipped;
            statistics.misfires = cold.misfires;
            statistics.contained_panics = cold.contained_panics;
            statistics.failures_in_a_row = cold.failures_in_a_row;
            statistics.last_error = cold.last_error.clone();
        }
        statistics.outcomes[Outcome::Completed.index()] = ledger.completed;
        statistics.skipped[SkipReason::Overlap.index()] += ledger.overlap;
        statistics.skipped[SkipReason::Coalesced.index()] += ledger.coalesced;
        statistics.mean_duration = mean(ledger.duration_sum, statistics.ended());
        debug_assert!(statistics.is_balanced(), "{statistics:?}");
        statistics
    }
}

fn micros(value: u32) -> Duration {
    Duration::from_micros(u64::from(value))
}

fn mean(sum: u64, count: u64) -> Duration {
    Duration::from_nanos(sum.checked_div(count).unwrap_or(0))
}
