use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use beatline_core::{Error, Job, JobOutput, Misfire, Overlap, OverlapPolicy, Run, Timestamp, Trigger};

use crate::body::{AsyncBody, BlockingBody, Body, CheckBody, InlineBody, Kind, ObjectBody};
use crate::builder::validate_name;
use crate::config::{JobConfig, OverlapChoice};
use crate::contain::contain;
use crate::handle::JobHandle;
use crate::scheduler::Front;

/// A job about to be added: settings, and at the end the body.
///
/// Nothing is scheduled before one of the `run…` methods, which check everything
/// in one place.
#[must_use = "a job is not added until one of the `run…` methods is called"]
pub struct JobBuilder<S = NoState> {
    pub(crate) parts: JobParts,
    state: S,
}

/// A job whose closure takes the run alone.
#[derive(Clone, Copy, Debug)]
pub struct NoState;

/// A job whose closure takes the run and a clone of this state.
#[derive(Clone, Debug)]
pub struct WithState<S>(S);

/// Everything about a job but its body.
pub(crate) struct JobParts {
    front: Result<Arc<Front>, Error>,
    /// `None` for a nameless one-shot.
    name: Option<String>,
    trigger: Box<dyn Trigger>,
    overlap: OverlapChoice,
    max_concurrent: Option<usize>,
    misfire: Misfire,
    timeout: Option<Duration>,
    timeout_grace: Duration,
    priority: i8,
    last_due: Option<Timestamp>,
}

impl JobBuilder<NoState> {
    pub(crate) fn new(front: Result<Arc<Front>, Error>, name: Option<String>, trigger: impl Trigger) -> Self {
        let parts = JobParts {
            front,
            name,
            trigger: Box::new(trigger),
            overlap: OverlapChoice::BuiltIn(Overlap::Skip),
            max_concurrent: None,
            misfire: Misfire::default(),
            timeout: None,
            timeout_grace: Duration::ZERO,
            priority: 0,
            last_due: None,
        };
        Self { parts, state: NoState }
    }

    /// Gives every run a clone of `state` as a second argument.
    ///
    /// Without it each captured value has to be cloned by hand, once for the
    /// closure and once for every run.
    ///
    /// ```no_run
    /// # use beatline_scheduler::{Scheduler, core::{JobResult, Run, OnDemand}};
    /// # #[derive(Clone)] struct Db;
    /// # fn add(scheduler: &Scheduler, db: Db) -> Result<(), beatline_scheduler::core::Error> {
    /// async fn refresh(_run: Run, db: Db) -> JobResult {
    ///     // …
    /// #   drop(db);
    ///     Ok(())
    /// }
    ///
    /// scheduler.job("cache", OnDemand).with(db.clone()).run(refresh)?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn with<S: Clone + Send + Sync + 'static>(self, state: S) -> JobBuilder<WithState<S>> {
        JobBuilder { parts: self.parts, state: WithState(state) }
    }

    /// Adds the job with an asynchronous closure or function, which returns `()`
    /// or `Result<(), E>`.
    ///
    /// Runs are polled on the runtime's workers, off the driver.
    ///
    /// # Errors
    ///
    /// Everything that can be wrong with the job: see [`Error`].
    pub fn run<F, T>(self, f: F) -> Result<JobHandle, Error>
    where
        F: Fn(Run) -> T + Send + Sync + 'static,
        T: Future + Send + 'static,
        T::Output: JobOutput,
    {
        self.parts.add(AsyncBody(f))
    }

    /// Adds the job with an object that implements [`Job`].
    ///
    /// # Errors
    ///
    /// Everything that can be wrong with the job: see [`Error`].
    pub fn run_job<J: Job>(self, job: J) -> Result<JobHandle, Error> {
        self.parts.add(ObjectBody(Arc::new(job)))
    }

    /// Adds the job with a closure that blocks: each run is called on a thread
    /// of the runtime's blocking pool.
    ///
    /// A blocking body cannot be dropped: a time-out, a cancellation and a
    /// shutdown cancel its token and wait. Look at
    /// [`run.is_cancelled()`](Run::is_cancelled) in long loops.
    ///
    /// # Errors
    ///
    /// Everything that can be wrong with the job: see [`Error`].
    pub fn run_blocking<F, T>(self, f: F) -> Result<JobHandle, Error>
    where
        F: Fn(Run) -> T + Send + Sync + 'static,
        T: JobOutput + 'static,
    {
        self.parts.add(BlockingBody(f))
    }

    /// Adds the job with a closure that only looks: it is called on the driver
    /// itself, which is the cheapest there is and holds up every other job
    /// meanwhile. A call longer than the scheduler's budget (1 ms) is logged.
    ///
    /// # Errors
    ///
    /// Everything that can be wrong with the job: see [`Error`]. A time-out is
    /// refused, as nothing can interrupt an inline callback.
    pub fn run_inline<F, T>(self, f: F) -> Result<JobHandle, Error>
    where
        F: Fn(Run) -> T + Send + Sync + 'static,
        T: JobOutput + 'static,
    {
        self.parts.add(InlineBody(f))
    }

    /// Adds the job with a closure that looks first and goes asynchronous only
    /// if there is something to do: `None` completes the run at once, `Some`
    /// becomes the run, with overlap, time-out and statistics.
    ///
    /// The look happens on a worker, off the driver.
    ///
    /// ```no_run
    /// # use beatline_scheduler::{Scheduler, core::OnDemand};
    /// # fn is_stale() -> bool { true }
    /// # async fn reconnect() {}
    /// # fn add(scheduler: &Scheduler) -> Result<(), beatline_scheduler::core::Error> {
    /// scheduler.job("connection", OnDemand).run_check(|_run| is_stale().then(reconnect))?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// Everything that can be wrong with the job: see [`Error`].
    pub fn run_check<F, T>(self, f: F) -> Result<JobHandle, Error>
    where
        F: Fn(Run) -> Option<T> + Send + Sync + 'static,
        T: Future + Send + 'static,
        T::Output: JobOutput,
    {
        self.parts.add(CheckBody(f))
    }
}

