//! Both of tokio's runtimes, and everywhere a scheduler can be made and dropped.

#![allow(clippy::unwrap_used, reason = "tests")]

mod support;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use beatline_fixed_rate::FixedRate;
use beatline_scheduler::Scheduler;
use beatline_scheduler::core::{Event, EventKind, Keep, OnDemand, Overlap, SkipReason};
use beatline_test::Tally;
use support::{millis, secs};

// B15
#[test]
fn a_scheduler_may_be_made_and_dropped_anywhere() {
    for workers in [0, 2] {
        let runtime = support::runtime(workers);
        runtime.block_on(async {
            let baseline = tokio::runtime::Handle::current().metrics().num_alive_tasks();
            let make = || {
                let scheduler = Scheduler::new();
                let job = scheduler.job("job", FixedRate::every(millis(1)).immediately()).run(|_| async {}).unwrap();
                drop((scheduler, job));
            };
            make();
            tokio::spawn(async move { make() }).await.unwrap();
            tokio::task::spawn_blocking(make).await.unwrap();

            let outer = Scheduler::new();
            let inside = outer.job("inside", OnDemand).run(move |_| async move { make() }).unwrap();
            inside.run_now().unwrap().await.unwrap();
            let blocking = outer.job("inside blocking", OnDemand).run_blocking(move |_| make()).unwrap();
            blocking.run_now().unwrap().await.unwrap();
            assert_eq!((inside.statistics().failures(), blocking.statistics().failures()), (0, 0));
            outer.shutdown(secs(5)).await;
            drop(outer);
            while tokio::runtime::Handle::current().metrics().num_alive_tasks() > baseline {
                tokio::task::yield_now().await;
            }
        });
    }
}

#[test]
fn a_scheduler_may_own_itself_inside_a_job_that_drops_it() {
    for workers in [0, 2] {
        support::runtime(workers).block_on(async {
            let scheduler = Scheduler::new();
            let (sender, receiver) = tokio::sync::oneshot::channel::<Scheduler>();
            let receiver = Arc::new(std::sync::Mutex::new(Some(receiver)));
            let dropped = Tally::new();
            let job = scheduler
                .job("drops its scheduler", OnDemand)
                .with(dropped.clone())
                .run(move |_, dropped| {
                    let receiver = receiver.lock().unwrap().take();
                    async move {
                        drop(receiver.unwrap().await);
                        dropped.add();
                        tokio::task::yield_now().await;
                    }
                })
                .unwrap();
            let ticket = job.run_now().unwrap();
            sender.send(scheduler).unwrap();
            let ended = ticket.await.unwrap();
            assert_eq!((dropped.count(), ended.fate.to_string().as_str()), (1, "aborted (shutdown)"));
        });
    }
}

/// Two schedulers on one runtime do not see each other.
#[tokio::test(start_paused = true)]
async fn two_schedulers_share_a_runtime_and_nothing_else() {
    let (a, b) = (beatline_test::scheduler(support::ANCHOR), beatline_test::scheduler(support::ANCHOR));
    let tally = Tally::new();
    a.job("job", FixedRate::every(secs(1))).run(tally.job()).unwrap();
    b.job("job", FixedRate::every(secs(1))).run(tally.job()).unwrap();
    beatline_test::advance(secs(1)).await;
    a.shutdown(secs(1)).await;
    beatline_test::advance(secs(1)).await;
    assert_eq!(tally.count(), 3);
}

/// Blocks its thread the way users do by mistake.
fn hog(length: Duration) {
    let until = Instant::now() + length;
    while Instant::now() < until {
        std::hint::spin_loop();
    }
}

// B22: the order of things; how late they are, the `policies` program measures.
#[test]
fn a_body_that_blocks_its_worker_holds_up_no_neighbour() {
    for workers in [2, 4] {
        let runtime = support::runtime(workers);
        runtime.block_on(async {
            let stalls = Arc::new(AtomicU64::new(0));
            let named = Arc::clone(&stalls);
            let scheduler = Scheduler::builder()
                .stall_threshold(millis(50))
                .observer(move |event: &Event| {
                    if matches!(&event.kind, EventKind::Stalled(stalled) if stalled.culprit.as_deref() == Some("hog")) {
                        named.fetch_add(1, Ordering::SeqCst);
                    }
                })
                .build()
                .unwrap();
            let during = Tally::new();
            let neighbour = scheduler
                .job("neighbour", FixedRate::every(millis(20)).immediately())
                .overlap(Overlap::BufferOne { keep: Keep::Latest })
                .run(during.job())
                .unwrap();
            let seen = during.clone();
            let hogging = scheduler
                .job("hog", OnDemand)
                .run(move |_| {
                    let seen = seen.clone();
                    async move {
                        let before = seen.count();
                        hog(millis(400));
                        // Of the twenty that became due meanwhile, most must have run meanwhile.
                        assert!(seen.count() > before, "the neighbour stood still");
                    }
                })
                .unwrap();
            let ended = hogging.run_now().unwrap().await.unwrap();
            assert_eq!(ended.fate.to_string(), "completed", "{:?}", ended.error);
            assert!(stalls.load(Ordering::SeqCst) >= 1, "the monitor names the job");
            assert!(neighbour.statistics().is_balanced());
            scheduler.shutdown(secs(5)).await;
        });
    }
}

