//! The clock of a running scheduler: tokio's monotonic one and the wall.

use std::time::{Duration, SystemTime};

use beatline_core::{Clock, Moment, Monotonic, Timestamp};
use tokio::runtime::Handle;
use tokio::time::Instant;

/// Sleeps are no longer than this, as tokio cannot represent every instant.
const LONGEST_SLEEP: Duration = Duration::from_secs(365 * 24 * 3600);

/// Reads tokio's clock, which a test may have paused, and the wall clock, which
/// a test may have tied to it.
#[derive(Debug)]
pub(crate) struct TokioClock {
    handle: Handle,
    origin: Instant,
    anchor: Option<Timestamp>,
    simulated: bool,
}

impl TokioClock {
    /// A clock whose origin is now. With an anchor the wall clock starts there
    /// and follows the monotonic one.
    pub(crate) fn start(handle: &Handle, anchor: Option<Timestamp>) -> Self {
        let guard = handle.enter();
        let before = std::time::Instant::now();
        let origin = Instant::now();
        let after = std::time::Instant::now();
        drop(guard);
        let simulated = origin.into_std() < before || origin.into_std() > after;
        Self { handle: handle.clone(), origin, anchor, simulated }
    }

    /// Whether tokio's clock is paused: it then moves only when a test says so.
    pub(crate) fn is_simulated(&self) -> bool {
        self.simulated
    }

    /// Whether the wall clock follows the monotonic one, so that nobody can set it.
    pub(crate) fn is_tied(&self) -> bool {
        self.anchor.is_some()
    }

    /// The instant to sleep to: not before `at`, not later than tokio can bear.
    pub(crate) fn sleep_target(&self, at: Monotonic, now: Monotonic) -> Instant {
        let at = at.min(now.saturating_add(LONGEST_SLEEP));
        self.origin + at.saturating_since(Monotonic::ORIGIN)
    }

    /// An instant of tokio's as ours.
    pub(crate) fn monotonic_at(&self, instant: Instant) -> Monotonic {
        match instant.checked_duration_since(self.origin) {
            Some(after) => Monotonic::ORIGIN.saturating_add(after),
            None => Monotonic::ORIGIN.saturating_sub(self.origin - instant),
        }
    }

    fn monotonic(&self) -> Monotonic {
        let instant = if self.simulated {
            // A thread outside the runtime would read the real clock.
            let _inside = self.handle.enter();
            Instant::now()
        } else {
            Instant::from_std(std::time::Instant::now())
        };
        self.monotonic_at(instant)
    }
}

impl Clock for TokioClock {
    fn now(&self) -> Moment {
        let monotonic = self.monotonic();
        let wall = match self.anchor {
            Some(anchor) => anchor.saturating_add(monotonic.saturating_since(Monotonic::ORIGIN)),
            None => Timestamp::from(SystemTime::now()),
        };
        Moment::new(monotonic, wall)
    }
}
