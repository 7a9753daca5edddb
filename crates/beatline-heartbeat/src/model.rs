//! The table as the model checker sees it: two slots a chunk, no runtime, no
//! clock. Not part of the public interface.
#![allow(missing_docs, missing_debug_implementations)]

use std::sync::Arc;
use std::task::{Poll, Waker};
use std::time::Duration;

use crate::class::{Class, Thresholds};
use crate::pace::Gaps;
use crate::table::{Found, Table};
use crate::word::{FIRST_STEP, State, Word};

/// Suspect after this many steps, in the models.
pub const SUSPECT_STEPS: u64 = 3;
/// Expired after this many steps, in the models: later than a second suspicion.
pub const EXPIRE_STEPS: u64 = 8;

pub struct Model {
    table: Table<u32>,
    class: Arc<Class>,
}

/// What a sweep of the model found.
pub struct Swept {
    pub suspects: Vec<(u32, Edge)>,
    pub expired: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Edge(Word);

impl Model {
    #[must_use]
    pub fn new(suspects: bool) -> Arc<Self> {
        let step = Duration::from_nanos(1);
        let suspect_after = suspects.then_some(Duration::from_nanos(SUSPECT_STEPS - 2));
        let silence = Duration::from_nanos(EXPIRE_STEPS - 2);
        let thresholds = Thresholds::new(silence, suspect_after, silence, step).expect("the thresholds are valid");
        Arc::new(Self { table: Table::new(true), class: Arc::new(Class::new(silence, thresholds)) })
    }

    pub fn register(&self, key: u32) -> u32 {
        self.table.register(&self.class, key)
    }

    pub fn touch(&self, index: u32) -> bool {
        self.table.touch(index)
    }

    pub fn remove(&self, index: u32) {
        self.table.remove(index);
    }

    pub fn is_expired(&self, index: u32) -> bool {
        self.table.word(index).state() == State::Expired
    }

    pub fn is_suspect(&self, index: u32) -> bool {
        self.table.word(index).state() == State::Suspect
    }

    pub fn publish(&self, step: u64) {
        self.table.publish(FIRST_STEP + step);
    }

    pub fn sweep(&self, step: u64) -> Swept {
        let mut found = Found::default();
        self.table.sweep(0, &Gaps::default(), FIRST_STEP + step, u64::MAX, &mut found);
        found.wakers.into_iter().for_each(Waker::wake);
        Swept {
            suspects: found.suspects.into_iter().map(|(index, word)| (index, Edge(word))).collect(),
            expired: found.expired,
        }
    }

    pub fn collect(&self) -> Vec<(u32, Edge)> {
        let mut hand = Vec::new();
        self.table.collect(16, &mut hand);
        hand.into_iter().map(|(index, word)| (index, Edge(word))).collect()
    }

    pub fn claim(&self, (index, Edge(word)): (u32, Edge)) -> Option<u32> {
        self.table.claim(index, word).map(|(key, _)| key)
    }

    pub fn clear(&self, (index, Edge(word)): (u32, Edge)) -> bool {
        self.table.clear(index, word)
    }

    pub fn wait(&self, index: u32, waker: &Waker, ticket: &mut Option<u64>) -> Poll<bool> {
        self.table.wait(index, waker, ticket).map(|state| state == State::Expired)
    }

    pub fn close(&self) {
        self.table.close().into_iter().for_each(Waker::wake);
    }

    /// How many are suspect, by the counter.
    pub fn suspects(&self) -> u64 {
        self.table.counters().suspect.load(crate::sync::Ordering::Relaxed)
    }
}
