//! Once, when the wall clock shows an instant.

use std::str::FromStr;

use beatline_core::{Count, Due, Error, Latest, Line, Next, Timestamp, Trigger, TriggerContext};

use crate::timeline::{LocalTimes, Pass, Rules, Timeline};
use crate::wall;
use crate::zone::Zone;

/// Once, when the wall clock shows an instant.
///
/// ```text
///   added ──────────── clock set ▸ forward ──▶ run (at once, if the clock jumped past it)
/// ```
///
/// The instant is absolute: if the clock is set, the job follows it. An instant
/// before the job was added is no occurrence and never comes. For a *delay*,
/// which no change of the clock affects, use [`beatline_core::Once`].
///
/// ```
/// use beatline_cron::At;
///
/// let launch: At = "2026-07-01T08:00:00+02:00".parse()?;
/// let by_local_time = At::local(2026, 7, 1, 8, 0, 0, "Europe/Berlin")?;
/// assert_eq!(launch, by_local_time);
/// # Ok::<(), beatline_core::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct At {
    instant: Timestamp,
}

impl At {
    /// Due at this instant, to the nanosecond.
    #[must_use]
    pub const fn instant(instant: Timestamp) -> Self {
        Self { instant }
    }

    /// Due when clocks in `zone` show this date and time: month and day count
    /// from 1, the hour from 0 to 23. A time that a clock change leaves out is
    /// the first instant after the gap; of a time that is repeated it is the
    /// first.
    ///
    /// The instant is computed now and does not move if the zone's rules
    /// change afterwards.
    ///
    /// # Errors
    ///
    /// [`Error::Invalid`] names the zone, or the part of date or time that
    /// does not exist.
    pub fn local(year: i16, month: u8, day: u8, hour: u8, minute: u8, second: u8, zone: &str) -> Result<Self, Error> {
        let zone = Zone::named(zone)?;
        let local = wall::local_date("at", year, month, day)? + wall::local_time(hour, minute, second)?;
        // Any gap counts here: there is no other day to run on.
        let rules = Rules { pass: Pass::First, shift: true };
        let timeline = Timeline { offsets: zone.offsets(), local: Single(local), rules };
        // No offset is as far from UTC as this.
        let from = local - 2 * crate::calendar::DAY;
        let instant = timeline.at_or_after(from, wall::LAST).filter(|instant| *instant >= wall::FIRST);
        let missing = || Error::invalid("at", "this local time does not exist: the clocks were corrected past it");
        Ok(Self { instant: wall::timestamp(instant.ok_or_else(missing)?) })
    }

    /// The instant.
    #[must_use]
    pub const fn timestamp(self) -> Timestamp {
        self.instant
    }

    /// Once is after whatever came before, which may have been another
    /// trigger's: a job can be rescheduled to this one.
    fn is_due(self, context: &TriggerContext) -> bool {
        match context.previous_due {
            Some(previous) => self.instant > wall::on_wall(previous, context),
            None => self.instant >= context.registered.wall,
        }
    }
}

impl From<Timestamp> for At {
    fn from(instant: Timestamp) -> Self {
        Self { instant }
    }
}

impl FromStr for At {
    type Err = Error;

    /// Reads RFC 3339, as [`Timestamp`] does.
    fn from_str(text: &str) -> Result<Self, Error> {
        text.parse().map(Self::instant)
    }
}

impl Trigger for At {
    fn next(&self, context: &TriggerContext) -> Next {
        if self.is_due(context) { Next::AtWall(self.instant) } else { Next::Never }
    }

    fn latest_at_or_before(&self, context: &TriggerContext, limit: Due) -> Latest {
        let due = Due::Wall(self.instant);
        if self.is_due(context) && due <= limit { Latest::At(due) } else { Latest::None }
    }

    fn count_between(&self, _context: &TriggerContext, _after: Due, _until: Due) -> Count {
        // `after` is itself an occurrence, and there is one only.
        Count::Exact(0)
    }

    fn line(&self) -> Line {
        Line::Wall
    }

    fn describe(&self) -> String {
        format!("once at {}", self.instant)
    }
}

/// One local time.
struct Single(i64);

impl LocalTimes for Single {
    fn at_or_after(&self, local: i64) -> Option<i64> {
        (local <= self.0).then_some(self.0)
    }
    fn at_or_before(&self, local: i64) -> Option<i64> {
        (local >= self.0).then_some(self.0)
    }
    fn count(&self, from: i64, to: i64) -> u64 {
        u64::from((from..to).contains(&self.0))
    }
}
