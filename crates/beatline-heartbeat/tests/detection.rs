//! When a silence is found: never early, and within the tick.
#![cfg(not(loom))]

mod common;

use std::time::Duration;

use beatline_heartbeat::{Expired, HeartbeatChecker, Status};
use common::{ManualClock, Random, drain, expired_keys, suspect_keys, sweep_for};

const SECOND: Duration = Duration::from_secs(1);
const MILLISECOND: Duration = Duration::from_millis(1);

// time    0 ─────────────── timeout ──── timeout + tick ─────►
//         ● last beat          ├── expired ──┤
#[test]
fn a_silence_is_found_between_timeout_and_timeout_plus_tick() {
    for tick in [3, 10, 70, 100, 250, 333] {
        let tick = Duration::from_millis(tick);
        for offset in [0, 1, 999_999, 33_333_333, 50_000_000, 99_999_999] {
            let clock = ManualClock::new();
            let builder = HeartbeatChecker::builder(SECOND).tick(tick).clock(clock.clone());
            let (checker, mut events) = builder.build_with_events().unwrap();
            sweep_for(&checker, &clock, 5 * SECOND, |_| {});
            clock.advance(Duration::from_nanos(offset));
            let beat = checker.register(1);
            let born = clock.elapsed();
            assert!(beat.touch().is_ok());
            let mut found = None;
            sweep_for(&checker, &clock, 2 * SECOND, |_| {
                if !expired_keys(&drain(&mut events)).is_empty() {
                    assert_eq!(found.replace(clock.elapsed() - born), None, "reported once");
                }
            });
            let found = found.expect("found");
            assert!(found >= SECOND, "{found:?} is early at tick {tick:?}");
            assert!(found <= SECOND + tick, "{found:?} is late at tick {tick:?}");
        }
    }
}

// B59: a new connection, registered in the same tick as a sweep, and just before one.
#[test]
fn a_new_connection_has_a_full_timeout_before_it() {
    for before in [0, 1, 10_000_000, 33_333_332, 33_333_333] {
        let clock = ManualClock::new();
        let builder = HeartbeatChecker::builder(SECOND).tick(100 * MILLISECOND).clock(clock.clone());
        let (checker, mut events) = builder.build_with_events().unwrap();
        // Others keep the bounds of the chunk busy.
        let _others: Vec<_> = (100..200).map(|key| checker.register(key)).collect();
        let sweep = checker.sweep();
        clock.advance(sweep.until_next - Duration::from_nanos(before).min(sweep.until_next));
        let _beat = checker.register(1);
        let born = clock.elapsed();
        checker.sweep();
        let mut found = None;
        sweep_for(&checker, &clock, 2 * SECOND, |_| {
            if expired_keys(&drain(&mut events)).contains(&1) {
                found = Some(clock.elapsed() - born);
            }
        });
        let found = found.expect("found");
        assert!(found >= SECOND && found <= SECOND + 100 * MILLISECOND, "{found:?}");
    }
}

