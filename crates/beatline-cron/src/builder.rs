//! Cron without a string.

use std::ops::RangeInclusive;

use beatline_core::Error;

use crate::dialect::Field;
use crate::field::{self, Bits, DayOfMonth, DayOfWeek, DayRule, Pattern, Years};
use crate::schedule::Schedule;
use crate::trigger::Cron;

/// A day of the week.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)] // their names say it
pub enum Weekday {
    Sun,
    Mon,
    Tue,
    Wed,
    Thu,
    Fri,
    Sat,
}

impl Weekday {
    /// From 0 for Sunday to 6 for Saturday.
    pub(crate) const fn index(self) -> u32 {
        self as u32
    }
}

/// A month of the year.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)] // their names say it
pub enum Month {
    Jan = 1,
    Feb,
    Mar,
    Apr,
    May,
    Jun,
    Jul,
    Aug,
    Sep,
    Oct,
    Nov,
    Dec,
}

/// What a field may be: one value, a range of values, or several of them.
///
/// Made by `into()` from `3`, `9..=17` or `[0, 15, 30]`; ranges of weekdays and
/// months may wrap (`Weekday::Fri..=Weekday::Mon`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Values<T>(Vec<RangeInclusive<T>>);

impl<T: Copy> From<T> for Values<T> {
    fn from(value: T) -> Self {
        Self(vec![value..=value])
    }
}

impl<T> From<RangeInclusive<T>> for Values<T> {
    fn from(range: RangeInclusive<T>) -> Self {
        Self(vec![range])
    }
}

impl<T: Copy, const N: usize> From<[T; N]> for Values<T> {
    fn from(values: [T; N]) -> Self {
        Self::from(values.as_slice())
    }
}

impl<T: Copy> From<&[T]> for Values<T> {
    fn from(values: &[T]) -> Self {
        Self(values.iter().map(|value| *value..=*value).collect())
    }
}

/// One thing asked of a field.
#[derive(Clone, Copy, Debug)]
enum Ask {
    Range(i64, i64),
    Every(u32),
}

/// Makes a [`Cron`] without a string; from [`Cron::builder`].
///
/// Fields finer than the finest one set are at their first value, all others
/// that are not set are open: `hour(3)` is 03:00:00 every day,
/// `day_of_month(1)` midnight of every first, `minute(30)` half past every
/// hour. With nothing set it is every minute. Setting a field again replaces it.
///
/// As in an expression, an open minute or hour and the `every_…` methods make
/// an interval job, which follows real time over clock changes; all else has
/// fixed times.
///
/// If both a day of the month and a day of the week are set, **both** must
/// match – `day_of_month(13).day_of_week(Weekday::Fri)` is Friday the 13th –
/// unless [`either_day`](CronBuilder::either_day) asks for cron's other reading.
///
/// ```
/// use beatline_core::Timestamp;
/// use beatline_cron::{Cron, Month, Weekday};
///
/// let close = Cron::builder()
///     .month([Month::Mar, Month::Jun, Month::Sep, Month::Dec])
///     .last_weekday_of_month()
///     .hour(18)
///     .build()?
///     .zone("America/New_York")?;
/// let from: Timestamp = "2026-01-01T00:00:00Z".parse()?;
/// assert_eq!(close.next_after(from).map(|at| at.to_string()).as_deref(), Some("2026-03-31T22:00:00Z"));
/// # Ok::<(), beatline_core::Error>(())
/// ```
#[derive(Clone, Debug, Default)]
#[must_use = "a builder does nothing until `build`"]
pub struct CronBuilder {
    second: Option<Vec<Ask>>,
    minute: Option<Vec<Ask>>,
    hour: Option<Vec<Ask>>,
    day_of_month: Option<Vec<Ask>>,
    special_days: DayOfMonth,
    month: Option<Vec<Ask>>,
    day_of_week: Option<Vec<Ask>>,
    special_weekdays: DayOfWeek,
    nth: Option<u8>,
    year: Option<Vec<Ask>>,
    either_day: bool,
}

