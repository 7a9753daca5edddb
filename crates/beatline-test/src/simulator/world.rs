//! All that exists in a simulation, and the order in which things happen.

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use beatline_core::{Line, Moment, Monotonic, RunFacts, SharedError, Timestamp};
use beatline_scheduler::simulation::{Engine, OrderKey, Plan, State};

use super::Report;
use super::model::{EndKind, Model};
use super::scenario::{self, Weather};
use super::shutdown::Ending;
use super::violation::Check;
use crate::random::{Random, mix};

/// More steps than this for each fire asked for, and the simulation ends: some
/// scenarios skip nearly everything.
const STEPS_A_FIRE: u64 = 30;

/// One job, twice: as the engine has it and as the model does.
pub(super) struct Job {
    pub(super) plan: Plan,
    pub(super) state: State,
    pub(super) model: Model,
    pub(super) key: OrderKey,
    /// Nothing may start any more: a cancel has returned.
    pub(super) cancelled: bool,
    /// The newest due instant that the trigger's decisions covered.
    pub(super) decided: Option<i64>,
    /// Runs that started, so that none does twice.
    pub(super) last_started: u64,
    pub(super) overtaken: BTreeSet<u64>,
}

/// What handles ask of the driver.
pub(super) enum Command {
    Arm(usize, i64),
    Disarm(usize, i64),
}

/// Something that comes at its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Event {
    /// A run's body returns.
    End { job: usize, run: u64, failed: bool, panicked: bool },
    /// A run's time is up.
    TimeOut { job: usize, run: u64 },
    /// A run is dropped where it stands.
    Drop { job: usize, run: u64 },
    /// The runs of a job that was told to stop are dropped.
    AbortAll { job: usize },
    /// Something is done to the jobs, or to time.
    Operation,
}

/// The order of the timer's entries, worked out again: line, deadline, priority
/// (higher first), registration.
pub(super) type EntryKey = (u8, i64, i16, usize);

pub(super) struct World {
    pub(super) seed: u64,
    target: u64,
    pub(super) random: Random,
    pub(super) weather: Weather,
    pub(super) began: Moment,
    pub(super) now: Moment,
    pub(super) engine: Engine<usize>,
    pub(super) jobs: Vec<Job>,
    /// Jobs that are not over.
    pub(super) live: Vec<usize>,
    pub(super) commands: VecDeque<Command>,
    pub(super) injector: VecDeque<(usize, RunFacts)>,
    pub(super) runner_at: Option<i64>,
    pub(super) driver_at: Option<i64>,
    pub(super) notified: bool,
    events: BinaryHeap<Reverse<(i64, u64, Event)>>,
    next_event: u64,
    /// What lies in the timers and is alive.
    pub(super) entries: BTreeSet<EntryKey>,
    /// What may still lie there and is not.
    pub(super) dead: BTreeSet<EntryKey>,
    /// Accepted and without a fate, over all jobs.
    pub(super) active: usize,
    pub(super) ending: Ending,
    pub(super) error: SharedError,
    pub(super) vain_looks: u64,
    pub(super) last_look_was_now: bool,
    pub(super) report: Report,
}

impl World {
    pub(super) fn new(seed: u64, target: u64) -> Self {
        let mut random = Random::new(seed);
        let weather = Weather::draw(&mut random);
        let monotonic = Monotonic::from_nanoseconds(random.below(1 << 44) as i64);
        let wall = Timestamp::from_unix(1_700_000_000 + random.below(1 << 26) as i64, random.below(1 << 29) as u32);
        let began = Moment::new(monotonic, wall);
        Self {
            seed,
            target,
            random,
            weather,
            began,
            now: began,
            engine: Engine::default(),
            jobs: Vec::new(),
            live: Vec::new(),
            commands: VecDeque::new(),
            injector: VecDeque::new(),
            runner_at: None,
            driver_at: Some(monotonic.nanoseconds()),
            notified: false,
            events: BinaryHeap::new(),
            next_event: 0,
            entries: BTreeSet::new(),
            dead: BTreeSet::new(),
            active: 0,
            ending: Ending::default(),
            error: Arc::new(std::fmt::Error),
            vain_looks: 0,
            last_look_was_now: false,
            report: Report::default(),
        }
    }

    /// Lives the scenario through to its end.
    pub(super) fn run(&mut self) -> Check {
        let specs = scenario::first_jobs(&mut self.random);
        for spec in specs {
            self.add(spec)?;
        }
        if self.random.once_in(200) {
            let herd = scenario::herd(&mut self.random);
            for spec in herd {
                self.add(spec)?;
            }
        }
        self.schedule_operation();
        loop {
            let done = self.report.fires >= self.target || self.report.steps >= self.target * STEPS_A_FIRE;
            if done && !self.ending.was_asked() {
                self.ask_for_the_end()?;
            }
            if !self.next()? {
                break;
            }
        }
        self.check_the_end()
    }

