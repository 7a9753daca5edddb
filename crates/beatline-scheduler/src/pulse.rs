//! Whether anything moves on this thread, for a test kit that waits until nothing
//! does.
//!
//! Under tokio's paused clock everything happens on one thread, apart from
//! blocking bodies, which are counted where they were sent off.

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

thread_local! {
    static STEPS: Cell<u64> = const { Cell::new(0) };
    static BLOCKING: Arc<AtomicUsize> = Arc::new(AtomicUsize::new(0));
}

/// Something moved on this thread.
pub(crate) fn step() {
    let _ = STEPS.try_with(|steps| steps.set(steps.get().wrapping_add(1)));
}

/// Counts a blocking body until it is dropped.
pub(crate) struct Blocking(Option<Arc<AtomicUsize>>);

/// A blocking body is sent off from this thread.
pub(crate) fn blocking() -> Blocking {
    let count = BLOCKING.try_with(Arc::clone).ok();
    if let Some(count) = &count {
        count.fetch_add(1, Ordering::SeqCst);
    }
    Blocking(count)
}

impl Drop for Blocking {
    fn drop(&mut self) {
        if let Some(count) = &self.0 {
            count.fetch_sub(1, Ordering::SeqCst);
        }
    }
}

/// How many steps were taken on this thread, and how many blocking bodies that
/// were sent off from it are under way.
#[must_use]
pub fn pulse() -> (u64, usize) {
    let steps = STEPS.try_with(Cell::get).unwrap_or_default();
    let blocking = BLOCKING.try_with(|count| count.load(Ordering::SeqCst)).unwrap_or_default();
    (steps, blocking)
}
