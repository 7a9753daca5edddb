//! The generate and misfire stages, and what the trigger is asked for next.

use std::sync::Arc;
use std::time::Duration;

use beatline_core::{Decided, Due, Line, Moment, Monotonic, Origin, RunFacts, TriggerContext, Verdict};

use super::active::UNSET;
use super::effects::Effects;
use super::plan::{self, Answer, Plan};
use super::{State, Upcoming};
use crate::mutants::mutant;
use crate::wall::LONGEST_HOLD;

impl State {
    /// Generate, misfire, overlap: decides on everything that is due.
    pub(super) fn due(&mut self, plan: &Plan, first: i64, now: Moment, effects: &mut Effects) {
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

    /// The occurrence the trigger waits for has its fate: ask again.
    pub(super) fn continue_after(&mut self, plan: &Plan, id: u64, now: Moment, effects: &mut Effects) {
        if self.upcoming == Upcoming::AfterCompletion(id) {
            self.ask(plan, now, Some(now.monotonic), effects);
            self.rearm(effects);
        }
    }

    /// Whether starts of this job are late, told at the first of an episode and
    /// at the end of it.
    pub(super) fn pace(
        &mut self,
        plan: &Plan,
        facts: &RunFacts,
        waited: bool,
        now: Moment,
    ) -> (Option<Duration>, bool) {
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

    pub(super) fn context(&self, plan: &Plan, now: Moment, completion: Option<Monotonic>) -> TriggerContext {
        let mut context = TriggerContext::new(self.began(plan));
        context.now = now;
        let handled = match plan.line {
            Line::Wall => mutant!("next-from-now", self.cursor, self.cursor.max(plan.line_now(now))),
            Line::Monotonic => self.cursor,
        };
        context.previous_due = (self.cursor != UNSET).then(|| plan.due(handled));
        context.last_start =
            (self.ledger.last_start != UNSET).then(|| Monotonic::from_nanoseconds(self.ledger.last_start));
        context.completion = completion;
        context.due_count = self.ledger.due;
        context.started_count = self.ledger.started;
        context
    }

    /// Asks for the next occurrence after a decision; `waiting` is the occurrence
    /// that was accepted, if one was.
    pub(super) fn ask_after(&mut self, plan: &Plan, now: Moment, waiting: Option<u64>, effects: &mut Effects) {
        if let Some(id) = waiting {
            match plan.next(&self.context(plan, now, None)) {
                Ok(Answer::AfterCompletion) => self.upcoming = Upcoming::AfterCompletion(id),
                answer => self.take(answer, effects),
            }
        } else {
            self.ask(plan, now, Some(now.monotonic), effects);
        }
    }

    pub(super) fn ask(&mut self, plan: &Plan, now: Moment, completion: Option<Monotonic>, effects: &mut Effects) {
        let mut answer = plan.next(&self.context(plan, now, completion));
        if let Ok(Answer::At(next)) = answer {
            if self.is_out_of_reach(plan, next, now) {
                self.begin_anew(plan, now);
                answer = plan.next(&self.context(plan, now, completion));
            }
        }
        self.take(answer, effects);
    }

    /// The wall clock was set back. The newest due instant handled may now lie
    /// ahead: within reach nothing repeats and the job holds; beyond it the
    /// schedule begins anew from now, rather than be silent until the clock is
    /// there again.
    pub fn clock_set_back(&mut self, plan: &Plan, now: Moment) -> Effects {
        let mut effects = Effects::default();
        if let Upcoming::At(next) = self.upcoming {
            if self.is_out_of_reach(plan, next, now) {
                self.ask(plan, now, Some(now.monotonic), &mut effects);
                self.rearm(&mut effects);
            }
        }
        effects
    }

    /// Asks again for the next occurrence: time-zone data may have changed since.
    pub fn refresh(&mut self, plan: &Plan, now: Moment) -> Effects {
        let mut effects = Effects::default();
        let Upcoming::At(known) = self.upcoming else { return effects };
        match plan.next(&self.context(plan, now, None)) {
            // Waiting for a completion it is not asked for an instant.
            Ok(Answer::AfterCompletion) => {}
            Ok(Answer::At(at)) if at == known => {}
            answer => {
                self.take(answer, &mut effects);
                self.rearm(&mut effects);
            }
        }
        effects
    }

    /// Whether the wall clock is so far behind the newest due instant handled –
    /// before the first, behind the registration – that the job must not wait for
    /// it.
    fn is_out_of_reach(&self, plan: &Plan, next: i64, now: Moment) -> bool {
        if plan.line != Line::Wall {
            return false;
        }
        let handled = if self.cursor == UNSET { plan.line_now(self.began(plan)) } else { self.cursor };
        let handled = mutant!("hold-before-the-first", handled, if self.cursor == UNSET { i64::MIN } else { handled });
        let ahead = handled.saturating_sub(plan.line_now(now));
        let is_far = mutant!("hold-for-ever", ahead > LONGEST_HOLD, false);
        let is_a_gap = mutant!("hold-over-gaps", ahead > next.saturating_sub(handled), false);
        mutant!("rebase-never", mutant!("rebase-always", is_far || is_a_gap, true), false)
    }

    /// When the schedule began: instants before that are no occurrences.
    fn began(&self, plan: &Plan) -> Moment {
        self.cold.as_ref().and_then(|cold| cold.began_anew).unwrap_or(plan.registered)
    }

    fn begin_anew(&mut self, plan: &Plan, now: Moment) {
        self.cursor = plan.line_now(now);
        if mutant!("registration-kept", now.wall < self.began(plan).wall, false) {
            self.cold().began_anew = Some(now);
        }
    }

    pub(super) fn take(&mut self, answer: Result<Answer, String>, effects: &mut Effects) {
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

    pub(super) fn fault(&mut self, reason: String, effects: &mut Effects) {
        let reason: Arc<str> = reason.into();
        self.upcoming = Upcoming::Faulted;
        self.cold().fault = Some(Arc::clone(&reason));
        effects.fault = Some(reason);
    }

    /// Makes the timer's entry agree with what is due next.
    pub(super) fn rearm(&mut self, effects: &mut Effects) {
        let wanted = match self.upcoming {
            Upcoming::At(at) => at,
            _ => i64::MAX,
        };
        if wanted != self.armed {
            self.armed = wanted;
            effects.arm = (wanted != i64::MAX).then_some(wanted);
        }
    }
}

#[cfg(test)]
mod tests {
    use beatline_core::{Overlap, Timestamp, Trigger};
    use beatline_cron::{At, CalendarInterval, Cron};
    use beatline_fixed_rate::FixedRate;

    use super::*;
    use crate::config::{JobConfig, OverlapChoice};

    const HOUR: u64 = 3600;
    const DAY: u64 = 24 * HOUR;

    fn plan(trigger: impl Trigger) -> Plan {
        let config = JobConfig {
            overlap: OverlapChoice::BuiltIn(Overlap::AllowAll),
            max_concurrent: 1000,
            buffer: 0,
            misfire: beatline_core::Misfire::default(),
            timeout: None,
            timeout_grace: Duration::ZERO,
            priority: 0,
            trigger: String::new(),
            longest_gap: None,
        };
        Plan::new(Box::new(trigger), at("2026-05-05T12:00:00Z"), false, Arc::new(config))
    }

    fn at(wall: &str) -> Moment {
        Moment::new(Monotonic::ORIGIN, wall.parse().unwrap())
    }

    fn next(state: &State) -> String {
        let next = i128::from(state.next_due().unwrap());
        Timestamp::from_unix_nanoseconds(next).to_string()
    }

    fn registered(plan: &Plan) -> State {
        let mut state = State::new();
        let _ = state.register(plan, plan.registered);
        state
    }

    /// A machine without a battery boots with a clock far ahead; then it is set.
    #[test]
    fn a_job_that_was_added_under_a_clock_far_ahead_does_not_wait_for_that_time() {
        let triggers: [(Plan, &str); 5] = [
            (plan(Cron::parse("0 3 * * *").unwrap()), "2025-01-02T03:00:00Z"),
            (plan(FixedRate::every(Duration::from_secs(6 * HOUR)).aligned()), "2025-01-01T18:00:00Z"),
            (plan(CalendarInterval::days(10).at(9, 30, 0)), "2025-01-11T09:30:00Z"),
            (plan(CalendarInterval::days(10).starting(2025, 1, 5).at(9, 30, 0)), "2025-01-05T09:30:00Z"),
            (plan("2026-05-06T00:00:00Z".parse::<At>().unwrap()), "2026-05-06T00:00:00Z"),
        ];
        for (plan, wanted) in triggers {
            let mut state = registered(&plan);
            let _ = state.clock_set_back(&plan, at("2025-01-01T14:00:00Z"));
            assert_eq!(next(&state), wanted);
            // And from there on.
            let _ = state.refresh(&plan, at("2025-01-01T14:00:00Z"));
            assert_eq!(next(&state), wanted);
        }
    }

    #[test]
    fn a_clock_set_back_a_little_before_the_first_run_changes_nothing() {
        let plan = plan(Cron::parse("0 * * * *").unwrap());
        let mut state = registered(&plan);
        let _ = state.clock_set_back(&plan, at("2026-05-05T11:30:00Z"));
        assert_eq!(next(&state), "2026-05-05T12:00:00Z", "one is due at the registration");
        let plan = self::plan(FixedRate::every(Duration::from_secs(DAY)).aligned());
        let mut state = registered(&plan);
        let _ = state.clock_set_back(&plan, at("2026-05-05T09:30:00Z"));
        assert_eq!(next(&state), "2026-05-06T00:00:00Z");
    }

    #[test]
    fn a_schedule_that_ran_begins_anew_before_the_instant_it_was_added_at() {
        for plan in [plan(Cron::parse("* * * * *").unwrap()), plan(FixedRate::every(Duration::from_secs(60)).aligned())]
        {
            let mut state = registered(&plan);
            while next(&state) != "2026-05-05T12:03:00Z" {
                let due = state.next_due().unwrap();
                let _ = state.timer(&plan, due, at(&next(&state)));
            }
            let _ = state.clock_set_back(&plan, at("2026-05-05T10:00:00Z"));
            assert_eq!(next(&state), "2026-05-05T10:01:00Z");
        }
    }

    /// ```text
    ///   wall   11:00 run ── 11:05 ▸ set back to 10:10 ── 11:00 held ── 12:00 run
    ///          11:00 run ── 11:05 ▸ set back to 09:50 ── 10:00 run                B > the gap: anew
    /// ```
    #[test]
    fn a_clock_set_back_holds_within_the_gap_and_within_three_hours() {
        let cases = [
            ("0 * * * *", "2026-05-05T13:00:00Z", "2026-05-05T12:10:00Z", "2026-05-05T14:00:00Z"),
            ("0 * * * *", "2026-05-05T13:00:00Z", "2026-05-05T11:50:00Z", "2026-05-05T12:00:00Z"),
            ("0 13 * * *", "2026-05-05T13:00:00Z", "2026-05-05T10:00:01Z", "2026-05-06T13:00:00Z"),
            ("0 13 * * *", "2026-05-05T13:00:00Z", "2026-05-05T09:59:59Z", "2026-05-05T13:00:00Z"),
        ];
        for (expression, handled, set_to, wanted) in cases {
            let plan = plan(Cron::parse(expression).unwrap());
            let mut state = registered(&plan);
            while next(&state) != handled {
                let due = state.next_due().unwrap();
                let _ = state.timer(&plan, due, at(&next(&state)));
            }
            let due = state.next_due().unwrap();
            let _ = state.timer(&plan, due, at(handled));
            let _ = state.clock_set_back(&plan, at(set_to));
            assert_eq!(next(&state), wanted, "{expression} set to {set_to}");
        }
    }
}
