//! The two time lines, and the one reading that carries both.

use std::fmt;
use std::time::Duration;

use crate::Timestamp;

/// A point on the monotonic clock: nanoseconds from that clock's origin.
///
/// The origin is arbitrary and belongs to one clock, so values of two clocks
/// do not compare. Points before the origin are legal (a schedule may continue
/// one that an earlier process began). Arithmetic saturates: an instant
/// centuries ahead is [`Monotonic::MAX`], and simply never comes.
///
/// On Linux the monotonic clock stands still while the machine is suspended.
///
/// ```
/// use beatline_core::Monotonic;
/// use std::time::Duration;
///
/// let anchor = Monotonic::from_nanoseconds(0);
/// assert_eq!(anchor.saturating_add(Duration::from_secs(2)).saturating_since(anchor).as_secs(), 2);
/// assert_eq!(anchor.saturating_add(Duration::MAX), Monotonic::MAX);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Monotonic(i64);

impl Monotonic {
    /// The clock's origin.
    pub const ORIGIN: Monotonic = Monotonic(0);
    /// An instant that never comes.
    pub const MAX: Monotonic = Monotonic(i64::MAX);
    /// The earliest instant.
    pub const MIN: Monotonic = Monotonic(i64::MIN);

    /// The instant `nanoseconds` after the origin (before it, if negative).
    #[must_use]
    pub const fn from_nanoseconds(nanoseconds: i64) -> Self {
        Self(nanoseconds)
    }

    /// Nanoseconds since the origin.
    #[must_use]
    pub const fn nanoseconds(self) -> i64 {
        self.0
    }

    /// This instant moved later, stopping at [`Monotonic::MAX`].
    #[must_use]
    pub fn saturating_add(self, duration: Duration) -> Self {
        Self(self.0.saturating_add(saturating_nanoseconds(duration)))
    }

    /// This instant moved earlier, stopping at [`Monotonic::MIN`].
    #[must_use]
    pub fn saturating_sub(self, duration: Duration) -> Self {
        Self(self.0.saturating_sub(saturating_nanoseconds(duration)))
    }

    /// The time from `earlier` to this instant; zero if `earlier` is later.
    #[must_use]
    pub fn saturating_since(self, earlier: Monotonic) -> Duration {
        if self.0 <= earlier.0 { Duration::ZERO } else { Duration::from_nanos(self.0.abs_diff(earlier.0)) }
    }
}

impl fmt::Debug for Monotonic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if *self == Monotonic::MAX {
            return f.write_str("never");
        }
        let sign = if self.0 < 0 { "-" } else { "+" };
        write!(f, "{sign}{:?}", Duration::from_nanos(self.0.unsigned_abs()))
    }
}

/// Nanoseconds of a duration, at most `i64::MAX` (292 years).
fn saturating_nanoseconds(duration: Duration) -> i64 {
    i64::try_from(duration.as_nanos()).unwrap_or(i64::MAX)
}

/// One reading of both clocks.
///
/// The engine reads the pair once at each wake and decides everything of that
/// wake by it, so that no decision sees two different "now".
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moment {
    /// The monotonic clock.
    pub monotonic: Monotonic,
    /// The wall clock.
    pub wall: Timestamp,
}

impl Moment {
    /// The pair of two readings.
    #[must_use]
    pub const fn new(monotonic: Monotonic, wall: Timestamp) -> Self {
        Self { monotonic, wall }
    }

    /// What the monotonic clock shows (or showed) when the wall clock shows
    /// `wall`, as seen from this reading: both lines are taken to run alike.
    #[must_use]
    pub fn monotonic_at(&self, wall: Timestamp) -> Monotonic {
        let ahead = wall.unix_nanoseconds() - self.wall.unix_nanoseconds();
        let at = i128::from(self.monotonic.0) + ahead;
        Monotonic(at.clamp(i128::from(i64::MIN), i128::from(i64::MAX)) as i64)
    }

    /// What the wall clock shows (or showed) at `monotonic`, as seen from this
    /// reading.
    #[must_use]
    pub fn wall_at(&self, monotonic: Monotonic) -> Timestamp {
        let ahead = i128::from(monotonic.0) - i128::from(self.monotonic.0);
        Timestamp::from_unix_nanoseconds(self.wall.unix_nanoseconds() + ahead)
    }

    /// This moment with both clocks moved later.
    #[must_use]
    pub fn saturating_add(self, duration: Duration) -> Self {
        Self { monotonic: self.monotonic.saturating_add(duration), wall: self.wall.saturating_add(duration) }
    }
}

/// Where the engine reads time.
///
/// A clock is read from any thread and must not block. Its monotonic half
/// never runs backwards; its wall half may be set at any moment.
pub trait Clock: Send + Sync + 'static {
    /// Both clocks, read as closely together as the platform allows.
    fn now(&self) -> Moment;
}
