//! The simulated end of a scheduler, in the stages of the real one.

use std::time::Duration;

use beatline_core::{Cause, Monotonic, SkipReason};
use beatline_scheduler::simulation::Effects;

use super::model::Expected;
use super::scenario::Kind;
use super::violation::{Broken, Check};
use super::world::World;

/// After the abort, how long a body that does not return is waited for.
const LAST_WAIT: Duration = Duration::from_secs(1);

/// How far the end has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Stage {
    #[default]
    Open,
    Asked,
    Draining,
    Stopping(Monotonic),
    Aborting(Monotonic),
    Over,
}

/// The end of the scheduler.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Ending {
    stage: Stage,
    drains: bool,
    deadline: Duration,
    grace: Duration,
    stop_at: Option<Monotonic>,
}

impl Ending {
    pub(super) fn was_asked(&self) -> bool {
        self.stage != Stage::Open
    }

    pub(super) fn is_over(&self) -> bool {
        self.stage == Stage::Over
    }

    pub(super) fn is_asked_and_open(&self) -> bool {
        self.was_asked()
    }

    /// Why no run may start any more, if so.
    pub(super) fn refusal(&self) -> Option<SkipReason> {
        match self.stage {
            Stage::Open => None,
            Stage::Asked | Stage::Draining if self.drains => None,
            _ => Some(SkipReason::Shutdown),
        }
    }
}

impl World {
    /// Someone asks for the shutdown, or drops the scheduler.
    pub(super) fn ask_for_the_end(&mut self) -> Check {
        let way = self.random.below(4);
        self.ending = Ending {
            stage: Stage::Asked,
            drains: way == 1,
            deadline: self.random.duration(Duration::from_secs(2)),
            grace: self.random.duration(Duration::from_millis(100)),
            stop_at: None,
        };
        self.ending.stop_at = Some(self.now.monotonic.saturating_add(self.ending.deadline));
        self.log(&[7, way]);
        if way == 0 {
            return self.drop_scheduler();
        }
        self.notify();
        Ok(())
    }

    /// One look at the end. `None` when all is over.
    pub(super) fn advance_the_end(&mut self) -> Result<Option<Monotonic>, Broken> {
        loop {
            if self.ending.stage != Stage::Asked && self.active == 0 {
                return Ok(None);
            }
            let now = self.now.monotonic;
            match self.ending.stage {
                Stage::Asked => {
                    if !self.ending.drains {
                        self.empty_buffers()?;
                    }
                    self.ending.stage = Stage::Draining;
                }
                Stage::Draining => {
                    let stop_at = self.ending.stop_at.unwrap_or(now);
                    if now < stop_at {
                        return Ok(Some(stop_at));
                    }
                    self.ending.stage = Stage::Stopping(now.saturating_add(self.ending.grace));
                    self.empty_buffers()?;
                    for job in self.live.clone() {
                        self.ask_to_stop(job, Cause::Shutdown);
                    }
                }
                Stage::Stopping(abort_at) => {
                    if now < abort_at {
                        return Ok(Some(abort_at));
                    }
                    for job in self.live.clone() {
                        self.abort(job, Cause::Shutdown);
                    }
                    self.ending.stage = Stage::Aborting(now.saturating_add(LAST_WAIT));
                }
                Stage::Aborting(give_up_at) => {
                    let unstoppable = |job: &usize| {
                        let model = &self.jobs[*job].model;
                        if model.spec.kind == Kind::Async { 0 } else { model.running() }
                    };
                    let unstoppable: usize = self.live.iter().map(unstoppable).sum();
                    if self.active <= unstoppable || now >= give_up_at {
                        return Ok(None);
                    }
                    return Ok(Some(give_up_at));
                }
                Stage::Open | Stage::Over => return Ok(None),
            }
        }
    }

    fn empty_buffers(&mut self) -> Check {
        for job in self.live.clone() {
            let (mut effects, mut expected) = (Effects::default(), Expected::default());
            let this = &mut self.jobs[job];
            this.state.empty_buffer(SkipReason::Shutdown, &mut effects);
            this.model.empty(SkipReason::Shutdown, &mut expected);
            self.absorb(job, effects, &expected, false)?;
        }
        Ok(())
    }

    fn drop_scheduler(&mut self) -> Check {
        self.ending.stage = Stage::Over;
        for job in self.live.clone() {
            self.cancel(job, SkipReason::Shutdown)?;
            self.ask_to_stop(job, Cause::Shutdown);
            self.abort(job, Cause::Shutdown);
        }
        self.conclude()
    }

    /// Nothing starts any more and nobody looks: hand-offs are refused, and every
    /// job is cancelled.
    pub(super) fn conclude(&mut self) -> Check {
        self.ending.stage = Stage::Over;
        self.driver_at = None;
        self.commands.clear();
        while let Some((job, facts)) = self.injector.pop_front() {
            let now = self.now;
            let this = &mut self.jobs[job];
            let expected = this.model.refuse(facts.id.0, SkipReason::Shutdown, now);
            let effects = this.state.refuse(&this.plan, &facts, SkipReason::Shutdown, now);
            self.active -= 1;
            self.absorb(job, effects, &expected, false)?;
        }
        for job in self.live.clone() {
            self.cancel(job, SkipReason::Shutdown)?;
        }
        Ok(())
    }
}
