//! What a job must do, worked out again: the reference the real state machine is
//! held against.
//!
//! Plain lists and no cleverness: every occurrence is an entry that moves from
//! list to list. Each method returns what the step must have brought about.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use beatline_core::{
    Cause, Decided, Decision, Due, Fate, Line, Moment, Monotonic, Origin, Outcome, RunFacts, RunId, SkipReason,
    Verdict, WALK_LIMIT,
};
use beatline_scheduler::Ended;
use futures::channel::oneshot;

use super::policy::{PolicySpec, Shown};
use super::scenario::JobSpec;
use super::trigger::{Step, TriggerSpec, due_at, on_line};

/// What a step must have brought about.
#[derive(Debug, Default)]
pub(super) struct Expected {
    pub(super) hand_off: Option<RunFacts>,
    pub(super) arm: Option<i64>,
    pub(super) decided: Option<Decided>,
    pub(super) requested: Option<Decided>,
    pub(super) withdrawn: Option<(SkipReason, u64)>,
    pub(super) policy_panic: bool,
    pub(super) fault: bool,
    pub(super) exhausted: bool,
    pub(super) retired: bool,
    /// Who is answered, and what.
    pub(super) answers: Vec<(u64, Fate)>,
}

/// When the job is due next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Upcoming {
    At(i64),
    AfterFateOf(u64),
    Idle,
    Exhausted,
    Faulted,
    Cancelled,
}

/// An accepted occurrence.
#[derive(Clone, Debug)]
pub(super) struct Active {
    pub(super) facts: RunFacts,
    accepted: i64,
    pub(super) started: Option<i64>,
    pub(super) cause: Option<Cause>,
    pub(super) timed_out: bool,
}

/// The books of one job.
#[derive(Debug)]
pub(super) struct Model {
    pub(super) spec: JobSpec,
    pub(super) registered: Moment,
    pub(super) cursor: Option<i64>,
    pub(super) upcoming: Upcoming,
    /// The deadline in the timer.
    pub(super) armed: Option<i64>,
    last_id: u64,
    pub(super) active: Vec<Active>,
    pub(super) waiting: VecDeque<RunFacts>,
    pub(super) due: u64,
    /// Of these, by the trigger.
    pub(super) triggered: u64,
    pub(super) started: u64,
    pub(super) outcomes: [u64; Outcome::LABELS.len()],
    pub(super) skipped: [u64; SkipReason::LABELS.len()],
    pub(super) tickets: BTreeMap<u64, oneshot::Receiver<Ended>>,
}

/// What is due in one go.
struct Sought {
    latest: i64,
    count: u64,
    at_least: bool,
    cursor: i64,
    broken: bool,
}

impl Model {
    pub(super) fn new(spec: JobSpec, registered: Moment) -> Self {
        Self {
            spec,
            registered,
            cursor: None,
            upcoming: Upcoming::Idle,
            armed: None,
            last_id: 0,
            active: Vec::new(),
            waiting: VecDeque::new(),
            due: 0,
            triggered: 0,
            started: 0,
            outcomes: [0; Outcome::LABELS.len()],
            skipped: [0; SkipReason::LABELS.len()],
            tickets: BTreeMap::new(),
        }
    }

    pub(super) fn line(&self) -> Line {
        self.spec.trigger.line()
    }

    pub(super) fn is_over(&self) -> bool {
        matches!(self.upcoming, Upcoming::Cancelled | Upcoming::Exhausted)
            && self.active.is_empty()
            && self.waiting.is_empty()
    }

    pub(super) fn find(&self, id: u64) -> Option<&Active> {
        self.active.iter().find(|run| run.facts.id.0 == id)
    }

    fn position(&self, id: u64) -> Option<usize> {
        self.active.iter().position(|run| run.facts.id.0 == id)
    }

    pub(super) fn running(&self) -> usize {
        self.active.iter().filter(|run| run.started.is_some()).count()
    }

    // ----- events ---------------------------------------------------------

    pub(super) fn register(&mut self) -> Expected {
        let mut expected = Expected::default();
        let mut completion = None;
        if self.spec.continued {
            self.cursor = Some(on_line(self.line(), self.registered));
            completion = Some(self.registered.monotonic.nanoseconds());
        }
        self.ask(completion, None, &mut expected);
        self.close(false, &mut expected);
        expected
    }

