//! A scenario of one job on virtual time, through the real timers and the real
//! state machine, and what became of every occurrence.
//!
//! ```
//! use beatline_core::Overlap;
//! use beatline_fixed_rate::FixedRate;
//! use beatline_test::timeline::Timeline;
//! use std::time::Duration;
//!
//! let seconds = Duration::from_secs;
//! let record = Timeline::of(FixedRate::every(seconds(10)).immediately())
//!     .overlap(Overlap::Skip)
//!     .lasting(move |due| if due.is_zero() { seconds(23) } else { seconds(4) })
//!     .until(seconds(40));
//! assert_eq!(record.rows(), ["0→23", "Skipped{Overlap}", "Skipped{Overlap}", "30→34", "40→44"]);
//! ```
//!
//! Instants and durations are counted from the registration, on the line of the
//! trigger. When an end and a due instant coincide, the end comes first.

mod record;

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use beatline_core::{
    Cause, Due, Fate, Line as TimeLine, Misfire, Moment, Monotonic, Overlap, OverlapPolicy, RunFacts, SkipReason,
    Timestamp, Trigger, TriggerContext,
};
use beatline_scheduler::simulation::{
    Effects, End, Engine, Gate, JobConfig, Look, OrderKey, OverlapChoice, Plan, Removal, State,
};

pub use record::{Line, Record};

/// A scenario: one job, what its runs do, and how time treats it.
///
/// The replacing overlap policies and the other misfire policies need nothing
/// more than this: what a run does when it is asked to stop is its
/// [`Reaction`].
pub struct Timeline {
    trigger: Arc<dyn Trigger>,
    overlap: OverlapChoice,
    max_concurrent: usize,
    buffer: usize,
    misfire: Misfire,
    lasting: Box<dyn Fn(Duration) -> Duration>,
    reaction: Reaction,
    stalls: Vec<(Duration, Duration)>,
    suspends: VecDeque<(Duration, Duration)>,
    stop: Option<(Duration, Duration)>,
    unit: Duration,
    wall: Timestamp,
}

/// What a run does when it is asked to stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reaction {
    /// It goes on.
    Ignores,
    /// It ends after this.
    StopsAfter(Duration),
}

impl Timeline {
    /// A job with this trigger; everything else as a job has it by default, runs
    /// that end at once.
    pub fn of(trigger: impl Trigger) -> Self {
        Self {
            trigger: Arc::new(trigger),
            overlap: OverlapChoice::BuiltIn(Overlap::Skip),
            max_concurrent: 1,
            buffer: 0,
            misfire: Misfire::default(),
            lasting: Box::new(|_| Duration::ZERO),
            reaction: Reaction::Ignores,
            stalls: Vec::new(),
            suspends: VecDeque::new(),
            stop: None,
            unit: Duration::from_secs(1),
            wall: Timestamp::from_unix(1_767_225_600, 0), // 2026-01-01T00:00:00Z
        }
    }

    /// The overlap policy, with its own limit of active runs.
    #[must_use]
    pub fn overlap(mut self, policy: impl OverlapPolicy) -> Self {
        (self.max_concurrent, self.buffer) = (policy.max_concurrent(), policy.buffer());
        self.overlap = OverlapChoice::new(policy);
        self
    }

    /// Another limit of active runs; after [`overlap`](Self::overlap).
    #[must_use]
    pub fn max_concurrent(mut self, runs: usize) -> Self {
        self.max_concurrent = runs;
        self
    }

    /// The misfire policy.
    #[must_use]
    pub fn misfire(mut self, misfire: Misfire) -> Self {
        self.misfire = misfire;
        self
    }

    /// How long the run for the occurrence due then takes.
    #[must_use]
    pub fn lasting(mut self, duration: impl Fn(Duration) -> Duration + 'static) -> Self {
        self.lasting = Box::new(duration);
        self
    }

    /// What runs do when they are asked to stop.
    #[must_use]
    pub fn reaction(mut self, reaction: Reaction) -> Self {
        self.reaction = reaction;
        self
    }

