//! What the driver, the runners, the monitor and all handles of one running
//! scheduler share, and how effects are carried out.
//!
//! # Ground rules
//!
//! * `phase` only moves forward. Whoever reads it before a gate and finds it
//!   past `Running` refuses the run; it is set before `shutdown` and `Drop` do
//!   anything else, so nothing starts after they returned.
//! * `active` counts accepted occurrences that have not got their fate. It is
//!   raised before a hand-off and lowered after the end was recorded: zero means
//!   that nothing is left.
//! * Commands and hand-offs may come from any thread; only the driver takes
//!   commands out, only runners take hand-offs.

use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use beatline_core::{Callback, Clock, Error, Line, Moment, Run, RunFacts, SharedError, SkipReason, Stalled};
use crossbeam_deque::{Injector, Steal};
use tokio::runtime::Handle;
use tokio::sync::Notify;

use crate::body::Kind;
use crate::clock::TokioClock;
use crate::config::JobConfig;
use crate::contain::discard;
use crate::job::{JobCore, JobRef};
use crate::monitor::Monitor;
use crate::pulse;
use crate::registry::Registry;
use crate::shutdown::ShutdownState;
use crate::state::{Effects, End, Gate, Statistics};
use crate::telemetry::Telemetry;

/// Schedulers of this process, so that a thread-local mark names one.
static NEXT_SCHEDULER: AtomicU64 = AtomicU64::new(1);

/// Where a scheduler stands in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub(crate) enum Phase {
    Running = 0,
    /// Triggers are off; active and perhaps waiting runs go on.
    Draining = 1,
    /// Nothing starts any more.
    Stopping = 2,
    /// Everything has ended, or the runtime has.
    Over = 3,
}

impl Phase {
    fn from_u8(value: u8) -> Self {
        match value {
            0 => Phase::Running,
            1 => Phase::Draining,
            2 => Phase::Stopping,
            _ => Phase::Over,
        }
    }
}

/// What handles ask of the driver.
pub(crate) enum Command {
    /// Put an entry for this job into the timer.
    Arm(JobRef, i64),
    /// This job's entry has lost its meaning.
    Disarm { line: Line, deadline: i64, sequence: u64 },
}

/// An occurrence on its way to a worker. Dropped on the way, it is refused.
pub(crate) struct HandedOff {
    job: Option<JobRef>,
    pub(crate) facts: RunFacts,
}

impl HandedOff {
    pub(crate) fn new(job: JobRef, facts: RunFacts) -> Self {
        Self { job: Some(job), facts }
    }

    /// Whether taking it up means to poll or call its body here and now.
    pub(crate) fn is_polled_here(&self) -> bool {
        self.job.as_ref().is_some_and(|job| match job.kind() {
            Kind::Async => !job.core().was_pending.load(Ordering::Relaxed),
            Kind::Inline => true,
            Kind::Blocking => false,
        })
    }

    /// The job, taken out: from here on someone else answers for the occurrence.
    pub(crate) fn take(mut self) -> Option<(JobRef, RunFacts)> {
        self.job.take().map(|job| (job, self.facts))
    }
}

impl Drop for HandedOff {
    fn drop(&mut self) {
        if let Some(job) = self.job.take() {
            let core = job.core();
            core.shared.refuse(&job, &self.facts, SkipReason::Shutdown);
        }
    }
}

pub(crate) struct Shared {
    pub(crate) id: u64,
    pub(crate) handle: Handle,
    pub(crate) clock: TokioClock,
    pub(crate) telemetry: Telemetry,
    pub(crate) registry: Registry,
    pub(crate) monitor: Monitor,
    pub(crate) shutdown: ShutdownState,
    pub(crate) inline_budget: std::time::Duration,
    /// Wakes the driver.
    pub(crate) driver: Notify,
    /// Wakes runners, one for each permit.
    pub(crate) runners: Notify,
    pub(crate) runner_count: usize,
    pub(crate) injector: Injector<HandedOff>,
    /// Taken out of the injector and put back, to be taken first.
    returned: Mutex<Vec<HandedOff>>,
    returned_count: AtomicUsize,
    /// The driver waits for room in the injector.
    pub(crate) wants_room: AtomicBool,
    phase: AtomicU8,
    pub(crate) drains_buffers: AtomicBool,
    active: AtomicUsize,
    sequence: AtomicU64,
    commands: Mutex<Vec<Command>>,
    last_config: Mutex<Option<Arc<JobConfig>>>,
    /// The books of nameless jobs that are gone.
    nameless: Mutex<Statistics>,
}

