use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use beatline_core::{Cause, Error, OverlapPolicy, SkipReason, Timestamp};
use futures::channel::oneshot;

use crate::config::OverlapChoice;
use crate::current;
use crate::job::{self, JobRef};
use crate::state::{Condition, Ended, Statistics};

/// A job, for those who control it.
///
/// Clones are the same job. Works from any thread, inside and outside the
/// runtime and inside the job itself, and never blocks. Dropping a handle
/// changes nothing: the job stays scheduled. The statistics stay readable after
/// the job is gone.
#[derive(Clone)]
pub struct JobHandle {
    job: JobRef,
}

/// What [`JobHandle::cancel`] found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CancelResult {
    /// The job was scheduled, and is no more.
    Cancelled {
        /// How many of its runs are going on, and go on to their end.
        running: u64,
    },
    /// It had been cancelled or had ended before.
    AlreadyGone,
}

/// A job's condition and books at one moment.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Status {
    /// The job's name; empty for a nameless one-shot.
    pub name: Arc<str>,
    /// The trigger in a few words.
    pub trigger: String,
    /// The overlap policy in a few words.
    pub overlap: String,
    /// What the job is waiting for.
    pub condition: Condition,
    /// When it is due next, by the wall clock, if that is known.
    pub next_due: Option<Timestamp>,
    /// Its books.
    pub statistics: Statistics,
}

impl Status {
    /// Whether the job was cancelled.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.condition == Condition::Cancelled
    }

    /// Whether a run is going on.
    #[must_use]
    pub fn is_active(&self) -> bool {
        self.statistics.running > 0
    }
}

impl JobHandle {
    pub(crate) fn new(job: JobRef) -> Self {
        Self { job }
    }

    /// The job's name; empty for a nameless one-shot.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.job.core().name
    }

    /// The job's condition and books.
    #[must_use]
    pub fn status(&self) -> Status {
        let core = self.job.core();
        let now = core.shared.now();
        let (condition, next, statistics) = {
            let state = core.state();
            (state.condition(), state.next_due(), state.statistics(now))
        };
        Status {
            name: Arc::clone(&core.name),
            trigger: core.plan.config.trigger.clone(),
            overlap: core.plan.config.overlap.policy().describe(),
            condition,
            next_due: next.map(|at| core.plan.wall(at, now)),
            statistics,
        }
    }

    /// The job's books.
    #[must_use]
    pub fn statistics(&self) -> Statistics {
        self.job.core().statistics()
    }

    /// When the job is due next, by the wall clock; `None` if it waits for a run
    /// to end, runs on demand only, or is gone.
    #[must_use]
    pub fn next_due(&self) -> Option<Timestamp> {
        self.job.core().next_due()
    }

    /// Cancels the job. Idempotent. Once this returns, no run of it starts any
    /// more; active runs go on to their end.
    pub fn cancel(&self) -> CancelResult {
        match job::cancel(self.job.core(), SkipReason::Removed) {
            Some(running) => CancelResult::Cancelled { running },
            None => CancelResult::AlreadyGone,
        }
    }

    /// Cancels the job and asks its active runs to stop: their tokens are
    /// cancelled at once, and what has not ended after `grace` is dropped at its
    /// next await. A blocking body cannot be dropped.
    ///
    /// Takes effect at once; await the result to wait until no run is active.
    pub fn stop(&self, grace: Duration) -> Stopping {
        let core = self.job.core();
        let result = self.cancel();
        let tokens = core.state().ask_to_stop(Cause::User);
        tokens.iter().for_each(beatline_core::CancellationToken::cancel);
        if core.state().load().0 > 0 {
            let job = Arc::clone(&self.job);
            core.shared.handle.spawn(async move {
                let ended = idle(&job);
                tokio::select! {
                    () = ended => {}
                    () = tokio::time::sleep(grace) => abort(&job),
                }
            });
        }
        Stopping { job: Arc::clone(&self.job), result, wait: None }
    }

    /// Asks for a run now, besides the schedule and without moving it. It goes
    /// through the overlap policy like any occurrence. The ticket tells the fate
    /// of this very run.
    ///
    /// # Errors
    ///
    /// [`Error::Gone`] if the job is over, [`Error::ShuttingDown`] if the
    /// scheduler is.
    pub fn run_now(&self) -> Result<Ticket, Error> {
        job::run_now(&self.job, None).map(|receiver| Ticket { receiver })
    }

    /// As [`run_now`](JobHandle::run_now), with another overlap policy for this
    /// one run. The job's limits stay.
    ///
    /// # Errors
    ///
    /// Those of `run_now`, and what the policy's own validation finds.
    pub fn run_now_with(&self, overlap: impl OverlapPolicy) -> Result<Ticket, Error> {
        overlap.validate()?;
        job::run_now(&self.job, Some(&OverlapChoice::new(overlap))).map(|receiver| Ticket { receiver })
    }

    /// Waits for the next occurrence of this job to get its fate, whichever it
    /// is.
    ///
    /// # Errors
    ///
    /// [`Error::Gone`] if the job ends before.
    ///
    /// # Cancel safety
    ///
    /// What happens between two calls is not seen by either: for all of it use an
    /// observer.
    pub async fn next_outcome(&self) -> Result<Ended, Error> {
        let receiver = self.job.core().state().wait();
        receiver.ok_or(Error::Gone)?.await.map_err(|_| Error::Gone)
    }

    /// A guard that cancels the job when it is dropped.
    pub fn guard(&self) -> JobGuard {
        JobGuard { handle: Some(self.clone()) }
    }
}

