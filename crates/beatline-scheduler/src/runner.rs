//! Runs what the driver hands off.
//!
//! ```text
//!   driver ──▶ injector ──▶ runner: gate, call, first poll ──┬─▶ ready: closed at once
//!                             (one for each worker)          └─▶ pending: a task of its own
//! ```
//!
//! # Ground rules
//!
//! * A hand-off stays in the injector, where any runner can take it, until its own
//!   poll begins: a poll that blocks holds up nothing but its own worker. Nor does
//!   a runner poll anything while a task it spawned lies in the slot that tokio
//!   lets no other worker steal from: it yields first, and the hand-off goes back.
//! * Between the gate and the end a [`Running`] answers for the run. Dropped in
//!   between, for whatever reason, it closes the books as aborted.
//! * Every call into a body, its future and the drop of that future is
//!   contained.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll, Waker};

use beatline_core::{Run, RunFacts};
use tokio::task::coop;
use tokio::time::{Sleep, sleep};

use crate::body::{Begun, BoxFuture, Kind};
use crate::contain::contain;
use crate::current;
use crate::job::JobRef;
use crate::pulse;
use crate::shared::{HandedOff, Phase, Shared, end_of};
use crate::state::End;

/// One runner: takes hand-offs until the scheduler is over.
pub(crate) async fn run(shared: Arc<Shared>) {
    loop {
        let mut spawned = false;
        while let Some(handed) = shared.take_handed_off() {
            if spawned && handed.is_polled_here() {
                // What was spawned last lies where only this worker can get at it.
                shared.put_back(handed);
                tokio::task::yield_now().await;
                spawned = false;
                continue;
            }
            // The last net: nothing known gets here, and nothing unknown may end the runner.
            match contain(|| execute(handed)) {
                Ok(Then::Next) => {}
                Ok(Then::Spawned) => spawned = true,
                Err(message) => tracing::error!(target: "beatline", message, "a panic reached the runner"),
            }
            make_room(&shared);
            if !coop::has_budget_remaining() {
                tokio::task::yield_now().await;
            }
            coop::consume_budget().await;
        }
        let mut woken = std::pin::pin!(shared.runners.notified());
        woken.as_mut().enable();
        // A hand-off between the last look and `enable` has woken nobody.
        if shared.has_handed_off() {
            continue;
        }
        if shared.phase() == Phase::Over {
            return;
        }
        woken.await;
    }
}

/// The driver holds back part of a herd until half of what it handed off is
/// taken.
fn make_room(shared: &Shared) {
    if shared.wants_room.load(Ordering::Relaxed)
        && shared.injector.len() <= crate::driver::ROOM / 2
        && shared.wants_room.swap(false, Ordering::SeqCst)
    {
        shared.driver.notify_one();
    }
}

/// What taking up a hand-off left behind.
enum Then {
    Next,
    /// A task that tokio keeps for this worker alone until it yields.
    Spawned,
}

/// Starts one run, or finds that it may not start.
fn execute(handed: HandedOff) -> Then {
    let Some((job, facts)) = handed.take() else { return Then::Next };
    match job.kind() {
        Kind::Async => return start_async(job, facts),
        Kind::Inline => call(&job, facts),
        Kind::Blocking => start_blocking(job, facts),
    }
    Then::Next
}

fn start_async(job: JobRef, facts: RunFacts) -> Then {
    let core = job.core();
    let shared = Arc::clone(&core.shared);
    let Some(run) = shared.pass_gate(&job, &facts) else { return Then::Next };
    let running = Running::new(Arc::clone(&job), facts);

    let _entered = current::enter(core.current(&facts));
    let mut future = match contain(|| job.begin(run)) {
        Ok(Begun::Pending(future)) => future,
        Ok(Begun::Done(result)) => return running.finish(end_of(Ok(result))),
        Err(message) => return running.finish(end_of(Err(message))),
    };
    // What was pending last time will be pending again: a wasted poll.
    if !core.was_pending.load(Ordering::Relaxed) {
        let ended = match contain(|| future.as_mut().poll(&mut Context::from_waker(Waker::noop()))) {
            Ok(Poll::Pending) => None,
            Ok(Poll::Ready(result)) => Some(Ok(result)),
            Err(message) => Some(Err(message)),
        };
        if let Some(ended) = ended {
            drop_contained(&running, future);
            return running.finish(end_of(ended));
        }
        core.was_pending.store(true, Ordering::Relaxed);
    }
    drop(shared.handle.spawn(RunTask::new(future, running)));
    Then::Spawned
}

/// Calls an inline body where it stands.
pub(crate) fn call(job: &JobRef, facts: RunFacts) {
    let core = job.core();
    let Some(run) = core.shared.pass_gate(job, &facts) else { return };
    let running = Running::new(Arc::clone(job), facts);
    let _entered = current::enter(core.current(&facts));
    running.finish(begin_to_end(job, run));
}

