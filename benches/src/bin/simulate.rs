//! The deterministic simulator, over many seeds.
//!
//! ```text
//! cargo run --release -p benches --bin simulate -- --seeds 10000 --fires 1e7
//! cargo run --release -p benches --bin simulate -- --seed 4711 --fires 1000      one seed, as a violation names it
//! cargo run --release -p benches --bin simulate -- --chaos clock --hours 1e5       clock chaos, for each overlap policy
//! ```
//!
//! Each seed runs twice, and the hashes of all that happened are compared. The
//! last line is JSON; the exit code is 1 if a promise was broken.

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::time::Instant;

use beatline_core::{Keep, Outcome, Overlap, SkipReason};
use beatline_test::simulator::{ClockChaos, ClockReport, Invariant, Report, Simulation, Violation};
use clap::{Parser, ValueEnum};
use serde_json::{Map, Value, json};

/// No more violations than this are printed.
const MOST_SHOWN: usize = 20;

#[derive(Debug, Parser)]
#[command(about = "Runs the engine of beatline on a virtual clock against everything that can happen to it.")]
struct Arguments {
    /// How many seeds.
    #[arg(long, default_value_t = 1000)]
    seeds: u64,
    /// How many fires over all seeds; 1e7 is fine.
    #[arg(long, default_value = "1e6")]
    fires: f64,
    /// The first seed; alone, the only one, and `--fires` is for it.
    #[arg(long)]
    seed: Option<u64>,
    /// Chaos of one kind instead, with `--hours` and `--seed`.
    #[arg(long)]
    chaos: Option<Chaos>,
    /// How many virtual hours of chaos for each overlap policy; 1e5 is fine.
    #[arg(long, default_value = "1e4")]
    hours: f64,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Chaos {
    /// Suspends, steps of the wall clock, pauses, changed zone data.
    Clock,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    if let Some(Chaos::Clock) = arguments.chaos {
        return clock_chaos(arguments.seed.unwrap_or(0), arguments.hours.max(1.0) as u64);
    }
    let (first, seeds, fires) = match arguments.seed {
        Some(seed) => (seed, 1, arguments.fires),
        None => (0, arguments.seeds.max(1), arguments.fires),
    };
    let fires_each = (fires / seeds as f64).ceil().max(1.0) as u64;
    let began = Instant::now();
    let (mut sum, mut violations) = (Report::default(), Vec::new());
    for seed in first..first + seeds {
        match Simulation::new(seed).fires(fires_each).run_twice() {
            Ok(report) => sum.add(&report),
            Err(violation) => {
                if violations.len() < MOST_SHOWN {
                    eprintln!("violation: {violation}");
                }
                violations.push(violation);
            }
        }
    }
    print(&sum, &violations, seeds, began.elapsed().as_secs_f64());
    if violations.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn print(sum: &Report, violations: &[Violation], seeds: u64, seconds: f64) {
    let broken = |invariant: Invariant| violations.iter().filter(|found| found.invariant == invariant).count();
    let hours = sum.elapsed.as_secs_f64() / 3600.0;
    let (lost, duplicates) = (broken(Invariant::Conservation), broken(Invariant::NeverTwice));
    let (early, nondeterministic) = (broken(Invariant::NeverEarly), broken(Invariant::Determinism));
    let mut by_invariant = BTreeMap::new();
    for found in violations {
        *by_invariant.entry(found.invariant.label()).or_insert(0_u64) += 1;
    }

    println!("seeds             {seeds:>14}   each run twice");
    println!("fires             {:>14}   of {} due", sum.fires, sum.due);
    println!("steps             {:>14}   of the state machine, all promises checked after each", sum.steps);
    println!("driver looks      {:>14}", sum.looks);
    println!("jobs              {:>14}   of which {} faulted on purpose", sum.jobs, sum.faulted);
    println!("virtual hours     {hours:>14.1}   with {} jumps of the wall clock", sum.wall_jumps);
    println!("lost              {lost:>14}");
    println!("duplicates        {duplicates:>14}");
    println!("early             {early:>14}");
    println!("nondeterministic  {nondeterministic:>14}");
    for (invariant, count) in &by_invariant {
        println!("violated: {invariant:<20} {count}");
    }
    println!("seconds           {seconds:>14.1}");
    let report = json!({
        "seeds": seeds, "fires": sum.fires, "due": sum.due, "steps": sum.steps, "looks": sum.looks, "jobs": sum.jobs,
        "faulted": sum.faulted, "virtual_hours": hours, "wall_jumps": sum.wall_jumps,
        "outcomes": labelled(&Outcome::LABELS, &sum.outcomes), "skipped": labelled(&SkipReason::LABELS, &sum.skipped),
        "lost": lost, "duplicates": duplicates, "early": early, "nondeterministic": nondeterministic,
        "violations": violations.len(), "hash": format!("{:016x}", sum.hash), "seconds": seconds,
    });
    println!("{report}");
}

fn labelled(labels: &[&str], counts: &[u64]) -> Value {
    let pairs = labels.iter().zip(counts).filter(|(_, count)| **count > 0);
    Value::Object(pairs.map(|(label, count)| ((*label).to_owned(), json!(count))).collect::<Map<_, _>>())
}

/// Clock chaos for each overlap policy, one after the other.
fn clock_chaos(seed: u64, hours: u64) -> ExitCode {
    let policies = [
        ("skip", Overlap::Skip),
        ("buffer_one_first", Overlap::BufferOne { keep: Keep::First }),
        ("buffer_one_latest", Overlap::BufferOne { keep: Keep::Latest }),
        ("buffer_all", Overlap::buffer_all()),
        ("allow_all", Overlap::AllowAll),
    ];
    let (mut sum, mut violations, mut seconds_each) = (ClockReport::default(), Vec::new(), Map::new());
    for (label, overlap) in policies {
        let began = Instant::now();
        let ran = ClockChaos::new(seed, overlap).hours(hours).run();
        let seconds = began.elapsed().as_secs_f64();
        let fires = ran.as_ref().map_or(0, |report| report.fires);
        println!("{label:<18} {hours:>10} virtual hours   {fires:>10} fires   {seconds:>6.1} s");
        seconds_each.insert(label.to_owned(), json!((seconds * 10.0).round() / 10.0));
        match ran {
            Ok(report) => sum.add(&report),
            Err(violation) => {
                eprintln!("violation: {violation}");
                violations.push(violation);
            }
        }
    }
    print_clock(&sum, &violations, hours, seconds_each);
    if violations.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn print_clock(sum: &ClockReport, violations: &[Violation], hours: u64, seconds: Map<String, Value>) {
    let broken = |invariant: Invariant| violations.iter().filter(|found| found.invariant == invariant).count();
    println!("lives             {:>14}   each a process with other jobs and other weather", sum.lives);
    println!("fires             {:>14}   of {} due", sum.fires, sum.due);
    println!("steps             {:>14}   all promises checked after each", sum.steps);
    println!("driver looks      {:>14}", sum.looks);
    for (kind, count) in ClockReport::KINDS.iter().zip(sum.injected) {
        println!("{kind:<18}{count:>14}   injected");
    }
    println!("jumps seen        {:>14}", sum.jumps);
    println!("schedules rebased {:>14}   {} instants decided on again, as documented", sum.rebases, sum.repeated);
    let (duplicates, early) = (broken(Invariant::NeverTwice), broken(Invariant::NeverEarly));
    println!("duplicates        {duplicates:>14}");
    println!("early             {early:>14}");
    let worst = [sum.worst_lateness, sum.worst_lateness_watched].map(|worst| worst.as_secs_f64());
    println!("worst lateness    {:>12.3} s   cap 10 s; {:.3} s where the system tells of steps", worst[0], worst[1]);
    let silence = sum.worst_silence as f64 / 1000.0;
    println!("worst silence     {silence:>14.3}   of what is allowed, 2 x max(gap, cap)");
    for violation in violations {
        println!("violated: {}", violation.invariant.label());
    }
    let injected: Map<_, _> =
        ClockReport::KINDS.iter().zip(sum.injected).map(|(kind, count)| ((*kind).to_owned(), json!(count))).collect();
    let report = json!({
        "chaos": "clock", "hours_per_policy": hours, "virtual_hours": sum.elapsed.as_secs_f64() / 3600.0,
        "lives": sum.lives, "looks": sum.looks, "steps": sum.steps, "due": sum.due, "fires": sum.fires,
        "injected": injected, "jumps": sum.jumps, "rebases": sum.rebases, "repeated_after_rebase": sum.repeated,
        "duplicates": duplicates, "early": early, "worst_lateness_s": worst[0],
        "worst_lateness_watched_s": worst[1], "worst_silence_of_allowed": silence,
        "violations": violations.len(), "seconds": seconds,
    });
    println!("{report}");
}
