//! Fields as sets of bits: what an expression or a builder asks for.

/// Numbers from 0 to 255, a bit each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Bits([u64; 4]);

impl Bits {
    pub(crate) const fn insert(&mut self, value: u32) {
        self.0[value as usize / 64] |= 1 << (value % 64);
    }

    /// The numbers below 64.
    pub(crate) const fn low(&self) -> u64 {
        self.0[0]
    }
}

/// All numbers from `first` to `last`, below 64.
pub(crate) const fn span(first: u32, last: u32) -> u64 {
    (u64::MAX >> (63 - last)) & (u64::MAX << first)
}

/// The smallest number in `bits` that is not below `from`.
pub(crate) const fn at_or_after(bits: u64, from: u32) -> Option<u32> {
    if from > 63 {
        return None;
    }
    match bits & (u64::MAX << from) {
        0 => None,
        left => Some(left.trailing_zeros()),
    }
}

/// The largest number in `bits` that is not above `to`.
pub(crate) const fn at_or_before(bits: u64, to: u32) -> Option<u32> {
    match bits & (u64::MAX >> (63 - to)) {
        0 => None,
        left => Some(63 - left.leading_zeros()),
    }
}

/// How many numbers in `bits` are below `limit`, itself below 64.
pub(crate) const fn count_below(bits: u64, limit: u32) -> u64 {
    (bits & !(u64::MAX << limit)).count_ones() as u64
}

/// Which years, from 1970 to 2199.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Years(pub(crate) Bits);

impl Years {
    pub(crate) const FIRST: i64 = 1970;
    pub(crate) const LAST: i64 = 2199;

    pub(crate) fn contains(self, year: i64) -> bool {
        (Self::FIRST..=Self::LAST).contains(&year) && {
            let index = (year - Self::FIRST) as usize;
            self.0.0[index / 64] >> (index % 64) & 1 == 1
        }
    }

    pub(crate) fn at_or_after(self, year: i64) -> Option<i64> {
        (year.max(Self::FIRST)..=Self::LAST).find(|year| self.contains(*year))
    }

    pub(crate) fn at_or_before(self, year: i64) -> Option<i64> {
        (Self::FIRST..=year.min(Self::LAST)).rev().find(|year| self.contains(*year))
    }
}

/// Which days of a month, by number and by place.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct DayOfMonth {
    /// Bits 1 to 31.
    pub(crate) days: u32,
    /// Bit n: the n-th day before the last.
    pub(crate) before_last: u32,
    /// Bit n: the weekday nearest to day n.
    pub(crate) nearest_weekday: u32,
    /// Bit n: the weekday nearest to the n-th day before the last.
    pub(crate) nearest_weekday_before_last: u32,
}

/// Which days of the week, everywhere and by place in the month. Bit 0 is
/// Sunday.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct DayOfWeek {
    pub(crate) days: u8,
    /// The last such day of the month.
    pub(crate) last: u8,
    /// The first to fifth such day of the month.
    pub(crate) nth: [u8; 5],
}

impl DayOfMonth {
    pub(crate) const EVERY: DayOfMonth =
        DayOfMonth { days: span(1, 31) as u32, before_last: 0, nearest_weekday: 0, nearest_weekday_before_last: 0 };
}

impl DayOfWeek {
    pub(crate) const EVERY: DayOfWeek = DayOfWeek { days: 0x7f, last: 0, nth: [0; 5] };
}

/// How the two day fields go together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DayRule {
    /// A day must match both.
    Both,
    /// A day must match one of them.
    Either,
}

/// What an expression or a builder asks for, before it is compiled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Pattern {
    /// Bits 0 to 59.
    pub(crate) seconds: u64,
    /// Bits 0 to 59.
    pub(crate) minutes: u64,
    /// Bits 0 to 23.
    pub(crate) hours: u64,
    pub(crate) day_of_month: DayOfMonth,
    /// Bits 1 to 12.
    pub(crate) months: u64,
    pub(crate) day_of_week: DayOfWeek,
    /// `None` where there is no year field.
    pub(crate) years: Option<Years>,
    pub(crate) day_rule: DayRule,
    /// Whether the job follows real time over clock changes, as opposed to one
    /// that has fixed times of day.
    pub(crate) interval: bool,
}
