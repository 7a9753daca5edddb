//! The proleptic Gregorian calendar, counted in days from 1970-01-01.

/// Seconds of a day.
pub(crate) const DAY: i64 = 86_400;

/// Days after which the calendar, weekdays included, repeats: 400 years.
pub(crate) const CYCLE_DAYS: i64 = 146_097;

/// From 0000-03-01, where a cycle of the calendar begins when the leap day is
/// counted last, to 1970-01-01.
const MARCH_0000_TO_EPOCH: i64 = 719_468;

/// A date; months and days count from one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Date {
    pub(crate) year: i64,
    pub(crate) month: u32,
    pub(crate) day: u32,
}

impl Date {
    pub(crate) const fn new(year: i64, month: u32, day: u32) -> Self {
        Self { year, month, day }
    }

    /// The date `day` days after 1970-01-01.
    pub(crate) const fn from_day(day: i64) -> Self {
        let day = day + MARCH_0000_TO_EPOCH;
        let (cycle, day) = (day.div_euclid(CYCLE_DAYS), day.rem_euclid(CYCLE_DAYS) as u32);
        // The last century of a cycle and the last year of a leap cycle are a
        // day longer than the others.
        let century = if day / 36_524 == 4 { 3 } else { day / 36_524 };
        let day = day - century * 36_524;
        let (leap_cycle, day) = (day / 1461, day % 1461);
        let year = if day / 365 == 4 { 3 } else { day / 365 };
        let day = day - year * 365;
        // From March on, five months take 153 days.
        let month = (day * 5 + 2) / 153;
        let day = day - (month * 153 + 2) / 5 + 1;
        let year = cycle * 400 + (century * 100 + leap_cycle * 4 + year) as i64;
        if month < 10 { Self::new(year, month + 3, day) } else { Self::new(year + 1, month - 9, day) }
    }

    /// Days from 1970-01-01 to this date.
    pub(crate) const fn to_day(self) -> i64 {
        let (year, month) = if self.month > 2 { (self.year, self.month - 3) } else { (self.year - 1, self.month + 9) };
        let (cycle, year) = (year.div_euclid(400), year.rem_euclid(400));
        let leap_days = year / 4 - year / 100;
        let day_of_year = ((month * 153 + 2) / 5 + self.day - 1) as i64;
        cycle * CYCLE_DAYS + year * 365 + leap_days + day_of_year - MARCH_0000_TO_EPOCH
    }

    /// How many days this date's month has.
    pub(crate) const fn days_in_month(self) -> u32 {
        days_in_month(self.year, self.month)
    }
}

pub(crate) const fn is_leap(year: i64) -> bool {
    year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
}

pub(crate) const fn days_in_month(year: i64, month: u32) -> u32 {
    match month {
        2 if is_leap(year) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// The weekday of a day, from 0 for Sunday to 6 for Saturday.
pub(crate) const fn weekday(day: i64) -> u32 {
    // 1970-01-01 was a Thursday.
    (day + 4).rem_euclid(7) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_day_of_eight_centuries_comes_back_and_follows_the_one_before() {
        let mut expected = Date::new(1599, 12, 31);
        let first = expected.to_day();
        for day in first..first + 2 * CYCLE_DAYS + 2 {
            assert_eq!(Date::from_day(day), expected, "day {day}");
            assert_eq!(expected.to_day(), day, "{expected:?}");
            expected = if expected.day < expected.days_in_month() {
                Date::new(expected.year, expected.month, expected.day + 1)
            } else if expected.month < 12 {
                Date::new(expected.year, expected.month + 1, 1)
            } else {
                Date::new(expected.year + 1, 1, 1)
            };
        }
    }

    #[test]
    fn known_days() {
        assert_eq!(Date::new(1970, 1, 1).to_day(), 0);
        assert_eq!(weekday(Date::new(2000, 2, 29).to_day()), 2, "a Tuesday");
        assert_eq!(Date::from_day(Date::new(-1, 12, 31).to_day()), Date::new(-1, 12, 31));
        assert_eq!(Date::new(2400, 1, 1).to_day() - Date::new(2000, 1, 1).to_day(), CYCLE_DAYS);
    }
}
