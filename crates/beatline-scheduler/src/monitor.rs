//! Notices, from outside the runtime, that the runtime stands still.
//!
//! A thread of its own sleeps until shortly after the instant the driver is
//! armed for. If the driver has not looked by then, either no worker is free or a
//! worker went away with tokio's time driver: the thread pokes the runtime, which
//! cures the second, and reports the first as a stall. It also looks at the polls
//! that are under way: one that does not end is reported by the name of its job.
//!
//! # Ground rules
//!
//! * With nothing due and nothing being polled it sleeps without end: an idle
//!   scheduler stays idle.
//! * It is never in the path of a run, and is off while the clock is simulated.
//! * Between looks it holds no strong reference to the scheduler.

use std::collections::HashMap;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use beatline_core::{Monotonic, Stalled};

use crate::current::{self, PollUnderWay};
use crate::shared::{Phase, Shared};

/// How long after the armed instant the driver is missed.
const SLACK: Duration = Duration::from_millis(10);

/// The scheduler's side of the monitor.
pub(crate) struct Monitor {
    /// From which length on a stall is reported; off if `None`.
    threshold: Option<Duration>,
    signal: Arc<Signal>,
    /// Whom a stall was put down to, until the driver tells its length.
    suspect: Mutex<Option<Arc<str>>>,
}

/// What the driver and the thread tell each other. Instants are monotonic
/// nanoseconds, `i64::MAX` for never.
struct Signal {
    /// When the driver is expected to look again.
    armed: AtomicI64,
    /// A look asked for besides.
    expected: AtomicI64,
    /// How often the driver has looked.
    looks: AtomicU64,
    /// Until when the thread sleeps; `i64::MIN` while there is none.
    wakes_at: AtomicI64,
    stopped: Mutex<bool>,
    bell: Condvar,
}

impl Monitor {
    pub(crate) fn new(threshold: Option<Duration>) -> Self {
        Self { threshold, signal: Arc::new(Signal::new()), suspect: Mutex::new(None) }
    }

    /// Starts the thread. Where it cannot be started there is no monitor; the
    /// schedule does not depend on it.
    pub(crate) fn start(shared: &Arc<Shared>) {
        let Some(threshold) = shared.monitor.threshold else { return };
        if shared.clock.is_simulated() {
            return;
        }
        let (weak, signal) = (Arc::downgrade(shared), Arc::clone(&shared.monitor.signal));
        let thread = std::thread::Builder::new().name("beatline-monitor".to_owned());
        if let Err(error) = thread.spawn(move || Watch::new(threshold).run(&weak, &signal)) {
            tracing::warn!(target: "beatline", %error, "no stall monitor: its thread could not be started");
        }
    }

    pub(crate) fn stop(&self) {
        *self.signal.stopped() = true;
        self.signal.bell.notify_all();
    }

    /// The driver is about to sleep to this instant.
    pub(crate) fn driver_sleeps(&self, at: Monotonic) {
        self.signal.armed.store(at.nanoseconds(), Ordering::SeqCst);
        self.signal.ring_before(at.saturating_add(SLACK));
    }

    /// A run is on its way that no deadline announced.
    pub(crate) fn expect(&self, now: Monotonic) {
        let at = now.saturating_add(SLACK);
        self.signal.expected.fetch_min(at.nanoseconds(), Ordering::SeqCst);
        self.signal.ring_before(at);
    }

    /// The driver looks. If it slept for an instant, it tells how late it is.
    pub(crate) fn driver_looked(&self, now: Monotonic, slept_for: Option<Monotonic>, shared: &Shared) {
        self.signal.awake(now);
        let Some(threshold) = self.threshold.filter(|_| !shared.clock.is_simulated()) else { return };
        let lag = slept_for.map_or(Duration::ZERO, |at| now.saturating_since(at));
        if lag < threshold {
            return;
        }
        let suspect = self.suspect.lock().unwrap_or_else(PoisonError::into_inner).take();
        let mut stalled = Stalled::new(lag, suspect);
        stalled.over = true;
        stalled.driver_late = true;
        shared.report_stall(stalled);
    }
}

impl Signal {
    fn new() -> Self {
        Self {
            armed: AtomicI64::new(i64::MAX),
            expected: AtomicI64::new(i64::MAX),
            looks: AtomicU64::new(0),
            wakes_at: AtomicI64::new(i64::MIN),
            stopped: Mutex::new(false),
            bell: Condvar::new(),
        }
    }

    /// The driver looks: from now on it is expected to look again at once, unless
    /// it says what it sleeps for.
    fn awake(&self, now: Monotonic) {
        self.looks.fetch_add(1, Ordering::SeqCst);
        self.armed.store(now.nanoseconds(), Ordering::SeqCst);
    }

    fn stopped(&self) -> MutexGuard<'_, bool> {
        self.stopped.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Wakes the thread if it means to sleep past `at`.
    fn ring_before(&self, at: Monotonic) {
        if at.nanoseconds() < self.wakes_at.load(Ordering::SeqCst) {
            // Taking the lock closes the gap between the thread's reading and its sleep.
            drop(self.stopped());
            self.bell.notify_all();
        }
    }

