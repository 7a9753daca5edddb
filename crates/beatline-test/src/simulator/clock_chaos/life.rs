//! One process: its jobs, its driver, and what happens to its clocks.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use beatline_core::{Misfire, Moment, Monotonic, Overlap, OverlapPolicy, RunFacts, Timestamp};
use beatline_scheduler::simulation::{
    End, Engine, Gate, JobConfig, Look, OrderKey, OverlapChoice, Plan, State, WATCHED_RECHECK, WallTurn, Word,
};

use super::ClockReport;
use super::jobs::{self, JobSpec};
use crate::random::Random;
use crate::simulator::trigger::{nanoseconds, on_line};
use crate::simulator::violation::{Check, Invariant, check};

/// How many occurrences may be on their way at once.
const ROOM: usize = 4096;

const MILLISECOND: i64 = 1_000_000;

/// One job, and what the simulator knows of it.
pub(super) struct Job {
    pub(super) spec: JobSpec,
    pub(super) plan: Plan,
    pub(super) state: State,
    pub(super) key: OrderKey,
    /// When its schedule began: when it was added, or where it began anew before that.
    pub(super) began: Moment,
    /// The newest due instant handled, or the instant at which it began anew.
    pub(super) handled: Option<i64>,
    /// The newest due instant that was ever handled.
    pub(super) highest: i64,
    pub(super) next: Option<i64>,
    /// Since when, on the monotonic line, the next occurrence has been due, if it
    /// became so by a leap.
    pub(super) due_since: Option<i64>,
    /// When it was last decided on, or learned that the clock had been set back.
    pub(super) heard: i64,
    /// When, on the monotonic line, zone data changed that it was not asked about
    /// since.
    pub(super) zone_changed: Option<i64>,
    pub(super) due: u64,
    pub(super) started: u64,
    pub(super) running: u64,
    pub(super) last_started: u64,
}

#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Ends {
    at: i64,
    number: u64,
    job: usize,
    run: usize,
}

pub(super) struct Life {
    random: Random,
    pub(super) now: Moment,
    pub(super) jobs: Vec<Job>,
    pub(super) watched: bool,
    pub(super) report: ClockReport,
    shift: Arc<AtomicI64>,
    engine: Engine<usize>,
    turn: WallTurn<usize>,
    commands: Vec<(usize, i64)>,
    injector: VecDeque<(usize, RunFacts)>,
    ends: BinaryHeap<Reverse<Ends>>,
    runs: Vec<Option<RunFacts>>,
    free: Vec<usize>,
    number: u64,
    driver_at: i64,
    notified: bool,
    /// How often something happens to the clocks, on average.
    pace: Duration,
}

impl Life {
    pub(super) fn new(seed: u64, overlap: Overlap) -> Self {
        let mut random = Random::new(seed);
        let wall = Timestamp::from_unix(1_700_000_000 + random.below(1 << 26) as i64, random.below(1 << 29) as u32);
        let now = Moment::new(Monotonic::from_nanoseconds(random.below(1 << 44) as i64), wall);
        let shift = Arc::new(AtomicI64::new(0));
        let watched = random.once_in(2);
        let minute = Duration::from_secs(60);
        let pace = random.pick(&[minute * 10, minute * 60, minute * 60, minute * 60 * 30]);
        let mut life = Self {
            now,
            jobs: Vec::new(),
            watched,
            report: ClockReport { lives: 1, ..ClockReport::default() },
            engine: Engine::default(),
            turn: WallTurn::default(),
            commands: Vec::new(),
            injector: VecDeque::new(),
            ends: BinaryHeap::new(),
            runs: Vec::new(),
            free: Vec::new(),
            number: 0,
            driver_at: now.monotonic.nanoseconds(),
            notified: false,
            pace,
            shift: Arc::clone(&shift),
            random: random.clone(),
        };
        if watched {
            life.engine.wall_recheck = WATCHED_RECHECK;
        }
        for spec in jobs::draw(&mut random, &shift, overlap == Overlap::AllowAll) {
            life.add(spec, overlap);
        }
        life.random = random;
        life
    }

    pub(super) fn into_report(self) -> ClockReport {
        self.report
    }

    fn add(&mut self, spec: JobSpec, overlap: Overlap) {
        let config = JobConfig {
            overlap: OverlapChoice::BuiltIn(overlap),
            max_concurrent: spec.max_concurrent,
            buffer: overlap.buffer(),
            misfire: Misfire::default(),
            timeout: None,
            timeout_grace: Duration::ZERO,
            priority: 0,
            trigger: String::new(),
            longest_gap: None,
        };
        let (now, number) = (self.now, self.jobs.len());
        let plan = Plan::new(Box::new(spec.trigger.clone()), now, false, Arc::new(config));
        let mut state = State::new();
        let effects = state.register(&plan, now);
        self.commands.extend(effects.arm.map(|deadline| (number, deadline)));
        self.jobs.push(Job {
            began: now,
            handled: None,
            highest: i64::MIN,
            next: state.next_due(),
            due_since: None,
            heard: now.monotonic.nanoseconds(),
            zone_changed: None,
            due: 0,
            started: 0,
            running: 0,
            last_started: 0,
            key: OrderKey::new(0, number as u64),
            spec,
            plan,
            state,
        });
    }

