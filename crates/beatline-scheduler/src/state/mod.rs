//! The state machine of one job: `(state, event, moment) → effects`.
//!
//! ```text
//!             due ──▶ seek ──▶ misfire ──▶ overlap ──┬─▶ accepted ──▶ gate ──▶ running ──▶ ended
//!              ▲                                     ├─▶ buffered ──┘           (outcome)    │
//!              └──────────── next occurrence ◀───────┴─▶ skipped (reason)  ◀────── next ─────┘
//! ```
//!
//! # Ground rules
//!
//! * Nothing here sleeps, locks, reads a clock or knows a runtime. The caller
//!   holds the job's lock, passes the moment in and carries the effects out after
//!   it let go of the lock. The tokio shell and the simulator are such callers.
//! * An occurrence is *accepted* here and nowhere else, so the limit of active
//!   runs needs no other lock.
//! * The *gate* is the one atomic step from accepted to started. `cancel` takes
//!   the same lock: once it has returned, no gate is passed any more.
//! * After each step: due = started + skipped + pending, and
//!   started = running + outcomes.

mod active;
mod cold;
mod effects;
mod ledger;
mod plan;
mod report;

use std::sync::Arc;
use std::time::Duration;

use beatline_core::{
    ActiveRun, CancellationToken, Cause, Decided, Decision, Due, Fate, Moment, Monotonic, Origin, Outcome, OverlapView,
    RunFacts, RunId, SharedError, SkipReason, TriggerContext, Verdict,
};
use futures::channel::oneshot;

use self::active::{ActiveRuns, UNSET};
use self::cold::{Cold, Waiter};
use self::ledger::Ledger;
use self::plan::Answer;
use crate::config::OverlapChoice;
use crate::contain::contain;

pub use self::effects::{Effects, Ending, Gate, Removal};
pub use self::ledger::{Ended, LastError};
pub use self::plan::Plan;
pub use self::report::{Condition, Statistics};

pub(crate) use self::plan::wall_nanoseconds;

/// When the job is due next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Upcoming {
    /// At this instant of its line.
    At(i64),
    /// When the occurrence with this id has its fate.
    AfterCompletion(u64),
    /// Only on demand.
    Idle,
    /// Never again.
    Exhausted,
    /// Its trigger broke the contract.
    Faulted,
    /// It was cancelled.
    Cancelled,
}

/// Everything that changes about a job.
#[derive(Debug)]
pub struct State {
    upcoming: Upcoming,
    /// The newest due instant handled; [`UNSET`] before the first.
    cursor: i64,
    /// The deadline of the one valid entry in the timer; `i64::MAX` if none.
    armed: i64,
    last_id: u64,
    active: ActiveRuns,
    ledger: Ledger,
    behind: bool,
    /// Whether the last run was still pending after its first poll.
    was_pending: bool,
    cold: Option<Box<Cold>>,
}

/// How the body of a run came to its end.
#[derive(Debug)]
pub enum End {
    /// It returned.
    Returned(Result<(), SharedError>),
    /// It panicked.
    Panicked(SharedError),
    /// It was dropped before it returned.
    Dropped,
}

impl Default for State {
    fn default() -> Self {
        Self::new()
    }
}

impl State {
    /// A job that was not scheduled yet.
    #[must_use]
    pub fn new() -> Self {
        Self {
            upcoming: Upcoming::Idle,
            cursor: UNSET,
            armed: i64::MAX,
            last_id: 0,
            active: ActiveRuns::default(),
            ledger: Ledger::new(),
            behind: false,
            was_pending: false,
            cold: None,
        }
    }

    // ----- events ---------------------------------------------------------

    /// The job was added.
    pub fn register(&mut self, plan: &Plan, now: Moment) -> Effects {
        let mut effects = Effects::default();
        let completion = plan.continued.then_some(plan.registered.monotonic);
        if plan.continued {
            self.cursor = plan.line_now(plan.registered);
        }
        self.ask(plan, now, completion, &mut effects);
        self.rearm(&mut effects);
        effects
    }

    /// The timer has come to an entry with this deadline.
    pub fn timer(&mut self, plan: &Plan, deadline: i64, now: Moment) -> Effects {
        let mut effects = Effects::default();
        if deadline != self.armed {
            return effects; // an entry that was overtaken by a later arming
        }
        self.armed = i64::MAX;
        if let Upcoming::At(first) = self.upcoming {
            if first <= plan.line_now(now) {
                self.due(plan, first, now, &mut effects);
            }
        }
        self.rearm(&mut effects);
        effects
    }

