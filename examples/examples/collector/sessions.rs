//! When the prices of each session last moved: the cache that the check looks at.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::wire::{Quote, Session};

/// The sessions that are open, as of the last answer about them.
#[derive(Default)]
pub(crate) struct Sessions {
    known: Mutex<BTreeMap<String, Seen>>,
}

struct Seen {
    tick: u64,
    moved: Instant,
}

impl Sessions {
    /// Replaces the list; what is known of those that stay is kept.
    pub(crate) fn renew(&self, open: Vec<Session>) {
        let mut known = self.known();
        let mut before = std::mem::take(&mut *known);
        for session in open {
            let seen = before.remove(&session.name).unwrap_or(Seen { tick: 0, moved: Instant::now() });
            known.insert(session.name, seen);
        }
    }

    /// Takes note of which prices moved.
    pub(crate) fn saw(&self, quotes: &[Quote]) {
        let mut known = self.known();
        for quote in quotes {
            if let Some(seen) = known.get_mut(&quote.session).filter(|seen| seen.tick != quote.tick) {
                *seen = Seen { tick: quote.tick, moved: Instant::now() };
            }
        }
    }

    /// The sessions that have not moved for this long. They get as long again
    /// before they are named once more.
    pub(crate) fn stale(&self, after: Duration) -> Vec<String> {
        let mut stale = Vec::new();
        for (name, seen) in &mut *self.known() {
            if seen.moved.elapsed() > after {
                seen.moved = Instant::now();
                stale.push(name.clone());
            }
        }
        stale
    }

    fn known(&self) -> MutexGuard<'_, BTreeMap<String, Seen>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
