//! How suspect and expired edges reach whoever asks for them.
//!
//! # Ground rules
//!
//! An expired edge lives in the table until it is *claimed*, at the very moment
//! it is handed to the user; [`Events`] and [`Batch`] only carry indices. So a
//! connection removed in between is not reported, whatever queue it was in, and
//! an edge that a consumer did not take is found in the table again.

use std::collections::VecDeque;
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use futures::Stream;
use futures::future::BoxFuture;
use futures::task::AtomicWaker;

use crate::Key;
use crate::shared::Shared;
use crate::sync::{AtomicBool, AtomicU64, Mutex, Ordering, lock};
use crate::word::{State, Word};
use crate::workers::Gate;

/// What happened to a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Edge {
    /// It has been silent for the suspect threshold. Told once for each
    /// silence; a beat ends the suspicion.
    Suspect,
    /// It has been silent for the whole time-out and is dead. Told once.
    Expired,
}

/// A connection that fell silent.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Event<K> {
    /// Which connection.
    pub key: K,
    /// What happened to it.
    pub edge: Edge,
    /// The time-out of its class.
    pub timeout: Duration,
}

/// Edges that were found and not yet handed out, expired ones apart.
pub(crate) struct Outbox<K: Key> {
    pub(crate) sink: Sink<K>,
    suspects: Mutex<VecDeque<(u32, Word)>>,
    capacity: usize,
    pub(crate) dropped: AtomicU64,
    stream: AtomicWaker,
    stream_dropped: AtomicBool,
}

/// Who is told.
pub(crate) enum Sink<K: Key> {
    Nobody,
    Stream,
    Callback(Callback<K>),
}

pub(crate) struct Callback<K: Key> {
    pub(crate) call: Box<dyn Fn(Batch<K>) -> BoxFuture<'static, ()> + Send + Sync>,
    pub(crate) gate: Arc<Gate>,
    pub(crate) batch_size: usize,
}

impl<K: Key> Outbox<K> {
    pub(crate) fn new(sink: Sink<K>, capacity: usize) -> Self {
        Self {
            sink,
            suspects: Mutex::new(VecDeque::new()),
            capacity,
            dropped: AtomicU64::new(0),
            stream: AtomicWaker::new(),
            stream_dropped: AtomicBool::new(false),
        }
    }

    pub(crate) fn listens(&self) -> bool {
        !matches!(self.sink, Sink::Nobody) && !self.stream_dropped.load(Ordering::Acquire)
    }

    pub(crate) fn push_suspects(&self, found: &[(u32, Word)]) {
        if !self.listens() {
            return;
        }
        let mut suspects = lock(&self.suspects);
        let room = self.capacity.saturating_sub(suspects.len()).min(found.len());
        suspects.extend(&found[..room]);
        self.dropped.fetch_add((found.len() - room) as u64, Ordering::Relaxed);
    }

    fn pop_suspects(&self, limit: usize, hand: &mut Vec<(u32, Word)>) {
        let mut suspects = lock(&self.suspects);
        let count = limit.saturating_sub(hand.len()).min(suspects.len());
        hand.extend(suspects.drain(..count));
    }

    pub(crate) fn wake_stream(&self) {
        self.stream.wake();
    }
}

impl<K: Key> Shared<K> {
    /// Edges to hand out, the expired before the suspect.
    pub(crate) fn hand(&self, limit: usize) -> Vec<(u32, Word)> {
        let mut hand = Vec::new();
        self.table.collect(limit, &mut hand);
        self.outbox.pop_suspects(limit, &mut hand);
        hand
    }

    /// Claims one edge, and forgets the key of an expired one.
    pub(crate) fn claim(&self, (index, word): (u32, Word)) -> Option<Event<K>> {
        let (key, class) = self.table.claim(index, word)?;
        let edge = if word.state() == State::Suspect { Edge::Suspect } else { Edge::Expired };
        if edge == Edge::Expired {
            if let Some(front) = self.front.get() {
                front.forget(&key, index);
            }
        }
        Some(Event { key, edge, timeout: class.timeout })
    }
}

