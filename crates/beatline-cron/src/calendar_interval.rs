//! Every so many days, weeks or months, at a local time.

use std::time::Duration;

use beatline_core::{Count, Due, Error, Latest, Line, Next, Timestamp, Trigger, TriggerContext};

use crate::builder::{Values, Weekday};
use crate::calendar::{DAY, Date, days_in_month, weekday};
use crate::mutants::mutant;
use crate::timeline::{LocalTimes, Timeline};
use crate::trigger::{Fold, Gap, rules};
use crate::wall;
use crate::zone::Zone;

/// Every so many days, weeks or months, at a local time.
///
/// ```text
///   weeks(2).on([Tue, Fri]).at(9, 0, 0)
///
///   Mo Tu We Th Fr Sa Su │ Mo Tu We Th Fr Sa Su │ Mo Tu We Th Fr Sa Su
///      ▲        ▲        │                      │    ▲        ▲
/// ```
///
/// What cron cannot say: *every second Tuesday*, *every ten days*, *the last
/// day but one of each quarter*. The days are counted from a
/// [start](CalendarInterval::starting); without one from the day the job was
/// added, which moves when the process is restarted – set a start where that
/// matters. Days before the start do not count, and those before the job was
/// added are no occurrences.
///
/// Times are at midnight **UTC** unless set otherwise. They are local: 09:00
/// stays 09:00 when the clocks change. A time that a change leaves out or
/// repeats is handled as cron's fixed times are, by [`Gap`] and [`Fold`].
///
/// ```
/// use beatline_core::Timestamp;
/// use beatline_cron::CalendarInterval;
///
/// let closing = CalendarInterval::months(3).starting(2026, 3, 1).on_day(-2).at(18, 0, 0).zone("Asia/Tokyo")?;
/// let from: Timestamp = "2026-01-01T00:00:00Z".parse()?;
/// let dates: Vec<_> = closing.upcoming(from, 3).iter().map(Timestamp::to_string).collect();
/// assert_eq!(dates, ["2026-03-30T09:00:00Z", "2026-06-29T09:00:00Z", "2026-09-29T09:00:00Z"]);
/// # Ok::<(), beatline_core::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use = "a trigger does nothing until a job is added with it"]
pub struct CalendarInterval {
    unit: Unit,
    every: u32,
    start: Option<(i16, u8, u8)>,
    weekdays: Vec<Weekday>,
    days_of_month: Vec<i8>,
    time: (u8, u8, u8),
    zone: Zone,
    gap: Gap,
    fold: Fold,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Unit {
    Days,
    Weeks,
    Months,
}

impl CalendarInterval {
    fn new(unit: Unit, every: u32) -> Self {
        Self {
            unit,
            every,
            start: None,
            weekdays: Vec::new(),
            days_of_month: Vec::new(),
            time: (0, 0, 0),
            zone: Zone::utc(),
            gap: Gap::default(),
            fold: Fold::default(),
        }
    }

    /// Every `every` days, from the start on.
    pub fn days(every: u32) -> Self {
        Self::new(Unit::Days, every)
    }

    /// Every `every` weeks, on the start's day of the week or those set by
    /// [`on`](Self::on). Weeks begin on Monday, and the start's week is one of
    /// them.
    pub fn weeks(every: u32) -> Self {
        Self::new(Unit::Weeks, every)
    }

    /// Every `every` months, on the start's day of the month or those set by
    /// [`on_day`](Self::on_day). A month that lacks the day has no run: use −1
    /// for the last day.
    pub fn months(every: u32) -> Self {
        Self::new(Unit::Months, every)
    }

    /// The date to count from, where the zone is; month and day count from 1.
    pub fn starting(mut self, year: i16, month: u8, day: u8) -> Self {
        self.start = Some((year, month, day));
        self
    }

    /// On these days of the week; for [`weeks`](Self::weeks).
    pub fn on(mut self, weekdays: impl Into<Values<Weekday>>) -> Self {
        self.weekdays = weekdays.into().weekdays();
        self
    }

