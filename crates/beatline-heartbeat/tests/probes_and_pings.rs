//! Asking suspects, and pinging everyone a little at a time.
#![cfg(not(loom))]

mod common;

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use beatline_heartbeat::{BoxError, HeartbeatChecker, Probe, Status, async_trait};
use common::ManualClock;

const SECOND: Duration = Duration::from_secs(1);

#[derive(Default)]
struct Asked {
    running: AtomicU64,
    most: AtomicU64,
    all: AtomicU64,
}

/// Answers by the last digit of the key: 0 at once, 1 late, 2 with an error, 3 with a panic, 4 never.
struct ByDigit(Arc<Asked>);

#[async_trait]
impl Probe<u64> for ByDigit {
    async fn probe(&self, key: &u64) -> Result<(), BoxError> {
        struct Leave<'a>(&'a AtomicU64);
        impl Drop for Leave<'_> {
            fn drop(&mut self) {
                self.0.fetch_sub(1, Ordering::SeqCst);
            }
        }
        self.0.all.fetch_add(1, Ordering::SeqCst);
        self.0.most.fetch_max(self.0.running.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
        let _leave = Leave(&self.0.running);
        match key % 10 {
            0 => Ok(()),
            1 => {
                tokio::time::sleep(SECOND).await;
                Ok(())
            }
            2 => Err("refused".into()),
            3 => std::panic::resume_unwind(Box::new("probe")),
            _ => std::future::pending().await,
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_probe_that_is_answered_counts_as_a_beat() {
    let asked = Arc::new(Asked::default());
    let checker = HeartbeatChecker::builder(10 * SECOND)
        .suspect_after(5 * SECOND)
        .probe(ByDigit(Arc::clone(&asked)))
        .probe_concurrency(8)
        .build()
        .unwrap();
    checker.start().unwrap();
    let beats: Vec<_> = (0..5).map(|key| checker.register(key)).collect();
    tokio::time::sleep(Duration::from_millis(10_200)).await;
    let status: Vec<_> = beats.iter().map(|beat| beat.status()).collect();
    assert_eq!(status[2..], [Status::Expired; 3]);
    assert!(status[..2].iter().all(|status| *status != Status::Expired));
    let statistics = checker.statistics();
    assert!(statistics.probes_answered >= 2);
    assert_eq!((statistics.probes_failed, statistics.callback_panics), (3, 1));
    assert_eq!(statistics.expired, 3);
}

#[tokio::test(start_paused = true)]
async fn probes_are_bounded_and_a_herd_of_suspects_is_asked_in_turn() {
    let asked = Arc::new(Asked::default());
    let checker = HeartbeatChecker::builder(100 * SECOND)
        .suspect_after(5 * SECOND)
        .probe(ByDigit(Arc::clone(&asked)))
        .probe_concurrency(16)
        .build()
        .unwrap();
    checker.start().unwrap();
    let beats: Vec<_> = (0..500).map(|key| checker.register(key * 10 + 1)).collect();
    tokio::time::sleep(90 * SECOND).await;
    assert_eq!(asked.most.load(Ordering::SeqCst), 16);
    assert!(asked.all.load(Ordering::SeqCst) >= 500);
    assert!(beats.iter().all(|beat| beat.status() != Status::Expired));
    // Removed while its probe is under way: the answer counts for nobody.
    drop(beats);
    let _reused: Vec<_> = (0..500).map(|key| checker.register(key * 10 + 2)).collect();
    checker.shutdown(SECOND).await;
    assert_eq!(asked.running.load(Ordering::SeqCst), 0, "probes end with the checker");
}

#[tokio::test]
async fn pings_are_spread_evenly_and_each_connection_gets_one_an_interval() {
    const CONNECTIONS: u64 = 30_000;
    let clock = ManualClock::new();
    let pinged = Arc::new(Mutex::new((HashMap::<u64, u64>::new(), 0_usize)));
    let seen = Arc::clone(&pinged);
    let checker = HeartbeatChecker::builder(60 * SECOND)
        .tick(Duration::from_millis(300))
        .clock(clock.clone())
        .ping(10 * SECOND, move |keys| {
            let mut seen = seen.lock().unwrap();
            seen.1 += keys.len();
            keys.into_iter().for_each(|key| *seen.0.entry(key).or_default() += 1);
            async {}
        })
        .build()
        .unwrap();
    let _beats: Vec<_> = (0..CONNECTIONS).map(|key| checker.register(key)).collect();
    let settle = || async {
        for _ in 0..5 {
            tokio::task::yield_now().await;
        }
    };
    let mut most = 0;
    let mut step = async |checker: &HeartbeatChecker<u64>| {
        let before = pinged.lock().unwrap().1;
        checker.sweep();
        settle().await;
        most = most.max(pinged.lock().unwrap().1 - before);
    };
    step(&checker).await;
    for _ in 0..300 {
        clock.advance(checker.sweep_interval());
        step(&checker).await;
    }
    assert!((0..CONNECTIONS).all(|key| pinged.lock().unwrap().0.get(&key) == Some(&3)), "three intervals, three pings");
    // After a pause they are made up for two parts at a time, never all at once.
    clock.advance(30 * SECOND);
    for _ in 0..100 {
        clock.advance(checker.sweep_interval());
        step(&checker).await;
    }
    // An even share is 300 of 30,000; a chunk of 1,024 may be one off.
    assert!(most <= 2 * (CONNECTIONS as usize / 100 + 30), "{most} in one step");
    assert_eq!(checker.statistics().pings, pinged.lock().unwrap().1 as u64);
}
