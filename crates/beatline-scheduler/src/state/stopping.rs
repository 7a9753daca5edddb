//! Active runs that are to stop: asked through their tokens, dropped at a poll, or
//! out of time. What is to be cancelled or woken is returned, for the caller to do
//! outside the lock.

use std::task::Waker;

use beatline_core::{CancellationToken, Cause, RunId};

use super::State;

impl State {
    /// Asks active runs to stop. Returns the tokens to cancel, outside the lock.
    pub fn ask_to_stop(&mut self, cause: Cause) -> Vec<CancellationToken> {
        let mut tokens = Vec::new();
        for run in self.active.iter_mut().filter(|run| run.has_started() && !run.inside_shutdown) {
            run.cause.get_or_insert(cause);
            tokens.extend(run.token.clone());
        }
        tokens
    }

    /// Has active runs dropped at their next poll. Returns whom to wake, outside
    /// the lock. Blocking bodies go on: nobody can drop them.
    pub fn abort(&mut self, cause: Cause) -> Vec<Waker> {
        let mut wakers = Vec::new();
        for run in self.active.iter_mut().filter(|run| run.has_started() && !run.blocking && !run.inside_shutdown) {
            run.cause.get_or_insert(cause);
            run.abort = true;
            wakers.extend(run.waker.take());
        }
        wakers
    }

    /// The time of a run is up. Returns its token, to be cancelled outside the
    /// lock.
    pub fn time_out(&mut self, run: RunId) -> Option<CancellationToken> {
        let active = self.active.find(run.0)?;
        // The first cause is kept: a run that was asked to stop before is not timed out.
        if active.cause.is_none() {
            active.timed_out = true;
        }
        active.token.clone()
    }

    /// Whether this run was asked to stop. One that is over was.
    pub fn is_cancelled(&mut self, run: RunId) -> bool {
        self.active.find(run.0).is_none_or(|active| active.is_cancelled())
    }

    /// The token of this run, made on first use.
    pub fn token(&mut self, run: RunId) -> CancellationToken {
        let token = match self.active.find(run.0) {
            Some(active) if !active.is_cancelled() => return active.token.get_or_insert_default().clone(),
            Some(active) => active.token.get_or_insert_default().clone(),
            None => CancellationToken::new(),
        };
        token.cancel();
        token
    }

    /// Whether a run that is being polled is to be dropped instead. `waker`
    /// wakes the task that polls it.
    pub fn polled(&mut self, run: RunId, waker: &Waker) -> bool {
        let Some(active) = self.active.find(run.0) else { return true };
        if !active.abort && active.waker.as_ref().is_none_or(|known| !known.will_wake(waker)) {
            active.waker = Some(waker.clone());
        }
        active.abort
    }

    /// Marks a run that itself waits for the shutdown. Returns whether it was
    /// active and not marked yet.
    pub fn enter_shutdown(&mut self, run: RunId) -> bool {
        match self.active.find(run.0) {
            Some(active) if !active.inside_shutdown => {
                active.inside_shutdown = true;
                true
            }
            _ => false,
        }
    }

    /// Whether this run is marked so.
    pub fn is_inside_shutdown(&mut self, run: RunId) -> bool {
        self.active.find(run.0).is_some_and(|active| active.inside_shutdown)
    }
}
