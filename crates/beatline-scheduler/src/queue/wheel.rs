//! A hierarchical timing wheel that gives entries back in exact order.
//!
//! ```text
//!   level 0   64 slots of 2^20 ns (about 1 ms)   ▁▁▁█▁▁█▁▁▁…      opened one at a time, sorted
//!   level 1   64 slots of 64 × that              ▁█▁▁▁▁▁▁▁▁…      poured into the levels below
//!   …                                                             when the clock reaches them
//!   level 7   all of the 292 years an i64 of nanoseconds can count
//! ```
//!
//! # Ground rules
//!
//! * `elapsed` is the tick up to which everything was taken out of the slots. An
//!   entry of a later tick lies on the level of the highest group of six bits in
//!   which its tick differs from `elapsed`; as `elapsed` only ever moves to the
//!   start of an occupied slot that is earliest, this holds for all entries at
//!   all times.
//! * Entries of ticks up to `elapsed` lie in `open`, a heap in the order
//!   (deadline, priority, sequence); nothing later than `elapsed` does.
//! * Each slot knows its earliest deadline, so the next deadline of all is read,
//!   not searched, and is exact: no rounding up here.
//! * A tick with more than [`HERD`] entries does not go to `open` but to `herd`,
//!   from which it is taken in portions, so that later ticks are not held up.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

/// Priority and registration sequence in one number; smaller goes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct OrderKey(u64);

impl OrderKey {
    /// `sequence` has room for 2^56 registrations. A higher priority goes first.
    #[must_use]
    pub fn new(priority: i8, sequence: u64) -> Self {
        let rank = (i16::from(i8::MAX) - i16::from(priority)) as u64;
        Self(rank << 56 | sequence & (u64::MAX >> 8))
    }
}

/// Something to be given back at its deadline.
#[derive(Debug)]
pub(crate) struct Entry<T> {
    /// When, in nanoseconds on this wheel's line.
    pub(crate) deadline: i64,
    /// The order among equal deadlines.
    pub(crate) key: OrderKey,
    /// What.
    pub(crate) item: T,
}

impl<T> Entry<T> {
    fn rank(&self) -> (i64, OrderKey) {
        (self.deadline, self.key)
    }
}

impl<T> PartialEq for Entry<T> {
    fn eq(&self, other: &Self) -> bool {
        self.rank() == other.rank()
    }
}

impl<T> Eq for Entry<T> {}

impl<T> PartialOrd for Entry<T> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<T> Ord for Entry<T> {
    /// Reversed, because the standard heap gives back its greatest.
    fn cmp(&self, other: &Self) -> Ordering {
        other.rank().cmp(&self.rank())
    }
}

/// A tick is 2^20 ns.
const TICK_BITS: u32 = 20;
const GROUP_BITS: u32 = 6;
const SLOTS: usize = 1 << GROUP_BITS;
/// 8 groups of 6 bits cover the 43 bits that remain of a positive i64.
const LEVELS: usize = 8;

/// A tick with more entries than this is worked off in portions.
pub(crate) const HERD: usize = 4096;
/// Vectors of emptied slots kept for reuse.
const POOLED: usize = 64;

/// The wheel.
#[derive(Debug)]
pub(crate) struct Wheel<T> {
    elapsed: u64,
    levels: Vec<Level<T>>,
    open: BinaryHeap<Entry<T>>,
    herd: BinaryHeap<Entry<T>>,
    herd_tick: u64,
    pool: Vec<Vec<Entry<T>>>,
    len: usize,
}

#[derive(Debug)]
struct Level<T> {
    occupied: u64,
    slots: Vec<Slot<T>>,
}

#[derive(Debug)]
struct Slot<T> {
    earliest: i64,
    entries: Vec<Entry<T>>,
}

