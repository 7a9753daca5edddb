//! The triggers of a scenario, each with a reference that says what it must
//! answer, written without looking at the trigger's own code.

use std::time::Duration;

use beatline_core::{
    Count, Due, Latest, Line, Moment, Monotonic, Next, OnDemand, Once, Timestamp, Trigger, TriggerContext,
};
use beatline_fixed_delay::FixedDelay;
use beatline_fixed_rate::FixedRate;

use crate::random::mix;
use crate::scripted::{End, Scripted};

/// A trigger as the scenario describes it.
#[derive(Clone, Debug)]
pub(super) enum TriggerSpec {
    FixedRate {
        period: Duration,
        start: Start,
        /// So long after the registration it ends.
        end: Option<Duration>,
    },
    FixedDelay {
        delay: Duration,
        initial: Duration,
    },
    Once(Duration),
    OnDemand,
    /// Gaps that look random and follow from the instant before.
    Gaps(Gaps),
    /// Round instants of the wall clock, with closed forms.
    WallGrid(WallGrid),
    Scripted(Scripted),
}

/// Where a fixed rate begins.
#[derive(Clone, Copy, Debug)]
pub(super) enum Start {
    OnePeriodLater,
    After(Duration),
    Phase(Duration),
}

/// What the reference says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    At(i64),
    AwaitsCompletion,
    Never,
    /// The call panics.
    Panics,
    /// The answer breaks the contract.
    Broken,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Gaps {
    pub(super) line: Line,
    pub(super) seed: u64,
    /// Gaps lie between one and sixteen of these.
    pub(super) unit: Duration,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct WallGrid {
    pub(super) period: i64,
    pub(super) offset: i64,
}

/// The nanoseconds of a duration on an `i64`'s line.
pub(super) fn nanoseconds(duration: Duration) -> i64 {
    i64::try_from(duration.as_nanos()).unwrap_or(i64::MAX)
}

/// What `moment` shows on `line`.
pub(super) fn on_line(line: Line, moment: Moment) -> i64 {
    match line {
        Line::Monotonic => moment.monotonic.nanoseconds(),
        Line::Wall => i64::try_from(moment.wall.unix_nanoseconds()).unwrap_or(i64::MAX),
    }
}

/// An instant of `line`.
pub(super) fn due_at(line: Line, at: i64) -> Due {
    match line {
        Line::Monotonic => Due::Monotonic(Monotonic::from_nanoseconds(at)),
        Line::Wall => Due::Wall(Timestamp::from_unix_nanoseconds(i128::from(at))),
    }
}

/// Rounded down; in 64 bits where they suffice, which is nearly always.
fn divide(numerator: i128, divisor: i128) -> i128 {
    match (i64::try_from(numerator), i64::try_from(divisor)) {
        (Ok(numerator), Ok(divisor)) => i128::from(numerator.div_euclid(divisor)),
        _ => numerator.div_euclid(divisor),
    }
}

fn clamp(at: i128) -> i64 {
    i64::try_from(at).unwrap_or(i64::MAX)
}

impl TriggerSpec {
    pub(super) fn line(&self) -> Line {
        match self {
            TriggerSpec::Gaps(gaps) => gaps.line,
            TriggerSpec::WallGrid(_) => Line::Wall,
            TriggerSpec::Scripted(scripted) => scripted.line(),
            _ => Line::Monotonic,
        }
    }

    /// The real trigger.
    pub(super) fn build(&self, registered: Moment) -> Box<dyn Trigger> {
        match self {
            TriggerSpec::FixedRate { period, start, end } => {
                let rate = FixedRate::every(*period);
                let rate = match start {
                    Start::OnePeriodLater => rate,
                    Start::After(delay) if delay.is_zero() => rate.immediately(),
                    Start::After(delay) => rate.initial_delay(*delay),
                    Start::Phase(phase) => rate.phase(*phase),
                };
                match end {
                    Some(end) => Box::new(rate.ending_at(registered.wall.saturating_add(*end))),
                    None => Box::new(rate),
                }
            }
            TriggerSpec::FixedDelay { delay, initial } => Box::new(FixedDelay::after(*delay).initial_delay(*initial)),
            TriggerSpec::Once(delay) => Box::new(Once::after(*delay)),
            TriggerSpec::OnDemand => Box::new(OnDemand),
            TriggerSpec::Gaps(gaps) => Box::new(*gaps),
            TriggerSpec::WallGrid(grid) => Box::new(*grid),
            TriggerSpec::Scripted(scripted) => Box::new(scripted.clone()),
        }
    }

    /// The first occurrence after `previous`; `completion` is when that one had
    /// its fate, if it had.
    pub(super) fn after(&self, registered: Moment, previous: Option<i64>, completion: Option<i64>) -> Step {
        let added = registered.monotonic.nanoseconds();
        match self {
            TriggerSpec::FixedRate { .. } => self.rate_after(added, previous),
            TriggerSpec::FixedDelay { delay, initial } => match (previous, completion) {
                (None, _) => Step::At(added.saturating_add(nanoseconds(*initial))),
                (Some(_), Some(end)) => Step::At(end.saturating_add(nanoseconds(*delay))),
                (Some(_), None) => Step::AwaitsCompletion,
            },
            TriggerSpec::Once(delay) => match previous {
                None => Step::At(added.saturating_add(nanoseconds(*delay))),
                Some(_) => Step::Never,
            },
            TriggerSpec::OnDemand => Step::Never,
            TriggerSpec::Gaps(gaps) => {
                let from = previous.unwrap_or_else(|| on_line(gaps.line, registered));
                Step::At(from.saturating_add(gaps.gap(from)))
            }
            TriggerSpec::WallGrid(grid) => {
                let from = previous.map_or_else(|| on_line(Line::Wall, registered), |previous| previous + 1);
                Step::At(grid.first_from(from))
            }
            TriggerSpec::Scripted(scripted) => {
                let added = on_line(self.line(), registered);
                let instants = scripted.instants().iter().map(|delay| added.saturating_add(nanoseconds(*delay)));
                if let Some(next) = instants.into_iter().find(|at| previous.is_none_or(|previous| *at > previous)) {
                    return Step::At(next);
                }
                match scripted.end() {
                    End::Never => Step::Never,
                    End::Panics => Step::Panics,
                    End::WaitsForEver => Step::AwaitsCompletion,
                    End::StandsStill if previous.is_none() => Step::At(added),
                    End::StandsStill | End::WrongLine => Step::Broken,
                }
            }
        }
    }

    fn rate_after(&self, added: i64, previous: Option<i64>) -> Step {
        let TriggerSpec::FixedRate { period, end, .. } = self else { return Step::Never };
        let (period, first) = (period.as_nanos() as i128, self.rate_first(added));
        let steps = previous.map_or(0, |previous| (divide(i128::from(previous) - first, period) + 1).max(0));
        let next = first + steps * period;
        match end {
            Some(end) if next > i128::from(added) + end.as_nanos() as i128 => Step::Never,
            _ => Step::At(clamp(next)),
        }
    }

    fn rate_first(&self, added: i64) -> i128 {
        let TriggerSpec::FixedRate { period, start, .. } = self else { return i128::MAX };
        let offset = match start {
            Start::OnePeriodLater => period.as_nanos(),
            Start::After(delay) => delay.as_nanos(),
            Start::Phase(phase) => period.as_nanos() + phase.as_nanos(),
        };
        i128::from(added) + offset as i128
    }

    /// How many grid instants of a fixed rate lie after `handled` and not after
    /// `now`, in closed form; `None` for other triggers.
    pub(super) fn rate_count(&self, registered: Moment, handled: Option<i64>, now: i64) -> Option<u64> {
        let TriggerSpec::FixedRate { period, end, .. } = self else { return None };
        let added = registered.monotonic.nanoseconds();
        let (period, first) = (period.as_nanos() as i128, self.rate_first(added));
        let last = end.map_or(i128::MAX, |end| i128::from(added) + end.as_nanos() as i128);
        let upto = |limit: i128| (divide(limit.min(last) - first, period) + 1).max(0);
        let before = handled.map_or(0, |handled| upto(i128::from(handled)));
        Some((upto(i128::from(now)) - before) as u64)
    }
}

impl Gaps {
    fn gap(&self, from: i64) -> i64 {
        let factor = 1 + mix(self.seed ^ from as u64) % 16;
        nanoseconds(self.unit) * factor as i64
    }
}

impl Trigger for Gaps {
    fn next(&self, context: &TriggerContext) -> Next {
        let from = match (context.previous_due, self.line) {
            (Some(Due::Monotonic(at)), _) => at.nanoseconds(),
            (Some(Due::Wall(at)), _) => at.unix_nanoseconds() as i64,
            (None, line) => on_line(line, context.registered),
        };
        due_at(self.line, from.saturating_add(self.gap(from))).into()
    }

    fn line(&self) -> Line {
        self.line
    }
}

impl WallGrid {
    /// The first grid instant at or after `from`.
    fn first_from(&self, from: i64) -> i64 {
        let past = (from - self.offset).rem_euclid(self.period);
        if past == 0 { from } else { from - past + self.period }
    }
}

impl Trigger for WallGrid {
    fn next(&self, context: &TriggerContext) -> Next {
        let from = match context.previous_due {
            Some(Due::Wall(previous)) => previous.unix_nanoseconds() as i64 + 1,
            _ => on_line(Line::Wall, context.registered),
        };
        due_at(Line::Wall, self.first_from(from)).into()
    }

    fn latest_at_or_before(&self, context: &TriggerContext, limit: Due) -> Latest {
        let (Due::Wall(limit), Next::AtWall(next)) = (limit, self.next(context)) else { return Latest::None };
        if next > limit {
            return Latest::None;
        }
        let limit = limit.unix_nanoseconds() as i64;
        let latest = limit - (limit - self.offset).rem_euclid(self.period);
        Latest::At(due_at(Line::Wall, latest))
    }

    fn count_between(&self, _context: &TriggerContext, after: Due, until: Due) -> Count {
        let (Due::Wall(after), Due::Wall(until)) = (after, until) else { return Count::Exact(0) };
        let number = |at: Timestamp| (at.unix_nanoseconds() as i64 - self.offset).div_euclid(self.period);
        Count::Exact((number(until) - number(after)).max(0) as u64)
    }

    fn line(&self) -> Line {
        Line::Wall
    }
}
