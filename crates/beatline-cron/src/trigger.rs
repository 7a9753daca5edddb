//! The cron trigger.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use beatline_core::{Count, Due, Error, Latest, Line, Next, Timestamp, Trigger, TriggerContext};

use crate::builder::CronBuilder;
use crate::dialect::Dialect;
use crate::error::ParseError;
use crate::offsets::Offsets;
use crate::parse;
use crate::schedule::Schedule;
use crate::timeline::{LocalTimes, Pass, Rules, Timeline};
use crate::wall;
use crate::zone::Zone;

/// How long an expression may be, in bytes, unless the caller says otherwise.
pub const MAXIMUM_LENGTH: usize = 256;

/// What happens to a fixed-time run whose local time a clock change leaves out.
///
/// ```text
///   wall clock    01:59:59 ▸ 03:00:00        "30 2 * * *"
///   Shift                    ▲ runs at 03:00, once
///   Skip                                     no run on this day
/// ```
///
/// A jump of three hours or more is a correction of the clock rather than a
/// season: its runs are skipped whatever is set here. Interval jobs follow real
/// time and are never shifted; see [`Cron::is_interval`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Gap {
    /// Once, at the first instant after the gap; runs that meet there are one.
    #[default]
    Shift,
    /// Not at all.
    Skip,
}

/// What happens to a fixed-time run whose local time a clock change repeats.
///
/// ```text
///   wall clock    01:00 ── 01:59 ▸ 01:00 ── 01:59 ── 02:00    "30 1 * * *"
///   First             ▲
///   Last                               ▲
///   Both              ▲                ▲
/// ```
///
/// Interval jobs follow real time and run in both passes whatever is set here;
/// see [`Cron::is_interval`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Fold {
    /// In the first pass only.
    #[default]
    First,
    /// In the last pass only.
    Last,
    /// In each pass.
    Both,
}

pub(crate) fn rules(gap: Gap, fold: Fold) -> Rules {
    let pass = match fold {
        Fold::First => Pass::First,
        Fold::Last => Pass::Last,
        Fold::Both => Pass::Both,
    };
    Rules { pass, shift: gap == Gap::Shift }
}

/// Due whenever the wall clock of a zone matches an expression.
///
/// ```
/// use beatline_core::Timestamp;
/// use beatline_cron::Cron;
///
/// let nightly = Cron::parse("30 2 * * *")?.zone("Europe/Berlin")?;
/// let from: Timestamp = "2026-03-28T12:00:00Z".parse()?;
/// let nights: Vec<_> = nightly.upcoming(from, 2).iter().map(Timestamp::to_string).collect();
/// // The clocks skip 02:30 on the 29th: one run, right after the gap.
/// assert_eq!(nights, ["2026-03-29T01:00:00Z", "2026-03-30T00:30:00Z"]);
/// # Ok::<(), beatline_core::Error>(())
/// ```
///
/// The zone is **UTC unless one is set**. `next(t)` is the first whole second
/// strictly after `t`; expressions without a field for it mean second zero.
///
/// # Day of month and day of week
///
/// If either field *starts with* `*`, a day must match both; otherwise it must
/// match one of them. `0 0 13 * 5` is every 13th and every Friday, `0 0 */2 * 5`
/// the Fridays among the odd days. This is Vixie's rule, in all dialects but
/// Quartz, where one of the two fields is `?`.
///
/// # Clock changes
///
/// A job whose minute or hour (or second, where the dialect has one) starts
/// with `*` is an *interval job*: it follows real time, skips what a gap leaves
/// out and runs in both passes of a fold. Every other job has *fixed times*:
/// it runs once for each of them, by [`Gap`] and [`Fold`].
///
/// # Cost
///
/// Cloning copies a few pointers. `next` costs about a tenth of a microsecond,
/// does not allocate, and finds a leap day nearly as quickly as the next minute.
#[derive(Clone, PartialEq, Eq)]
pub struct Cron {
    schedule: Arc<Schedule>,
    text: Arc<str>,
    dialect: Option<Dialect>,
    zone: Zone,
    gap: Gap,
    fold: Fold,
}

