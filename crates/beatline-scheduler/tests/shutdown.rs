//! The end: gentle, within its deadline, told in a report, and complete.

#![allow(clippy::unwrap_used, reason = "tests")]

mod support;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use beatline_fixed_rate::FixedRate;
use beatline_scheduler::core::{Cause, Error, OnDemand, Once, Outcome, Overlap, SkipReason};
use beatline_scheduler::{Scheduler, Shutdown};
use beatline_test::{Gate, Tally, advance, settle};
use support::{Observed, secs};

#[tokio::test(start_paused = true)]
async fn active_runs_have_until_the_deadline_then_are_asked_then_are_dropped() {
    let baseline = tokio::runtime::Handle::current().metrics().num_alive_tasks();
    let scheduler = beatline_test::scheduler(support::ANCHOR);
    let every = FixedRate::every(secs(100)).immediately();
    let quick = scheduler.job("quick", every).run(|_| tokio::time::sleep(secs(5))).unwrap();
    let obedient = scheduler.job("obedient", every).run(|run| async move { run.cancelled().await }).unwrap();
    let deaf = scheduler.job("deaf", every).run(|_| std::future::pending::<()>()).unwrap();
    advance(secs(1)).await;

    let report = scheduler.shutdown(Shutdown::within(secs(10)).grace(secs(3))).await;
    assert_eq!((report.completed, report.cancelled, report.aborted, report.skipped), (1, 1, 1, 0));
    assert_eq!((report.still_running.len(), report.took), (0, secs(13)));
    assert_eq!(quick.statistics().last_outcome, Some(Outcome::Completed));
    assert_eq!(obedient.statistics().last_outcome, Some(Outcome::Cancelled(Cause::Shutdown)));
    assert_eq!(deaf.statistics().last_outcome, Some(Outcome::Aborted(Cause::Shutdown)));
    settle().await;
    assert_eq!(tokio::runtime::Handle::current().metrics().num_alive_tasks(), baseline, "nothing is left");
}

#[tokio::test(start_paused = true)]
async fn it_ends_as_soon_as_nothing_is_active() {
    let scheduler = beatline_test::scheduler(support::ANCHOR);
    let job = scheduler.job("job", FixedRate::every(secs(1))).run(|_| async {}).unwrap();
    advance(secs(3)).await;
    let report = scheduler.shutdown(secs(30)).await;
    assert_eq!((report.took, report.completed), (secs(0), 0));
    assert_eq!(job.statistics().started, 3);
    advance(secs(10)).await;
    assert_eq!(job.statistics().started, 3);
    assert!(job.status().is_cancelled());
}

#[tokio::test(start_paused = true)]
async fn what_waits_is_dropped_or_drained() {
    for drain in [false, true] {
        let scheduler = beatline_test::scheduler(support::ANCHOR);
        let job = scheduler
            .job("job", FixedRate::every(secs(10)).immediately())
            .overlap(Overlap::buffer_all())
            .run(|_| tokio::time::sleep(secs(25)))
            .unwrap();
        advance(secs(21)).await; // running since 0; 10 and 20 wait
        let how = Shutdown::within(secs(100));
        let report = scheduler.shutdown(if drain { how.drain_buffers() } else { how }).await;
        let statistics = job.statistics();
        assert!(statistics.is_balanced());
        if drain {
            assert_eq!((report.completed, report.skipped, statistics.started), (3, 0, 3));
            assert_eq!(report.took, secs(4 + 25 + 25));
        } else {
            assert_eq!((report.completed, report.skipped, statistics.skipped(SkipReason::Shutdown)), (1, 2, 2));
        }
    }
}

#[tokio::test(start_paused = true)]
async fn it_is_idempotent_and_asking_again_can_only_bring_the_end_nearer() {
    let scheduler = beatline_test::scheduler(support::ANCHOR);
    scheduler.job("deaf", FixedRate::every(secs(1))).run(|_| std::future::pending::<()>()).unwrap();
    advance(secs(1)).await;
    let patient = scheduler.shutdown(secs(1_000));
    advance(secs(10)).await;
    let longer = scheduler.shutdown(secs(5_000));
    let at_once = scheduler.shutdown(Shutdown::now());
    let (first, second, third) = tokio::join!(patient, longer, at_once);
    assert_eq!((first.aborted, first.took), (1, secs(10)));
    assert!(first == second && second == third);
    assert_eq!(scheduler.shutdown(secs(1)).await, first, "afterwards it answers at once");
}