    /// Someone asks for a run besides the schedule; `ticket` learns its fate.
    /// `None` if the job is over.
    pub fn run_now(
        &mut self,
        plan: &Plan,
        choice: Option<&OverlapChoice>,
        ticket: oneshot::Sender<Ended>,
        now: Moment,
    ) -> Option<Effects> {
        if self.upcoming == Upcoming::Cancelled || self.is_over() {
            return None;
        }
        let mut effects = Effects::default();
        let facts = self.facts(plan, plan.line_now(now), now, Origin::RunNow);
        self.ledger.due += 1;
        self.cold().waiters.push(Waiter { run: Some(facts.id.0), sender: ticket });
        let verdict = self.overlap(plan, choice, facts, now, &mut effects);
        effects.requested = Some(Decided::new(facts.due, now.wall, verdict));
        Some(effects)
    }

    /// A worker is about to start this run: the one step from accepted to
    /// started. `refused` says why no run may start any more, if so.
    pub fn gate(
        &mut self,
        plan: &Plan,
        facts: &RunFacts,
        refused: Option<SkipReason>,
        blocking: bool,
        now: Moment,
    ) -> Gate {
        let refused = match self.upcoming {
            Upcoming::Cancelled => Some(refused.unwrap_or(SkipReason::Removed)),
            _ => refused,
        };
        if let Some(reason) = refused {
            return Gate::Refused(Box::new(self.refuse(plan, facts, reason, now)));
        }
        let Some(active) = self.active.find(facts.id.0) else {
            // Refused before, by the end of the scheduler.
            return Gate::Refused(Box::default());
        };
        active.started = now.monotonic.nanoseconds();
        active.blocking = blocking;
        let waited = active.waited;
        self.ledger.record_start(now.monotonic.nanoseconds(), facts.lateness);
        let (fell_behind, caught_up) = self.pace(plan, facts, waited, now);
        Gate::Passed { fell_behind, caught_up, was_pending: self.was_pending }
    }

    /// An accepted occurrence will not start after all.
    pub fn refuse(&mut self, plan: &Plan, facts: &RunFacts, reason: SkipReason, now: Moment) -> Effects {
        let mut effects = Effects::default();
        let id = facts.id.0;
        if self.active.find(id).is_none_or(|active| active.has_started()) {
            return effects;
        }
        self.active.remove(id);
        self.skip(*facts, reason, &mut effects);
        effects.withdrawn = Some((reason, 1));
        self.settle(plan, id, now, &mut effects);
        effects
    }

    /// A run ended.
    pub fn finish(&mut self, plan: &Plan, facts: &RunFacts, end: End, now: Moment) -> (Effects, Option<Ending>) {
        let mut effects = Effects::default();
        let Some(active) = self.active.remove(facts.id.0) else { return (effects, None) };
        let started = Monotonic::from_nanoseconds(active.started);
        let duration = now.monotonic.saturating_since(started);
        let (outcome, error) = match end {
            End::Panicked(error) => (Outcome::Panicked, Some(error)),
            _ if active.timed_out => (Outcome::TimedOut, Some(effects::timed_out_error(plan.config.timeout))),
            End::Dropped => (Outcome::Aborted(active.cause.unwrap_or(Cause::Runtime)), None),
            End::Returned(result) => match (active.cause, result) {
                (Some(cause), _) => (Outcome::Cancelled(cause), None),
                (None, Ok(())) => (Outcome::Completed, None),
                (None, Err(error)) => (Outcome::Failed, Some(error)),
            },
        };
        self.ledger.record_end(now.monotonic.nanoseconds(), outcome, duration);
        let failures_in_a_row = self.record_outcome(outcome, error.as_ref(), now);
        let ending = Ending { outcome, error, duration, failures_in_a_row };
        self.answer_waiters(facts, Fate::Ran(outcome), &ending, &mut effects);
        self.settle(plan, facts.id.0, now, &mut effects);
        (effects, Some(ending))
    }