impl Cron {
    /// Reads an expression of the [classic](Dialect::Classic) dialect: minute,
    /// hour, day of month, month, day of week. In UTC until a zone is set.
    ///
    /// # Errors
    ///
    /// [`ParseError`] says at which byte, what was found and what was expected.
    /// It converts into [`beatline_core::Error`]. An expression that never
    /// matches a day is no error; ask [`Cron::never_fires`].
    pub fn parse(expression: &str) -> Result<Self, ParseError> {
        Self::parse_with(Dialect::Classic, expression)
    }

    /// Reads an expression of a dialect. In UTC until a zone is set.
    ///
    /// # Errors
    ///
    /// As [`Cron::parse`]. An expression with another dialect's number of
    /// fields is told which dialect that is, and not read as one.
    pub fn parse_with(dialect: Dialect, expression: &str) -> Result<Self, ParseError> {
        Self::parse_capped(dialect, expression, MAXIMUM_LENGTH)
    }

    /// As [`Cron::parse_with`], for expressions of up to `cap` bytes instead of
    /// [`MAXIMUM_LENGTH`].
    ///
    /// # Errors
    ///
    /// As [`Cron::parse_with`].
    pub fn parse_capped(dialect: Dialect, expression: &str, cap: usize) -> Result<Self, ParseError> {
        let pattern = parse::parse(dialect, expression, cap)?;
        Ok(Self::new(Schedule::new(pattern), expression.trim_matches([' ', '\t']), Some(dialect)))
    }

    /// Says when without a string.
    ///
    /// ```
    /// use beatline_cron::{Cron, Weekday};
    ///
    /// let cron = Cron::builder().day_of_week(Weekday::Mon..=Weekday::Fri).hour(3).build()?;
    /// # Ok::<(), beatline_core::Error>(())
    /// ```
    pub fn builder() -> CronBuilder {
        CronBuilder::default()
    }

    pub(crate) fn new(schedule: Schedule, text: &str, dialect: Option<Dialect>) -> Self {
        Self {
            schedule: Arc::new(schedule),
            text: text.into(),
            dialect,
            zone: Zone::utc(),
            gap: Gap::default(),
            fold: Fold::default(),
        }
    }

    /// The zone whose wall clock counts: an IANA name such as `Asia/Shanghai`,
    /// in any case; `UTC`; or a fixed offset such as `+05:30`.
    ///
    /// Zone data that is replaced while the program runs – a government changed
    /// its mind – is taken over; see [`refresh_zones`](crate::refresh_zones).
    ///
    /// # Errors
    ///
    /// [`Error::Invalid`] names the field `zone`.
    pub fn zone(mut self, name: &str) -> Result<Self, Error> {
        self.zone = Zone::named(name)?;
        Ok(self)
    }

    /// UTC, which is also the default: no clock changes.
    #[must_use]
    pub fn utc(mut self) -> Self {
        self.zone = Zone::utc();
        self
    }

