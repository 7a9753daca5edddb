//! What all handles of one checker share, and one sweep of it.
//!
//! # Ground rules
//!
//! The [`Pace`] is taken out for the length of a sweep and put back by its
//! `Drop`, so there is one sweeper at a time, and one that is dropped between
//! two slices or panics leaves the checker able to sweep. Foreign code (wakers,
//! callbacks, the clock) runs with no lock held.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, OnceLock};
use std::task::Waker;
use std::time::Duration;

use beatline_core::{Clock, Error, Moment};
use tokio::runtime::Handle;
use tokio::sync::Notify;

use crate::class::{Class, Thresholds};
use crate::event::{Batch, Outbox, Sink};
use crate::pace::{Pace, Progress};
use crate::ping::Pinging;
use crate::probe::{Background, Probing};
use crate::statistics::Statistics;
use crate::sync::{AtomicU64, Mutex, Ordering, lock};
use crate::table::{Found, Table};
use crate::workers::{Workers, panic_text};
use crate::{Key, telemetry};

/// A sweep that found so many edges lets others run before it goes on.
const EDGES_A_SLICE: u64 = 16_384;

/// What the builder was told, as far as classes need it.
pub(crate) struct Settings {
    pub(crate) step: Duration,
    pub(crate) missed: u32,
    pub(crate) suspects: bool,
    pub(crate) grace: Option<Duration>,
}

impl Settings {
    pub(crate) fn class(&self, timeout: Duration, suspect_after: Option<Duration>) -> Result<Arc<Class>, Error> {
        if timeout.is_zero() {
            return Err(Error::invalid("timeout", "must be more than zero"));
        }
        let silence = timeout.saturating_mul(self.missed);
        // By default: the first missed time-out, or half of the only one.
        let default = if self.missed > 1 { timeout } else { timeout / 2 };
        let suspect_after = self.suspects.then(|| suspect_after.unwrap_or(default));
        let thresholds = Thresholds::new(silence, suspect_after, self.grace.unwrap_or(timeout), self.step)?;
        Ok(Arc::new(Class::new(timeout, thresholds)))
    }
}

/// The keyed front, as far as others need it.
pub(crate) trait Front<K>: Send + Sync {
    /// The expiry of this connection has been reported.
    fn forget(&self, key: &K, index: u32);
    /// Its map, whose type needs more of a key than a checker does.
    fn map(&self) -> &dyn std::any::Any;
}

pub(crate) struct Shared<K: Key> {
    pub(crate) table: Table<K>,
    pub(crate) settings: Settings,
    pub(crate) classes: Mutex<Vec<Arc<Class>>>,
    pub(crate) clock: Arc<dyn Clock>,
    /// `None` while a sweep is under way.
    pub(crate) pace: Mutex<Option<Pace>>,
    pub(crate) outbox: Outbox<K>,
    pub(crate) probing: Option<Probing<K>>,
    pub(crate) pinging: Option<Pinging<K>>,
    pub(crate) reports: Workers,
    pub(crate) background: Background,
    /// Where callbacks run when a sweep is called from outside a runtime.
    pub(crate) runtime: OnceLock<Handle>,
    pub(crate) front: OnceLock<Box<dyn Front<K>>>,
    pub(crate) stop: Notify,
    pub(crate) swept: Mutex<Statistics>,
    pub(crate) panics: AtomicU64,
}

impl<K: Key> Shared<K> {
    pub(crate) fn suspect_count(&self) -> u64 {
        settled(&self.table.counters().suspect)
    }

    pub(crate) fn unreported_count(&self) -> u64 {
        settled(&self.table.counters().unreported)
    }

