//! What is wrong is wrong when the job is added, in an error that names the field.

#![allow(clippy::unwrap_used, reason = "tests")]

mod support;

use std::time::Duration;

use beatline_fixed_delay::FixedDelay;
use beatline_fixed_rate::FixedRate;
use beatline_scheduler::core::{Error, OnDemand, Overflow, Overlap, Trigger, TriggerContext};
use beatline_scheduler::{JobBuilder, Scheduler};
use support::secs;

/// Adds the job and expects to be refused for this field.
fn refused(field: &str, job: JobBuilder) {
    let error = job.run(|_| async {}).unwrap_err();
    assert_eq!(error.field(), Some(field), "{error}");
    assert!(error.to_string().starts_with(&format!("{field}: ")), "{error}");
}

// B09
#[tokio::test(start_paused = true)]
async fn nonsense_is_refused_by_name() {
    let scheduler = beatline_test::scheduler(support::ANCHOR);
    let zero = Duration::ZERO;
    let job = |trigger| scheduler.job("job", trigger);
    refused("period", job(FixedRate::every(zero)));
    refused("delay", scheduler.job("job", FixedDelay::after(zero)));
    refused("delay", scheduler.job("job", FixedDelay::after(zero).immediately()));
    refused("phase", job(FixedRate::every(secs(1)).phase(secs(1))));
    let (early, late) = ("2026-01-01T00:00:00Z".parse().unwrap(), "2026-01-02T00:00:00Z".parse().unwrap());
    refused("end", job(FixedRate::every(secs(1)).starting_at(late).ending_at(early)));
    let every = FixedRate::every(secs(1));
    refused("max_concurrent", job(every).max_concurrent(0));
    refused("timeout", job(every).timeout(zero));
    refused("timeout_grace", job(every).timeout_grace(secs(1)));
    refused("overlap.cap", job(every).overlap(Overlap::BufferAll { cap: 0, overflow: Overflow::DropOldest }));
    refused("last_due", job(every).last_due("2027-01-01T00:00:00Z".parse().unwrap()));
    for name in ["", "a\nb", "\u{7f}", "tab\there", "\u{85}"] {
        refused("name", scheduler.job(name, every));
    }
    refused("name", scheduler.job("x".repeat(129), every));
    assert!(scheduler.jobs().is_empty(), "nothing was scheduled");
    scheduler.job("é".repeat(64), every).run(|_| async {}).unwrap();
    let inline = scheduler.job("inline", every).timeout(secs(1)).run_inline(|_| {}).unwrap_err();
    assert_eq!(inline.field(), Some("timeout"));
    let error = scheduler.job("control\u{1b}[31m", every).run(|_| async {}).unwrap_err().to_string();
    assert!(!error.contains('\u{1b}'), "control characters are escaped: {error}");
}

#[tokio::test(start_paused = true)]
async fn a_name_is_given_once() {
    let scheduler = beatline_test::scheduler(support::ANCHOR);
    let job = scheduler.job("job", OnDemand).run(|_| async {}).unwrap();
    let again = scheduler.job("job", OnDemand).run(|_| async {}).unwrap_err();
    assert!(matches!(&again, Error::DuplicateName { name } if name == "job"));
    job.cancel();
    scheduler.job("job", OnDemand).run(|_| async {}).unwrap();
}

#[test]
fn a_scheduler_wants_sensible_settings() {
    assert_eq!(Scheduler::builder().name("").build().unwrap_err().field(), Some("name"));
    assert_eq!(
        Scheduler::builder().stall_threshold(Duration::ZERO).build().unwrap_err().field(),
        Some("stall_threshold")
    );
}

#[test]
fn outside_a_runtime_it_says_so() {
    let scheduler = Scheduler::new();
    let error = scheduler.job("job", OnDemand).run(|_| async {}).unwrap_err();
    assert!(matches!(error, Error::NoRuntime) && error.field() == Some("runtime"));
    assert!(matches!(scheduler.after(secs(1), |_| async {}), Err(Error::NoRuntime)));
    // Not lost by the refusal: inside a runtime the same scheduler works.
    let runtime = support::runtime(0);
    let _inside = runtime.enter();
    scheduler.job("job", OnDemand).run(|_| async {}).unwrap();
}

#[test]
fn a_runtime_without_a_timer_is_refused() {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let _inside = runtime.enter();
    assert!(matches!(Scheduler::new().job("job", OnDemand).run(|_| async {}), Err(Error::NoTimeDriver)));
}

#[test]
fn a_runtime_without_io_has_no_signals() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    let scheduler = Scheduler::new();
    let result = runtime.block_on(scheduler.run_until_signal());
    assert!(matches!(result, Err(Error::NoIoDriver)));
    assert!(matches!(beatline_scheduler::shutdown_signal().map(drop), Err(Error::NoRuntime)));
}

#[tokio::test(start_paused = true)]
async fn after_a_shutdown_nothing_is_taken() {
    let scheduler = beatline_test::scheduler(support::ANCHOR);
    let job = scheduler.job("job", OnDemand).run(|_| async {}).unwrap();
    scheduler.shutdown(secs(1)).await;
    assert!(matches!(scheduler.job("more", OnDemand).run(|_| async {}), Err(Error::ShuttingDown)));
    assert!(matches!(scheduler.after(secs(1), |_| async {}), Err(Error::ShuttingDown)));
    assert!(matches!(job.run_now(), Err(Error::ShuttingDown)));
}

#[tokio::test(start_paused = true)]
async fn a_trigger_that_panics_while_it_is_added_is_an_error_or_a_fault() {
    struct PanicsInValidate;
    impl Trigger for PanicsInValidate {
        fn next(&self, _: &TriggerContext) -> beatline_scheduler::core::Next {
            panic!("next")
        }
        fn validate(&self) -> Result<(), Error> {
            panic!("validate")
        }
        fn describe(&self) -> String {
            panic!("describe")
        }
    }
    struct PanicsInNext;
    impl Trigger for PanicsInNext {
        fn next(&self, _: &TriggerContext) -> beatline_scheduler::core::Next {
            panic!("next")
        }
    }
    let scheduler = beatline_test::scheduler(support::ANCHOR);
    refused("trigger", scheduler.job("job", PanicsInValidate));
    let job = scheduler.job("job", PanicsInNext).run(|_| async {}).unwrap();
    assert!(matches!(job.status().condition, beatline_scheduler::Condition::Faulted { .. }));
}