    /// A fixed offset from UTC, in seconds, positive to the east.
    ///
    /// # Errors
    ///
    /// [`Error::Invalid`] names the field `offset` if it is a day or more.
    pub fn fixed_offset(mut self, seconds: i32) -> Result<Self, Error> {
        self.zone = Zone::fixed(seconds)?;
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

    /// What happens to fixed times that a clock change leaves out.
    #[must_use]
    pub fn gap(mut self, gap: Gap) -> Self {
        self.gap = gap;
        self
    }

    /// What happens to fixed times that a clock change repeats.
    #[must_use]
    pub fn fold(mut self, fold: Fold) -> Self {
        self.fold = fold;
        self
    }

    /// The name of the zone, as the database spells it.
    #[must_use]
    pub fn zone_name(&self) -> &str {
        self.zone.name()
    }

    /// The dialect of the expression; `None` for one that was built.
    #[must_use]
    pub fn dialect(&self) -> Option<Dialect> {
        self.dialect
    }

    /// Whether this job follows real time over clock changes, as opposed to one
    /// with fixed times of day: its minute, hour or second starts with `*`.
    #[must_use]
    pub fn is_interval(&self) -> bool {
        self.schedule.is_interval()
    }

    /// Whether there is no instant at all that matches, in the past or the
    /// future: `0 0 30 2 *` and the like. Exact, not a matter of how far one
    /// searched, and answered at once.
    #[must_use]
    pub fn never_fires(&self) -> bool {
        !self.schedule.has_days() || self.timeline().at_or_after(wall::FIRST, wall::LAST).is_none()
    }

    /// The first occurrence strictly after `instant`, which may lie between two
    /// seconds and before 1970; `None` if there is no further one.
    #[must_use]
    pub fn next_after(&self, instant: Timestamp) -> Option<Timestamp> {
        self.timeline().at_or_after(wall::after(instant), wall::LAST).map(wall::timestamp)
    }

    /// The last occurrence at or before `instant`; `None` if there is none.
    #[must_use]
    pub fn last_until(&self, instant: Timestamp) -> Option<Timestamp> {
        self.timeline().at_or_before(instant.unix_seconds(), wall::FIRST).map(wall::timestamp)
    }

    /// How many occurrences lie after `after` and not after `until`, counted
    /// and not walked.
    #[must_use]
    pub fn count_in(&self, after: Timestamp, until: Timestamp) -> u64 {
        self.timeline().count(wall::after(after), until.unix_seconds())
    }

    /// The next `count` occurrences strictly after `after`, or as many as there
    /// are.
    #[must_use]
    pub fn upcoming(&self, after: Timestamp, count: usize) -> Vec<Timestamp> {
        std::iter::successors(self.next_after(after), |previous| self.next_after(*previous)).take(count).collect()
    }

    fn rules(&self) -> Rules {
        if self.is_interval() { Rules::REAL_TIME } else { rules(self.gap, self.fold) }
    }

    fn timeline(&self) -> Timeline<'_, &Schedule> {
        self.timeline_in(self.zone.offsets())
    }

    fn timeline_in<'a>(&'a self, offsets: &'a Offsets) -> Timeline<'a, &'a Schedule> {
        Timeline { offsets, local: &self.schedule, rules: self.rules() }
    }

    /// With the zone's data looked at from time to time.
    fn timeline_for(&self, context: &TriggerContext) -> Timeline<'_, &Schedule> {
        self.timeline_in(self.zone.offsets_at(context.now.monotonic))
    }
}

impl LocalTimes for &Schedule {
    fn at_or_after(&self, local: i64) -> Option<i64> {
        (**self).at_or_after(local)
    }
    fn at_or_before(&self, local: i64) -> Option<i64> {
        (**self).at_or_before(local)
    }
    fn count(&self, from: i64, to: i64) -> u64 {
        (**self).count(from, to)
    }
}

impl Trigger for Cron {
    fn next(&self, context: &TriggerContext) -> Next {
        wall::next(&self.timeline_for(context), context)
    }

    fn latest_at_or_before(&self, context: &TriggerContext, limit: Due) -> Latest {
        wall::latest(&self.timeline_for(context), context, limit)
    }

    fn count_between(&self, context: &TriggerContext, after: Due, until: Due) -> Count {
        wall::count(&self.timeline_for(context), context, after, until)
    }

    fn line(&self) -> Line {
        Line::Wall
    }

    /// Known where no clock change can make a run fall out.
    fn longest_gap(&self) -> Option<Duration> {
        let longest = self.schedule.longest_gap()?;
        let change = self.zone.offsets().largest_change();
        let exact = change == 0;
        let shifted = !self.is_interval() && self.gap == Gap::Shift && change < 3 * 3600;
        (exact || shifted).then(|| Duration::from_secs((longest + change).unsigned_abs()))
    }

    fn describe(&self) -> String {
        format!("cron {self}")
    }
}

impl FromStr for Cron {
    type Err = ParseError;

    /// As [`Cron::parse`].
    fn from_str(expression: &str) -> Result<Self, ParseError> {
        Self::parse(expression)
    }
}

impl fmt::Display for Cron {
    /// The expression and, in parentheses, the zone.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.text, self.zone.name())
    }
}

impl fmt::Debug for Cron {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cron")
            .field("expression", &self.text)
            .field("dialect", &self.dialect)
            .field("zone", &self.zone)
            .field("gap", &self.gap)
            .field("fold", &self.fold)
            .finish()
    }
}