// B61: tick 250 ms, timeout 1 s, touches at random nanoseconds, the sweeper itself 0 to 700 ms late, and
// with it the only publisher of the coarse clock that beats are stamped with.
#[test]
fn detection_is_never_early_though_the_sweeper_is_late_at_random() {
    const CONNECTIONS: usize = 500;
    let tick = Duration::from_millis(250);
    let mut random = Random(61);
    let mut found = 0;
    let clock = ManualClock::new();
    let builder = HeartbeatChecker::builder(SECOND).tick(tick).grace(Duration::ZERO).clock(clock.clone());
    let (checker, mut events) = builder.build_with_events().unwrap();
    checker.sweep();
    let mut beats: Vec<_> = (0..CONNECTIONS).map(|key| Some(checker.register(key))).collect();
    let mut touched = vec![Duration::ZERO; CONNECTIONS];
    let mut published_late = vec![None; CONNECTIONS];
    let mut until_next = checker.sweep_interval();
    for _ in 0..20_000 {
        let delay = Duration::from_nanos(random.below(700_000_001));
        let mut pauses: Vec<_> = (0..8).map(|_| random.below((until_next + delay).as_nanos() as u64)).collect();
        pauses.sort_unstable();
        let begin = clock.elapsed();
        for pause in pauses {
            clock.advance(begin + Duration::from_nanos(pause) - clock.elapsed());
            let key = random.below(CONNECTIONS as u64) as usize;
            match &beats[key] {
                Some(beat) => beat.touch().unwrap(),
                None => beats[key] = Some(checker.register(key)),
            }
            touched[key] = clock.elapsed();
            published_late[key] = None;
        }
        clock.advance(begin + until_next + delay - clock.elapsed());
        let sweep = checker.sweep();
        assert_eq!(sweep.lag, delay);
        until_next = sweep.until_next;
        published_late.iter_mut().for_each(|late| *late = late.or(Some(delay)));
        for key in expired_keys(&drain(&mut events)) {
            let silent = clock.elapsed() - touched[key];
            assert!(silent >= SECOND, "connection {key} expired after {silent:?}");
            let latest = SECOND + tick + delay + published_late[key].unwrap_or_default();
            assert!(silent <= latest, "connection {key} expired after {silent:?}, {latest:?} was the latest");
            assert_eq!(beats[key].take().expect("reported once").touch(), Err(Expired));
            found += 1;
        }
    }
    assert!(found > 1_000, "{found} expiries");
    assert_eq!(checker.statistics().expired, found);
}

#[test]
fn a_connection_that_beats_in_time_lives_for_ever() {
    let clock = ManualClock::new();
    let checker = HeartbeatChecker::builder(SECOND).tick(100 * MILLISECOND).clock(clock.clone()).build().unwrap();
    let beat = checker.register("client");
    // 15,000 sweeps, over the wrap of the step counter.
    for _ in 0..500 {
        sweep_for(&checker, &clock, Duration::from_millis(999), |_| {});
        assert!(beat.touch().is_ok());
    }
    assert_eq!(checker.statistics().expired, 0);
}

#[test]
fn after_expiry_a_touch_is_refused_for_good() {
    let clock = ManualClock::new();
    let checker = HeartbeatChecker::builder(SECOND).clock(clock.clone()).build().unwrap();
    let beat = checker.register(1);
    sweep_for(&checker, &clock, 2 * SECOND, |_| {});
    assert_eq!(beat.status(), Status::Expired);
    for _ in 0..3 {
        assert_eq!(beat.touch(), Err(Expired));
        sweep_for(&checker, &clock, SECOND, |_| {});
    }
    assert_eq!(checker.statistics().expired, 1);
    drop(beat);
    let statistics = checker.statistics();
    assert_eq!((statistics.registered, statistics.alive, statistics.removed), (1, 0, 0));
}

// beats   ●      ●                         ●
// 0       1      2      3      4      5    5.6    6 …
//                        suspect              (alive again)  suspect … expired
#[test]
fn suspect_and_expired_are_each_reported_once_for_a_silence() {
    let clock = ManualClock::new();
    let builder = HeartbeatChecker::builder(4 * SECOND).suspect_after(SECOND).tick(100 * MILLISECOND);
    let (checker, mut events) = builder.clock(clock.clone()).build_with_events().unwrap();
    let beat = checker.register("a");
    sweep_for(&checker, &clock, SECOND, |_| {});
    assert!(drain(&mut events).is_empty());
    sweep_for(&checker, &clock, 2 * SECOND, |_| {});
    assert_eq!(beat.status(), Status::Suspect);
    assert_eq!(suspect_keys(&drain(&mut events)), ["a"]);
    assert_eq!(checker.statistics().suspect, 1);
    assert!(beat.touch().is_ok());
    assert_eq!((beat.status(), checker.statistics().suspect, checker.statistics().recovered), (Status::Alive, 0, 1));
    // The next suspicion comes before the first silence would have expired.
    sweep_for(&checker, &clock, SECOND + 100 * MILLISECOND, |_| {});
    assert_eq!(suspect_keys(&drain(&mut events)), ["a"]);
    sweep_for(&checker, &clock, 5 * SECOND, |_| {});
    assert_eq!(expired_keys(&drain(&mut events)), ["a"]);
    sweep_for(&checker, &clock, 10 * SECOND, |_| {});
    assert!(drain(&mut events).is_empty());
    let statistics = checker.statistics();
    assert_eq!((statistics.suspected, statistics.expired, statistics.suspect), (2, 1, 0));
}

