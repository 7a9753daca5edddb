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
mod overlap;
mod plan;
mod report;
mod schedule;
mod stopping;

use std::sync::Arc;
use std::time::Duration;

use beatline_core::{
    Cause, Decided, Fate, Moment, Monotonic, Origin, Outcome, RunFacts, RunId, SharedError, SkipReason,
};
use futures::channel::oneshot;

use self::active::{ActiveRuns, UNSET};
use self::cold::{Cold, Waiter};
use self::ledger::Ledger;
use crate::config::OverlapChoice;
use crate::mutants::mutant;

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
            cold: None,
        }
    }

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
            if mutant!("wall-early", first <= plan.line_now(now), true) {
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
        Gate::Passed { fell_behind, caught_up }
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
        let failures_in_a_row = self.record_outcome(outcome, error.as_ref(), now, &mut effects);
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

    /// Counts a contained panic of a drop or a policy.
    pub fn contained_panic(&mut self) {
        self.cold().contained_panics += 1;
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

    fn record_outcome(
        &mut self,
        outcome: Outcome,
        error: Option<&SharedError>,
        now: Moment,
        effects: &mut Effects,
    ) -> u64 {
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
            effects.replaced_error =
                cold.last_error.replace(LastError { error: Arc::clone(error), at: now.wall, outcome });
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
