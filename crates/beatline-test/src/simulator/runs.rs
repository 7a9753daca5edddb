//! The simulated runners and bodies.

use std::time::Duration;

use beatline_core::{Cause, Outcome, RunFacts, RunId, SkipReason};
use beatline_scheduler::simulation::{End, Gate};

use super::driver::ROOM;
use super::model::EndKind;
use super::scenario::Kind;
use super::violation::{Check, Invariant, check};
use super::world::{Event, World};
use crate::random::{Random, mix};

/// A run that takes many times as long as usual takes so many times as long.
const SPIKE: u32 = 10;

/// How long a run that was asked to stop takes at most to do so.
const REACTION: Duration = Duration::from_millis(20);

impl World {
    /// A runner takes a hand-off.
    pub(super) fn run_next_hand_off(&mut self) -> Check {
        let position = match self.injector.len() {
            many if many > 1 && self.weather.overtaking => self.random.below(many.min(4) as u64) as usize,
            _ => 0,
        };
        let Some((job, facts)) = self.injector.remove(position) else { return Ok(()) };
        if self.injector.is_empty() {
            self.runner_at = None;
        } else {
            self.wake_runner();
        }
        if self.injector.len() == ROOM / 2 {
            self.driver_at = self.driver_at.map(|at| at.min(self.monotonic()));
        }
        self.pass_gate(job, facts)
    }

    /// The one step from accepted to started, and the body's first poll.
    pub(super) fn pass_gate(&mut self, job: usize, facts: RunFacts) -> Check {
        let (now, id) = (self.now, facts.id.0);
        let refusal = self.ending.refusal();
        let this = &mut self.jobs[job];
        let must_refuse = if this.cancelled { Some(refusal.unwrap_or(SkipReason::Removed)) } else { refusal };
        let blocking = this.model.spec.kind != Kind::Async;
        let decided = this.model.decided_at(id);
        match this.state.gate(&this.plan, &facts, refusal, blocking, now) {
            Gate::Refused(effects) => {
                let message = || format!("job {job}: run {id} was refused");
                let Some(reason) = must_refuse else { return check(false, Invariant::Rules, message) };
                let expected = this.model.refuse(id, reason, now);
                self.active -= 1;
                self.absorb(job, *effects, &expected, false)?;
                self.notify_at_the_end();
                Ok(())
            }
            Gate::Passed { .. } => {
                let early = || format!("job {job}: run {id} started after a cancel or a shutdown had returned");
                check(must_refuse.is_none(), Invariant::NeverEarly, early)?;
                let early = || format!("job {job}: run {id} started at {now:?}, decided {decided:?}");
                check(decided.is_some_and(|then| then <= now.monotonic), Invariant::NeverEarly, early)?;
                let first = id > this.last_started || this.overtaken.remove(&id);
                check(first, Invariant::NeverTwice, || format!("job {job}: run {id} started twice"))?;
                this.overtaken.extend(this.last_started + 1..id);
                this.last_started = this.last_started.max(id);
                this.model.start(id, now);
                self.report.fires += 1;
                self.report.steps += 1;
                self.log(&[5, job as u64, id]);
                self.check_books(job)?;
                self.begin(job, id)
            }
        }
    }

    /// What the body does follows from the seed, the job and the run alone.
    fn begin(&mut self, job: usize, id: u64) -> Check {
        let mut random = Random::new(self.seed ^ mix((job as u64) << 40 ^ id));
        let spec = &self.jobs[job].model.spec;
        let mut takes = spec.duration / 2 + random.duration(spec.duration);
        if random.once_in(spec.spike) {
            takes *= SPIKE;
        }
        let (failed, panicked) = (random.once_in(spec.fails), random.once_in(spec.panics));
        let end = Event::End { job, run: id, failed, panicked };
        if takes.is_zero() || spec.kind == Kind::Inline {
            let end = if panicked { EndKind::Panicked } else { EndKind::of(failed) };
            return self.finish(job, id, end);
        }
        if let Some(timeout) = spec.timeout.filter(|timeout| *timeout < takes) {
            self.at(timeout, Event::TimeOut { job, run: id });
        }
        self.at(takes, end);
        Ok(())
    }