    /// Lives for so long.
    pub(super) fn live(&mut self, length: Duration) -> Check {
        let over = self.monotonic() + nanoseconds(length);
        let mut chaos_at = self.monotonic() + nanoseconds(self.random.duration(self.pace));
        while self.monotonic() < over {
            let ends_at = self.ends.peek().map_or(i64::MAX, |Reverse(ends)| ends.at);
            let at = chaos_at.min(ends_at).min(self.driver_at);
            self.pass(at - self.monotonic());
            if ends_at == at {
                if let Some(Reverse(ends)) = self.ends.pop() {
                    self.finish(ends.job, ends.run)?;
                }
            } else if self.driver_at == at {
                self.look()?;
            } else {
                self.inject();
                // Now and then one thing comes right after another.
                let wait = if self.random.once_in(4) { Duration::from_secs(15) } else { self.pace * 2 };
                chaos_at = self.monotonic() + nanoseconds(self.random.duration(wait)) + 1;
            }
        }
        Ok(())
    }

    // ----- time -----------------------------------------------------------

    pub(super) fn monotonic(&self) -> i64 {
        self.now.monotonic.nanoseconds()
    }

    fn pass(&mut self, nanoseconds: i64) {
        let passed = Duration::from_nanos(nanoseconds.max(0) as u64);
        self.now = self.now.saturating_add(passed);
        self.report.elapsed += passed;
    }

    fn inject(&mut self) {
        const HOUR: Duration = Duration::from_secs(3600);
        let kind = self.random.pick(&[0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 4, 4, 4, 5, 5]);
        self.report.injected[kind] += 1;
        match kind {
            0 => {
                let slept = self.random.duration(HOUR * 4);
                self.report.elapsed += slept;
                self.set_wall(nanoseconds(slept));
            }
            1 => self.step(Duration::from_millis(250)),
            2 => self.step(HOUR * 2),
            3 => self.step(HOUR * 24 * 400),
            4 => {
                let pause = nanoseconds(self.random.duration(Duration::from_secs(30)));
                self.pass(pause);
                for job in &mut self.jobs {
                    job.heard += pause;
                    job.due_since = job.due_since.map(|since| since + pause);
                    job.zone_changed = job.zone_changed.map(|since| since + pause);
                }
                self.note_due();
            }
            _ => {
                let monotonic = self.monotonic();
                self.shift.fetch_xor(3600, Ordering::Relaxed);
                for job in &mut self.jobs {
                    job.zone_changed.get_or_insert(monotonic);
                }
            }
        }
    }

    fn step(&mut self, most: Duration) {
        let most = nanoseconds(most);
        let by = self.random.below(2 * most as u64) as i64 - most;
        self.set_wall(by);
    }

    fn set_wall(&mut self, by: i64) {
        self.now.wall = Timestamp::from_unix_nanoseconds(self.now.wall.unix_nanoseconds() + i128::from(by));
        self.note_due();
        if self.watched {
            self.driver_at = self.monotonic();
        }
    }

    /// Something leapt: what is due now became so now, whatever the clocks say.
    fn note_due(&mut self) {
        let (now, monotonic) = (self.now, self.monotonic());
        for job in &mut self.jobs {
            job.note_due(now, monotonic);
        }
    }

    // ----- the driver -----------------------------------------------------

    fn look(&mut self) -> Check {
        self.report.looks += 1;
        self.notified = false;
        let now = self.now;
        for (job, deadline) in self.commands.drain(..) {
            let this = &self.jobs[job];
            self.engine.arm(this.plan.line, deadline, this.key, job);
        }
        let mut words = Vec::new();
        let jobs = &self.jobs;
        let is_armed = |job: &usize, deadline| jobs[*job].state.is_armed(deadline);
        let (jump, busy) = self.turn.look(&mut self.engine, now, is_armed, |job, word| words.push((job, word)));
        self.report.jumps += u64::from(jump.is_some());
        for (job, word) in words {
            self.tell(job, word)?;
        }

        let mut due = Vec::new();
        self.engine.advance(now, ROOM, |job, deadline| due.push((job, deadline)));
        for (job, deadline) in due {
            self.fire(job, deadline)?;
        }
        let look = self.engine.next_look(now, true);
        self.run_handed_off()?;
        self.check_all()?;
        let monotonic = self.monotonic();
        self.driver_at = match look {
            _ if busy || self.notified || look == Look::Now => monotonic,
            Look::At(at) => at.nanoseconds().max((monotonic.div_euclid(MILLISECOND) + 1) * MILLISECOND),
            _ => i64::MAX,
        };
        Ok(())
    }