    pub(crate) fn statistics(&self) -> Statistics {
        let counters = self.table.counters();
        // The ends before the beginnings: never more ended than registered.
        let expired = counters.expired.load(Ordering::Acquire);
        let removed = counters.removed.load(Ordering::Acquire);
        let registered = counters.registered.load(Ordering::Acquire);
        let of = |counter: Option<&AtomicU64>| counter.map_or(0, |counter| counter.load(Ordering::Relaxed));
        Statistics {
            registered,
            alive: registered.saturating_sub(expired + removed),
            suspect: self.suspect_count(),
            expired,
            removed,
            unreported: self.unreported_count(),
            suspected: counters.suspected.load(Ordering::Relaxed),
            recovered: counters.recovered.load(Ordering::Relaxed),
            events_dropped: self.outbox.dropped.load(Ordering::Relaxed),
            callback_panics: self.panics.load(Ordering::Relaxed),
            probes_answered: of(self.probing.as_ref().map(|probing| &probing.answered)),
            probes_failed: of(self.probing.as_ref().map(|probing| &probing.failed)),
            pings: of(self.pinging.as_ref().map(|pinging| &pinging.sent)),
            ..lock(&self.swept).clone()
        }
    }

    /// Counts and logs a panic of foreign code.
    pub(crate) fn contained(&self, callback: &'static str, message: &str) {
        self.panics.fetch_add(1, Ordering::Relaxed);
        telemetry::panicked(callback, message);
    }

    pub(crate) fn wake(&self, wakers: Vec<Waker>) {
        for waker in wakers {
            if let Err(payload) = catch_unwind(AssertUnwindSafe(|| waker.wake())) {
                self.contained("waker", &panic_text(payload));
            }
        }
    }

    fn current_runtime(&self) -> Option<Handle> {
        Handle::try_current().ok().or_else(|| self.runtime.get().cloned())
    }

    /// Hands edges to callbacks while there are edges and places free.
    pub(crate) fn dispatch_reports(self: &Arc<Self>, runtime: &Handle) {
        let Sink::Callback(callback) = &self.outbox.sink else { return };
        while let Some(permit) = callback.gate.enter() {
            let hand = self.hand(callback.batch_size);
            if hand.is_empty() {
                return;
            }
            let batch = Batch::new(Arc::clone(self), hand);
            let shared = Arc::clone(self);
            let report = async move {
                if let Sink::Callback(callback) = &shared.outbox.sink {
                    (callback.call)(batch).await;
                }
            };
            let (shared, panicking) = (Arc::clone(self), Arc::clone(self));
            let runs = self.reports.spawn(
                runtime,
                report,
                move |payload| panicking.contained("event callback", &panic_text(payload)),
                move || {
                    drop(permit);
                    if let Ok(runtime) = Handle::try_current() {
                        shared.dispatch_reports(&runtime);
                    }
                },
            );
            if !runs {
                return;
            }
        }
    }

    /// Without a consumer nobody claims edges; the keyed front still forgets
    /// the keys of the dead.
    fn reap(&self) {
        if self.outbox.listens() || self.front.get().is_none() {
            return;
        }
        loop {
            let mut hand = Vec::new();
            self.table.collect(1_024, &mut hand);
            if hand.is_empty() {
                return;
            }
            hand.into_iter().for_each(|edge| drop(self.claim(edge)));
        }
    }

    /// No expiry from here on. Idempotent.
    pub(crate) fn close(&self) {
        let wakers = self.table.close();
        self.wake(wakers);
        self.stop.notify_waiters();
        self.background.close();
        self.outbox.wake_stream();
    }

    /// Whether everything that will ever be found has been found.
    pub(crate) fn is_finished(&self) -> bool {
        self.table.is_closed() && lock(&self.pace).is_some()
    }
}

/// A counter that may be decremented before it is incremented.
fn settled(counter: &AtomicU64) -> u64 {
    u64::try_from(counter.load(Ordering::Relaxed) as i64).unwrap_or(0)
}

/// What one sweep did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Sweep {
    /// How late it began, against the step that was next.
    pub lag: Duration,
    /// How long the checker or the machine had stood still before it, if it had.
    pub pause: Option<Duration>,
    /// Groups of 1,024 connections it had to look into.
    pub chunks_scanned: u64,
    /// Connections that became suspect.
    pub suspected: u64,
    /// Connections that expired.
    pub expired: u64,
    /// Until the next sweep is due, from when this one began.
    pub until_next: Duration,
}

