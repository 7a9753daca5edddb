//! A compiled schedule: which local times match, forwards, backwards and
//! counted. It knows no zone; a local time is a number of seconds from local
//! 1970-01-01T00:00:00.
//!
//! # Ground rules
//!
//! Months come in 28 shapes: four lengths, seven weekdays to begin with. The
//! matching days of each shape are computed once, as a mask; the search for a
//! day is then a look at one mask a month, and the question whether any day
//! ever matches is a look at the table.

use crate::calendar::{self, DAY, Date, weekday};
use crate::field::{self, DayOfMonth, DayOfWeek, DayRule, Pattern};
use crate::mutants::mutant;
use crate::timeline::LocalTimes;

/// After so many years without a matching day there is none: the calendar has
/// begun again.
const CYCLE_YEARS: i64 = 400;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Schedule {
    pattern: Pattern,
    /// By length of the month (less 28) and weekday of its first day; bit n is
    /// day n.
    days: [[u32; 7]; 4],
    /// Whether any day matches, ever.
    has_days: bool,
    first_time: i64,
    last_time: i64,
}

impl Schedule {
    /// Compiles a pattern. Its fields for second, minute, hour and month must
    /// not be empty; the day fields may match no day.
    pub(crate) fn new(pattern: Pattern) -> Self {
        let mut days = [[0; 7]; 4];
        for length in 28..=31 {
            for first in 0..7 {
                days[length as usize - 28][first as usize] = matching_days(&pattern, length, first);
            }
        }
        let earliest = |bits: u64| i64::from(bits.trailing_zeros());
        let latest = |bits: u64| i64::from(63 - bits.leading_zeros());
        let time =
            |part: &dyn Fn(u64) -> i64| part(pattern.hours) * 3600 + part(pattern.minutes) * 60 + part(pattern.seconds);
        let mut schedule =
            Self { pattern, days, has_days: false, first_time: time(&earliest), last_time: time(&latest) };
        schedule.has_days = schedule.any_day();
        schedule
    }

    pub(crate) fn is_interval(&self) -> bool {
        self.pattern.interval
    }

    pub(crate) fn has_days(&self) -> bool {
        self.has_days
    }

    pub(crate) fn has_years(&self) -> bool {
        self.pattern.years.is_some()
    }

    fn any_day(&self) -> bool {
        let months = |year: i64| {
            (1..=12).filter(move |month| self.pattern.months >> month & 1 == 1).map(move |month| (year, month))
        };
        match self.pattern.years {
            // In 400 years every month begins on every weekday, in leap years
            // and in others.
            None => [2023, 2024].into_iter().flat_map(months).any(|(year, month)| {
                let length = calendar::days_in_month(year, month);
                self.days[length as usize - 28].iter().any(|days| *days != 0)
            }),
            Some(years) => (field::Years::FIRST..=field::Years::LAST)
                .filter(|year| years.contains(*year))
                .flat_map(months)
                .any(|(year, month)| self.days_of(year, month).1 != 0),
        }
    }

    /// The day number of the month's first day, and the mask of matching days.
    fn days_of(&self, year: i64, month: u32) -> (i64, u32) {
        let first = Date::new(year, month, 1).to_day();
        (first, self.days_of_month_from(first, year, month))
    }

    fn days_of_month_from(&self, first: i64, year: i64, month: u32) -> u32 {
        let length = mutant!("leap-day", calendar::days_in_month(year, month), calendar::days_in_month(2023, month));
        self.days[length as usize - 28][weekday(first) as usize]
    }

    fn has_year(&self, year: i64) -> bool {
        self.pattern.years.is_none_or(|years| years.contains(year))
    }