    /// Cancels the job: nothing starts any more, active runs go on.
    pub fn cancel(&mut self, reason: SkipReason) -> Removal {
        if self.upcoming == Upcoming::Cancelled || self.is_over() {
            return Removal::AlreadyGone;
        }
        let mut effects = Effects::default();
        self.upcoming = Upcoming::Cancelled;
        let deadline = std::mem::replace(&mut self.armed, i64::MAX);
        self.empty_buffer(reason, &mut effects);
        self.retire(&mut effects);
        let running = self.active.iter().filter(|run| run.has_started()).count() as u64;
        Removal::Cancelled { effects: Box::new(effects), running, deadline }
    }

    /// Drops what waits in the buffer; the schedule goes on.
    pub fn empty_buffer(&mut self, reason: SkipReason, effects: &mut Effects) {
        let Some(cold) = &mut self.cold else { return };
        let waiting = std::mem::take(&mut cold.buffer);
        if waiting.is_empty() {
            return;
        }
        effects.withdrawn = Some((reason, waiting.len() as u64));
        for facts in waiting {
            self.skip(facts, reason, effects);
        }
    }

    /// Asks active runs to stop. Returns the tokens to cancel, outside the lock.
    pub fn ask_to_stop(&mut self, cause: Cause) -> Vec<CancellationToken> {
        let mut tokens = Vec::new();
        for run in self.active.iter_mut().filter(|run| run.has_started() && !run.inside_shutdown) {
            run.cause.get_or_insert(cause);
            tokens.extend(run.token.clone());
        }
        tokens
    }

    /// Has active runs dropped at their next poll. Returns whom to wake, outside
    /// the lock. Blocking bodies go on: nobody can drop them.
    pub fn abort(&mut self, cause: Cause) -> Vec<std::task::Waker> {
        let mut wakers = Vec::new();
        for run in self.active.iter_mut().filter(|run| run.has_started() && !run.blocking && !run.inside_shutdown) {
            run.cause.get_or_insert(cause);
            run.abort = true;
            wakers.extend(run.waker.take());
        }
        wakers
    }

    /// The time of a run is up. Returns its token, to be cancelled outside the
    /// lock.
    pub fn time_out(&mut self, run: RunId) -> Option<CancellationToken> {
        let active = self.active.find(run.0)?;
        // The first cause is kept: a run that was asked to stop before is not timed out.
        if active.cause.is_none() {
            active.timed_out = true;
        }
        active.token.clone()
    }

    /// Someone waits for the next fate of any occurrence. `None` if there is
    /// nothing left to wait for.
    pub fn wait(&mut self) -> Option<oneshot::Receiver<Ended>> {
        if self.is_over() {
            return None;
        }
        let (sender, receiver) = oneshot::channel();
        let waiters = &mut self.cold().waiters;
        waiters.retain(|waiter| !waiter.sender.is_canceled());
        waiters.push(Waiter { run: None, sender });
        Some(receiver)
    }

    // ----- what a run asks ------------------------------------------------

    /// Whether this run was asked to stop. One that is over was.
    pub fn is_cancelled(&mut self, run: RunId) -> bool {
        self.active.find(run.0).is_none_or(|active| active.is_cancelled())
    }

    /// The token of this run, made on first use.
    pub fn token(&mut self, run: RunId) -> CancellationToken {
        let token = match self.active.find(run.0) {
            Some(active) if !active.is_cancelled() => return active.token.get_or_insert_default().clone(),
            Some(active) => active.token.get_or_insert_default().clone(),
            None => CancellationToken::new(),
        };
        token.cancel();
        token
    }

    /// Whether a run that is being polled is to be dropped instead. `waker`
    /// wakes the task that polls it.
    pub fn polled(&mut self, run: RunId, waker: &std::task::Waker) -> bool {
        let Some(active) = self.active.find(run.0) else { return true };
        if !active.abort && active.waker.as_ref().is_none_or(|known| !known.will_wake(waker)) {
            active.waker = Some(waker.clone());
        }
        active.abort
    }

    /// Remembers whether a first poll was enough.
    pub fn first_poll_was_pending(&mut self, pending: bool) {
        self.was_pending = pending;
    }

    /// Marks a run that itself waits for the shutdown. Returns whether it was
    /// active and not marked yet.
    pub fn enter_shutdown(&mut self, run: RunId) -> bool {
        match self.active.find(run.0) {
            Some(active) if !active.inside_shutdown => {
                active.inside_shutdown = true;
                true
            }
            _ => false,
        }
    }

