//! A cancelled token wakes everyone who waits, once, from any thread.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use beatline_core::{CancellationToken, Run};

#[derive(Default)]
struct Count(AtomicUsize);

impl Wake for Count {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

#[test]
fn every_waiter_is_woken_once() {
    let token = CancellationToken::new();
    let counts: Vec<_> = (0..5).map(|_| Arc::new(Count::default())).collect();
    let mut futures: Vec<_> = counts.iter().map(|_| Box::pin(token.cancelled())).collect();
    for (future, count) in futures.iter_mut().zip(&counts) {
        let waker = Waker::from(Arc::clone(count));
        // Polled twice: the waker is kept once.
        for _ in 0..2 {
            assert!(future.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
        }
    }
    drop(futures.pop());
    token.cancel();
    token.cancel();
    let woken: Vec<_> = counts.iter().map(|count| count.0.load(Ordering::SeqCst)).collect();
    assert_eq!(woken, [1, 1, 1, 1, 0], "the dropped one is not");
    for mut future in futures {
        assert_eq!(future.as_mut().poll(&mut Context::from_waker(Waker::noop())), Poll::Ready(()));
    }
    assert!(pin!(token.cancelled()).poll(&mut Context::from_waker(Waker::noop())).is_ready());
}

#[test]
fn a_waiter_that_moves_to_another_task_is_woken_there() {
    let token = CancellationToken::new();
    let (old, new) = (Arc::new(Count::default()), Arc::new(Count::default()));
    let mut future = pin!(token.cancelled());
    for count in [&old, &new] {
        let waker = Waker::from(Arc::clone(count));
        assert!(future.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
    }
    token.cancel();
    assert_eq!((old.0.load(Ordering::SeqCst), new.0.load(Ordering::SeqCst)), (0, 1));
}

#[test]
fn a_cancel_that_races_with_waiting_is_never_missed() {
    for _ in 0..2_000 {
        let token = CancellationToken::new();
        let theirs = token.clone();
        let canceller = std::thread::spawn(move || theirs.cancel());
        let count = Arc::new(Count::default());
        let waker = Waker::from(Arc::clone(&count));
        let mut future = pin!(token.cancelled());
        let pending = future.as_mut().poll(&mut Context::from_waker(&waker)).is_pending();
        canceller.join().expect("it does not panic");
        assert!(!pending || count.0.load(Ordering::SeqCst) == 1);
        assert!(future.as_mut().poll(&mut Context::from_waker(&waker)).is_ready());
    }
}

#[cfg(feature = "tokio-util")]
#[test]
fn the_token_speaks_tokio_util() {
    let token = CancellationToken::new();
    let (before, mut theirs) = (token.to_tokio(), Vec::new());
    theirs.push(before.child_token());
    assert!(!before.is_cancelled());
    token.cancel();
    theirs.push(token.to_tokio());
    assert!(before.is_cancelled() && theirs.iter().all(|token| token.is_cancelled()));
}

#[test]
fn a_job_can_be_called_without_a_scheduler() {
    let run = Run::detached("quotes");
    assert_eq!((run.job(), run.attempt(), run.is_cancelled()), ("quotes", 1, false));
    run.cancel_job();
    assert!(run.is_cancelled());
}