    /// The process stands still from `at` on, for so long.
    #[must_use]
    pub fn stalled(mut self, at: Duration, lasting: Duration) -> Self {
        self.stalls.push((at, lasting));
        self
    }

    /// The machine sleeps: at this instant of the monotonic clock the wall clock
    /// alone goes on, for so long. In ascending order.
    #[must_use]
    pub fn suspended(mut self, at: Duration, lasting: Duration) -> Self {
        self.suspends.push_back((at, lasting));
        self
    }

    /// At `at` the job is told to stop; its runs are dropped after the grace.
    #[must_use]
    pub fn stopped(mut self, at: Duration, grace: Duration) -> Self {
        self.stop = Some((at, grace));
        self
    }

    /// The unit in which rows and drawings count; one second by default.
    #[must_use]
    pub fn unit(mut self, unit: Duration) -> Self {
        self.unit = unit;
        self
    }

    /// What the wall clock shows at the registration.
    #[must_use]
    pub fn registered_at(mut self, wall: Timestamp) -> Self {
        self.wall = wall;
        self
    }

    /// Lives through it: decisions up to `end`, and the runs made by them to
    /// theirs.
    #[must_use]
    pub fn until(self, end: Duration) -> Record {
        Course::new(self, end).run()
    }
}

impl fmt::Debug for Timeline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let trigger = self.trigger.describe();
        f.debug_struct("Timeline").field("trigger", &trigger).field("overlap", &self.overlap).finish_non_exhaustive()
    }
}

/// What comes at its time: ends first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    End(u64),
    Drop(u64),
    Stop,
    Suspend,
    Look,
}

/// A scenario under way.
struct Course {
    scenario: Timeline,
    end: i64,
    now: Moment,
    plan: Plan,
    state: State,
    engine: Engine<()>,
    events: BinaryHeap<Reverse<(i64, Event)>>,
    lines: Vec<Line>,
    /// Accepted, with the line in the record.
    active: Vec<(RunFacts, usize)>,
    waiting: VecDeque<(RunFacts, usize)>,
    most_active: usize,
    most_waiting: usize,
}

impl Course {
    fn new(scenario: Timeline, end: Duration) -> Self {
        let now = Moment::new(Monotonic::ORIGIN, scenario.wall);
        let config = JobConfig {
            overlap: scenario.overlap.clone(),
            max_concurrent: scenario.max_concurrent,
            buffer: scenario.buffer,
            misfire: scenario.misfire,
            timeout: None,
            timeout_grace: Duration::ZERO,
            priority: 0,
            trigger: scenario.trigger.describe(),
            longest_gap: None,
        };
        let plan = Plan::new(Box::new(Arc::clone(&scenario.trigger)), now, false, Arc::new(config));
        let mut events = BinaryHeap::new();
        events.push(Reverse((0, Event::Look)));
        let at = |at: Duration| Monotonic::ORIGIN.saturating_add(at).nanoseconds();
        events.extend(scenario.suspends.iter().map(|(when, _)| Reverse((at(*when), Event::Suspend))));
        events.extend(scenario.stop.iter().map(|(when, _)| Reverse((at(*when), Event::Stop))));
        Self {
            end: at(end),
            scenario,
            now,
            plan,
            state: State::new(),
            engine: Engine::default(),
            events,
            lines: Vec::new(),
            active: Vec::new(),
            waiting: VecDeque::new(),
            most_active: 0,
            most_waiting: 0,
        }
    }

