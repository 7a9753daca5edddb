//! The dialects of cron, and what each field of them may hold.

/// Which cron an expression is written in.
///
/// Always said by the caller and never guessed from the text: `0 0 12 * * 1` is
/// a Monday to one program and a Sunday to another.
///
/// | dialect | fields | weekdays | besides `*` `,` `-` `/` |
/// |---|---|---|---|
/// | [`Classic`](Self::Classic) | minute hour day month weekday | 0–7, 0 and 7 are Sunday | – |
/// | [`Extended`](Self::Extended) | the same five | the same | `L` `LW` `15W` `fri#2` `5L` |
/// | [`Seconds`](Self::Seconds) | second, then the five | the same | as extended |
/// | [`SecondsYear`](Self::SecondsYear) | second, the five, year | the same | as extended |
/// | [`Quartz`](Self::Quartz) | second minute hour day month weekday | 1–7, 1 is Sunday | `?` `L` `L-3` `LW` `L-3W` `15W` `6#2` `6L` `5/10` |
/// | [`QuartzYear`](Self::QuartzYear) | the same six, year | the same | as Quartz |
///
/// All but the Quartz ones also take `@yearly` (`@annually`), `@monthly`,
/// `@weekly`, `@daily` (`@midnight`) and `@hourly` in place of an expression.
/// Letters may be written in any case. Where there is a year field it reaches
/// from 1970 to 2199.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Dialect {
    /// The five fields of Vixie's cron, read strictly: a step follows `*` or a
    /// range only, ranges ascend (one that ends in `0` or `sun` ends on the
    /// seventh day), names have three letters.
    #[default]
    Classic,
    /// Classic, and in its day fields `L` (the last day of the month), `15W`
    /// (the weekday nearest to the 15th, within the month), `LW` (the last
    /// weekday), `fri#2` (the second Friday) and `friL` (the last Friday).
    Extended,
    /// Extended, with a field for the second in front.
    Seconds,
    /// Extended, with a field for the second in front and one for the year at
    /// the end.
    SecondsYear,
    /// The six fields of Quartz: weekdays from 1 for Sunday, exactly one of the
    /// two day fields `?`, ranges that may wrap, `5/10` for "from 5, every 10",
    /// `L-3` for the third day before the last; a bare `L` as weekday is
    /// Saturday.
    Quartz,
    /// Quartz, with a field for the year at the end.
    QuartzYear,
}

impl Dialect {
    /// How many fields an expression has.
    #[must_use]
    pub const fn field_count(self) -> usize {
        self.fields().len()
    }

    pub(crate) const fn is_quartz(self) -> bool {
        matches!(self, Dialect::Quartz | Dialect::QuartzYear)
    }

    /// Whether the day fields take `L`, `W` and `#`.
    pub(crate) const fn has_special_days(self) -> bool {
        !matches!(self, Dialect::Classic)
    }

    pub(crate) const fn fields(self) -> &'static [Field] {
        use Field::{DayOfMonth, DayOfWeek, Hour, Minute, Month, Second, Year};
        match self {
            Dialect::Classic | Dialect::Extended => &[Minute, Hour, DayOfMonth, Month, DayOfWeek],
            Dialect::Seconds | Dialect::Quartz => &[Second, Minute, Hour, DayOfMonth, Month, DayOfWeek],
            Dialect::SecondsYear | Dialect::QuartzYear => &[Second, Minute, Hour, DayOfMonth, Month, DayOfWeek, Year],
        }
    }

    /// The dialect of the same family with `count` fields.
    pub(crate) const fn sibling(self, count: usize) -> Option<&'static str> {
        match (self.is_quartz(), count) {
            (false, 5) => Some("`Dialect::Classic` or `Dialect::Extended`"),
            (false, 6) => Some("`Dialect::Seconds` or `Dialect::Quartz`"),
            (false, 7) => Some("`Dialect::SecondsYear` or `Dialect::QuartzYear`"),
            (true, 5) => Some("`Dialect::Classic`"),
            (true, 6) => Some("`Dialect::Quartz`"),
            (true, 7) => Some("`Dialect::QuartzYear`"),
            _ => None,
        }
    }
}

/// A place in an expression.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Field {
    Second,
    Minute,
    Hour,
    DayOfMonth,
    Month,
    DayOfWeek,
    Year,
}

impl Field {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Field::Second => "second",
            Field::Minute => "minute",
            Field::Hour => "hour",
            Field::DayOfMonth => "day of month",
            Field::Month => "month",
            Field::DayOfWeek => "day of week",
            Field::Year => "year",
        }
    }

    /// The smallest and the largest number that may be written.
    pub(crate) const fn bounds(self, quartz: bool) -> (u32, u32) {
        match self {
            Field::Second | Field::Minute => (0, 59),
            Field::Hour => (0, 23),
            Field::DayOfMonth => (1, 31),
            Field::Month => (1, 12),
            Field::DayOfWeek if quartz => (1, 7),
            Field::DayOfWeek => (0, 7),
            Field::Year => (1970, 2199),
        }
    }

    /// The largest step that Quartz takes.
    pub(crate) const fn largest_quartz_step(self) -> u32 {
        match self {
            Field::Second | Field::Minute => 59,
            Field::Hour => 23,
            Field::DayOfMonth => 31,
            Field::Month => 12,
            Field::DayOfWeek => 7,
            Field::Year => u32::MAX,
        }
    }

    pub(crate) const fn names(self) -> &'static [&'static str] {
        match self {
            Field::Month => &["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"],
            Field::DayOfWeek => &["sun", "mon", "tue", "wed", "thu", "fri", "sat"],
            _ => &[],
        }
    }
}
