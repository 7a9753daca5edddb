use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};
use std::time::Duration;

use beatline_core::{Error, JobOutput, Line, Monotonic, Once, Run, SkipReason, Timestamp, Trigger};
use tokio::runtime::Handle;
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::body::Body;
use crate::builder::SchedulerBuilder;
use crate::clock::TokioClock;
use crate::config::JobConfig;
use crate::contain::contain;
use crate::handle::JobHandle;
use crate::job::{self, JobCell, JobRef};
use crate::job_builder::JobBuilder;
use crate::monitor::Monitor;
use crate::shared::Shared;
use crate::shutdown::{self, Shutdown, ShuttingDown};
use crate::state::{Plan, Statistics};
use crate::telemetry::Telemetry;
use crate::{driver, runner};

/// Runs jobs.
///
/// It owns what it runs: dropped without [`shutdown`](Scheduler::shutdown), it
/// starts nothing more and drops the runs in flight. For everyone else there are
/// [handles](Scheduler::handle), which may be cloned.
///
/// Making one touches no runtime; the first job that is added starts the driver
/// on the tokio runtime at hand.
pub struct Scheduler {
    front: Arc<Front>,
}

/// A scheduler, for those who do not own it.
///
/// Clones are the same scheduler. It keeps nothing alive: when the scheduler is
/// gone, calls answer [`Error::Gone`], or that there is nothing. So a job may
/// keep one.
#[derive(Clone)]
pub struct SchedulerHandle {
    front: Weak<Front>,
}

/// The scheduler itself. Its engine exists from the first job on.
pub(crate) struct Front {
    builder: Mutex<Option<SchedulerBuilder>>,
    engine: OnceLock<Arc<Shared>>,
    default_shutdown: Shutdown,
    /// Set when a shutdown was asked for.
    closed: OnceLock<()>,
    asked: Notify,
}

/// How many jobs [`cancel_all`](Scheduler::cancel_all) found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct CancelledAll {
    /// Jobs that were scheduled, and are no more.
    pub jobs: u64,
    /// Runs of theirs that go on to their end.
    pub running: u64,
}

impl Default for Scheduler {
    fn default() -> Self {
        Self::new()
    }
}

impl Scheduler {
    /// A scheduler with the default settings.
    #[must_use]
    pub fn new() -> Self {
        Self::from_builder(SchedulerBuilder::new())
    }

    /// Settings: name, runtime, observers, stall monitor.
    pub fn builder() -> SchedulerBuilder {
        SchedulerBuilder::new()
    }

    pub(crate) fn from_builder(builder: SchedulerBuilder) -> Self {
        let default_shutdown = builder.shutdown;
        let front = Front {
            builder: Mutex::new(Some(builder)),
            engine: OnceLock::new(),
            default_shutdown,
            closed: OnceLock::new(),
            asked: Notify::new(),
        };
        Self { front: Arc::new(front) }
    }

    /// Begins a job: its name, unique among the jobs scheduled, and its trigger.
    pub fn job(&self, name: impl Into<String>, trigger: impl Trigger) -> JobBuilder {
        JobBuilder::new(Ok(Arc::clone(&self.front)), Some(name.into()), trigger)
    }

    /// Runs `f` once, `delay` from now, as a nameless one-shot.
    ///
    /// # Errors
    ///
    /// Those of [`JobBuilder::run`].
    pub fn after<F, T>(&self, delay: Duration, f: F) -> Result<JobHandle, Error>
    where
        F: Fn(Run) -> T + Send + Sync + 'static,
        T: Future + Send + 'static,
        T::Output: JobOutput,
    {
        JobBuilder::new(Ok(Arc::clone(&self.front)), None, Once::after(delay)).run(f)
    }

    /// Runs `f` once, at `instant`, as a nameless one-shot; at once if that has
    /// passed.
    ///
    /// # Errors
    ///
    /// Those of [`JobBuilder::run`].
    pub fn at<F, T>(&self, instant: impl Into<Instant>, f: F) -> Result<JobHandle, Error>
    where
        F: Fn(Run) -> T + Send + Sync + 'static,
        T: Future + Send + 'static,
        T::Output: JobOutput,
    {
        let at = self.front.engine()?.clock.monotonic_at(instant.into());
        JobBuilder::new(Ok(Arc::clone(&self.front)), None, At(at)).run(f)
    }

