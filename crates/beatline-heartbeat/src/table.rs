//! All connections of a checker, without a runtime and without a clock.
//!
//! # Ground rules
//!
//! * One sweeper at a time; everything else may happen at any time on any
//!   thread, sweeping included.
//! * The bound of a chunk is never later than the first look one of its slots
//!   needs. A new slot is stored first and the bound lowered after it; a sweep
//!   lifts the bound first, looks at the slots, and lowers it to what it found.
//!   Whichever way the two interleave, either the sweep sees the slot or the
//!   slot's bound comes after the lift. A beat only ever moves the look it
//!   needs to later, so it leaves the bound alone; the beat of a suspect is the
//!   exception and lowers it.
//! * An expired edge waits in the slot itself. `listed` of its chunk is set after
//!   the edge is in the slot and cleared before the slots are searched for edges.

use std::collections::VecDeque;
use std::sync::Arc;
use std::task::{Poll, Waker};

use crate::chunk::{Chunk, SLOT_BITS, SLOTS, Touched};
use crate::class::Class;
use crate::directory::{Directory, Entry};
use crate::mutants::planted;
use crate::pace::{Gaps, Silence};
use crate::sync::{AtomicBool, AtomicU32, AtomicU64, Mutex, Ordering, lock};
use crate::word::{FIRST_STEP, State, Word};

/// On a cache line of its own: every beat reads it, every sweep writes it.
#[repr(align(128))]
struct Published(AtomicU64);

pub(crate) struct Table<K> {
    step: Published,
    directory: Directory<K>,
    /// How many chunks there are; written under `growing`.
    chunks: AtomicU32,
    growing: Mutex<()>,
    /// Whether somebody will ask for edges; if not, they count as reported.
    reporting: AtomicBool,
    closed: AtomicBool,
    listed: Mutex<Listed>,
    counters: Counters,
}

/// Chunks with edges to report.
#[derive(Default)]
struct Listed {
    ready: VecDeque<u32>,
    /// Put back by a consumer; ready from the next sweep on, so that a consumer
    /// that always fails is retried at the pace of sweeps and no faster.
    returned: Vec<u32>,
}

/// Counted where it happens.
#[derive(Default)]
pub(crate) struct Counters {
    pub(crate) registered: AtomicU64,
    pub(crate) removed: AtomicU64,
    pub(crate) expired: AtomicU64,
    pub(crate) unreported: AtomicU64,
    pub(crate) suspect: AtomicU64,
    pub(crate) suspected: AtomicU64,
    pub(crate) recovered: AtomicU64,
}

/// What a sweep over some chunks found.
#[derive(Default)]
pub(crate) struct Found {
    pub(crate) chunks_scanned: u64,
    pub(crate) suspects: Vec<(u32, Word)>,
    pub(crate) expired: u64,
    /// The most steps anyone was found late.
    pub(crate) overdue: u64,
    pub(crate) wakers: Vec<Waker>,
}

impl<K> Table<K> {
    pub(crate) fn new(reporting: bool) -> Self {
        Self {
            step: Published(AtomicU64::new(FIRST_STEP)),
            directory: Directory::default(),
            chunks: AtomicU32::new(0),
            growing: Mutex::new(()),
            reporting: AtomicBool::new(reporting),
            closed: AtomicBool::new(false),
            listed: Mutex::new(Listed::default()),
            counters: Counters::default(),
        }
    }

    pub(crate) fn counters(&self) -> &Counters {
        &self.counters
    }

    pub(crate) fn step(&self) -> u64 {
        self.step.0.load(Ordering::Acquire)
    }

    pub(crate) fn publish(&self, step: u64) {
        self.step.0.store(step, Ordering::Release);
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }

    pub(crate) fn chunk_count(&self) -> u32 {
        self.chunks.load(Ordering::Acquire)
    }

    /// A new connection, alive from now on.
    pub(crate) fn register(&self, class: &Arc<Class>, key: K) -> u32 {
        let step = self.step();
        let mut vacant = lock(&class.vacant);
        let number = match vacant.last() {
            Some(number) => *number,
            None => {
                let number = self.grow(class);
                vacant.push(number);
                number
            }
        };
        let (entry, chunk) = self.chunk(number);
        let look_at = class.thresholds.first_look(step);
        if planted("bound-before-slot") {
            entry.lower.fetch_min(look_at, Ordering::AcqRel);
        }
        let (slot, full) = chunk.occupy(key, step);
        if full {
            vacant.pop();
        }
        drop(vacant);
        if !planted("bound-before-slot") {
            entry.lower.fetch_min(look_at, Ordering::AcqRel);
        }
        self.counters.registered.fetch_add(1, Ordering::Relaxed);
        number << SLOT_BITS | slot
    }

