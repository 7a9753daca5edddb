//! How edges reach their readers: stream, callback, waiting owner.
#![cfg(not(loom))]

mod common;

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use beatline_heartbeat::{Beat, Edge, Ended, Event, HeartbeatChecker, Status};
use common::{ManualClock, Random, drain, expired_keys, suspect_keys, sweep_for};
use futures::{FutureExt, StreamExt};

const SECOND: Duration = Duration::from_secs(1);

/// Lets everything that is ready on a current-thread runtime run.
async fn settle() {
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
}

#[test]
fn an_expired_edge_waits_in_the_table_however_many_there_are() {
    let clock = ManualClock::new();
    let (checker, mut events) =
        HeartbeatChecker::builder(SECOND).event_capacity(10).clock(clock.clone()).build_with_events().unwrap();
    let _beats: Vec<_> = (0..5_000).map(|key| checker.register(key)).collect();
    sweep_for(&checker, &clock, SECOND * 3 / 4, |_| {});
    assert_eq!(checker.statistics().events_dropped, 4_990, "suspect edges are bounded");
    sweep_for(&checker, &clock, SECOND, |_| {});
    assert_eq!(checker.statistics().unreported, 5_000);
    let events = drain(&mut events);
    let keys: HashSet<_> = expired_keys(&events).into_iter().collect();
    assert_eq!((events.len(), keys.len()), (5_000, 5_000), "the ten suspects had died before they were read");
    assert_eq!(checker.statistics().unreported, 0);
}

#[test]
fn a_suspect_that_beat_again_is_not_reported_as_suspect() {
    let clock = ManualClock::new();
    let (checker, mut events) = HeartbeatChecker::builder(SECOND).clock(clock.clone()).build_with_events().unwrap();
    let beats: Vec<_> = (0..10).map(|key| checker.register(key)).collect();
    sweep_for(&checker, &clock, SECOND * 3 / 4, |_| {});
    beats[..5].iter().for_each(|beat| beat.touch().unwrap());
    assert_eq!(suspect_keys(&drain(&mut events)), [5, 6, 7, 8, 9]);
}

#[tokio::test]
async fn a_removed_connection_is_not_reported_wherever_its_edge_is_queued() {
    let clock = ManualClock::new();
    let (checker, mut events) = HeartbeatChecker::builder(SECOND).clock(clock.clone()).build_with_events().unwrap();
    let mut beats: Vec<_> = (0..200).map(|key| Some(checker.register(key))).collect();
    sweep_for(&checker, &clock, 2 * SECOND, |_| {});
    // The first read takes a whole handful out of the table.
    let first = events.next().await.unwrap().key;
    let mut removed = HashSet::from([first]);
    for key in (0..200).step_by(2) {
        if let (true, Some(beat)) = (removed.insert(key), beats[key].take()) {
            assert_eq!(beat.remove().await, Status::Expired);
        }
        // Whoever takes the slot next is not reported either.
        beats[key] = Some(checker.register(1_000 + key));
    }
    let keys = expired_keys(&drain(&mut events));
    assert!(keys.iter().all(|key| *key < 1_000 && !removed.contains(key)), "{keys:?}");
    assert_eq!(keys.len(), 200 - removed.len());
    assert_eq!(checker.statistics().unreported, 0);
}

#[tokio::test]
async fn the_owner_is_told_and_so_are_all_who_wait() {
    let clock = ManualClock::new();
    let checker = HeartbeatChecker::builder(SECOND).clock(clock.clone()).build().unwrap();
    let beat = Arc::new(checker.register("a"));
    let waiting: Vec<_> = (0..3)
        .map(|_| {
            let beat = Arc::clone(&beat);
            tokio::spawn(async move { beat.expired().await })
        })
        .collect();
    settle().await;
    // One that gave up must not take another's place.
    assert_eq!(beat.expired().now_or_never(), None);
    sweep_for(&checker, &clock, 2 * SECOND, |_| {});
    for waiter in waiting {
        assert_eq!(waiter.await.unwrap(), Ended::Expired);
    }
    assert_eq!(beat.expired().await, Ended::Expired);
}