    /// On this day of the month, beside those set before: 1 to 31, or −1 for
    /// the last day, −2 for the one before, down to −31; for
    /// [`months`](Self::months).
    pub fn on_day(mut self, day: i8) -> Self {
        self.days_of_month.push(day);
        self
    }

    /// The local time of day; midnight if not set.
    pub fn at(mut self, hour: u8, minute: u8, second: u8) -> Self {
        self.time = (hour, minute, second);
        self
    }

    /// The zone whose calendar and clock count: an IANA name, `UTC`, or an
    /// offset such as `+05:30`.
    ///
    /// # Errors
    ///
    /// [`Error::Invalid`] names the field `zone`.
    pub fn zone(mut self, name: &str) -> Result<Self, Error> {
        self.zone = Zone::named(name)?;
        Ok(self)
    }

    /// The zone the machine is set to; a change of that setting is taken over.
    ///
    /// # Errors
    ///
    /// [`Error::Invalid`] names the field `zone` if it cannot be found out.
    pub fn system_zone(mut self) -> Result<Self, Error> {
        self.zone = Zone::system()?;
        Ok(self)
    }

    /// What happens on a day whose clock change leaves the time out.
    pub fn gap(mut self, gap: Gap) -> Self {
        self.gap = gap;
        self
    }

    /// What happens on a day whose clock change repeats the time.
    pub fn fold(mut self, fold: Fold) -> Self {
        self.fold = fold;
        self
    }

    /// The next `count` occurrences strictly after `after`, or as many as there
    /// are; without a start, as for a job added at `after`. Empty where
    /// [`validate`](Trigger::validate) has something to say.
    #[must_use]
    pub fn upcoming(&self, after: Timestamp, count: usize) -> Vec<Timestamp> {
        let Ok(dates) = self.dates(after) else { return Vec::new() };
        let timeline = Timeline { offsets: self.zone.offsets(), local: dates, rules: rules(self.gap, self.fold) };
        let next = |after: Timestamp| timeline.at_or_after(wall::after(after), wall::LAST).map(wall::timestamp);
        std::iter::successors(next(after), |previous| next(*previous)).take(count).collect()
    }

    /// What the settings mean for a job that was added at `registered`.
    fn dates(&self, registered: Timestamp) -> Result<Dates, Error> {
        if self.every == 0 {
            return Err(Error::invalid("every", "0 never moves on: use at least 1"));
        }
        if self.unit != Unit::Weeks && !self.weekdays.is_empty() {
            return Err(Error::invalid("on", "days of the week go with `CalendarInterval::weeks`"));
        }
        if self.unit != Unit::Months && !self.days_of_month.is_empty() {
            return Err(Error::invalid("on_day", "days of the month go with `CalendarInterval::months`"));
        }
        if let Some(day) = self.days_of_month.iter().find(|day| !matches!(day, -31..=-1 | 1..=31)) {
            return Err(Error::invalid("on_day", format!("{day} is out of range: it is 1 to 31, or -31 to -1")));
        }
        let time = wall::local_time(self.time.0, self.time.1, self.time.2)?;
        let start = match self.start {
            Some((year, month, day)) => wall::local_date("starting", year, month, day)?.div_euclid(DAY),
            None => {
                let second = registered.unix_seconds();
                (second + self.zone.offsets().at(second).offset).div_euclid(DAY)
            }
        };
        let date = Date::from_day(start);
        let days = match self.unit {
            Unit::Days => Days::Every,
            Unit::Weeks => {
                let mut bits = self.weekdays.iter().fold(0_u8, |bits, day| bits | 1 << from_monday(day.index()));
                if bits == 0 {
                    bits = 1 << from_monday(weekday(start));
                }
                Days::OfWeek(bits)
            }
            Unit::Months => {
                let mut days = MonthDays::default();
                for &day in &self.days_of_month {
                    days.insert(day);
                }
                if days == MonthDays::default() {
                    days.from_first |= 1 << date.day;
                }
                Days::OfMonth(days)
            }
        };
        Ok(Dates { start, every: self.every.into(), days, time })
    }