    /// The job of this name, if it is scheduled.
    #[must_use]
    pub fn find(&self, name: &str) -> Option<JobHandle> {
        self.front.find(name)
    }

    /// The named jobs, in the order they were added.
    #[must_use]
    pub fn jobs(&self) -> Vec<JobHandle> {
        self.front.jobs()
    }

    /// The books of all nameless one-shots together, those that are gone
    /// included.
    #[must_use]
    pub fn one_shots(&self) -> Statistics {
        self.front.started().map_or_else(Statistics::empty, |shared| shared.nameless_statistics())
    }

    /// Cancels every job; active runs go on to their end. Once this returns, no
    /// run of theirs starts any more. Jobs added meanwhile are not touched.
    pub fn cancel_all(&self) -> CancelledAll {
        self.front.cancel_all()
    }

    /// How many panics of observers were contained.
    #[must_use]
    pub fn observer_panics(&self) -> u64 {
        let panics = |shared: &Arc<Shared>| shared.telemetry.observer_panics.load(Ordering::Relaxed);
        self.front.started().map_or(0, panics)
    }

    /// A handle that may be cloned and kept anywhere, in jobs too.
    #[must_use]
    pub fn handle(&self) -> SchedulerHandle {
        SchedulerHandle { front: Arc::downgrade(&self.front) }
    }

    /// Ends the scheduler: triggers stop at once; active runs have until the
    /// deadline, are then asked to stop, and are dropped after a grace of a
    /// second ([`Shutdown`] sets both). A duration is the everyday form.
    ///
    /// It begins before this returns; await it for the report. Idempotent: asking
    /// again waits for the same end and can only bring it nearer. From inside a
    /// run it does not wait for that run.
    pub fn shutdown(&self, shutdown: impl Into<Shutdown>) -> ShuttingDown {
        self.front.shutdown(shutdown.into())
    }

    /// Runs until SIGINT (Ctrl-C) or SIGTERM, then shuts down as the builder's
    /// [`shutdown`](SchedulerBuilder::shutdown) says. A second signal drops
    /// everything at once. A shutdown that someone else asked for ends it too.
    ///
    /// # Errors
    ///
    /// [`Error::NoRuntime`] or [`Error::NoIoDriver`] where signals cannot be
    /// received, [`Error::Signal`] if the system refuses.
    ///
    /// # Cancel safety
    ///
    /// Dropping it stops the waiting, not the scheduler.
    #[cfg(feature = "signal")]
    pub async fn run_until_signal(&self) -> Result<shutdown::ShutdownReport, Error> {
        self.run_until_signal_or(std::future::pending::<()>()).await
    }

    /// Runs until a signal, as [`run_until_signal`](Scheduler::run_until_signal),
    /// or until `end` completes, whichever is first.
    ///
    /// # Errors
    ///
    /// Those of `run_until_signal`.
    ///
    /// # Cancel safety
    ///
    /// Dropping it stops the waiting, not the scheduler.
    #[cfg(feature = "signal")]
    pub async fn run_until_signal_or(&self, end: impl Future) -> Result<shutdown::ShutdownReport, Error> {
        let mut signals = crate::signal::Signals::new()?;
        tokio::select! {
            () = signals.next() => {}
            _ = end => {}
            () = self.front.shutdown_elsewhere() => {}
        }
        let mut shutting_down = self.shutdown(self.front.default_shutdown);
        tokio::select! {
            report = &mut shutting_down => return Ok(report),
            () = signals.next() => {}
        }
        drop(self.shutdown(Shutdown::now()));
        Ok(shutting_down.await)
    }

    /// Runs until `end` completes, then shuts down as the builder says.
    pub async fn run_until(&self, end: impl Future) -> shutdown::ShutdownReport {
        end.await;
        self.shutdown(self.front.default_shutdown).await
    }
}

impl Drop for Scheduler {
    fn drop(&mut self) {
        self.front.closed.get_or_init(|| ());
        if let Some(shared) = self.front.started() {
            shutdown::drop_scheduler(shared);
        }
    }
}

