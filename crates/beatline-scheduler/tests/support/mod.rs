//! What several test files share.
#![allow(dead_code, unreachable_pub, reason = "each test file is a crate of its own and uses a part")]
#![allow(clippy::unwrap_used, reason = "tests")]

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use beatline_scheduler::core::{Event, EventKind, Run, Timestamp, Verdict};
use beatline_scheduler::{JobHandle, SchedulerBuilder};
use beatline_test::scheduler_builder;
use tokio::time::Instant;

/// Where virtual time begins in these tests.
pub const ANCHOR: &str = "2026-01-01T10:00:00Z";

pub const fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

pub const fn millis(milliseconds: u64) -> Duration {
    Duration::from_millis(milliseconds)
}

/// Seconds after the anchor.
pub fn since_anchor(at: Timestamp) -> u64 {
    at.saturating_since(ANCHOR.parse().unwrap()).as_secs()
}

/// Everything that was observed, in order.
#[derive(Clone, Default)]
pub struct Observed(Arc<Mutex<Vec<Event>>>);

impl Observed {
    pub fn builder(&self) -> SchedulerBuilder {
        let events = Arc::clone(&self.0);
        scheduler_builder(ANCHOR).observer(move |event: &Event| events.lock().unwrap().push(event.clone()))
    }

    pub fn events(&self) -> Vec<Event> {
        self.0.lock().unwrap().clone()
    }

    pub fn count(&self, mut wanted: impl FnMut(&EventKind) -> bool) -> usize {
        self.events().iter().filter(|event| wanted(&event.kind)).count()
    }

    /// One line an occurrence, in the order of their fates:
    /// `0→23`, `13→17 late 3` by starts, `skipped overlap ×1 @10`.
    pub fn lines(&self) -> Vec<String> {
        let mut lines = Vec::new();
        for event in self.events() {
            let at = since_anchor(event.at.wall);
            match event.kind {
                EventKind::Finished(finished) => {
                    let due = since_anchor(finished.due);
                    let start = at - finished.duration.as_secs();
                    let late = if start > due { format!(" late {}", start - due) } else { String::new() };
                    let coalesced = match finished.run.coalesced {
                        0 => String::new(),
                        count => format!(" coalesced {count}"),
                    };
                    lines.push(format!("{due}: {start}→{at}{late}{coalesced} {}", finished.outcome));
                }
                EventKind::Decided(decided) => {
                    if let Verdict::Skipped(reason) = decided.verdict {
                        lines.push(format!("{}: skipped {reason}", since_anchor(decided.cursor_wall)));
                    }
                }
                EventKind::Skipped { reason, count } => lines.push(format!("@{at}: skipped {reason} ×{count}")),
                _ => {}
            }
        }
        lines
    }
}

/// A body whose k-th run lasts `durations[k]` seconds; the last one repeats.
pub fn lasting(durations: &'static [u64]) -> impl Fn(Run) -> Pin<Box<dyn Future<Output = ()> + Send>> + Send + Sync {
    let runs = std::sync::atomic::AtomicUsize::new(0);
    move |_run| {
        let run = runs.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
        let duration = durations[run.min(durations.len() - 1)];
        Box::pin(tokio::time::sleep(secs(duration)))
    }
}

/// Holds the only thread up for `duration` of virtual time: nothing can run.
pub async fn stall(duration: Duration) {
    tokio::time::advance(duration).await;
}

pub async fn until(instant: Instant) {
    let now = Instant::now();
    beatline_test::advance(instant - now).await;
}

pub fn assert_balanced(job: &JobHandle) {
    let statistics = job.statistics();
    assert!(statistics.is_balanced(), "{statistics:?}");
}

/// A running clock: current-thread for zero workers.
pub fn runtime(workers: usize) -> tokio::runtime::Runtime {
    let mut builder = match workers {
        0 => tokio::runtime::Builder::new_current_thread(),
        _ => tokio::runtime::Builder::new_multi_thread(),
    };
    builder.worker_threads(workers.max(1)).enable_all().build().unwrap()
}

/// A number of repetitions: a few in everyday runs, all of them with
/// `BEATLINE_LONG=1`.
pub fn repetitions(few: u64, all: u64) -> u64 {
    if std::env::var_os("BEATLINE_LONG").is_some() { all } else { few }
}
