//! The main job, as it is called from a shell: it ends by itself, its books
//! balance, and a bad option is named.
#![allow(clippy::unwrap_used)] // a test may panic, its helpers too

mod support;

use std::path::PathBuf;

use serde_json::Value;
use support::{run, text};

/// A directory of this test's own.
fn directory(name: &str) -> PathBuf {
    let directory = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("collector-{name}"));
    // There is none the first time.
    let _ = std::fs::remove_dir_all(&directory);
    std::fs::create_dir_all(&directory).unwrap();
    directory
}

fn sum(counts: &Value) -> u64 {
    counts.as_object().unwrap().values().map(|count| count.as_u64().unwrap()).sum()
}

/// Runs it and checks the summary; returns what it printed, and the summary.
fn collect(name: &str, options: &[&str]) -> (String, Value) {
    let directory = directory(name);
    let summary = directory.join("summary.json");
    let (data, file) = (directory.to_str().unwrap(), summary.to_str().unwrap());
    let output = run("collector", options.iter().copied().chain(["--data", data, "--summary", file]), "");
    let printed = text(&output.stdout).to_owned();
    assert_eq!(output.status.code(), Some(0), "{printed}\n{}", text(&output.stderr));
    let json: Value = serde_json::from_slice(&std::fs::read(summary).unwrap()).unwrap();
    assert_eq!(json["left"]["tasks"], 0, "{printed}");
    for job in json["jobs"].as_array().unwrap() {
        let count = |field: &str| job[field].as_u64().unwrap();
        assert_eq!(count("due"), count("started") + sum(&job["skipped"]) + count("pending"), "{job}");
        assert_eq!(count("started"), count("running") + sum(&job["outcomes"]), "{job}");
        assert_eq!(count("pending") + count("running"), 0, "{job}");
    }
    (printed, json)
}

fn due(summary: &Value, name: &str) -> u64 {
    let mut jobs = summary["jobs"].as_array().unwrap().iter();
    jobs.find(|job| job["name"] == name).unwrap()["due"].as_u64().unwrap()
}

#[test]
fn five_minutes_of_the_market_in_three_seconds() {
    let (printed, summary) = collect("fast", &["--for", "3s", "--speed", "100"]);
    let first = printed.lines().next().unwrap();
    assert!(first.ends_with("market time: Monday 02:57 in Asia/Shanghai, 100× as fast"), "{first}");
    assert!(due(&summary, "quotes") >= 9, "{printed}");
    assert_eq!(due(&summary, "reconcile"), 1, "{printed}");
    assert!(printed.contains("every due instant is accounted for"), "{printed}");
}

#[test]
fn real_time_at_speed_1() {
    let (printed, summary) = collect("real", &["--for", "1s", "--speed", "1"]);
    let first = printed.lines().next().unwrap();
    assert!(first.ends_with("market time: real time in Asia/Shanghai, speed 1"), "{first}");
    assert_eq!(due(&summary, "quotes"), 1, "{printed}");
}

#[test]
fn ordered_trouble_is_accounted_for_as_well() {
    let trouble = "overrun,fail=reconcile:10s";
    let (printed, summary) = collect("trouble", &["--for", "3s", "--speed", "100", "--trouble", trouble]);
    assert!(due(&summary, "overrun") > 0);
    assert!(printed.contains("last error of reconcile: trouble was ordered"), "{printed}");
}

#[test]
fn a_bad_option_is_named_and_ends_it_with_2() {
    for options in [
        &["--speed", "0"][..],
        &["--speed", "-1"],
        &["--speed", "fast"],
        &["--speed", "NaN"],
        &["--for", "0s"],
        &["--for", "soon"],
        &["--listen", "192.0.2.1:80"],
        &["--listen", "nowhere"],
        &["--source", "ftp://example.org"],
        &["--trouble", "rain"],
        &["--trouble", "fail=nobody:1s"],
        &["--summary", ""],
        &["--data", ""],
        &["--frequency", "1"],
    ] {
        let output = run("collector", options, "");
        let complaint = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{options:?}: {complaint}");
        assert!(complaint.contains(options[0]), "{options:?}: {complaint}");
        assert_eq!(text(&output.stdout), "", "{options:?}");
    }
}