    /// The first matching day that is not before `day`.
    fn day_at_or_after(&self, day: i64) -> Option<i64> {
        if !self.has_days {
            return None;
        }
        let Date { mut year, mut month, day: day_of_month } = Date::from_day(day);
        let last_year = year + mutant!("search-bound", CYCLE_YEARS, 8);
        let mut from = day_of_month;
        if !self.has_year(year) {
            (month, from) = (13, 1);
        }
        loop {
            match field::at_or_after(self.pattern.months, month) {
                Some(matching) => {
                    if matching != month {
                        from = 1;
                    }
                    month = matching;
                    let (first, days) = self.days_of(year, month);
                    let left = days & (u32::MAX << from);
                    if left != 0 {
                        return Some(first + i64::from(left.trailing_zeros()) - 1);
                    }
                    month += 1;
                }
                None => {
                    year = match self.pattern.years {
                        None if year < last_year => year + 1,
                        None => return None,
                        Some(years) => years.at_or_after(year + 1)?,
                    };
                    month = 1;
                }
            }
            from = 1;
        }
    }

    /// The last matching day that is not after `day`.
    fn day_at_or_before(&self, day: i64) -> Option<i64> {
        if !self.has_days {
            return None;
        }
        let Date { mut year, mut month, day: day_of_month } = Date::from_day(day);
        let first_year = year - CYCLE_YEARS;
        let mut to = day_of_month;
        if !self.has_year(year) {
            (month, to) = (0, 31);
        }
        loop {
            // Months begin at bit 1, so that 0 stands for "none left".
            match field::at_or_before(self.pattern.months, month) {
                Some(matching) => {
                    if matching != month {
                        to = 31;
                    }
                    month = matching;
                    let (first, days) = self.days_of(year, month);
                    let left = days & (u32::MAX >> (31 - to));
                    if left != 0 {
                        return Some(first + i64::from(31 - left.leading_zeros()) - 1);
                    }
                    month -= 1;
                }
                None => {
                    year = match self.pattern.years {
                        None if year > first_year => year - 1,
                        None => return None,
                        Some(years) => years.at_or_before(year - 1)?,
                    };
                    month = 12;
                }
            }
            to = 31;
        }
    }

    /// How many days match from `from` up to but not including `to`.
    fn days_between(&self, from: i64, to: i64) -> u64 {
        if from >= to || !self.has_days {
            return 0;
        }
        let (start, end) = (Date::from_day(from), Date::from_day(to - 1));
        let mut count = 0;
        for year in start.year..=end.year {
            if !self.has_year(year) {
                continue;
            }
            let first_month = if year == start.year { start.month } else { 1 };
            let last_month = if year == end.year { end.month } else { 12 };
            for month in first_month..=last_month {
                if self.pattern.months >> month & 1 == 0 {
                    continue;
                }
                let (_, mut days) = self.days_of(year, month);
                if (year, month) == (start.year, start.month) {
                    days &= u32::MAX << start.day;
                }
                if (year, month) == (end.year, end.month) {
                    days &= u32::MAX >> (31 - end.day);
                }
                count += u64::from(days.count_ones());
            }
        }
        count
    }

    fn matches_day(&self, day: i64) -> bool {
        let date = Date::from_day(day);
        self.pattern.months >> date.month & 1 == 1
            && self.has_year(date.year)
            && self.days_of_month_from(day - i64::from(date.day) + 1, date.year, date.month) >> date.day & 1 == 1
    }

    /// The first matching second of a day that is not before `second`.
    fn time_at_or_after(&self, second: i64) -> Option<i64> {
        let Pattern { seconds, minutes, hours, .. } = self.pattern;
        let (hour, minute, second) = split(second);
        let time = |hour: u32, minute: u32, second: u32| i64::from(hour * 3600 + minute * 60 + second);
        if hours >> hour & 1 == 1 {
            if minutes >> minute & 1 == 1 {
                if let Some(second) = field::at_or_after(seconds, second) {
                    return Some(time(hour, minute, second));
                }
            }
            if let Some(minute) = field::at_or_after(minutes, mutant!("same-minute", minute + 1, minute)) {
                return Some(time(hour, minute, seconds.trailing_zeros()));
            }
        }
        let hour = field::at_or_after(hours, hour + 1)?;
        let minute = mutant!("minute-kept", minutes.trailing_zeros(), minute);
        Some(time(hour, minute, seconds.trailing_zeros()))
    }

