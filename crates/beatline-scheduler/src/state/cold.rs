//! The part of a job's state that most jobs never need, behind one pointer.

use std::collections::VecDeque;
use std::sync::Arc;

use beatline_core::{Moment, RunFacts};
use futures::channel::oneshot;

use super::ledger::{Ended, LastError, RareCounts};

/// Rarely used state.
#[derive(Debug, Default)]
pub(crate) struct Cold {
    /// Occurrences that wait for earlier runs, oldest first.
    pub(crate) buffer: VecDeque<RunFacts>,
    pub(crate) counts: RareCounts,
    pub(crate) last_error: Option<LastError>,
    pub(crate) failures_in_a_row: u64,
    pub(crate) waiters: Vec<Waiter>,
    /// Decisions that came later than the tolerance.
    pub(crate) misfires: u64,
    /// Panics contained besides those of runs: in drops and in the policy.
    pub(crate) contained_panics: u64,
    pub(crate) fault: Option<Arc<str>>,
    /// When the schedule began anew, if that was before the registration: the
    /// clock was wrong then and has been corrected.
    pub(crate) began_anew: Option<Moment>,
}

/// Someone who waits for an outcome.
#[derive(Debug)]
pub(crate) struct Waiter {
    /// Which run; the next one to get its fate if `None`.
    pub(crate) run: Option<u64>,
    pub(crate) sender: oneshot::Sender<Ended>,
}
