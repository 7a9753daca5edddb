//! Start, run, schedule, shut down, drop.
#![cfg(not(loom))]

mod common;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use beatline_core::{Job, Run};
use beatline_heartbeat::{Ended, Error, HeartbeatChecker, Status};
use common::{ManualClock, drain, sweep_for};
use futures::{FutureExt, StreamExt};
use tokio::runtime::Builder;

const SECOND: Duration = Duration::from_secs(1);

#[tokio::test(start_paused = true)]
async fn a_timeout_alone_is_enough() {
    let checker = HeartbeatChecker::new(30 * SECOND).unwrap();
    checker.start().unwrap();
    let living = checker.register("living");
    let dead = checker.register("dead");
    let begun = tokio::time::Instant::now();
    let beating = async {
        loop {
            tokio::time::sleep(10 * SECOND).await;
            living.touch().unwrap();
        }
    };
    tokio::select! {
        ended = dead.expired() => assert_eq!(ended, Ended::Expired),
        () = beating => unreachable!(),
    }
    // tokio's timer adds up to a millisecond.
    let after = begun.elapsed();
    assert!(after >= 30 * SECOND && after <= Duration::from_millis(30_102), "{after:?}");
    assert_eq!(living.status(), Status::Alive);
    assert_eq!(checker.statistics().pauses, 0, "the paused clock is not a suspended machine");
}

#[tokio::test(start_paused = true)]
async fn run_sweeps_in_the_callers_task() {
    let (checker, mut events) = HeartbeatChecker::builder(SECOND).build_with_events().unwrap();
    let _beat = checker.register(1);
    let runner = checker.clone();
    let running = tokio::spawn(async move { runner.run().await });
    assert!(events.next().await.is_some());
    checker.shutdown(SECOND).await;
    running.await.unwrap();
}

#[tokio::test]
async fn any_scheduler_can_drive_it_as_a_job() {
    let clock = ManualClock::new();
    let (checker, mut events) = HeartbeatChecker::builder(SECOND).clock(clock.clone()).build_with_events().unwrap();
    let job: Box<dyn Job> = Box::new(checker.clone());
    let _beat = checker.register(1);
    for _ in 0..40 {
        job.run(Run::detached("heartbeats")).await.unwrap();
        clock.advance(checker.sweep_interval());
    }
    // The suspicion was overtaken by the expiry before anyone read of it.
    assert_eq!(drain(&mut events).len(), 1);
    assert_eq!(checker.statistics().sweeps, 40);
}

#[test]
fn starting_without_a_runtime_or_a_timer_is_an_error() {
    let checker = HeartbeatChecker::<u32>::new(SECOND).unwrap();
    assert!(matches!(checker.start(), Err(Error::NoRuntime)));
    let runtime = Builder::new_current_thread().build().unwrap();
    runtime.block_on(async { assert!(matches!(checker.start(), Err(Error::NoTimeDriver))) });
    runtime.block_on(checker.shutdown(SECOND));
    let runtime = Builder::new_current_thread().enable_time().build().unwrap();
    runtime.block_on(async { assert!(matches!(checker.start(), Err(Error::ShuttingDown))) });
}