    /// The timer has come; `None` if the entry means nothing any more.
    pub(super) fn timer(&mut self, deadline: i64, now: Moment) -> Option<Expected> {
        if self.armed != Some(deadline) {
            return None;
        }
        self.armed = None;
        let mut expected = Expected::default();
        let was_over = self.is_over();
        let line_now = on_line(self.line(), now);
        if let Upcoming::At(first) = self.upcoming {
            if first <= line_now {
                self.decide(first, line_now, now, &mut expected);
            }
        }
        self.close(was_over, &mut expected);
        Some(expected)
    }

    pub(super) fn run_now(
        &mut self,
        choice: Option<PolicySpec>,
        now: Moment,
        ticket: oneshot::Receiver<Ended>,
    ) -> Option<Expected> {
        if self.upcoming == Upcoming::Cancelled || self.is_over() {
            return None;
        }
        let mut expected = Expected::default();
        let facts = self.facts(on_line(self.line(), now), now, Origin::RunNow);
        self.due += 1;
        self.tickets.insert(facts.id.0, ticket);
        let verdict = self.admit(choice.unwrap_or(self.spec.policy), facts, now, &mut expected);
        expected.requested = Some(Decided::new(facts.due, now.wall, verdict));
        self.close(false, &mut expected);
        Some(expected)
    }

    /// The gate is passed.
    pub(super) fn start(&mut self, id: u64, now: Moment) {
        self.started += 1;
        if let Some(position) = self.position(id) {
            self.active[position].started = Some(now.monotonic.nanoseconds());
        }
    }

    /// The gate stays shut.
    pub(super) fn refuse(&mut self, id: u64, reason: SkipReason, now: Moment) -> Expected {
        let mut expected = Expected::default();
        let was_over = self.is_over();
        let Some(position) = self.position(id) else { return expected };
        let run = self.active.remove(position);
        self.skip(run.facts, reason, &mut expected);
        expected.withdrawn = Some((reason, 1));
        self.move_on(id, now, &mut expected);
        self.close(was_over, &mut expected);
        expected
    }

    pub(super) fn finish(&mut self, id: u64, outcome: Outcome, now: Moment) -> Expected {
        let mut expected = Expected::default();
        let was_over = self.is_over();
        let Some(position) = self.position(id) else { return expected };
        self.active.remove(position);
        self.outcomes[outcome.index()] += 1;
        self.answer(id, Fate::Ran(outcome), &mut expected);
        self.move_on(id, now, &mut expected);
        self.close(was_over, &mut expected);
        expected
    }

    /// `None` if there is nothing left to cancel.
    pub(super) fn cancel(&mut self, reason: SkipReason) -> Option<(Expected, u64, Option<i64>)> {
        if self.upcoming == Upcoming::Cancelled || self.is_over() {
            return None;
        }
        let mut expected = Expected::default();
        self.upcoming = Upcoming::Cancelled;
        let deadline = self.armed.take();
        self.empty(reason, &mut expected);
        self.close(false, &mut expected);
        Some((expected, self.running() as u64, deadline))
    }

    /// What waits is dropped.
    pub(super) fn empty(&mut self, reason: SkipReason, expected: &mut Expected) {
        let waiting = std::mem::take(&mut self.waiting);
        if !waiting.is_empty() {
            expected.withdrawn = Some((reason, waiting.len() as u64));
        }
        for facts in waiting {
            self.skip(facts, reason, expected);
        }
    }

    pub(super) fn ask_to_stop(&mut self, cause: Cause) {
        for run in self.active.iter_mut().filter(|run| run.started.is_some()) {
            run.cause.get_or_insert(cause);
        }
    }

    pub(super) fn time_out(&mut self, id: u64) {
        if let Some(position) = self.position(id) {
            let run = &mut self.active[position];
            run.timed_out = run.cause.is_none();
        }
    }

    // ----- the rules ------------------------------------------------------

