//! The collector's own trigger: market time, N times as fast as the wall clock.
#![allow(clippy::unwrap_used)] // a test may panic, its helpers too

#[path = "../examples/collector/market.rs"]
mod market;

use std::time::Duration;

use beatline::core::{Due, Moment, Monotonic, Next, TriggerContext};
use beatline::cron::{At, CalendarInterval, Dialect};
use beatline::{Cron, FixedRate, Timestamp, Trigger};
use beatline_test::laws;
use market::{MarketClock, MarketTime, ZONE};

fn at(text: &str) -> Timestamp {
    text.parse().unwrap()
}

fn night() -> Cron {
    Cron::parse("0 3 * * mon-fri").unwrap().zone(ZONE).unwrap()
}

/// The first occurrences of a job that was added at this instant.
fn first(trigger: &impl Trigger, registered: Timestamp, count: usize) -> Vec<Timestamp> {
    let mut context = TriggerContext::new(Moment::new(Monotonic::ORIGIN, registered));
    let mut found = Vec::new();
    while let Next::AtWall(due) = trigger.next(&context) {
        found.push(due);
        context = context.after(Due::Wall(due));
        if found.len() == count {
            break;
        }
    }
    found
}

#[test]
fn the_laws_of_triggers_hold_at_every_speed() {
    let now = at("2026-03-29T00:59:59.123456789Z");
    for speed in [1e-12, 0.001, 1.0 / 3.0, 1.0, 2.5, 30.0, 777.7, 30_000.0] {
        let clock = MarketClock::starting(now, speed);
        laws::trigger(&MarketTime::new(clock, night()));
        laws::trigger(&MarketTime::new(clock, Cron::parse_with(Dialect::Seconds, "*/7 * * * * *").unwrap()));
        laws::trigger(&MarketTime::new(clock, CalendarInterval::days(10).starting(2026, 1, 1).at(9, 0, 0)));
        laws::trigger(&MarketTime::new(clock, At::instant(now)));
        laws::trigger(&MarketTime::new(clock, FixedRate::every(Duration::from_secs(900)).aligned()));
    }
}

#[test]
fn at_speed_30_three_minutes_take_six_seconds_and_a_day_48_minutes() {
    let start = at("2026-07-01T12:00:00.250Z");
    let reconcile = MarketTime::new(MarketClock::starting(start, 30.0), night());
    // Tuesday to Friday, and Monday after three days.
    let wanted = [6, 6 + 2_880, 6 + 2 * 2_880, 6 + 3 * 2_880, 6 + 4 * 2_880, 6 + 7 * 2_880];
    assert_eq!(first(&reconcile, start, 6), wanted.map(|seconds| start.saturating_add(Duration::from_secs(seconds))));
    assert_eq!(reconcile.describe(), "cron 0 3 * * mon-fri (Asia/Shanghai), 30× as fast");
    // A weekend, and the hour by which the clocks there were changed once.
    let longest = reconcile.longest_gap().unwrap();
    let expected = Duration::from_secs((3 * 86_400 + 3_600) / 30);
    assert_eq!(longest, expected + Duration::from_nanos(1));
}

#[test]
fn at_speed_1_it_is_the_wall_clock() {
    let start = at("2026-01-02T12:00:00.123456789Z");
    let clock = MarketClock::starting(start, 1.0);
    let reconcile = MarketTime::new(clock, night());
    assert_eq!(first(&reconcile, start, 400), night().upcoming(start, 400));
    assert_eq!(reconcile.describe(), night().describe());
    assert_eq!(clock.in_words(), "market time: real time in Asia/Shanghai, speed 1");
}

#[test]
fn the_log_says_where_market_time_starts() {
    let clock = MarketClock::starting(at("2026-07-01T12:00:00Z"), 2.5);
    assert_eq!(clock.in_words(), "market time: Monday 02:57 in Asia/Shanghai, 2.5× as fast");
}

/// Rounded up to the nanosecond, and never a nanosecond before the market's.
#[test]
fn nothing_is_early() {
    let start = at("2026-07-01T12:00:00Z");
    let thirds =
        MarketTime::new(MarketClock::starting(start, 3.0), Cron::parse_with(Dialect::Seconds, "* * * * * *").unwrap());
    let nanoseconds: Vec<u128> =
        first(&thirds, start, 4).iter().map(|due| due.saturating_since(start).as_nanos()).collect();
    assert_eq!(nanoseconds, [0, 333_333_334, 666_666_667, 1_000_000_000]);
}

#[test]
fn a_schedule_on_the_monotonic_clock_is_refused() {
    let clock = MarketClock::starting(at("2026-07-01T12:00:00Z"), 30.0);
    let refused = MarketTime::new(clock, FixedRate::every(Duration::from_secs(1))).validate();
    assert!(refused.unwrap_err().to_string().contains("schedule"));
}
