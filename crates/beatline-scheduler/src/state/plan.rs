//! What a job's decisions depend on and never changes: its trigger, the line
//! that trigger lives on, when it was added, and its settings.
//!
//! Inside the engine an instant is an `i64` of nanoseconds on the job's line:
//! since the clock's origin on the monotonic one, since the Unix epoch on the
//! wall. `i64::MAX` never comes. Triggers and observers see [`Due`].

use std::sync::Arc;
use std::time::Duration;

use beatline_core::{Count, Due, Latest, Line, Moment, Monotonic, Next, Timestamp, Trigger, TriggerContext};

use crate::config::JobConfig;
use crate::contain::contain;

/// The fixed part of a job.
pub struct Plan {
    /// The line that due instants lie on.
    pub line: Line,
    /// When the job was added; with `last_due`, when the earlier process handled
    /// its last occurrence.
    pub registered: Moment,
    /// Whether the schedule continues one from before the registration.
    pub continued: bool,
    pub(crate) source: Source,
    /// The settings.
    pub config: Arc<JobConfig>,
}

/// Where the occurrences come from.
pub(crate) enum Source {
    /// `first + k × period`, computed here.
    Periodic { first: i64, period: i64 },
    /// Asked for one by one.
    Trigger(Box<dyn Trigger>),
}

/// What the trigger was found to answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    At(i64),
    AfterCompletion,
    Never,
}

/// What became due at one go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sought {
    /// The newest occurrence that is due.
    pub(crate) latest: i64,
    /// How many are due, that one included.
    pub(crate) count: u64,
    /// Whether there may have been more.
    pub(crate) at_least: bool,
    /// Everything up to here is handled.
    pub(crate) cursor: i64,
}

impl Sought {
    /// One occurrence and nothing missed.
    pub(crate) const fn alone(at: i64) -> Self {
        Self { latest: at, count: 1, at_least: false, cursor: at }
    }
}

impl Plan {
    /// Reads the trigger once and keeps of it what is needed.
    pub fn new(trigger: Box<dyn Trigger>, registered: Moment, continued: bool, config: Arc<JobConfig>) -> Self {
        // One that panics here will be faulted when it is asked for an instant, or
        // is right about the line after all.
        let line = contain(|| trigger.line()).unwrap_or(Line::Monotonic);
        let periodic = contain(|| trigger.periodic(&TriggerContext::new(registered))).ok().flatten();
        // A period beyond the clock's range is the trigger's own affair: it knows never from far.
        let in_range = |period: Duration| i64::try_from(period.as_nanos()).ok().filter(|period| *period > 0);
        let periodic = periodic.and_then(|periodic| Some((periodic.first.nanoseconds(), in_range(periodic.period)?)));
        let source = match periodic {
            Some((first, period)) if line == Line::Monotonic => {
                // With `continued` the registration itself was handled by an earlier process.
                let handled = registered.monotonic.nanoseconds();
                let first = if continued { following(first, period, handled) } else { first };
                Source::Periodic { first, period }
            }
            _ => Source::Trigger(trigger),
        };
        Self { line, registered, continued, source, config }
    }

    /// The instant that `moment` shows on this job's line.
    pub fn line_now(&self, moment: Moment) -> i64 {
        match self.line {
            Line::Monotonic => moment.monotonic.nanoseconds(),
            Line::Wall => wall_nanoseconds(moment.wall),
        }
    }

    /// An instant of this job's line as triggers and observers see it.
    pub fn due(&self, at: i64) -> Due {
        match self.line {
            Line::Monotonic => Due::Monotonic(Monotonic::from_nanoseconds(at)),
            Line::Wall => Due::Wall(Timestamp::from_unix_nanoseconds(i128::from(at))),
        }
    }

    fn instant(&self, due: Due) -> Result<i64, String> {
        match (self.line, due) {
            (Line::Monotonic, Due::Monotonic(at)) => Ok(at.nanoseconds()),
            (Line::Wall, Due::Wall(at)) => Ok(wall_nanoseconds(at)),
            (line, due) => Err(format!("its trigger lives on the {line:?} line and answered {due:?}")),
        }
    }

    /// How late `moment` is for an occurrence at `at`.
    pub(crate) fn lateness(&self, at: i64, moment: Moment) -> Duration {
        let now = self.line_now(moment);
        if now <= at { Duration::ZERO } else { Duration::from_nanos(now.abs_diff(at)) }
    }

    /// The wall clock at `at`, as seen from `moment`.
    pub(crate) fn wall(&self, at: i64, moment: Moment) -> Timestamp {
        self.wall_of(self.due(at), moment)
    }

