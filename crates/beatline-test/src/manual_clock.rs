//! A clock that moves only when it is told to.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use beatline_core::{Clock, Moment, Monotonic, Timestamp};

/// A [`Clock`] in the hands of a test: both lines together, or each by itself.
///
/// Clones are the same clock.
///
/// ```
/// use beatline_core::{Clock, Timestamp};
/// use beatline_test::manual_clock::ManualClock;
/// use std::time::Duration;
///
/// let clock = ManualClock::at("2026-03-29T00:59:59Z".parse()?);
/// let before = clock.now();
/// clock.advance(Duration::from_secs(2)); // time passes
/// clock.suspend(Duration::from_secs(3600)); // the machine sleeps: the wall clock alone goes on
/// clock.set_wall("2026-03-29T03:00:00Z".parse()?); // someone sets it
/// assert_eq!(clock.now().monotonic.saturating_since(before.monotonic), Duration::from_secs(2));
/// # Ok::<(), beatline_core::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct ManualClock {
    now: Arc<Mutex<Moment>>,
}

impl ManualClock {
    /// A clock whose monotonic line is at its origin and whose wall clock shows
    /// `wall`.
    #[must_use]
    pub fn at(wall: Timestamp) -> Self {
        Self::from_moment(Moment::new(Monotonic::ORIGIN, wall))
    }

    /// A clock that shows this moment.
    #[must_use]
    pub fn from_moment(now: Moment) -> Self {
        Self { now: Arc::new(Mutex::new(now)) }
    }

    /// Time passes: both lines move.
    pub fn advance(&self, duration: Duration) {
        let mut now = self.lock();
        *now = now.saturating_add(duration);
    }

    /// The machine sleeps: the wall clock goes on, the monotonic one stands
    /// still, as on Linux.
    pub fn suspend(&self, duration: Duration) {
        let mut now = self.lock();
        now.wall = now.wall.saturating_add(duration);
    }

    /// The monotonic line alone moves, as if the wall clock were set back by as
    /// much meanwhile.
    pub fn advance_monotonic(&self, duration: Duration) {
        let mut now = self.lock();
        now.monotonic = now.monotonic.saturating_add(duration);
    }

    /// Someone sets the wall clock, forwards or backwards.
    pub fn set_wall(&self, wall: Timestamp) {
        self.lock().wall = wall;
    }

    /// Someone moves the wall clock by so many nanoseconds, backwards if
    /// negative.
    pub fn step_wall(&self, nanoseconds: i64) {
        let mut now = self.lock();
        now.wall = Timestamp::from_unix_nanoseconds(now.wall.unix_nanoseconds() + i128::from(nanoseconds));
    }

    fn lock(&self) -> MutexGuard<'_, Moment> {
        self.now.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Moment {
        *self.lock()
    }
}
