//! Outgoing pings, a few with each step.
//!
//! The interval is cut into as many parts as it has steps, and every connection
//! belongs to one of them for life: slot `s` of chunk `c` to part
//! `(s + hash(c)) mod parts`. So each step has its share, to within one
//! connection a chunk, whatever the order of registration; and finding the share
//! costs what it contains.

use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;

use futures::future::BoxFuture;
use tokio::runtime::Handle;

use crate::Key;
use crate::pace::Progress;
use crate::shared::Shared;
use crate::sync::{AtomicU64, Mutex, Ordering, lock};
use crate::word::{FIRST_STEP, State};
use crate::workers::{Gate, panic_text};

/// After a late sweep so many parts are made up for with each sweep: the
/// backlog shrinks, and never goes out all at once.
const PARTS_A_SWEEP: u64 = 2;

pub(crate) type PingCallback<K> = Box<dyn Fn(Vec<K>) -> BoxFuture<'static, ()> + Send + Sync>;

pub(crate) struct Pinging<K> {
    call: PingCallback<K>,
    gate: Arc<Gate>,
    parts: u64,
    hasher: RandomState,
    /// The last step whose part went out.
    cursor: Mutex<u64>,
    pub(crate) sent: AtomicU64,
}

impl<K> Pinging<K> {
    pub(crate) fn new(call: PingCallback<K>, parts: u64, concurrency: usize) -> Self {
        Self {
            call,
            gate: Gate::new(concurrency),
            parts: parts.max(1),
            hasher: RandomState::new(),
            cursor: Mutex::new(FIRST_STEP),
            sent: AtomicU64::new(0),
        }
    }

    /// The slots of chunk `number` that belong to the part of `step`.
    fn slots(&self, number: u32, step: u64) -> impl Iterator<Item = u32> + use<K> {
        let shift = self.hasher.hash_one(number) % self.parts;
        let first = (step % self.parts + self.parts - shift) % self.parts;
        let parts = self.parts;
        (0..).map(move |turn: u64| u32::try_from(first.saturating_add(turn.saturating_mul(parts))).unwrap_or(u32::MAX))
    }
}

impl<K: Key> Shared<K> {
    pub(crate) fn dispatch_pings(self: &Arc<Self>, progress: &Progress, runtime: &Handle) {
        let Some(pinging) = &self.pinging else { return };
        let mut cursor = lock(&pinging.cursor);
        // Nobody is pinged twice in an interval to make up for one that was missed.
        *cursor = (*cursor).max(progress.step.saturating_sub(pinging.parts));
        for _ in 0..PARTS_A_SWEEP {
            if *cursor >= progress.step {
                return;
            }
            let Some(permit) = pinging.gate.enter() else { return };
            *cursor += 1;
            let mut keys = Vec::new();
            self.table.read(
                |number| pinging.slots(number, *cursor),
                |_, _, key, word| {
                    if word.state() != State::Expired {
                        keys.push(key);
                    }
                },
            );
            if keys.is_empty() {
                continue;
            }
            pinging.sent.fetch_add(keys.len() as u64, Ordering::Relaxed);
            let (shared, panicking) = (Arc::clone(self), Arc::clone(self));
            let ping = async move {
                if let Some(pinging) = &shared.pinging {
                    (pinging.call)(keys).await;
                }
            };
            let panicked = move |payload| panicking.contained("ping", &panic_text(payload));
            if !self.background.spawn(runtime, ping, panicked, move || drop(permit)) {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_slot_has_one_part_and_parts_are_even() {
        for parts in [1_u64, 3, 100, 5_000] {
            let pinging = Pinging::<u64>::new(Box::new(|_| Box::pin(async {})), parts, 1);
            let mut seen = vec![0; 1_024];
            for step in FIRST_STEP..FIRST_STEP + parts {
                let slots: Vec<_> = pinging.slots(7, step).take_while(|slot| *slot < 1_024).collect();
                assert!(slots.len() as u64 <= 1_024_u64.div_ceil(parts));
                slots.iter().for_each(|slot| seen[*slot as usize] += 1);
            }
            assert!(seen.iter().all(|count| *count == 1), "{parts} parts");
        }
    }
}
