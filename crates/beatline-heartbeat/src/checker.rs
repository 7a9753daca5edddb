//! The checker: register, sweep, start, shut down.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Weak};
use std::time::Duration;

use async_trait::async_trait;
use beatline_core::{Error, Job, JobResult, Run};
use tokio::runtime::Handle;

use crate::Key;
use crate::beat::{Beat, Status};
use crate::builder::Builder;
use crate::class::Class;
use crate::keyed::Keyed;
use crate::shared::{Shared, Sweep, Sweeping};
use crate::statistics::Statistics;
use crate::sync::lock;
use crate::telemetry;

/// More classes than this are a mistake: each has chunks of its own.
const MAX_CLASSES: usize = 256;

/// Watches over many connections with one timer.
///
/// Clones are handles to one checker. Dropping the last of them shuts it down:
/// its tasks end, waits for an expiry end with
/// [`Ended::ShutDown`](crate::Ended::ShutDown), and [`Beat`]s that are still held
/// never expire. [`Beat`]s do not keep a checker running; a [`Keyed`] does.
///
/// A checker is also a [`Job`]: scheduled at a fixed rate of
/// [`sweep_interval`](HeartbeatChecker::sweep_interval) it needs no timer of its
/// own, and any number of checkers share that of their scheduler.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use beatline_heartbeat::HeartbeatChecker;
/// use std::time::Duration;
///
/// let checker = HeartbeatChecker::new(Duration::from_secs(30))?;
/// checker.start()?;
/// let beat = checker.register(7_u64);
/// assert!(beat.touch().is_ok());
/// # Ok(()) }
/// ```
pub struct HeartbeatChecker<K: Key> {
    shared: Arc<Shared<K>>,
    owner: Arc<Owner<K>>,
}

/// Shared by all checker handles, and by nothing else.
struct Owner<K: Key>(Arc<Shared<K>>);

impl<K: Key> Drop for Owner<K> {
    fn drop(&mut self) {
        let shared = &self.0;
        if !shared.table.is_closed() {
            shared.close();
            let statistics = shared.statistics();
            telemetry::closed(statistics.alive, statistics.unreported);
        }
        shared.reports.close();
    }
}

impl<K: Key> HeartbeatChecker<K> {
    /// A checker that declares a connection dead after `timeout` of silence,
    /// with everything else as [`Builder`] has it by default.
    ///
    /// # Errors
    ///
    /// Those of [`Builder::build`].
    pub fn new(timeout: Duration) -> Result<Self, Error> {
        Self::builder(timeout).build()
    }

    /// Settings to change before the checker is made.
    pub fn builder(timeout: Duration) -> Builder<K> {
        Builder::new(timeout)
    }

    pub(crate) fn from_shared(shared: Arc<Shared<K>>) -> Self {
        Self { owner: Arc::new(Owner(Arc::clone(&shared))), shared }
    }

    pub(crate) fn shared(&self) -> &Arc<Shared<K>> {
        &self.shared
    }

    /// Puts a connection under watch, with the time-out of the checker. It is
    /// alive, and has a full time-out before it.
    ///
    /// The key is for reports. Several connections may have the same, such as
    /// the old and the new one of a client that came back.
    ///
    /// # Panics
    ///
    /// Beyond 4,294,901,760 connections.
    pub fn register(&self, key: K) -> Beat<K> {
        let class = self.default_class();
        Beat::new(Arc::clone(&self.shared), self.shared.table.register(&class, key))
    }

    /// A class of connections with a time-out of their own. Asking for the same
    /// time-out again answers the same class.
    ///
    /// # Errors
    ///
    /// [`Error::Invalid`] naming `timeout`, if it is zero, too long for the tick
    /// (see [`Builder::build`]), or shorter than the tick; or naming
    /// `timeout_class`, if there are 256 classes already.
    pub fn timeout_class(&self, timeout: Duration) -> Result<TimeoutClass<K>, Error> {
        if timeout < self.shared.settings.step.saturating_mul(3) {
            return Err(Error::invalid("timeout", format!("{timeout:?} is shorter than the tick of the checker")));
        }
        let mut classes = lock(&self.shared.classes);
        // The first is the checker's own, whose suspect threshold may be one that was asked for.
        let known = classes.iter().skip(1).find(|class| class.timeout == timeout);
        let class = match known {
            Some(class) => Arc::clone(class),
            None if classes.len() > MAX_CLASSES => {
                return Err(Error::invalid("timeout_class", "a checker has at most 256 classes of time-outs"));
            }
            None => {
                let class = self.shared.settings.class(timeout, None)?;
                classes.push(Arc::clone(&class));
                class
            }
        };
        Ok(TimeoutClass { class, checker: Arc::downgrade(&self.shared) })
    }

