//! The jobs: when each is due, what happens if it is late or slow, and what it
//! does.

use std::future::Future;
use std::sync::Arc;

use beatline::core::{BoxError, Keep};
use beatline::{Cron, Error, FixedDelay, FixedRate, JobHandle, JobResult, Overlap, Run, Scheduler};

use crate::journal::Journal;
use crate::market::{self, MarketClock, MarketTime};
use crate::pace::Pace;
use crate::sessions::Sessions;
use crate::source::Source;
use crate::store::Store;
use crate::trouble::Trouble;

/// Every job's name, in the order of the table.
pub(crate) const NAMES: [&str; 6] = ["quotes", "cache", "reconcile", "ack", "digest", "sessions"];

/// So many answers are acknowledged at once, without waiting for the time.
const BATCH: usize = 4;

/// What the jobs share.
pub(crate) struct Collector {
    pub(crate) source: Source,
    pub(crate) store: Store,
    pub(crate) sessions: Sessions,
    pub(crate) journal: Journal,
    pub(crate) trouble: Trouble,
    pub(crate) pace: Pace,
    pub(crate) market: MarketClock,
}

/// Adds all jobs. Times are the market's; `--speed` divides them.
pub(crate) fn add(scheduler: &Scheduler, collector: &Arc<Collector>) -> Result<Vec<JobHandle>, Error> {
    let pace = collector.pace;

    // Acknowledges what was stored when it is old enough, or when `quotes` says that it is enough.
    // Asked for during a run it runs once more, for what came in since.
    let ack = scheduler
        .job("ack", FixedDelay::after(pace.seconds(150)))
        .overlap(Overlap::BufferOne { keep: Keep::First })
        .timeout(pace.seconds(30))
        .with(collector.clone())
        .run(acknowledge)?;

    // The rhythm matters: a slow answer must not move the next question.
    let quotes = scheduler
        .job("quotes", FixedRate::every(pace.seconds(30)).immediately())
        .overlap(Overlap::Skip)
        .timeout(pace.seconds(10))
        .with((collector.clone(), ack.clone()))
        .run(fetch_quotes)?;

    // The pause matters: an exchange that is slow to answer is asked less often.
    let cache = scheduler
        .job("cache", FixedDelay::after(pace.seconds(300)).immediately())
        .timeout(pace.seconds(60))
        .with(collector.clone())
        .run(refresh_cache)?;

    // A time of day, in the market's zone and on its clock, which at speed 1 is the wall clock.
    let night = Cron::parse("0 3 * * mon-fri")?.zone(market::ZONE)?;
    let reconcile = scheduler
        .job("reconcile", MarketTime::new(collector.market, night))
        .timeout(pace.seconds(60))
        .with(collector.clone())
        .run(reconcile)?;

    // Waits for the disk, so it does it on a thread of its own.
    let digest = scheduler
        .job("digest", FixedDelay::after(pace.seconds(180)))
        .with(collector.clone())
        .run_blocking(digest_quotes)?;

    // Looks often and costs nothing, as long as there is nothing to do.
    let sessions = scheduler
        .job("sessions", FixedRate::every(pace.seconds(30)).initial_delay(pace.seconds(15)))
        .timeout(pace.seconds(30))
        .with(collector.clone())
        .run_check(check_sessions)?;

    Ok(vec![quotes, cache, reconcile, ack, digest, sessions])
}

async fn fetch_quotes(run: Run, (collector, ack): (Arc<Collector>, JobHandle)) -> JobResult {
    collector.trouble.strike(&run)?;
    let answer = collector.source.quotes().await?;
    collector.sessions.saw(&answer.quotes);
    if collector.store.append(&answer)? >= BATCH {
        // The ticket would tell how that run ends; here nobody waits for it. An error says that the
        // scheduler is shutting down, and then there is no hurry either.
        drop(ack.run_now());
    }
    Ok(())
}

async fn refresh_cache(run: Run, collector: Arc<Collector>) -> JobResult {
    collector.trouble.strike(&run)?;
    let sessions = collector.source.sessions().await?;
    collector.journal.note(&run, format!("{} sessions are open", sessions.len()));
    collector.sessions.renew(sessions);
    Ok(())
}

/// Compares what the exchange says it sent with what is stored, and asks again
/// for what is not.
async fn reconcile(run: Run, collector: Arc<Collector>) -> JobResult {
    collector.trouble.strike(&run)?;
    let mut sent = collector.source.sent().await?;
    // The newest may still be on its way to a run of `quotes`.
    sent.unacknowledged.pop();
    let mut missing = Vec::new();
    for id in sent.unacknowledged.into_iter().filter(|id| !collector.store.contains(*id)) {
        let answer = collector.source.answer(id).await?;
        collector.store.append(&answer)?;
        missing.push(format!("#{}", id.number));
    }
    let result = match missing.as_slice() {
        [] => "none is missing".to_owned(),
        missing => format!("{} missing, fetched again: {}", missing.len(), missing.join(" ")),
    };
    collector.journal.note(&run, format!("answers sent: {}, {result}", sent.answers));
    Ok(())
}

async fn acknowledge(run: Run, collector: Arc<Collector>) -> JobResult {
    collector.trouble.strike(&run)?;
    let batch = collector.store.unacknowledged();
    if !batch.is_empty() {
        collector.source.acknowledge(&batch).await?;
        collector.store.acknowledged(&batch);
    }
    Ok(())
}

fn digest_quotes(run: Run, collector: Arc<Collector>) -> JobResult {
    collector.trouble.strike(&run)?;
    let (quotes, unreadable) = collector.store.digest(|| run.is_cancelled())?;
    if unreadable > 0 {
        return Err(format!("{unreadable} lines of {} cannot be read", collector.store.path().display()).into());
    }
    collector.journal.note(&run, format!("{quotes} quotes are on disk"));
    Ok(())
}

/// The look itself is synchronous. Only if a session is stale there is a future,
/// and the run goes on with it.
fn check_sessions(run: Run, collector: Arc<Collector>) -> Option<impl Future<Output = JobResult>> {
    let struck = collector.trouble.strike(&run);
    let stale = collector.sessions.stale(collector.pace.seconds(90));
    let something_to_do = struck.is_err() || !stale.is_empty();
    something_to_do.then_some(async move {
        struck?;
        wake(&run, &collector, &stale).await
    })
}

async fn wake(run: &Run, collector: &Collector, stale: &[String]) -> Result<(), BoxError> {
    for session in stale {
        collector.source.wake(session).await?;
        collector.journal.note(run, format!("{session} looked stale and was woken"));
    }
    Ok(())
}
