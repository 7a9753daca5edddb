//! The run's own cancellation token.
//!
//! # Ground rules
//!
//! `cancelled` is set once and never cleared, with `Release`, before the waiters
//! are taken out and woken; a waiter registers under the lock and looks at
//! `cancelled` once more while it holds it. So either the canceller finds the
//! waiter in the list, or the waiter finds the flag set. Wakers are woken and
//! dropped outside the lock: both may run foreign code.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

/// Tells a run that it should stop.
///
/// Clones are one token. A run that never asks for its token never pays for it.
///
/// ```
/// let token = beatline_core::CancellationToken::new();
/// assert!(!token.is_cancelled());
/// token.cancel();
/// assert!(token.clone().is_cancelled());
/// ```
#[derive(Clone, Default)]
pub struct CancellationToken {
    inner: Arc<Inner>,
}

#[derive(Default)]
struct Inner {
    cancelled: AtomicBool,
    waiters: Mutex<Waiters>,
}

#[derive(Default)]
struct Waiters {
    next_key: u64,
    list: Vec<(u64, Waker)>,
}

impl CancellationToken {
    /// A token that is not cancelled.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Cancels it and wakes whoever waits. Idempotent; never blocks.
    pub fn cancel(&self) {
        if self.inner.cancelled.swap(true, Ordering::Release) {
            return;
        }
        let woken = std::mem::take(&mut self.waiters().list);
        for (_, waker) in woken {
            waker.wake();
        }
    }

    /// Whether it was cancelled.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.inner.cancelled.load(Ordering::Acquire)
    }

    /// Waits until it is cancelled.
    ///
    /// # Cancel safety
    ///
    /// The future holds no state worth keeping: dropping it and asking again is
    /// the same as waiting on.
    pub fn cancelled(&self) -> Cancelled {
        Cancelled { token: self.clone(), key: None }
    }

    /// The same token for code that speaks tokio-util: a new token there that
    /// is cancelled together with this one. Cancelling it does not cancel this.
    #[cfg(feature = "tokio-util")]
    #[must_use]
    pub fn to_tokio(&self) -> tokio_util::sync::CancellationToken {
        struct Forward(tokio_util::sync::CancellationToken);
        impl std::task::Wake for Forward {
            fn wake(self: Arc<Self>) {
                self.0.cancel();
            }
        }
        let theirs = tokio_util::sync::CancellationToken::new();
        if self.register(&Waker::from(Arc::new(Forward(theirs.clone()))), &mut None).is_ready() {
            theirs.cancel();
        }
        theirs
    }

    fn waiters(&self) -> MutexGuard<'_, Waiters> {
        // Nothing that can panic runs under this lock.
        self.inner.waiters.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn register(&self, waker: &Waker, key: &mut Option<u64>) -> Poll<()> {
        if self.is_cancelled() {
            return Poll::Ready(());
        }
        let waker = waker.clone();
        let mut waiters = self.waiters();
        if self.is_cancelled() {
            return Poll::Ready(());
        }
        let replaced = match key.and_then(|key| waiters.list.iter().position(|(waiting, _)| *waiting == key)) {
            Some(position) => Some(std::mem::replace(&mut waiters.list[position].1, waker)),
            None => {
                let fresh = waiters.next_key;
                waiters.next_key += 1;
                waiters.list.push((fresh, waker));
                *key = Some(fresh);
                None
            }
        };
        drop(waiters);
        drop(replaced);
        Poll::Pending
    }
}

impl fmt::Debug for CancellationToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CancellationToken").field("cancelled", &self.is_cancelled()).finish()
    }
}

/// The future of [`CancellationToken::cancelled`].
#[derive(Debug)]
#[must_use = "futures do nothing unless awaited"]
pub struct Cancelled {
    token: CancellationToken,
    key: Option<u64>,
}

impl Future for Cancelled {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let this = &mut *self;
        this.token.register(context.waker(), &mut this.key)
    }
}

impl Drop for Cancelled {
    fn drop(&mut self) {
        let Some(key) = self.key else { return };
        let mut waiters = self.token.waiters();
        let removed = waiters
            .list
            .iter()
            .position(|(waiting, _)| *waiting == key)
            .map(|position| waiters.list.swap_remove(position));
        drop(waiters);
        drop(removed);
    }
}