fn start_blocking(job: JobRef, facts: RunFacts) {
    let shared = Arc::clone(&job.core().shared);
    let handle = shared.handle.clone();
    // Until the pool comes to it the occurrence is still on its way.
    let handed = HandedOff::new(job, facts);
    let under_way = pulse::blocking();
    drop(handle.spawn_blocking(move || {
        let _under_way = under_way;
        let Some((job, facts)) = handed.take() else { return };
        let core = job.core();
        // The gate is passed at the body's first instruction, not before.
        let Some(run) = shared.pass_gate(&job, &facts) else { return };
        let running = Running::new(Arc::clone(&job), facts);
        let _entered = current::enter_blocking(core.current(&facts));
        let timeout = core.plan.config.timeout.map(|timeout| {
            let job = Arc::clone(&job);
            shared.handle.spawn(async move {
                sleep(timeout).await;
                time_out(&job, &facts);
            })
        });
        let end = begin_to_end(&job, run);
        if let Some(timeout) = timeout {
            timeout.abort();
        }
        running.finish(end);
    }));
}

/// A body that ends in the call itself.
fn begin_to_end(job: &JobRef, run: Run) -> End {
    match contain(|| job.begin(run)) {
        Ok(Begun::Done(result)) => end_of(Ok(result)),
        Ok(Begun::Pending(_)) => unreachable!("synchronous bodies end in the call"),
        Err(message) => end_of(Err(message)),
    }
}

fn time_out(job: &JobRef, facts: &RunFacts) {
    let token = job.core().state().time_out(facts.id);
    if let Some(token) = token {
        token.cancel();
    }
}

/// Drops a future; a panic in the `Drop` of something it owned ends here.
fn drop_contained(running: &Running, future: BoxFuture) {
    if let Err(message) = contain(|| drop(future)) {
        if let Some(job) = &running.job {
            let core = job.core();
            core.shared.drop_panicked(core, message);
        }
    }
}

/// Answers for a run that has passed its gate.
struct Running {
    job: Option<JobRef>,
    facts: RunFacts,
}

impl Running {
    fn new(job: JobRef, facts: RunFacts) -> Self {
        Self { job: Some(job), facts }
    }

    fn finish(mut self, end: End) -> Then {
        if let Some(job) = self.job.take() {
            job.core().shared.finish(&job, &self.facts, end);
        }
        Then::Next
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(job) = self.job.take() {
            job.core().shared.finish(&job, &self.facts, End::Dropped);
        }
    }
}

/// A run that was pending after its first poll: a task of its own.
struct RunTask {
    future: Option<BoxFuture>,
    running: Option<Running>,
    timer: Timer,
    polled_before: bool,
}

/// The time-out of a run.
enum Timer {
    /// It may take as long as it likes.
    None,
    /// Its time is up when this ends.
    Timeout(Pin<Box<Sleep>>),
    /// Its time is up; it is dropped when this ends.
    Grace(Pin<Box<Sleep>>),
}

impl RunTask {
    fn new(future: BoxFuture, running: Running) -> Self {
        let timeout = running.job.as_ref().and_then(|job| job.core().plan.config.timeout);
        let timer = timeout.map_or(Timer::None, |timeout| Timer::Timeout(Box::pin(sleep(timeout))));
        Self { future: Some(future), running: Some(running), timer, polled_before: false }
    }

    fn end(&mut self, end: End) -> Poll<()> {
        let Some(running) = self.running.take() else { return Poll::Ready(()) };
        if let Some(future) = self.future.take() {
            drop_contained(&running, future);
        }
        running.finish(end);
        Poll::Ready(())
    }

    /// Whether the run's time, and its grace, are over.
    fn is_out_of_time(&mut self, job: &JobRef, facts: &RunFacts, context: &mut Context<'_>) -> bool {
        if let Timer::Timeout(sleep) = &mut self.timer {
            if sleep.as_mut().poll(context).is_pending() {
                return false;
            }
            time_out(job, facts);
            let grace = job.core().plan.config.timeout_grace;
            if grace.is_zero() {
                return true;
            }
            self.timer = Timer::Grace(Box::pin(tokio::time::sleep(grace)));
        }
        match &mut self.timer {
            Timer::Grace(sleep) => sleep.as_mut().poll(context).is_ready(),
            _ => false,
        }
    }
}

impl Future for RunTask {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let this = &mut *self;
        let Some((job, facts)) = this.running.as_ref().and_then(|running| Some((running.job.clone()?, running.facts)))
        else {
            return Poll::Ready(());
        };
        let core = job.core();
        pulse::step();
        let abort = core.state().polled(facts.id, context.waker());
        if abort {
            return this.end(End::Dropped);
        }
        let _entered = current::enter(core.current(&facts));
        let Some(future) = this.future.as_mut() else { return Poll::Ready(()) };
        match contain(|| future.as_mut().poll(context)) {
            Ok(Poll::Pending) => {}
            Ok(Poll::Ready(result)) => {
                if !this.polled_before {
                    core.was_pending.store(false, Ordering::Relaxed);
                }
                return this.end(end_of(Ok(result)));
            }
            Err(message) => return this.end(end_of(Err(message))),
        }
        this.polled_before = true;
        if this.is_out_of_time(&job, &facts, context) {
            return this.end(End::Dropped);
        }
        Poll::Pending
    }
}

impl Drop for RunTask {
    fn drop(&mut self) {
        // Before the end of the runtime, or an abort from outside.
        let _ = self.end(End::Dropped);
    }
}
