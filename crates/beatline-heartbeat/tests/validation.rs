//! Nonsense is refused at build time, with the name of the field.
#![cfg(not(loom))]

use std::time::Duration;

use beatline_heartbeat::{BoxError, Builder, HeartbeatChecker, Probe, async_trait};

const SECOND: Duration = Duration::from_secs(1);

fn builder() -> Builder<u32> {
    HeartbeatChecker::builder(SECOND)
}

#[track_caller]
fn refused(builder: Builder<u32>, field: &str) {
    let error = builder.build().expect_err(field);
    assert_eq!(error.field(), Some(field), "{error}");
    assert!(error.to_string().starts_with(field), "{error}");
}

// B09: zero everywhere.
#[test]
fn zero_is_refused_with_the_name_of_the_field() {
    refused(HeartbeatChecker::builder(Duration::ZERO), "timeout");
    assert_eq!(HeartbeatChecker::<u32>::new(Duration::ZERO).unwrap_err().field(), Some("timeout"));
    refused(builder().tick(Duration::ZERO), "tick");
    refused(builder().missed(0), "missed");
    refused(builder().suspect_after(Duration::ZERO), "suspect_after");
    refused(builder().late_after(Duration::ZERO), "late_after");
    refused(builder().probe_timeout(Duration::ZERO), "probe_timeout");
    refused(builder().probe_concurrency(0), "probe_concurrency");
    refused(builder().event_capacity(0), "event_capacity");
    refused(builder().batch_size(0), "batch_size");
    refused(builder().callback_concurrency(0), "callback_concurrency");
    refused(builder().ping(Duration::ZERO, |_| async {}), "ping");
    // Zero has a meaning here: no grace.
    builder().grace(Duration::ZERO).build().unwrap();
}

#[test]
fn nonsense_is_refused_with_the_name_of_the_field() {
    struct Yes;
    #[async_trait]
    impl Probe<u32> for Yes {
        async fn probe(&self, _key: &u32) -> Result<(), BoxError> {
            Ok(())
        }
    }
    refused(HeartbeatChecker::builder(Duration::from_micros(999)), "timeout");
    refused(HeartbeatChecker::builder(Duration::MAX), "timeout");
    refused(HeartbeatChecker::builder(30 * SECOND).missed(u32::MAX), "timeout");
    refused(builder().tick(Duration::from_nanos(1)), "tick");
    refused(builder().tick(2 * SECOND), "tick");
    refused(builder().suspect_after(SECOND), "suspect_after");
    refused(builder().suspect_after(SECOND / 2).without_suspects(), "suspect_after");
    refused(builder().probe(Yes).without_suspects(), "probe");
    refused(builder().ping(Duration::from_nanos(1), |_| async {}), "ping");
    let both = builder().on_events(|_| async {}).build_with_events();
    assert_eq!(both.map(drop).unwrap_err().field(), Some("on_events"));
}

#[test]
fn long_is_legal_up_to_a_documented_limit() {
    let day = Duration::from_secs(86_400);
    let tick = Duration::from_millis(100);
    HeartbeatChecker::<u32>::builder(25 * day).tick(tick).build().unwrap();
    let error = HeartbeatChecker::<u32>::builder(26 * day).tick(tick).build().unwrap_err();
    assert!(error.to_string().contains("longer tick"), "{error}");
    HeartbeatChecker::<u32>::builder(3_000 * day).tick(day).grace(Duration::MAX).build().unwrap();
    builder().ping(Duration::MAX, |_| async {}).build().unwrap();
    builder().late_after(Duration::MAX).probe_timeout(Duration::MAX).build().unwrap();
}

#[test]
fn classes_are_validated_too() {
    let checker = builder().tick(SECOND / 10).build().unwrap();
    for (timeout, field) in
        [(Duration::ZERO, "timeout"), (Duration::from_millis(1), "timeout"), (Duration::MAX, "timeout")]
    {
        assert_eq!(checker.timeout_class(timeout).unwrap_err().field(), Some(field));
    }
    for seconds in 1..=256 {
        checker.timeout_class(Duration::from_secs(seconds)).unwrap();
        checker.timeout_class(Duration::from_secs(seconds)).unwrap();
    }
    assert_eq!(checker.timeout_class(Duration::from_secs(1_000)).unwrap_err().field(), Some("timeout_class"));
}