    /// Whether this run is marked so.
    pub fn is_inside_shutdown(&mut self, run: RunId) -> bool {
        self.active.find(run.0).is_some_and(|active| active.inside_shutdown)
    }

    /// Counts a contained panic of a drop or a policy.
    pub fn contained_panic(&mut self) {
        self.cold().contained_panics += 1;
    }

    // ----- the stages -----------------------------------------------------

    /// Generate, misfire, overlap: decides on everything that is due.
    fn due(&mut self, plan: &Plan, first: i64, now: Moment, effects: &mut Effects) {
        let line_now = plan.line_now(now);
        // A trigger that fails to seek loses its schedule, not the occurrence at hand.
        let (sought, broken) = match plan.seek(&self.context(plan, now, None), first, line_now) {
            Ok(sought) => (sought, None),
            Err(reason) => (plan::Sought::alone(first), Some(reason)),
        };
        self.cursor = sought.cursor;
        self.ledger.due += sought.count;
        let lateness = plan.lateness(sought.latest, now);
        let misfire = lateness > plan.config.misfire.tolerance;
        if misfire {
            self.cold().misfires += 1;
        }

        // FireOnceLatest: the newest stands for all of them.
        let coalesced = sought.count - 1;
        self.ledger.coalesced += coalesced;
        let mut facts = self.facts(plan, sought.latest, now, Origin::Trigger);
        facts.coalesced = coalesced;
        facts.missed_since = (coalesced > 0).then(|| plan.due(first));

        let id = facts.id.0;
        let verdict = self.overlap(plan, None, facts, now, effects);
        let accepted = !matches!(verdict, Verdict::Skipped(_));
        match broken {
            Some(reason) => self.fault(reason, effects),
            None => self.ask_after(plan, now, accepted.then_some(id), effects),
        }

        let mut decided = Decided::new(plan.due(sought.cursor), plan.wall(sought.cursor, now), verdict);
        decided.due = sought.count;
        decided.at_least = sought.at_least;
        decided.coalesced = coalesced;
        decided.lateness = lateness;
        decided.misfire = misfire;
        effects.decided = Some(decided);
    }

    fn overlap(
        &mut self,
        plan: &Plan,
        choice: Option<&OverlapChoice>,
        facts: RunFacts,
        now: Moment,
        effects: &mut Effects,
    ) -> Verdict {
        let config = &*plan.config;
        let choice = choice.unwrap_or(&config.overlap);
        let has_room = self.active.len() < config.max_concurrent;
        let decision = match self.consult(choice, config.max_concurrent, &facts, now) {
            Ok(decision) => decision,
            Err(message) => {
                self.contained_panic();
                effects.policy_panic = Some(message.into());
                Decision::Skip
            }
        };
        match decision {
            Decision::Start if has_room => {
                self.accept(facts, false, now, effects);
                return Verdict::Accepted(facts.id);
            }
            Decision::Buffer | Decision::BufferDropOldest | Decision::BufferSupersede => {
                return self.buffer(plan, decision, facts, now, effects);
            }
            _ => {}
        }
        self.skip(facts, SkipReason::Overlap, effects);
        Verdict::Skipped(SkipReason::Overlap)
    }

    fn consult(
        &self,
        choice: &OverlapChoice,
        max_concurrent: usize,
        facts: &RunFacts,
        now: Moment,
    ) -> Result<Decision, String> {
        let mut view = OverlapView::new(now.monotonic, facts.due);
        view.lateness = facts.lateness;
        view.active = self.active.len();
        view.max_concurrent = max_concurrent;
        view.buffered = self.buffered();
        if !choice.needs_runs() {
            return Ok(choice.decide(&view));
        }
        let monotonic = Monotonic::from_nanoseconds;
        let runs: Vec<_> = self
            .active
            .iter()
            .map(|run| ActiveRun::new(monotonic(run.accepted), run.has_started().then(|| monotonic(run.started))))
            .collect();
        view.runs = &runs;
        contain(|| choice.decide(&view))
    }

    fn accept(&mut self, facts: RunFacts, waited: bool, now: Moment, effects: &mut Effects) {
        self.active.accept(facts.id.0, now.monotonic.nanoseconds(), waited);
        effects.hand_off = Some(facts);
    }

