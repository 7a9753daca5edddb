//! Never silent: without an observer and without a subscriber, the first failure
//! of an episode goes to standard error. Each case is a process of its own.

#![allow(clippy::unwrap_used, reason = "tests")]

use std::process::Command;

use beatline_scheduler::Scheduler;
use beatline_scheduler::core::OnDemand;

/// Runs one of the children below and returns its standard error.
fn standard_error_of(child: &str) -> String {
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", child, "--nocapture", "--ignored"])
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stderr).unwrap()
}

fn fail_three_times(scheduler: Scheduler) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    runtime.block_on(async {
        let job = scheduler.job("quotes", OnDemand).run(|_| async { Err("no route to host") }).unwrap();
        for _ in 0..3 {
            job.run_now().unwrap().await.unwrap();
        }
    });
}

#[test]
#[ignore = "a child of the tests below"]
fn child_that_nobody_watches() {
    fail_three_times(Scheduler::new());
}

#[test]
#[ignore = "a child of the tests below"]
fn child_that_is_quiet() {
    fail_three_times(Scheduler::builder().quiet().build().unwrap());
}

#[test]
#[ignore = "a child of the tests below"]
fn child_with_a_handler() {
    fail_three_times(
        Scheduler::builder().on_failure(|failure| eprintln!("handled {}", failure.error)).build().unwrap(),
    );
}

#[test]
fn a_failure_nobody_would_hear_of_is_written_once_an_episode() {
    let text = standard_error_of("child_that_nobody_watches");
    assert_eq!(text.matches("job \"quotes\" failed: no route to host").count(), 1, "{text}");
}

#[test]
fn a_quiet_scheduler_writes_nothing() {
    assert!(!standard_error_of("child_that_is_quiet").contains("quotes"));
}

#[test]
fn a_handler_hears_of_every_failure_instead() {
    let text = standard_error_of("child_with_a_handler");
    assert_eq!((text.matches("handled no route to host").count(), text.matches("quotes").count()), (3, 0), "{text}");
}
