//! Points on the wall clock, without a date-time library.

use std::fmt;
use std::str::FromStr;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::Error;

const NANOSECONDS: u32 = 1_000_000_000;
const DAY: i64 = 86_400;

/// A point on the wall clock: nanoseconds since the Unix epoch, in UTC.
///
/// It is a plain number with a textual form (RFC 3339); calendars and time
/// zones belong to the crates that need them. The range is the one RFC 3339
/// can write, the years 0000 to 9999; arithmetic saturates at its ends.
///
/// ```
/// use beatline_core::Timestamp;
/// use std::time::Duration;
///
/// let due: Timestamp = "2026-03-29T02:30:00+01:00".parse()?;
/// assert_eq!(due.to_string(), "2026-03-29T01:30:00Z");
/// assert_eq!(due.saturating_add(Duration::from_millis(250)).to_string(), "2026-03-29T01:30:00.250Z");
/// # Ok::<(), beatline_core::Error>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp {
    seconds: i64,
    nanoseconds: u32,
}

impl Timestamp {
    /// 1970-01-01T00:00:00Z.
    pub const UNIX_EPOCH: Timestamp = Timestamp { seconds: 0, nanoseconds: 0 };
    /// The earliest timestamp, 0000-01-01T00:00:00Z.
    pub const MIN: Timestamp = Timestamp { seconds: -62_167_219_200, nanoseconds: 0 };
    /// The latest timestamp, 9999-12-31T23:59:59.999999999Z.
    pub const MAX: Timestamp = Timestamp { seconds: 253_402_300_799, nanoseconds: NANOSECONDS - 1 };

    /// The timestamp `seconds` and `nanoseconds` after the Unix epoch.
    ///
    /// `nanoseconds` of a second and more carry over; a result outside the
    /// range saturates.
    #[must_use]
    pub const fn from_unix(seconds: i64, nanoseconds: u32) -> Self {
        let carried = Self {
            seconds: seconds.saturating_add((nanoseconds / NANOSECONDS) as i64),
            nanoseconds: nanoseconds % NANOSECONDS,
        };
        if carried.seconds < Self::MIN.seconds {
            Self::MIN
        } else if carried.seconds > Self::MAX.seconds {
            Self::MAX
        } else {
            carried
        }
    }

    /// The timestamp `nanoseconds` after the Unix epoch (before it, if
    /// negative), saturating.
    #[must_use]
    pub const fn from_unix_nanoseconds(nanoseconds: i128) -> Self {
        // Nearly always: 64 bits reach from 1677 to 2262 and are divided far faster.
        let narrow = nanoseconds as i64;
        if narrow as i128 == nanoseconds {
            let seconds = narrow.div_euclid(NANOSECONDS as i64);
            return Self { seconds, nanoseconds: narrow.rem_euclid(NANOSECONDS as i64) as u32 };
        }
        let seconds = nanoseconds.div_euclid(NANOSECONDS as i128);
        if seconds < Self::MIN.seconds as i128 {
            return Self::MIN;
        }
        if seconds > Self::MAX.seconds as i128 {
            return Self::MAX;
        }
        Self { seconds: seconds as i64, nanoseconds: nanoseconds.rem_euclid(NANOSECONDS as i128) as u32 }
    }

    /// Whole seconds since the Unix epoch, rounded down.
    #[must_use]
    pub const fn unix_seconds(self) -> i64 {
        self.seconds
    }

    /// The nanoseconds within the second, 0 to 999,999,999.
    #[must_use]
    pub const fn subsecond_nanoseconds(self) -> u32 {
        self.nanoseconds
    }

    /// Nanoseconds since the Unix epoch.
    #[must_use]
    pub const fn unix_nanoseconds(self) -> i128 {
        self.seconds as i128 * NANOSECONDS as i128 + self.nanoseconds as i128
    }

    /// This timestamp moved later, stopping at [`Timestamp::MAX`].
    #[must_use]
    pub const fn saturating_add(self, duration: Duration) -> Self {
        Self::from_unix_nanoseconds(self.unix_nanoseconds().saturating_add(duration.as_nanos() as i128))
    }

    /// This timestamp moved earlier, stopping at [`Timestamp::MIN`].
    #[must_use]
    pub const fn saturating_sub(self, duration: Duration) -> Self {
        Self::from_unix_nanoseconds(self.unix_nanoseconds().saturating_sub(duration.as_nanos() as i128))
    }

    /// The time from `earlier` to this timestamp; zero if `earlier` is later.
    #[must_use]
    pub fn saturating_since(self, earlier: Timestamp) -> Duration {
        let nanoseconds = self.unix_nanoseconds() - earlier.unix_nanoseconds();
        let nanoseconds = u128::try_from(nanoseconds).unwrap_or(0);
        // The range of timestamps fits a `Duration` many times over.
        Duration::new((nanoseconds / u128::from(NANOSECONDS)) as u64, (nanoseconds % u128::from(NANOSECONDS)) as u32)
    }