/// A sweep under way.
pub(crate) struct Sweeping<'a, K: Key> {
    shared: &'a Arc<Shared<K>>,
    pace: Option<Pace>,
    begun: Moment,
    progress: Progress,
    /// The next chunk; `None` at the end.
    next: Option<u32>,
    sweep: Sweep,
}

impl<'a, K: Key> Sweeping<'a, K> {
    /// Reads the clock and publishes the step. `None` if the checker has shut
    /// down or a sweep is under way.
    pub(crate) fn begin(shared: &'a Arc<Shared<K>>) -> Option<Self> {
        if shared.table.is_closed() {
            return None;
        }
        let now = shared.clock.now();
        let pace = lock(&shared.pace).take()?;
        let mut sweeping = Self {
            shared,
            pace: Some(pace),
            begun: now,
            progress: Progress {
                previous: 0,
                step: 0,
                lag: Duration::ZERO,
                pause: None,
                until_next: shared.settings.step,
            },
            next: None,
            sweep: Sweep::default(),
        };
        sweeping.read();
        Some(sweeping)
    }

    fn read(&mut self) {
        let Some(pace) = &mut self.pace else { return };
        let progress = pace.advance(self.begun);
        let classes = lock(&self.shared.classes).clone();
        pace.prune(classes.iter().map(|class| class.thresholds.expire).max().unwrap_or(0));
        if let Some(pause) = progress.pause {
            classes.iter().for_each(|class| class.forgive(progress.step));
            telemetry::paused(pause);
        }
        if progress.step != progress.previous {
            self.shared.table.publish(progress.step);
            self.next = Some(0);
        }
        self.shared.table.ready_returned();
        self.sweep.lag = progress.lag;
        self.sweep.pause = progress.pause;
        self.sweep.until_next = progress.until_next;
        self.progress = progress;
    }

    /// One slice. Answers whether there is more to do.
    pub(crate) fn slice(&mut self) -> bool {
        let (Some(from), Some(pace)) = (self.next, &self.pace) else { return false };
        if self.shared.table.is_closed() {
            return false;
        }
        let mut found = Found::default();
        self.next = self.shared.table.sweep(from, &pace.gaps, self.progress.step, EDGES_A_SLICE, &mut found);
        self.sweep.chunks_scanned += found.chunks_scanned;
        self.sweep.suspected += found.suspects.len() as u64;
        self.sweep.expired += found.expired;
        if found.expired > 0 {
            let overdue = u32::try_from(found.overdue).unwrap_or(u32::MAX);
            let delay = self.shared.settings.step.saturating_mul(overdue).saturating_add(self.progress.lag);
            lock(&self.shared.swept).detection_delay.record(delay, found.expired);
        }
        self.shared.wake(found.wakers);
        if !found.suspects.is_empty() {
            self.shared.outbox.push_suspects(&found.suspects);
            self.shared.queue_probes(&found.suspects);
        }
        self.next.is_some()
    }

    /// Lets others know what was found.
    pub(crate) fn finish(self) -> Sweep {
        let shared = self.shared;
        if self.sweep.suspected + self.sweep.expired > 0 {
            shared.outbox.wake_stream();
        }
        shared.reap();
        if let Some(runtime) = shared.current_runtime() {
            shared.dispatch_reports(&runtime);
            shared.dispatch_probes(&runtime);
            if !shared.table.is_closed() {
                shared.dispatch_pings(&self.progress, &runtime);
            }
        }
        telemetry::swept(self.sweep.suspected, self.sweep.expired);
        let took = shared.clock.now().monotonic.saturating_since(self.begun.monotonic);
        let mut swept = lock(&shared.swept);
        swept.sweeps += 1;
        swept.pauses += u64::from(self.sweep.pause.is_some());
        swept.chunks_scanned += self.sweep.chunks_scanned;
        swept.sweep_duration.record(took, 1);
        swept.sweep_lag.record(self.sweep.lag, 1);
        self.sweep
    }
}

impl<K: Key> Drop for Sweeping<'_, K> {
    fn drop(&mut self) {
        *lock(&self.shared.pace) = self.pace.take();
        if self.shared.table.is_closed() {
            // A stream that waited for the end of this sweep to end itself.
            self.shared.outbox.wake_stream();
        }
    }
}