fn numbers<T: Copy>(values: impl Into<Values<T>>, number: impl Fn(T) -> i64) -> Option<Vec<Ask>> {
    Some(values.into().0.iter().map(|range| Ask::Range(number(*range.start()), number(*range.end()))).collect())
}

impl CronBuilder {
    /// At these seconds, 0 to 59.
    pub fn second(mut self, values: impl Into<Values<u8>>) -> Self {
        self.second = numbers(values, i64::from);
        self
    }

    /// Every `step` seconds, beginning again each minute.
    pub fn every_seconds(mut self, step: u8) -> Self {
        self.second = Some(vec![Ask::Every(step.into())]);
        self
    }

    /// At these minutes, 0 to 59.
    pub fn minute(mut self, values: impl Into<Values<u8>>) -> Self {
        self.minute = numbers(values, i64::from);
        self
    }

    /// Every `step` minutes, beginning again each hour.
    pub fn every_minutes(mut self, step: u8) -> Self {
        self.minute = Some(vec![Ask::Every(step.into())]);
        self
    }

    /// At these hours, 0 to 23.
    pub fn hour(mut self, values: impl Into<Values<u8>>) -> Self {
        self.hour = numbers(values, i64::from);
        self
    }

    /// Every `step` hours, beginning again each day.
    pub fn every_hours(mut self, step: u8) -> Self {
        self.hour = Some(vec![Ask::Every(step.into())]);
        self
    }

    /// On these days of the month: 1 to 31, or −1 for the last day, −2 for the
    /// one before, down to −31. A month that lacks the day has no run.
    pub fn day_of_month(mut self, values: impl Into<Values<i8>>) -> Self {
        self.day_of_month = numbers(values, i64::from);
        self
    }

    /// On the weekday (Monday to Friday) nearest to this day, 1 to 31, within
    /// its month; beside other days of the month that are set.
    pub fn weekday_nearest(mut self, day: u8) -> Self {
        // An impossible day is kept, for `build` to complain about.
        self.special_days.nearest_weekday |= if (1..=31).contains(&day) { 1 << day } else { 1 };
        self
    }

    /// On the last Monday to Friday of the month; beside other days of the
    /// month that are set.
    pub fn last_weekday_of_month(mut self) -> Self {
        self.special_days.nearest_weekday_before_last |= 1;
        self
    }

    /// In these months.
    pub fn month(mut self, values: impl Into<Values<Month>>) -> Self {
        self.month = numbers(values, |month| month as i64);
        self
    }

    /// On these days of the week.
    pub fn day_of_week(mut self, values: impl Into<Values<Weekday>>) -> Self {
        self.day_of_week = numbers(values, |weekday| i64::from(weekday.index()));
        self
    }

    /// On the `nth` such day of the month, 1 to 5; beside other days of the
    /// week that are set.
    pub fn nth_day_of_week(mut self, nth: u8, weekday: Weekday) -> Self {
        match nth {
            1..=5 => self.special_weekdays.nth[nth as usize - 1] |= 1 << weekday.index(),
            other => self.nth = Some(other),
        }
        self
    }

    /// On the last such day of the month; beside other days of the week that
    /// are set.
    pub fn last_day_of_week(mut self, weekday: Weekday) -> Self {
        self.special_weekdays.last |= 1 << weekday.index();
        self
    }

    /// In these years, 1970 to 2199; without it, always.
    pub fn year(mut self, values: impl Into<Values<u16>>) -> Self {
        self.year = numbers(values, i64::from);
        self
    }

    /// A day of the month *or* a day of the week is enough, where both are set.
    pub fn either_day(mut self) -> Self {
        self.either_day = true;
        self
    }