    /// Sleeps until `at`, the driver's lateness or an expected run, whichever is
    /// first. Returns false when it is time to end.
    fn sleep(&self, at: Monotonic, now: Monotonic) -> bool {
        let mut stopped = self.stopped();
        let mut at = at;
        if !*stopped {
            self.wakes_at.store(at.nanoseconds(), Ordering::SeqCst);
            at = at
                .min(Monotonic::from_nanoseconds(self.armed.load(Ordering::SeqCst)).saturating_add(SLACK))
                .min(Monotonic::from_nanoseconds(self.expected.swap(i64::MAX, Ordering::SeqCst)));
            self.wakes_at.store(at.nanoseconds(), Ordering::SeqCst);
            stopped = if at == Monotonic::MAX {
                self.bell.wait(stopped).unwrap_or_else(PoisonError::into_inner)
            } else {
                let wait = at.saturating_since(now).max(Duration::from_millis(1));
                self.bell.wait_timeout(stopped, wait).unwrap_or_else(PoisonError::into_inner).0
            };
        }
        !*stopped
    }
}

/// The thread's side.
struct Watch {
    threshold: Duration,
    /// The polls seen at the last look, by slot.
    polls: HashMap<usize, Seen>,
    /// The look of the driver's after which a lateness was reported.
    reported_after: Option<u64>,
}

struct Seen {
    poll: PollUnderWay,
    since: Monotonic,
    reported: bool,
}

impl Watch {
    fn new(threshold: Duration) -> Self {
        Self { threshold, polls: HashMap::new(), reported_after: None }
    }

    fn run(mut self, weak: &Weak<Shared>, signal: &Signal) {
        let mut next = Monotonic::MAX;
        loop {
            let Some(now) = weak.upgrade().map(|shared| shared.now().monotonic) else { return };
            if !signal.sleep(next, now) {
                return;
            }
            let Some(shared) = weak.upgrade() else { return };
            if shared.phase() == Phase::Over {
                return;
            }
            next = self.look(&shared, signal);
        }
    }

    /// One look. Returns when to look again at the latest.
    fn look(&mut self, shared: &Shared, signal: &Signal) -> Monotonic {
        let now = shared.now().monotonic;
        self.look_at_polls(shared, now);
        let armed = Monotonic::from_nanoseconds(signal.armed.load(Ordering::SeqCst));
        let mut next = Monotonic::MAX;
        if armed.saturating_add(SLACK) <= now {
            // Wakes a parked worker, which then takes tokio's time driver.
            drop(shared.handle.spawn(async {}));
            self.look_at_driver(shared, signal, now, now.saturating_since(armed));
            next = now.saturating_add(SLACK);
        }
        if !self.polls.is_empty() {
            next = next.min(now.saturating_add((self.threshold / 2).max(SLACK)));
        }
        next
    }

    fn look_at_driver(&mut self, shared: &Shared, signal: &Signal, now: Monotonic, lag: Duration) {
        let looks = Some(signal.looks.load(Ordering::SeqCst));
        if lag < self.threshold || self.reported_after == looks {
            return;
        }
        self.reported_after = looks;
        let oldest = self.polls.values_mut().min_by_key(|seen| seen.since);
        // A poll that began only now is not to blame.
        let culprit = oldest.filter(|seen| now.saturating_since(seen.since) >= SLACK).and_then(|seen| {
            seen.reported = true;
            name_of(shared, seen.poll.job)
        });
        shared.monitor.suspect.lock().unwrap_or_else(PoisonError::into_inner).clone_from(&culprit);
        let mut stalled = Stalled::new(lag, culprit);
        stalled.driver_late = true;
        shared.report_stall(stalled);
    }

    /// Follows the polls under way: tells of those that do not end, and of their
    /// end.
    fn look_at_polls(&mut self, shared: &Shared, now: Monotonic) {
        let mut before = std::mem::take(&mut self.polls);
        for poll in current::polls(shared.id) {
            let seen = match before.remove(&poll.slot) {
                Some(seen) if seen.poll == poll => seen,
                other => {
                    if let Some(ended) = other {
                        report_end(shared, &ended, now);
                    }
                    Seen { poll, since: now, reported: false }
                }
            };
            self.polls.insert(poll.slot, seen);
        }
        for ended in before.values() {
            report_end(shared, ended, now);
        }
        for seen in self.polls.values_mut().filter(|seen| !seen.reported) {
            let lasted = now.saturating_since(seen.since);
            if lasted >= self.threshold {
                seen.reported = true;
                shared.report_stall(Stalled::new(lasted, name_of(shared, seen.poll.job)));
            }
        }
    }
}

fn report_end(shared: &Shared, ended: &Seen, now: Monotonic) {
    if ended.reported {
        let mut stalled = Stalled::new(now.saturating_since(ended.since), name_of(shared, ended.poll.job));
        stalled.over = true;
        shared.report_stall(stalled);
    }
}

fn name_of(shared: &Shared, sequence: u64) -> Option<Arc<str>> {
    shared.registry.find_by_sequence(sequence).map(|job| Arc::clone(&job.core().name))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A driver that never sleeps because there is much to do had once slept for
    /// an instant long past, and was reported as late for it.
    #[test]
    fn a_busy_driver_is_not_measured_by_what_it_slept_for_before() {
        let signal = Signal::new();
        let at = |seconds| Monotonic::ORIGIN.saturating_add(Duration::from_secs(seconds));
        signal.armed.store(at(1).nanoseconds(), Ordering::SeqCst);
        for second in 2..10 {
            signal.awake(at(second));
            assert_eq!(signal.armed.load(Ordering::SeqCst), at(second).nanoseconds());
        }
        assert_eq!(signal.looks.load(Ordering::SeqCst), 8);
    }
}