    /// Puts a connection under watch, with the time-out of `class`.
    ///
    /// # Errors
    ///
    /// [`Error::Invalid`] naming `class`, if it is of another checker.
    ///
    /// # Panics
    ///
    /// Beyond 4,294,901,760 connections.
    pub fn register_in(&self, class: &TimeoutClass<K>, key: K) -> Result<Beat<K>, Error> {
        self.check(class)?;
        Ok(Beat::new(Arc::clone(&self.shared), self.shared.table.register(&class.class, key)))
    }

    pub(crate) fn check(&self, class: &TimeoutClass<K>) -> Result<(), Error> {
        if std::ptr::eq(class.checker.as_ptr(), Arc::as_ptr(&self.shared)) {
            return Ok(());
        }
        Err(Error::invalid("class", "belongs to another checker"))
    }

    pub(crate) fn default_class(&self) -> Arc<Class> {
        match lock(&self.shared.classes).first() {
            Some(class) => Arc::clone(class),
            None => unreachable!("a checker is made with its own class"),
        }
    }

    /// A front by key, for those who have ids rather than handles. All fronts of
    /// a checker are one.
    #[must_use]
    pub fn keyed(&self) -> Keyed<K>
    where
        K: std::hash::Hash + Eq,
    {
        Keyed::of(self.clone())
    }

    /// Three times a tick: how often [`sweep`](HeartbeatChecker::sweep) wants to
    /// be called, by whoever drives the checker otherwise than by
    /// [`start`](HeartbeatChecker::start) or [`run`](HeartbeatChecker::run).
    #[must_use]
    pub fn sweep_interval(&self) -> Duration {
        self.shared.settings.step
    }

    /// One sweep: reads the clock, expires what is due, hands out what was
    /// found. For those who drive the checker themselves.
    ///
    /// Harmless at any time and from any thread; while another sweep is under
    /// way, or after shutdown, it does nothing. Callbacks, probes and pings run
    /// on the current tokio runtime, or else on the one the checker was started
    /// on; where there is neither, expired edges wait in the table.
    pub fn sweep(&self) -> Sweep {
        let Some(mut sweeping) = Sweeping::begin(&self.shared) else { return self.idle_sweep() };
        while sweeping.slice() {}
        sweeping.finish()
    }

    /// The same, letting other tasks run in between if very much is found.
    async fn sweep_in_slices(&self) -> Sweep {
        sweep_in_slices(&self.shared).await.unwrap_or_else(|| self.idle_sweep())
    }

    fn idle_sweep(&self) -> Sweep {
        Sweep { until_next: self.sweep_interval(), ..Sweep::default() }
    }

    /// Sweeps on a task of the current tokio runtime, until the checker shuts
    /// down, the last handle of it is dropped, or the runtime goes away (then it
    /// can be started on another). Starting it twice does no harm and no good.
    ///
    /// # Errors
    ///
    /// [`Error::NoRuntime`] outside a runtime, [`Error::NoTimeDriver`] if its
    /// timer is off, [`Error::ShuttingDown`] after shutdown.
    pub fn start(&self) -> Result<(), Error> {
        if self.shared.table.is_closed() {
            return Err(Error::ShuttingDown);
        }
        let runtime = Handle::try_current().map_err(|_| Error::NoRuntime)?;
        // tokio offers no question for this; it panics.
        if catch_unwind(AssertUnwindSafe(|| drop(tokio::time::sleep(Duration::ZERO)))).is_err() {
            return Err(Error::NoTimeDriver);
        }
        let _ = self.shared.runtime.set(runtime.clone());
        runtime.spawn(drive(Arc::downgrade(&self.shared)));
        Ok(())
    }

    /// Sweeps in the caller's task until the checker shuts down. Callbacks,
    /// probes and pings have tasks of their own all the same.
    ///
    /// # Panics
    ///
    /// Outside a tokio runtime with its timer on, as all of tokio's timers do.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future stops the sweeps and loses nothing: what is due is
    /// found by the next one.
    pub async fn run(&self) {
        drive(Arc::downgrade(&self.shared)).await;
    }

    /// What has been counted so far.
    #[must_use]
    pub fn statistics(&self) -> Statistics {
        self.shared.statistics()
    }

    /// Every connection as it is now, group by group: consistent within a group
    /// of 1,024. Clones every key; for status pages, not for hot paths.
    #[must_use]
    pub fn snapshot(&self) -> Snapshot<K> {
        let step = self.shared.table.step();
        let mut connections = Vec::new();
        self.shared.table.read(
            |_| 0..u32::MAX,
            |_, class, key, word| {
                let status = Status::of(word.state());
                let age = u32::try_from(word.age(step)).unwrap_or(u32::MAX);
                let silence = self.shared.settings.step.saturating_mul(age);
                let silence = (status != Status::Expired).then_some(silence);
                connections.push(Connection { key, status, timeout: class.timeout, silence });
            },
        );
        Snapshot { connections, statistics: self.statistics() }
    }