    /// The trigger, in UTC until a zone is set.
    ///
    /// # Errors
    ///
    /// [`Error::Invalid`] names the first field that holds a value out of
    /// range, no value at all, a range that does not ascend, or a step of zero.
    pub fn build(self) -> Result<Cron, Error> {
        let month_days = self.day_of_month.is_some() || self.special_days != DayOfMonth::default();
        let week_days =
            self.day_of_week.is_some() || self.special_weekdays != DayOfWeek::default() || self.nth.is_some();
        // Whether a field of this fineness or a finer one was set.
        let by_second = self.second.is_some();
        let by_minute = by_second || self.minute.is_some();
        let by_hour = by_minute || self.hour.is_some();
        let by_day = by_hour || month_days || week_days;
        let by_month = by_day || self.month.is_some();
        let nothing = !by_month && self.year.is_none();

        let first_of_month = DayOfMonth { days: 1 << 1, ..DayOfMonth::default() };
        let minute_open = by_second || nothing;
        let hour_open = by_minute || nothing;
        let pattern = Pattern {
            seconds: simple("second", self.second.as_deref(), 59, false)?,
            minutes: simple("minute", self.minute.as_deref(), 59, minute_open)?,
            hours: simple("hour", self.hour.as_deref(), 23, hour_open)?,
            day_of_month: match month_days {
                true => self.days()?,
                false if by_day || nothing => DayOfMonth::EVERY,
                false => first_of_month,
            },
            months: match &self.month {
                Some(months) => wrapping("month", months, 1, 12)?,
                None if by_day || nothing => field::span(1, 12),
                None => 1 << 1,
            },
            day_of_week: if week_days { self.weekdays()? } else { DayOfWeek::EVERY },
            years: self.year.as_deref().map(years).transpose()?,
            day_rule: if self.either_day && month_days && week_days { DayRule::Either } else { DayRule::Both },
            interval: [&self.second, &self.minute, &self.hour].into_iter().any(is_every)
                || (self.minute.is_none() && minute_open)
                || (self.hour.is_none() && hour_open),
        };
        Ok(Cron::new(Schedule::new(pattern), &self.text(), None))
    }

    fn days(&self) -> Result<DayOfMonth, Error> {
        const FIELD: &str = "day_of_month";
        if self.special_days.nearest_weekday & 1 == 1 {
            return Err(Error::invalid("weekday_nearest", "a day of the month is 1 to 31"));
        }
        let mut days = self.special_days;
        for ask in self.day_of_month.as_deref().unwrap_or_default() {
            let Ask::Range(from, to) = *ask else { continue };
            let in_range = |day: i64| (1..=31).contains(&day.abs());
            if !in_range(from) || !in_range(to) || from.signum() != to.signum() {
                return Err(Error::invalid(
                    FIELD,
                    format!("{from} to {to}: days are 1 to 31, or -31 to -1 from the end"),
                ));
            }
            check_ascending(FIELD, from, to)?;
            for day in from..=to {
                if day > 0 {
                    days.days |= 1 << day;
                } else {
                    days.before_last |= 1 << (-day - 1);
                }
            }
        }
        check_not_empty(FIELD, days == DayOfMonth::default())?;
        Ok(days)
    }

    fn weekdays(&self) -> Result<DayOfWeek, Error> {
        if let Some(nth) = self.nth {
            return Err(Error::invalid("nth_day_of_week", format!("{nth}: a month has a first to a fifth")));
        }
        let mut days = self.special_weekdays;
        for ask in self.day_of_week.as_deref().unwrap_or_default() {
            let Ask::Range(from, to) = *ask else { continue };
            for weekday in from..=if to < from { to + 7 } else { to } {
                days.days |= 1 << (weekday % 7);
            }
        }
        check_not_empty("day_of_week", days == DayOfWeek::default())?;
        Ok(days)
    }