// B25
#[tokio::test(start_paused = true)]
async fn a_run_may_wait_for_the_shutdown_and_nothing_can_be_added_meanwhile() {
    let scheduler = beatline_test::scheduler(support::ANCHOR);
    let handle = scheduler.handle();
    let returned = Tally::new();
    let done = returned.clone();
    let inner = scheduler
        .job("inner", Once::after(secs(1)))
        .run(move |_| {
            let (handle, done) = (handle.clone(), done.clone());
            async move {
                tokio::time::sleep(secs(1)).await;
                let report = handle.shutdown(secs(60)).await;
                assert!(report.took < secs(3), "{report:?}");
                done.add();
            }
        })
        .unwrap();
    let handle = scheduler.handle();
    let refused = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&refused);
    scheduler
        .job("adds", Once::after(secs(1)))
        .run(move |run| {
            let (handle, flag) = (handle.clone(), Arc::clone(&flag));
            async move {
                tokio::time::sleep(secs(2)).await;
                let added = handle.job("too late", OnDemand).run(|_| async {});
                flag.store(matches!(added, Err(Error::ShuttingDown)), Ordering::SeqCst);
                drop(run);
            }
        })
        .unwrap();
    advance(secs(5)).await;
    assert!(refused.load(Ordering::SeqCst));
    assert_eq!((returned.count(), inner.statistics().last_outcome), (1, Some(Outcome::Completed)));
}

#[tokio::test(start_paused = true)]
async fn two_runs_that_both_wait_for_the_shutdown_wait_for_neither() {
    let scheduler = beatline_test::scheduler(support::ANCHOR);
    let returned = Tally::new();
    for name in ["a", "b"] {
        let handle = scheduler.handle();
        scheduler
            .job(name, Once::after(secs(1)))
            .with(returned.clone())
            .run(move |_, returned| {
                let handle = handle.clone();
                async move {
                    tokio::time::sleep(secs(1)).await;
                    handle.shutdown(secs(60)).await;
                    returned.add();
                }
            })
            .unwrap();
    }
    advance(secs(2)).await;
    assert_eq!(returned.count(), 2);
}

#[test]
fn a_blocking_body_is_reported_by_name_and_holds_nothing_up() {
    for workers in [0, 2] {
        let runtime = support::runtime(workers);
        let release = Arc::new(AtomicBool::new(false));
        let (stop, entered) = (Arc::clone(&release), Tally::new());
        let inside = entered.clone();
        runtime.block_on(async {
            let scheduler = Scheduler::new();
            let job = scheduler
                .job("stubborn", Once::immediately())
                .run_blocking(move |run| {
                    inside.add();
                    while !stop.load(Ordering::SeqCst) {
                        std::thread::park_timeout(support::millis(1));
                    }
                    assert!(run.is_cancelled());
                })
                .unwrap();
            while entered.count() == 0 {
                tokio::task::yield_now().await;
            }
            let report = scheduler.shutdown(Shutdown::now()).await;
            assert_eq!(report.still_running.len(), 1, "{report:?}");
            assert_eq!((&*report.still_running[0].job, report.still_running[0].runs), ("stubborn", 1));
            assert_eq!((report.aborted, job.statistics().running), (0, 1), "a blocking body is never aborted");
            release.store(true, Ordering::SeqCst);
            while job.statistics().running > 0 {
                tokio::task::yield_now().await;
            }
            assert_eq!(job.statistics().last_outcome, Some(Outcome::Cancelled(Cause::Shutdown)));
        });
    }
}

#[test]
fn it_completes_although_the_runtime_goes_away() {
    for workers in [0, 2] {
        let runtime = support::runtime(workers);
        let scheduler = Scheduler::builder().runtime(runtime.handle().clone()).build().unwrap();
        let gate = Gate::new();
        let job = scheduler.job("job", Once::immediately()).run(gate.job()).unwrap();
        runtime.block_on(async {
            while gate.waiting() == 0 {
                tokio::task::yield_now().await;
            }
        });
        let shutting_down = scheduler.shutdown(secs(3_600));
        drop(runtime);
        let other = support::runtime(0);
        let report = other.block_on(shutting_down);
        assert!(report.took < secs(3_600));
        assert!(matches!(job.statistics().last_outcome, Some(Outcome::Aborted(_))), "{:?}", job.statistics());
        assert!(job.statistics().is_balanced());
        assert!(matches!(scheduler.job("later", OnDemand).run(|_| async {}), Err(Error::ShuttingDown)));
    }
}