    /// Ends it: no connection expires from here on, waits for expiries end,
    /// probes and pings are dropped. Then waits, at most until `deadline` has
    /// passed, for callbacks to take every edge that was found before, and
    /// answers what was counted. A stream of events goes on to its end by
    /// itself.
    ///
    /// Idempotent. Called from inside a callback of this checker it does not
    /// wait: it would wait for itself.
    ///
    /// # Cancel safety
    ///
    /// Dropped, it has shut the checker down if it was polled once; callbacks
    /// under way go on.
    pub async fn shutdown(&self, deadline: Duration) -> Statistics {
        let shared = &self.shared;
        shared.close();
        if let (Ok(runtime), false) = (Handle::try_current(), crate::workers::inside_callback()) {
            let drained = async {
                // Most often there is nothing to wait for, and no timer is needed to find out.
                shared.dispatch_reports(&runtime);
                shared.reports.idle().await;
                // What a failing callback put back gets one more chance.
                shared.table.ready_returned();
                shared.dispatch_reports(&runtime);
                shared.reports.idle().await;
                shared.background.idle().await;
            };
            let mut drained = std::pin::pin!(drained);
            if futures::poll!(drained.as_mut()).is_pending() {
                let _ = tokio::time::timeout(deadline, drained).await;
            }
            shared.reports.close();
        }
        let statistics = shared.statistics();
        telemetry::closed(statistics.alive, statistics.unreported);
        statistics
    }

    /// Whether it has shut down.
    #[must_use]
    pub fn is_shut_down(&self) -> bool {
        self.shared.table.is_closed()
    }
}

async fn sweep_in_slices<K: Key>(shared: &Arc<Shared<K>>) -> Option<Sweep> {
    let mut sweeping = Sweeping::begin(shared)?;
    while sweeping.slice() {
        tokio::task::yield_now().await;
    }
    Some(sweeping.finish())
}

/// Sleeps and sweeps. Holds the checker only while it sweeps.
async fn drive<K: Key>(checker: Weak<Shared<K>>) {
    loop {
        let begun = tokio::time::Instant::now();
        let Some(shared) = checker.upgrade() else { return };
        let stopped = shared.stop.notified();
        tokio::pin!(stopped);
        stopped.as_mut().enable();
        if shared.table.is_closed() {
            return;
        }
        let until_next = match sweep_in_slices(&shared).await {
            Some(sweep) => sweep.until_next,
            None => shared.settings.step,
        };
        tokio::select! {
            () = stopped => return,
            () = tokio::time::sleep_until(begun + until_next) => {}
        }
    }
}

#[async_trait]
impl<K: Key> Job for HeartbeatChecker<K> {
    /// One sweep.
    async fn run(&self, _run: Run) -> JobResult {
        self.sweep_in_slices().await;
        Ok(())
    }
}

impl<K: Key> Clone for HeartbeatChecker<K> {
    fn clone(&self) -> Self {
        Self { shared: Arc::clone(&self.shared), owner: Arc::clone(&self.owner) }
    }
}

impl<K: Key> fmt::Debug for HeartbeatChecker<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HeartbeatChecker").field("statistics", &self.statistics()).finish_non_exhaustive()
    }
}

/// Connections of a checker that share a time-out; see
/// [`timeout_class`](HeartbeatChecker::timeout_class).
pub struct TimeoutClass<K: Key> {
    class: Arc<Class>,
    checker: Weak<Shared<K>>,
}

impl<K: Key> TimeoutClass<K> {
    /// The time-out.
    #[must_use]
    pub fn timeout(&self) -> Duration {
        self.class.timeout
    }

    pub(crate) fn class(&self) -> &Arc<Class> {
        &self.class
    }
}

impl<K: Key> Clone for TimeoutClass<K> {
    fn clone(&self) -> Self {
        Self { class: Arc::clone(&self.class), checker: Weak::clone(&self.checker) }
    }
}

impl<K: Key> fmt::Debug for TimeoutClass<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TimeoutClass").field("timeout", &self.timeout()).finish_non_exhaustive()
    }
}

/// All connections of a checker at one time.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Snapshot<K> {
    /// The connections, in no particular order.
    pub connections: Vec<Connection<K>>,
    /// What was counted.
    pub statistics: Statistics,
}

/// One connection in a [`Snapshot`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Connection<K> {
    /// Which one.
    pub key: K,
    /// What it is.
    pub status: Status,
    /// The time-out of its class.
    pub timeout: Duration,
    /// How long it has been silent, to a third of a tick; `None` once it has
    /// expired.
    pub silence: Option<Duration>,
}
