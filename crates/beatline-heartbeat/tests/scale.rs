//! A million connections in virtual time.
#![cfg(not(loom))]

mod common;

use std::time::Duration;

use beatline_heartbeat::HeartbeatChecker;
use common::{ManualClock, Random, drain, expired_keys};

const CONNECTIONS: usize = 1_000_000;
const TICK: Duration = Duration::from_millis(100);
const TIMEOUT: Duration = Duration::from_secs(30);
const VIRTUAL: Duration = Duration::from_secs(120);

// B58: a million connections, touched every 10 s on the average at random times, timeout 30 s, tick 100 ms,
// 120 virtual seconds. One in a thousand falls silent at some time.
#[test]
fn a_million_connections_no_false_expiry_and_none_missed() {
    let clock = ManualClock::new();
    let (checker, mut events) = HeartbeatChecker::builder(TIMEOUT)
        .tick(TICK)
        .without_suspects()
        .clock(clock.clone())
        .build_with_events()
        .unwrap();
    checker.sweep();
    let mut random = Random(58);
    let beats: Vec<_> = (0..CONNECTIONS).map(|key| checker.register(key as u32)).collect();
    let step = checker.sweep_interval();
    let steps = (VIRTUAL.as_nanos() / step.as_nanos()) as u64;
    // Beats by the step they are made in: each connection's next is 1 ns to 20 s after its last.
    let mut due: Vec<Vec<(u32, u32)>> = vec![Vec::new(); steps as usize + 1];
    let mut last = vec![0_u64; CONNECTIONS];
    let mut silent = vec![false; CONNECTIONS];
    let step_nanoseconds = step.as_nanos() as u64;
    let schedule = |due: &mut Vec<Vec<(u32, u32)>>, key: u32, at: u64| {
        if let Some(bucket) = due.get_mut((at / step_nanoseconds) as usize) {
            bucket.push((key, (at % step_nanoseconds) as u32));
        }
    };
    for key in 0..CONNECTIONS as u32 {
        schedule(&mut due, key, random.below(20_000_000_000));
    }
    let (mut touches, mut expired) = (0_u64, 0_u64);
    for number in 0..steps {
        let begin = number * step_nanoseconds;
        for (key, offset) in std::mem::take(&mut due[number as usize]) {
            // The clock stands at the beginning of the step; only `last` knows the nanosecond.
            beats[key as usize].touch().unwrap_or_else(|_| panic!("false expiry of {key}"));
            touches += 1;
            let at = begin + u64::from(offset);
            last[key as usize] = at;
            if random.below(12_000) == 0 {
                silent[key as usize] = true;
            } else {
                let next = at + 1 + random.below(20_000_000_000);
                // A beat later in this very step changes nothing.
                schedule(&mut due, key, next.max(begin + step_nanoseconds));
            }
        }
        clock.advance(step);
        checker.sweep();
        for key in expired_keys(&drain(&mut events)) {
            let silence = Duration::from_nanos(clock.nanoseconds() - last[key as usize]);
            assert!(silent[key as usize], "false expiry of {key}");
            assert!(silence >= TIMEOUT, "{key} expired early, after {silence:?}");
            assert!(silence <= TIMEOUT + TICK, "{key} expired late, after {silence:?}");
            expired += 1;
        }
    }
    let overdue = clock.nanoseconds() - (TIMEOUT + TICK).as_nanos() as u64;
    let missed = (0..CONNECTIONS).filter(|&key| silent[key] && last[key] < overdue).count() as u64;
    let waiting = beats.iter().filter(|beat| beat.touch().is_ok()).count() as u64;
    assert!(missed <= expired, "{} were missed", missed - expired);
    assert_eq!(waiting + expired, CONNECTIONS as u64);
    assert!(touches > 10_000_000 && expired > 100, "{touches} touches, {expired} expired");
}