impl Shared {
    pub(crate) fn new(
        handle: Handle,
        clock: TokioClock,
        telemetry: Telemetry,
        monitor: Monitor,
        inline_budget: std::time::Duration,
    ) -> Self {
        let runner_count = handle.metrics().num_workers();
        Self {
            id: NEXT_SCHEDULER.fetch_add(1, Ordering::Relaxed),
            handle,
            clock,
            telemetry,
            registry: Registry::new(),
            monitor,
            shutdown: ShutdownState::default(),
            inline_budget,
            driver: Notify::new(),
            runners: Notify::new(),
            runner_count,
            injector: Injector::new(),
            returned: Mutex::new(Vec::new()),
            returned_count: AtomicUsize::new(0),
            wants_room: AtomicBool::new(false),
            phase: AtomicU8::new(Phase::Running as u8),
            drains_buffers: AtomicBool::new(false),
            active: AtomicUsize::new(0),
            sequence: AtomicU64::new(1),
            commands: Mutex::new(Vec::new()),
            last_config: Mutex::new(None),
            nameless: Mutex::new(Statistics::empty()),
        }
    }

    pub(crate) fn now(&self) -> Moment {
        self.clock.now()
    }

    pub(crate) fn phase(&self) -> Phase {
        Phase::from_u8(self.phase.load(Ordering::SeqCst))
    }

    /// Moves the phase forward; never back.
    pub(crate) fn enter_phase(&self, phase: Phase) {
        self.phase.fetch_max(phase as u8, Ordering::SeqCst);
    }

    pub(crate) fn check_open(&self) -> Result<(), Error> {
        match self.phase() {
            Phase::Running => Ok(()),
            Phase::Draining | Phase::Stopping => Err(Error::ShuttingDown),
            Phase::Over if self.shutdown.was_asked() => Err(Error::ShuttingDown),
            Phase::Over => Err(Error::Gone),
        }
    }

    pub(crate) fn active(&self) -> usize {
        self.active.load(Ordering::SeqCst)
    }

    pub(crate) fn next_sequence(&self) -> u64 {
        self.sequence.fetch_add(1, Ordering::Relaxed)
    }

    /// One object for equal settings; most jobs of a service are alike.
    pub(crate) fn intern(&self, config: JobConfig) -> Arc<JobConfig> {
        let mut last = self.last_config.lock().unwrap_or_else(PoisonError::into_inner);
        match &*last {
            Some(known) if known.is_same(&config) => Arc::clone(known),
            _ => Arc::clone(last.insert(Arc::new(config))),
        }
    }

    // ----- commands -------------------------------------------------------

    pub(crate) fn command(&self, command: Command) {
        let mut commands = self.commands.lock().unwrap_or_else(PoisonError::into_inner);
        if self.phase() == Phase::Over {
            return; // nobody will take it out
        }
        commands.push(command);
        let first = commands.len() == 1;
        drop(commands);
        if first {
            self.driver.notify_one();
        }
    }

    pub(crate) fn take_commands(&self) -> Vec<Command> {
        std::mem::take(&mut *self.commands.lock().unwrap_or_else(PoisonError::into_inner))
    }

    // ----- the path of a run ----------------------------------------------

