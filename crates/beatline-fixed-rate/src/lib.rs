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

use beatline_core::{Count, Due, Error, Latest, Monotonic, Next, Periodic, Timestamp, Trigger, TriggerContext};

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
/// setting the wall clock afterwards moves nothing. Instants before the job was
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
}

/// The occurrences of one registration: from `first`, every `period`, to `last`.
#[derive(Clone, Copy)]
struct Grid {
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
        let nanoseconds = |at: Monotonic| i128::from(at.nanoseconds());
        let registered = context.registered;
        // A period that was not validated still must not divide by zero.
        let period = (self.period.as_nanos() as i128).max(1);
        let (anchor, mut earliest) = match self.anchor {
            Anchor::Registration => {
                let at = nanoseconds(registered.monotonic);
                (at, at + period)
            }
            Anchor::After(delay) => {
                let at = nanoseconds(registered.monotonic) + delay.as_nanos() as i128;
                (at, at)
            }
            Anchor::Wall(anchor) => {
                let at = nanoseconds(registered.monotonic_at(anchor));
                (at, at.max(nanoseconds(registered.monotonic)))
            }
        };
        let anchor = anchor + self.phase.as_nanos() as i128;
        if let Some(start) = self.start {
            earliest = earliest.max(nanoseconds(registered.monotonic_at(start)));
        }
        let first = anchor + (earliest - anchor).div_euclid(period) * period;
        let first = if first < earliest { first + period } else { first };
        let last = self.end.map_or(i128::MAX, |end| nanoseconds(registered.monotonic_at(end)));
        Grid { first, period, last }
    }
}

impl Grid {
    /// How many occurrences lie at or before `limit`.
    fn count_to(&self, limit: i128) -> i128 {
        let limit = limit.min(self.last);
        if limit < self.first { 0 } else { (limit - self.first) / self.period + 1 }
    }

    /// The number of the first occurrence after `previous`, were there no end.
    fn number_after(&self, previous: Monotonic) -> i128 {
        Grid { last: i128::MAX, ..*self }.count_to(i128::from(previous.nanoseconds()))
    }

    /// The occurrence with this number, from 0; beyond the clock it never comes.
    fn occurrence(&self, number: i128) -> Monotonic {
        let at = self.first.saturating_add(self.period.saturating_mul(number));
        Monotonic::from_nanoseconds(i64::try_from(at).unwrap_or(i64::MAX))
    }
}

impl Trigger for FixedRate {
    fn next(&self, context: &TriggerContext) -> Next {
        let grid = self.grid(context);
        let number = match context.previous_monotonic() {
            None => 0,
            Some(Monotonic::MAX) => return Next::Never,
            Some(previous) => grid.number_after(previous),
        };
        let next = grid.first.saturating_add(grid.period.saturating_mul(number));
        if next > grid.last { Next::Never } else { Next::At(grid.occurrence(number)) }
    }

    fn latest_at_or_before(&self, context: &TriggerContext, limit: Due) -> Latest {
        let Due::Monotonic(limit) = limit else { return Latest::None };
        let grid = self.grid(context);
        let handled = context.previous_monotonic().map_or(0, |previous| grid.number_after(previous));
        let upto = grid.count_to(i128::from(limit.nanoseconds()));
        if upto > handled { Latest::At(Due::Monotonic(grid.occurrence(upto - 1))) } else { Latest::None }
    }

    fn count_between(&self, context: &TriggerContext, after: Due, until: Due) -> Count {
        let (Due::Monotonic(after), Due::Monotonic(until)) = (after, until) else { return Count::Exact(0) };
        let grid = self.grid(context);
        let count = grid.count_to(i128::from(until.nanoseconds())) - grid.count_to(i128::from(after.nanoseconds()));
        Count::Exact(u64::try_from(count).unwrap_or(0))
    }

    fn periodic(&self, context: &TriggerContext) -> Option<Periodic> {
        let first = self.grid(context).occurrence(0);
        self.end.is_none().then_some(Periodic { first, period: self.period })
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
        format!("every {:?}", self.period)
    }
}

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct ReadmeDoctests;