/// Edges as a stream, made by
/// [`build_with_events`](crate::Builder::build_with_events).
///
/// An expired edge is never lost: until it is read it waits in the table, so the
/// buffer here stays small however many expire at once. Suspect edges wait in a
/// queue of bounded length; one too many is dropped and counted, and one that
/// beat again, or died, before it was read is not reported as suspect any more.
///
/// The stream ends when the checker has shut down and everything was read.
/// Dropping it declines further events; connections expire all the same.
///
/// # Cancel safety
///
/// Dropping the future of `next()` loses nothing.
pub struct Events<K: Key> {
    shared: Arc<Shared<K>>,
    hand: VecDeque<(u32, Word)>,
}

impl<K: Key> Events<K> {
    pub(crate) fn new(shared: Arc<Shared<K>>) -> Self {
        Self { shared, hand: VecDeque::new() }
    }

    fn take(&mut self) -> Option<Event<K>> {
        loop {
            if self.hand.is_empty() {
                self.hand.extend(self.shared.hand(64));
            }
            if let Some(event) = self.shared.claim(self.hand.pop_front()?) {
                return Some(event);
            }
        }
    }
}

impl<K: Key> Stream for Events<K> {
    type Item = Event<K>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Event<K>>> {
        if let Some(event) = self.take() {
            return Poll::Ready(Some(event));
        }
        self.shared.outbox.stream.register(context.waker());
        // Read first: whatever was found before the end is in the table by then.
        let finished = self.shared.is_finished();
        match self.take() {
            Some(event) => Poll::Ready(Some(event)),
            None if finished => Poll::Ready(None),
            None => Poll::Pending,
        }
    }
}

impl<K: Key> Unpin for Events<K> {}

impl<K: Key> Drop for Events<K> {
    fn drop(&mut self) {
        self.shared.table.put_back(self.hand.drain(..));
        self.shared.outbox.stream_dropped.store(true, Ordering::Release);
        if self.shared.front.get().is_none() {
            self.shared.table.stop_reporting();
        }
    }
}

impl<K: Key> fmt::Debug for Events<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Events").field("buffered", &self.hand.len()).finish_non_exhaustive()
    }
}

/// Edges for one call of a callback: an iterator that claims each as it is
/// taken.
///
/// A connection that is removed before its turn, by the callback itself or by
/// anyone else, does not turn up. Expired edges that are still inside when the
/// batch is dropped (the callback panicked, was aborted, or stopped early) go
/// back to the table and are reported again after the next sweep; suspect ones
/// are dropped and counted.
pub struct Batch<K: Key> {
    shared: Arc<Shared<K>>,
    hand: std::vec::IntoIter<(u32, Word)>,
}

impl<K: Key> Batch<K> {
    pub(crate) fn new(shared: Arc<Shared<K>>, hand: Vec<(u32, Word)>) -> Self {
        Self { shared, hand: hand.into_iter() }
    }
}

impl<K: Key> Iterator for Batch<K> {
    type Item = Event<K>;

    fn next(&mut self) -> Option<Event<K>> {
        self.hand.by_ref().find_map(|edge| self.shared.claim(edge))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (0, Some(self.hand.len()))
    }
}

impl<K: Key> Drop for Batch<K> {
    fn drop(&mut self) {
        let left = self.hand.as_slice().iter();
        let suspects = left.filter(|(_, word)| word.state() == State::Suspect).count() as u64;
        self.shared.outbox.dropped.fetch_add(suspects, Ordering::Relaxed);
        self.shared.table.put_back(self.hand.by_ref());
    }
}

impl<K: Key> fmt::Debug for Batch<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Batch").field("at_most", &self.hand.len()).finish_non_exhaustive()
    }
}
