//! What is checked after every step.

use std::time::Duration;

use beatline_core::{Decided, Due, Line, Moment, RunFacts, Trigger, TriggerContext};
use beatline_scheduler::simulation::WATCHED_RECHECK;

use super::life::{Job, Life};
use crate::simulator::trigger::{due_at, nanoseconds, on_line};
use crate::simulator::violation::{Check, Invariant, check};

/// The sleep of a driver that nobody tells when the clock is set.
const RECHECK: Duration = Duration::from_secs(10);

/// The timer's grain, up and down.
const GRAIN: Duration = Duration::from_millis(2);

/// So far the clock may be set back unseen.
const UNSEEN: Duration = Duration::from_millis(101);

/// Three hours: beyond that no job waits for the clock to come back.
const LONGEST_HOLD: i64 = 3 * 3600 * 1_000_000_000;

fn instant(due: Due) -> i64 {
    match due {
        Due::Monotonic(at) => at.nanoseconds(),
        Due::Wall(at) => at.unix_nanoseconds() as i64,
    }
}

impl Job {
    fn context(&self, now: Moment) -> TriggerContext {
        let mut context = TriggerContext::new(self.began);
        context.now = now;
        context.previous_due = self.handled.map(|at| due_at(self.plan.line, at));
        context
    }

    /// The rule of the design: B is how far the newest due instant handled lies
    /// ahead of the clock; before the first it is the registration.
    pub(super) fn must_begin_anew(&self, next: Option<i64>, now: Moment) -> bool {
        let (Line::Wall, Some(next)) = (self.plan.line, next) else { return false };
        let handled = self.handled.unwrap_or_else(|| on_line(Line::Wall, self.began));
        let ahead = handled - on_line(Line::Wall, now);
        ahead > LONGEST_HOLD || ahead > next - handled
    }

    /// What the trigger says follows the newest due instant handled.
    pub(super) fn follows(&self, now: Moment) -> Option<i64> {
        self.spec.trigger.next(&self.context(now)).due().map(instant)
    }

    pub(super) fn begin_anew(&mut self, now: Moment) {
        self.handled = Some(on_line(Line::Wall, now));
        if now.wall < self.began.wall {
            self.began.wall = now.wall;
        }
    }

    /// The clock is set back within reach: the job waits for what it waited for.
    pub(super) fn check_held(&self) -> Check {
        let found = self.state.next_due();
        check(found == self.next, Invariant::NeverTwice, || {
            format!("{} does not hold: it is due next at {found:?}, was {:?}", self.name(), self.next)
        })
    }

    /// A job on the wall clock waits for exactly what its trigger says follows the
    /// newest due instant handled.
    pub(super) fn check_next(&mut self, now: Moment) -> Check {
        let wanted = self.follows(now);
        let found = self.state.next_due();
        check(found == wanted, Invariant::NeverVanishes, || {
            format!("{} is due next at {found:?}, must be {wanted:?}, at {now:?}", self.spec.trigger.describe())
        })?;
        if self.next != found {
            self.next = found;
            self.due_since = None;
            self.note_due(now, now.monotonic.nanoseconds());
        }
        Ok(())
    }
}

impl Life {
    fn cap(&self) -> Duration {
        if self.watched { WATCHED_RECHECK } else { RECHECK }
    }