    fn decide(&mut self, first: i64, line_now: i64, now: Moment, expected: &mut Expected) {
        let line = self.line();
        let sought = self.seek(first, line_now);
        self.cursor = Some(sought.cursor);
        self.due += sought.count;
        self.triggered += sought.count;
        let coalesced = sought.count - 1;
        self.skipped[SkipReason::Coalesced.index()] += coalesced;
        let mut facts = self.facts(sought.latest, now, Origin::Trigger);
        facts.coalesced = coalesced;
        facts.missed_since = (coalesced > 0).then(|| due_at(line, first));
        let verdict = self.admit(self.spec.policy, facts, now, expected);

        if sought.broken {
            self.fault(expected);
        } else if matches!(verdict, Verdict::Skipped(_)) {
            self.ask(Some(now.monotonic.nanoseconds()), None, expected);
        } else {
            self.ask(None, Some(facts.id.0), expected);
        }

        let cursor = due_at(line, sought.cursor);
        let cursor_wall = match cursor {
            Due::Wall(at) => at,
            Due::Monotonic(at) => now.wall_at(at),
        };
        let mut decided = Decided::new(cursor, cursor_wall, verdict);
        decided.due = sought.count;
        decided.at_least = sought.at_least;
        decided.coalesced = coalesced;
        decided.lateness = facts.lateness;
        decided.misfire = facts.lateness > self.spec.tolerance;
        expected.decided = Some(decided);
    }

    fn seek(&self, first: i64, now: i64) -> Sought {
        let alone = |broken| Sought { latest: first, count: 1, at_least: false, cursor: first, broken };
        if matches!(self.spec.trigger, TriggerSpec::FixedRate { .. }) {
            let more = self.spec.trigger.rate_count(self.registered, Some(first), now).unwrap_or(0);
            let latest = self.last_of_rate(first, more);
            return Sought { latest, count: more + 1, at_least: false, cursor: latest, broken: false };
        }
        if let TriggerSpec::WallGrid(grid) = &self.spec.trigger {
            let more = (now - first) / grid.period;
            let latest = first + more * grid.period;
            return Sought { latest, count: more as u64 + 1, at_least: false, cursor: latest, broken: false };
        }
        let (mut latest, mut walked) = (first, 0);
        loop {
            let completion = (walked > 0).then_some(latest);
            match self.spec.trigger.after(self.registered, Some(latest), completion) {
                Step::At(next) if next <= now && next > latest => {
                    if walked == WALK_LIMIT {
                        return Sought { latest, count: walked + 1, at_least: true, cursor: now, broken: false };
                    }
                    latest = next;
                    walked += 1;
                }
                Step::Panics => return alone(true),
                _ => return Sought { latest, count: walked + 1, at_least: false, cursor: latest, broken: false },
            }
        }
    }

    fn last_of_rate(&self, first: i64, more: u64) -> i64 {
        let TriggerSpec::FixedRate { period, .. } = &self.spec.trigger else { return first };
        let last = i128::from(first) + i128::from(more) * period.as_nanos() as i128;
        i64::try_from(last).unwrap_or(i64::MAX)
    }

    fn admit(&mut self, policy: PolicySpec, facts: RunFacts, now: Moment, expected: &mut Expected) -> Verdict {
        let monotonic = now.monotonic.nanoseconds();
        let shown = Shown {
            due: match facts.due {
                Due::Monotonic(at) => at.nanoseconds(),
                Due::Wall(at) => at.unix_nanoseconds() as i64,
            },
            lateness: facts.lateness,
            active: self.active.len(),
            max_concurrent: self.spec.max_concurrent,
            buffered: self.waiting.len(),
            oldest: self.active.first().map(|run| Duration::from_nanos(monotonic.abs_diff(run.accepted))),
            started: self.running(),
        };
        let decision = policy.decide(&shown).unwrap_or_else(|| {
            expected.policy_panic = true;
            Decision::Skip
        });
        let capacity = self.spec.policy.buffer();
        let full = self.waiting.len() >= capacity;
        let (room, alone) = (self.active.len() < self.spec.max_concurrent, self.active.is_empty());
        let displaced = match decision {
            Decision::Start if room => return self.accept(facts, now, expected),
            Decision::Start | Decision::Skip => return self.drop_new(facts, SkipReason::Overlap, expected),
            // There is no end to wait for.
            _ if alone => return self.accept(facts, now, expected),
            _ if !full => None,
            _ if capacity == 0 => return self.drop_new(facts, SkipReason::BufferFull, expected),
            Decision::BufferDropOldest => self.waiting.pop_front().map(|waited| (waited, SkipReason::BufferFull)),
            Decision::BufferSupersede => self.waiting.pop_back().map(|waited| (waited, SkipReason::Superseded)),
            _ => return self.drop_new(facts, SkipReason::BufferFull, expected),
        };
        self.waiting.push_back(facts);
        if let Some((waited, reason)) = displaced {
            self.skip(waited, reason, expected);
            expected.withdrawn = Some((reason, 1));
            self.fate_known(waited.id.0, now, expected);
        }
        Verdict::Buffered
    }

