//! Real threads against each other.
#![cfg(not(loom))]

mod common;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use beatline_heartbeat::{HeartbeatChecker, Status};
use common::{ManualClock, drain, expired_keys};

const SECOND: Duration = Duration::from_secs(1);

// B30: a touch at the deadline - 1, at it, and one step after it, against the sweep; two threads.
// Ok means not reported before another time-out; reported means a later touch says Expired; one of both.
#[test]
fn touch_and_expiry_agree_on_who_was_first() {
    let iterations = 1_000_000 / 256;
    let clock = ManualClock::new();
    let builder = HeartbeatChecker::builder(SECOND).tick(SECOND).without_suspects().grace(Duration::ZERO);
    let (checker, mut events) = builder.clock(clock.clone()).build_with_events().unwrap();
    let step = checker.sweep_interval();
    checker.sweep();
    let (mut alive, mut dead) = (0_u64, 0_u64);
    for iteration in 0..iterations {
        let beats: Vec<_> = (0..256).map(|key| checker.register(key)).collect();
        // Due in the sixth step from here: go one short of it, to it, or past it.
        let steps = 5 + iteration % 3;
        let go = AtomicBool::new(false);
        let turn = AtomicU64::new(0);
        for _ in 1..steps {
            clock.advance(step);
            checker.sweep();
        }
        let before = drain(&mut events).len();
        assert_eq!(before, if steps > 6 { 256 } else { 0 });
        clock.advance(step);
        let touched: Vec<bool> = std::thread::scope(|scope| {
            let toucher = scope.spawn(|| {
                while !go.load(Ordering::Acquire) {
                    std::hint::spin_loop();
                }
                turn.fetch_add(1, Ordering::AcqRel);
                beats.iter().map(|beat| beat.touch().is_ok()).collect()
            });
            go.store(true, Ordering::Release);
            while turn.load(Ordering::Acquire) == 0 {
                std::hint::spin_loop();
            }
            checker.sweep();
            toucher.join().unwrap()
        });
        let reported = expired_keys(&drain(&mut events));
        for (key, ok) in touched.iter().enumerate() {
            let expired = steps > 6 || reported.contains(&key);
            if *ok && expired {
                panic!("connection {key} of {iteration} was touched and expired");
            }
            assert!(*ok || expired, "connection {key} of {iteration} is neither alive nor expired");
            assert_eq!(beats[key].status() == Status::Expired, expired);
            assert_eq!(beats[key].touch().is_err(), expired);
            if *ok { alive += 1 } else { dead += 1 }
        }
    }
    let statistics = checker.statistics();
    assert_eq!((statistics.expired, alive + dead), (dead, iterations * 256));
}

// Everything at once, and the books balance.
#[test]
fn the_books_balance_under_churn() {
    let clock = ManualClock::new();
    let builder = HeartbeatChecker::builder(Duration::from_millis(60)).tick(Duration::from_millis(30));
    let builder = builder.grace(Duration::ZERO).clock(clock.clone());
    let (checker, mut events) = builder.build_with_events().unwrap();
    let done = AtomicBool::new(false);
    let reported = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..3_u64)
            .map(|worker| {
                let checker = &checker;
                scope.spawn(move || {
                    let mut random = common::Random(worker);
                    let mut beats = Vec::new();
                    for key in 0..30_000 {
                        beats.push(checker.register(worker << 32 | key));
                        if beats.len() > 500 {
                            let position = random.below(500) as usize;
                            let beat = beats.swap_remove(position);
                            let was = beat.status();
                            drop(beat);
                            assert!(was != Status::Suspect || checker.statistics().registered > 0);
                        }
                        for _ in 0..3 {
                            let _ = beats[random.below(beats.len() as u64) as usize].touch();
                        }
                    }
                    beats
                })
            })
            .collect();
        let sweeper = scope.spawn(|| {
            let mut reported = 0;
            while !done.load(Ordering::Acquire) {
                clock.advance(checker.sweep_interval());
                checker.sweep();
                reported += expired_keys(&drain(&mut events)).len() as u64;
            }
            reported
        });
        let left: Vec<_> = workers.into_iter().flat_map(|worker| worker.join().unwrap()).collect();
        done.store(true, Ordering::Release);
        let reported = sweeper.join().unwrap();
        let alive = left.iter().filter(|beat| beat.status() != Status::Expired).count() as u64;
        let suspect = left.iter().filter(|beat| beat.status() == Status::Suspect).count() as u64;
        let statistics = checker.statistics();
        assert_eq!(statistics.registered, 90_000);
        assert_eq!(statistics.alive, alive);
        assert_eq!(statistics.suspect, suspect);
        assert_eq!(statistics.registered, statistics.alive + statistics.expired + statistics.removed);
        assert!(reported + statistics.unreported <= statistics.expired, "those removed in time were not reported");
        drop(left);
        reported
    });
    assert!(reported > 0);
    assert_eq!((checker.statistics().alive, checker.statistics().suspect), (0, 0));
    checker.sweep();
    assert_eq!(checker.statistics().unreported, 0);
}