impl std::fmt::Debug for JobHandle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("JobHandle").field("name", &self.name()).finish_non_exhaustive()
    }
}

fn abort(job: &JobRef) {
    let wakers = job.core().state().abort(Cause::User);
    wakers.into_iter().for_each(std::task::Waker::wake);
}

/// Waits until no run of a cancelled job is active.
async fn idle(job: &JobRef) {
    loop {
        let receiver = {
            let mut state = job.core().state();
            if state.load() == (0, 0) {
                return;
            }
            state.wait()
        };
        let Some(receiver) = receiver else { return };
        let _ = receiver.await;
    }
}

/// Cancels its job when it is dropped.
#[derive(Debug)]
#[must_use = "the job is cancelled as soon as the guard is dropped"]
pub struct JobGuard {
    handle: Option<JobHandle>,
}

impl JobGuard {
    /// Gives up the guard; the job stays scheduled.
    pub fn release(mut self) -> Option<JobHandle> {
        self.handle.take()
    }
}

impl Drop for JobGuard {
    fn drop(&mut self) {
        if let Some(handle) = self.handle.take() {
            handle.cancel();
        }
    }
}

/// A requested run. Awaited, it tells how that run ended, or why it never
/// started.
///
/// # Cancel safety
///
/// Dropping it changes nothing about the run.
#[derive(Debug)]
#[must_use = "the run goes on by itself; awaiting the ticket tells how it ends"]
pub struct Ticket {
    receiver: oneshot::Receiver<Ended>,
}

impl Future for Ticket {
    type Output = Result<Ended, Error>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        Pin::new(&mut self.receiver).poll(context).map(|ended| ended.map_err(|_| Error::Gone))
    }
}

/// A job that was told to stop. Awaited, it waits until no run is active.
///
/// # Cancel safety
///
/// Dropping it changes nothing; the runs are stopped all the same.
#[must_use = "the job stops by itself; awaiting tells when no run is active"]
pub struct Stopping {
    job: JobRef,
    result: CancelResult,
    wait: Option<Pin<Box<dyn Future<Output = ()> + Send + Sync>>>,
}

impl Stopping {
    /// What the cancellation found.
    #[must_use]
    pub fn result(&self) -> CancelResult {
        self.result
    }
}

impl Future for Stopping {
    type Output = Result<CancelResult, Error>;

    /// Inside a run of the same job it answers [`Error::WouldDeadlock`]: that run
    /// would wait for its own end.
    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let core = self.job.core();
        let own = current::current()
            .filter(|current| current.scheduler == core.shared.id && current.job == core.sequence)
            .is_some_and(|current| core.state().is_active(current.run));
        if own {
            return Poll::Ready(Err(Error::WouldDeadlock));
        }
        let job = Arc::clone(&self.job);
        let wait = self.wait.get_or_insert_with(|| Box::pin(async move { idle(&job).await }));
        match wait.as_mut().poll(context) {
            Poll::Ready(()) => Poll::Ready(Ok(self.result)),
            Poll::Pending => Poll::Pending,
        }
    }
}

impl std::fmt::Debug for Stopping {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Stopping").field("result", &self.result).finish_non_exhaustive()
    }
}