impl<S: Clone + Send + Sync + 'static> JobBuilder<WithState<S>> {
    /// As [`JobBuilder::run`], with a clone of the state for each run.
    ///
    /// # Errors
    ///
    /// Everything that can be wrong with the job: see [`Error`].
    pub fn run<F, T>(self, f: F) -> Result<JobHandle, Error>
    where
        F: Fn(Run, S) -> T + Send + Sync + 'static,
        T: Future + Send + 'static,
        T::Output: JobOutput,
    {
        let state = self.state.0;
        self.parts.add(AsyncBody(move |run| f(run, state.clone())))
    }

    /// As [`JobBuilder::run_blocking`], with a clone of the state for each run.
    ///
    /// # Errors
    ///
    /// Everything that can be wrong with the job: see [`Error`].
    pub fn run_blocking<F, T>(self, f: F) -> Result<JobHandle, Error>
    where
        F: Fn(Run, S) -> T + Send + Sync + 'static,
        T: JobOutput + 'static,
    {
        let state = self.state.0;
        self.parts.add(BlockingBody(move |run| f(run, state.clone())))
    }

    /// As [`JobBuilder::run_inline`], with a clone of the state for each run.
    ///
    /// # Errors
    ///
    /// Everything that can be wrong with the job: see [`Error`].
    pub fn run_inline<F, T>(self, f: F) -> Result<JobHandle, Error>
    where
        F: Fn(Run, S) -> T + Send + Sync + 'static,
        T: JobOutput + 'static,
    {
        let state = self.state.0;
        self.parts.add(InlineBody(move |run| f(run, state.clone())))
    }

    /// As [`JobBuilder::run_check`], with a clone of the state for each run.
    ///
    /// # Errors
    ///
    /// Everything that can be wrong with the job: see [`Error`].
    pub fn run_check<F, T>(self, f: F) -> Result<JobHandle, Error>
    where
        F: Fn(Run, S) -> Option<T> + Send + Sync + 'static,
        T: Future + Send + 'static,
        T::Output: JobOutput,
    {
        let state = self.state.0;
        self.parts.add(CheckBody(move |run| f(run, state.clone())))
    }
}