#[test]
fn several_missed_timeouts_make_a_dead_connection() {
    let clock = ManualClock::new();
    let builder = HeartbeatChecker::builder(SECOND).missed(3).tick(100 * MILLISECOND).clock(clock.clone());
    let (checker, mut events) = builder.build_with_events().unwrap();
    let beat = checker.register(1);
    sweep_for(&checker, &clock, SECOND + 100 * MILLISECOND, |_| {});
    assert_eq!(suspect_keys(&drain(&mut events)), [1]);
    sweep_for(&checker, &clock, 1_899 * MILLISECOND, |_| {});
    assert_eq!(beat.status(), Status::Suspect);
    sweep_for(&checker, &clock, 101 * MILLISECOND, |_| {});
    assert_eq!(expired_keys(&drain(&mut events)), [1]);
}

#[test]
fn classes_have_timeouts_of_their_own() {
    let clock = ManualClock::new();
    let checker = HeartbeatChecker::builder(SECOND).tick(100 * MILLISECOND).clock(clock.clone()).build().unwrap();
    let slow = checker.timeout_class(10 * SECOND).unwrap();
    assert_eq!(checker.timeout_class(10 * SECOND).unwrap().timeout(), slow.timeout());
    let quick_beat = checker.register(1);
    let slow_beat = checker.register_in(&slow, 2).unwrap();
    sweep_for(&checker, &clock, 9_999 * MILLISECOND, |_| {});
    assert_eq!((quick_beat.status(), slow_beat.status()), (Status::Expired, Status::Suspect));
    sweep_for(&checker, &clock, 101 * MILLISECOND, |_| {});
    assert_eq!(slow_beat.status(), Status::Expired);
    let other = HeartbeatChecker::new(SECOND).unwrap();
    assert_eq!(other.register_in(&slow, 3).unwrap_err().field(), Some("class"));
}

#[test]
fn slots_are_used_again_and_keys_stay_with_their_connections() {
    let clock = ManualClock::new();
    let (checker, mut events) =
        HeartbeatChecker::builder(SECOND).without_suspects().clock(clock.clone()).build_with_events().unwrap();
    let mut random = Random(7);
    let mut beats: Vec<_> = (0..3_000_u64).map(|key| (key, checker.register(key))).collect();
    let mut next_key = 3_000;
    for _ in 0..20_000 {
        let position = random.below(beats.len() as u64) as usize;
        if random.below(2) == 0 {
            drop(beats.swap_remove(position));
        } else {
            beats.push((next_key, checker.register(next_key)));
            next_key += 1;
        }
    }
    sweep_for(&checker, &clock, 900 * MILLISECOND, |_| {});
    let (silent, living): (Vec<_>, Vec<_>) = beats.into_iter().partition(|(key, _)| key % 2 == 0);
    living.iter().for_each(|(_, beat)| beat.touch().unwrap());
    sweep_for(&checker, &clock, 400 * MILLISECOND, |_| {});
    let mut expected: Vec<_> = silent.iter().map(|(key, _)| *key).collect();
    let mut expired = expired_keys(&drain(&mut events));
    expected.sort_unstable();
    expired.sort_unstable();
    assert_eq!(expired, expected);
    let statistics = checker.statistics();
    assert_eq!(statistics.alive, living.len() as u64);
    assert_eq!(statistics.registered, statistics.alive + statistics.expired + statistics.removed);
    let snapshot = checker.snapshot();
    let alive = snapshot.connections.iter().filter(|connection| connection.status == Status::Alive);
    assert_eq!(alive.count(), living.len());
    assert_eq!(snapshot.connections.len(), living.len() + silent.len());
}
