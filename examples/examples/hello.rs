//! The shortest program: an async function at a fixed rate, until Ctrl-C.

use beatline::{Error, FixedRate, Run, Scheduler};
use std::time::Duration;

async fn greet(run: Run) {
    println!("hello, due {}", run.due());
}

#[tokio::main]
async fn main() -> Result<(), Error> {
    let scheduler = Scheduler::new();
    scheduler.job("hello", FixedRate::every(Duration::from_secs(1)).immediately()).run(greet)?;
    scheduler.run_until_signal().await?;
    Ok(())
}
