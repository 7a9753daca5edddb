//! All jobs of a scheduler: the named ones by name, the nameless by number.
//!
//! # Ground rules
//!
//! No map guard leaves this file, so none can live across an await, and no
//! foreign code runs under one. Walks collect first and act afterwards.

use std::borrow::Borrow;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use dashmap::DashMap;
use dashmap::mapref::entry::Entry;

use crate::job::{JobCore, JobRef};

/// Enough that one shard's growth holds up few others, even at a million jobs.
const SHARDS: usize = 256;

pub(crate) struct Registry {
    named: DashMap<ByName, ()>,
    /// Nameless jobs, and cancelled ones whose last runs go on, by sequence.
    nameless: DashMap<u64, JobRef>,
}

/// A job that hashes and compares as its name: the name is stored once.
struct ByName(JobRef);

impl Borrow<str> for ByName {
    fn borrow(&self) -> &str {
        &self.0.core().name
    }
}

impl Hash for ByName {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.core().name.hash(state);
    }
}

impl PartialEq for ByName {
    fn eq(&self, other: &Self) -> bool {
        self.0.core().name == other.0.core().name
    }
}

impl Eq for ByName {}

impl Registry {
    pub(crate) fn new() -> Self {
        Self { named: DashMap::with_shard_amount(SHARDS), nameless: DashMap::with_shard_amount(SHARDS) }
    }

    /// Adds a job. Returns false if its name is taken.
    pub(crate) fn insert(&self, job: &JobRef) -> bool {
        if job.core().is_nameless() {
            self.nameless.insert(job.core().sequence, Arc::clone(job));
            return true;
        }
        match self.named.entry(ByName(Arc::clone(job))) {
            Entry::Occupied(_) => false,
            Entry::Vacant(vacant) => {
                vacant.insert(());
                true
            }
        }
    }

    /// Takes a job out.
    pub(crate) fn remove(&self, job: &JobCore) {
        // What is taken out is dropped after the guard: its closure is foreign code.
        drop(self.take_named(job));
        drop(self.nameless.remove(&job.sequence));
    }

    /// Frees the name of a cancelled job while its last runs go on.
    pub(crate) fn set_aside(&self, job: &JobCore) {
        let Some(found) = self.take_named(job) else { return };
        self.nameless.insert(job.sequence, Arc::clone(&found));
        // Its last run may have ended meanwhile, and looked for it by name.
        if job.state().load() == (0, 0) {
            drop(self.nameless.remove(&job.sequence));
        }
    }

    fn take_named(&self, job: &JobCore) -> Option<JobRef> {
        if job.is_nameless() {
            return None;
        }
        let name: &str = &job.name;
        // By now the name may belong to another job.
        self.named.remove_if(name, |found, ()| found.0.core().sequence == job.sequence).map(|(found, ())| found.0)
    }

    pub(crate) fn find(&self, name: &str) -> Option<JobRef> {
        self.named.get(name).map(|found| Arc::clone(&found.key().0))
    }

    pub(crate) fn find_by_sequence(&self, sequence: u64) -> Option<JobRef> {
        self.all().into_iter().find(|job| job.core().sequence == sequence)
    }

    /// The named jobs, in the order they were added.
    pub(crate) fn named(&self) -> Vec<JobRef> {
        let mut jobs: Vec<_> = self.named.iter().map(|entry| Arc::clone(&entry.key().0)).collect();
        jobs.sort_unstable_by_key(|job| job.core().sequence);
        jobs
    }

    /// Every job, in no particular order.
    pub(crate) fn all(&self) -> Vec<JobRef> {
        let mut jobs: Vec<_> = self.named.iter().map(|entry| Arc::clone(&entry.key().0)).collect();
        jobs.extend(self.nameless.iter().map(|entry| Arc::clone(entry.value())));
        jobs
    }

    /// Takes everything out.
    pub(crate) fn clear(&self) {
        let jobs = self.all();
        self.named.clear();
        self.nameless.clear();
        drop(jobs); // closures are dropped here, outside every guard
    }
}
