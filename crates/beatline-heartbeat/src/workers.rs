//! Tasks that run the user's callbacks: bounded, counted, and gone when the
//! checker is.

use std::future::Future;
use std::sync::Arc;

use futures::FutureExt;
use tokio::runtime::Handle;
use tokio::sync::Notify;
use tokio::task::JoinSet;

use crate::sync::{AtomicU64, Mutex, Ordering, lock};

tokio::task_local! {
    /// Set while a callback of a checker is polled: what it calls must not wait for it.
    static INSIDE: ();
}

/// Whether the caller is a callback of a checker.
pub(crate) fn inside_callback() -> bool {
    INSIDE.try_with(|()| ()).is_ok()
}

/// How many callbacks of one kind may run at once.
pub(crate) struct Gate {
    running: AtomicU64,
    limit: u64,
}

/// A callback's right to run.
pub(crate) struct Permit(Arc<Gate>);

impl Gate {
    pub(crate) fn new(limit: usize) -> Arc<Self> {
        Arc::new(Self { running: AtomicU64::new(0), limit: limit as u64 })
    }

    pub(crate) fn enter(self: &Arc<Self>) -> Option<Permit> {
        if self.running.fetch_add(1, Ordering::AcqRel) >= self.limit {
            self.running.fetch_sub(1, Ordering::AcqRel);
            return None;
        }
        Some(Permit(Arc::clone(self)))
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.0.running.fetch_sub(1, Ordering::AcqRel);
    }
}

#[derive(Default)]
pub(crate) struct Workers {
    tasks: Mutex<Tasks>,
    running: Arc<Running>,
}

#[derive(Default)]
struct Tasks {
    set: JoinSet<()>,
    /// A sweep that was under way must not start what nobody would end.
    closed: bool,
}

#[derive(Default)]
struct Running {
    count: AtomicU64,
    idle: Notify,
}

/// Counts a task until it is gone, dropped unfinished included.
struct Counted(Arc<Running>);

impl Drop for Counted {
    fn drop(&mut self) {
        if self.0.count.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.0.idle.notify_waiters();
        }
    }
}

impl Workers {
    /// Runs a callback; `panicked` is called if it panics, `then` after it in
    /// any case. Answers whether it will run: no more after closing.
    pub(crate) fn spawn<F>(
        &self,
        runtime: &Handle,
        callback: F,
        panicked: impl FnOnce(Box<dyn std::any::Any + Send>) + Send + 'static,
        then: impl FnOnce() + Send + 'static,
    ) -> bool
    where
        F: Future<Output = ()> + Send + 'static,
    {
        self.running.count.fetch_add(1, Ordering::AcqRel);
        let counted = Counted(Arc::clone(&self.running));
        let task = async move {
            let _counted = counted;
            if let Err(payload) = INSIDE.scope((), std::panic::AssertUnwindSafe(callback).catch_unwind()).await {
                panicked(payload);
            }
            then();
        };
        let mut tasks = lock(&self.tasks);
        if tasks.closed {
            // The callback may own what runs foreign code when it is dropped.
            drop(tasks);
            drop(task);
            return false;
        }
        while tasks.set.try_join_next().is_some() {}
        tasks.set.spawn_on(task, runtime);
        true
    }

    /// Waits until none is running.
    pub(crate) async fn idle(&self) {
        loop {
            let idle = self.running.idle.notified();
            tokio::pin!(idle);
            idle.as_mut().enable();
            if self.running.count.load(Ordering::Acquire) == 0 {
                return;
            }
            idle.await;
        }
    }

    /// Aborts what is running and starts nothing more.
    pub(crate) fn close(&self) {
        let mut tasks = lock(&self.tasks);
        tasks.closed = true;
        tasks.set.abort_all();
    }
}

/// The text of a panic. The payload itself is forgotten: dropping it may panic again.
pub(crate) fn panic_text(payload: Box<dyn std::any::Any + Send>) -> String {
    let text = payload
        .downcast_ref::<&str>()
        .map(|text| (*text).to_owned())
        .or_else(|| payload.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "a panic without text".to_owned());
    std::mem::forget(payload);
    text
}
