//! After `cancel` returned nothing starts any more, and every occurrence has one
//! end.

#![allow(clippy::unwrap_used, reason = "tests")]

mod support;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use beatline_fixed_rate::FixedRate;
use beatline_scheduler::core::{Cause, Error, Fate, OnDemand, Once, Outcome, Overlap, SkipReason};
use beatline_scheduler::{CancelResult, Condition, Scheduler};
use beatline_test::{Gate, Tally, advance, settle};
use support::{Observed, assert_balanced, secs};

// B19
#[test]
fn a_cancel_that_races_with_a_fire_ends_in_exactly_one_of_three() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_time().build().unwrap();
    runtime.block_on(async {
        let scheduler = Scheduler::new();
        let (mut ran, mut before, mut during) = (0, 0, 0);
        let iterations = support::repetitions(5_000, 100_000);
        for iteration in 0..iterations {
            let cancelled = Arc::new(AtomicU64::new(0));
            let late = Arc::new(AtomicU64::new(0));
            let (flag, seen) = (Arc::clone(&cancelled), Arc::clone(&late));
            let job = scheduler
                .job("job", Once::immediately())
                .run(move |_| {
                    // The gate is passed before this, so a start after `cancel` returned shows.
                    let too_late = flag.load(Ordering::SeqCst);
                    seen.fetch_add(too_late, Ordering::SeqCst);
                    async {}
                })
                .unwrap();
            if iteration % 3 == 0 {
                tokio::task::yield_now().await;
            }
            let result = job.cancel();
            let after = job.statistics();
            if after.running == 0 {
                cancelled.store(1, Ordering::SeqCst);
            }
            while job.statistics().pending + job.statistics().running > 0 {
                tokio::task::yield_now().await;
            }
            let statistics = job.statistics();
            assert_eq!(late.load(Ordering::SeqCst), 0, "started after cancel returned");
            assert!(statistics.started <= after.started, "a gate was passed after cancel returned");
            assert!(statistics.is_balanced(), "{statistics:?}");
            match (result, statistics.started) {
                (CancelResult::AlreadyGone, 1) => ran += 1,
                (CancelResult::Cancelled { running: 0 }, 0) => before += 1,
                (CancelResult::Cancelled { .. }, 1) => during += 1,
                other => panic!("{other:?} {statistics:?}"),
            }
            assert!(scheduler.find("job").is_none() && scheduler.jobs().is_empty());
        }
        assert_eq!(ran + before + during, iterations);
        scheduler.shutdown(secs(5)).await;
    });
}

// B24
#[test]
fn cancelling_everything_beside_a_shutdown_while_all_of_it_fires() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_time().build().unwrap();
    runtime.block_on(async {
        for _ in 0..support::repetitions(20, 1_000) {
            let scheduler = Arc::new(Scheduler::new());
            let started = Tally::new();
            let at = tokio::time::Instant::now() + support::millis(20);
            let jobs: Vec<_> = (0..support::repetitions(2_000, 10_000))
                .map(|_| scheduler.at(at, started.job()))
                .collect::<Result<_, _>>()
                .unwrap();
            tokio::time::sleep_until(at).await;
            let cancelling = Arc::clone(&scheduler);
            let cancel = tokio::task::spawn_blocking(move || cancelling.cancel_all());
            let report = scheduler.shutdown(secs(5)).await;
            cancel.await.unwrap();
            let after_both = started.count();
            let (mut ran, mut skipped, mut due) = (0, 0, 0);
            for job in &jobs {
                let statistics = job.statistics();
                assert!(statistics.is_balanced() && statistics.pending == 0 && statistics.running == 0);
                ran += statistics.started;
                skipped += statistics.skipped_total();
                due += statistics.due;
                assert!(job.status().is_cancelled() || job.status().condition == Condition::Exhausted);
            }
            assert_eq!(due, ran + skipped);
            assert_eq!(ran, after_both, "nothing starts after both returned");
            assert!(report.still_running.is_empty(), "{report:?}");
        }
    });
}

