//! The thread that waits for the wall clock to be set: there is one while a
//! scheduler has had jobs on the wall clock, and none before or after. The only
//! test of its process, whose threads it counts.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "tests")]

mod support;

use std::time::Instant;

use beatline_cron::{Cron, Dialect};
use beatline_fixed_rate::FixedRate;
use beatline_scheduler::Scheduler;
use support::{millis, runtime, secs};

/// The names of this process's threads.
fn threads() -> Vec<String> {
    let tasks = std::fs::read_dir("/proc/self/task").unwrap();
    // A thread may end between the listing and the look.
    let name = |task: std::io::Result<std::fs::DirEntry>| std::fs::read_to_string(task.ok()?.path().join("comm")).ok();
    tasks.filter_map(name).map(|name| name.trim().to_owned()).collect()
}

fn clock_threads() -> usize {
    threads().iter().filter(|name| *name == "beatline-clock").count()
}

async fn becomes_true(what: &str, condition: impl Fn() -> bool) {
    let deadline = Instant::now() + secs(20);
    while !condition() {
        assert!(Instant::now() < deadline, "{what}: {:?}", threads());
        tokio::time::sleep(millis(5)).await;
    }
}

#[test]
fn the_clock_is_watched_only_for_wall_clock_jobs_and_only_as_long_as_the_scheduler_lives() {
    runtime(0).block_on(async {
        let before = threads().len();
        let scheduler = Scheduler::new();
        let ticks = scheduler.job("ticks", FixedRate::every(millis(5))).run(|_| async {}).unwrap();
        becomes_true("interval jobs run", || ticks.statistics().started > 3).await;
        assert_eq!(clock_threads(), 0, "interval jobs need no wall clock");

        for name in ["cron", "another"] {
            let cron = Cron::parse_with(Dialect::Seconds, "* * * * * *").unwrap();
            scheduler.job(name, cron).run(|_| async {}).unwrap();
        }
        becomes_true("the clock is watched", || clock_threads() == 1).await;
        let cron = scheduler.find("cron").unwrap();
        becomes_true("cron jobs run", || cron.statistics().started > 0).await;
        assert_eq!(clock_threads(), 1, "one thread for all of them");

        drop(scheduler);
        becomes_true("dropped", || threads().len() == before).await;

        let scheduler = Scheduler::new();
        scheduler.job("cron", Cron::parse("* * * * *").unwrap()).run(|_| async {}).unwrap();
        becomes_true("the clock is watched", || clock_threads() == 1).await;
        scheduler.shutdown(secs(1)).await;
        becomes_true("shut down", || threads().len() == before).await;
    });

    // With the runtime the driver goes too, and so does what it holds.
    let before = threads().len();
    let scheduler = Scheduler::new();
    let runtime = runtime(0);
    runtime.block_on(async {
        scheduler.job("cron", Cron::parse("* * * * *").unwrap()).run(|_| async {}).unwrap();
        becomes_true("the clock is watched", || clock_threads() == 1).await;
    });
    drop(runtime);
    self::runtime(0).block_on(becomes_true("without a runtime", || threads().len() == before));
}
