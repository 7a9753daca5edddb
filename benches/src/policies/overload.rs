//! An hour of overload on the virtual clock.

use std::collections::BTreeMap;
use std::time::Duration;

use beatline_core::{Fate, Keep, Outcome, Overflow, Overlap, OverlapPolicy};
use beatline_fixed_delay::FixedDelay;
use beatline_fixed_rate::FixedRate;
use beatline_test::random::mix;
use beatline_test::timeline::{Record, Timeline};
use serde::Serialize;

use crate::figures::{Quantiles, print_table};

const HOUR: Duration = Duration::from_secs(3600);
const PERIOD: Duration = Duration::from_secs(1);
/// Not a multiple of the period, so that lateness shows.
const STALL: Duration = Duration::from_millis(30_400);

/// One trigger with one policy.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// The trigger.
    pub trigger: String,
    /// The policy, and its limit of active runs.
    pub overlap: String,
    /// Occurrences that became due.
    pub due: usize,
    /// Runs that started.
    pub started: usize,
    /// Runs that completed.
    pub completed: usize,
    /// Skipped occurrences by reason.
    pub skipped: BTreeMap<&'static str, usize>,
    /// How late the scheduler came to those that started.
    pub lateness: Quantiles,
    /// How long those waited for earlier runs.
    pub queue_wait: Quantiles,
    /// How far the schedule itself has moved after the hour.
    pub drift_ms: f64,
}

/// What each run takes: the same for every policy, by due instant.
fn takes(due: Duration) -> Duration {
    let overload = Duration::from_secs(20 * 60)..Duration::from_secs(25 * 60);
    match mix(due.as_millis() as u64) % 20 {
        0 => Duration::from_secs(5),
        _ if overload.contains(&due) => Duration::from_millis(1500),
        _ => Duration::from_millis(400),
    }
}

/// All triggers with all policies.
#[must_use]
pub fn measure() -> Vec<Row> {
    let policies = [
        (Overlap::Skip, 1),
        (Overlap::Skip, 4),
        (Overlap::BufferOne { keep: Keep::First }, 1),
        (Overlap::BufferOne { keep: Keep::Latest }, 1),
        (Overlap::buffer_all(), 1),
        (Overlap::BufferAll { cap: 10, overflow: Overflow::DropOldest }, 1),
        (Overlap::AllowAll, Overlap::AllowAll.max_concurrent()),
    ];
    let rate = policies.map(|(overlap, most)| {
        let timeline = Timeline::of(FixedRate::every(PERIOD));
        row("fixed rate 1s", timeline, overlap, most)
    });
    // At a fixed delay nothing ever overlaps; the policies do not matter.
    let delay = row("fixed delay 1s", Timeline::of(FixedDelay::after(PERIOD)), Overlap::Skip, 1);
    rate.into_iter().chain([delay]).collect()
}

fn row(trigger: &str, timeline: Timeline, overlap: Overlap, most: usize) -> Row {
    let record = timeline
        .overlap(overlap)
        .max_concurrent(most)
        .lasting(takes)
        .stalled(Duration::from_secs(40 * 60), STALL)
        .until(HOUR);
    let started: Vec<_> = record.lines.iter().filter(|line| line.start.is_some()).collect();
    let mut skipped = BTreeMap::new();
    for line in &record.lines {
        if let Some(Fate::Skipped(reason)) = line.fate {
            *skipped.entry(reason.label()).or_insert(0) += 1;
        }
    }
    let waits = started.iter().filter_map(|line| line.late().map(|late| late.saturating_sub(line.lateness)));
    Row {
        trigger: trigger.to_owned(),
        overlap: format!("{}, {most} at once", overlap.describe()),
        due: record.lines.len(),
        started: started.len(),
        completed: record.lines.iter().filter(|line| line.fate == Some(Fate::Ran(Outcome::Completed))).count(),
        skipped,
        queue_wait: Quantiles::of(waits.collect()),
        lateness: Quantiles::of(started.iter().map(|line| line.lateness).collect()),
        drift_ms: drift(&record),
    }
}

/// The last due instant against that of a schedule that nothing delays.
fn drift(record: &Record) -> f64 {
    let last = record.lines.last().map_or(Duration::ZERO, |line| line.due);
    let undisturbed = PERIOD * record.lines.len() as u32;
    (last.as_secs_f64() - undisturbed.as_secs_f64()) * 1e3
}

/// Prints the table.
pub fn print(rows: &[Row]) {
    let head = ["trigger, policy", "due", "started", "completed", "skipped", "late p50", "p99", "max"];
    let head = head.into_iter().chain(["wait p50", "p99", "max", "drift"]).map(str::to_owned).collect();
    let line = |row: &Row| {
        let skipped: Vec<_> = row.skipped.iter().map(|(reason, count)| format!("{reason} {count}")).collect();
        let mut cells = vec![format!("{}, {}", row.trigger, row.overlap)];
        cells.extend([row.due, row.started, row.completed].map(|count| count.to_string()));
        cells.push(skipped.join(", "));
        let Quantiles { p50_ms, p99_ms, max_ms } = row.lateness;
        let wait = row.queue_wait;
        let figures = [p50_ms, p99_ms, max_ms, wait.p50_ms, wait.p99_ms, wait.max_ms, row.drift_ms];
        cells.extend(figures.map(|figure| format!("{figure:.0} ms")));
        cells
    };
    println!(
        "one virtual hour: runs of 0.4 s, one in 20 takes 5 s, 1.5 s each from 20:00 to 25:00; a stall of 30.4 s at 40:00\n"
    );
    print_table(&std::iter::once(head).chain(rows.iter().map(line)).collect::<Vec<_>>());
    println!();
}