// B15: made and dropped inside async code on both runtimes, inside a callback, and inside spawn_blocking.
#[test]
fn it_can_be_dropped_anywhere_and_leaves_no_task() {
    let current = Builder::new_current_thread().enable_time().build().unwrap();
    let multi = Builder::new_multi_thread().worker_threads(2).enable_time().build().unwrap();
    for runtime in [current, multi] {
        let tasks = runtime.metrics();
        runtime.block_on(async {
            let clock = ManualClock::new();
            let make = {
                let clock = clock.clone();
                move || {
                    let builder = HeartbeatChecker::builder(SECOND).grace(Duration::ZERO).clock(clock.clone());
                    let checker = builder.on_events(|_| std::future::pending()).build().unwrap();
                    checker.start().unwrap();
                    checker
                }
            };
            let checker = make();
            let beat = checker.register(1);
            // While the driver is at work the sweeps of the test do nothing, and time goes on: until it is found.
            while beat.status() != Status::Expired {
                sweep_for(&checker, &clock, SECOND / 10, |_| {});
                tokio::task::yield_now().await;
            }
            assert_eq!(beat.expired().await, Ended::Expired);
            drop(checker);
            let checker = make();
            let other = checker.register(1);
            tokio::task::spawn_blocking(move || drop(checker)).await.unwrap();
            assert_eq!(other.expired().await, Ended::ShutDown);
            // Made and dropped by a callback of another.
            let (sent, mut dropped) = tokio::sync::oneshot::channel();
            let sent = std::sync::Mutex::new(Some(sent));
            let outer = HeartbeatChecker::builder(SECOND)
                .without_suspects()
                .grace(Duration::ZERO)
                .clock(clock.clone())
                .on_events(move |_| {
                    drop(make());
                    let sent = sent.lock().unwrap().take();
                    async move {
                        if let Some(sent) = sent {
                            sent.send(()).unwrap();
                        }
                    }
                })
                .build()
                .unwrap();
            outer.start().unwrap();
            let _beat = outer.register(1);
            while dropped.try_recv().is_err() {
                sweep_for(&outer, &clock, SECOND / 10, |_| {});
                tokio::task::yield_now().await;
            }
            drop(outer);
            while tasks.num_alive_tasks() > 0 {
                tokio::task::yield_now().await;
            }
        });
    }
}

#[test]
fn a_runtime_that_goes_away_leaves_a_checker_that_can_be_started_on_another() {
    let (checker, mut events) = HeartbeatChecker::builder(SECOND).build_with_events().unwrap();
    let _beat = checker.register(1);
    let first = Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    first.block_on(async {
        checker.start().unwrap();
        tokio::time::sleep(SECOND / 4).await;
    });
    drop(first);
    assert!(!checker.is_shut_down());
    let second = Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    second.block_on(async {
        checker.start().unwrap();
        assert!(events.next().await.is_some());
    });
}

#[tokio::test(start_paused = true)]
async fn shutdown_ends_waits_and_streams_and_expires_nobody() {
    let (checker, mut events) = HeartbeatChecker::builder(SECOND).without_suspects().build_with_events().unwrap();
    checker.start().unwrap();
    let dead = checker.register(1);
    tokio::time::sleep(SECOND / 2).await;
    let living = Arc::new(checker.register(2));
    let waiter = {
        let living = Arc::clone(&living);
        tokio::spawn(async move { living.expired().await })
    };
    assert_eq!(dead.expired().await, Ended::Expired);
    let statistics = checker.shutdown(SECOND).await;
    assert_eq!((statistics.alive, statistics.expired, statistics.unreported), (1, 1, 1));
    assert_eq!(waiter.await.unwrap(), Ended::ShutDown);
    assert_eq!(living.expired().await, Ended::ShutDown);
    assert_eq!(dead.expired().await, Ended::Expired, "what is dead stays dead");
    assert_eq!(events.next().await.map(|event| event.key), Some(1), "what was found before is still told");
    assert_eq!(events.next().await, None);
    tokio::time::sleep(10 * SECOND).await;
    assert_eq!(living.status(), Status::Alive);
    assert!(checker.is_shut_down());
    assert_eq!(checker.shutdown(SECOND).await.expired, 1, "idempotent");
    let late = checker.register(3);
    assert_eq!(late.expired().await, Ended::ShutDown);
    assert_eq!(checker.sweep().expired, 0);
}

#[tokio::test(start_paused = true)]
async fn shutdown_waits_for_callbacks_until_its_deadline() {
    for (work, reported) in [(SECOND, 1), (20 * SECOND, 0)] {
        let done = Arc::new(AtomicU64::new(0));
        let counted = Arc::clone(&done);
        let checker = HeartbeatChecker::builder(SECOND)
            .without_suspects()
            .on_events(move |batch| {
                let done = Arc::clone(&counted);
                async move {
                    tokio::time::sleep(work).await;
                    done.fetch_add(batch.count() as u64, Ordering::SeqCst);
                }
            })
            .build()
            .unwrap();
        checker.start().unwrap();
        let beat = checker.register(1);
        assert_eq!(beat.expired().await, Ended::Expired);
        let statistics = checker.shutdown(5 * SECOND).await;
        assert_eq!(done.load(Ordering::SeqCst), reported);
        assert_eq!(statistics.unreported, 1 - reported);
    }
}

