//! The checker, its process or the machine stood still.
#![cfg(not(loom))]

mod common;

use std::time::Duration;

use beatline_heartbeat::{HeartbeatChecker, Status};
use common::{ManualClock, drain, expired_keys, sweep_for};

const SECOND: Duration = Duration::from_secs(1);
const TICK: Duration = Duration::from_millis(100);

fn checker_of(timeout: Duration) -> (ManualClock, HeartbeatChecker<u32>) {
    let clock = ManualClock::new();
    let checker = HeartbeatChecker::builder(timeout).tick(TICK).clock(clock.clone()).build();
    (clock, checker.expect("the settings are valid"))
}

// beats every 10 s, timeout 30 s          the process stands still          all beats were waiting
// ●─────────●─────────●────────║················ 10 min ················║●────────●─────────●
#[test]
fn a_stall_does_not_kill_those_whose_beats_were_waiting() {
    let (clock, checker) = checker_of(30 * SECOND);
    let living: Vec<_> = (0..1_000).map(|key| checker.register(key)).collect();
    let dead: Vec<_> = (1_000..1_500).map(|key| checker.register(key)).collect();
    for _ in 0..2 {
        sweep_for(&checker, &clock, 10 * SECOND, |_| {});
        living.iter().for_each(|beat| beat.touch().unwrap());
    }
    clock.advance(600 * SECOND);
    // The sweeper comes first, before any reader.
    let sweep = checker.sweep();
    assert!(sweep.pause.is_some_and(|pause| pause > 599 * SECOND));
    assert_eq!(sweep.expired, 0);
    sweep_for(&checker, &clock, 9 * SECOND, |_| {});
    living.iter().for_each(|beat| beat.touch().unwrap());
    sweep_for(&checker, &clock, 20_999 * Duration::from_millis(1), |_| {});
    assert_eq!(checker.statistics().expired, 0, "a full grace before anyone is declared dead");
    living.iter().for_each(|beat| beat.touch().unwrap());
    sweep_for(&checker, &clock, 200 * Duration::from_millis(1), |_| {});
    assert_eq!(checker.statistics().expired, 500, "and no more than that");
    assert!(dead.iter().all(|beat| beat.status() == Status::Expired));
    assert_eq!(checker.statistics().pauses, 1);
}

#[test]
fn suspend_is_a_pause_though_the_monotonic_clock_stood_still() {
    let (clock, checker) = checker_of(30 * SECOND);
    let beats: Vec<_> = (0..100).map(|key| checker.register(key)).collect();
    sweep_for(&checker, &clock, 29 * SECOND, |_| {});
    clock.step_wall(8 * 3_600 * SECOND);
    sweep_for(&checker, &clock, 29 * SECOND, |_| {});
    assert!(beats.iter().all(|beat| beat.touch().is_ok()));
    assert_eq!((checker.statistics().pauses, checker.statistics().expired), (1, 0));
}

#[test]
fn a_wall_clock_set_back_or_a_little_forward_changes_nothing() {
    let (clock, checker) = checker_of(30 * SECOND);
    let beat = checker.register(1);
    sweep_for(&checker, &clock, 10 * SECOND, |_| {});
    clock.step_wall_back(3_600 * SECOND);
    sweep_for(&checker, &clock, 10 * SECOND, |_| {});
    clock.step_wall(Duration::from_millis(900));
    sweep_for(&checker, &clock, 9_999 * Duration::from_millis(1), |_| {});
    assert_eq!(beat.status(), Status::Suspect);
    sweep_for(&checker, &clock, 200 * Duration::from_millis(1), |_| {});
    assert_eq!(beat.status(), Status::Expired);
    assert_eq!(checker.statistics().pauses, 0);
}

// Stopped again before the grace of the first stop was over, again and again.
#[test]
fn a_second_pause_during_the_grace_has_a_grace_of_its_own() {
    let (clock, checker) = checker_of(30 * SECOND);
    let beat = checker.register(1);
    sweep_for(&checker, &clock, 20 * SECOND, |_| {});
    for _ in 0..3 {
        beat.touch().unwrap();
        sweep_for(&checker, &clock, 29 * SECOND, |_| {});
        clock.advance(120 * SECOND);
        checker.sweep();
        sweep_for(&checker, &clock, 29_900 * Duration::from_millis(1), |_| {});
    }
    assert!(beat.touch().is_ok());
    assert_eq!(checker.statistics().pauses, 3);
}