    /// As the standard library's type; `None` where the platform's clock
    /// cannot represent it.
    #[must_use]
    pub fn system_time(self) -> Option<SystemTime> {
        let fraction = Duration::from_nanos(u64::from(self.nanoseconds));
        let seconds = Duration::from_secs(self.seconds.unsigned_abs());
        let whole = if self.seconds < 0 { UNIX_EPOCH.checked_sub(seconds) } else { UNIX_EPOCH.checked_add(seconds) };
        whole?.checked_add(fraction)
    }
}

impl From<SystemTime> for Timestamp {
    /// Saturates at the ends of the range.
    fn from(time: SystemTime) -> Self {
        match time.duration_since(UNIX_EPOCH) {
            Ok(after) => Timestamp::UNIX_EPOCH.saturating_add(after),
            Err(before) => Timestamp::UNIX_EPOCH.saturating_sub(before.duration()),
        }
    }
}

impl fmt::Display for Timestamp {
    /// RFC 3339 in UTC, with milli-, micro- or nanoseconds only where needed.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (year, month, day) = civil_from_days(self.seconds.div_euclid(DAY));
        let second = self.seconds.rem_euclid(DAY);
        let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
        write!(f, "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}")?;
        match self.nanoseconds {
            0 => {}
            n if n % 1_000_000 == 0 => write!(f, ".{:03}", n / 1_000_000)?,
            n if n % 1_000 == 0 => write!(f, ".{:06}", n / 1_000)?,
            n => write!(f, ".{n:09}")?,
        }
        f.write_str("Z")
    }
}

impl fmt::Debug for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for Timestamp {
    type Err = Error;

    /// Reads RFC 3339: date, `T` (or `t`, or one space), time, optional
    /// fraction of up to nine digits, and an offset (`Z` or `±hh:mm`).
    ///
    /// # Errors
    ///
    /// [`Error::Invalid`] names the byte where the text stops being a
    /// timestamp and what was expected there. A leap second (`:60`) is refused:
    /// neither clock can name it.
    fn from_str(text: &str) -> Result<Self, Error> {
        let mut reader = Reader { bytes: text.as_bytes(), position: 0 };
        let year = reader.number(4, 0..=9999, "a four-digit year")?;
        reader.one_of(b"-", "`-` after the year")?;
        let month = reader.number(2, 1..=12, "a month from 01 to 12")?;
        reader.one_of(b"-", "`-` after the month")?;
        let last = days_in_month(year, month);
        let day = reader.number(2, 1..=last, "a day that the month has")?;
        reader.one_of(b"Tt ", "`T` between date and time")?;
        let hour = reader.number(2, 0..=23, "an hour from 00 to 23")?;
        reader.one_of(b":", "`:` after the hour")?;
        let minute = reader.number(2, 0..=59, "a minute from 00 to 59")?;
        reader.one_of(b":", "`:` after the minute")?;
        let second = reader.number(2, 0..=59, "a second from 00 to 59")?;
        let nanoseconds = reader.fraction()?;
        let offset = reader.offset()?;
        reader.end()?;

        let seconds = days_from_civil(year, month, day) * DAY + hour * 3600 + minute * 60 + second - offset;
        let parsed = Timestamp { seconds, nanoseconds };
        if parsed < Timestamp::MIN || parsed > Timestamp::MAX {
            return Err(Error::invalid("timestamp", "lies outside the years 0000 to 9999 once moved to UTC"));
        }
        Ok(parsed)
    }
}

/// Reads fixed-width fields and knows at which byte it stands.
struct Reader<'a> {
    bytes: &'a [u8],
    position: usize,
}

