//! One registered job: its fixed part, its state behind one lock, its body.
//!
//! # Ground rules
//!
//! * `state` is locked for the length of one step of the state machine and never
//!   across an await, a user's body, an observer or a waker. The trigger and the
//!   overlap policy are the only foreign code that runs under it; both are
//!   contained, so the lock is never poisoned by them.
//! * Whatever a step wants done comes back as effects and is carried out by
//!   [`Shared::carry_out`] after the lock was let go.

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use beatline_core::{CancellationToken, Error, Run, RunControl, RunFacts, RunId, SkipReason, Timestamp};

use crate::body::{Begun, Body, Kind};
use crate::contain::Contained;
use crate::current::CurrentRun;
use crate::queue::OrderKey;
use crate::shared::Shared;
use crate::state::{Plan, Removal, State, Statistics};

/// A job of any body.
pub(crate) type JobRef = Arc<dyn AnyJob>;

/// What is known of every job, whatever its body.
pub(crate) struct JobCore {
    pub(crate) sequence: u64,
    pub(crate) name: Arc<str>,
    pub(crate) plan: Plan,
    pub(crate) shared: Arc<Shared>,
    /// Whether the last run was still pending after its first poll: the next one
    /// is then spawned without one. Only a hint.
    pub(crate) was_pending: AtomicBool,
    state: Mutex<State>,
}

/// A job with its body.
pub(crate) struct JobCell<B> {
    core: Contained<JobCore>,
    body: Contained<B>,
}

/// A job behind a pointer.
pub(crate) trait AnyJob: Send + Sync {
    fn core(&self) -> &JobCore;
    fn kind(&self) -> Kind;
    /// Calls the body. May panic.
    fn begin(&self, run: Run) -> Begun;
    fn control(self: Arc<Self>) -> Arc<dyn RunControl>;
}

impl<B: Body> JobCell<B> {
    pub(crate) fn new(sequence: u64, name: Arc<str>, plan: Plan, shared: Arc<Shared>, body: B) -> Self {
        let (state, was_pending) = (Mutex::new(State::new()), AtomicBool::new(false));
        Self {
            core: Contained::new(JobCore { sequence, name, plan, shared, was_pending, state }),
            body: Contained::new(body),
        }
    }
}

impl<B: Body> AnyJob for JobCell<B> {
    fn core(&self) -> &JobCore {
        &self.core
    }

    fn kind(&self) -> Kind {
        B::KIND
    }

    fn begin(&self, run: Run) -> Begun {
        self.body.begin(run)
    }

    fn control(self: Arc<Self>) -> Arc<dyn RunControl> {
        self
    }
}

impl JobCore {
    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn is_nameless(&self) -> bool {
        self.name.is_empty()
    }

    pub(crate) fn order_key(&self) -> OrderKey {
        OrderKey::new(self.plan.config.priority, self.sequence)
    }

    pub(crate) fn current(&self, facts: &RunFacts) -> CurrentRun {
        CurrentRun { scheduler: self.shared.id, job: self.sequence, run: facts.id }
    }

    pub(crate) fn statistics(&self) -> Statistics {
        let now = self.shared.now();
        self.state().statistics(now)
    }

    pub(crate) fn next_due(&self) -> Option<Timestamp> {
        let now = self.shared.now();
        let next = self.state().next_due()?;
        Some(self.plan.wall(next, now))
    }
}

/// Cancels a job; active runs go on. Returns how many are running, or `None` if
/// it was gone already.
pub(crate) fn cancel(core: &JobCore, reason: SkipReason) -> Option<u64> {
    let removal = core.state().cancel(reason);
    match removal {
        Removal::AlreadyGone => None,
        Removal::Cancelled { effects, running, deadline } => {
            core.shared.removed(core, *effects, running, deadline);
            Some(running)
        }
    }
}

/// Asks for a run besides the schedule. The receiver learns its fate.
pub(crate) fn run_now(
    job: &JobRef,
    overlap: Option<&crate::config::OverlapChoice>,
) -> Result<futures::channel::oneshot::Receiver<crate::state::Ended>, Error> {
    let core = job.core();
    core.shared.check_open()?;
    let now = core.shared.now();
    let (sender, receiver) = futures::channel::oneshot::channel();
    let effects = core.state().run_now(&core.plan, overlap, sender, now);
    core.shared.carry_out(job, effects.ok_or(Error::Gone)?, now);
    Ok(receiver)
}

impl<B: Body> RunControl for JobCell<B> {
    fn job(&self) -> &str {
        &self.core.name
    }

    fn is_cancelled(&self, run: RunId) -> bool {
        self.core.state().is_cancelled(run)
    }

    fn token(&self, run: RunId) -> CancellationToken {
        self.core.state().token(run)
    }

    fn cancel_job(&self) {
        cancel(&self.core, SkipReason::Removed);
    }
}