    pub(super) fn finish(&mut self, job: usize, run: u64, end: EndKind) -> Check {
        let now = self.now;
        let error = self.error.clone();
        let this = &mut self.jobs[job];
        let Some(outcome) = this.model.outcome_of(run, end) else { return Ok(()) }; // it ended before
        let Some(facts) = this.model.find(run).map(|active| active.facts) else { return Ok(()) };
        let result = match end {
            EndKind::Succeeded => End::Returned(Ok(())),
            EndKind::Failed => End::Returned(Err(error)),
            EndKind::Panicked => End::Panicked(error),
            EndKind::Dropped => End::Dropped,
        };
        let expected = this.model.finish(run, outcome, now);
        let (effects, ending) = this.state.finish(&this.plan, &facts, result, now);
        let found = ending.map(|ending| ending.outcome);
        check(found == Some(outcome), Invariant::Rules, || {
            format!("job {job}: run {run} ended as {found:?}, must be {outcome:?}")
        })?;
        self.log(&[6, run, outcome.index() as u64]);
        self.active -= 1;
        self.absorb(job, effects, &expected, false)?;
        self.notify_at_the_end();
        Ok(())
    }

    pub(super) fn time_out(&mut self, job: usize, run: u64) -> Check {
        let this = &mut self.jobs[job];
        if this.model.find(run).is_none() {
            return Ok(());
        }
        this.model.time_out(run);
        let token = this.state.time_out(RunId(run));
        check(token.is_none(), Invariant::Rules, || format!("job {job}: run {run} has a token nobody asked for"))?;
        let asked = this.state.is_cancelled(RunId(run));
        check(asked, Invariant::Rules, || format!("job {job}: run {run} timed out and was not asked to stop"))?;
        let (kind, grace, cooperates) = {
            let spec = &this.model.spec;
            (spec.kind, spec.timeout_grace, spec.cooperates)
        };
        if cooperates {
            self.stop_soon(job, run);
        }
        match kind {
            Kind::Async if grace.is_zero() => self.finish(job, run, EndKind::Dropped)?,
            Kind::Async => self.at(grace, Event::Drop { job, run }),
            _ => {} // nobody can drop it
        }
        Ok(())
    }

    /// The active runs of a job are asked to stop; those that listen do.
    pub(super) fn ask_to_stop(&mut self, job: usize, cause: Cause) {
        let this = &mut self.jobs[job];
        this.model.ask_to_stop(cause);
        drop(this.state.ask_to_stop(cause));
        if this.model.spec.cooperates {
            let running: Vec<_> = this.model.active.iter().filter(|run| run.started.is_some()).collect();
            let running: Vec<_> = running.into_iter().map(|run| run.facts.id.0).collect();
            for run in running {
                self.stop_soon(job, run);
            }
        }
    }

    fn stop_soon(&mut self, job: usize, run: u64) {
        let reaction = Random::new(self.seed ^ mix(run)).duration(REACTION);
        self.at(reaction, Event::End { job, run, failed: run % 3 == 0, panicked: false });
    }

    /// The active runs of a job are dropped at their next poll, which comes at
    /// once.
    pub(super) fn abort(&mut self, job: usize, cause: Cause) {
        let this = &mut self.jobs[job];
        drop(this.state.abort(cause));
        if this.model.spec.kind != Kind::Async {
            return;
        }
        this.model.ask_to_stop(cause);
        let running: Vec<_> = this.model.active.iter().filter(|run| run.started.is_some()).collect();
        let running: Vec<_> = running.into_iter().map(|run| run.facts.id.0).collect();
        for run in running {
            self.at(Duration::ZERO, Event::Drop { job, run });
        }
    }

    /// While a scheduler ends, each end wakes the driver.
    fn notify_at_the_end(&mut self) {
        if self.ending.was_asked() {
            self.notify();
        }
    }
}

impl EndKind {
    fn of(failed: bool) -> Self {
        if failed { EndKind::Failed } else { EndKind::Succeeded }
    }
}

/// The labels are indexed by outcome; a new one must not go uncounted.
const _: () = assert!(Outcome::LABELS.len() == 6);
