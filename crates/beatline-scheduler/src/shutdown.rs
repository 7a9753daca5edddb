//! The end of a scheduler.
//!
//! ```text
//!   triggers off ─▶ runs go on to the deadline ─▶ asked to stop ─▶ dropped after the grace ─▶ report
//!                   (what waits is dropped, or drained)
//! ```
//!
//! # Ground rules
//!
//! The phases are walked by the driver alone. Anyone may ask; asking again can
//! only bring the end nearer. A run that itself waits for the shutdown is waited
//! for by nobody.

use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use beatline_core::{Cause, Moment, Monotonic, Outcome, SkipReason};
use futures::channel::oneshot;

use crate::current;
use crate::job::{self, JobRef};
use crate::shared::{Phase, Shared};
use crate::state::Effects;

/// After the abort, how long a poll that does not return is waited for.
const LAST_WAIT: Duration = Duration::from_secs(1);

/// How a scheduler shall end.
///
/// ```
/// use beatline_scheduler::Shutdown;
/// use std::time::Duration;
///
/// let gentle = Shutdown::within(Duration::from_secs(20)).grace(Duration::from_secs(5)).drain_buffers();
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shutdown {
    deadline: Duration,
    grace: Duration,
    drain_buffers: bool,
}

impl Shutdown {
    /// Active runs have until `deadline` to end by themselves; then they are
    /// asked to stop, and dropped one second later.
    #[must_use]
    pub const fn within(deadline: Duration) -> Self {
        Self { deadline, grace: Duration::from_secs(1), drain_buffers: false }
    }

    /// Active runs are dropped at once.
    #[must_use]
    pub const fn now() -> Self {
        Self { deadline: Duration::ZERO, grace: Duration::ZERO, drain_buffers: false }
    }

    /// How long runs that were asked to stop may take to do so.
    #[must_use]
    pub const fn grace(mut self, grace: Duration) -> Self {
        self.grace = grace;
        self
    }

    /// Occurrences that already wait for an earlier run still run, as far as the
    /// deadline allows. Without this they are `Skipped{Shutdown}`.
    #[must_use]
    pub const fn drain_buffers(mut self) -> Self {
        self.drain_buffers = true;
        self
    }
}

impl Default for Shutdown {
    /// 20 seconds, and 5 more after the request to stop: within the 30 seconds
    /// that orchestrators allow a process.
    fn default() -> Self {
        Self::within(Duration::from_secs(20)).grace(Duration::from_secs(5))
    }
}

impl From<Duration> for Shutdown {
    fn from(deadline: Duration) -> Self {
        Self::within(deadline)
    }
}

/// What a shutdown came to. Counts are of runs and occurrences that ended during
/// it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ShutdownReport {
    /// Runs that ended by themselves, well or badly, unasked.
    pub completed: u64,
    /// Runs that stopped when asked to.
    pub cancelled: u64,
    /// Runs that were dropped.
    pub aborted: u64,
    /// Occurrences that had been accepted or waiting and did not start.
    pub skipped: u64,
    /// Runs that could not be stopped, by job: blocking bodies, polls that do
    /// not return, and runs that waited for this shutdown themselves.
    pub still_running: Vec<StillRunning>,
    /// How long it took.
    pub took: Duration,
}

/// A job with runs that could not be stopped.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct StillRunning {
    /// The job's name; empty for a nameless one-shot.
    pub job: Arc<str>,
    /// How many.
    pub runs: u64,
}

#[derive(Default)]
pub(crate) struct ShutdownState {
    asked: AtomicBool,
    ended: [AtomicU64; Outcome::LABELS.len()],
    skipped: AtomicU64,
    /// Runs that wait for the shutdown themselves.
    inside: AtomicUsize,
    progress: Mutex<Progress>,
}

#[derive(Default)]
struct Progress {
    began: Option<Moment>,
    stop_at: Option<Monotonic>,
    grace: Duration,
    stage: Stage,
    report: Option<Arc<ShutdownReport>>,
    waiters: Vec<oneshot::Sender<Arc<ShutdownReport>>>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
enum Stage {
    #[default]
    Asked,
    Draining,
    Stopping {
        abort_at: Monotonic,
    },
    Aborting {
        give_up_at: Monotonic,
    },
}

impl ShutdownState {
    fn progress(&self) -> MutexGuard<'_, Progress> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn was_asked(&self) -> bool {
        self.asked.load(Ordering::SeqCst)
    }