#[test]
fn runs_of_a_runtime_that_ends_are_aborted_and_the_scheduler_is_gone() {
    for workers in [0, 2] {
        let runtime = support::runtime(workers);
        let scheduler = Scheduler::builder().runtime(runtime.handle().clone()).build().unwrap();
        let gate = Gate::new();
        let job = scheduler.job("job", Once::immediately()).run(gate.job()).unwrap();
        let later = scheduler.job("later", FixedRate::every(secs(3_600))).run(|_| async {}).unwrap();
        runtime.block_on(async {
            while gate.waiting() == 0 {
                tokio::task::yield_now().await;
            }
        });
        drop(runtime);
        assert_eq!(job.statistics().last_outcome, Some(Outcome::Aborted(Cause::Runtime)));
        assert_eq!((job.statistics().running, gate.waiting()), (0, 0));
        assert!(matches!(scheduler.job("more", OnDemand).run(|_| async {}), Err(Error::Gone)));
        assert!(matches!(later.run_now(), Err(Error::Gone)));
    }
}

#[tokio::test(start_paused = true)]
async fn a_scheduler_that_never_had_a_job_ends_at_once_and_takes_none_after() {
    let scheduler = Scheduler::new();
    assert_eq!(scheduler.shutdown(secs(1)).await, Default::default());
    assert!(matches!(scheduler.job("job", OnDemand).run(|_| async {}), Err(Error::ShuttingDown)));
}

#[tokio::test(start_paused = true)]
async fn an_external_future_can_end_it() {
    let observed = Observed::default();
    let scheduler = observed.builder().build().unwrap();
    let tally = Tally::new();
    scheduler.job("job", FixedRate::every(secs(1))).run(tally.job()).unwrap();
    scheduler.run_until(tokio::time::sleep(support::millis(3_500))).await;
    assert_eq!(tally.count(), 3);
    assert_eq!(observed.count(|kind| matches!(kind, beatline_scheduler::core::EventKind::ShuttingDown)), 1);
}

#[tokio::test(start_paused = true)]
async fn a_handle_outlives_its_scheduler_and_says_so() {
    let scheduler = beatline_test::scheduler(support::ANCHOR);
    let handle = scheduler.handle();
    scheduler.job("job", OnDemand).run(|_| async {}).unwrap();
    assert!(handle.find("job").is_some() && handle.jobs().len() == 1 && !handle.is_gone());
    drop(scheduler);
    assert!(handle.is_gone() && handle.find("job").is_none());
    assert!(matches!(handle.job("job", OnDemand).run(|_| async {}), Err(Error::Gone)));
    assert!(matches!(handle.after(secs(1), |_| async {}), Err(Error::Gone)));
    assert!(matches!(handle.at(tokio::time::Instant::now(), |_| async {}), Err(Error::Gone)));
    assert!(handle.jobs().is_empty() && handle.cancel_all() == Default::default());
    assert_eq!(handle.shutdown(secs(1)).await, Default::default());
}

#[tokio::test]
async fn running_until_a_signal_ends_with_any_shutdown_or_with_the_given_future() {
    let scheduler = Scheduler::new();
    let handle = scheduler.handle();
    scheduler
        .job("ends it", Once::immediately())
        .run(move |_| {
            let handle = handle.clone();
            async move { drop(handle.shutdown(secs(5))) }
        })
        .unwrap();
    let report = scheduler.run_until_signal().await.unwrap();
    assert!(report.still_running.is_empty(), "{report:?}");

    let scheduler = Scheduler::new();
    let tally = Tally::new();
    let job = scheduler.job("job", OnDemand).run(tally.job()).unwrap();
    let report = scheduler.run_until_signal_or(job.run_now().unwrap()).await.unwrap();
    assert_eq!((tally.count(), report.still_running.len()), (1, 0));
}
