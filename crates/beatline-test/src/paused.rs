use std::time::Duration;

use beatline_core::Timestamp;
use beatline_scheduler::{Scheduler, SchedulerBuilder, pulse};
use tokio::time::Instant;

/// A run may go from task to task at one instant; after so many turns of all
/// tasks without a step of the scheduler nothing more is coming.
const QUIET_TURNS: usize = 32;

/// A scheduler whose wall clock shows `anchor` when its first job is added, and
/// follows tokio's clock from there.
///
/// # Panics
///
/// If `anchor` is not RFC 3339.
#[must_use]
pub fn scheduler(anchor: &str) -> Scheduler {
    scheduler_builder(anchor).build().expect("the builder's defaults are valid")
}

/// The same with settings of your own.
///
/// # Panics
///
/// If `anchor` is not RFC 3339.
pub fn scheduler_builder(anchor: &str) -> SchedulerBuilder {
    let anchor: Timestamp = anchor.parse().expect("the anchor is RFC 3339");
    Scheduler::builder().wall_anchor(anchor)
}

/// Lets `duration` of virtual time pass, instant by instant, and returns when
/// everything that became due meanwhile has ended or waits: at a [`Gate`], for a
/// later instant, for another task.
///
/// Call it under tokio's paused clock; under a running clock it waits in real
/// time.
///
/// [`Gate`]: crate::Gate
pub async fn advance(duration: Duration) {
    // What is going on at this instant first.
    settle().await;
    let target = Instant::now() + duration;
    tokio::time::sleep_until(target).await;
    settle().await;
}

/// Lets everything that can happen at this instant happen.
pub async fn settle() {
    let (mut known, _) = pulse();
    let mut quiet = 0;
    while quiet < QUIET_TURNS {
        tokio::task::yield_now().await;
        let (steps, blocking) = pulse();
        if blocking > 0 {
            // A real thread is at work; virtual time waits for it.
            std::thread::yield_now();
            quiet = 0;
        } else if steps == known {
            quiet += 1;
        } else {
            quiet = 0;
        }
        known = steps;
    }
}
