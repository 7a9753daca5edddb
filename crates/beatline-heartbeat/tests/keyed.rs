//! The front for those who have ids.
#![cfg(not(loom))]

mod common;

use std::time::Duration;

use beatline_heartbeat::{HeartbeatChecker, Status, TouchError};
use common::{ManualClock, drain, expired_keys, sweep_for};

const SECOND: Duration = Duration::from_secs(1);

#[tokio::test]
async fn connections_are_touched_and_removed_by_key() {
    let clock = ManualClock::new();
    let (checker, mut events) =
        HeartbeatChecker::builder(SECOND).without_suspects().clock(clock.clone()).build_with_events().unwrap();
    let clients = checker.keyed();
    for key in ["a", "b", "c"] {
        clients.register(key.to_owned());
    }
    assert_eq!(clients.touch("d"), Err(TouchError::Unknown));
    sweep_for(&checker, &clock, SECOND * 3 / 4, |_| {});
    clients.touch("a").unwrap();
    assert_eq!(clients.remove("c").await, Some(Status::Alive));
    assert_eq!(clients.remove("c").await, None);
    sweep_for(&checker, &clock, SECOND / 2, |_| {});
    assert_eq!(clients.status("a"), Some(Status::Alive));
    assert_eq!(clients.touch("b"), Err(TouchError::Expired), "not reported yet");
    assert_eq!(expired_keys(&drain(&mut events)), ["b"]);
    assert_eq!(clients.touch("b"), Err(TouchError::Unknown), "reported and forgotten");
    assert_eq!(clients.len(), 1);
    let statistics = checker.statistics();
    assert_eq!((statistics.alive, statistics.expired, statistics.removed), (1, 1, 1));
}

#[tokio::test]
async fn a_client_that_comes_back_takes_the_place_of_its_old_connection() {
    let clock = ManualClock::new();
    let (checker, mut events) =
        HeartbeatChecker::builder(SECOND).without_suspects().clock(clock.clone()).build_with_events().unwrap();
    let clients = checker.keyed();
    clients.register(7);
    sweep_for(&checker, &clock, 2 * SECOND, |_| {});
    // Dead, and back before anyone read of it: the old death is no news of the new connection.
    clients.register(7);
    assert!(drain(&mut events).is_empty());
    assert_eq!(clients.touch(&7), Ok(()));
    sweep_for(&checker, &clock, 2 * SECOND, |_| {});
    assert_eq!(expired_keys(&drain(&mut events)), [7]);
    assert!(clients.is_empty());
}

#[test]
fn where_nobody_listens_the_dead_are_forgotten_at_once() {
    let clock = ManualClock::new();
    let checker = HeartbeatChecker::builder(SECOND).clock(clock.clone()).build().unwrap();
    let clients = checker.keyed();
    (0..10_000).for_each(|key| clients.register(key));
    assert_eq!(checker.keyed().len(), 10_000, "all fronts are one");
    sweep_for(&checker, &clock, 2 * SECOND, |_| {});
    assert_eq!((clients.len(), checker.statistics().unreported), (0, 0));
    assert_eq!(checker.statistics().expired, 10_000);
    assert_eq!(checker.snapshot().connections.len(), 0, "and their slots are free");
}

#[test]
fn keys_have_classes_too() {
    let clock = ManualClock::new();
    let checker = HeartbeatChecker::builder(SECOND).clock(clock.clone()).build().unwrap();
    let slow = checker.timeout_class(5 * SECOND).unwrap();
    let clients = checker.keyed();
    clients.register(1);
    clients.register_in(&slow, 2).unwrap();
    sweep_for(&checker, &clock, 4 * SECOND, |_| {});
    assert_eq!((clients.status(&1), clients.status(&2)), (None, Some(Status::Suspect)));
    let other = HeartbeatChecker::<i32>::new(SECOND).unwrap();
    assert_eq!(other.keyed().register_in(&slow, 3).unwrap_err().field(), Some("class"));
}
