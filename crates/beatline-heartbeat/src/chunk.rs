//! 1,024 connections of one class.
//!
//! # Ground rules
//!
//! * `slots` is what beats touch. Whoever changes a word that is not vacant does
//!   it by compare-and-swap of the value it decided on, so that of a beat and an
//!   expiry one wins and the other notices.
//! * `cold` is taken to add, to remove, to report and to wait; never by a beat,
//!   and by a sweep only for the waiters of those it expired. A word becomes
//!   vacant or stops being vacant, and an edge is claimed for reporting, only
//!   under it. So a claim that succeeded was before the removal, and a claim
//!   after the removal fails.
//! * Keys and wakers are dropped, and wakers woken, after `cold` is released:
//!   they may run foreign code. A key is cloned under it.

use std::sync::Arc;
use std::task::{Poll, Waker};

use crate::class::Class;
use crate::mutants::planted;
use crate::pace::Silence;
use crate::sync::{AtomicBool, AtomicU32, Mutex, Ordering, lock};
use crate::waiters::Waiters;
use crate::word::{State, Word};

/// How many bits of an index say which slot of its chunk it is.
pub(crate) const SLOT_BITS: u32 = if cfg!(loom) { 1 } else { 10 };
/// Slots of a chunk.
pub(crate) const SLOTS: usize = 1 << SLOT_BITS;

/// So many slots are looked at together.
const BLOCK: usize = if cfg!(loom) { 1 } else { 32 };

const SET_WORDS: usize = SLOTS.div_ceil(64);

pub(crate) struct Chunk<K> {
    slots: [AtomicU32; SLOTS],
    pub(crate) class: Arc<Class>,
    /// Whether the chunk is in the list of those that have edges to report.
    pub(crate) listed: AtomicBool,
    cold: Mutex<Cold<K>>,
}

struct Cold<K> {
    /// Dense: `keys[position[slot]]` is the key of an occupied slot.
    keys: Vec<K>,
    position: [u16; SLOTS],
    /// The first slot, counted from 1, of the list of vacated ones; 0 at its end.
    vacated: u32,
    /// Slots from here on were never used.
    unused_from: u32,
    /// Made when the first task waits for an expiry in this chunk.
    waiters: Option<Box<Waiters>>,
}

/// What became of a touch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Touched {
    Alive,
    /// It was suspect until this very touch.
    Recovered,
    Dead,
}

/// What a scan of the chunk found.
#[derive(Debug)]
pub(crate) struct Scan {
    /// The earliest step at which a slot has to be looked at again.
    pub(crate) look_at: u64,
    pub(crate) suspects: Vec<(u32, Word)>,
    pub(crate) expired: u64,
    /// How many of the expired had been suspect.
    pub(crate) were_suspect: u64,
    /// Which slots expired.
    set: [u64; SET_WORDS],
    /// The number of steps each became due before this one, summed and at most.
    pub(crate) overdue: u64,
}

impl<K> Chunk<K> {
    pub(crate) fn new(class: Arc<Class>) -> Self {
        Self {
            slots: std::array::from_fn(|_| AtomicU32::new(Word::vacant(0).0)),
            class,
            listed: AtomicBool::new(false),
            cold: Mutex::new(Cold {
                keys: Vec::new(),
                position: [0; SLOTS],
                vacated: 0,
                unused_from: 0,
                waiters: None,
            }),
        }
    }

    /// Occupies a slot; the caller knows that one is vacant. Also answers
    /// whether it was the last.
    pub(crate) fn occupy(&self, key: K, step: u64) -> (u32, bool) {
        let mut cold = lock(&self.cold);
        let slot = if cold.vacated != 0 {
            let slot = cold.vacated - 1;
            cold.vacated = self.load(slot).next_free();
            slot
        } else {
            cold.unused_from += 1;
            cold.unused_from - 1
        };
        cold.position[slot as usize] = cold.keys.len() as u16;
        cold.keys.push(key);
        let full = cold.keys.len() == SLOTS;
        // A new connection is as good as one touched now: it has a full time-out before it.
        self.slots[slot as usize].store(Word::alive(step).0, Ordering::Release);
        (slot, full)
    }