    /// The last matching second of a day that is not after `second`.
    fn time_at_or_before(&self, second: i64) -> Option<i64> {
        let Pattern { seconds, minutes, hours, .. } = self.pattern;
        let (hour, minute, second) = split(second);
        let time = |hour: u32, minute: u32, second: u32| i64::from(hour * 3600 + minute * 60 + second);
        let last = |bits: u64| 63 - bits.leading_zeros();
        if hours >> hour & 1 == 1 {
            if minutes >> minute & 1 == 1 {
                if let Some(second) = field::at_or_before(seconds, second) {
                    return Some(time(hour, minute, second));
                }
            }
            if let Some(minute) = minute.checked_sub(1).and_then(|minute| field::at_or_before(minutes, minute)) {
                return Some(time(hour, minute, last(seconds)));
            }
        }
        let hour = field::at_or_before(hours, hour.checked_sub(1)?)?;
        Some(time(hour, last(minutes), mutant!("backward-second", last(seconds), seconds.trailing_zeros())))
    }

    fn times_a_day(&self) -> u64 {
        let Pattern { seconds, minutes, hours, .. } = self.pattern;
        u64::from(seconds.count_ones() * minutes.count_ones() * hours.count_ones())
    }

    /// How many times of a day are before `second`.
    fn times_before(&self, second: i64) -> u64 {
        let Pattern { seconds, minutes, hours, .. } = self.pattern;
        let (hour, minute, second) = split(second);
        let (each_minute, each_hour) =
            (u64::from(seconds.count_ones()), u64::from(seconds.count_ones() * minutes.count_ones()));
        let mut count = field::count_below(hours, hour) * each_hour;
        if hours >> hour & 1 == 1 {
            count += field::count_below(minutes, minute) * each_minute;
            if minutes >> minute & 1 == 1 {
                count += mutant!("count-seconds", field::count_below(seconds, second), 0);
            }
        }
        count
    }

    /// The longest time between two matching local times, in seconds; `None`
    /// if they end or there is none.
    pub(crate) fn longest_gap(&self) -> Option<i64> {
        if !self.has_days || self.has_years() {
            return None;
        }
        let Pattern { seconds, minutes, hours, .. } = self.pattern;
        // From the last of the finer values to the first, one coarser further.
        let minute_end = i64::from(63 - seconds.leading_zeros()) - i64::from(seconds.trailing_zeros());
        let hour_end = i64::from(63 - minutes.leading_zeros()) - i64::from(minutes.trailing_zeros());
        let over_a_day = self.longest_days() * DAY - (self.last_time - self.first_time);
        let mut longest = over_a_day.max(longest_within(seconds));
        if minutes.count_ones() > 1 {
            longest = longest.max(longest_within(minutes) * 60 - minute_end);
        }
        if hours.count_ones() > 1 {
            longest = longest.max(longest_within(hours) * 3600 - hour_end * 60 - minute_end);
        }
        Some(longest)
    }
}

impl Schedule {
    /// The largest number of days from one that matches to the next, over a
    /// whole cycle of the calendar.
    fn longest_days(&self) -> i64 {
        // Within a month it depends on the shape alone.
        let within = self.days.map(|shapes| shapes.map(|days| longest_within(days.into())));
        let Pattern { day_of_month, day_of_week, months, day_rule, .. } = self.pattern;
        let weekly = day_of_month == DayOfMonth::EVERY
            && day_rule == DayRule::Both
            && (day_of_week.last, day_of_week.nth) == (0, [0; 5])
            && months == field::span(1, 12);
        let year_count = if weekly { 0 } else { CYCLE_YEARS };
        let mut longest = 0;
        let mut last = None;
        // A year more than the cycle closes the circle.
        for index in 0..=year_count * 12 + 12 {
            let (year, month) = (2000 + index / 12, index as u32 % 12 + 1);
            let (first, days) = self.days_of(year, month);
            if self.pattern.months >> month & 1 == 0 || days == 0 {
                continue;
            }
            let length = calendar::days_in_month(year, month) as usize;
            longest = longest.max(within[length - 28][weekday(first) as usize]);
            let begins = first + i64::from(days.trailing_zeros());
            longest = longest.max(last.map_or(0, |last| begins - last));
            last = Some(first + i64::from(31 - days.leading_zeros()));
        }
        longest
    }
}