impl<T> Default for Wheel<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> Wheel<T> {
    /// An empty wheel that has not moved yet.
    pub(crate) fn new() -> Self {
        let slot = || Slot { earliest: i64::MAX, entries: Vec::new() };
        let level = || Level { occupied: 0, slots: std::iter::repeat_with(slot).take(SLOTS).collect() };
        Self {
            elapsed: 0,
            levels: std::iter::repeat_with(level).take(LEVELS).collect(),
            open: BinaryHeap::new(),
            herd: BinaryHeap::new(),
            herd_tick: 0,
            pool: Vec::new(),
            len: 0,
        }
    }

    /// How many entries it holds.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Adds an entry. A deadline of `i64::MAX` never comes and is not kept.
    pub(crate) fn insert(&mut self, entry: Entry<T>) {
        if entry.deadline == i64::MAX {
            return;
        }
        self.len += 1;
        self.place(entry);
    }

    /// The exact earliest deadline; `None` if there is none.
    pub(crate) fn next_deadline(&self) -> Option<i64> {
        let waiting = [&self.open, &self.herd].into_iter().filter_map(|heap| heap.peek().map(|entry| entry.deadline));
        let slots = self.earliest_slot().map(|(level, slot)| self.levels[level].slots[slot].earliest);
        waiting.chain(slots).min()
    }

    /// Whether a tick too large for one go is being worked off.
    pub(crate) fn has_herd(&self) -> bool {
        !self.herd.is_empty()
    }

    /// The next entry due at `now` or before, in order; the herd aside.
    pub(crate) fn pop(&mut self, now: i64) -> Option<Entry<T>> {
        loop {
            if let Some(first) = self.open.peek() {
                // Everything still in a slot is of a later tick than `elapsed`.
                if first.deadline > now {
                    return None;
                }
                self.len -= 1;
                return self.open.pop();
            }
            if !self.open_earliest_slot(now) {
                return None;
            }
        }
    }

    /// The next entry of the herd due at `now` or before.
    pub(crate) fn pop_herd(&mut self, now: i64) -> Option<Entry<T>> {
        if self.herd.peek()?.deadline > now {
            return None;
        }
        self.len -= 1;
        self.herd.pop()
    }

    /// Everything it holds, in no particular order.
    pub(crate) fn items(&self) -> impl Iterator<Item = &T> {
        let slots = self.levels.iter().flat_map(|level| &level.slots).flat_map(|slot| &slot.entries);
        self.open.iter().chain(&self.herd).chain(slots).map(|entry| &entry.item)
    }

    /// Drops the entries for which `keep` says no; O(n).
    pub(crate) fn retain(&mut self, mut keep: impl FnMut(&T, i64) -> bool) {
        for heap in [&mut self.open, &mut self.herd] {
            heap.retain(|entry| keep(&entry.item, entry.deadline));
        }
        self.len = self.open.len() + self.herd.len();
        for level in &mut self.levels {
            for (index, slot) in level.slots.iter_mut().enumerate() {
                slot.entries.retain(|entry| keep(&entry.item, entry.deadline));
                if slot.entries.is_empty() {
                    slot.entries = Vec::new();
                    level.occupied &= !(1 << index);
                }
                slot.earliest = slot.entries.iter().map(|entry| entry.deadline).min().unwrap_or(i64::MAX);
                self.len += slot.entries.len();
            }
        }
    }

    /// Drops one entry with this deadline, if its slot is small enough to look
    /// through. Returns whether it was found.
    pub(crate) fn remove_if_cheap(&mut self, deadline: i64, mut is: impl FnMut(&T) -> bool) -> bool {
        const CHEAP: usize = 64;
        let tick = tick_of(deadline);
        if tick <= self.elapsed || deadline == i64::MAX {
            return false;
        }
        let (level, index) = position(self.elapsed, tick);
        let slot = &mut self.levels[level].slots[index];
        if slot.entries.len() > CHEAP {
            return false;
        }
        let Some(found) = slot.entries.iter().position(|entry| entry.deadline == deadline && is(&entry.item)) else {
            return false;
        };
        slot.entries.swap_remove(found);
        self.len -= 1;
        slot.earliest = slot.entries.iter().map(|entry| entry.deadline).min().unwrap_or(i64::MAX);
        if slot.entries.is_empty() {
            self.levels[level].occupied &= !(1 << index);
        }
        true
    }