    /// Vacates a slot. Answers the last word, and whether the chunk was full.
    pub(crate) fn vacate(&self, slot: u32) -> (Word, bool) {
        let mut cold = lock(&self.cold);
        let next = Word::vacant(cold.vacated);
        let word = Word(self.slots[slot as usize].swap(next.0, Ordering::AcqRel));
        cold.vacated = slot + 1;
        let full = cold.keys.len() == SLOTS;
        let position = cold.position[slot as usize];
        let last = (cold.keys.len() - 1) as u16;
        if position != last {
            // The last key moves into the hole; find whose it is among the occupied.
            let moved = (0..cold.unused_from)
                .find(|&other| cold.position[other as usize] == last && self.load(other).state() != State::Vacant);
            if let Some(moved) = moved {
                cold.position[moved as usize] = position;
            }
        }
        let key = cold.keys.swap_remove(usize::from(position));
        let wakers = cold.waiters.as_mut().map(|waiters| waiters.take(slot));
        let emptied = cold.keys.is_empty().then(|| (std::mem::take(&mut cold.keys), cold.waiters.take()));
        drop(cold);
        drop((key, wakers, emptied));
        (word, full)
    }

    #[inline]
    pub(crate) fn touch(&self, slot: u32, step: u64) -> Touched {
        let slot = &self.slots[slot as usize];
        let now = Word::alive(step);
        let mut seen = Word(slot.load(Ordering::Relaxed));
        loop {
            if seen == now {
                return Touched::Alive;
            }
            match seen.state() {
                // A beat that read the step later was here already.
                State::Alive if seen.is_newer_than(step) && !planted("touch-backwards") => return Touched::Alive,
                State::Alive | State::Suspect => {
                    if planted("touch-plain-store") {
                        slot.store(now.0, Ordering::Release);
                        return Touched::Alive;
                    }
                    match slot.compare_exchange_weak(seen.0, now.0, Ordering::AcqRel, Ordering::Relaxed) {
                        Ok(_) if seen.state() == State::Suspect => return Touched::Recovered,
                        Ok(_) => return Touched::Alive,
                        Err(actual) => seen = Word(actual),
                    }
                }
                State::Expired | State::Vacant => return Touched::Dead,
            }
        }
    }

    /// A beat on behalf of the connection that was suspect as `word`, if it
    /// still is.
    pub(crate) fn clear(&self, slot: u32, word: Word, step: u64) -> bool {
        self.change(slot, word, Word::alive(step))
    }

    /// Looks at every slot, suspects and expires what is due, and says when to
    /// look again. No foreign code runs here.
    pub(crate) fn scan(&self, first_index: u32, silence: &Silence<'_>, expired_as: Word) -> Scan {
        let thresholds = self.class.thresholds;
        let mut scan = Scan {
            look_at: u64::MAX,
            suspects: Vec::new(),
            expired: 0,
            were_suspect: 0,
            set: [0; SET_WORDS],
            overdue: 0,
        };
        let first_look = thresholds.suspect.unwrap_or(thresholds.expire);
        let mut oldest = None;
        let mut block_is_young = false;
        for slot in 0..SLOTS {
            if slot % BLOCK == 0 {
                let age = self.young_block(slot, silence.step, first_look);
                oldest = oldest.max(age);
                block_is_young = age.is_some();
            }
            if block_is_young {
                continue;
            }
            // Relaxed: whatever is decided here is decided by the compare-and-swap after it.
            let mut word = Word(self.slots[slot].load(Ordering::Relaxed));
            if let Some(age) = word.age_if_alive_below(silence.step, first_look) {
                oldest = oldest.max(Some(age));
                continue;
            }
            loop {
                let state = word.state();
                if !matches!(state, State::Alive | State::Suspect) {
                    break;
                }
                let effective = silence.effective(word);
                let expires = effective.saturating_add(thresholds.expire);
                let suspected = thresholds.suspect.map(|steps| effective.saturating_add(steps));
                if silence.step >= expires {
                    if self.change(slot as u32, word, expired_as) {
                        scan.expired += 1;
                        scan.were_suspect += u64::from(state == State::Suspect);
                        scan.overdue = scan.overdue.max(silence.step - expires);
                        scan.set[slot / 64] |= 1 << (slot % 64);
                        break;
                    }
                } else if let (State::Alive, Some(at)) = (state, suspected) {
                    if silence.step < at {
                        scan.look_at = scan.look_at.min(at);
                        break;
                    }
                    if self.change(slot as u32, word, word.suspected()) {
                        scan.suspects.push((first_index + slot as u32, word.suspected()));
                        scan.look_at = scan.look_at.min(expires);
                        break;
                    }
                } else {
                    scan.look_at = scan.look_at.min(expires);
                    break;
                }
                // It changed under our eyes: a beat, or it was removed. Look again.
                word = self.load(slot as u32);
            }
        }
        if let Some(age) = oldest {
            scan.look_at = scan.look_at.min(silence.step - u64::from(age) + first_look);
        }
        scan
    }

