//! The delivered triggers and overlap policies under the same overload.
//!
//! ```text
//! cargo run --release -p benches --bin policies                      about 90 s, most of it in real time
//! cargo run --release -p benches --bin policies -- --no-real         the virtual hour alone, at once
//! cargo run --release -p benches --bin policies -- --json FILE
//! ```
//!
//! First an hour on the virtual clock: a job due every second (or a second after
//! its last run) whose runs take 0.4 s, now and then 5 s, for five minutes 1.5 s
//! each; and a stall of 30.4 s. Then, in real time, a job that blocks its thread
//! for 2 s every 3 s beside one that is due every 100 ms.

use std::path::PathBuf;

use beatline_core::BoxError;
use benches::policies::{neighbour, overload};
use clap::Parser;
use serde_json::json;

#[derive(Debug, Parser)]
#[command(about = "Compares triggers and overlap policies under one overload, and a blocking job's neighbour.")]
struct Arguments {
    /// Write all figures to this file, as JSON.
    #[arg(long)]
    json: Option<PathBuf>,
    /// Leave out what takes real time.
    #[arg(long)]
    no_real: bool,
}

fn main() -> Result<(), BoxError> {
    let arguments = Arguments::parse();
    let hour = overload::measure();
    overload::print(&hour);
    let mut report = json!({ "overload": hour });
    if !arguments.no_real {
        let beside = neighbour::measure()?;
        report["neighbour"] = json!(beside);
    }
    match arguments.json {
        Some(file) => std::fs::write(file, format!("{report:#}\n"))?,
        None => println!("{report}"),
    }
    Ok(())
}