// B41
#[tokio::test(start_paused = true)]
async fn cancelling_twice_says_so_each_time() {
    let scheduler = beatline_test::scheduler(support::ANCHOR);
    let tally = Tally::new();
    let jobs: Vec<_> = (0..1_000).map(|_| scheduler.after(secs(32), tally.job()).unwrap()).collect();
    assert!(jobs.iter().all(|job| job.cancel() == CancelResult::Cancelled { running: 0 }));
    for _ in 0..2 {
        assert!(jobs.iter().all(|job| job.cancel() == CancelResult::AlreadyGone));
    }
    advance(secs(60)).await;
    assert_eq!(tally.count(), 0);

    let completed = scheduler.after(secs(1), tally.job()).unwrap();
    advance(secs(1)).await;
    assert_eq!(tally.count(), 1);
    assert_eq!(completed.cancel(), CancelResult::AlreadyGone);
    let at_shutdown = scheduler.after(secs(9), tally.job()).unwrap();
    scheduler.shutdown(secs(1)).await;
    assert_eq!(at_shutdown.cancel(), CancelResult::AlreadyGone);
}

// B42
#[tokio::test(start_paused = true)]
async fn a_run_may_cancel_its_own_job_and_cannot_wait_for_itself() {
    let observed = Observed::default();
    let scheduler = observed.builder().build().unwrap();
    let handle = scheduler.handle();
    let finished = Tally::new();
    let job = scheduler
        .job("job", FixedRate::every(secs(1)))
        .with(finished.clone())
        .run(move |run, finished| {
            let handle = handle.clone();
            async move {
                if run.id().0 == 3 {
                    let own = handle.find("job").unwrap();
                    run.cancel_job();
                    assert_eq!(own.cancel(), CancelResult::AlreadyGone);
                    assert!(matches!(own.stop(secs(5)).await, Err(Error::WouldDeadlock)));
                    assert!(!run.is_cancelled() || finished.count() == 2);
                }
                finished.add();
            }
        })
        .unwrap();
    advance(secs(10)).await;
    assert_eq!((job.statistics().started, finished.count()), (3, 3));
    assert_eq!(job.status().condition, Condition::Cancelled);
    assert!(scheduler.find("job").is_none());
    assert_balanced(&job);
}

// B43
#[tokio::test(start_paused = true)]
async fn dropping_a_handle_changes_nothing_and_dropping_a_guard_cancels() {
    let baseline = tokio::runtime::Handle::current().metrics().num_alive_tasks();
    let scheduler = beatline_test::scheduler(support::ANCHOR);
    let tally = Tally::new();
    let every = FixedRate::every(secs(1));
    drop(scheduler.job("dropped", every).run(tally.job()).unwrap());
    std::mem::forget(scheduler.job("forgotten", every).run(tally.job()).unwrap());
    let guarded = scheduler.job("guarded", every).run(tally.job()).unwrap();
    let guard = guarded.guard();
    let released = scheduler.job("released", every).run(tally.job()).unwrap();
    assert!(released.guard().release().is_some());
    advance(secs(2)).await;
    assert_eq!(tally.count(), 8);
    drop(guard);
    assert_eq!(guarded.cancel(), CancelResult::AlreadyGone);
    advance(secs(2)).await;
    assert_eq!(tally.count(), 14);

    let gate = Gate::new();
    let in_flight = scheduler.job("in flight", every).run(gate.job()).unwrap();
    advance(secs(1)).await;
    assert_eq!(gate.waiting(), 1);
    drop(scheduler);
    advance(secs(5)).await;
    assert_eq!(tally.count(), 17, "no further starts");
    assert_eq!(gate.waiting(), 0);
    assert_eq!(in_flight.statistics().last_outcome, Some(Outcome::Aborted(Cause::Shutdown)));
    assert_eq!(tokio::runtime::Handle::current().metrics().num_alive_tasks(), baseline, "no task is left");
}

