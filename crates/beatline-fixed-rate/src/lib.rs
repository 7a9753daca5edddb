//! The fixed-rate trigger: due at `anchor + k × period`, exactly, for ever.
//!
//! ```text
//!   added ── period ──▶ run ── period ──▶ run ── period ──▶ run        on time
//!                       ━━━               ━━━━━━━━━━━━━━━━━━━━━━━      a long run …
//!                                                          x           … and what overlaps it: the overlap policy
//!                                                                ──▶   the grid stays where it was
//! ```
//!
//! **First run.** One period after the job was added; with
//! [`immediately`](FixedRate::immediately), when it is added, and the grid is
//! anchored there.
//!
//! Choose it where the rhythm matters: fetching quotes, sampling, heartbeats.
//! Lateness, long runs and failures move nothing: the k-th instant is computed
//! from the anchor, never from the clock, so nothing can add up.
//!
//! # What is absent
//!
//! This crate reads no clock and knows no runtime: the trigger is a pure
//! function of the history that the scheduler hands it.

use std::time::Duration;

use beatline_core::{Count, Due, Error, Latest, Line, Monotonic, Next, Periodic, Timestamp, Trigger, TriggerContext};

/// Due at `anchor + k × period`.
///
/// ```
/// use beatline_fixed_rate::FixedRate;
/// use std::time::Duration;
///
/// let quotes = FixedRate::every(Duration::from_secs(30));
/// let spread = FixedRate::every(Duration::from_secs(30)).phase(Duration::from_secs(7));
/// let trading_day = FixedRate::every(Duration::from_secs(30))
///     .starting_at("2026-03-02T08:00:00Z".parse()?)
///     .ending_at("2026-03-02T16:30:00Z".parse()?);
/// # Ok::<(), beatline_core::Error>(())
/// ```
///
/// Timestamps are mapped to the monotonic clock once, when the job is added;
/// setting the wall clock afterwards moves nothing, unless the schedule is
/// [`aligned`](FixedRate::aligned) to it. Instants before the job was
/// added are not occurrences: a start in the past never floods.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FixedRate {
    period: Duration,
    anchor: Anchor,
    phase: Duration,
    start: Option<Timestamp>,
    end: Option<Timestamp>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Anchor {
    /// The registration; the first occurrence is one period later.
    Registration,
    /// This long after the registration, which is the first occurrence.
    After(Duration),
    /// A point of the wall clock.
    Wall(Timestamp),
    /// The epoch of the wall clock, on which the whole schedule lies.
    Epoch,
}

/// The occurrences of one registration, in nanoseconds on the trigger's line: from
/// `first`, every `period`, to `last`.
#[derive(Clone, Copy)]
struct Grid {
    line: Line,
    first: i128,
    period: i128,
    last: i128,
}

impl FixedRate {
    /// Due every `period`, for the first time one period after the job was
    /// added.
    #[must_use]
    pub const fn every(period: Duration) -> Self {
        Self { period, anchor: Anchor::Registration, phase: Duration::ZERO, start: None, end: None }
    }

    /// The first run when the job is added, and the grid anchored there.
    #[must_use]
    pub const fn immediately(self) -> Self {
        self.initial_delay(Duration::ZERO)
    }

    /// The first run `delay` after the job was added, and the grid anchored
    /// there.
    #[must_use]
    pub const fn initial_delay(mut self, delay: Duration) -> Self {
        self.anchor = Anchor::After(delay);
        self
    }

    /// The grid anchored at a point of the wall clock, past or future.
    #[must_use]
    pub const fn anchored_at(mut self, anchor: Timestamp) -> Self {
        self.anchor = Anchor::Wall(anchor);
        self
    }

    /// Due when the wall clock shows a round multiple of the period, counted from
    /// the epoch in UTC: every 15 minutes is at :00, :15, :30 and :45.
    ///
    /// Such a schedule lives on the wall clock: it follows when the clock is set,
    /// and what a suspended machine slept through was missed.
    ///
    /// ```text
    ///   added 10:07 ──▶ 10:15 ──▶ 10:30 ──▶ 10:45 ──▶ 11:00
    /// ```
    #[must_use]
    pub const fn aligned(mut self) -> Self {
        self.anchor = Anchor::Epoch;
        self
    }

    /// The whole grid moved later by `phase`, which is less than the period:
    /// jobs of one period can be spread over it.
    #[must_use]
    pub const fn phase(mut self, phase: Duration) -> Self {
        self.phase = phase;
        self
    }

    /// No occurrence before `start`.
    #[must_use]
    pub const fn starting_at(mut self, start: Timestamp) -> Self {
        self.start = Some(start);
        self
    }

    /// No occurrence after `end`; the job is then `Exhausted`.
    #[must_use]
    pub const fn ending_at(mut self, end: Timestamp) -> Self {
        self.end = Some(end);
        self
    }

