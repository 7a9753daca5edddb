//! Tells what happens: observers, `tracing`, and standard error where there is
//! neither.
//!
//! # Ground rules
//!
//! Called with no lock held. Observers are foreign code and contained; an event
//! is only made if someone listens.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use beatline_core::{
    Callback, Decided, Event, EventKind, Finished, Moment, Observer, Outcome, RunFacts, SharedError, SkipReason,
    Stalled, Timestamp, Verdict, error_chain,
};

use crate::contain::{contain, discard};
use crate::job::JobCore;
use crate::state::Ending;
use crate::wall::Jump;

/// A run that went wrong, as `on_failure` is told.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Failure {
    /// The job's name.
    pub job: Arc<str>,
    /// The run.
    pub run: RunFacts,
    /// What it was due for, by the wall clock.
    pub due: Timestamp,
    /// Failed, panicked or timed out.
    pub outcome: Outcome,
    /// The error, or the panic's text.
    pub error: SharedError,
    /// How many failures in a row that makes.
    pub failures_in_a_row: u64,
}

/// `on_failure` is an observer like any other.
pub(crate) struct OnFailure<F>(pub(crate) F);

impl<F: Fn(&Failure) + Send + Sync + 'static> Observer for OnFailure<F> {
    fn observe(&self, event: &Event) {
        let (Some(job), EventKind::Finished(finished)) = (&event.job, &event.kind) else { return };
        let Some(error) = finished.error.as_ref().filter(|_| finished.outcome.is_failure()) else { return };
        (self.0)(&Failure {
            job: Arc::clone(job),
            run: finished.run,
            due: finished.due,
            outcome: finished.outcome,
            error: Arc::clone(error),
            failures_in_a_row: finished.failures_in_a_row,
        });
    }
}

pub(crate) struct Telemetry {
    pub(crate) scheduler: Arc<str>,
    pub(crate) observers: Vec<Box<dyn Observer>>,
    /// Never write to standard error.
    pub(crate) quiet: bool,
    pub(crate) observer_panics: AtomicU64,
    /// Stalls that began.
    pub(crate) stalls: AtomicU64,
}

impl Telemetry {
    pub(crate) fn has_observers(&self) -> bool {
        !self.observers.is_empty()
    }

    fn tell(&self, at: Moment, job: Option<&JobCore>, kind: EventKind) {
        let event = Event::new(at, job.map(|job| Arc::clone(&job.name)), kind);
        for observer in &self.observers {
            if let Err(message) = contain(|| observer.observe(&event)) {
                let panics = self.observer_panics.fetch_add(1, Ordering::Relaxed) + 1;
                if panics.is_power_of_two() {
                    tracing::error!(target: "beatline", scheduler = ?self.scheduler, panics, message, "an observer panicked");
                }
            }
        }
        discard(event);
    }

    /// Whether nobody would hear of a failure otherwise.
    fn is_alone(&self) -> bool {
        !self.quiet && self.observers.is_empty() && !tracing::dispatcher::has_been_set()
    }

    pub(crate) fn added(&self, job: &JobCore, now: Moment) {
        tracing::debug!(target: "beatline", scheduler = ?self.scheduler, job = ?job.name, trigger = job.plan.config.trigger, "added");
        if self.has_observers() {
            self.tell(now, Some(job), EventKind::Added);
        }
    }

    pub(crate) fn decided(&self, job: &JobCore, decided: Decided, now: Moment) {
        let (name, scheduler) = (&job.name, &self.scheduler);
        if decided.misfire {
            tracing::warn!(
                target: "beatline", scheduler = ?scheduler, job = ?name, lateness = ?decided.lateness,
                coalesced = decided.coalesced, "missed: late by more than the tolerance"
            );
        }
        if let Verdict::Skipped(reason) = decided.verdict {
            tracing::info!(target: "beatline", scheduler = ?scheduler, job = ?name, reason = reason.label(), "skipped");
        }
        if self.has_observers() {
            self.tell(now, Some(job), EventKind::Decided(decided));
        }
    }

    pub(crate) fn withdrawn(&self, job: &JobCore, reason: SkipReason, count: u64, now: Moment) {
        tracing::info!(target: "beatline", scheduler = ?self.scheduler, job = ?job.name, reason = reason.label(), count, "skipped");
        if self.has_observers() {
            self.tell(now, Some(job), EventKind::Skipped { reason, count });
        }
    }

    pub(crate) fn started(&self, job: &JobCore, facts: &RunFacts, now: Moment) {
        tracing::debug!(target: "beatline", scheduler = ?self.scheduler, job = ?job.name, run = facts.id.0, lateness = ?facts.lateness, "started");
        if self.has_observers() {
            self.tell(now, Some(job), EventKind::Started(*facts));
        }
    }