// B31: a callback removes three other connections and adds two new ones, for each that expires;
// 10,000 connections, half of them expiring.
#[tokio::test]
async fn callbacks_add_and_remove_connections() {
    type Beats = Mutex<HashMap<u64, Beat<u64>>>;
    #[derive(Default)]
    struct World {
        beats: Beats,
        reported: Mutex<Vec<(u64, Duration)>>,
        removed: Mutex<HashSet<u64>>,
        born: Mutex<HashMap<u64, Duration>>,
        next: AtomicU64,
    }
    let clock = ManualClock::new();
    let world = Arc::new(World::default());
    world.next.store(10_000, Ordering::SeqCst);
    let weak = Arc::new(std::sync::OnceLock::<HeartbeatChecker<u64>>::new());
    let builder = HeartbeatChecker::builder(SECOND).without_suspects().clock(clock.clone());
    let checker = {
        let (world, clock, weak) = (Arc::clone(&world), clock.clone(), Arc::clone(&weak));
        builder
            .on_events(move |batch| {
                let (world, clock, weak) = (Arc::clone(&world), clock.clone(), Arc::clone(&weak));
                async move {
                    for event in batch {
                        world.reported.lock().unwrap().push((event.key, clock.elapsed()));
                        let victims: Vec<_> = world
                            .beats
                            .lock()
                            .unwrap()
                            .keys()
                            .filter(|key| **key != event.key)
                            .take(3)
                            .copied()
                            .collect();
                        for victim in victims {
                            let beat = world.beats.lock().unwrap().remove(&victim);
                            if let Some(beat) = beat {
                                let _ = beat.remove().await;
                                world.removed.lock().unwrap().insert(victim);
                            }
                        }
                        for _ in 0..2 {
                            let key = world.next.fetch_add(1, Ordering::SeqCst);
                            if key < 12_000 {
                                let beat = weak.get().unwrap().register(key);
                                world.born.lock().unwrap().insert(key, clock.elapsed());
                                world.beats.lock().unwrap().insert(key, beat);
                            }
                        }
                        tokio::task::yield_now().await;
                    }
                }
            })
            .build()
            .unwrap()
    };
    weak.set(checker.clone()).unwrap();
    for key in 0..10_000 {
        world.beats.lock().unwrap().insert(key, checker.register(key));
    }
    for _ in 0..4 {
        sweep_for(&checker, &clock, SECOND / 2, |_| {});
        for (key, beat) in world.beats.lock().unwrap().iter() {
            if key % 2 == 0 && *key < 10_000 {
                let _ = beat.touch();
            }
        }
        for _ in 0..20_000 {
            tokio::task::yield_now().await;
        }
    }
    let reported = world.reported.lock().unwrap();
    let once: HashSet<_> = reported.iter().map(|(key, _)| *key).collect();
    assert_eq!(once.len(), reported.len(), "no double report");
    assert!(reported.len() > 1_000);
    for (key, at) in reported.iter() {
        if let Some(born) = world.born.lock().unwrap().get(key) {
            assert!(*at - *born >= SECOND, "a new one has a full time-out");
        } else {
            assert_eq!(key % 2, 1, "only the silent expire");
        }
    }
    // Whoever is silent was reported, or removed before its turn.
    let removed = world.removed.lock().unwrap();
    assert!((0..10_000).filter(|key| key % 2 == 1).all(|key| once.contains(&key) || removed.contains(&key)));
    assert_eq!(checker.statistics().unreported, 0);
    assert_eq!(checker.statistics().callback_panics, 0);
}

