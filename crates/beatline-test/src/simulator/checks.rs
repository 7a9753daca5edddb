//! What is checked after every step.

use beatline_core::{Due, Origin, RunFacts};
use beatline_scheduler::Condition;
use beatline_scheduler::simulation::Effects;

use super::model::{Expected, Upcoming};
use super::trigger::on_line;
use super::violation::{Check, Invariant, check};
use super::world::{Command, Job, World};

fn instant(due: Due) -> i64 {
    match due {
        Due::Monotonic(at) => at.nanoseconds(),
        Due::Wall(at) => at.unix_nanoseconds() as i64,
    }
}

impl World {
    /// Holds what a step wants done against what it must want, and carries it
    /// out. Inside the driver the entry for the timer and the hand-off come back.
    pub(super) fn absorb(
        &mut self,
        job: usize,
        mut effects: Effects,
        expected: &Expected,
        by_driver: bool,
    ) -> Result<(Option<i64>, Option<RunFacts>), super::violation::Broken> {
        self.report.steps += 1;
        self.check_acceptance(job, &effects)?;
        self.compare(job, &effects, expected)?;
        self.log_effects(job, &effects);
        let handed = effects.hand_off.take();
        self.active += usize::from(handed.is_some());
        if effects.retired {
            self.live.retain(|live| *live != job);
        }
        self.report.faulted += u64::from(effects.fault.is_some());
        let arm = effects.arm.take();
        self.check_books(job)?;
        if by_driver {
            return Ok((arm, handed));
        }
        if let Some(deadline) = arm {
            self.command(Command::Arm(job, deadline));
        }
        if let Some(facts) = handed {
            self.hand_off(job, facts);
        }
        Ok((None, None))
    }

    /// The promises about what is accepted, held against nothing but the clock
    /// and plain counts.
    fn check_acceptance(&mut self, job: usize, effects: &Effects) -> Check {
        let now = self.now;
        let Job { model, state, decided, .. } = &mut self.jobs[job];
        if let Some(decision) = effects.decided {
            let cursor = instant(decision.cursor);
            let message = || format!("job {job} decided on {cursor} after {decided:?}");
            check(decided.is_none_or(|before| cursor > before), Invariant::NeverTwice, message)?;
            let line_now = on_line(model.line(), now);
            check(cursor <= line_now, Invariant::NeverEarly, || format!("job {job} decided on {cursor} at {now:?}"))?;
            *decided = Some(cursor);
        }
        if let Some(facts) = &effects.hand_off {
            let due = instant(facts.due);
            let line_then = on_line(model.line(), facts.decided);
            let early = || format!("job {job} accepted {facts:?} before it was due");
            check(due <= line_then && facts.decided.monotonic <= now.monotonic, Invariant::NeverEarly, early)?;
            let late = || format!("job {job} accepted an occurrence that its decision does not cover: {facts:?}");
            let covered = facts.origin == Origin::RunNow || decided.is_some_and(|newest| due <= newest);
            check(covered, Invariant::NeverTwice, late)?;
        }
        let (active, waiting) = state.load();
        let (most, room) = (model.spec.max_concurrent, model.spec.policy.buffer());
        let message = || format!("job {job} has {active} active of {most}, {waiting} waiting of {room}");
        check(active <= most && waiting <= room, Invariant::Limits, message)
    }

    fn compare(&self, job: usize, effects: &Effects, expected: &Expected) -> Check {
        let differs = |what: &str, found: &dyn std::fmt::Debug, wanted: &dyn std::fmt::Debug| {
            let spec = &self.jobs[job].model.spec;
            format!("job {job}: {what} is {found:?}, must be {wanted:?}; {spec:?}")
        };
        macro_rules! same {
            ($invariant:ident, $what:literal, $found:expr, $wanted:expr) => {
                let (found, wanted) = ($found, $wanted);
                check(found == wanted, Invariant::$invariant, || differs($what, &found, &wanted))?;
            };
        }
        same!(Rules, "the decision", &effects.decided, &expected.decided);
        same!(Rules, "the decision on a request", &effects.requested, &expected.requested);
        same!(Rules, "the hand-off", &effects.hand_off, &expected.hand_off);
        same!(Rules, "what was withdrawn", &effects.withdrawn, &expected.withdrawn);
        same!(NeverVanishes, "the next deadline", effects.arm, expected.arm);
        same!(Rules, "the policy's panic", effects.policy_panic.is_some(), expected.policy_panic);
        same!(NeverVanishes, "the fault", effects.fault.is_some(), expected.fault);
        same!(NeverVanishes, "the exhaustion", effects.exhausted, expected.exhausted);
        same!(NeverVanishes, "the retirement", effects.retired, expected.retired);
        let answers: Vec<_> = effects.answers.iter().map(|(_, ended)| (ended.run.id.0, ended.fate)).collect();
        same!(Rules, "the answers", &answers, &expected.answers);
        Ok(())
    }

