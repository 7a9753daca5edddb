//! Heartbeat checkers as jobs of a scheduler: one timer for all of them.
#![cfg(all(feature = "heartbeat", feature = "fixed-rate"))]
#![allow(clippy::unwrap_used, reason = "tests")]

use std::time::Duration;

use beatline::FixedRate;
use beatline::heartbeat::HeartbeatChecker;
use beatline_test::{advance, scheduler};

#[tokio::test(start_paused = true)]
async fn checkers_are_jobs_and_share_the_timer_of_their_scheduler() {
    let scheduler = scheduler("2026-01-01T00:00:00Z");
    let tasks = tokio::runtime::Handle::current().metrics().num_alive_tasks();
    let checkers: Vec<HeartbeatChecker<u64>> =
        [5, 30].map(|seconds| HeartbeatChecker::new(Duration::from_secs(seconds)).unwrap()).into();
    for (number, checker) in checkers.iter().enumerate() {
        let every = FixedRate::every(checker.sweep_interval());
        scheduler.job(format!("heartbeats {number}"), every).run_job(checker.clone()).unwrap();
    }
    let beats: Vec<_> = checkers.iter().flat_map(|checker| (0..100).map(|key| checker.register(key))).collect();
    for _ in 0..20 {
        advance(Duration::from_secs(2)).await;
        for beat in beats.iter().step_by(2) {
            assert!(beat.touch().is_ok(), "whoever beats lives");
        }
    }
    for (number, beat) in beats.iter().enumerate() {
        assert_eq!(beat.touch().is_err(), number % 2 == 1, "{number}: whoever is silent for 40 s is dead");
    }
    // The driver and the runner, whatever the number of checkers and connections.
    assert_eq!(tokio::runtime::Handle::current().metrics().num_alive_tasks(), tasks + 2);
    for job in scheduler.jobs() {
        assert!(job.statistics().is_balanced() && job.statistics().failures() == 0);
    }
}
