//! The books of one job: every due instant and what became of it.

use std::time::Duration;

use beatline_core::{Fate, Outcome, RunFacts, SharedError, SkipReason, Timestamp};

use super::active::UNSET;

/// How one occurrence ended; what tickets and waiters are answered.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Ended {
    /// The occurrence.
    pub run: RunFacts,
    /// Its one end.
    pub fate: Fate,
    /// The error of a failed, panicked or timed-out run.
    pub error: Option<SharedError>,
    /// How long it ran; zero if it was skipped.
    pub duration: Duration,
}

/// The error a job's run ended in last.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct LastError {
    /// The error; print it with [`error_chain`](beatline_core::error_chain).
    pub error: SharedError,
    /// When the run ended, by the wall clock.
    pub at: Timestamp,
    /// How it ended: failed, panicked or timed out.
    pub outcome: Outcome,
}

/// Counts that change with nearly every occurrence, and the sums behind the
/// means. What is rare lies in [`Cold`](super::cold::Cold).
#[derive(Debug)]
pub(crate) struct Ledger {
    pub(crate) due: u64,
    pub(crate) started: u64,
    pub(crate) completed: u64,
    pub(crate) overlap: u64,
    pub(crate) coalesced: u64,
    /// Monotonic nanoseconds; [`UNSET`] before the first.
    pub(crate) last_start: i64,
    pub(crate) last_end: i64,
    pub(crate) last_success: i64,
    /// Nanoseconds.
    pub(crate) duration_sum: u64,
    pub(crate) lateness_sum: u64,
    /// Microseconds, saturating at 71 minutes.
    pub(crate) duration_last: u32,
    pub(crate) duration_max: u32,
    pub(crate) lateness_last: u32,
    pub(crate) lateness_max: u32,
    pub(crate) last_outcome: Option<Outcome>,
}

impl Ledger {
    pub(crate) const fn new() -> Self {
        Self {
            due: 0,
            started: 0,
            completed: 0,
            overlap: 0,
            coalesced: 0,
            last_start: UNSET,
            last_end: UNSET,
            last_success: UNSET,
            duration_sum: 0,
            lateness_sum: 0,
            duration_last: 0,
            duration_max: 0,
            lateness_last: 0,
            lateness_max: 0,
            last_outcome: None,
        }
    }

    pub(crate) fn record_start(&mut self, now: i64, lateness: Duration) {
        self.started += 1;
        self.last_start = now;
        self.lateness_sum = self.lateness_sum.saturating_add(nanoseconds(lateness));
        self.lateness_last = microseconds(lateness);
        self.lateness_max = self.lateness_max.max(self.lateness_last);
    }

    pub(crate) fn record_end(&mut self, now: i64, outcome: Outcome, duration: Duration) {
        self.last_end = now;
        self.last_outcome = Some(outcome);
        if outcome == Outcome::Completed {
            self.completed += 1;
            self.last_success = now;
        }
        self.duration_sum = self.duration_sum.saturating_add(nanoseconds(duration));
        self.duration_last = microseconds(duration);
        self.duration_max = self.duration_max.max(self.duration_last);
    }
}

/// Counts by every outcome and every reason; the rare ones.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RareCounts {
    pub(crate) outcomes: [u64; Outcome::LABELS.len()],
    pub(crate) skipped: [u64; SkipReason::LABELS.len()],
}

fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

fn microseconds(duration: Duration) -> u32 {
    u32::try_from(duration.as_micros()).unwrap_or(u32::MAX)
}