    pub(crate) fn finished(&self, job: &JobCore, facts: &RunFacts, ending: &Ending, now: Moment) {
        let (name, scheduler, duration) = (&job.name, &self.scheduler, ending.duration);
        let outcome = ending.outcome;
        if let Some(error) = ending.error.as_ref().filter(|_| outcome.is_failure()) {
            let in_a_row = ending.failures_in_a_row;
            // A job that always fails would flood the log: 1st, 2nd, 4th, 8th … of an episode.
            if in_a_row.is_power_of_two() {
                tracing::error!(
                    target: "beatline", scheduler = ?scheduler, job = ?name, run = facts.id.0, outcome = outcome.label(),
                    ?duration, in_a_row, error = error_chain(&**error), "run failed"
                );
            } else {
                tracing::debug!(
                    target: "beatline", scheduler = ?scheduler, job = ?name, run = facts.id.0, outcome = outcome.label(),
                    ?duration, in_a_row, error = error_chain(&**error), "run failed"
                );
            }
            if in_a_row == 1 && self.is_alone() {
                // A panic's and a time-out's text already say what happened.
                let failed = if outcome == Outcome::Failed { "failed: " } else { "" };
                eprintln!("beatline: job {name:?} {failed}{}", error_chain(&**error));
            }
        } else {
            tracing::debug!(
                target: "beatline", scheduler = ?scheduler, job = ?name, run = facts.id.0, outcome = outcome.label(), ?duration,
                "ended"
            );
        }
        if self.has_observers() {
            let due = job.plan.wall_of(facts.due, facts.decided);
            let mut finished = Finished::new(*facts, due, outcome, duration);
            finished.error.clone_from(&ending.error);
            finished.failures_in_a_row = ending.failures_in_a_row;
            self.tell(now, Some(job), EventKind::Finished(finished));
        }
    }

    pub(crate) fn fell_behind(&self, job: &JobCore, by: Duration, now: Moment) {
        tracing::warn!(target: "beatline", scheduler = ?self.scheduler, job = ?job.name, "behind by {by:?}");
        if self.has_observers() {
            self.tell(now, Some(job), EventKind::FellBehind { by });
        }
    }

    pub(crate) fn caught_up(&self, job: &JobCore, now: Moment) {
        tracing::info!(target: "beatline", scheduler = ?self.scheduler, job = ?job.name, "caught up");
        if self.has_observers() {
            self.tell(now, Some(job), EventKind::CaughtUp);
        }
    }

    pub(crate) fn exhausted(&self, job: &JobCore, now: Moment) {
        tracing::debug!(target: "beatline", scheduler = ?self.scheduler, job = ?job.name, "exhausted");
        if self.has_observers() {
            self.tell(now, Some(job), EventKind::Exhausted);
        }
    }

    pub(crate) fn faulted(&self, job: &JobCore, reason: Arc<str>, now: Moment) {
        let name = &job.name;
        tracing::error!(target: "beatline", scheduler = ?self.scheduler, job = ?name, reason = &*reason, "faulted");
        if self.is_alone() {
            eprintln!("beatline: job {name:?} is scheduled no more: {reason}");
        }
        if self.has_observers() {
            self.tell(now, Some(job), EventKind::Faulted { reason });
        }
    }

    pub(crate) fn removed(&self, job: &JobCore, running: u64, now: Moment) {
        tracing::debug!(target: "beatline", scheduler = ?self.scheduler, job = ?job.name, running, "removed");
        if self.has_observers() {
            self.tell(now, Some(job), EventKind::Removed { running });
        }
    }

    pub(crate) fn callback_panicked(&self, job: &JobCore, callback: Callback, message: Arc<str>, now: Moment) {
        tracing::error!(
            target: "beatline", scheduler = ?self.scheduler, job = ?job.name, callback = callback.label(),
            message = &*message, "a callback panicked"
        );
        if self.has_observers() {
            self.tell(now, Some(job), EventKind::CallbackPanicked { callback, message });
        }
    }

    pub(crate) fn over_budget(&self, job: &JobCore, took: Duration) {
        tracing::warn!(
            target: "beatline", scheduler = ?self.scheduler, job = ?job.name, ?took,
            "an inline callback holds up every other job; use `run` or `run_blocking`"
        );
    }

    pub(crate) fn stalled(&self, stalled: Stalled, now: Moment) {
        let culprit = stalled.culprit.as_deref();
        let what = if stalled.driver_late { "the runtime was stalled" } else { "a run blocks its worker" };
        let what = if stalled.over { "it is over" } else { what };
        match culprit {
            Some(job) => tracing::warn!(
                target: "beatline", scheduler = ?self.scheduler, ?job, lag = ?stalled.lag,
                "stall: {what}; move blocking work to `run_blocking`"
            ),
            None => tracing::warn!(
                target: "beatline", scheduler = ?self.scheduler, lag = ?stalled.lag,
                "stall: {what}; the cause is not a beatline job"
            ),
        }
        let stalls = if stalled.over { 0 } else { self.stalls.fetch_add(1, Ordering::Relaxed) + 1 };
        if stalls.is_power_of_two() && self.is_alone() {
            let culprit = culprit.map_or("not a beatline job".to_owned(), |job| format!("job {job:?}"));
            eprintln!("beatline: stalled for {:?} so far: {culprit}", stalled.lag);
        }
        if self.has_observers() {
            let event = EventKind::Stalled(stalled);
            self.tell(now, None, event);
        }
    }

    pub(crate) fn clock_jumped(&self, jump: Jump, now: Moment) {
        let Jump { by, backward } = jump;
        tracing::warn!(target: "beatline", scheduler = ?self.scheduler, ?by, backward, "the wall clock jumped");
        if self.has_observers() {
            self.tell(now, None, EventKind::ClockJump { by, backward });
        }
    }

    pub(crate) fn shutting_down(&self, now: Moment) {
        tracing::info!(target: "beatline", scheduler = ?self.scheduler, "shutting down");
        if self.has_observers() {
            self.tell(now, None, EventKind::ShuttingDown);
        }
    }

    pub(crate) fn dropped(&self, jobs: usize, running: usize) {
        tracing::warn!(
            target: "beatline", scheduler = ?self.scheduler, jobs, running,
            "the scheduler was dropped without a shutdown; its jobs end here"
        );
    }
}