impl SchedulerHandle {
    /// Begins a job, as [`Scheduler::job`].
    pub fn job(&self, name: impl Into<String>, trigger: impl Trigger) -> JobBuilder {
        JobBuilder::new(self.front(), Some(name.into()), trigger)
    }

    /// Runs `f` once, `delay` from now, as [`Scheduler::after`].
    ///
    /// # Errors
    ///
    /// Those of [`JobBuilder::run`], and [`Error::Gone`].
    pub fn after<F, T>(&self, delay: Duration, f: F) -> Result<JobHandle, Error>
    where
        F: Fn(Run) -> T + Send + Sync + 'static,
        T: Future + Send + 'static,
        T::Output: JobOutput,
    {
        JobBuilder::new(self.front(), None, Once::after(delay)).run(f)
    }

    /// Runs `f` once, at `instant`, as [`Scheduler::at`].
    ///
    /// # Errors
    ///
    /// Those of [`JobBuilder::run`], and [`Error::Gone`].
    pub fn at<F, T>(&self, instant: impl Into<Instant>, f: F) -> Result<JobHandle, Error>
    where
        F: Fn(Run) -> T + Send + Sync + 'static,
        T: Future + Send + 'static,
        T::Output: JobOutput,
    {
        let front = self.front()?;
        let at = front.engine()?.clock.monotonic_at(instant.into());
        JobBuilder::new(Ok(front), None, At(at)).run(f)
    }

    /// The job of this name, if it is scheduled.
    #[must_use]
    pub fn find(&self, name: &str) -> Option<JobHandle> {
        self.front().ok()?.find(name)
    }

    /// The named jobs, in the order they were added.
    #[must_use]
    pub fn jobs(&self) -> Vec<JobHandle> {
        self.front().map(|front| front.jobs()).unwrap_or_default()
    }

    /// Cancels every job, as [`Scheduler::cancel_all`].
    pub fn cancel_all(&self) -> CancelledAll {
        self.front().map(|front| front.cancel_all()).unwrap_or_default()
    }

    /// Ends the scheduler, as [`Scheduler::shutdown`].
    pub fn shutdown(&self, shutdown: impl Into<Shutdown>) -> ShuttingDown {
        match self.front() {
            Ok(front) => front.shutdown(shutdown.into()),
            Err(_) => ShuttingDown::over(),
        }
    }

    /// Whether the scheduler is gone.
    #[must_use]
    pub fn is_gone(&self) -> bool {
        self.front().is_err()
    }

    fn front(&self) -> Result<Arc<Front>, Error> {
        self.front.upgrade().ok_or(Error::Gone)
    }
}

impl Front {
    /// The engine, if a job was added already.
    pub(crate) fn started(&self) -> Option<&Arc<Shared>> {
        self.engine.get()
    }

    /// The engine, started on the runtime at hand if need be.
    fn engine(&self) -> Result<&Arc<Shared>, Error> {
        if let Some(shared) = self.engine.get() {
            return Ok(shared);
        }
        let mut builder = self.builder.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(shared) = self.engine.get() {
            return Ok(shared);
        }
        if self.closed.get().is_some() {
            return Err(Error::ShuttingDown);
        }
        let given = builder.as_ref().and_then(|builder| builder.runtime.clone());
        let handle = given.or_else(|| Handle::try_current().ok()).ok_or(Error::NoRuntime)?;
        check_timer(&handle)?;
        let settings = builder.take().ok_or(Error::Gone)?;
        Ok(self.engine.get_or_init(|| start(settings, handle)))
    }

