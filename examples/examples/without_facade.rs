//! The scheduler with one trigger crate, and no facade: the smallest tree of
//! dependencies.

use beatline_fixed_rate::FixedRate;
use beatline_scheduler::Scheduler;
use beatline_scheduler::core::{Error, Run};
use std::time::Duration;

async fn sample(run: Run) {
    println!("sample {}, due {}", run.id(), run.due());
}

#[tokio::main]
async fn main() -> Result<(), Error> {
    let scheduler = Scheduler::new();
    scheduler.job("sample", FixedRate::every(Duration::from_millis(250)).immediately()).run(sample)?;
    let report = scheduler.run_until(tokio::time::sleep(Duration::from_secs(2))).await;
    println!("ended within {:?}", report.took);
    Ok(())
}