    fn run(mut self) -> Record {
        let effects = self.state.register(&self.plan, self.now);
        self.carry_out(effects);
        while let Some(Reverse((at, event))) = self.events.pop() {
            let awake = self.after_stalls(at);
            if awake > at {
                // Everything waits for the end of the stall, in the same order.
                self.events.push(Reverse((awake, event)));
                continue;
            }
            let ahead = Duration::from_nanos(at.saturating_sub(self.now.monotonic.nanoseconds()).max(0) as u64);
            self.now = self.now.saturating_add(ahead);
            match event {
                Event::End(id) => self.finish(id, End::Returned(Ok(()))),
                Event::Drop(id) => self.finish(id, End::Dropped),
                Event::Stop => self.stop(),
                Event::Suspend => {
                    if let Some((_, lasting)) = self.scenario.suspends.pop_front() {
                        self.now.wall = self.now.wall.saturating_add(lasting);
                    }
                }
                Event::Look if at <= self.end => self.look(),
                Event::Look => {}
            }
        }
        self.lines.sort_by_key(|line| line.due);
        Record {
            lines: self.lines,
            most_active: self.most_active,
            most_waiting: self.most_waiting,
            condition: self.state.condition(),
            statistics: self.state.statistics(self.now),
            unit: self.scenario.unit,
        }
    }

    fn after_stalls(&self, at: i64) -> i64 {
        let within = self.scenario.stalls.iter().map(|(from, lasting)| {
            let from = Monotonic::ORIGIN.saturating_add(*from);
            (from.nanoseconds(), from.saturating_add(*lasting).nanoseconds())
        });
        within.into_iter().find(|(from, to)| *from < at && at < *to).map_or(at, |(_, to)| to)
    }

    /// What the driver does.
    fn look(&mut self) {
        let now = self.now;
        let mut due = Vec::new();
        self.engine.advance(now, usize::MAX, |(), deadline| due.push(deadline));
        for deadline in due {
            let effects = self.state.timer(&self.plan, deadline, now);
            self.carry_out(effects);
        }
        match self.engine.next_look(now, true) {
            Look::At(at) => self.events.push(Reverse((at.nanoseconds(), Event::Look))),
            Look::Now => self.events.push(Reverse((now.monotonic.nanoseconds(), Event::Look))),
            _ => {}
        }
    }

    fn carry_out(&mut self, effects: Effects) {
        let Effects { hand_off, arm, decided, withdrawn, .. } = effects;
        if let Some(decided) = decided {
            let line = self.line_of(decided.cursor);
            let line = Line { lateness: decided.lateness, coalesced: decided.coalesced, ..line };
            self.write_coalesced(decided.coalesced, line.due);
            let number = self.lines.len();
            match decided.verdict {
                beatline_core::Verdict::Skipped(reason) => {
                    self.lines.push(Line { fate: Some(Fate::Skipped(reason)), settled: Some(self.offset()), ..line });
                }
                beatline_core::Verdict::Buffered => {
                    self.lines.push(line);
                    // Its facts are known when it is taken out again.
                    let facts = self.blank(decided.cursor);
                    self.waiting.push_back((facts, number));
                }
                _ => self.lines.push(line),
            }
        }
        if let Some((reason, count)) = withdrawn {
            self.withdraw(reason, count, decided.is_some());
        }
        if let Some(facts) = hand_off {
            let number = match decided {
                Some(_) => self.lines.len() - 1,
                None => self.waiting.pop_front().map_or(0, |(_, number)| number),
            };
            self.active.push((facts, number));
        }
        self.most_active = self.most_active.max(self.active.len());
        self.most_waiting = self.most_waiting.max(self.waiting.len());
        if let Some(deadline) = arm {
            self.engine.arm(self.plan.line, deadline, OrderKey::new(0, 0), ());
            self.events.push(Reverse((self.now.monotonic.nanoseconds(), Event::Look)));
        }
        if let Some(facts) = hand_off {
            self.start(&facts);
        }
    }

    /// Occurrences that had been waiting will not start.
    fn withdraw(&mut self, reason: SkipReason, count: u64, for_a_new_one: bool) {
        let settled = Some(self.offset());
        for _ in 0..count {
            let newest = self.waiting.len().saturating_sub(2);
            let taken = match reason {
                // The newest but the one that has just come.
                SkipReason::Superseded if for_a_new_one => self.waiting.remove(newest),
                _ => self.waiting.pop_front(),
            };
            let Some((_, number)) = taken else { return };
            let line = &mut self.lines[number];
            (line.fate, line.settled) = (Some(Fate::Skipped(reason)), settled);
        }
    }

