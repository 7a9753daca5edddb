//! The four bytes of a connection that a beat touches.
//!
//! ```text
//!  31 30 29                                  0
//! ┌─────┬─────────────────────────────────────┐
//! │ 0 0 │ next free slot of the chunk, or 0   │  vacant
//! │ 0 1 │ step of the last beat               │  alive
//! │ 1 0 │ step of the last beat               │  suspect
//! │ 1 1 │ report (2 bits) │ step of the expiry │  expired
//! └─────┴─────────────────────────────────────┘
//! ```
//!
//! Steps are counted in 64 bits; a word keeps the lowest 30 of them and wraps.
//! Two steps are compared by their distance, which is exact as long as it is
//! below 2^29. It is: silence and grace end at 2^26 steps each, a beat is given
//! at most three graces on top of its time-out, and the counter never advances
//! by more than 2^27 at once.

use crate::mutants::planted;

/// The bits of a step that a word keeps.
pub(crate) const STAMP_MASK: u32 = (1 << 30) - 1;
/// The longest silence, and the longest grace, in steps.
pub(crate) const MAX_STEPS: u64 = 1 << 26;
/// The farthest the counter of steps moves at once.
pub(crate) const MAX_ADVANCE: u64 = 1 << 27;
/// The first step. Close to the wrap, so that every test and every first hour
/// of a process goes through it.
pub(crate) const FIRST_STEP: u64 = (1 << 30) - 4_096;

const EXPIRED_STEP_MASK: u32 = (1 << 28) - 1;
const IN_HAND: u32 = 1 << 28;
const REPORTED: u32 = 2 << 28;
const REPORT_MASK: u32 = 3 << 28;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    Vacant,
    Alive,
    Suspect,
    Expired,
}

/// A decoded slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Word(pub(crate) u32);

impl Word {
    pub(crate) const fn vacant(next_free: u32) -> Self {
        Word(next_free & STAMP_MASK)
    }

    pub(crate) const fn alive(step: u64) -> Self {
        Word(1 << 30 | step as u32 & STAMP_MASK)
    }

    /// This silence, now under suspicion.
    pub(crate) const fn suspected(self) -> Self {
        Word(2 << 30 | self.0 & STAMP_MASK)
    }

    /// Expired at `step`; its edge waits in the table to be reported.
    pub(crate) const fn expired_unreported(step: u64) -> Self {
        Word(3 << 30 | step as u32 & EXPIRED_STEP_MASK)
    }

    pub(crate) const fn in_hand(self) -> Self {
        Word(self.0 & !REPORT_MASK | IN_HAND)
    }

    pub(crate) const fn reported(self) -> Self {
        Word(self.0 & !REPORT_MASK | REPORTED)
    }

    pub(crate) const fn unreported(self) -> Self {
        Word(self.0 & !REPORT_MASK)
    }

    pub(crate) const fn is_unreported(self) -> bool {
        matches!(self.state(), State::Expired) && self.0 & REPORT_MASK == 0
    }

    pub(crate) const fn is_in_hand(self) -> bool {
        matches!(self.state(), State::Expired) && self.0 & REPORT_MASK == IN_HAND
    }

    pub(crate) const fn state(self) -> State {
        match self.0 >> 30 {
            0 => State::Vacant,
            1 => State::Alive,
            2 => State::Suspect,
            _ => State::Expired,
        }
    }

    /// The next free slot of a vacant one, counted from 1.
    pub(crate) const fn next_free(self) -> u32 {
        self.0 & STAMP_MASK
    }

    /// How many steps before `step` the last beat was; zero if it was later.
    pub(crate) fn age(self, step: u64) -> u64 {
        if planted("compare-without-wrapping") {
            return u64::from(step as u32 & STAMP_MASK).saturating_sub(u64::from(self.0 & STAMP_MASK));
        }
        let age = (step as u32).wrapping_sub(self.0) & STAMP_MASK;
        if age >> 29 == 0 { u64::from(age) } else { 0 }
    }

    /// The age of one that is alive, if it is less than `limit`: the test of
    /// nearly every slot that a sweep looks at.
    #[inline(always)]
    pub(crate) fn age_if_alive_below(self, step: u64, limit: u64) -> Option<u32> {
        let age = (step as u32).wrapping_sub(self.0) & STAMP_MASK;
        (self.0 >> 30 == 1 && u64::from(age) < limit).then_some(age)
    }

    /// Whether the last beat was after `step`.
    pub(crate) fn is_newer_than(self, step: u64) -> bool {
        let ahead = self.0.wrapping_sub(step as u32) & STAMP_MASK;
        ahead != 0 && ahead >> 29 == 0
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn age_is_exact_across_the_wrap() {
        for start in [0_u64, 5, (1 << 30) - 3, (1 << 30), (1 << 32) - 2, (1 << 40) - 1] {
            for age in [0_u64, 1, 2, 1_000, MAX_STEPS, (1 << 29) - 1] {
                assert_eq!(Word::alive(start).age(start + age), age);
                assert_eq!(Word::alive(start + age).is_newer_than(start), age != 0);
            }
            assert_eq!(Word::alive(start + 1).age(start), 0);
            assert!(!Word::alive(start).is_newer_than(start + 7));
        }
    }

    #[test]
    fn the_report_of_an_expired_word_does_not_change_its_step() {
        let word = Word::expired_unreported(FIRST_STEP + 9);
        assert!(word.is_unreported());
        assert!(word.in_hand().is_in_hand());
        assert_eq!(word.in_hand().unreported(), word);
        assert!(!word.reported().is_unreported() && !word.reported().is_in_hand());
        assert_eq!(word.reported().state(), State::Expired);
    }

    #[test]
    fn suspicion_keeps_the_stamp() {
        let word = Word::alive(FIRST_STEP + 77);
        assert_eq!(word.suspected().state(), State::Suspect);
        assert_eq!(word.suspected().age(FIRST_STEP + 80), 3);
        assert_eq!(Word::vacant(12).next_free(), 12);
        assert_eq!(Word::vacant(12).state(), State::Vacant);
    }
}