    pub(crate) fn count_ended(&self, phase: Phase, outcome: Outcome) {
        if phase > Phase::Running {
            self.ended[outcome.index()].fetch_add(1, Ordering::Relaxed);
        }
    }

    pub(crate) fn count_skipped(&self, phase: Phase, count: u64) {
        if phase > Phase::Running {
            self.skipped.fetch_add(count, Ordering::Relaxed);
        }
    }

    /// A run that waited for the shutdown has ended.
    pub(crate) fn leave(&self) {
        self.inside.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Asks for the end. It begins before this returns.
pub(crate) fn ask(shared: &Arc<Shared>, shutdown: Shutdown) -> ShuttingDown {
    let now = shared.now();
    let (sender, receiver) = oneshot::channel();
    let first = !shared.shutdown.asked.swap(true, Ordering::SeqCst);
    if first && shutdown.drain_buffers {
        shared.drains_buffers.store(true, Ordering::SeqCst);
    }
    shared.enter_phase(Phase::Draining);
    {
        let mut progress = shared.shutdown.progress();
        progress.began.get_or_insert(now);
        let stop_at = now.monotonic.saturating_add(shutdown.deadline);
        progress.stop_at = Some(progress.stop_at.map_or(stop_at, |known| known.min(stop_at)));
        progress.grace = if first { shutdown.grace } else { progress.grace.min(shutdown.grace) };
        let abort_at = stop_at.saturating_add(shutdown.grace);
        if let Stage::Stopping { abort_at: known } = &mut progress.stage {
            *known = (*known).min(abort_at);
        }
        match &progress.report {
            Some(report) => drop(sender.send(Arc::clone(report))),
            None => progress.waiters.push(sender),
        }
    }
    if first {
        shared.telemetry.shutting_down(now);
    }
    if shared.phase() == Phase::Over {
        conclude(shared); // the runtime went away before
    }
    shared.driver.notify_one();
    ShuttingDown { shared: Some(Arc::clone(shared)), receiver: Some(receiver), marked: false }
}

/// One look at the end: what to do next, and when to look again; `None` when all
/// is over.
pub(crate) fn advance(shared: &Arc<Shared>, now: Moment) -> Option<Monotonic> {
    loop {
        let left = shared.active().saturating_sub(shared.shutdown.inside.load(Ordering::SeqCst));
        let stage = shared.shutdown.progress().stage;
        if stage != Stage::Asked && left == 0 {
            return None;
        }
        match stage {
            Stage::Asked => {
                if !shared.drains_buffers.load(Ordering::SeqCst) {
                    for job in shared.registry.all() {
                        empty_buffer(shared, &job, now);
                    }
                }
                shared.shutdown.progress().stage = Stage::Draining;
            }
            Stage::Draining => {
                let (stop_at, grace) = {
                    let progress = shared.shutdown.progress();
                    (progress.stop_at.unwrap_or(now.monotonic), progress.grace)
                };
                if now.monotonic < stop_at {
                    return Some(stop_at);
                }
                shared.enter_phase(Phase::Stopping);
                for job in shared.registry.all() {
                    empty_buffer(shared, &job, now);
                    let tokens = job.core().state().ask_to_stop(Cause::Shutdown);
                    tokens.iter().for_each(beatline_core::CancellationToken::cancel);
                }
                shared.shutdown.progress().stage = Stage::Stopping { abort_at: now.monotonic.saturating_add(grace) };
            }
            Stage::Stopping { abort_at } => {
                if now.monotonic < abort_at {
                    return Some(abort_at);
                }
                abort_all(shared);
                let give_up_at = now.monotonic.saturating_add(LAST_WAIT);
                shared.shutdown.progress().stage = Stage::Aborting { give_up_at };
            }
            Stage::Aborting { give_up_at } => {
                let unstoppable: u64 = shared.registry.all().iter().map(|job| job.core().state().blocking()).sum();
                if left as u64 <= unstoppable || now.monotonic >= give_up_at {
                    return None;
                }
                return Some(give_up_at);
            }
        }
    }
}

fn empty_buffer(shared: &Shared, job: &JobRef, now: Moment) {
    let core = job.core();
    let mut effects = Effects::default();
    core.state().empty_buffer(SkipReason::Shutdown, &mut effects);
    shared.tell(core, effects, now);
}

fn abort_all(shared: &Shared) {
    for job in shared.registry.all() {
        let wakers = job.core().state().abort(Cause::Shutdown);
        wakers.into_iter().for_each(std::task::Waker::wake);
    }
}

/// Nothing starts any more and nobody looks: close the books and tell.
pub(crate) fn conclude(shared: &Shared) {
    let jobs = shared.registry.all();
    let mut still_running = Vec::new();
    for job in &jobs {
        let core = job.core();
        let running = core.statistics().running;
        if running > 0 {
            still_running.push(StillRunning { job: Arc::clone(&core.name), runs: running });
        }
        let _ = job::cancel(core, SkipReason::Shutdown);
    }
    shared.registry.clear();
    if !shared.shutdown.was_asked() {
        return;
    }
    still_running.sort_by(|a, b| a.job.cmp(&b.job));
    let state = &shared.shutdown;
    let ended = |outcome: Outcome| state.ended[outcome.index()].load(Ordering::Relaxed);
    let now = shared.now();
    let mut progress = state.progress();
    let took = progress.began.map_or(Duration::ZERO, |began| now.monotonic.saturating_since(began.monotonic));
    let report = ShutdownReport {
        completed: ended(Outcome::Completed)
            + ended(Outcome::Failed)
            + ended(Outcome::Panicked)
            + ended(Outcome::TimedOut),
        cancelled: ended(Outcome::Cancelled(Cause::Shutdown)),
        aborted: ended(Outcome::Aborted(Cause::Shutdown)),
        skipped: state.skipped.load(Ordering::Relaxed),
        still_running,
        took,
    };
    let report = Arc::clone(progress.report.get_or_insert_with(|| Arc::new(report)));
    let waiters = std::mem::take(&mut progress.waiters);
    drop(progress);
    for waiter in waiters {
        let _ = waiter.send(Arc::clone(&report));
    }
}

/// The scheduler was dropped: nothing starts from now on, runs are aborted, and
/// nobody waits for them.
pub(crate) fn drop_scheduler(shared: &Arc<Shared>) {
    let running = shared.phase() == Phase::Running;
    shared.enter_phase(Phase::Over);
    let jobs = shared.registry.all();
    if running && !jobs.is_empty() {
        shared.telemetry.dropped(jobs.len(), shared.active());
    }
    for job in &jobs {
        let _ = job::cancel(job.core(), SkipReason::Shutdown);
        let tokens = job.core().state().ask_to_stop(Cause::Shutdown);
        tokens.iter().for_each(beatline_core::CancellationToken::cancel);
        let wakers = job.core().state().abort(Cause::Shutdown);
        wakers.into_iter().for_each(std::task::Waker::wake);
    }
    shared.driver.notify_one();
    shared.runners.notify_waiters();
    shared.monitor.stop();
}

/// A shutdown under way; awaited, it gives the report.
///
/// The shutdown goes on whether or not this is awaited. Awaited from inside a
/// run, that run is not waited for.
///
/// # Cancel safety
///
/// Dropping it stops nothing; ask again to wait for the same shutdown.
#[derive(Debug)]
#[must_use = "the shutdown goes on by itself, but only awaiting it tells when it is over"]
pub struct ShuttingDown {
    shared: Option<Arc<Shared>>,
    receiver: Option<oneshot::Receiver<Arc<ShutdownReport>>>,
    marked: bool,
}

impl ShuttingDown {
    /// The end of a scheduler that never ran anything, or is gone.
    pub(crate) fn over() -> Self {
        Self { shared: None, receiver: None, marked: false }
    }

    /// Tells the driver not to wait for the run that is awaiting this.
    fn mark(&mut self) {
        let Some(shared) = self.shared.as_ref().filter(|_| !self.marked) else { return };
        self.marked = true;
        let Some(current) = current::current().filter(|current| current.scheduler == shared.id) else { return };
        let Some(job) = shared.registry.find_by_sequence(current.job) else { return };
        let entered = job.core().state().enter_shutdown(current.run);
        if entered {
            shared.shutdown.inside.fetch_add(1, Ordering::SeqCst);
            shared.driver.notify_one();
        }
    }
}

impl Future for ShuttingDown {
    type Output = ShutdownReport;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<ShutdownReport> {
        let this = &mut *self;
        this.mark();
        let Some(receiver) = &mut this.receiver else { return Poll::Ready(ShutdownReport::default()) };
        match Pin::new(receiver).poll(context) {
            Poll::Pending => Poll::Pending,
            Poll::Ready(report) => {
                this.receiver = None;
                Poll::Ready(report.map(|report| (*report).clone()).unwrap_or_default())
            }
        }
    }
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shared").field("id", &self.id).field("phase", &self.phase()).finish_non_exhaustive()
    }
}