    fn grid(&self, context: &TriggerContext) -> Grid {
        let line = self.line();
        let registered = context.registered;
        // A point of the wall clock on the line of this trigger.
        let on_line = |wall: Timestamp| match line {
            Line::Monotonic => i128::from(registered.monotonic_at(wall).nanoseconds()),
            Line::Wall => wall.unix_nanoseconds(),
        };
        let now = on_line(registered.wall);
        // A period that was not validated still must not divide by zero.
        let period = (self.period.as_nanos() as i128).max(1);
        let (anchor, earliest) = match self.anchor {
            Anchor::Registration => (now, now + period),
            Anchor::After(delay) => (now + delay.as_nanos() as i128, now + delay.as_nanos() as i128),
            Anchor::Wall(anchor) => (on_line(anchor), on_line(anchor).max(now)),
            Anchor::Epoch => (0, now),
        };
        let anchor = anchor + self.phase.as_nanos() as i128;
        let earliest = self.start.map_or(earliest, |start| earliest.max(on_line(start)));
        let steps = (earliest - anchor).div_euclid(period);
        let first = anchor + steps * period;
        let first = if first < earliest { first + period } else { first };
        Grid { line, first, period, last: self.end.map_or(i128::MAX, on_line) }
    }
}

impl Grid {
    /// How many occurrences lie at or before `limit`.
    fn count_to(&self, limit: i128) -> i128 {
        let limit = limit.min(self.last);
        if limit < self.first { 0 } else { (limit - self.first) / self.period + 1 }
    }

    /// The number of the first occurrence after `previous`, were there no end.
    fn number_after(&self, previous: i128) -> i128 {
        Grid { last: i128::MAX, ..*self }.count_to(previous)
    }

    /// The occurrence with this number, from 0; beyond the clock it never comes.
    fn occurrence(&self, number: i128) -> Due {
        let at = self.first.saturating_add(self.period.saturating_mul(number));
        match self.line {
            Line::Monotonic => Due::Monotonic(Monotonic::from_nanoseconds(i64::try_from(at).unwrap_or(i64::MAX))),
            Line::Wall => Due::Wall(Timestamp::from_unix_nanoseconds(at)),
        }
    }

    /// An instant on this grid's line; `None` if it lies on the other.
    fn instant(&self, due: Due) -> Option<i128> {
        match (self.line, due) {
            (Line::Monotonic, Due::Monotonic(at)) => Some(i128::from(at.nanoseconds())),
            (Line::Wall, Due::Wall(at)) => Some(at.unix_nanoseconds()),
            _ => None,
        }
    }
}

impl Trigger for FixedRate {
    fn next(&self, context: &TriggerContext) -> Next {
        let grid = self.grid(context);
        let previous = context.previous_due.and_then(|due| grid.instant(due));
        let number = previous.map_or(0, |previous| grid.number_after(previous));
        let next = grid.occurrence(number);
        // At the end of time there is no later instant to answer.
        let advances = context.previous_due.is_none_or(|previous| next > previous);
        if advances && grid.first.saturating_add(grid.period.saturating_mul(number)) <= grid.last {
            Next::from(next)
        } else {
            Next::Never
        }
    }

    fn latest_at_or_before(&self, context: &TriggerContext, limit: Due) -> Latest {
        let grid = self.grid(context);
        let Some(limit) = grid.instant(limit) else { return Latest::None };
        let previous = context.previous_due.and_then(|due| grid.instant(due));
        let handled = previous.map_or(0, |previous| grid.number_after(previous));
        let upto = grid.count_to(limit);
        if upto > handled { Latest::At(grid.occurrence(upto - 1)) } else { Latest::None }
    }

    fn count_between(&self, context: &TriggerContext, after: Due, until: Due) -> Count {
        let grid = self.grid(context);
        let (Some(after), Some(until)) = (grid.instant(after), grid.instant(until)) else { return Count::Exact(0) };
        Count::Exact(u64::try_from(grid.count_to(until) - grid.count_to(after)).unwrap_or(0))
    }

    fn line(&self) -> Line {
        if self.anchor == Anchor::Epoch { Line::Wall } else { Line::Monotonic }
    }

    fn periodic(&self, context: &TriggerContext) -> Option<Periodic> {
        match self.grid(context).occurrence(0) {
            Due::Monotonic(first) if self.end.is_none() => Some(Periodic { first, period: self.period }),
            _ => None,
        }
    }

    fn validate(&self) -> Result<(), Error> {
        if self.period.is_zero() {
            return Err(Error::invalid("period", "is zero; give the time from one run to the next"));
        }
        if self.phase >= self.period {
            return Err(Error::invalid(
                "phase",
                format!("is {:?}, but must be less than the period of {:?}", self.phase, self.period),
            ));
        }
        match (self.start, self.end) {
            (Some(start), Some(end)) if end < start => {
                Err(Error::invalid("end", format!("{end} lies before the start, {start}; give one after it")))
            }
            _ => Ok(()),
        }
    }

    fn longest_gap(&self) -> Option<Duration> {
        Some(self.period)
    }

    fn describe(&self) -> String {
        let aligned = if self.anchor == Anchor::Epoch { ", aligned" } else { "" };
        format!("every {:?}{aligned}", self.period)
    }
}

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct ReadmeDoctests;
