//! A job that blocks its thread beside one that is due every 100 ms, in real
//! time.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use beatline_core::{BoxError, Run, SkipReason, Timestamp};
use beatline_fixed_rate::FixedRate;
use beatline_scheduler::Scheduler;
use serde::Serialize;
use tokio::runtime::{Builder, Runtime};

use crate::figures::{Quantiles, print_table};

const MEASURED: Duration = Duration::from_secs(10);
const NEIGHBOUR: Duration = Duration::from_millis(100);
const BLOCKER: Duration = Duration::from_secs(3);
const BLOCKED: Duration = Duration::from_secs(2);

/// How the blocking job runs, and on what.
#[derive(Clone, Copy, Debug)]
enum Ground {
    Workers(usize),
    CurrentThread,
    /// As it should be: on the blocking pool.
    BlockingKind,
}

/// What became of the neighbour.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// The runtime, and where the blocking job ran.
    pub runtime: String,
    /// Whether both jobs share their instants.
    pub instants: &'static str,
    /// How many runs the neighbour should have had.
    pub expected: u64,
    /// How many started.
    pub started: u64,
    /// How many were coalesced into a later one.
    pub coalesced: u64,
    /// From the due instant to the first instruction of the body.
    pub lateness: Quantiles,
}

/// Measures and prints as it goes.
///
/// # Errors
///
/// A runtime that cannot be built, or a job that cannot be added.
pub fn measure() -> Result<Vec<Row>, BoxError> {
    let grounds = [Ground::Workers(2), Ground::Workers(4), Ground::CurrentThread, Ground::BlockingKind];
    println!(
        "in real time: a job that blocks its thread for 2 s every 3 s; its neighbour every 100 ms, for 10 s each\n"
    );
    let mut rows = Vec::new();
    for ground in grounds {
        for offset in [Duration::ZERO, NEIGHBOUR / 2] {
            let row = beside(ground, offset)?;
            eprintln!("{}, instants {}: {} of {} started", row.runtime, row.instants, row.started, row.expected);
            rows.push(row);
        }
    }
    print(&rows);
    Ok(rows)
}

fn beside(ground: Ground, offset: Duration) -> Result<Row, BoxError> {
    let (runtime, name) = build(ground)?;
    let samples = Arc::new(Mutex::new(Vec::new()));
    // Both grids hang on one point, and nothing is due before both are added.
    let anchor = Timestamp::from(SystemTime::now()).saturating_add(Duration::from_millis(200));
    let statistics = runtime.block_on(async {
        let scheduler = Scheduler::builder().quiet().build()?;
        let blocker = scheduler.job("blocker", FixedRate::every(BLOCKER).anchored_at(anchor));
        match ground {
            Ground::BlockingKind => blocker.run_blocking(|_run| std::thread::sleep(BLOCKED))?,
            _ => blocker.run(|_run| async { std::thread::sleep(BLOCKED) })?,
        };
        let rate = FixedRate::every(NEIGHBOUR).anchored_at(anchor.saturating_add(offset)).starting_at(anchor);
        let sink = Arc::clone(&samples);
        let neighbour = scheduler.job("neighbour", rate).run(move |run: Run| {
            let late = Timestamp::from(SystemTime::now()).saturating_since(run.due());
            sink.lock().unwrap_or_else(PoisonError::into_inner).push(late);
            async {}
        })?;
        // Between two instants of either grid, so that what is due is what is expected.
        let end = anchor.saturating_add(MEASURED - NEIGHBOUR / 4);
        let left = end.saturating_since(Timestamp::from(SystemTime::now()));
        tokio::time::sleep(left).await;
        let statistics = neighbour.statistics();
        let _ = scheduler.shutdown(Duration::from_secs(3)).await;
        Ok::<_, BoxError>(statistics)
    })?;
    let samples = std::mem::take(&mut *samples.lock().unwrap_or_else(PoisonError::into_inner));
    Ok(Row {
        runtime: name,
        instants: if offset.is_zero() { "shared" } else { "offset" },
        expected: (MEASURED.as_nanos() / NEIGHBOUR.as_nanos()) as u64,
        started: statistics.started,
        coalesced: statistics.skipped(SkipReason::Coalesced),
        lateness: Quantiles::of(samples),
    })
}

fn build(ground: Ground) -> Result<(Runtime, String), BoxError> {
    let workers = |workers| Builder::new_multi_thread().worker_threads(workers).enable_all().build();
    Ok(match ground {
        Ground::Workers(count) => (workers(count)?, format!("multi_thread, {count} workers, on a worker")),
        Ground::CurrentThread => {
            (Builder::new_current_thread().enable_all().build()?, "current_thread, on its thread".to_owned())
        }
        Ground::BlockingKind => (workers(2)?, "multi_thread, 2 workers, on the blocking pool".to_owned()),
    })
}

fn print(rows: &[Row]) {
    let head =
        ["where the blocking job runs", "instants", "expected", "started", "coalesced", "late p50", "p99", "max"];
    let line = |row: &Row| {
        let mut cells = vec![row.runtime.clone(), row.instants.to_owned()];
        cells.extend([row.expected, row.started, row.coalesced].map(|count| count.to_string()));
        let Quantiles { p50_ms, p99_ms, max_ms } = row.lateness;
        cells.extend([p50_ms, p99_ms, max_ms].map(|figure| format!("{figure:.2} ms")));
        cells
    };
    let head = head.map(str::to_owned).to_vec();
    print_table(&std::iter::once(head).chain(rows.iter().map(line)).collect::<Vec<_>>());
    println!();
}
