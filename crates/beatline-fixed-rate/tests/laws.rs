//! The laws of triggers, and what is this trigger's own.

use std::time::Duration;

use beatline_core::{Due, Line, Moment, Monotonic, Timestamp, Trigger, TriggerContext, upcoming};
use beatline_fixed_rate::FixedRate;
use beatline_test::laws;

const fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn wall(text: &str) -> Timestamp {
    text.parse().expect("a timestamp")
}

fn registered_at(text: &str) -> TriggerContext {
    TriggerContext::new(Moment::new(Monotonic::from_nanoseconds(5_000_000_000), wall(text)))
}

#[test]
fn every_form_keeps_the_laws() {
    let every = FixedRate::every(secs(30));
    for trigger in [
        every,
        every.immediately(),
        every.initial_delay(secs(7)),
        every.phase(secs(29)),
        every.anchored_at(wall("1999-12-31T23:59:59Z")),
        every.anchored_at(wall("2999-12-31T23:59:59Z")),
        every.starting_at(wall("2026-01-01T00:00:10Z")).ending_at(wall("2026-01-01T01:00:00Z")),
        every.aligned(),
        every.aligned().phase(secs(1)),
        every.aligned().ending_at(wall("2026-06-01T00:00:00Z")),
        FixedRate::every(Duration::from_nanos(1)),
        FixedRate::every(Duration::MAX),
        FixedRate::every(Duration::MAX).aligned(),
    ] {
        laws::trigger(&trigger);
    }
}

#[test]
fn aligned_is_round_on_the_wall_clock() {
    let quarter = FixedRate::every(secs(900)).aligned();
    assert_eq!((quarter.line(), quarter.describe()), (Line::Wall, "every 900s, aligned".to_owned()));
    let due: Vec<_> = upcoming(&quarter, &registered_at("2026-01-01T10:07:00Z"), 3);
    let expected = ["10:15", "10:30", "10:45"].map(|time| Due::Wall(wall(&format!("2026-01-01T{time}:00Z"))));
    assert_eq!(due, expected);
    let on_the_dot = upcoming(&quarter, &registered_at("2026-01-01T10:15:00Z"), 1);
    assert_eq!(on_the_dot, [expected[0]]);
    let shifted = upcoming(&quarter.phase(secs(60)), &registered_at("2026-01-01T10:16:30Z"), 1);
    assert_eq!(shifted, [Due::Wall(wall("2026-01-01T10:31:00Z"))]);
}

// B14
#[test]
fn the_hundred_thousandth_instant_is_exact() {
    let trigger = FixedRate::every(secs(1));
    let context = registered_at("2026-01-01T00:00:00Z");
    let last = upcoming(&trigger, &context, 100_000).pop();
    let expected = context.registered.monotonic.saturating_add(secs(100_000));
    assert_eq!(last, Some(Due::Monotonic(expected)));
}
