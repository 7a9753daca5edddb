use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use beatline_core::Run;
use tokio::sync::Semaphore;

/// A run's future, as the jobs here return it.
type Running = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Holds runs up until they are let through.
///
/// ```
/// # #[tokio::main(flavor = "current_thread", start_paused = true)] async fn main() {
/// use beatline_core::OnDemand;
/// use beatline_test::{Gate, scheduler, settle};
///
/// let scheduler = scheduler("2026-01-01T00:00:00Z");
/// let gate = Gate::new();
/// let job = scheduler.job("slow", OnDemand).run(gate.job()).unwrap();
/// let ticket = job.run_now().unwrap();
/// settle().await;
/// assert_eq!(gate.waiting(), 1);
/// gate.open(1);
/// ticket.await.unwrap();
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Gate {
    permits: Arc<Semaphore>,
    waiting: Arc<AtomicUsize>,
}

impl Default for Gate {
    fn default() -> Self {
        Self::new()
    }
}

impl Gate {
    /// A closed gate.
    #[must_use]
    pub fn new() -> Self {
        Self { permits: Arc::new(Semaphore::new(0)), waiting: Arc::default() }
    }

    /// Lets `runs` more through, now or when they come.
    pub fn open(&self, runs: usize) {
        self.permits.add_permits(runs);
    }

    /// How many wait.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.waiting.load(Ordering::SeqCst)
    }

    /// Waits to be let through; for bodies that do more than that.
    pub async fn pass(&self) {
        struct Waiting(Arc<AtomicUsize>);
        impl Drop for Waiting {
            fn drop(&mut self) {
                self.0.fetch_sub(1, Ordering::SeqCst);
            }
        }
        self.waiting.fetch_add(1, Ordering::SeqCst);
        let _waiting = Waiting(Arc::clone(&self.waiting));
        // The semaphore is never closed.
        if let Ok(permit) = self.permits.acquire().await {
            permit.forget();
        }
    }

    /// A job whose runs wait here.
    pub fn job(&self) -> impl Fn(Run) -> Running + Send + Sync + 'static {
        let gate = self.clone();
        move |_run| {
            let gate = gate.clone();
            Box::pin(async move { gate.pass().await })
        }
    }
}

/// Counts runs.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    count: Arc<AtomicU64>,
}

impl Tally {
    /// At zero.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// How many were counted.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.count.load(Ordering::SeqCst)
    }

    /// Counts one; for bodies that do more than that.
    pub fn add(&self) {
        self.count.fetch_add(1, Ordering::SeqCst);
    }

    /// A job that counts its runs and does nothing else.
    pub fn job(&self) -> impl Fn(Run) -> std::future::Ready<()> + Send + Sync + 'static {
        let tally = self.clone();
        move |_run| {
            tally.add();
            std::future::ready(())
        }
    }
}