#[test]
fn a_checker_that_is_always_late_finds_the_dead_in_the_end() {
    let (clock, checker) = checker_of(10 * SECOND);
    let beat = checker.register(1);
    checker.sweep();
    let mut sweeps = 0;
    while beat.status() != Status::Expired {
        clock.advance(5 * SECOND);
        assert!(checker.sweep().pause.is_some());
        sweeps += 1;
        assert!(sweeps < 2_000);
    }
    // The time-out and three graces, to which each late sweep adds what counts of a pause: a second.
    assert!(sweeps > 10 && sweeps <= 41, "{sweeps} sweeps");
}

#[test]
fn without_grace_a_pause_counts_as_silence() {
    let clock = ManualClock::new();
    let checker = HeartbeatChecker::builder(SECOND).grace(Duration::ZERO).clock(clock.clone()).build().unwrap();
    let beat = checker.register(1);
    sweep_for(&checker, &clock, SECOND / 2, |_| {});
    clock.advance(60 * SECOND);
    let sweep = checker.sweep();
    assert_eq!((sweep.pause, sweep.expired), (None, 1));
    assert!(beat.touch().is_err());
}

// The publisher of the coarse clock stood still, the connections did not: they beat in the middle of it.
#[test]
fn beats_during_a_late_sweep_count_from_its_end_at_the_earliest() {
    let clock = ManualClock::new();
    let builder = HeartbeatChecker::builder(SECOND).tick(TICK).grace(Duration::ZERO).clock(clock.clone());
    let (checker, mut events) = builder.build_with_events().unwrap();
    let beat = checker.register(1);
    sweep_for(&checker, &clock, SECOND / 2, |_| {});
    clock.advance(Duration::from_millis(890));
    beat.touch().unwrap();
    let touched = clock.elapsed();
    clock.advance(Duration::from_millis(10));
    let mut found = None;
    sweep_for(&checker, &clock, 2 * SECOND, |_| {
        if !expired_keys(&drain(&mut events)).is_empty() {
            found = Some(clock.elapsed() - touched);
        }
    });
    let found = found.expect("found");
    assert!(found >= SECOND && found <= SECOND + TICK, "{found:?}");
}

#[test]
fn detection_is_the_same_on_both_sides_of_the_wrap_of_the_step_counter() {
    // A step of 1 ms at least: the counter wraps some 4,096 steps after the start, and 2^30 later again.
    let clock = ManualClock::new();
    let tick = Duration::from_millis(3);
    let builder = HeartbeatChecker::builder(SECOND).tick(tick).grace(Duration::ZERO).clock(clock.clone());
    let (checker, mut events) = builder.build_with_events().unwrap();
    checker.sweep();
    let wrap = Duration::from_millis(1 << 30);
    for around in [Duration::from_millis(4_096), Duration::from_millis(4_096) + wrap] {
        // Jump close to it (the counter moves by at most 2^27 at once), then go through it.
        while clock.elapsed() + 3 * SECOND < around {
            clock.advance((around - 3 * SECOND - clock.elapsed()).min(Duration::from_millis(1 << 26)));
            checker.sweep();
        }
        let mut waiting = Vec::new();
        let end = around + 3 * SECOND;
        while clock.elapsed() < end {
            waiting.push((clock.elapsed(), checker.register(clock.nanoseconds())));
            sweep_for(&checker, &clock, Duration::from_millis(7), |_| {
                for key in expired_keys(&drain(&mut events)) {
                    let silent = clock.elapsed() - Duration::from_nanos(key);
                    assert!(silent >= SECOND && silent <= SECOND + tick, "{silent:?} at {:?}", clock.elapsed());
                }
            });
        }
        let late = |born: &Duration| clock.elapsed() - *born > SECOND + tick;
        assert!(waiting.iter().all(|(born, beat)| late(born) == (beat.status() == Status::Expired) || !late(born)));
        assert!(waiting.iter().filter(|(_, beat)| beat.status() == Status::Expired).count() > 500);
    }
}

#[test]
fn a_standstill_of_years_expires_everyone_and_nobody_else() {
    let clock = ManualClock::new();
    let checker = HeartbeatChecker::builder(SECOND).grace(Duration::ZERO).clock(clock.clone()).build().unwrap();
    let old: Vec<_> = (0..100).map(|key| checker.register(key)).collect();
    checker.sweep();
    clock.advance(Duration::from_secs(20 * 365 * 86_400));
    let new = checker.register(100);
    new.touch().unwrap();
    checker.sweep();
    assert_eq!(new.status(), Status::Alive);
    // The very stamp of the old ones may be that of the new one: they are due when it is.
    sweep_for(&checker, &clock, 2 * SECOND, |_| {});
    assert!(old.iter().all(|beat| beat.status() == Status::Expired));
}