    fn with<T>(&self, context: &TriggerContext, otherwise: T, answer: impl FnOnce(&Timeline<'_, Dates>) -> T) -> T {
        // Looked at first, so that a start today is today by the newest rules.
        let offsets = self.zone.offsets_at(context.now.monotonic);
        // Settings that make no sense are refused when the job is added.
        let Ok(local) = self.dates(context.registered.wall) else { return otherwise };
        answer(&Timeline { offsets, local, rules: rules(self.gap, self.fold) })
    }
}

impl Trigger for CalendarInterval {
    fn next(&self, context: &TriggerContext) -> Next {
        self.with(context, Next::Never, |timeline| wall::next(timeline, context))
    }

    fn latest_at_or_before(&self, context: &TriggerContext, limit: Due) -> Latest {
        self.with(context, Latest::None, |timeline| wall::latest(timeline, context, limit))
    }

    fn count_between(&self, context: &TriggerContext, after: Due, until: Due) -> Count {
        self.with(context, Count::Exact(0), |timeline| wall::count(timeline, context, after, until))
    }

    fn line(&self) -> Line {
        Line::Wall
    }

    fn validate(&self) -> Result<(), Error> {
        self.dates(Timestamp::UNIX_EPOCH).map(drop)
    }

    /// Known for days and weeks, where every run is shifted over a gap.
    fn longest_gap(&self) -> Option<Duration> {
        let change = self.zone.offsets().largest_change();
        if self.unit == Unit::Months || (change != 0 && (self.gap != Gap::Shift || change >= 3 * 3600)) {
            return None;
        }
        let days = i64::from(self.every) * if self.unit == Unit::Weeks { 7 } else { 1 };
        Some(Duration::from_secs((days * DAY + change).unsigned_abs()))
    }

    fn describe(&self) -> String {
        let unit = match self.unit {
            Unit::Days => "day",
            Unit::Weeks => "week",
            Unit::Months => "month",
        };
        let every = if self.every == 1 { unit.to_owned() } else { format!("{} {unit}s", self.every) };
        let (hour, minute, second) = self.time;
        format!("every {every} at {hour:02}:{minute:02}:{second:02} ({})", self.zone.name())
    }
}

/// A day beyond the last that a timestamp can name, in any zone.
const LAST_DAY: i64 = Date::new(10_000, 2, 1).to_day();

/// 0 for Monday to 6 for Sunday.
fn from_monday(weekday: u32) -> u32 {
    (weekday + 6) % 7
}

/// The Monday of a day's week, as a number of weeks.
fn week(day: i64) -> i64 {
    // 1970-01-05 was a Monday.
    (day - 4).div_euclid(7)
}

/// Days of a month, counted from either end: bit n is the n-th.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct MonthDays {
    from_first: u32,
    from_last: u32,
}

impl MonthDays {
    fn insert(&mut self, day: i8) {
        let set = if day > 0 { &mut self.from_first } else { &mut self.from_last };
        *set |= 1 << day.unsigned_abs();
    }

    /// The days that a month of `length` days has; bit n is day n.
    fn in_month(self, length: u32) -> u32 {
        (1..=length)
            .filter(|day| (self.from_first >> day | self.from_last >> (length + 1 - day)) & 1 == 1)
            .fold(0, |days, day| days | 1 << day)
    }
}

#[derive(Clone, Copy, Debug)]
enum Days {
    Every,
    /// Bit 0 is Monday.
    OfWeek(u8),
    OfMonth(MonthDays),
}

/// The local times of a calendar interval.
///
/// # Ground rules
///
/// Time is cut into periods – a day, a week, a month – and the n-th, 2n-th …
/// after the start's own is active. In an active period the days are a mask.
#[derive(Clone, Copy, Debug)]
struct Dates {
    start: i64,
    every: i64,
    days: Days,
    time: i64,
}

impl Dates {
    /// The number of a day's period.
    fn period_of(&self, day: i64) -> i64 {
        match self.days {
            Days::Every => day,
            Days::OfWeek(_) => week(day),
            Days::OfMonth(_) => {
                let date = Date::from_day(day);
                date.year * 12 + i64::from(date.month) - 1
            }
        }
    }

