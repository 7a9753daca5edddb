//! Connections that share a time-out.

use std::time::Duration;

use beatline_core::Error;

use crate::mutants::planted;
use crate::pace::nanoseconds;
use crate::sync::{AtomicU64, Mutex, Ordering};
use crate::word::MAX_STEPS;

/// The settings of a class, in steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Thresholds {
    /// Steps after the stamp at which a silence is suspect; `None`: never.
    pub(crate) suspect: Option<u64>,
    /// Steps after the stamp at which it is expired.
    pub(crate) expire: u64,
    /// Steps of grace after a pause.
    pub(crate) grace: u64,
}

impl Thresholds {
    /// Rounds up: a connection is never early.
    pub(crate) fn new(
        silence: Duration,
        suspect_after: Option<Duration>,
        grace: Duration,
        step: Duration,
    ) -> Result<Self, Error> {
        let whole_steps = |duration: Duration| nanoseconds(duration).div_ceil(nanoseconds(step).max(1));
        let expire = whole_steps(silence);
        if expire > MAX_STEPS {
            let longest = Duration::from_nanos(nanoseconds(step).saturating_mul(MAX_STEPS));
            return Err(Error::invalid(
                "timeout",
                format!("{silence:?} of silence is more than {longest:?}, the longest at this tick; use a longer tick"),
            ));
        }
        // See the drawing in `pace`: two steps of uncertainty about when the beat was.
        let uncertain = if planted("one-step-early") { 1 } else { 2 };
        Ok(Self {
            suspect: suspect_after.map(|duration| whole_steps(duration) + uncertain),
            expire: expire + uncertain,
            grace: whole_steps(grace).min(MAX_STEPS),
        })
    }

    /// When to look first at a beat stamped `stamp`.
    pub(crate) fn first_look(&self, stamp: u64) -> u64 {
        stamp + self.suspect.unwrap_or(self.expire)
    }
}

/// A class. Its chunks hold connections of no other.
#[derive(Debug)]
pub(crate) struct Class {
    pub(crate) timeout: Duration,
    pub(crate) thresholds: Thresholds,
    /// Written by the sweeper alone.
    forgiven: AtomicU64,
    /// Chunks with vacant slots; the last one is used next. Taken before a
    /// chunk's own lock, never after it.
    pub(crate) vacant: Mutex<Vec<u32>>,
}

impl Class {
    pub(crate) fn new(timeout: Duration, thresholds: Thresholds) -> Self {
        Self { timeout, thresholds, forgiven: AtomicU64::new(0), vacant: Mutex::new(Vec::new()) }
    }

    pub(crate) fn forgiven(&self) -> u64 {
        self.forgiven.load(Ordering::Relaxed)
    }

    pub(crate) fn grace_steps(&self) -> u64 {
        self.thresholds.grace
    }

    /// Gives every connection of the class a grace from `step` on: whoever has
    /// been silent is due `grace` after the end of the pause at the earliest.
    pub(crate) fn forgive(&self, step: u64) {
        if planted("grace-missing") {
            return;
        }
        // The sweep that ended the pause lies up to one step after the beginning of `step`.
        let earliest_due = step + 1 + self.thresholds.grace;
        self.forgiven.store(earliest_due.saturating_sub(self.thresholds.expire), Ordering::Relaxed);
    }
}
