//! Connections by key.
//!
//! # Ground rules
//!
//! The map owns the slots of its connections: whoever takes an entry out of the
//! map gives the slot back. A guard of the map is held over a touch, which calls
//! nothing, and over nothing else; so a slot cannot be given back, and to
//! somebody else, while it is being touched.

use std::fmt;
use std::hash::Hash;
use std::sync::Arc;

use beatline_core::Error;
use dashmap::DashMap;

use crate::Key;
use crate::beat::Status;
use crate::checker::{HeartbeatChecker, TimeoutClass};
use crate::error::TouchError;
use crate::shared::{Front, Shared};
use crate::word::State;

/// A front of a checker for those who have ids rather than handles; made by
/// [`HeartbeatChecker::keyed`].
///
/// A touch costs a lookup in a concurrent map more than [`Beat::touch`](crate::Beat::touch), and the map some 20 bytes a connection. Clones are one
/// front. When an expiry has been reported (at once, where nobody listens) the
/// key is forgotten: whoever comes back registers anew.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use beatline_heartbeat::{HeartbeatChecker, TouchError};
/// use std::time::Duration;
///
/// let checker = HeartbeatChecker::new(Duration::from_secs(30))?;
/// checker.start()?;
/// let devices = checker.keyed();
/// devices.register("sensor-17");
/// devices.touch("sensor-17")?;
/// assert_eq!(devices.touch("sensor-18"), Err(TouchError::Unknown));
/// # Ok(()) }
/// ```
pub struct Keyed<K: Key + Hash + Eq> {
    checker: HeartbeatChecker<K>,
    map: Arc<DashMap<K, u32>>,
}

struct Forget<K: Key + Hash + Eq> {
    map: Arc<DashMap<K, u32>>,
    shared: std::sync::Weak<Shared<K>>,
}

impl<K: Key + Hash + Eq> Front<K> for Forget<K> {
    fn forget(&self, key: &K, index: u32) {
        let Some(shared) = self.shared.upgrade() else { return };
        // The state as well as the index: the key may have come back, even to the same slot.
        let still_dead = |_: &K, known: &u32| *known == index && shared.table.word(index).state() == State::Expired;
        if self.map.remove_if(key, still_dead).is_some() {
            shared.table.remove(index);
        }
    }

    fn map(&self) -> &dyn std::any::Any {
        &self.map
    }
}

impl<K: Key + Hash + Eq> Keyed<K> {
    pub(crate) fn of(checker: HeartbeatChecker<K>) -> Self {
        let shared = checker.shared();
        let front = shared
            .front
            .get_or_init(|| Box::new(Forget { map: Arc::new(DashMap::new()), shared: Arc::downgrade(shared) }));
        // There is one front, made here, and so of this very type.
        let map = front.map().downcast_ref::<Arc<DashMap<K, u32>>>().map(Arc::clone).unwrap_or_default();
        shared.table.start_reporting();
        Self { map, checker }
    }

    /// Puts a connection under watch, with the time-out of the checker. One that
    /// had the key is removed: the client has come back.
    ///
    /// # Panics
    ///
    /// Beyond 4,294,901,760 connections.
    pub fn register(&self, key: K) {
        let index = self.checker.shared().table.register(&self.checker.default_class(), key.clone());
        self.insert(key, index);
    }

    /// The same, with the time-out of `class`.
    ///
    /// # Errors
    ///
    /// Those of [`HeartbeatChecker::register_in`].
    ///
    /// # Panics
    ///
    /// Beyond 4,294,901,760 connections.
    pub fn register_in(&self, class: &TimeoutClass<K>, key: K) -> Result<(), Error> {
        self.checker.check(class)?;
        let index = self.checker.shared().table.register(class.class(), key.clone());
        self.insert(key, index);
        Ok(())
    }

    fn insert(&self, key: K, index: u32) {
        if let Some(replaced) = self.map.insert(key, index) {
            self.checker.shared().table.remove(replaced);
        }
    }

    /// A beat of the connection `key`.
    ///
    /// Never waits for a callback; may wait for another thread that is just
    /// registering or removing a key of the same part of the map.
    ///
    /// # Errors
    ///
    /// [`TouchError::Unknown`] if no connection has the key,
    /// [`TouchError::Expired`] if it has been declared dead and that is not
    /// reported yet.
    pub fn touch<Q>(&self, key: &Q) -> Result<(), TouchError>
    where
        K: std::borrow::Borrow<Q>,
        Q: Hash + Eq + ?Sized,
    {
        let Some(index) = self.map.get(key) else { return Err(TouchError::Unknown) };
        if self.checker.shared().table.touch(*index) { Ok(()) } else { Err(TouchError::Expired) }
    }

    /// What the connection `key` is at the moment; `None` if no connection has
    /// the key.
    #[must_use]
    pub fn status<Q>(&self, key: &Q) -> Option<Status>
    where
        K: std::borrow::Borrow<Q>,
        Q: Hash + Eq + ?Sized,
    {
        let index = self.map.get(key)?;
        Some(Status::of(self.checker.shared().table.word(*index).state()))
    }

    /// Removes the connection `key` and answers what it was; `None` if no
    /// connection has the key. After that nothing about it is reported, as with
    /// [`Beat::remove`](crate::Beat::remove).
    ///
    /// # Cancel safety
    ///
    /// Dropped before it was polled, it has done nothing; polled once, all.
    pub async fn remove<Q>(&self, key: &Q) -> Option<Status>
    where
        K: std::borrow::Borrow<Q>,
        Q: Hash + Eq + ?Sized,
    {
        let (_, index) = self.map.remove(key)?;
        Some(Status::of(self.checker.shared().table.remove(index)))
    }

    /// How many connections have a key here.
    #[must_use]
    pub fn len(&self) -> usize {
        self.map.len()
    }

    /// Whether none has.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.map.is_empty()
    }
}

impl<K: Key + Hash + Eq> Clone for Keyed<K> {
    fn clone(&self) -> Self {
        Self { checker: self.checker.clone(), map: Arc::clone(&self.map) }
    }
}

impl<K: Key + Hash + Eq> fmt::Debug for Keyed<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Keyed").field("connections", &self.len()).finish_non_exhaustive()
    }
}