    fn buffer(
        &mut self,
        plan: &Plan,
        decision: Decision,
        facts: RunFacts,
        now: Moment,
        effects: &mut Effects,
    ) -> Verdict {
        if self.active.is_empty() {
            // There is no end to wait for, and nothing else would ever take it out.
            self.accept(facts, false, now, effects);
            return Verdict::Accepted(facts.id);
        }
        let capacity = plan.config.buffer;
        let full = self.buffered() >= capacity;
        if full && (capacity == 0 || decision == Decision::Buffer) {
            self.skip(facts, SkipReason::BufferFull, effects);
            return Verdict::Skipped(SkipReason::BufferFull);
        }
        let buffer = &mut self.cold().buffer;
        let displaced = match decision {
            Decision::BufferSupersede if full => buffer.pop_back().map(|waited| (waited, SkipReason::Superseded)),
            _ if full => buffer.pop_front().map(|waited| (waited, SkipReason::BufferFull)),
            _ => None,
        };
        buffer.push_back(facts);
        if let Some((waited, reason)) = displaced {
            self.skip(waited, reason, effects);
            effects.withdrawn = Some((reason, 1));
            self.continue_after(plan, waited.id.0, now, effects);
        }
        Verdict::Buffered
    }

    /// An occurrence has its fate: whoever waited for that goes on.
    fn settle(&mut self, plan: &Plan, id: u64, now: Moment, effects: &mut Effects) {
        self.continue_after(plan, id, now, effects);
        if self.active.len() < plan.config.max_concurrent && self.upcoming != Upcoming::Cancelled {
            let waiting = self.cold.as_mut().and_then(|cold| cold.buffer.pop_front());
            if let Some(facts) = waiting {
                self.accept(facts, true, now, effects);
            }
        }
        self.retire(effects);
    }

    /// The occurrence the trigger waits for has its fate: ask again.
    fn continue_after(&mut self, plan: &Plan, id: u64, now: Moment, effects: &mut Effects) {
        if self.upcoming == Upcoming::AfterCompletion(id) {
            self.ask(plan, now, Some(now.monotonic), effects);
            self.rearm(effects);
        }
    }

    /// Whether starts of this job are late, told at the first of an episode and
    /// at the end of it.
    fn pace(&mut self, plan: &Plan, facts: &RunFacts, waited: bool, now: Moment) -> (Option<Duration>, bool) {
        if facts.origin != Origin::Trigger || !matches!(plan.source, plan::Source::Periodic { .. }) {
            return (None, false);
        }
        let Due::Monotonic(due) = facts.due else { return (None, false) };
        let late = now.monotonic.saturating_since(due);
        // Waiting for an earlier run is being behind, however short the period.
        let behind = waited || late > plan.config.misfire.tolerance;
        let was_behind = std::mem::replace(&mut self.behind, behind);
        ((behind && !was_behind).then_some(late), was_behind && !behind)
    }

    // ----- the trigger ----------------------------------------------------

    fn context(&self, plan: &Plan, now: Moment, completion: Option<Monotonic>) -> TriggerContext {
        let mut context = TriggerContext::new(plan.registered);
        context.now = now;
        context.previous_due = (self.cursor != UNSET).then(|| plan.due(self.cursor));
        context.last_start =
            (self.ledger.last_start != UNSET).then(|| Monotonic::from_nanoseconds(self.ledger.last_start));
        context.completion = completion;
        context.due_count = self.ledger.due;
        context.started_count = self.ledger.started;
        context
    }

    /// Asks for the next occurrence after a decision; `waiting` is the occurrence
    /// that was accepted, if one was.
    fn ask_after(&mut self, plan: &Plan, now: Moment, waiting: Option<u64>, effects: &mut Effects) {
        if let Some(id) = waiting {
            match plan.next(&self.context(plan, now, None)) {
                Ok(Answer::AfterCompletion) => self.upcoming = Upcoming::AfterCompletion(id),
                answer => self.take(answer, effects),
            }
        } else {
            self.ask(plan, now, Some(now.monotonic), effects);
        }
    }

    fn ask(&mut self, plan: &Plan, now: Moment, completion: Option<Monotonic>, effects: &mut Effects) {
        let answer = plan.next(&self.context(plan, now, completion));
        self.take(answer, effects);
    }

