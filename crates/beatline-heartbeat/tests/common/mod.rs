//! A clock that tests move by hand, and a small generator of numbers.
#![allow(dead_code, unreachable_pub, reason = "every test program uses its own part")]

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use beatline_core::{Clock, Moment, Monotonic, Timestamp};
use beatline_heartbeat::{Edge, Event, Events, HeartbeatChecker, Key, Sweep};
use futures::{FutureExt, StreamExt};

/// Both clocks, moved together or apart.
#[derive(Clone, Default)]
pub struct ManualClock {
    monotonic: Arc<AtomicI64>,
    wall: Arc<AtomicI64>,
}

impl ManualClock {
    pub fn new() -> Self {
        let clock = Self::default();
        clock.wall.store(1_700_000_000_000_000_000, Ordering::SeqCst);
        clock
    }

    pub fn advance(&self, duration: Duration) {
        self.monotonic.fetch_add(duration.as_nanos() as i64, Ordering::SeqCst);
        self.step_wall(duration);
    }

    /// What suspend looks like on Linux: the wall clock alone.
    pub fn step_wall(&self, duration: Duration) {
        self.wall.fetch_add(duration.as_nanos() as i64, Ordering::SeqCst);
    }

    pub fn step_wall_back(&self, duration: Duration) {
        self.wall.fetch_sub(duration.as_nanos() as i64, Ordering::SeqCst);
    }

    /// Nanoseconds since the clock was made.
    pub fn nanoseconds(&self) -> u64 {
        self.monotonic.load(Ordering::SeqCst) as u64
    }

    pub fn elapsed(&self) -> Duration {
        Duration::from_nanos(self.nanoseconds())
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Moment {
        Moment::new(
            Monotonic::from_nanoseconds(self.monotonic.load(Ordering::SeqCst)),
            Timestamp::from_unix_nanoseconds(i128::from(self.wall.load(Ordering::SeqCst))),
        )
    }
}

/// Sweeps punctually for `duration`, and lets `each` see every sweep.
pub fn sweep_for<K: Key>(
    checker: &HeartbeatChecker<K>,
    clock: &ManualClock,
    duration: Duration,
    mut each: impl FnMut(Sweep),
) {
    let end = clock.elapsed() + duration;
    let mut sweep = checker.sweep();
    loop {
        each(sweep);
        let next = clock.elapsed() + sweep.until_next;
        if next > end {
            clock.advance(end - clock.elapsed());
            return;
        }
        clock.advance(sweep.until_next);
        sweep = checker.sweep();
    }
}

/// Everything that is in the stream now.
pub fn drain<K: Key>(events: &mut Events<K>) -> Vec<Event<K>> {
    std::iter::from_fn(|| events.next().now_or_never().flatten()).collect()
}

pub fn expired_keys<K: Key>(events: &[Event<K>]) -> Vec<K> {
    events.iter().filter(|event| event.edge == Edge::Expired).map(|event| event.key.clone()).collect()
}

pub fn suspect_keys<K: Key>(events: &[Event<K>]) -> Vec<K> {
    events.iter().filter(|event| event.edge == Edge::Suspect).map(|event| event.key.clone()).collect()
}

/// SplitMix64: enough for tests, and the seed says everything.
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }
}