    fn place(&mut self, entry: Entry<T>) {
        let tick = tick_of(entry.deadline);
        if tick <= self.elapsed {
            // Equal deadlines keep their order, in a herd too.
            let first = self.herd.peek().map(|first| tick_of(first.deadline));
            let joins = first.is_some_and(|first| (first..=self.herd_tick).contains(&tick));
            if joins { &mut self.herd } else { &mut self.open }.push(entry);
            return;
        }
        let (level, index) = position(self.elapsed, tick);
        self.levels[level].occupied |= 1 << index;
        let slot = &mut self.levels[level].slots[index];
        slot.earliest = slot.earliest.min(entry.deadline);
        if slot.entries.capacity() == 0 {
            if let Some(pooled) = self.pool.pop() {
                slot.entries = pooled;
            }
        }
        slot.entries.push(entry);
    }

    /// The occupied slot with the earliest entries: a lower level is always
    /// earlier, as its ticks agree with `elapsed` in more groups.
    fn earliest_slot(&self) -> Option<(usize, usize)> {
        self.levels
            .iter()
            .enumerate()
            .find(|(_, level)| level.occupied != 0)
            .map(|(index, level)| (index, level.occupied.trailing_zeros() as usize))
    }

    /// Moves the earliest slot's entries into `open` (or `herd`), or one or more
    /// levels down; not if all of it lies after `now`.
    fn open_earliest_slot(&mut self, now: i64) -> bool {
        let Some((level, index)) = self.earliest_slot() else { return false };
        let slot = &mut self.levels[level].slots[index];
        if slot.earliest > now {
            return false;
        }
        slot.earliest = i64::MAX;
        let mut entries = std::mem::take(&mut slot.entries);
        self.levels[level].occupied &= !(1 << index);

        let shift = GROUP_BITS * level as u32;
        // The groups above this level are those of `elapsed`; the ones below are zero.
        let above = self.elapsed >> (shift + GROUP_BITS) << (shift + GROUP_BITS);
        self.elapsed = above | (index as u64) << shift;
        if level == 0 && entries.len() > HERD {
            self.herd_tick = self.elapsed;
            if self.herd.is_empty() {
                self.herd = BinaryHeap::from(std::mem::take(&mut entries));
            } else {
                self.herd.extend(entries.drain(..));
            }
        } else if level == 0 {
            self.open.extend(entries.drain(..));
        } else {
            for entry in entries.drain(..) {
                self.place(entry);
            }
        }
        if self.pool.len() < POOLED && entries.capacity() > 0 && entries.capacity() <= HERD {
            self.pool.push(entries);
        }
        true
    }
}

/// Deadlines before the clock's origin are due at its first tick.
fn tick_of(deadline: i64) -> u64 {
    deadline.max(0) as u64 >> TICK_BITS
}