    /// The occurrences before `newest` that it stands for, by walking.
    fn write_coalesced(&mut self, count: u64, newest: Duration) {
        let mut context = TriggerContext::new(self.plan.registered);
        context.now = self.now;
        let before = self.lines.iter().map(|line| line.due).max();
        context.previous_due = before.map(|due| self.due_at(due));
        for _ in 0..count {
            let Some(due) = self.scenario.trigger.next(&context).due() else { return };
            let line = self.line_of(due);
            if line.due >= newest {
                return;
            }
            let fate = Some(Fate::Skipped(SkipReason::Coalesced));
            self.lines.push(Line { fate, settled: Some(self.offset()), ..line });
            context = context.after(due);
        }
    }

    fn start(&mut self, facts: &RunFacts) {
        let start = self.offset();
        let Some(number) = self.number_of(facts.id.0) else { return };
        if let Gate::Refused(effects) = self.state.gate(&self.plan, facts, None, false, self.now) {
            return self.carry_out(*effects);
        }
        let line = &mut self.lines[number];
        line.start = Some(start);
        let takes = (self.scenario.lasting)(line.due);
        self.after(takes, Event::End(facts.id.0));
    }

    fn finish(&mut self, id: u64, end: End) {
        let Some(position) = self.active.iter().position(|(facts, _)| facts.id.0 == id) else { return };
        let (facts, number) = self.active.remove(position);
        let (effects, ending) = self.state.finish(&self.plan, &facts, end, self.now);
        let ended = self.offset();
        let line = &mut self.lines[number];
        line.end = Some(ended);
        line.fate = ending.map(|ending| Fate::Ran(ending.outcome));
        self.carry_out(effects);
    }

    /// The job is told to stop.
    fn stop(&mut self) {
        let Some((_, grace)) = self.scenario.stop else { return };
        if let Removal::Cancelled { effects, .. } = self.state.cancel(SkipReason::Removed) {
            self.carry_out(*effects);
        }
        drop(self.state.ask_to_stop(Cause::User));
        let running: Vec<_> = self.active.iter().map(|(facts, _)| facts.id.0).collect();
        for id in running {
            if let Reaction::StopsAfter(reaction) = self.scenario.reaction {
                self.after(reaction, Event::End(id));
            }
            self.after(grace, Event::Drop(id));
        }
    }

    fn after(&mut self, wait: Duration, event: Event) {
        let at = self.now.monotonic.saturating_add(wait).nanoseconds();
        self.events.push(Reverse((at, event)));
    }

    fn number_of(&self, id: u64) -> Option<usize> {
        self.active.iter().find(|(facts, _)| facts.id.0 == id).map(|(_, number)| *number)
    }

    /// Now, on the trigger's line, since the registration.
    fn offset(&self) -> Duration {
        match self.plan.line {
            TimeLine::Monotonic => self.now.monotonic.saturating_since(self.plan.registered.monotonic),
            TimeLine::Wall => self.now.wall.saturating_since(self.plan.registered.wall),
        }
    }

    fn due_at(&self, offset: Duration) -> Due {
        match self.plan.line {
            TimeLine::Monotonic => Due::Monotonic(self.plan.registered.monotonic.saturating_add(offset)),
            TimeLine::Wall => Due::Wall(self.plan.registered.wall.saturating_add(offset)),
        }
    }

    fn line_of(&self, due: Due) -> Line {
        let due = match due {
            Due::Monotonic(at) => at.saturating_since(self.plan.registered.monotonic),
            Due::Wall(at) => at.saturating_since(self.plan.registered.wall),
        };
        let (fate, settled, start, end) = (None, None, None, None);
        Line { due, fate, settled, start, end, lateness: Duration::ZERO, coalesced: 0 }
    }

    fn blank(&self, due: Due) -> RunFacts {
        RunFacts {
            id: beatline_core::RunId(0),
            due,
            decided: self.now,
            lateness: Duration::ZERO,
            origin: beatline_core::Origin::Trigger,
            coalesced: 0,
            missed_since: None,
            attempt: 1,
        }
    }
}
