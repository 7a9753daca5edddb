//! What every trigger of this crate answers, given its timeline.

use beatline_core::{Count, Due, Error, Latest, Next, Timestamp, TriggerContext};

use crate::calendar::{DAY, Date};
use crate::mutants::mutant;
use crate::timeline::{LocalTimes, Timeline};

/// The last second there is.
pub(crate) const LAST: i64 = Timestamp::MAX.unix_seconds();
/// The first second there is.
pub(crate) const FIRST: i64 = Timestamp::MIN.unix_seconds();

/// The first whole second strictly after `instant`.
pub(crate) fn after(instant: Timestamp) -> i64 {
    mutant!("strictly-after", instant.unix_seconds() + 1, instant.unix_seconds())
}

/// The first whole second that is not before `instant`.
fn at_or_after(instant: Timestamp) -> i64 {
    instant.unix_seconds() + i64::from(instant.subsecond_nanoseconds() > 0)
}

pub(crate) fn timestamp(second: i64) -> Timestamp {
    Timestamp::from_unix(second, 0)
}

/// A due instant as the wall clock shows it.
pub(crate) fn on_wall(due: Due, context: &TriggerContext) -> Timestamp {
    match due {
        Due::Wall(at) => at,
        // Only after a job changed from an interval to a time of day.
        Due::Monotonic(at) => context.now.wall_at(at),
    }
}

/// The first second that may be an occurrence: after the previous one, or not
/// before the registration.
pub(crate) fn earliest(context: &TriggerContext) -> i64 {
    match context.previous_due {
        Some(previous) => after(on_wall(previous, context)),
        None => at_or_after(context.registered.wall),
    }
}

pub(crate) fn next<L: LocalTimes>(timeline: &Timeline<'_, L>, context: &TriggerContext) -> Next {
    match timeline.at_or_after(earliest(context), LAST) {
        Some(second) => Next::AtWall(timestamp(second)),
        None => Next::Never,
    }
}

pub(crate) fn latest<L: LocalTimes>(timeline: &Timeline<'_, L>, context: &TriggerContext, limit: Due) -> Latest {
    let limit = on_wall(limit, context).unix_seconds();
    match timeline.at_or_before(limit, earliest(context)) {
        Some(second) => Latest::At(Due::Wall(timestamp(second))),
        None => Latest::None,
    }
}

pub(crate) fn count<L: LocalTimes>(
    timeline: &Timeline<'_, L>,
    context: &TriggerContext,
    from: Due,
    until: Due,
) -> Count {
    let (from, until) = (after(on_wall(from, context)), on_wall(until, context).unix_seconds());
    Count::Exact(timeline.count(from, until))
}

/// Midnight of a date, as a local time in seconds.
pub(crate) fn local_date(field: &'static str, year: i16, month: u8, day: u8) -> Result<i64, Error> {
    if !(0..=9999).contains(&year) {
        return Err(Error::invalid(field, format!("year {year} is out of range: it is 0 to 9999")));
    }
    if !(1..=12).contains(&month) {
        return Err(Error::invalid(field, format!("month {month} is out of range: it is 1 to 12")));
    }
    let date = Date::new(year.into(), month.into(), day.into());
    if day == 0 || date.day > date.days_in_month() {
        return Err(Error::invalid(field, format!("day {day} is not in that month: it has {}", date.days_in_month())));
    }
    Ok(date.to_day() * DAY)
}

/// Seconds since midnight.
pub(crate) fn local_time(hour: u8, minute: u8, second: u8) -> Result<i64, Error> {
    for (value, limit, name) in [(hour, 23, "hour"), (minute, 59, "minute"), (second, 59, "second")] {
        if value > limit {
            return Err(Error::invalid("at", format!("{name} {value} is out of range: it is 0 to {limit}")));
        }
    }
    Ok(i64::from(hour) * 3600 + i64::from(minute) * 60 + i64::from(second))
}