    pub(crate) fn add<B: Body>(
        &self,
        name: Arc<str>,
        trigger: Box<dyn Trigger>,
        config: JobConfig,
        last_due: Option<Timestamp>,
        body: B,
    ) -> Result<JobHandle, Error> {
        let shared = self.engine()?;
        shared.check_open()?;
        let now = shared.now();
        let registered = match last_due {
            Some(last) if last > now.wall => {
                return Err(Error::invalid(
                    "last_due",
                    format!("{last} lies ahead of now, {}; give a time that has passed", now.wall),
                ));
            }
            Some(last) => beatline_core::Moment::new(now.monotonic_at(last), last),
            None => now,
        };
        let config = shared.intern(config);
        let plan = Plan::new(trigger, registered, last_due.is_some(), config);
        let sequence = shared.next_sequence();
        let job: JobRef = Arc::new(JobCell::new(sequence, Arc::clone(&name), plan, Arc::clone(shared), body));
        if !shared.registry.insert(&job) {
            return Err(Error::DuplicateName { name: name.to_string() });
        }
        let effects = {
            let core = job.core();
            let mut state = core.state();
            state.register(&core.plan, now)
        };
        shared.telemetry.added(job.core(), now);
        shared.carry_out(&job, effects, now);
        // A scheduler that ended meanwhile has not seen this job.
        if let Err(error) = shared.check_open() {
            let _ = job::cancel(job.core(), SkipReason::Shutdown);
            return Err(error);
        }
        Ok(JobHandle::new(job))
    }

    /// Waits for a shutdown that someone else asks for.
    #[cfg(feature = "signal")]
    async fn shutdown_elsewhere(&self) {
        loop {
            let mut asked = std::pin::pin!(self.asked.notified());
            asked.as_mut().enable();
            if self.closed.get().is_some() {
                return;
            }
            asked.await;
        }
    }

    fn find(&self, name: &str) -> Option<JobHandle> {
        self.started()?.registry.find(name).map(JobHandle::new)
    }

    fn jobs(&self) -> Vec<JobHandle> {
        let jobs = self.started().map(|shared| shared.registry.named()).unwrap_or_default();
        jobs.into_iter().map(JobHandle::new).collect()
    }

    fn cancel_all(&self) -> CancelledAll {
        let mut found = CancelledAll::default();
        let Some(shared) = self.started() else { return found };
        for job in shared.registry.all() {
            if let Some(running) = job::cancel(job.core(), SkipReason::Removed) {
                found.jobs += 1;
                found.running += running;
            }
        }
        found
    }

    fn shutdown(&self, shutdown: Shutdown) -> ShuttingDown {
        // Under the builder's lock, so that no first job starts an engine beside it.
        let builder = self.builder.lock().unwrap_or_else(PoisonError::into_inner);
        self.closed.get_or_init(|| ());
        drop(builder);
        self.asked.notify_waiters();
        match self.engine.get() {
            Some(shared) => shutdown::ask(shared, shutdown),
            None => ShuttingDown::over(),
        }
    }
}

/// tokio panics where it lacks a timer, and has no other way to ask.
fn check_timer(handle: &Handle) -> Result<(), Error> {
    let _inside = handle.enter();
    let probe = AssertUnwindSafe(|| drop(tokio::time::sleep(Duration::ZERO)));
    contain(probe.0).map_err(|_| Error::NoTimeDriver)
}

fn start(settings: SchedulerBuilder, handle: Handle) -> Arc<Shared> {
    let clock = TokioClock::start(&handle, settings.wall_anchor);
    let telemetry = Telemetry {
        scheduler: settings.name.into(),
        observers: settings.observers,
        quiet: settings.quiet,
        observer_panics: AtomicU64::new(0),
        stalls: AtomicU64::new(0),
    };
    let monitor = Monitor::new(settings.stall_threshold);
    let shared = Arc::new(Shared::new(handle.clone(), clock, telemetry, monitor, settings.inline_budget));
    Monitor::start(&shared);
    for _ in 0..shared.runner_count {
        drop(handle.spawn(runner::run(Arc::clone(&shared))));
    }
    drop(handle.spawn(driver::run(Arc::clone(&shared))));
    shared
}

/// A point of the monotonic clock, for `at`.
struct At(Monotonic);

impl Trigger for At {
    fn next(&self, context: &beatline_core::TriggerContext) -> beatline_core::Next {
        match context.previous_due {
            None => beatline_core::Next::At(self.0),
            Some(_) => beatline_core::Next::Never,
        }
    }

    fn line(&self) -> Line {
        Line::Monotonic
    }

    fn describe(&self) -> String {
        "once at an instant".to_owned()
    }
}

impl std::fmt::Debug for Scheduler {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Scheduler").field("engine", &self.front.started()).finish_non_exhaustive()
    }
}

impl std::fmt::Debug for SchedulerHandle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SchedulerHandle").field("is_gone", &self.is_gone()).finish()
    }
}