    /// One thing happens: whatever comes first, and at equal instants ends before
    /// starts, starts before decisions. Returns false when nothing is left.
    fn next(&mut self) -> Result<bool, super::violation::Broken> {
        let runner_at = self.runner_at.filter(|_| !self.injector.is_empty());
        let event_at = self.events.peek().map(|Reverse((at, ..))| *at);
        let choices = [(event_at, 0), (runner_at, 1), (self.driver_at, 2)];
        let first = choices.into_iter().filter_map(|(at, what)| at.map(|at| (at, what))).min();
        let Some((at, what)) = first else { return Ok(false) };
        let ahead = at.saturating_sub(self.monotonic());
        if ahead > 0 {
            self.pass(Duration::from_nanos(ahead as u64));
        }
        match what {
            0 => {
                if let Some(Reverse((_, _, event))) = self.events.pop() {
                    self.happen(event)?;
                }
            }
            1 => self.run_next_hand_off()?,
            _ => self.look()?,
        }
        Ok(true)
    }

    fn happen(&mut self, event: Event) -> Check {
        match event {
            Event::End { job, run, failed, panicked } => {
                let end = match (panicked, failed) {
                    (true, _) => EndKind::Panicked,
                    (false, true) => EndKind::Failed,
                    (false, false) => EndKind::Succeeded,
                };
                self.finish(job, run, end)
            }
            Event::TimeOut { job, run } => self.time_out(job, run),
            Event::Drop { job, run } => self.finish(job, run, EndKind::Dropped),
            Event::AbortAll { job } => {
                self.abort(job, beatline_core::Cause::User);
                Ok(())
            }
            Event::Operation => {
                self.operate()?;
                self.schedule_operation();
                Ok(())
            }
        }
    }

    fn schedule_operation(&mut self) {
        if !self.ending.was_asked() {
            let wait = self.random.duration(self.weather.operations * 2);
            self.at(wait, Event::Operation);
        }
    }

    // ----- time -----------------------------------------------------------

    pub(super) fn monotonic(&self) -> i64 {
        self.now.monotonic.nanoseconds()
    }

    /// Time passes on both lines.
    pub(super) fn pass(&mut self, duration: Duration) {
        self.now = self.now.saturating_add(duration);
        self.report.elapsed += duration;
    }

    /// The wall clock moves by itself.
    pub(super) fn move_wall(&mut self, nanoseconds: i64) {
        let wall = self.now.wall.unix_nanoseconds() + i128::from(nanoseconds);
        self.now.wall = Timestamp::from_unix_nanoseconds(wall);
        self.report.wall_jumps += 1;
    }

    pub(super) fn at(&mut self, wait: Duration, event: Event) {
        self.next_event += 1;
        let at = self.now.monotonic.saturating_add(wait).nanoseconds();
        self.events.push(Reverse((at, self.next_event, event)));
    }

    /// Wakes the driver, as late as it may be today.
    pub(super) fn notify(&mut self) {
        if self.ending.is_over() {
            return;
        }
        self.notified = true;
        let delay = self.random.duration(self.weather.driver_delay);
        let at = self.now.monotonic.saturating_add(delay).nanoseconds();
        self.driver_at = Some(self.driver_at.map_or(at, |known| known.min(at)));
    }

    pub(super) fn command(&mut self, command: Command) {
        if !self.ending.is_over() {
            self.commands.push_back(command);
            self.notify();
        }
    }

    pub(super) fn hand_off(&mut self, job: usize, facts: RunFacts) {
        self.injector.push_back((job, facts));
        if self.runner_at.is_none() {
            self.wake_runner();
        }
    }

    pub(super) fn wake_runner(&mut self) {
        let delay = self.random.duration(self.weather.runner_delay);
        self.runner_at = Some(self.now.monotonic.saturating_add(delay).nanoseconds());
    }

    pub(super) fn key(&self, job: usize, deadline: i64) -> EntryKey {
        let job_ref = &self.jobs[job];
        let line = match job_ref.model.line() {
            Line::Monotonic => 0,
            Line::Wall => 1,
        };
        (line, deadline, -i16::from(job_ref.model.spec.priority), job)
    }

    // ----- the log --------------------------------------------------------

    /// Everything that happened is part of the hash.
    pub(super) fn log(&mut self, values: &[u64]) {
        for value in values {
            self.report.hash = mix(self.report.hash ^ value);
        }
    }

    pub(super) fn position(&self) -> (u64, Duration) {
        (self.report.steps, self.report.elapsed)
    }

    pub(super) fn report(&self) -> Report {
        let mut report = self.report.clone();
        report.jobs = self.jobs.len() as u64;
        for job in &self.jobs {
            report.due += job.model.due;
            for (sum, count) in report.outcomes.iter_mut().zip(job.model.outcomes) {
                *sum += count;
            }
            for (sum, count) in report.skipped.iter_mut().zip(job.model.skipped) {
                *sum += count;
            }
        }
        report
    }
}