/// The same with a neighbour that really awaits and is due at the very instants
/// at which the other begins to block: its task must not be left where only the
/// blocked worker could get at it.
#[test]
fn a_neighbour_that_awaits_is_not_left_behind_by_a_body_that_blocks() {
    for workers in [2, 4] {
        support::runtime(workers).block_on(async {
            let scheduler = Scheduler::new();
            let done = Tally::new();
            // Registered first, so that it is taken up first.
            let neighbour = scheduler
                .job("neighbour", FixedRate::every(millis(300)))
                .with(done.clone())
                .run(|_, done| async move {
                    tokio::time::sleep(millis(1)).await;
                    done.add();
                })
                .unwrap();
            let hogging = scheduler
                .job("hog", FixedRate::every(millis(300)))
                .with(done.clone())
                .run(|_, done| async move {
                    let before = done.count();
                    hog(millis(200));
                    assert!(done.count() > before, "the neighbour of this very instant stood still");
                })
                .unwrap();
            while hogging.statistics().ended() < 5 {
                hogging.next_outcome().await.unwrap();
            }
            let statistics = hogging.statistics();
            assert_eq!(statistics.failures(), 0, "{:?}", statistics.last_error);
            assert_eq!(neighbour.statistics().skipped(SkipReason::Overlap), 0);
            scheduler.shutdown(secs(5)).await;
        });
    }
}

#[test]
fn on_one_thread_a_blocked_loop_is_noticed_named_and_makes_no_burst() {
    let runtime = support::runtime(0);
    runtime.block_on(async {
        let lags = Arc::new(std::sync::Mutex::new(Vec::new()));
        let told = Arc::clone(&lags);
        let scheduler = Scheduler::builder()
            .observer(move |event: &Event| {
                if let EventKind::Stalled(stalled) = &event.kind {
                    told.lock().unwrap().push(stalled.clone());
                }
            })
            .build()
            .unwrap();
        let neighbour = scheduler.job("neighbour", FixedRate::every(millis(10))).run(|_| async {}).unwrap();
        let hogging = scheduler.job("hog", OnDemand).run(|_| async { hog(millis(700)) }).unwrap();
        neighbour.next_outcome().await.unwrap();
        let before = neighbour.statistics();
        hogging.run_now().unwrap().await.unwrap();
        neighbour.next_outcome().await.unwrap();
        let after = neighbour.statistics();
        assert!(after.started - before.started <= 3, "no burst: {after:?}");
        assert!(after.skipped(SkipReason::Coalesced) - before.skipped(SkipReason::Coalesced) >= 60);
        scheduler.shutdown(secs(1)).await;
        let lags = lags.lock().unwrap();
        assert!(
            lags.iter().any(|stalled| stalled.driver_late && stalled.culprit.as_deref() == Some("hog")),
            "{lags:?}"
        );
        assert!(lags.iter().any(|stalled| stalled.over && stalled.lag >= millis(600)), "{lags:?}");
    });
}

#[test]
fn a_blocking_body_off_the_loop_is_no_stall() {
    for workers in [0, 2] {
        support::runtime(workers).block_on(async {
            let stalls = Tally::new();
            let told = stalls.clone();
            let scheduler = Scheduler::builder()
                .observer(move |event: &Event| {
                    if matches!(&event.kind, EventKind::Stalled(stalled) if stalled.culprit.is_some()) {
                        told.add();
                    }
                })
                .build()
                .unwrap();
            let neighbour = Tally::new();
            scheduler.job("neighbour", FixedRate::every(millis(10))).run(neighbour.job()).unwrap();
            let seen = neighbour.clone();
            let job = scheduler
                .job("report", OnDemand)
                .run_blocking(move |_| {
                    let before = seen.count();
                    hog(millis(500));
                    assert!(seen.count() > before);
                })
                .unwrap();
            let ended = job.run_now().unwrap().await.unwrap();
            assert_eq!((ended.fate.to_string().as_str(), stalls.count()), ("completed", 0), "{:?}", ended.error);
        });
    }
}

/// Real time, one-sided: never early.
#[test]
fn nothing_starts_before_it_is_due() {
    for workers in [0, 2] {
        support::runtime(workers).block_on(async {
            let scheduler = Scheduler::new();
            let early = Tally::new();
            let mut handles = Vec::new();
            for number in 0..200_u64 {
                let due = tokio::time::Instant::now() + Duration::from_micros(number * 997);
                let early = early.clone();
                let handle = scheduler.at(due, move |_| {
                    if tokio::time::Instant::now() < due {
                        early.add();
                    }
                    async {}
                });
                handles.push(handle.unwrap());
            }
            while scheduler.one_shots().ended() < 200 {
                tokio::task::yield_now().await;
            }
            assert_eq!(early.count(), 0);
        });
    }
}