    fn take(&mut self, answer: Result<Answer, String>, effects: &mut Effects) {
        match answer {
            Ok(Answer::At(at)) => self.upcoming = Upcoming::At(at),
            Ok(Answer::Never) if self.cursor == UNSET => self.upcoming = Upcoming::Idle,
            Ok(Answer::Never) => {
                self.upcoming = Upcoming::Exhausted;
                effects.exhausted = true;
                self.retire(effects);
            }
            Ok(Answer::AfterCompletion) => {
                let reason = "its trigger waits for a completion, and nothing is active";
                self.fault(reason.to_owned(), effects);
            }
            Err(reason) => self.fault(reason, effects),
        }
    }

    fn fault(&mut self, reason: String, effects: &mut Effects) {
        let reason: Arc<str> = reason.into();
        self.upcoming = Upcoming::Faulted;
        self.cold().fault = Some(Arc::clone(&reason));
        effects.fault = Some(reason);
    }

    /// Makes the timer's entry agree with what is due next.
    fn rearm(&mut self, effects: &mut Effects) {
        let wanted = match self.upcoming {
            Upcoming::At(at) => at,
            _ => i64::MAX,
        };
        if wanted != self.armed {
            self.armed = wanted;
            effects.arm = (wanted != i64::MAX).then_some(wanted);
        }
    }

    // ----- the books ------------------------------------------------------

    fn facts(&mut self, plan: &Plan, due: i64, now: Moment, origin: Origin) -> RunFacts {
        self.last_id += 1;
        RunFacts {
            id: RunId(self.last_id),
            due: plan.due(due),
            decided: now,
            lateness: plan.lateness(due, now),
            origin,
            coalesced: 0,
            missed_since: None,
            attempt: 1,
        }
    }

    fn skip(&mut self, facts: RunFacts, reason: SkipReason, effects: &mut Effects) {
        match reason {
            SkipReason::Overlap => self.ledger.overlap += 1,
            SkipReason::Coalesced => self.ledger.coalesced += 1,
            _ => self.cold().counts.skipped[reason.index()] += 1,
        }
        let nothing =
            Ending { outcome: Outcome::Completed, error: None, duration: Duration::ZERO, failures_in_a_row: 0 };
        self.answer_waiters(&facts, Fate::Skipped(reason), &nothing, effects);
    }

    fn record_outcome(&mut self, outcome: Outcome, error: Option<&SharedError>, now: Moment) -> u64 {
        if outcome == Outcome::Completed {
            if let Some(cold) = &mut self.cold {
                cold.failures_in_a_row = 0;
            }
            return 0;
        }
        let cold = self.cold();
        cold.counts.outcomes[outcome.index()] += 1;
        if !outcome.is_failure() {
            return cold.failures_in_a_row;
        }
        cold.failures_in_a_row += 1;
        if let Some(error) = error {
            cold.last_error = Some(LastError { error: Arc::clone(error), at: now.wall, outcome });
        }
        cold.failures_in_a_row
    }

    fn answer_waiters(&mut self, facts: &RunFacts, fate: Fate, ending: &Ending, effects: &mut Effects) {
        let Some(cold) = &mut self.cold else { return };
        if cold.waiters.is_empty() {
            return;
        }
        let (answered, waiting) = std::mem::take(&mut cold.waiters)
            .into_iter()
            .partition(|waiter| waiter.run.is_none_or(|run| run == facts.id.0));
        cold.waiters = waiting;
        let ended = Ended { run: *facts, fate, error: ending.error.clone(), duration: ending.duration };
        effects.answers.extend(answered.into_iter().map(|waiter: Waiter| (waiter.sender, ended.clone())));
    }

    /// A job that is over leaves the scheduler with its last run.
    fn retire(&mut self, effects: &mut Effects) {
        if !self.is_over() {
            return;
        }
        effects.retired = true;
        if let Some(cold) = &mut self.cold {
            cold.waiters.clear(); // their receivers learn that nothing will come
        }
    }

    /// Whether nothing can happen any more.
    fn is_over(&self) -> bool {
        matches!(self.upcoming, Upcoming::Cancelled | Upcoming::Exhausted)
            && self.active.is_empty()
            && self.buffered() == 0
    }

    fn buffered(&self) -> usize {
        self.cold.as_ref().map_or(0, |cold| cold.buffer.len())
    }

    fn cold(&mut self) -> &mut Cold {
        self.cold.get_or_insert_default()
    }
}