#[tokio::test]
async fn a_removed_connection_is_not_reported_after_remove_returned() {
    let clock = ManualClock::new();
    let seen = Arc::new(Mutex::new(Vec::new()));
    let beats = Arc::new(Mutex::new(HashMap::<u64, Beat<u64>>::new()));
    let checker = {
        let (seen, beats) = (Arc::clone(&seen), Arc::clone(&beats));
        HeartbeatChecker::builder(SECOND)
            .without_suspects()
            .clock(clock.clone())
            .on_events(move |batch| {
                let (seen, beats) = (Arc::clone(&seen), Arc::clone(&beats));
                async move {
                    for event in batch {
                        assert!(!seen.lock().unwrap().contains(&(event.key, "removed")), "{} was removed", event.key);
                        seen.lock().unwrap().push((event.key, "reported"));
                        // Neighbours are in this very batch.
                        let neighbour = beats.lock().unwrap().remove(&(event.key + 1));
                        if let Some(neighbour) = neighbour {
                            neighbour.remove().await;
                            seen.lock().unwrap().push((event.key + 1, "removed"));
                        }
                    }
                }
            })
            .build()
            .unwrap()
    };
    for key in 0..1_000 {
        beats.lock().unwrap().insert(key, checker.register(key));
    }
    sweep_for(&checker, &clock, 2 * SECOND, |_| {});
    settle().await;
    let seen = seen.lock().unwrap();
    assert_eq!(seen.iter().filter(|(_, what)| *what == "reported").count(), 500);
    assert_eq!(checker.statistics().callback_panics, 0);
}

#[tokio::test]
async fn panicking_callbacks_lose_nothing() {
    let clock = ManualClock::new();
    let seen = Arc::new(Mutex::new(Vec::new()));
    let random = Arc::new(Mutex::new(Random(5)));
    let checker = {
        let seen = Arc::clone(&seen);
        HeartbeatChecker::builder(SECOND)
            .without_suspects()
            .clock(clock.clone())
            .on_events(move |batch| {
                let (seen, random) = (Arc::clone(&seen), Arc::clone(&random));
                async move {
                    for event in batch {
                        seen.lock().unwrap().push(event.key);
                        if random.lock().unwrap().below(50) == 0 {
                            // Also a payload whose drop panics.
                            struct Bomb;
                            impl Drop for Bomb {
                                fn drop(&mut self) {
                                    panic!("a payload's drop");
                                }
                            }
                            std::panic::resume_unwind(Box::new(Bomb));
                        }
                    }
                }
            })
            .build()
            .unwrap()
    };
    let _beats: Vec<_> = (0..5_000).map(|key| checker.register(key)).collect();
    sweep_for(&checker, &clock, 2 * SECOND, |_| {});
    for _ in 0..50 {
        settle().await;
        sweep_for(&checker, &clock, SECOND, |_| {});
    }
    settle().await;
    let mut seen = seen.lock().unwrap().clone();
    seen.sort_unstable();
    assert_eq!(seen, (0..5_000).collect::<Vec<_>>(), "each exactly once");
    assert!(checker.statistics().callback_panics > 20);
    assert_eq!(checker.statistics().unreported, 0);
}

#[tokio::test]
async fn a_callback_that_always_fails_is_asked_once_a_sweep() {
    let clock = ManualClock::new();
    let calls = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&calls);
    let checker = HeartbeatChecker::builder(SECOND)
        .without_suspects()
        .clock(clock.clone())
        .on_events(move |_batch| {
            counted.fetch_add(1, Ordering::SeqCst);
            async { std::panic::resume_unwind(Box::new("always")) }
        })
        .build()
        .unwrap();
    let _beat = checker.register(1);
    sweep_for(&checker, &clock, 2 * SECOND, |_| {});
    settle().await;
    let before = (calls.load(Ordering::SeqCst), checker.statistics().sweeps);
    for _ in 0..30 {
        sweep_for(&checker, &clock, SECOND / 10, |_| {});
        settle().await;
    }
    let after = (calls.load(Ordering::SeqCst), checker.statistics().sweeps);
    assert!(after.0 > before.0 + 10, "it is asked again");
    assert!(after.0 - before.0 <= after.1 - before.1, "and not more often than there are sweeps");
    assert_eq!(checker.statistics().unreported, 1);
}