    /// A due instant by the wall clock, as seen from `moment`.
    pub(crate) fn wall_of(&self, due: Due, moment: Moment) -> Timestamp {
        match due {
            Due::Wall(wall) => wall,
            Due::Monotonic(monotonic) => moment.wall_at(monotonic),
        }
    }

    /// Asks for the first occurrence after `context.previous_due`.
    pub(crate) fn next(&self, context: &TriggerContext) -> Result<Answer, String> {
        match &self.source {
            Source::Periodic { first, period } => Ok(match context.previous_monotonic() {
                None => Answer::At(*first),
                Some(previous) => Answer::At(following(*first, *period, previous.nanoseconds())),
            }),
            Source::Trigger(trigger) => self.judge(contain(|| trigger.next(context))?, context),
        }
    }

    /// Holds an answer against the contract.
    fn judge(&self, next: Next, context: &TriggerContext) -> Result<Answer, String> {
        let Some(due) = next.due() else {
            return Ok(if next == Next::AfterCompletion { Answer::AfterCompletion } else { Answer::Never });
        };
        let at = self.instant(due)?;
        match context.previous_due {
            Some(previous) if at <= self.instant(previous)? => {
                Err(format!("its trigger answered {due:?}, which is not after {previous:?}"))
            }
            _ => Ok(Answer::At(at)),
        }
    }

    /// What is due by now, given that `first` is: found by seeking, not by
    /// listing.
    pub(crate) fn seek(&self, context: &TriggerContext, first: i64, now: i64) -> Result<Sought, String> {
        match &self.source {
            Source::Periodic { period, .. } => {
                let steps = (i128::from(now) - i128::from(first)) / i128::from(*period);
                let latest = i128::from(first) + steps * i128::from(*period);
                let latest = i64::try_from(latest).unwrap_or(i64::MAX);
                Ok(Sought { latest, count: steps as u64 + 1, at_least: false, cursor: latest })
            }
            Source::Trigger(trigger) => {
                let mut context = context.after(self.due(first));
                // A trigger that waits for completions has nothing to seek.
                context.completion = None;
                match contain(|| trigger.next(&context))?.due() {
                    Some(next) if self.instant(next)? <= now && self.instant(next)? > first => {}
                    _ => return Ok(Sought::alone(first)),
                }
                self.seek_far(&**trigger, &context, first, now)
            }
        }
    }

    fn seek_far(
        &self,
        trigger: &dyn Trigger,
        context: &TriggerContext,
        first: i64,
        now: i64,
    ) -> Result<Sought, String> {
        let limit = self.due(now);
        let (latest, walked) = match contain(|| trigger.latest_at_or_before(context, limit))? {
            Latest::At(due) => (self.instant(due)?, None),
            Latest::Unknown { reached, walked } => (self.instant(reached)?, Some(walked)),
            _ => (first, Some(0)),
        };
        if latest < first || latest > now {
            let (latest, first) = (self.due(latest), self.due(first));
            return Err(format!("its trigger names {latest:?} as the newest between {first:?} and {limit:?}"));
        }
        if let Some(walked) = walked {
            let cursor = if walked == 0 { first } else { now };
            return Ok(Sought { latest, count: walked + 1, at_least: walked > 0, cursor });
        }
        let count = contain(|| trigger.count_between(context, self.due(first), self.due(latest)))?;
        let (count, at_least) = match count {
            Count::Exact(count) => (count, false),
            Count::AtLeast(count) => (count, true),
            _ => (1, true),
        };
        // `latest` is one of them; a count of none for a later instant is a fault of the trigger's.
        let count = if latest > first { count.max(1) } else { 0 };
        Ok(Sought { latest, count: count.saturating_add(1), at_least, cursor: latest })
    }
}

/// The first instant of a grid after `previous`.
fn following(first: i64, period: i64, previous: i64) -> i64 {
    if previous < first {
        return first;
    }
    let steps = (i128::from(previous) - i128::from(first)) / i128::from(period) + 1;
    i64::try_from(i128::from(first) + steps * i128::from(period)).unwrap_or(i64::MAX)
}

pub(crate) fn wall_nanoseconds(wall: Timestamp) -> i64 {
    // Beyond 1677 to 2262 the wheel's line ends; such instants never come.
    wall.unix_nanoseconds().clamp(i128::from(i64::MIN), i128::from(i64::MAX)) as i64
}

impl std::fmt::Debug for Plan {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Plan").field("line", &self.line).field("config", &self.config).finish_non_exhaustive()
    }
}