    /// A period's first day, and its matching days; bit n is n days later.
    fn period(&self, period: i64) -> (i64, u32) {
        match self.days {
            Days::Every => (period, 1),
            Days::OfWeek(days) => (period * 7 + 4, days.into()),
            Days::OfMonth(days) => {
                let (year, month) = (period.div_euclid(12), period.rem_euclid(12) as u32 + 1);
                (Date::new(year, month, 1).to_day(), days.in_month(days_in_month(year, month)) >> 1)
            }
        }
    }

    /// The first period at or after this one that is active.
    fn active_at_or_after(&self, period: i64) -> i64 {
        let first = self.period_of(self.start);
        let ahead = (period - first).max(0);
        first + (ahead + self.every - 1) / self.every * self.every
    }

    /// The days of a period that match and are not before the start.
    fn days_of(&self, period: i64) -> (i64, u32) {
        let (first, days) = self.period(period);
        let before = (self.start - first).clamp(0, 32) as u32;
        (first, mutant!("days-before-start", days & u32::MAX.checked_shl(before).unwrap_or(0), days))
    }

    /// How many active periods without a day in them end a search: with 31
    /// and every 12 months from June there is none.
    fn bound(&self) -> i64 {
        // The calendar repeats after 4,800 months; days and weeks always match.
        if matches!(self.days, Days::OfMonth(_)) { 4_801 } else { 2 }
    }
}

impl LocalTimes for Dates {
    fn at_or_after(&self, local: i64) -> Option<i64> {
        // The first day whose time is not before `local`.
        let day = (local - self.time + DAY - 1).div_euclid(DAY).max(self.start);
        let mut period = self.active_at_or_after(self.period_of(day));
        for _ in 0..self.bound() {
            let (first, days) = self.days_of(period);
            if first > LAST_DAY {
                return None;
            }
            let passed = (day - first).clamp(0, 32) as u32;
            let left = days & u32::MAX.checked_shl(passed).unwrap_or(0);
            if left != 0 {
                return Some((first + i64::from(left.trailing_zeros())) * DAY + self.time);
            }
            period += self.every;
        }
        None
    }

    fn at_or_before(&self, local: i64) -> Option<i64> {
        let day = (local - self.time).div_euclid(DAY);
        let start = self.period_of(self.start);
        if day < self.start {
            return None;
        }
        let mut period = start + (self.period_of(day) - start) / self.every * self.every;
        for _ in 0..self.bound() {
            if period < start {
                return None;
            }
            let (first, days) = self.days_of(period);
            let reached = (day - first).clamp(0, 31) as u32;
            let left = days & (u32::MAX >> (31 - reached));
            if left != 0 {
                return Some((first + i64::from(31 - left.leading_zeros())) * DAY + self.time);
            }
            period -= self.every;
        }
        None
    }

    fn count(&self, from: i64, to: i64) -> u64 {
        let first_day = (from - self.time + DAY - 1).div_euclid(DAY).max(self.start);
        let end_day = (to - self.time + DAY - 1).div_euclid(DAY);
        if first_day >= end_day {
            return 0;
        }
        let (first, last) = (self.active_at_or_after(self.period_of(first_day)), self.period_of(end_day - 1));
        if first > last {
            return 0;
        }
        let last = first + (last - first) / self.every * self.every;
        let in_part = |period: i64| {
            let (start, days) = self.days_of(period);
            let low = (first_day - start).clamp(0, 32) as u32;
            let high = (end_day - start).clamp(0, 32) as u32;
            let days = days & u32::MAX.checked_shl(low).unwrap_or(0) & !u32::MAX.checked_shl(high).unwrap_or(0);
            u64::from(days.count_ones())
        };
        if first == last {
            return in_part(first);
        }
        let whole = ((last - first) / self.every - 1) as u64;
        let between = match self.days {
            Days::Every => whole,
            Days::OfWeek(days) => whole * u64::from(days.count_ones()),
            Days::OfMonth(_) => {
                (1..=whole as i64).map(|index| u64::from(self.period(first + index * self.every).1.count_ones())).sum()
            }
        };
        in_part(first) + between + in_part(last)
    }
}
