//! Which run is being polled on which thread, seen from that thread and from
//! outside.
//!
//! # Ground rules
//!
//! Each thread that ever polls a run owns one [`Slot`], written by that thread
//! alone and read by anyone. `job` is zero between polls; `generation` counts
//! polls, so that a reader who sees the same pair twice knows that the same
//! poll is still under way. A reader may see a `job` and a `generation` of two
//! neighbouring polls: it then takes one poll for another, once, and looks again.
//! Polls nest (an inline callback may block on a run), so entering remembers what
//! it covers.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use beatline_core::RunId;

/// A run, across all schedulers of the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CurrentRun {
    pub(crate) scheduler: u64,
    /// The job's sequence number, from 1.
    pub(crate) job: u64,
    pub(crate) run: RunId,
}

/// What one thread is polling.
#[derive(Debug, Default)]
pub(crate) struct Slot {
    scheduler: AtomicU64,
    job: AtomicU64,
    generation: AtomicU64,
}

static SLOTS: Mutex<Vec<Weak<Slot>>> = Mutex::new(Vec::new());

struct Local {
    slot: Arc<Slot>,
    run: Cell<Option<CurrentRun>>,
}

thread_local! {
    static LOCAL: Local = {
        let slot = Arc::new(Slot::default());
        let mut slots = SLOTS.lock().unwrap_or_else(PoisonError::into_inner);
        slots.retain(|known| known.strong_count() > 0);
        slots.push(Arc::downgrade(&slot));
        Local { slot, run: Cell::new(None) }
    };
}

/// A poll under way on some thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PollUnderWay {
    pub(crate) slot: usize,
    pub(crate) job: u64,
    pub(crate) generation: u64,
}

/// Marks this thread as polling `run`, until the guard is dropped.
pub(crate) fn enter(run: CurrentRun) -> Entered {
    LOCAL.with(|local| {
        let covered = local.run.replace(Some(run));
        local.slot.show(Some(run));
        Entered { covered }
    })
}

/// Marks this thread as running the blocking body of `run`: known here, but no
/// poll that anyone could wait for.
pub(crate) fn enter_blocking(run: CurrentRun) -> Entered {
    LOCAL.with(|local| Entered { covered: local.run.replace(Some(run)) })
}

/// The run that is being polled on this thread.
pub(crate) fn current() -> Option<CurrentRun> {
    // Not there while the thread is being torn down, where no run is polled.
    LOCAL.try_with(|local| local.run.get()).ok().flatten()
}

/// The polls of this scheduler's runs that are under way on any thread.
pub(crate) fn polls(scheduler: u64) -> Vec<PollUnderWay> {
    let slots = SLOTS.lock().unwrap_or_else(PoisonError::into_inner);
    let mut found = Vec::new();
    for slot in slots.iter().filter_map(Weak::upgrade) {
        let job = slot.job.load(Ordering::Acquire);
        if job != 0 && slot.scheduler.load(Ordering::Relaxed) == scheduler {
            let generation = slot.generation.load(Ordering::Relaxed);
            found.push(PollUnderWay { slot: Arc::as_ptr(&slot) as usize, job, generation });
        }
    }
    found
}

impl Slot {
    fn show(&self, run: Option<CurrentRun>) {
        if let Some(run) = run {
            self.scheduler.store(run.scheduler, Ordering::Relaxed);
            self.generation.store(self.generation.load(Ordering::Relaxed).wrapping_add(1), Ordering::Relaxed);
        }
        self.job.store(run.map_or(0, |run| run.job), Ordering::Release);
    }
}

/// Ends the mark when dropped.
#[derive(Debug)]
pub(crate) struct Entered {
    covered: Option<CurrentRun>,
}

impl Drop for Entered {
    fn drop(&mut self) {
        let covered = self.covered;
        let _ = LOCAL.try_with(|local| {
            local.run.set(covered);
            local.slot.show(covered);
        });
    }
}
