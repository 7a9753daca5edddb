//! The active runs of one job: accepted and not yet ended.

use std::task::Waker;

use beatline_core::{CancellationToken, Cause};
use smallvec::SmallVec;

/// An instant before all others: "not yet".
pub(crate) const UNSET: i64 = i64::MIN;

/// One active run.
#[derive(Debug)]
pub(crate) struct Active {
    pub(crate) id: u64,
    /// Monotonic nanoseconds.
    pub(crate) accepted: i64,
    /// Monotonic nanoseconds; [`UNSET`] until the gate is passed.
    pub(crate) started: i64,
    /// Whether it waited in the buffer for an earlier run to end.
    pub(crate) waited: bool,
    /// Who asked it to stop; the first one is kept.
    pub(crate) cause: Option<Cause>,
    /// Whether its time is up.
    pub(crate) timed_out: bool,
    /// Whether it is to be dropped at its next poll.
    pub(crate) abort: bool,
    /// Whether this run itself waits for the scheduler's shutdown, so that
    /// nobody must wait for it.
    pub(crate) inside_shutdown: bool,
    /// Its body cannot be dropped: it runs on a blocking thread or inline.
    pub(crate) blocking: bool,
    /// Wakes the task that polls it, once there is one.
    pub(crate) waker: Option<Waker>,
    /// Made when someone asks for it.
    pub(crate) token: Option<CancellationToken>,
}

impl Active {
    pub(crate) fn has_started(&self) -> bool {
        self.started != UNSET
    }

    pub(crate) fn is_cancelled(&self) -> bool {
        self.cause.is_some() || self.timed_out
    }
}

/// In the order in which they were accepted; nearly always none or one.
#[derive(Debug, Default)]
pub(crate) struct ActiveRuns(SmallVec<[Active; 1]>);

impl ActiveRuns {
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn accept(&mut self, id: u64, accepted: i64, waited: bool) {
        self.0.push(Active {
            id,
            accepted,
            started: UNSET,
            waited,
            cause: None,
            timed_out: false,
            abort: false,
            inside_shutdown: false,
            blocking: false,
            waker: None,
            token: None,
        });
    }

    pub(crate) fn find(&mut self, id: u64) -> Option<&mut Active> {
        let position = self.position(id)?;
        Some(&mut self.0[position])
    }

    pub(crate) fn remove(&mut self, id: u64) -> Option<Active> {
        let position = self.position(id)?;
        let removed = self.0.remove(position);
        if self.0.is_empty() && self.0.spilled() {
            self.0 = SmallVec::new();
        }
        Some(removed)
    }

    /// Ids ascend nearly always. A policy of a user's may let an occurrence wait
    /// and start a later one, and a request may overtake what waits.
    fn position(&self, id: u64) -> Option<usize> {
        let searched = self.0.binary_search_by_key(&id, |run| run.id).ok();
        searched.or_else(|| self.0.iter().position(|run| run.id == id))
    }

    pub(crate) fn iter(&self) -> std::slice::Iter<'_, Active> {
        self.0.iter()
    }

    pub(crate) fn iter_mut(&mut self) -> std::slice::IterMut<'_, Active> {
        self.0.iter_mut()
    }
}
