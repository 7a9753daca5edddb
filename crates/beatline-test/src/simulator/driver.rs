//! The simulated driver: what the scheduler's own loop does, in the same order
//! and the same portions.

use std::time::Duration;

use beatline_core::{Line, Monotonic, RunFacts};
use beatline_scheduler::simulation::{Look, PORTION};

use super::scenario::Kind;
use super::trigger::on_line;
use super::violation::{Broken, Check, Invariant, check};
use super::world::{Command, World};

/// How many occurrences of a herd are on their way at once.
pub(super) const ROOM: usize = 4096;

/// A tick with more entries than this is worked off in portions.
const HERD: usize = 4096;

/// How long a job on the wall clock lets the driver sleep at most.
const RECHECK: Duration = Duration::from_secs(10);

const MILLISECOND: i64 = 1_000_000;

impl World {
    /// One turn of the loop.
    pub(super) fn look(&mut self) -> Check {
        self.report.looks += 1;
        self.notified = false;
        let taken = self.take_commands();
        let busy = !self.commands.is_empty();
        let now = self.monotonic();
        let look = match self.ending.is_asked_and_open() {
            false => self.advance(taken)?,
            true => match self.advance_the_end()? {
                Some(at) => Look::At(at),
                None => {
                    self.driver_at = None;
                    return self.conclude();
                }
            },
        };
        self.last_look_was_now = busy || matches!(look, Look::Now | Look::WhenRoom);
        self.driver_at = match look {
            _ if busy || self.notified || look == Look::Now => Some(now),
            Look::At(at) => {
                let tick = (now.div_euclid(MILLISECOND) + 1) * MILLISECOND;
                let delay = self.random.duration(self.weather.driver_delay);
                let at = Monotonic::from_nanoseconds(at.nanoseconds().max(tick));
                Some(at.saturating_add(delay).nanoseconds()).filter(|at| *at != i64::MAX)
            }
            Look::WhenRoom if self.injector.len() <= ROOM / 2 => Some(now),
            Look::WhenRoom => Some(now + MILLISECOND),
            Look::Now | Look::WhenAdded => None,
        };
        Ok(())
    }

    fn take_commands(&mut self) -> usize {
        let portion = self.commands.len().min(PORTION);
        for _ in 0..portion {
            match self.commands.pop_front() {
                None => break,
                Some(Command::Arm(job, deadline)) => self.arm(job, deadline),
                Some(Command::Disarm(job, deadline)) => {
                    let line = self.jobs[job].plan.line;
                    let Self { engine, jobs, .. } = self;
                    let before = engine.len();
                    engine.disarm(
                        line,
                        deadline,
                        |found| *found == job,
                        |found| !jobs[*found].state.is_job_cancelled(),
                    );
                    if engine.len() < before {
                        // It was dropped, perhaps with all other dead ones.
                        let key = self.key(job, deadline);
                        self.dead.remove(&key);
                    }
                }
            }
        }
        portion
    }

    fn arm(&mut self, job: usize, deadline: i64) {
        let (line, order) = (self.jobs[job].plan.line, self.jobs[job].key);
        self.engine.arm(line, deadline, order, job);
        let key = self.key(job, deadline);
        // A job that was cancelled before its command was taken lies there dead.
        if self.jobs[job].model.armed == Some(deadline) {
            self.entries.insert(key);
        } else {
            self.dead.insert(key);
        }
    }

    /// Decides on what is due and hands off what shall run.
    fn advance(&mut self, taken: usize) -> Result<Look, Broken> {
        let now = self.now;
        let room = ROOM.saturating_sub(self.injector.len());
        let mut due = Vec::new();
        let fired = self.engine.advance(now, room, |job, deadline| due.push((job, deadline)));
        self.check_order(&due)?;
        self.check_nothing_left(fired, room)?;
        self.check_wake(taken + fired)?;

        let (mut again, mut inline) = (Vec::new(), Vec::new());
        for (job, deadline) in due {
            if self.random.once_in(256) {
                // Another thread gets the job's lock first.
                self.meddle()?;
            }
            let (arm, handed) = self.fire(job, deadline)?;
            again.extend(arm.map(|deadline| (job, deadline)));
            match handed {
                Some(facts) if self.jobs[job].model.spec.kind == Kind::Inline => inline.push((job, facts)),
                Some(facts) => self.hand_off(job, facts),
                None => {}
            }
        }
        for (job, deadline) in again {
            self.arm(job, deadline);
        }
        for (job, facts) in inline {
            self.pass_gate(job, facts)?;
        }
        let look = self.engine.next_look(now, self.injector.len() < ROOM);
        self.check_look(look)?;
        Ok(look)
    }