    fn tell(&mut self, job: usize, word: Word) -> Check {
        self.report.steps += 1;
        let now = self.now;
        let this = &mut self.jobs[job];
        let effects = match word {
            Word::SetBack => this.state.clock_set_back(&this.plan, now),
            Word::Refresh => this.state.refresh(&this.plan, now),
        };
        if word == Word::SetBack {
            this.heard = now.monotonic.nanoseconds();
        }
        match word {
            Word::SetBack if !this.must_begin_anew(this.next, now) => this.check_held()?,
            Word::SetBack => {
                // Zone data may have changed since: what follows is asked for once more.
                if this.must_begin_anew(this.follows(now), now) {
                    this.begin_anew(now);
                    self.report.rebases += 1;
                }
                this.check_next(now)?;
            }
            Word::Refresh if this.state.next_due() == this.next && this.zone_changed.is_none() => {}
            Word::Refresh => {
                this.zone_changed = None;
                this.check_next(now)?;
            }
        }
        if let Some(deadline) = effects.arm {
            self.command(job, deadline);
        }
        Ok(())
    }

    fn fire(&mut self, job: usize, deadline: i64) -> Check {
        self.report.steps += 1;
        let now = self.now;
        let this = &mut self.jobs[job];
        let effects = this.state.timer(&this.plan, deadline, now);
        if let Some(decided) = &effects.decided {
            self.check_decision(job, decided, effects.hand_off.as_ref())?;
        }
        if let Some(deadline) = effects.arm {
            let this = &self.jobs[job];
            self.engine.arm(this.plan.line, deadline, this.key, job);
        }
        self.injector.extend(effects.hand_off.map(|facts| (job, facts)));
        self.check_books(job)
    }

    /// Whether the timers hold all that the jobs asked for.
    pub(super) fn is_settled(&self) -> bool {
        self.commands.is_empty()
    }

    fn command(&mut self, job: usize, deadline: i64) {
        self.commands.push((job, deadline));
        self.notified = true;
        self.driver_at = self.monotonic();
    }

    // ----- runs -----------------------------------------------------------

    fn run_handed_off(&mut self) -> Check {
        while let Some((job, facts)) = self.injector.pop_front() {
            self.start(job, facts)?;
        }
        Ok(())
    }

    fn start(&mut self, job: usize, facts: RunFacts) -> Check {
        self.report.steps += 1;
        self.report.fires += 1;
        let now = self.now;
        let this = &mut self.jobs[job];
        let gate = this.state.gate(&this.plan, &facts, None, false, now);
        check(matches!(gate, Gate::Passed { .. }), Invariant::Rules, || format!("job {job}: a run was refused"))?;
        let id = facts.id.0;
        let again = || format!("job {job}: run {id} started after run {}", this.last_started);
        check(id > this.last_started, Invariant::NeverTwice, again)?;
        this.last_started = id;
        this.started += 1;
        this.running += 1;
        let takes = this.spec.takes;
        self.check_books(job)?;
        let run = match self.free.pop() {
            Some(run) => run,
            None => {
                self.runs.push(None);
                self.runs.len() - 1
            }
        };
        self.runs[run] = Some(facts);
        if takes.is_zero() {
            return self.finish(job, run);
        }
        self.number += 1;
        let at = now.monotonic.saturating_add(takes / 2 + self.random.duration(takes)).nanoseconds();
        self.ends.push(Reverse(Ends { at, number: self.number, job, run }));
        Ok(())
    }

    fn finish(&mut self, job: usize, run: usize) -> Check {
        let Some(facts) = self.runs[run].take() else { return Ok(()) };
        self.free.push(run);
        self.report.steps += 1;
        let now = self.now;
        let this = &mut self.jobs[job];
        let (effects, _) = this.state.finish(&this.plan, &facts, End::Returned(Ok(())), now);
        this.running -= 1;
        this.next = this.state.next_due();
        if let Some(deadline) = effects.arm {
            self.command(job, deadline);
        }
        self.check_books(job)?;
        match effects.hand_off {
            Some(facts) => self.start(job, facts),
            None => Ok(()),
        }
    }
}

impl Job {
    pub(super) fn note_due(&mut self, now: Moment, monotonic: i64) {
        let is_due = self.next.is_some_and(|next| next <= on_line(self.plan.line, now));
        self.due_since = is_due.then(|| self.due_since.unwrap_or(monotonic));
    }
}