#[tokio::test(start_paused = true)]
async fn cancel_leaves_the_run_alone_and_drops_what_waits() {
    let scheduler = beatline_test::scheduler(support::ANCHOR);
    let gate = Gate::new();
    let job = scheduler
        .job("job", FixedRate::every(secs(1)).immediately())
        .overlap(Overlap::buffer_all())
        .run(gate.job())
        .unwrap();
    advance(secs(3)).await;
    assert_eq!(job.cancel(), CancelResult::Cancelled { running: 1 });
    let statistics = job.statistics();
    assert_eq!((statistics.running, statistics.pending, statistics.skipped(SkipReason::Removed)), (1, 0, 3));
    assert!(scheduler.find("job").is_none(), "the name is free at once");
    scheduler.job("job", OnDemand).run(|_| async {}).unwrap();
    gate.open(1);
    settle().await;
    assert_eq!(job.statistics().last_outcome, Some(Outcome::Completed));
    assert!(scheduler.find("job").is_some(), "the end of the old job leaves the new one");
    assert_balanced(&job);
}

#[tokio::test(start_paused = true)]
async fn stop_asks_first_and_drops_after_the_grace() {
    let scheduler = beatline_test::scheduler(support::ANCHOR);
    let every = FixedRate::every(secs(100)).immediately();
    let obeys = scheduler
        .job("obeys", every)
        .run(|run| async move {
            run.cancelled().await;
            tokio::time::sleep(secs(2)).await;
        })
        .unwrap();
    let ignores = scheduler.job("ignores", every).run(|_| std::future::pending::<()>()).unwrap();
    advance(secs(1)).await;
    let (first, second) = (obeys.stop(secs(5)), ignores.stop(secs(5)));
    assert_eq!(first.result(), CancelResult::Cancelled { running: 1 });
    advance(secs(2)).await;
    assert_eq!(obeys.statistics().last_outcome, Some(Outcome::Cancelled(Cause::User)));
    assert_eq!(ignores.statistics().running, 1);
    advance(secs(3)).await;
    assert_eq!(ignores.statistics().last_outcome, Some(Outcome::Aborted(Cause::User)));
    first.await.unwrap();
    second.await.unwrap();
    // Stopping a job that was cancelled before still stops its runs.
    let cancelled = scheduler.job("cancelled", every).run(|_| std::future::pending::<()>()).unwrap();
    settle().await;
    cancelled.cancel();
    assert_eq!(cancelled.stop(secs(1)).await.unwrap(), CancelResult::AlreadyGone);
    assert_eq!(cancelled.statistics().last_outcome, Some(Outcome::Aborted(Cause::User)));
}

#[tokio::test(start_paused = true)]
async fn cancel_all_reaches_the_named_and_the_nameless() {
    let scheduler = beatline_test::scheduler(support::ANCHOR);
    let gate = Gate::new();
    for name in ["a", "b", "c"] {
        scheduler.job(name, FixedRate::every(secs(1))).run(gate.job()).unwrap();
    }
    scheduler.after(secs(60), |_| async {}).unwrap();
    advance(secs(1)).await;
    let found = scheduler.cancel_all();
    assert_eq!((found.jobs, found.running), (4, 3));
    assert!(scheduler.jobs().is_empty());
    assert_eq!(scheduler.cancel_all(), Default::default());
    // Runs of cancelled jobs are still in reach of a shutdown.
    let report = scheduler.shutdown(secs(1)).await;
    assert_eq!((report.aborted, gate.waiting()), (3, 0));
}

#[tokio::test(start_paused = true)]
async fn tickets_of_a_cancelled_job_are_answered() {
    let scheduler = beatline_test::scheduler(support::ANCHOR);
    let gate = Gate::new();
    let job = scheduler.job("job", OnDemand).overlap(Overlap::buffer_all()).run(gate.job()).unwrap();
    let running = job.run_now().unwrap();
    settle().await;
    let waiting = job.run_now().unwrap();
    job.cancel();
    assert_eq!(waiting.await.unwrap().fate, Fate::Skipped(SkipReason::Removed));
    gate.open(1);
    assert_eq!(running.await.unwrap().fate, Fate::Ran(Outcome::Completed));
    assert!(matches!(job.run_now(), Err(Error::Gone)));
    assert!(matches!(job.next_outcome().await, Err(Error::Gone)));
}