    /// One entry of the timer has come.
    fn fire(&mut self, job: usize, deadline: i64) -> Result<(Option<i64>, Option<RunFacts>), Broken> {
        let now = self.now;
        let this = &mut self.jobs[job];
        let expected = this.model.timer(deadline, now);
        let effects = this.state.timer(&this.plan, deadline, now);
        let decided = expected.is_some();
        let done = self.absorb(job, effects, &expected.unwrap_or_default(), true)?;
        if decided {
            self.check_grid(job)?;
        }
        Ok(done)
    }

    // ----- checks ---------------------------------------------------------

    /// I6, and that the timers give back what was put in and nothing else.
    fn check_order(&mut self, due: &[(usize, i64)]) -> Check {
        let whole = self.jobs.len() <= HERD;
        for (job, deadline) in due {
            let key = self.key(*job, *deadline);
            if self.dead.remove(&key) {
                continue;
            }
            let line = self.jobs[*job].model.line();
            let early = || format!("job {job} came at {:?}, due at {deadline}", self.now);
            check(*deadline <= on_line(line, self.now), Invariant::NeverEarly, early)?;
            let known = self.entries.contains(&key);
            check(known, Invariant::NeverTwice, || format!("job {job} came for {deadline} and was not armed"))?;
            let (line, ..) = key;
            // Of a herd only equal deadlines are in order: later ticks go first.
            let from = if whole { i64::MIN } else { *deadline };
            let before = self.entries.range((line, from, i16::MIN, 0)..key).next();
            check(before.is_none(), Invariant::Order, || format!("{key:?} came before {before:?}"))?;
            self.entries.remove(&key);
        }
        Ok(())
    }

    /// Whatever is due was taken, unless the portion was full.
    fn check_nothing_left(&self, fired: usize, room: usize) -> Check {
        if fired >= PORTION.min(room) {
            return Ok(());
        }
        match self.first_deadlines().find(|(line, at)| *at <= on_line(*line, self.now)) {
            None => Ok(()),
            Some(left) => check(false, Invariant::NeverVanishes, || format!("{left:?} is due and was left behind")),
        }
    }

    fn first_deadlines(&self) -> impl Iterator<Item = (Line, i64)> + '_ {
        [(Line::Monotonic, 0), (Line::Wall, 1)].into_iter().filter_map(|(line, number)| {
            let first = self.entries.range((number, i64::MIN, i16::MIN, 0)..).next();
            first.filter(|(found, ..)| *found == number).map(|(_, deadline, ..)| (line, *deadline))
        })
    }

    /// The driver sleeps to the earliest deadline, and no longer than a job on
    /// the wall clock allows.
    fn check_look(&self, look: Look) -> Check {
        let now = self.now;
        let due = self.first_deadlines().any(|(line, at)| at <= on_line(line, now));
        let wanted = self
            .first_deadlines()
            .map(|(line, at)| match line {
                Line::Monotonic => at,
                Line::Wall => {
                    let wait = Duration::from_nanos((at - on_line(line, now)).max(0) as u64).min(RECHECK);
                    now.monotonic.saturating_add(wait).nanoseconds()
                }
            })
            .min();
        let holds = match look {
            Look::Now | Look::WhenRoom => due || !self.dead.is_empty(),
            Look::At(at) if !self.dead.is_empty() => !due && wanted.is_none_or(|wanted| at.nanoseconds() <= wanted),
            Look::At(at) => !due && wanted == Some(at.nanoseconds()),
            Look::WhenAdded => wanted.is_none(),
        };
        check(holds, Invariant::NeverVanishes, || {
            let deadlines: Vec<_> = self.first_deadlines().collect();
            format!("the driver looks again {look:?}, the earliest deadlines are {deadlines:?} at {now:?}")
        })
    }

    /// I7: a look that does nothing needs an excuse.
    fn check_wake(&mut self, done: usize) -> Check {
        if done > 0 || self.last_look_was_now {
            return Ok(());
        }
        self.vain_looks += 1;
        let waited = self.now.monotonic.saturating_since(self.began.monotonic);
        let rechecks = (waited.as_nanos() / RECHECK.as_nanos()) as u64;
        let excuses = 1 + rechecks + self.report.wall_jumps;
        check(self.vain_looks <= excuses, Invariant::NeverBusy, || {
            format!("{} looks of the driver did nothing, {excuses} are excused", self.vain_looks)
        })
    }
}