    /// Removes a connection and answers what it was. After that no edge of it
    /// is claimed.
    pub(crate) fn remove(&self, index: u32) -> State {
        let (_, chunk, slot) = self.locate(index);
        let (word, was_full) = chunk.vacate(slot);
        if was_full {
            lock(&chunk.class.vacant).push(index >> SLOT_BITS);
        }
        match word.state() {
            State::Expired => {
                if word.is_unreported() || word.is_in_hand() {
                    self.counters.unreported.fetch_sub(1, Ordering::Relaxed);
                }
            }
            state => {
                if state == State::Suspect {
                    self.counters.suspect.fetch_sub(1, Ordering::Relaxed);
                }
                self.counters.removed.fetch_add(1, Ordering::Relaxed);
            }
        }
        word.state()
    }

    /// A beat. Whether the connection is still alive.
    #[inline]
    pub(crate) fn touch(&self, index: u32) -> bool {
        let step = self.step.0.load(Ordering::Acquire);
        let (entry, chunk, slot) = self.locate(index);
        match chunk.touch(slot, step) {
            Touched::Alive => true,
            Touched::Recovered => {
                self.recovered(entry, chunk, step);
                true
            }
            Touched::Dead => false,
        }
    }

    /// A beat on behalf of a connection, if it is still suspect as `word`.
    pub(crate) fn clear(&self, index: u32, word: Word) -> bool {
        let step = self.step();
        let (entry, chunk, slot) = self.locate(index);
        let cleared = chunk.clear(slot, word, step);
        if cleared {
            self.recovered(entry, chunk, step);
        }
        cleared
    }

    #[cold]
    fn recovered(&self, entry: &Entry<K>, chunk: &Chunk<K>, step: u64) {
        // While it was suspect the bound spoke of its expiry only.
        if !planted("recovery-leaves-bound") {
            entry.lower.fetch_min(chunk.class.thresholds.first_look(step), Ordering::AcqRel);
        }
        self.counters.suspect.fetch_sub(1, Ordering::Relaxed);
        self.counters.recovered.fetch_add(1, Ordering::Relaxed);
    }

    /// Sweeps chunks from `from` on until `found` is worth a pause, or to the
    /// end. Answers where to go on.
    pub(crate) fn sweep(&self, from: u32, gaps: &Gaps, step: u64, enough: u64, found: &mut Found) -> Option<u32> {
        let reporting = self.reporting.load(Ordering::Acquire);
        let unreported = Word::expired_unreported(step);
        let expired_as = if reporting { unreported } else { unreported.reported() };
        for (number, entry) in self.directory.entries(from, self.chunk_count()) {
            if entry.lower.load(Ordering::Relaxed) > step {
                continue;
            }
            let Some(chunk) = entry.chunk() else { continue };
            if !planted("bound-lifted-late") {
                entry.lower.swap(u64::MAX, Ordering::AcqRel);
            }
            let silence = Silence::new(step, gaps, &chunk.class);
            let scan = chunk.scan(number << SLOT_BITS, &silence, expired_as);
            if planted("bound-lifted-late") {
                entry.lower.swap(u64::MAX, Ordering::AcqRel);
            }
            if planted("bound-plain-store") {
                entry.lower.store(scan.look_at, Ordering::Release);
            } else {
                entry.lower.fetch_min(scan.look_at, Ordering::AcqRel);
            }
            found.chunks_scanned += 1;
            let suspected = scan.suspects.len() as u64;
            if suspected != 0 {
                self.counters.suspect.fetch_add(suspected, Ordering::Relaxed);
                self.counters.suspected.fetch_add(suspected, Ordering::Relaxed);
                found.suspects.extend_from_slice(&scan.suspects);
            }
            if scan.expired != 0 {
                self.counters.suspect.fetch_sub(scan.were_suspect, Ordering::Relaxed);
                self.counters.expired.fetch_add(scan.expired, Ordering::Relaxed);
                found.expired += scan.expired;
                found.overdue = found.overdue.max(scan.overdue);
                if reporting {
                    self.counters.unreported.fetch_add(scan.expired, Ordering::Relaxed);
                    self.list(number, chunk);
                }
                found.wakers.append(&mut chunk.take_wakers(&scan));
            }
            if found.expired + found.suspects.len() as u64 >= enough {
                return Some(number + 1);
            }
        }
        None
    }

    fn list(&self, number: u32, chunk: &Chunk<K>) {
        if !chunk.listed.swap(true, Ordering::AcqRel) {
            lock(&self.listed).ready.push_back(number);
        }
    }

    /// Makes what was put back ready again; once a sweep.
    pub(crate) fn ready_returned(&self) {
        let returned = std::mem::take(&mut lock(&self.listed).returned);
        for number in returned {
            let (_, chunk) = self.chunk(number);
            self.list(number, chunk);
        }
    }