#[tokio::test]
async fn batches_are_bounded_and_so_is_concurrency() {
    let clock = ManualClock::new();
    let (running, most, seen) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
    let (most_seen, all_seen) = (Arc::clone(&most), Arc::clone(&seen));
    let checker = HeartbeatChecker::builder(SECOND)
        .batch_size(100)
        .callback_concurrency(3)
        .without_suspects()
        .clock(clock.clone())
        .on_events(move |batch| {
            let (running, most, seen) = (Arc::clone(&running), Arc::clone(&most), Arc::clone(&seen));
            async move {
                most.fetch_max(running.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                let events: Vec<Event<u64>> = batch.collect();
                assert!(events.len() <= 100 && !events.is_empty());
                seen.fetch_add(events.len() as u64, Ordering::SeqCst);
                tokio::task::yield_now().await;
                running.fetch_sub(1, Ordering::SeqCst);
            }
        })
        .build()
        .unwrap();
    let _beats: Vec<_> = (0..20_000).map(|key| checker.register(key)).collect();
    sweep_for(&checker, &clock, 2 * SECOND, |_| {});
    for _ in 0..100 {
        settle().await;
    }
    assert_eq!(all_seen.load(Ordering::SeqCst), 20_000, "one sweep is enough to report all");
    assert_eq!(most_seen.load(Ordering::SeqCst), 3);
}

#[test]
fn without_a_reader_connections_expire_all_the_same() {
    let clock = ManualClock::new();
    let (checker, events) = HeartbeatChecker::builder(SECOND).clock(clock.clone()).build_with_events().unwrap();
    drop(events);
    let beats: Vec<_> = (0..100).map(|key| checker.register(key)).collect();
    sweep_for(&checker, &clock, 2 * SECOND, |_| {});
    assert!(beats.iter().all(|beat| beat.touch().is_err()));
    let statistics = checker.statistics();
    assert_eq!((statistics.expired, statistics.unreported, statistics.events_dropped), (100, 0, 0));
}

#[tokio::test]
async fn a_panicking_waker_is_contained() {
    struct Grenade(AtomicBool);
    impl std::task::Wake for Grenade {
        fn wake(self: Arc<Self>) {
            self.0.store(true, Ordering::SeqCst);
            std::panic::resume_unwind(Box::new("waker"));
        }
    }
    let clock = ManualClock::new();
    let checker = HeartbeatChecker::builder(SECOND).clock(clock.clone()).build().unwrap();
    let beats: Vec<_> = (0..10).map(|key| checker.register(key)).collect();
    let grenade = Arc::new(Grenade(AtomicBool::new(false)));
    let waker = std::task::Waker::from(Arc::clone(&grenade));
    let mut context = std::task::Context::from_waker(&waker);
    let mut waiting: Vec<_> = beats.iter().map(|beat| Box::pin(beat.expired())).collect();
    waiting.iter_mut().for_each(|future| assert!(future.poll_unpin(&mut context).is_pending()));
    sweep_for(&checker, &clock, 2 * SECOND, |_| {});
    assert!(grenade.0.load(Ordering::SeqCst));
    assert_eq!((checker.statistics().callback_panics, checker.statistics().expired), (10, 10));
}

// A million connections expire at one instant.
#[test]
fn a_herd_of_a_million_expires_in_one_sweep_and_all_are_reported() {
    const HERD: u64 = 1_000_000;
    let clock = ManualClock::new();
    let (checker, mut events) =
        HeartbeatChecker::builder(SECOND).without_suspects().clock(clock.clone()).build_with_events().unwrap();
    let beats: Vec<_> = (0..HERD).map(|key| checker.register(key)).collect();
    let mut found = Vec::new();
    sweep_for(&checker, &clock, 2 * SECOND, |sweep| found.extend((sweep.expired > 0).then_some(sweep.expired)));
    assert_eq!(found, [HERD], "one sweep, all of them");
    let mut seen = vec![false; HERD as usize];
    let mut count = 0;
    while let Some(Some(event)) = events.next().now_or_never() {
        assert_eq!(event.edge, Edge::Expired);
        assert!(!std::mem::replace(&mut seen[event.key as usize], true));
        count += 1;
    }
    assert_eq!(count, HERD);
    drop(beats);
    assert_eq!(checker.statistics().alive, 0);
}
