//! Asking a suspect before it is declared dead.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use beatline_core::BoxError;
use futures::FutureExt;
use tokio::runtime::Handle;

use crate::Key;
use crate::shared::Shared;
use crate::sync::{AtomicU64, Mutex, Ordering, lock};
use crate::telemetry;
use crate::word::Word;
use crate::workers::{Gate, Workers, panic_text};

/// Asks a suspect connection whether it is alive.
///
/// Called once for each silence, when the connection becomes suspect and a
/// place is free (see [`probe_concurrency`](crate::Builder::probe_concurrency)),
/// on a task of the runtime, with no lock held. `Ok` counts as a beat, if the
/// connection is still the same and still suspect; an error, a panic (contained
/// and counted) and a probe that takes longer than
/// [`probe_timeout`](crate::Builder::probe_timeout) change nothing: the time-out
/// goes on. The future is dropped at an await point when it takes too long or
/// the checker shuts down. A removal does not stop a probe that has begun, but
/// what it answers no longer counts.
///
/// ```
/// use beatline_heartbeat::{BoxError, Probe, async_trait};
/// use std::net::SocketAddr;
///
/// struct Knock;
///
/// #[async_trait]
/// impl Probe<SocketAddr> for Knock {
///     async fn probe(&self, key: &SocketAddr) -> Result<(), BoxError> {
///         tokio::net::TcpStream::connect(key).await?;
///         Ok(())
///     }
/// }
/// ```
#[async_trait]
pub trait Probe<K>: Send + Sync + 'static {
    /// Asks the connection `key`.
    async fn probe(&self, key: &K) -> Result<(), BoxError>;
}

pub(crate) struct Probing<K> {
    pub(crate) probe: Box<dyn Probe<K>>,
    pub(crate) gate: Arc<Gate>,
    pub(crate) timeout: Duration,
    queue: Mutex<VecDeque<(u32, Word)>>,
    pub(crate) answered: AtomicU64,
    pub(crate) failed: AtomicU64,
}

impl<K: Key> Probing<K> {
    pub(crate) fn new(probe: Box<dyn Probe<K>>, concurrency: usize, timeout: Duration) -> Self {
        Self {
            probe,
            gate: Gate::new(concurrency),
            timeout,
            queue: Mutex::new(VecDeque::new()),
            answered: AtomicU64::new(0),
            failed: AtomicU64::new(0),
        }
    }
}

impl<K: Key> Shared<K> {
    pub(crate) fn queue_probes(&self, found: &[(u32, Word)]) {
        let Some(probing) = &self.probing else { return };
        let mut queue = lock(&probing.queue);
        queue.extend(found);
        // Suspects that beat again leave their entry behind. As many entries as there are suspects are
        // current, so the queue is bounded by twice the number of connections.
        if queue.len() > 1_024 && queue.len() as u64 > 2 * self.suspect_count() {
            queue.retain(|(index, word)| self.table.word(*index) == *word);
        }
    }

    /// Starts probes while there are places free and suspects waiting.
    pub(crate) fn dispatch_probes(self: &Arc<Self>, runtime: &Handle) {
        let Some(probing) = &self.probing else { return };
        while !self.table.is_closed() {
            let Some(permit) = probing.gate.enter() else { return };
            let next = || lock(&probing.queue).pop_front();
            let Some((key, edge)) =
                std::iter::from_fn(next).find_map(|edge| Some((self.table.claim(edge.0, edge.1)?.0, edge)))
            else {
                return;
            };
            let shared = Arc::clone(self);
            let ask = async move { shared.ask(key, edge).await };
            let (shared, panicking) = (Arc::clone(self), Arc::clone(self));
            let runs = self.background.spawn(
                runtime,
                ask,
                move |payload| panicking.contained("probe", &panic_text(payload)),
                move || {
                    drop(permit);
                    if let Ok(runtime) = Handle::try_current() {
                        shared.dispatch_probes(&runtime);
                    }
                },
            );
            if !runs {
                return;
            }
        }
    }

    async fn ask(&self, key: K, (index, word): (u32, Word)) {
        let Some(probing) = &self.probing else { return };
        let asked = std::panic::AssertUnwindSafe(probing.probe.probe(&key)).catch_unwind();
        let failure = match tokio::time::timeout(probing.timeout, asked).await {
            Ok(Ok(Ok(()))) => {
                probing.answered.fetch_add(1, Ordering::Relaxed);
                self.table.clear(index, word);
                return;
            }
            Ok(Ok(Err(error))) => beatline_core::error_chain(&*error),
            Ok(Err(payload)) => {
                probing.failed.fetch_add(1, Ordering::Relaxed);
                self.contained("probe", &panic_text(payload));
                return;
            }
            Err(_) => format!("no answer within {:?}", probing.timeout),
        };
        probing.failed.fetch_add(1, Ordering::Relaxed);
        telemetry::probe_failed(&failure);
    }
}

/// The tasks of probes and pings, which a shutdown does not wait for.
pub(crate) type Background = Workers;
