//! The clock of a checker that was given none.

use std::time::{Instant, SystemTime};

use beatline_core::{Clock, Moment, Monotonic, Timestamp};
use tokio::runtime::Handle;

/// tokio's clock beside the system's.
///
/// Under tokio's paused clock the wall clock would run on alone and look like a
/// suspended machine; so while tokio's now lies outside two readings of the
/// real one, the wall clock is taken to follow it.
pub(crate) struct TokioClock {
    /// A thread outside the runtime would read real time though it is paused.
    runtime: Option<Handle>,
    anchor: Instant,
    anchor_wall: Timestamp,
}

impl TokioClock {
    pub(crate) fn new() -> Self {
        Self {
            runtime: Handle::try_current().ok(),
            anchor: tokio::time::Instant::now().into_std(),
            anchor_wall: Timestamp::from(SystemTime::now()),
        }
    }
}

impl Clock for TokioClock {
    fn now(&self) -> Moment {
        let _entered = self.runtime.as_ref().map(Handle::enter);
        let before = Instant::now();
        let now = tokio::time::Instant::now().into_std();
        let wall = SystemTime::now();
        let simulated = now < before || now > Instant::now();
        let elapsed = now.saturating_duration_since(self.anchor);
        let wall = if simulated { self.anchor_wall.saturating_add(elapsed) } else { Timestamp::from(wall) };
        Moment::new(Monotonic::ORIGIN.saturating_add(elapsed), wall)
    }
}
