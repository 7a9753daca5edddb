//! A collector of market data, as a program of six jobs.
//!
//! ```text
//!                        quotes ─────────▶ quotes.jsonl ◀──── digest (blocking)
//!   exchange ◀── HTTP ── cache, sessions        │
//!                        ack ◀── run now ───────┤
//!                        reconcile ◀────────────┘
//! ```
//!
//! `jobs.rs` is the file to read first: when each job is due, what happens if it
//! overlaps, and what it does. `cargo run --release -p examples --example
//! collector -- --help` tells the options.

mod exchange;
mod jobs;
mod journal;
mod market;
mod options;
mod pace;
mod sessions;
mod source;
mod store;
mod summary;
mod terminal;
mod text;
mod trouble;
mod view;
mod wire;

use std::fs::File;
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use beatline::core::{BoxError, error_chain};
use beatline::scheduler::Status;
use beatline::{Scheduler, Shutdown, Timestamp, shutdown_signal};
use clap::Parser;
use tokio::runtime::Handle;

use crate::exchange::Exchange;
use crate::jobs::Collector;
use crate::journal::Journal;
use crate::market::MarketClock;
use crate::options::{Options, refuse};
use crate::sessions::Sessions;
use crate::source::Source;
use crate::store::Store;
use crate::summary::Summary;

/// Four workers even on a small machine: one that is blocked leaves three.
#[tokio::main(worker_threads = 4)]
async fn main() -> ExitCode {
    match collect(Options::parse()).await {
        Ok(code) => code,
        Err(error) => {
            eprintln!("collector: {}", error_chain(&*error));
            ExitCode::FAILURE
        }
    }
}

async fn collect(options: Options) -> Result<ExitCode, BoxError> {
    let tasks_before = alive_tasks();
    let signal = shutdown_signal()?;

    // Whatever can be wrong with the options is found before anything starts.
    let summary_file = options.summary.as_ref().map(|path| match File::create(path) {
        Ok(file) => file,
        Err(error) => refuse("--summary", format!("{}: {error}", path.display()), "give a file that can be written"),
    });
    let directory = options.data.clone().unwrap_or_else(fresh_directory);
    let store = Store::open(directory.clone()).unwrap_or_else(|error| {
        refuse("--data", format!("{}: {error}", directory.display()), "give a directory that can be written")
    });
    let (url, exchange) = match options.source {
        Some(url) => (url, None),
        None => {
            let exchange = Exchange::open(options.listen, options.speed).await.unwrap_or_else(|error| {
                refuse("--listen", format!("{}: {error}", options.listen), "give an address and port that are free")
            });
            (format!("http://{}/", exchange.address()).parse()?, Some(exchange))
        }
    };

    let (journal, entries) = Journal::open();
    let collector = Arc::new(Collector {
        source: Source::new(url, client_name()),
        store,
        sessions: Sessions::default(),
        journal: journal.clone(),
        trouble: options.trouble,
        pace: options.speed,
        market: MarketClock::starting(Timestamp::from(SystemTime::now()), options.speed.factor()),
    });
    journal.say(collector.market.in_words());
    let whose = if exchange.is_some() { "our own exchange" } else { "the exchange" };
    journal.say(format!(
        "collecting from {whose} at {} into {}",
        collector.source.url(),
        collector.store.path().display()
    ));
    let scheduler = Scheduler::builder().name("collector").observer(journal.clone()).build()?;
    let mut jobs = jobs::add(&scheduler, &collector)?;
    jobs.extend(collector.trouble.add_jobs(&scheduler, collector.pace)?);

    let view = view::start(entries, jobs.clone(), collector.clone())?;

    tokio::select! {
        () = signal => journal.say("asked to end"),
        () = time_is_up(options.run_for) => journal.say("time is up"),
    }
    // Taken only now, or it would hear of the first signal as well.
    let second_signal = shutdown_signal()?;
    let mut shutting_down = scheduler.shutdown(Shutdown::within(Duration::from_secs(5)));
    let report = tokio::select! {
        report = &mut shutting_down => report,
        () = second_signal => {
            drop(scheduler.shutdown(Shutdown::now()));
            shutting_down.await
        }
    };

    journal.end();
    // It panics only if drawing does, and then the books matter all the more.
    let _ = view.join();
    let books: Vec<Status> = jobs.iter().map(|job| job.status()).collect();
    let (totals, path) = (collector.store.totals(), collector.store.path());
    drop((jobs, scheduler, collector));
    if let Some(exchange) = exchange {
        exchange.close().await;
    }
    let summary = Summary::new(&books, tasks_left(tasks_before).await);

    let mut out = std::io::stdout().lock();
    // Who closed the other end wants no summary; the exit code tells all the same.
    let _ = summary.print(&mut out);
    let _ = writeln!(out, "{} quotes in {} answers are in {}", totals.quotes, totals.answers, path.display());
    if let Some(mut file) = summary_file {
        file.write_all(summary.to_json()?.as_bytes())?;
    }
    let code = if summary.is_clean() { ExitCode::SUCCESS } else { ExitCode::FAILURE };
    if !report.still_running.is_empty() {
        // A run that blocks its thread cannot be stopped, and the runtime would wait for it.
        std::process::exit(if summary.is_clean() { 0 } else { 1 });
    }
    Ok(code)
}

async fn time_is_up(run_for: Option<Duration>) {
    match run_for {
        Some(duration) => tokio::time::sleep(duration).await,
        None => std::future::pending().await,
    }
}

fn alive_tasks() -> usize {
    Handle::current().metrics().num_alive_tasks()
}

/// How many more tasks are alive than before, after a moment for those that are
/// just ending.
async fn tasks_left(before: usize) -> usize {
    for _ in 0..100 {
        if alive_tasks() <= before {
            break;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    alive_tasks().saturating_sub(before)
}

fn fresh_directory() -> PathBuf {
    std::env::temp_dir().join(client_name())
}

/// Different for every start, on this machine and others.
fn client_name() -> String {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    format!("collector-{}-{}", std::process::id(), now.as_millis())
}