#[tokio::test(start_paused = true)]
async fn shutdown_inside_a_callback_does_not_wait_for_itself() {
    let checker = Arc::new(std::sync::OnceLock::<HeartbeatChecker<u32>>::new());
    let inner = Arc::clone(&checker);
    let (sent, received) = tokio::sync::oneshot::channel();
    let sent = std::sync::Mutex::new(Some(sent));
    let made = HeartbeatChecker::builder(SECOND)
        .without_suspects()
        .on_events(move |batch| {
            let (inner, sent) = (Arc::clone(&inner), sent.lock().unwrap().take());
            async move {
                let count = batch.count();
                let statistics = inner.get().unwrap().shutdown(Duration::from_secs(3_600)).await;
                if let Some(sent) = sent {
                    sent.send((count, statistics.alive)).unwrap();
                }
            }
        })
        .build()
        .unwrap();
    checker.set(made.clone()).unwrap();
    made.start().unwrap();
    let _beat = made.register(1);
    let begun = tokio::time::Instant::now();
    assert_eq!(received.await.unwrap(), (1, 0));
    assert!(begun.elapsed() < 2 * SECOND);
}

#[test]
fn a_sweep_outside_any_runtime_leaves_callbacks_their_edges() {
    let clock = ManualClock::new();
    let count = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&count);
    let checker = HeartbeatChecker::builder(SECOND)
        .without_suspects()
        .clock(clock.clone())
        .on_events(move |batch| {
            counted.fetch_add(batch.count() as u64, Ordering::SeqCst);
            async {}
        })
        .build()
        .unwrap();
    let _beats: Vec<_> = (0..10).map(|key| checker.register(key)).collect();
    sweep_for(&checker, &clock, 2 * SECOND, |_| {});
    assert_eq!(checker.statistics().unreported, 10);
    let runtime = Builder::new_current_thread().enable_time().build().unwrap();
    runtime.block_on(async {
        checker.sweep();
        while checker.statistics().unreported > 0 {
            tokio::task::yield_now().await;
        }
    });
    assert_eq!(count.load(Ordering::SeqCst), 10);
}

#[test]
fn a_sweep_while_another_is_under_way_does_nothing() {
    struct Reentrant(std::sync::OnceLock<HeartbeatChecker<u32>>);
    impl std::task::Wake for Reentrant {
        fn wake(self: Arc<Self>) {
            let sweep = self.0.get().unwrap().sweep();
            assert_eq!((sweep.chunks_scanned, sweep.expired), (0, 0));
        }
    }
    let clock = ManualClock::new();
    let checker = HeartbeatChecker::builder(SECOND).clock(clock.clone()).build().unwrap();
    let reentrant = Arc::new(Reentrant(std::sync::OnceLock::new()));
    reentrant.0.set(checker.clone()).unwrap();
    let beat = checker.register(1);
    let waker = std::task::Waker::from(reentrant);
    let mut expired = Box::pin(beat.expired());
    assert!(expired.poll_unpin(&mut std::task::Context::from_waker(&waker)).is_pending());
    sweep_for(&checker, &clock, 2 * SECOND, |_| {});
    assert_eq!((checker.statistics().expired, checker.statistics().callback_panics), (1, 0));
}

#[test]
fn what_is_public_can_be_sent_and_shared() {
    fn sendable<T: Send + Sync + 'static>() {}
    fn sendable_for_now<T: Send>(_: T) {}
    sendable::<HeartbeatChecker<String>>();
    sendable::<beatline_heartbeat::Beat<String>>();
    sendable::<beatline_heartbeat::Keyed<String>>();
    sendable::<beatline_heartbeat::Events<String>>();
    sendable::<beatline_heartbeat::Batch<String>>();
    sendable::<beatline_heartbeat::TimeoutClass<String>>();
    sendable::<beatline_heartbeat::Statistics>();
    assert_eq!(std::mem::size_of::<beatline_heartbeat::Beat<String>>(), 16);
    let checker = HeartbeatChecker::new(SECOND).unwrap();
    let beat = checker.register(String::new());
    sendable_for_now(beat.expired());
    sendable_for_now(checker.shutdown(SECOND));
    sendable_for_now(checker.run());
}