    /// A description in words close to the calls.
    fn text(&self) -> String {
        let field = |field: Field, asks: &Option<Vec<Ask>>| {
            let value = |value: i64| match field.names().get((value - i64::from(field == Field::Month)) as usize) {
                Some(name) => (*name).to_owned(),
                None => value.to_string(),
            };
            let items = asks.as_ref()?.iter().map(|ask| match *ask {
                Ask::Range(from, to) if from == to => value(from),
                Ask::Range(from, to) => format!("{}-{}", value(from), value(to)),
                Ask::Every(step) => format!("*/{step}"),
            });
            Some(format!("{} {}", field.name(), items.collect::<Vec<_>>().join(",")))
        };
        let special = self.special_days != DayOfMonth::default() || self.special_weekdays != DayOfWeek::default();
        let parts: Vec<_> = [
            field(Field::Second, &self.second),
            field(Field::Minute, &self.minute),
            field(Field::Hour, &self.hour),
            field(Field::DayOfMonth, &self.day_of_month),
            field(Field::Month, &self.month),
            field(Field::DayOfWeek, &self.day_of_week),
            field(Field::Year, &self.year),
            special.then(|| "special days".to_owned()),
        ]
        .into_iter()
        .flatten()
        .collect();
        if parts.is_empty() { "every minute".to_owned() } else { parts.join(", ") }
    }
}

fn is_every(asks: &Option<Vec<Ask>>) -> bool {
    matches!(asks.as_deref(), Some([Ask::Every(_)]))
}

fn check_ascending(field: &'static str, from: i64, to: i64) -> Result<(), Error> {
    if from <= to { Ok(()) } else { Err(Error::invalid(field, format!("{from} to {to}: a range ascends"))) }
}

fn check_not_empty(field: &'static str, empty: bool) -> Result<(), Error> {
    if empty { Err(Error::invalid(field, "no value at all: name at least one")) } else { Ok(()) }
}

/// The bits of a field that begins at zero. Not set, it is everything where
/// `open`, and its first value otherwise.
fn simple(field: &'static str, asks: Option<&[Ask]>, last: u32, open: bool) -> Result<u64, Error> {
    let Some(asks) = asks else {
        return Ok(if open { field::span(0, last) } else { 1 });
    };
    let mut bits = 0;
    for ask in asks {
        match *ask {
            Ask::Every(0) => return Err(Error::invalid(field, "a step of 0 never moves: use at least 1")),
            Ask::Every(step) => (0..=last).step_by(step as usize).for_each(|value| bits |= 1 << value),
            Ask::Range(from, to) => {
                check_ascending(field, from, to)?;
                if to > i64::from(last) {
                    return Err(Error::invalid(field, format!("{to} is out of range: it is 0 to {last}")));
                }
                (from..=to).for_each(|value| bits |= 1 << value);
            }
        }
    }
    check_not_empty(field, bits == 0)?;
    Ok(bits)
}

/// The bits of a field whose ranges may wrap.
fn wrapping(field: &'static str, asks: &[Ask], first: i64, last: i64) -> Result<u64, Error> {
    let span = last - first + 1;
    let mut bits = 0_u64;
    for ask in asks {
        let Ask::Range(from, to) = *ask else { continue };
        for value in from..=if to < from { to + span } else { to } {
            bits |= 1 << (first + (value - first) % span);
        }
    }
    check_not_empty(field, bits == 0)?;
    Ok(bits)
}

fn years(asks: &[Ask]) -> Result<Years, Error> {
    let mut bits = Bits::default();
    for ask in asks {
        let Ask::Range(from, to) = *ask else { continue };
        check_ascending("year", from, to)?;
        if from < Years::FIRST || to > Years::LAST {
            return Err(Error::invalid("year", format!("{from} to {to} is out of range: it is 1970 to 2199")));
        }
        (from..=to).for_each(|year| bits.insert((year - Years::FIRST) as u32));
    }
    check_not_empty("year", bits == Bits::default())?;
    Ok(Years(bits))
}

impl Values<Weekday> {
    /// Each weekday named, once for each time.
    pub(crate) fn weekdays(&self) -> Vec<Weekday> {
        use Weekday::{Fri, Mon, Sat, Sun, Thu, Tue, Wed};
        let all = [Sun, Mon, Tue, Wed, Thu, Fri, Sat];
        let days = |range: &RangeInclusive<Weekday>| {
            let (from, to) = (range.start().index(), range.end().index());
            (from..=if to < from { to + 7 } else { to }).map(|day| all[day as usize % 7]).collect::<Vec<_>>()
        };
        self.0.iter().flat_map(days).collect()
    }
}
