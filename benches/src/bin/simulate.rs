//! The deterministic simulator, over many seeds.
//!
//! ```text
//! cargo run --release -p benches --bin simulate -- --seeds 10000 --fires 1e7
//! cargo run --release -p benches --bin simulate -- --seed 4711 --fires 1000      one seed, as a violation names it
//! ```
//!
//! Each seed runs twice, and the hashes of all that happened are compared. The
//! last line is JSON; the exit code is 1 if a promise was broken.

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::time::Instant;

use beatline_core::{Outcome, SkipReason};
use beatline_test::simulator::{Invariant, Report, Simulation, Violation};
use clap::Parser;
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
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
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