impl<S> JobBuilder<S> {
    /// What happens to an occurrence that is due while earlier runs are active:
    /// a variant of [`Overlap`], or a policy of your own. The default is
    /// [`Overlap::Skip`].
    pub fn overlap(mut self, policy: impl OverlapPolicy) -> Self {
        self.parts.overlap = OverlapChoice::new(policy);
        self
    }

    /// How many runs may be active at once, instead of the policy's own limit
    /// (one, or 1,000 for [`Overlap::AllowAll`]).
    pub fn max_concurrent(mut self, runs: usize) -> Self {
        self.parts.max_concurrent = Some(runs);
        self
    }

    /// What happens to occurrences that were missed. The default makes up for
    /// all of them with one run and reports lateness beyond one second.
    pub fn misfire(mut self, misfire: Misfire) -> Self {
        self.parts.misfire = misfire;
        self
    }

    /// How long a run may take. Then its token is cancelled and the run is
    /// dropped at once (see [`timeout_grace`](JobBuilder::timeout_grace)); the
    /// outcome is `TimedOut`.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.parts.timeout = Some(timeout);
        self
    }

    /// How long a run whose time is up may take to end by itself before it is
    /// dropped. The default is zero.
    pub fn timeout_grace(mut self, grace: Duration) -> Self {
        self.parts.timeout_grace = grace;
        self
    }

    /// Among occurrences due at the same instant, a higher priority goes first;
    /// equal ones go in the order in which the jobs were added. The default is 0.
    pub fn priority(mut self, priority: i8) -> Self {
        self.parts.priority = priority;
        self
    }

    /// Continues a schedule of an earlier process that handled its last
    /// occurrence at this time: what became due since then was missed and goes
    /// through the misfire policy.
    ///
    /// For a fixed rate it is the anchor. For a fixed delay it counts as the end
    /// of the last run.
    pub fn last_due(mut self, last_due: Timestamp) -> Self {
        self.parts.last_due = Some(last_due);
        self
    }
}

impl JobParts {
    fn add<B: Body>(self, body: B) -> Result<JobHandle, Error> {
        let front = self.front?;
        let name = match &self.name {
            Some(name) => validate_name("name", name)?,
            None => Arc::from(""),
        };
        asked("trigger", || self.trigger.validate())??;
        let policy = self.overlap.policy();
        asked("overlap", || policy.validate())??;
        self.misfire.validate()?;
        let (policy_limit, buffer) = asked("overlap", || (policy.max_concurrent(), policy.buffer()))?;
        let max_concurrent = self.max_concurrent.unwrap_or(policy_limit);
        if max_concurrent == 0 {
            return Err(Error::invalid("max_concurrent", "is 0, so nothing could ever run; give at least 1"));
        }
        if self.timeout == Some(Duration::ZERO) {
            return Err(Error::invalid(
                "timeout",
                "is zero, so every run would time out; give a duration, or leave it",
            ));
        }
        if self.timeout.is_none() && !self.timeout_grace.is_zero() {
            return Err(Error::invalid(
                "timeout_grace",
                "is set without a `timeout` to which it could belong; set one, or leave it",
            ));
        }
        if B::KIND == Kind::Inline && self.timeout.is_some() {
            return Err(Error::invalid(
                "timeout",
                "nothing can interrupt an inline callback; leave it, or use `run` or `run_blocking`",
            ));
        }
        let config = JobConfig {
            max_concurrent,
            buffer,
            misfire: self.misfire,
            timeout: self.timeout,
            timeout_grace: self.timeout_grace,
            priority: self.priority,
            trigger: contain(|| self.trigger.describe()).unwrap_or_else(|_| "unknown".to_owned()),
            longest_gap: contain(|| self.trigger.longest_gap()).unwrap_or(None),
            overlap: self.overlap,
        };
        front.add(name, self.trigger, config, self.last_due, body)
    }
}

/// Asks a trigger or a policy of the user's about itself; a panic is an error.
fn asked<T>(field: &'static str, question: impl FnOnce() -> T) -> Result<T, Error> {
    contain(question).map_err(|message| Error::invalid(field, format!("panicked when asked about itself: {message}")))
}

impl<S> std::fmt::Debug for JobBuilder<S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("JobBuilder").field("name", &self.parts.name).finish_non_exhaustive()
    }
}