    /// Takes up to `limit` expired edges to be reported.
    pub(crate) fn collect(&self, limit: usize, hand: &mut Vec<(u32, Word)>) {
        while hand.len() < limit {
            let Some(number) = lock(&self.listed).ready.pop_front() else { return };
            let (_, chunk) = self.chunk(number);
            // A swap, not a store: it reads what the lister wrote, and with it the edges before.
            chunk.listed.swap(false, Ordering::AcqRel);
            if chunk.collect(number << SLOT_BITS, limit, hand) {
                self.list(number, chunk);
            }
        }
    }

    /// Claims an edge for reporting. `None` if the connection was removed, or
    /// is suspect no more.
    pub(crate) fn claim(&self, index: u32, word: Word) -> Option<(K, Arc<Class>)>
    where
        K: Clone,
    {
        let (_, chunk, slot) = self.locate(index);
        let key = chunk.claim(slot, word)?;
        if word.is_in_hand() {
            self.counters.unreported.fetch_sub(1, Ordering::Relaxed);
        }
        Some((key, Arc::clone(&chunk.class)))
    }

    /// Returns edges that were collected and not claimed.
    pub(crate) fn put_back(&self, hand: impl Iterator<Item = (u32, Word)>) {
        if planted("unclaimed-dropped") {
            return;
        }
        for (index, word) in hand {
            let (_, chunk, slot) = self.locate(index);
            if word.is_in_hand() && chunk.put_back(slot, word) {
                let mut listed = lock(&self.listed);
                if listed.returned.last() != Some(&(index >> SLOT_BITS)) {
                    listed.returned.push(index >> SLOT_BITS);
                }
            }
        }
    }

    /// Somebody asks for edges from now on.
    pub(crate) fn start_reporting(&self) {
        self.reporting.store(true, Ordering::Release);
    }

    /// Nobody asks for edges any more.
    pub(crate) fn stop_reporting(&self) {
        self.reporting.store(false, Ordering::Release);
    }

    /// No expiry from here on; whoever waits for one is told.
    pub(crate) fn close(&self) -> Vec<Waker> {
        if !planted("close-wakes-first") {
            self.closed.store(true, Ordering::SeqCst);
        }
        let wakers = self.directory.entries(0, self.chunk_count());
        let wakers = wakers.filter_map(|(_, entry)| entry.chunk()).flat_map(Chunk::take_all_wakers).collect();
        self.closed.store(true, Ordering::SeqCst);
        wakers
    }

    pub(crate) fn wait(&self, index: u32, waker: &Waker, ticket: &mut Option<u64>) -> Poll<State> {
        let (_, chunk, slot) = self.locate(index);
        chunk.wait(slot, &self.closed, waker, ticket)
    }

    pub(crate) fn forget(&self, index: u32, ticket: u64) {
        let (_, chunk, slot) = self.locate(index);
        chunk.forget(slot, ticket);
    }

    pub(crate) fn word(&self, index: u32) -> Word {
        let (_, chunk, slot) = self.locate(index);
        chunk.load(slot)
    }

    /// Reads connections chunk by chunk: for each chunk, the slots that
    /// `choose` names. Consistent within a chunk.
    pub(crate) fn read<S: Iterator<Item = u32>>(
        &self,
        mut choose: impl FnMut(u32) -> S,
        mut each: impl FnMut(u32, &Class, K, Word),
    ) where
        K: Clone,
    {
        for (number, entry) in self.directory.entries(0, self.chunk_count()) {
            let Some(chunk) = entry.chunk() else { continue };
            let mut slots = choose(number).take_while(|slot| *slot < SLOTS as u32).peekable();
            if slots.peek().is_some() {
                chunk.read(slots, &mut |key, word| each(number, &chunk.class, key, word));
            }
        }
    }

    fn grow(&self, class: &Arc<Class>) -> u32 {
        let growing = lock(&self.growing);
        let number = self.chunks.load(Ordering::Relaxed);
        let added = self.directory.add(number, Chunk::new(Arc::clone(class)));
        assert!(added.is_some(), "a checker holds at most 4,294,901,760 connections");
        self.chunks.store(number + 1, Ordering::Release);
        drop(growing);
        number
    }

    fn chunk(&self, number: u32) -> (&Entry<K>, &Chunk<K>) {
        match self.directory.entry(number).and_then(|entry| Some((entry, entry.chunk()?))) {
            Some(found) => found,
            None => unreachable!("chunks are never removed"),
        }
    }

    #[inline]
    fn locate(&self, index: u32) -> (&Entry<K>, &Chunk<K>, u32) {
        match self.directory.locate(index) {
            Some(found) => found,
            None => unreachable!("an index is given out after its chunk was made, and chunks are never removed"),
        }
    }
}
