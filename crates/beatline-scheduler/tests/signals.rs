//! SIGINT and SIGTERM, sent to a process of its own.
#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "tests")]

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use beatline_scheduler::core::Once;
use beatline_scheduler::{Scheduler, Shutdown};

/// Starts one of the children below and waits until its job runs.
fn start(child: &str) -> (Child, impl Iterator<Item = String> + use<>) {
    let mut process = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", child, "--nocapture", "--ignored"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(process.stdout.take().unwrap()).lines().map(Result::unwrap);
    assert!(lines.any(|line| line.ends_with("running")));
    (process, lines)
}

fn signal(process: &Child, name: &str) {
    let sent = Command::new("kill").args([name, &process.id().to_string()]).status().unwrap();
    assert!(sent.success());
}

/// A job that stops `after` it was asked to, or never.
fn run_until_signal(after: Option<Duration>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let report = runtime.block_on(async {
        let how = Shutdown::within(Duration::ZERO).grace(Duration::from_secs(3_600));
        let scheduler = Scheduler::builder().shutdown(how).build().unwrap();
        scheduler
            .job("job", Once::immediately())
            .run(move |run| async move {
                println!("running");
                run.cancelled().await;
                println!("asked to stop");
                match after {
                    Some(after) => tokio::time::sleep(after).await,
                    None => std::future::pending().await,
                }
            })
            .unwrap();
        scheduler.run_until_signal().await.unwrap()
    });
    println!("cancelled {} aborted {}", report.cancelled, report.aborted);
}

#[test]
#[ignore = "a child of the tests below"]
fn child_that_obeys() {
    run_until_signal(Some(Duration::ZERO));
}

#[test]
#[ignore = "a child of the tests below"]
fn child_that_does_not_obey() {
    run_until_signal(None);
}

#[test]
fn either_signal_ends_it_gracefully() {
    for name in ["-INT", "-TERM"] {
        let (mut process, mut lines) = start("child_that_obeys");
        signal(&process, name);
        assert!(lines.any(|line| line == "cancelled 1 aborted 0"), "{name}");
        assert!(process.wait().unwrap().success());
    }
}

#[test]
fn a_second_signal_ends_it_at_once() {
    let (mut process, mut lines) = start("child_that_does_not_obey");
    signal(&process, "-TERM");
    assert!(lines.any(|line| line == "asked to stop"));
    signal(&process, "-INT");
    assert!(lines.any(|line| line == "cancelled 0 aborted 1"));
    assert!(process.wait().unwrap().success());
}
