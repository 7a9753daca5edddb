//! One execution of a job, as the job sees it.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::{CancellationToken, Cancelled, Due, Moment, Monotonic, Timestamp};

/// One execution of a job for one occurrence: what it was due for, how late it
/// is, and whether it should stop.
///
/// Each run gets its own by value. It is cheap to clone and to send.
///
/// ```
/// use beatline_core::{JobResult, Run};
///
/// async fn fetch(run: Run) -> JobResult {
///     println!("{} due {} ({:?} late)", run.job(), run.due(), run.lateness());
///     if run.coalesced() > 0 {
///         println!("also stands for {} missed before it", run.coalesced());
///     }
///     Ok(())
/// }
/// ```
#[derive(Clone)]
pub struct Run {
    control: Arc<dyn RunControl>,
    facts: RunFacts,
}

/// What is known of a run when it starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunFacts {
    /// Which run of this job it is.
    pub id: RunId,
    /// The nominal due instant, on the trigger's line.
    pub due: Due,
    /// Both clocks when the scheduler decided on the occurrence.
    pub decided: Moment,
    /// How late the scheduler came to the occurrence, waiting for earlier runs
    /// not included.
    pub lateness: Duration,
    /// What asked for the run.
    pub origin: Origin,
    /// How many missed occurrences this run stands for, besides its own.
    pub coalesced: u64,
    /// The earliest of them.
    pub missed_since: Option<Due>,
    /// Which attempt at the occurrence this is, from 1.
    pub attempt: u32,
}

/// Which run of its job a run is, counted from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RunId(pub u64);

impl fmt::Display for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// What asked for a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Origin {
    /// The job's trigger.
    Trigger,
    /// A call of `run_now`.
    RunNow,
}

impl Run {
    /// A run under the control of a scheduler; schedulers make them.
    #[must_use]
    pub fn new(control: Arc<dyn RunControl>, facts: RunFacts) -> Self {
        Self { control, facts }
    }

    /// A run that belongs to no scheduler, due now, for calling a job's body in
    /// a unit test.
    #[must_use]
    pub fn detached(job: &str) -> Self {
        let wall = Timestamp::from(std::time::SystemTime::now());
        let facts = RunFacts {
            id: RunId(1),
            due: Due::Wall(wall),
            decided: Moment::new(Monotonic::ORIGIN, wall),
            lateness: Duration::ZERO,
            origin: Origin::RunNow,
            coalesced: 0,
            missed_since: None,
            attempt: 1,
        };
        Self::new(Arc::new(Detached { job: job.to_owned(), token: CancellationToken::new() }), facts)
    }

    /// The name of the job; empty for a nameless one-shot.
    #[must_use]
    pub fn job(&self) -> &str {
        self.control.job()
    }

    /// Which run of the job this is.
    #[must_use]
    pub fn id(&self) -> RunId {
        self.facts.id
    }

    /// The nominal due instant, by the wall clock. For a job on the monotonic
    /// line it is what the wall clock showed, or would have shown, then, as
    /// seen from the moment of the decision about it.
    #[must_use]
    pub fn due(&self) -> Timestamp {
        self.wall(self.facts.due)
    }

    /// How late the scheduler came to the occurrence. Waiting for an earlier
    /// run of the same job is not part of it.
    #[must_use]
    pub fn lateness(&self) -> Duration {
        self.facts.lateness
    }

    /// What asked for this run.
    #[must_use]
    pub fn origin(&self) -> Origin {
        self.facts.origin
    }

    /// How many missed occurrences this run stands for, besides its own.
    #[must_use]
    pub fn coalesced(&self) -> u64 {
        self.facts.coalesced
    }

    /// The earliest missed occurrence this run stands for.
    #[must_use]
    pub fn missed_since(&self) -> Option<Timestamp> {
        self.facts.missed_since.map(|due| self.wall(due))
    }

    /// Which attempt at the occurrence this is, from 1.
    #[must_use]
    pub fn attempt(&self) -> u32 {
        self.facts.attempt
    }

    /// All of the above as plain data.
    #[must_use]
    pub fn facts(&self) -> &RunFacts {
        &self.facts
    }

    /// Whether this run was asked to stop.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.control.is_cancelled(self.facts.id)
    }

    /// Waits until this run is asked to stop; for `select!` beside the work.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future and asking again loses nothing.
    pub fn cancelled(&self) -> Cancelled {
        self.cancellation().cancelled()
    }

    /// This run's token, to hand on to whatever the run calls.
    #[must_use]
    pub fn cancellation(&self) -> CancellationToken {
        self.control.token(self.facts.id)
    }

    /// Cancels the job this run belongs to: no further run starts. This run
    /// goes on to its end. Idempotent; never blocks.
    pub fn cancel_job(&self) {
        self.control.cancel_job();
    }

    fn wall(&self, due: Due) -> Timestamp {
        match due {
            Due::Wall(wall) => wall,
            Due::Monotonic(monotonic) => self.facts.decided.wall_at(monotonic),
        }
    }
}

impl fmt::Debug for Run {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Run").field("job", &self.job()).field("facts", &self.facts).finish()
    }
}

/// What a run can ask of the scheduler that started it. Implemented by
/// schedulers; called from the run, on any thread; never blocks.
pub trait RunControl: Send + Sync {
    /// The job's name.
    fn job(&self) -> &str;
    /// Whether this run was asked to stop.
    fn is_cancelled(&self, run: RunId) -> bool;
    /// The run's token, made on first use; cancelled already if the run has
    /// ended or was asked to stop.
    fn token(&self, run: RunId) -> CancellationToken;
    /// Cancels the job; active runs finish.
    fn cancel_job(&self);
}

struct Detached {
    job: String,
    token: CancellationToken,
}

impl RunControl for Detached {
    fn job(&self) -> &str {
        &self.job
    }

    fn is_cancelled(&self, _run: RunId) -> bool {
        self.token.is_cancelled()
    }

    fn token(&self, _run: RunId) -> CancellationToken {
        self.token.clone()
    }

    fn cancel_job(&self) {
        self.token.cancel();
    }
}