/// The level and slot of a tick that lies after `elapsed`.
fn position(elapsed: u64, tick: u64) -> (usize, usize) {
    let highest = 63 - (elapsed ^ tick).leading_zeros();
    let level = highest / GROUP_BITS;
    let slot = tick >> (level * GROUP_BITS) & (SLOTS as u64 - 1);
    (level as usize, slot as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(deadline: i64, sequence: u64) -> Entry<u64> {
        Entry { deadline, key: OrderKey::new(0, sequence), item: sequence }
    }

    /// A small generator, so that a failure can be repeated from its seed.
    struct Random(u64);

    impl Random {
        fn next(&mut self) -> u64 {
            self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            self.0 >> 17
        }
    }

    fn drain(wheel: &mut Wheel<u64>, now: i64) -> Vec<(i64, u64)> {
        let mut popped = Vec::new();
        loop {
            let next = wheel.pop_herd(now).or_else(|| wheel.pop(now));
            let Some(entry) = next else { return popped };
            popped.push((entry.deadline, entry.item));
        }
    }

    #[test]
    fn it_gives_back_what_a_sorted_list_would_whatever_the_distances() {
        for seed in 0..300 {
            let mut random = Random(seed);
            let (mut wheel, mut model) = (Wheel::new(), Vec::new());
            let (mut now, mut sequence) = (0_i64, 0);
            for _ in 0..200 {
                match random.next() % 3 {
                    0 | 1 => {
                        let bits = random.next() % 62;
                        let distance = (random.next() & ((1 << bits) - 1)) as i64;
                        let deadline = now.saturating_add(distance);
                        wheel.insert(entry(deadline, sequence));
                        model.push((deadline, sequence));
                        sequence += 1;
                    }
                    _ => {
                        let bits = random.next() % 58;
                        now = now.saturating_add((random.next() & ((1 << bits) - 1)) as i64);
                        let mut expected: Vec<_> = model.iter().copied().filter(|(at, _)| *at <= now).collect();
                        expected.sort_unstable();
                        model.retain(|(at, _)| *at > now);
                        assert_eq!(drain(&mut wheel, now), expected, "seed {seed}");
                    }
                }
                assert_eq!(wheel.next_deadline(), model.iter().map(|(at, _)| *at).min(), "seed {seed}");
                assert_eq!(wheel.len(), model.len());
            }
        }
    }

    #[test]
    fn equal_deadlines_come_in_priority_then_registration_order() {
        let mut wheel = Wheel::new();
        for (priority, sequence) in [(0, 2), (5, 9), (0, 1), (-3, 0), (5, 8)] {
            wheel.insert(Entry { deadline: 7_000_000, key: OrderKey::new(priority, sequence), item: sequence });
        }
        let order: Vec<_> = drain(&mut wheel, 7_000_000).into_iter().map(|(_, item)| item).collect();
        assert_eq!(order, [8, 9, 1, 2, 0]);
    }

    #[test]
    fn the_end_of_time_never_comes_and_the_past_comes_at_once() {
        let mut wheel = Wheel::new();
        wheel.insert(entry(i64::MAX, 1));
        assert_eq!(wheel.len(), 0);
        wheel.insert(entry(i64::MAX - 1, 2));
        wheel.insert(entry(i64::MIN, 3));
        wheel.insert(entry(-1, 4));
        assert_eq!(drain(&mut wheel, 0), [(i64::MIN, 3), (-1, 4)]);
        assert_eq!(wheel.next_deadline(), Some(i64::MAX - 1));
        assert_eq!(drain(&mut wheel, i64::MAX), [(i64::MAX - 1, 2)]);
    }

    #[test]
    fn a_herd_does_not_hold_up_a_later_tick() {
        let mut wheel = Wheel::new();
        for sequence in 0..HERD as u64 + 1 {
            wheel.insert(entry(50_000_000, sequence));
        }
        wheel.insert(entry(60_000_000, u64::MAX >> 8));
        assert_eq!(wheel.pop(60_000_000).map(|entry| entry.deadline), Some(60_000_000));
        assert!(wheel.has_herd());
        let herd: Vec<_> = std::iter::from_fn(|| wheel.pop_herd(60_000_000)).map(|entry| entry.item).collect();
        assert!(herd.is_sorted() && herd.len() == HERD + 1);
    }

    #[test]
    fn removed_and_retained_entries_leave_the_next_deadline_exact() {
        for seed in 0..100 {
            let mut random = Random(seed);
            let (mut wheel, mut model) = (Wheel::new(), Vec::new());
            for sequence in 0..200 {
                let deadline = (random.next() % 10_000_000_000) as i64 + (1 << 20);
                wheel.insert(entry(deadline, sequence));
                model.push((deadline, sequence));
            }
            wheel.retain(|item, _| item % 3 != 0);
            model.retain(|(_, item)| item % 3 != 0);
            for _ in 0..50 {
                let (deadline, item) = model[random.next() as usize % model.len()];
                if wheel.remove_if_cheap(deadline, |found| *found == item) {
                    model.retain(|(_, kept)| *kept != item);
                }
                assert_eq!(wheel.next_deadline(), model.iter().map(|(at, _)| *at).min());
                assert_eq!(wheel.len(), model.len());
            }
        }
    }
}