    /// Carries out what a step of `job` wants done. No lock is held.
    pub(crate) fn carry_out(&self, job: &JobRef, effects: Effects, now: Moment) {
        let core = job.core();
        if let Some(deadline) = effects.arm {
            self.command(Command::Arm(Arc::clone(job), deadline));
        }
        if let Some(facts) = effects.hand_off {
            self.hand_off(job, facts);
            self.wake_runners(1);
            self.monitor.expect(now.monotonic);
        }
        self.tell(core, effects, now);
    }

    /// The part of the effects that needs no reference to the job.
    pub(crate) fn tell(&self, core: &JobCore, effects: Effects, now: Moment) {
        pulse::step();
        if let Some(decided) = effects.decided {
            self.telemetry.decided(core, decided, now);
        }
        if let Some(decided) = effects.requested {
            self.telemetry.decided(core, decided, now);
        }
        if let Some((reason, count)) = effects.withdrawn {
            self.shutdown.count_skipped(self.phase(), count);
            self.telemetry.withdrawn(core, reason, count, now);
        }
        if let Some(message) = effects.policy_panic {
            self.telemetry.callback_panicked(core, Callback::OverlapPolicy, message, now);
        }
        if let Some(reason) = effects.fault {
            self.telemetry.faulted(core, reason, now);
        }
        if effects.exhausted {
            self.telemetry.exhausted(core, now);
        }
        if effects.retired {
            self.retire(core);
        }
        for (sender, ended) in effects.answers {
            discard(sender.send(ended)); // whoever waited may have gone
        }
        if effects.replaced_error.is_some() {
            discard(effects.replaced_error);
        }
    }

    fn retire(&self, core: &JobCore) {
        if core.is_nameless() {
            let statistics = core.statistics();
            self.nameless.lock().unwrap_or_else(PoisonError::into_inner).add(&statistics);
        }
        self.registry.remove(core);
    }

    /// The books of all nameless jobs, those that are gone included.
    pub(crate) fn nameless_statistics(&self) -> Statistics {
        let mut sum = self.nameless.lock().unwrap_or_else(PoisonError::into_inner).clone();
        for job in self.registry.all().iter().filter(|job| job.core().is_nameless()) {
            sum.add(&job.core().statistics());
        }
        sum
    }

    /// Puts an accepted occurrence on its way; the caller wakes runners.
    pub(crate) fn hand_off(&self, job: &JobRef, facts: RunFacts) {
        self.active.fetch_add(1, Ordering::SeqCst);
        self.injector.push(HandedOff::new(Arc::clone(job), facts));
    }

    /// Raises the count for an occurrence that the driver runs itself.
    pub(crate) fn count_active(&self) {
        self.active.fetch_add(1, Ordering::SeqCst);
    }

    pub(crate) fn wake_runners(&self, items: usize) {
        for _ in 0..items.min(self.runner_count) {
            self.runners.notify_one();
        }
    }

    /// Puts a hand-off back, for whichever runner comes first.
    pub(crate) fn put_back(&self, handed: HandedOff) {
        self.returned.lock().unwrap_or_else(PoisonError::into_inner).push(handed);
        self.returned_count.fetch_add(1, Ordering::SeqCst);
        self.wake_runners(1);
    }

    pub(crate) fn has_handed_off(&self) -> bool {
        !self.injector.is_empty() || self.returned_count.load(Ordering::SeqCst) > 0
    }

    pub(crate) fn take_handed_off(&self) -> Option<HandedOff> {
        if self.returned_count.load(Ordering::SeqCst) > 0 {
            let returned = self.returned.lock().unwrap_or_else(PoisonError::into_inner).pop();
            if returned.is_some() {
                self.returned_count.fetch_sub(1, Ordering::SeqCst);
                return returned;
            }
        }
        loop {
            match self.injector.steal() {
                Steal::Success(handed) => return Some(handed),
                Steal::Empty => return None,
                Steal::Retry => {}
            }
        }
    }

    /// Why no run may start any more, if so.
    fn refusal(&self) -> Option<SkipReason> {
        match self.phase() {
            Phase::Running => None,
            Phase::Draining if self.drains_buffers.load(Ordering::SeqCst) => None,
            _ => Some(SkipReason::Shutdown),
        }
    }