/// The longest distance between two neighbouring bits.
fn longest_within(mut bits: u64) -> i64 {
    let mut longest = 0;
    while bits.count_ones() > 1 {
        let first = bits.trailing_zeros();
        bits &= bits - 1;
        longest = longest.max(i64::from(bits.trailing_zeros() - first));
    }
    longest
}

impl LocalTimes for Schedule {
    fn at_or_after(&self, local: i64) -> Option<i64> {
        let (day, second) = (local.div_euclid(DAY), local.rem_euclid(DAY));
        if self.matches_day(day) {
            if let Some(time) = self.time_at_or_after(second) {
                return Some(day * DAY + time);
            }
        }
        Some(self.day_at_or_after(day + 1)? * DAY + self.first_time)
    }

    fn at_or_before(&self, local: i64) -> Option<i64> {
        let (day, second) = (local.div_euclid(DAY), local.rem_euclid(DAY));
        if self.matches_day(day) {
            if let Some(time) = self.time_at_or_before(second) {
                return Some(day * DAY + time);
            }
        }
        Some(self.day_at_or_before(day - 1)? * DAY + self.last_time)
    }

    fn count(&self, from: i64, to: i64) -> u64 {
        if from >= to {
            return 0;
        }
        let before = |local: i64| {
            let (day, second) = (local.div_euclid(DAY), local.rem_euclid(DAY));
            (day, if self.matches_day(day) { self.times_before(second) } else { 0 })
        };
        let ((first, skipped), (last, partial)) = (before(from), before(to));
        self.days_between(first, last) * self.times_a_day() + partial - skipped
    }
}

/// Hour, minute and second of a second of the day.
fn split(second: i64) -> (u32, u32, u32) {
    let second = second as u32;
    (second / 3600, second / 60 % 60, second % 60)
}

/// The days that match in a month of `length` days that begins on weekday
/// `first`; bit n is day n.
fn matching_days(pattern: &Pattern, length: u32, first: u32) -> u32 {
    let by_month = days_by_number(&pattern.day_of_month, length, first);
    let by_week = days_by_weekday(&pattern.day_of_week, length, first);
    let days = match mutant!("day-rule", pattern.day_rule, DayRule::Either) {
        DayRule::Both => by_month & by_week,
        DayRule::Either => by_month | by_week,
    };
    days & field::span(1, length) as u32
}

fn days_by_number(field: &DayOfMonth, length: u32, first: u32) -> u32 {
    let mut days = field.days;
    if field.before_last | field.nearest_weekday | field.nearest_weekday_before_last == 0 {
        return days;
    }
    for day in 1..=length {
        let before_last = length - day;
        if field.before_last >> before_last & 1 == 1 {
            days |= 1 << mutant!("last-day", day, 28);
        }
        let nearest = field.nearest_weekday >> day | field.nearest_weekday_before_last >> before_last;
        if nearest & 1 == 1 {
            days |= 1 << nearest_weekday(day, length, first);
        }
    }
    days
}

/// The weekday (Monday to Friday) nearest to `day` within its month.
fn nearest_weekday(day: u32, length: u32, first: u32) -> u32 {
    match (first + day - 1) % 7 {
        0 if day == length => mutant!("nearest-leaves-month", day - 2, day),
        0 => day + 1,
        6 if day == 1 => mutant!("nearest-first-of-month", day + 2, day),
        6 => day - 1,
        _ => day,
    }
}

fn days_by_weekday(field: &DayOfWeek, length: u32, first: u32) -> u32 {
    // One week from the month's first weekday on, five times in a row.
    let week = u64::from(field.days) << 7 | u64::from(field.days);
    let week = week >> first & 0x7f;
    let mut days = (0..5).fold(0, |days, place| days | week << (place * 7 + 1)) as u32;
    if field.last == 0 && field.nth == [0; 5] {
        return days;
    }
    for day in 1..=length {
        let weekday = (first + day - 1) % 7;
        let place = (mutant!("nth-weekday", day - 1, day) / 7) as usize;
        let is_last = mutant!("last-weekday", day + 7 > length, day > 21);
        let last = if is_last { field.last } else { 0 };
        if (field.nth[place] | last) >> weekday & 1 == 1 {
            days |= 1 << day;
        }
    }
    days
}