    fn accept(&mut self, facts: RunFacts, now: Moment, expected: &mut Expected) -> Verdict {
        let accepted = now.monotonic.nanoseconds();
        self.active.push(Active { facts, accepted, started: None, cause: None, timed_out: false });
        expected.hand_off = Some(facts);
        Verdict::Accepted(facts.id)
    }

    fn drop_new(&mut self, facts: RunFacts, reason: SkipReason, expected: &mut Expected) -> Verdict {
        self.skip(facts, reason, expected);
        Verdict::Skipped(reason)
    }

    fn skip(&mut self, facts: RunFacts, reason: SkipReason, expected: &mut Expected) {
        self.skipped[reason.index()] += 1;
        self.answer(facts.id.0, Fate::Skipped(reason), expected);
    }

    fn answer(&mut self, id: u64, fate: Fate, expected: &mut Expected) {
        if self.tickets.remove(&id).is_some() {
            expected.answers.push((id, fate));
        }
    }

    /// An accepted occurrence has its fate: the trigger may wait for it, and so
    /// may the oldest in the buffer.
    fn move_on(&mut self, id: u64, now: Moment, expected: &mut Expected) {
        self.fate_known(id, now, expected);
        if self.active.len() < self.spec.max_concurrent && self.upcoming != Upcoming::Cancelled {
            if let Some(facts) = self.waiting.pop_front() {
                self.accept(facts, now, expected);
            }
        }
    }

    fn fate_known(&mut self, id: u64, now: Moment, expected: &mut Expected) {
        if self.upcoming == Upcoming::AfterFateOf(id) {
            self.ask(Some(now.monotonic.nanoseconds()), None, expected);
        }
    }

    fn ask(&mut self, completion: Option<i64>, accepted: Option<u64>, expected: &mut Expected) {
        match (self.spec.trigger.after(self.registered, self.cursor, completion), accepted) {
            (Step::At(at), _) => self.upcoming = Upcoming::At(at),
            (Step::AwaitsCompletion, Some(id)) => self.upcoming = Upcoming::AfterFateOf(id),
            (Step::Never, _) if self.cursor.is_none() => self.upcoming = Upcoming::Idle,
            (Step::Never, _) => {
                self.upcoming = Upcoming::Exhausted;
                expected.exhausted = true;
            }
            _ => self.fault(expected),
        }
    }

    fn fault(&mut self, expected: &mut Expected) {
        self.upcoming = Upcoming::Faulted;
        expected.fault = true;
    }

    /// What the timer must hold after a step, and whether the job is over.
    fn close(&mut self, was_over: bool, expected: &mut Expected) {
        let wanted = match self.upcoming {
            Upcoming::At(at) if at != i64::MAX => Some(at),
            _ => None,
        };
        if wanted != self.armed {
            self.armed = wanted;
            expected.arm = wanted;
        }
        expected.retired = !was_over && self.is_over();
    }

    fn facts(&mut self, due: i64, now: Moment, origin: Origin) -> RunFacts {
        self.last_id += 1;
        let line_now = on_line(self.line(), now);
        RunFacts {
            id: RunId(self.last_id),
            due: due_at(self.line(), due),
            decided: now,
            lateness: Duration::from_nanos((line_now - due).max(0) as u64),
            origin,
            coalesced: 0,
            missed_since: None,
            attempt: 1,
        }
    }

    /// How a run that comes to this end must be recorded.
    pub(super) fn outcome_of(&self, id: u64, end: EndKind) -> Option<Outcome> {
        let run = self.find(id)?;
        Some(match (end, run.timed_out, run.cause) {
            (EndKind::Panicked, ..) => Outcome::Panicked,
            (_, true, _) => Outcome::TimedOut,
            (EndKind::Dropped, _, cause) => Outcome::Aborted(cause.unwrap_or(Cause::Runtime)),
            (_, _, Some(cause)) => Outcome::Cancelled(cause),
            (EndKind::Succeeded, ..) => Outcome::Completed,
            (EndKind::Failed, ..) => Outcome::Failed,
        })
    }

    /// The earliest moment on the monotonic line at which this run may start.
    pub(super) fn decided_at(&self, id: u64) -> Option<Monotonic> {
        self.find(id).map(|run| run.facts.decided.monotonic)
    }
}

/// How the body of a run ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EndKind {
    Succeeded,
    Failed,
    Panicked,
    Dropped,
}
