//! Tasks that wait for connections of one chunk to expire.

use std::task::Waker;

use crate::chunk::SLOTS;

/// Wakers by slot. Nearly always one task waits for a connection, so the first
/// has a place of its own and others share a list.
pub(crate) struct Waiters {
    first: Vec<Option<(u64, Waker)>>,
    others: Vec<(u32, u64, Waker)>,
    next_ticket: u64,
}

impl Default for Waiters {
    fn default() -> Self {
        Self { first: std::iter::repeat_with(|| None).take(SLOTS).collect(), others: Vec::new(), next_ticket: 0 }
    }
}

impl Waiters {
    /// Registers, or replaces the waker of `ticket`. Answers what it replaced,
    /// to be dropped outside the lock.
    pub(crate) fn register(&mut self, slot: u32, waker: Waker, ticket: &mut Option<u64>) -> Option<Waker> {
        if let Some(known) = *ticket {
            if let Some(place) = self.find(slot, known) {
                return Some(std::mem::replace(place, waker));
            }
        }
        let fresh = *ticket.insert(self.next_ticket);
        self.next_ticket += 1;
        match &mut self.first[slot as usize] {
            place @ None => *place = Some((fresh, waker)),
            Some(_) => self.others.push((slot, fresh, waker)),
        }
        None
    }

    pub(crate) fn forget(&mut self, slot: u32, ticket: u64) -> Option<Waker> {
        let first = &mut self.first[slot as usize];
        if first.as_ref().is_some_and(|(known, _)| *known == ticket) {
            return first.take().map(|(_, waker)| waker);
        }
        let position = self.others.iter().position(|(of, known, _)| (*of, *known) == (slot, ticket))?;
        Some(self.others.swap_remove(position).2)
    }

    /// Everyone who waits for `slot`.
    pub(crate) fn take(&mut self, slot: u32) -> Vec<Waker> {
        let first = self.first[slot as usize].take().map(|(_, waker)| waker);
        if self.others.is_empty() {
            return first.into_iter().collect();
        }
        let (taken, left) =
            std::mem::take(&mut self.others).into_iter().partition::<Vec<_>, _>(|(of, _, _)| *of == slot);
        self.others = left;
        let others = taken.into_iter().map(|(_, _, waker)| waker);
        first.into_iter().chain(others).collect()
    }

    /// Everyone.
    pub(crate) fn take_all(&mut self) -> Vec<Waker> {
        let first = self.first.iter_mut().filter_map(|place| place.take().map(|(_, waker)| waker));
        first.chain(self.others.drain(..).map(|(_, _, waker)| waker)).collect()
    }

    fn find(&mut self, slot: u32, ticket: u64) -> Option<&mut Waker> {
        match &mut self.first[slot as usize] {
            Some((known, waker)) if *known == ticket => Some(waker),
            _ => {
                let mut others = self.others.iter_mut();
                others.find(|(of, known, _)| (*of, *known) == (slot, ticket)).map(|(_, _, waker)| waker)
            }
        }
    }
}