impl Reader<'_> {
    fn fail<T>(&self, at: usize, expected: &str) -> Result<T, Error> {
        let found = match self.bytes.get(at) {
            None => "the end of the text".to_owned(),
            Some(byte) => format!("`{}`", byte.escape_ascii()),
        };
        Err(Error::invalid("timestamp", format!("byte {at}: expected {expected}, found {found}")))
    }

    fn number(&mut self, width: usize, range: std::ops::RangeInclusive<i64>, expected: &str) -> Result<i64, Error> {
        let start = self.position;
        let mut value = 0;
        for _ in 0..width {
            match self.bytes.get(self.position) {
                Some(digit @ b'0'..=b'9') => value = value * 10 + i64::from(digit - b'0'),
                _ => return self.fail(self.position, expected),
            }
            self.position += 1;
        }
        if range.contains(&value) { Ok(value) } else { self.fail(start, expected) }
    }

    fn one_of(&mut self, wanted: &[u8], expected: &str) -> Result<u8, Error> {
        match self.bytes.get(self.position) {
            Some(byte) if wanted.contains(byte) => {
                self.position += 1;
                Ok(*byte)
            }
            _ => self.fail(self.position, expected),
        }
    }

    fn fraction(&mut self) -> Result<u32, Error> {
        if self.bytes.get(self.position) != Some(&b'.') {
            return Ok(0);
        }
        self.position += 1;
        let (mut value, mut digits) = (0, 0);
        while let Some(digit @ b'0'..=b'9') = self.bytes.get(self.position) {
            if digits == 9 {
                return self.fail(self.position, "at most nine digits of a second");
            }
            value = value * 10 + u32::from(digit - b'0');
            digits += 1;
            self.position += 1;
        }
        if digits == 0 {
            return self.fail(self.position, "a digit after the point");
        }
        Ok(value * 10_u32.pow(9 - digits))
    }

    fn offset(&mut self) -> Result<i64, Error> {
        let sign = match self.one_of(b"Zz+-", "`Z` or an offset such as `+01:00`")? {
            b'+' => 1,
            b'-' => -1,
            _ => return Ok(0),
        };
        let hours = self.number(2, 0..=23, "offset hours from 00 to 23")?;
        self.one_of(b":", "`:` in the offset")?;
        let minutes = self.number(2, 0..=59, "offset minutes from 00 to 59")?;
        Ok(sign * (hours * 3600 + minutes * 60))
    }

    fn end(&self) -> Result<(), Error> {
        if self.position == self.bytes.len() { Ok(()) } else { self.fail(self.position, "the end of the text") }
    }
}

fn is_leap(year: i64) -> bool {
    year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
}

fn days_in_month(year: i64, month: i64) -> i64 {
    match month {
        2 => 28 + i64::from(is_leap(year)),
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Days from the epoch to 1 January of `year` (proleptic Gregorian).
fn days_to_year(year: i64) -> i64 {
    let before = year - 1;
    365 * year + before.div_euclid(4) - before.div_euclid(100) + before.div_euclid(400) - 719_527
}

fn days_from_civil(year: i64, month: i64, day: i64) -> i64 {
    days_to_year(year) + (1..month).map(|earlier| days_in_month(year, earlier)).sum::<i64>() + day - 1
}

fn civil_from_days(days: i64) -> (i64, i64, i64) {
    // An estimate by the mean length of a year, put right against the calendar.
    let mut year = 1970 + (days * 400).div_euclid(146_097);
    while days_to_year(year) > days {
        year -= 1;
    }
    while days_to_year(year + 1) <= days {
        year += 1;
    }
    let mut day = days - days_to_year(year);
    let mut month = 1;
    while day >= days_in_month(year, month) {
        day -= days_in_month(year, month);
        month += 1;
    }
    (year, month, day + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_day_of_the_range_survives_the_calendar_and_back() {
        let first = Timestamp::MIN.seconds / DAY;
        let last = Timestamp::MAX.seconds / DAY;
        let mut expected = (0, 1, 1);
        for days in first..=last {
            assert_eq!(civil_from_days(days), expected, "day {days}");
            assert_eq!(days_from_civil(expected.0, expected.1, expected.2), days);
            let (year, month, day) = expected;
            expected = if day < days_in_month(year, month) {
                (year, month, day + 1)
            } else if month < 12 {
                (year, month + 1, 1)
            } else {
                (year + 1, 1, 1)
            };
        }
    }

    #[test]
    fn the_ends_of_the_range_are_written_and_read() {
        for end in [Timestamp::MIN, Timestamp::MAX, Timestamp::UNIX_EPOCH] {
            assert_eq!(end.to_string().parse::<Timestamp>().unwrap(), end);
        }
        assert_eq!(Timestamp::MAX.saturating_add(Duration::MAX), Timestamp::MAX);
        assert_eq!(Timestamp::MIN.saturating_sub(Duration::MAX), Timestamp::MIN);
    }

    #[test]
    fn bad_text_names_the_byte_and_never_panics() {
        for (text, byte) in [
            ("", 0),
            ("2026", 4),
            ("2026-13-01T00:00:00Z", 5),
            ("2026-02-29T00:00:00Z", 8),
            ("2026-02-28X00:00:00Z", 10),
            ("2026-02-28T24:00:00Z", 11),
            ("2026-02-28T00:00:60Z", 17),
            ("2026-02-28T00:00:00", 19),
            ("2026-02-28T00:00:00.Z", 20),
            ("2026-02-28T00:00:00.1234567890Z", 29),
            ("2026-02-28T00:00:00+1:00", 21),
            ("2026-02-28T00:00:00Zz", 20),
            ("２026-02-28T00:00:00Z", 0),
        ] {
            let error = text.parse::<Timestamp>().unwrap_err().to_string();
            assert!(error.contains(&format!("byte {byte}:")), "{text}: {error}");
        }
        assert!("0000-01-01T00:00:00+00:01".parse::<Timestamp>().is_err());
    }
}