    /// The one step from accepted to started. `None` if the run was refused.
    pub(crate) fn pass_gate(&self, job: &JobRef, facts: &RunFacts) -> Option<Run> {
        let core = job.core();
        let now = self.now();
        let blocking = job.kind() != Kind::Async;
        let gate = {
            let mut state = core.state();
            // Read under the lock: a shutdown that returns afterwards sees the run.
            state.gate(&core.plan, facts, self.refusal(), blocking, now)
        };
        match gate {
            Gate::Passed { fell_behind, caught_up } => {
                self.telemetry.started(core, facts, now);
                if let Some(by) = fell_behind {
                    self.telemetry.fell_behind(core, by, now);
                }
                if caught_up {
                    self.telemetry.caught_up(core, now);
                }
                Some(Run::new(Arc::clone(job).control(), *facts))
            }
            Gate::Refused(effects) => {
                self.refused(job, *effects, now);
                None
            }
        }
    }

    /// An accepted occurrence will not start.
    pub(crate) fn refuse(&self, job: &JobRef, facts: &RunFacts, reason: SkipReason) {
        let core = job.core();
        let now = self.now();
        let effects = core.state().refuse(&core.plan, facts, reason, now);
        self.refused(job, effects, now);
    }

    fn refused(&self, job: &JobRef, effects: Effects, now: Moment) {
        self.carry_out(job, effects, now);
        self.lower_active();
    }

    /// A run ended; its books are closed and whatever waited for it goes on.
    pub(crate) fn finish(&self, job: &JobRef, facts: &RunFacts, end: End) {
        let core = job.core();
        let now = self.now();
        let (effects, ending, inside) = {
            let mut state = core.state();
            let inside = state.is_inside_shutdown(facts.id);
            let (effects, ending) = state.finish(&core.plan, facts, end, now);
            (effects, ending, inside)
        };
        let Some(ending) = ending else { return };
        self.shutdown.count_ended(self.phase(), ending.outcome);
        self.telemetry.finished(core, facts, &ending, now);
        self.carry_out(job, effects, now);
        if inside {
            self.shutdown.leave();
        }
        self.lower_active();
        if ending.error.is_some() {
            discard(ending); // the error is the user's
        }
    }

    fn lower_active(&self) {
        self.active.fetch_sub(1, Ordering::SeqCst);
        if self.phase() > Phase::Running {
            self.driver.notify_one();
        }
    }

    /// A value's `Drop` panicked and was contained.
    pub(crate) fn drop_panicked(&self, core: &JobCore, message: String) {
        core.state().contained_panic();
        self.telemetry.callback_panicked(core, Callback::Drop, message.into(), self.now());
    }

    /// A job was cancelled.
    pub(crate) fn removed(&self, core: &JobCore, effects: Effects, running: u64, deadline: i64) {
        let now = self.now();
        if deadline != i64::MAX {
            let (line, sequence) = (core.plan.line, core.sequence);
            self.command(Command::Disarm { line, deadline, sequence });
        }
        if !effects.retired {
            // The name is free at once; the runs that go on must stay in reach.
            self.registry.set_aside(core);
        }
        self.tell(core, effects, now);
        self.telemetry.removed(core, running, now);
    }

    pub(crate) fn report_stall(&self, stalled: Stalled) {
        self.telemetry.stalled(stalled, self.now());
    }
}

/// The error of a panic.
#[derive(Debug)]
pub(crate) struct PanicError(pub(crate) String);

impl std::fmt::Display for PanicError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "panicked: {}", self.0)
    }
}

impl std::error::Error for PanicError {}

/// How a body ended, for the state machine.
pub(crate) fn end_of(result: Result<beatline_core::JobResult, String>) -> End {
    match result {
        Ok(Ok(())) => End::Returned(Ok(())),
        Ok(Err(error)) => End::Returned(Err(SharedError::from(error))),
        Err(message) => End::Panicked(Arc::new(PanicError(message))),
    }
}