    pub(super) fn check_decision(&mut self, job: usize, decided: &Decided, handed: Option<&RunFacts>) -> Check {
        let (now, cap, watched) = (self.now, self.cap(), self.watched);
        let this = &mut self.jobs[job];
        let line = this.plan.line;
        let (line_now, cursor) = (on_line(line, now), instant(decided.cursor));
        let first = this.next.unwrap_or(i64::MIN);
        let what = || format!("{} decided on {first}..{cursor} at {now:?}", this.spec.trigger.describe());
        check(first <= line_now && cursor <= line_now, Invariant::NeverEarly, what)?;
        let is_new = this.handled.is_none_or(|handled| first > handled) && cursor >= first;
        check(is_new, Invariant::NeverTwice, || format!("{} after {:?}", what(), this.handled))?;
        if let Some(facts) = handed {
            let due = instant(facts.due);
            check(due <= line_now, Invariant::NeverEarly, || format!("{} started for {due}", what()))?;
            let covered = (first..=cursor).contains(&due);
            check(covered, Invariant::NeverTwice, || format!("{} started for {due}", what()))?;
        }

        // How late, beyond what nobody can help.
        let since = this.due_since.unwrap_or(now.monotonic.nanoseconds() - (line_now - first));
        let late = Duration::from_nanos((now.monotonic.nanoseconds() - since).max(0) as u64);
        let most = if line == Line::Wall && !watched { cap + GRAIN } else { GRAIN };
        check(late <= most, Invariant::OnTime, || format!("{}: late by {late:?}", what()))?;

        let repeats = first <= this.highest;
        this.highest = this.highest.max(cursor);
        this.handled = Some(cursor);
        this.due += decided.due;
        this.due_since = None;
        let silence = std::mem::replace(&mut this.heard, now.monotonic.nanoseconds());
        let silence = this.heard - silence;
        match line {
            Line::Wall => {
                let allowed = nanoseconds(2 * this.spec.gap.max(cap));
                check(silence <= allowed + nanoseconds(UNSEEN), Invariant::NeverSilent, || {
                    format!("{} was silent for {silence} ns", this.name())
                })?;
                self.report.worst_silence = self.report.worst_silence.max((silence * 1000 / allowed) as u64);
                let worst = match watched {
                    true => &mut self.report.worst_lateness_watched,
                    false => &mut self.report.worst_lateness,
                };
                *worst = late.max(*worst);
                self.report.repeated += u64::from(repeats);
                self.report.due += decided.due;
                this.check_next(now)?;
                let later = this.next.is_some_and(|next| next > line_now);
                check(later, Invariant::NeverVanishes, || format!("job {job} left something that is due"))
            }
            Line::Monotonic => {
                self.report.due += decided.due;
                this.next = this.state.next_due();
                Ok(())
            }
        }
    }

    /// Every job after a look: nothing due is left, and none will be silent for long.
    pub(super) fn check_all(&mut self) -> Check {
        let (now, cap) = (self.now, self.cap());
        let settled = self.is_settled();
        for job in &mut self.jobs {
            if job.plan.line != Line::Wall {
                continue;
            }
            let Some(next) = job.next else {
                return check(false, Invariant::NeverVanishes, || format!("{} waits for nothing", job.name()));
            };
            let changed = job.zone_changed.map_or(0, |since| now.monotonic.nanoseconds() - since);
            let in_time = changed <= nanoseconds(WATCHED_RECHECK + cap + GRAIN);
            check(in_time, Invariant::Rules, || format!("{} was not asked about new zone data", job.name()))?;
            let wait = next - on_line(Line::Wall, now);
            check(wait > 0 || !settled, Invariant::NeverVanishes, || format!("{} is due and left behind", job.name()))?;
            let allowed = nanoseconds(2 * job.spec.gap.max(cap));
            let silence = now.monotonic.nanoseconds() - job.heard;
            let grain = nanoseconds(UNSEEN);
            check(silence <= allowed + grain && wait <= allowed + grain, Invariant::NeverSilent, || {
                let waits = Duration::from_nanos(wait.unsigned_abs());
                format!("{} was silent for {silence} ns and waits for {waits:?} at {now:?}", job.name())
            })?;
        }
        Ok(())
    }

    /// The job's own books.
    pub(super) fn check_books(&self, number: usize) -> Check {
        let job = &self.jobs[number];
        let books = job.state.statistics(self.now);
        let same =
            books.is_balanced() && (books.due, books.started, books.running) == (job.due, job.started, job.running);
        check(same, Invariant::Conservation, || {
            format!("{}: {books:?}, must be {} due, {} started", job.name(), job.due, job.started)
        })
    }
}

impl Job {
    fn name(&self) -> String {
        self.spec.trigger.describe()
    }
}