    /// The job's own books, and what it waits for.
    pub(super) fn check_books(&self, job: usize) -> Check {
        let Job { model, state, .. } = &self.jobs[job];
        let books = state.statistics(self.now);
        let running = model.running() as u64;
        let pending = (model.active.len() + model.waiting.len()) as u64 - running;
        let same = books.is_balanced()
            && (books.due, books.started, books.pending, books.running) == (model.due, model.started, pending, running)
            && books.outcomes == model.outcomes
            && books.skipped == model.skipped;
        check(same, Invariant::Conservation, || format!("job {job}: {books:?}, must be {model:?}"))?;

        let (condition, next) = (state.condition(), state.next_due());
        let same = match model.upcoming {
            Upcoming::At(at) => condition == Condition::Scheduled && next == Some(at),
            Upcoming::AfterFateOf(run) => {
                // A scheduler that ends asks no trigger any more.
                let known = self.ending.was_asked()
                    || model.find(run).is_some()
                    || model.waiting.iter().any(|facts| facts.id.0 == run);
                condition == Condition::AwaitingCompletion && known
            }
            Upcoming::Idle => condition == Condition::Idle,
            Upcoming::Exhausted => condition == Condition::Exhausted,
            Upcoming::Faulted => matches!(condition, Condition::Faulted { .. }),
            Upcoming::Cancelled => condition == Condition::Cancelled,
        };
        check(same, Invariant::NeverVanishes, || {
            format!("job {job} is {condition:?}, due {next:?}, must be {:?}; {:?}", model.upcoming, model.spec)
        })?;
        // Whoever waits in the buffer waits for the end of something.
        let stuck = !model.waiting.is_empty() && state.load().0 == 0;
        check(!stuck, Invariant::NeverVanishes, || format!("job {job}: occurrences wait, and nothing is active"))
    }

    /// A fixed rate has seen exactly the instants of its grid, by division.
    pub(super) fn check_grid(&self, job: usize) -> Check {
        let Job { model, .. } = &self.jobs[job];
        let handled = model.spec.continued.then(|| on_line(model.line(), model.registered));
        let now = self.now.monotonic.nanoseconds();
        let Some(wanted) = model.spec.trigger.rate_count(model.registered, handled, now) else { return Ok(()) };
        check(model.triggered == wanted, Invariant::Conservation, || {
            format!("job {job} counted {} instants of its grid, there were {wanted}", model.triggered)
        })
    }

    /// All is over: every occurrence has its fate.
    pub(super) fn check_the_end(&self) -> Check {
        let left = (self.active, self.injector.len());
        check(left == (0, 0), Invariant::Conservation, || format!("{left:?} runs and hand-offs are left"))?;
        for (index, job) in self.jobs.iter().enumerate() {
            self.check_books(index)?;
            let model = &job.model;
            let fates = model.outcomes.iter().sum::<u64>() + model.skipped.iter().sum::<u64>();
            check(model.due == fates, Invariant::Conservation, || format!("job {index}: {fates} fates in {model:?}"))?;
            let unanswered = model.tickets.len();
            check(unanswered == 0, Invariant::Rules, || format!("job {index}: {unanswered} tickets have no answer"))?;
        }
        Ok(())
    }

    fn log_effects(&mut self, job: usize, effects: &Effects) {
        self.log(&[job as u64, self.now.monotonic.nanoseconds() as u64, effects.arm.unwrap_or(-1) as u64]);
        if let Some(facts) = &effects.hand_off {
            self.log(&[1, facts.id.0, instant(facts.due) as u64, facts.coalesced]);
        }
        for decided in effects.decided.iter().chain(&effects.requested) {
            self.log(&[2, instant(decided.cursor) as u64, decided.due, decided.lateness.as_nanos() as u64]);
        }
        if let Some((reason, count)) = effects.withdrawn {
            self.log(&[3, reason.index() as u64, count]);
        }
        let flags = [effects.policy_panic.is_some(), effects.fault.is_some(), effects.exhausted, effects.retired];
        self.log(&[flags.iter().fold(4, |bits, flag| bits << 1 | u64::from(*flag)), effects.answers.len() as u64]);
    }
}
