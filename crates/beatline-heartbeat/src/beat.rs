//! A connection's own handle.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use crate::Key;
use crate::error::Expired;
use crate::shared::Shared;
use crate::word::State;

/// An index that no connection has, of a handle that is just being consumed.
const REMOVED: u32 = u32::MAX;

/// What a connection is at the moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Status {
    /// It has beaten within the suspect threshold.
    Alive,
    /// It has been silent for longer, and is not dead yet.
    Suspect,
    /// It has been declared dead.
    Expired,
}

impl Status {
    pub(crate) fn of(state: State) -> Self {
        match state {
            State::Alive | State::Vacant => Status::Alive,
            State::Suspect => Status::Suspect,
            State::Expired => Status::Expired,
        }
    }
}

/// Why a wait for an expiry is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[must_use = "a checker that has shut down ends the wait too, and says nothing about the connection"]
pub enum Ended {
    /// The connection has been declared dead.
    Expired,
    /// The checker has shut down and will never declare it dead.
    ShutDown,
}

/// A connection under watch: whoever owns the connection owns this.
///
/// 16 bytes. Dropping it removes the connection; after that, nothing about it is
/// reported.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use beatline_heartbeat::{Ended, HeartbeatChecker};
/// use std::time::Duration;
/// # async fn receive() -> Option<()> { None }
///
/// let checker = HeartbeatChecker::new(Duration::from_secs(30))?;
/// checker.start()?;
///
/// let beat = checker.register("10.0.0.7:5555");
/// loop {
///     tokio::select! {
///         frame = receive() => match frame {
///             Some(_) => beat.touch()?,
///             None => break,
///         },
///         ended = beat.expired() => {
///             if ended == Ended::Expired {
///                 println!("silent for 30 s, closing");
///             }
///             break;
///         }
///     }
/// }
/// # Ok(()) }
/// ```
#[must_use = "dropping it removes the connection"]
pub struct Beat<K: Key> {
    shared: Arc<Shared<K>>,
    index: u32,
}

impl<K: Key> Beat<K> {
    pub(crate) fn new(shared: Arc<Shared<K>>, index: u32) -> Self {
        Self { shared, index }
    }

    /// A beat: the connection lives now.
    ///
    /// One load, and one compare-and-swap if it is the first beat of this step.
    /// Reads no clock, takes no lock, never blocks. From any thread.
    ///
    /// # Errors
    ///
    /// [`Expired`] if the connection has been declared dead; that is final.
    #[inline]
    pub fn touch(&self) -> Result<(), Expired> {
        if self.shared.table.touch(self.index) { Ok(()) } else { Err(Expired) }
    }

    /// What the connection is at the moment.
    #[must_use]
    pub fn status(&self) -> Status {
        Status::of(self.shared.table.word(self.index).state())
    }

    /// Waits until the connection is declared dead, or the checker shuts down.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future and asking again loses nothing; several may wait at
    /// once.
    pub fn expired(&self) -> UntilExpired<'_, K> {
        UntilExpired { beat: self, ticket: None }
    }

    /// Removes the connection and answers what it was. After that nothing about
    /// it is reported: an edge that is queued anywhere, in a stream or in the
    /// batch of a callback, is not handed out.
    ///
    /// It waits for nothing, so it may be called from a callback about this very
    /// connection. A callback that took the edge before may still be at work.
    ///
    /// # Cancel safety
    ///
    /// Dropped before it was polled, it has removed the connection all the same.
    pub async fn remove(mut self) -> Status {
        let index = std::mem::replace(&mut self.index, REMOVED);
        Status::of(self.shared.table.remove(index))
    }
}

impl<K: Key> Drop for Beat<K> {
    fn drop(&mut self) {
        if self.index != REMOVED {
            self.shared.table.remove(self.index);
        }
    }
}

impl<K: Key> fmt::Debug for Beat<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Beat").field("index", &self.index).field("status", &self.status()).finish()
    }
}

/// The future of [`Beat::expired`].
#[must_use = "futures do nothing unless awaited"]
pub struct UntilExpired<'a, K: Key> {
    beat: &'a Beat<K>,
    ticket: Option<u64>,
}

impl<K: Key> Future for UntilExpired<'_, K> {
    type Output = Ended;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Ended> {
        let this = &mut *self;
        this.beat.shared.table.wait(this.beat.index, context.waker(), &mut this.ticket).map(|state| match state {
            State::Expired => Ended::Expired,
            _ => Ended::ShutDown,
        })
    }
}

impl<K: Key> Drop for UntilExpired<'_, K> {
    fn drop(&mut self) {
        if let Some(ticket) = self.ticket {
            self.beat.shared.table.forget(self.beat.index, ticket);
        }
    }
}

impl<K: Key> fmt::Debug for UntilExpired<'_, K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UntilExpired").field("beat", &self.beat).finish()
    }
}