    /// The greatest age in a block of slots, if all of them are alive and younger
    /// than `limit`. Nearly all blocks are, so this is a subtraction and a
    /// maximum a slot: any other state, and a stamp from the other side of the
    /// wrap, makes the difference larger than every limit.
    fn young_block(&self, first: usize, step: u64, limit: u64) -> Option<u32> {
        let now = Word::alive(step).0;
        let block = &self.slots[first..(first + BLOCK).min(SLOTS)];
        let oldest = block.iter().fold(0, |oldest, word| now.wrapping_sub(word.load(Ordering::Relaxed)).max(oldest));
        (u64::from(oldest) < limit).then_some(oldest)
    }

    /// The wakers of those that `scan` expired.
    pub(crate) fn take_wakers(&self, scan: &Scan) -> Vec<Waker> {
        let mut cold = lock(&self.cold);
        let Some(waiters) = cold.waiters.as_mut() else { return Vec::new() };
        let slots = (0..SLOTS as u32).filter(|slot| scan.set[*slot as usize / 64] >> (slot % 64) & 1 == 1);
        slots.flat_map(|slot| waiters.take(slot)).collect()
    }

    pub(crate) fn take_all_wakers(&self) -> Vec<Waker> {
        let mut cold = lock(&self.cold);
        cold.waiters.as_mut().map_or_else(Vec::new, |waiters| waiters.take_all())
    }

    /// Waits for the expiry of a slot, or for `closed`: ready with whether it
    /// expired. `ticket` is the place of one waiting future among others.
    pub(crate) fn wait(&self, slot: u32, closed: &AtomicBool, waker: &Waker, ticket: &mut Option<u64>) -> Poll<State> {
        let ready = || match self.load(slot).state() {
            State::Expired => Some(State::Expired),
            _ if closed.load(Ordering::Acquire) => Some(State::Alive),
            _ => None,
        };
        if let Some(state) = ready() {
            return Poll::Ready(state);
        }
        let waker = waker.clone();
        let mut cold = lock(&self.cold);
        // Once more under the lock: whoever expires or closes takes it afterwards to wake us.
        if !planted("wait-unchecked") {
            if let Some(state) = ready() {
                drop(cold);
                return Poll::Ready(state);
            }
        }
        let replaced = cold.waiters.get_or_insert_with(Box::default).register(slot, waker, ticket);
        drop(cold);
        drop(replaced);
        Poll::Pending
    }

    pub(crate) fn forget(&self, slot: u32, ticket: u64) {
        let mut cold = lock(&self.cold);
        let waker = cold.waiters.as_mut().and_then(|waiters| waiters.forget(slot, ticket));
        drop(cold);
        drop(waker);
    }

    /// Takes edges that wait to be reported, at most `limit`, into `hand`.
    /// Answers whether there may be more.
    pub(crate) fn collect(&self, first_index: u32, limit: usize, hand: &mut Vec<(u32, Word)>) -> bool {
        for slot in 0..SLOTS as u32 {
            let word = self.load(slot);
            if word.is_unreported() {
                if hand.len() >= limit {
                    return true;
                }
                if self.change(slot, word, word.in_hand()) {
                    hand.push((first_index + slot, word.in_hand()));
                }
            }
        }
        false
    }

    /// Claims an edge, in hand or suspect, for reporting: the key, if the
    /// connection is still there and still in that state. From here on the edge
    /// counts as reported.
    pub(crate) fn claim(&self, slot: u32, word: Word) -> Option<K>
    where
        K: Clone,
    {
        let cold = lock(&self.cold);
        let valid = if word.is_in_hand() { self.change(slot, word, word.reported()) } else { self.load(slot) == word };
        if !valid && !planted("claim-unchecked") {
            return None;
        }
        cold.keys.get(usize::from(cold.position[slot as usize])).cloned()
    }

    /// Back to the table with an edge that was in hand and not claimed.
    pub(crate) fn put_back(&self, slot: u32, word: Word) -> bool {
        self.change(slot, word, word.unreported())
    }

    /// The keys of the occupied ones of `slots`, with their words.
    pub(crate) fn read(&self, slots: impl Iterator<Item = u32>, each: &mut dyn FnMut(K, Word))
    where
        K: Clone,
    {
        let cold = lock(&self.cold);
        for slot in slots.take_while(|slot| *slot < cold.unused_from) {
            let word = self.load(slot);
            if word.state() != State::Vacant {
                if let Some(key) = cold.keys.get(usize::from(cold.position[slot as usize])) {
                    each(key.clone(), word);
                }
            }
        }
    }

    pub(crate) fn load(&self, slot: u32) -> Word {
        Word(self.slots[slot as usize].load(Ordering::Acquire))
    }

    fn change(&self, slot: u32, from: Word, to: Word) -> bool {
        if planted("expire-plain-store") && to.state() == State::Expired {
            self.slots[slot as usize].store(to.0, Ordering::Release);
            return true;
        }
        self.slots[slot as usize].compare_exchange(from.0, to.0, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }
}
