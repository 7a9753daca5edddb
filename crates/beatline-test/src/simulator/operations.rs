//! What is done to jobs and to time while they run.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use beatline_core::{Cause, Misfire, Moment, SkipReason, Trigger};
use beatline_scheduler::simulation::{JobConfig, OrderKey, Plan, Removal, State};
use futures::channel::oneshot;

use super::model::{Model, Upcoming};
use super::scenario::{self, JobSpec};
use super::trigger::{nanoseconds, on_line};
use super::violation::{Check, Invariant, check};
use super::world::{Command, Event, Job, World};

/// No more jobs than this at once, the herd apart.
const MOST_JOBS: usize = 14;

impl World {
    /// Something is done.
    pub(super) fn operate(&mut self) -> Check {
        match self.random.below(16) {
            0..6 => self.request()?,
            6 | 7 => self.cancel_one()?,
            8..11 if self.live.len() < MOST_JOBS => {
                let spec = scenario::draw_job(&mut self.random);
                self.add(spec)?;
            }
            11 | 12 => {
                let stall = self.random.duration(self.weather.stall);
                self.pass(stall);
            }
            13 if !self.weather.suspend.is_zero() => {
                let sleep = self.random.duration(self.weather.suspend);
                self.move_wall(nanoseconds(sleep));
                self.report.elapsed += sleep;
            }
            14 if !self.weather.wall_step.is_zero() => {
                let most = nanoseconds(self.weather.wall_step);
                let step = self.random.below(2 * most as u64) as i64 - most;
                self.move_wall(step);
            }
            _ => {}
        }
        if !self.live.iter().any(|job| matches!(self.jobs[*job].model.upcoming, Upcoming::At(_))) {
            let spec = scenario::steady(&mut self.random);
            self.add(spec)?;
        }
        Ok(())
    }

    /// Someone comes between the timer and a job's lock.
    pub(super) fn meddle(&mut self) -> Check {
        if self.random.once_in(3) { self.cancel_one() } else { self.request() }
    }

    pub(super) fn add(&mut self, spec: JobSpec) -> Check {
        let now = self.now;
        let job = self.jobs.len();
        let registered = match spec.last_due {
            None => now,
            Some(ago) => {
                let last = now.wall.saturating_sub(ago);
                Moment::new(now.monotonic_at(last), last)
            }
        };
        let trigger: Box<dyn Trigger> = spec.trigger.build(registered);
        let config = JobConfig {
            overlap: spec.policy.build(),
            max_concurrent: spec.max_concurrent,
            buffer: spec.policy.buffer(),
            misfire: Misfire::default().tolerance(spec.tolerance),
            timeout: spec.timeout,
            timeout_grace: spec.timeout_grace,
            priority: spec.priority,
            trigger: String::new(),
            longest_gap: None,
        };
        let plan = Plan::new(trigger, registered, spec.continued, Arc::new(config));
        let key = OrderKey::new(spec.priority, job as u64);
        let decided = spec.continued.then(|| on_line(plan.line, registered));
        self.jobs.push(Job {
            plan,
            state: State::new(),
            model: Model::new(spec, registered),
            key,
            cancelled: false,
            decided,
            last_started: 0,
            overtaken: BTreeSet::new(),
        });
        self.live.push(job);
        let this = &mut self.jobs[job];
        let expected = this.model.register();
        let effects = this.state.register(&this.plan, now);
        self.absorb(job, effects, &expected, false)?;
        Ok(())
    }

    fn random_job(&mut self) -> Option<usize> {
        let count = self.live.len() as u64;
        (count > 0).then(|| self.live[self.random.below(count) as usize])
    }

    fn request(&mut self) -> Check {
        let Some(job) = self.random_job() else { return Ok(()) };
        let now = self.now;
        let choice = self.random.once_in(3).then(|| scenario::draw_policy(&mut self.random));
        let (sender, receiver) = oneshot::channel();
        let this = &mut self.jobs[job];
        let expected = this.model.run_now(choice, now, receiver);
        let built = choice.map(|choice| choice.build());
        let effects = this.state.run_now(&this.plan, built.as_ref(), sender, now);
        match (effects, expected) {
            (Some(effects), Some(expected)) => self.absorb(job, effects, &expected, false).map(|_| ()),
            (effects, expected) => check(effects.is_none() && expected.is_none(), Invariant::Rules, || {
                format!("job {job}: a request was taken: {}, must be: {}", effects.is_some(), expected.is_some())
            }),
        }
    }

    fn cancel_one(&mut self) -> Check {
        // Now and then one that is over: its handle still exists.
        let any = self.random.once_in(4).then(|| self.random.below(self.jobs.len() as u64) as usize);
        let Some(job) = any.or_else(|| self.random_job()) else { return Ok(()) };
        self.cancel(job, SkipReason::Removed)?;
        if self.random.once_in(2) {
            // As `stop(grace)` does.
            self.ask_to_stop(job, Cause::User);
            let grace = self.random.duration(Duration::from_millis(50));
            self.at(grace, Event::AbortAll { job });
        }
        Ok(())
    }

    pub(super) fn cancel(&mut self, job: usize, reason: SkipReason) -> Check {
        let this = &mut self.jobs[job];
        let expected = this.model.cancel(reason);
        let removal = this.state.cancel(reason);
        this.cancelled = true;
        match (removal, expected) {
            (Removal::AlreadyGone, None) => Ok(()),
            (Removal::Cancelled { effects, running, deadline }, Some((expected, wanted, armed))) => {
                let found = (running, (deadline != i64::MAX).then_some(deadline));
                check(found == (wanted, armed), Invariant::Rules, || {
                    format!("job {job}: the cancel found {found:?}, must be {:?}", (wanted, armed))
                })?;
                if let Some(deadline) = armed {
                    let key = self.key(job, deadline);
                    // If it is not in the timer yet, or just came out of it, there is no dead entry.
                    if self.entries.remove(&key) {
                        self.dead.insert(key);
                    }
                    self.command(Command::Disarm(job, deadline));
                }
                self.absorb(job, *effects, &expected, false)?;
                Ok(())
            }
            (removal, expected) => check(false, Invariant::Rules, || {
                format!("job {job}: the cancel answered {removal:?}, must be {expected:?}")
            }),
        }
    }
}
