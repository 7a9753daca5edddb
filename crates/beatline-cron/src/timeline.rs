//! From local times to instants: what happens at a clock change.
//!
//! A zone is a row of segments, each with one offset. Which local times of a
//! segment count depends on the rules:
//!
//! ```text
//!   gap     local  01:00 ──── 02:00 ╌╌╌╌╌╌╌╌ 03:00 ──── 04:00
//!                             └── missing ──┘│
//!                                            ▼ shifted times happen here, once
//!
//!   fold    local  01:00 ──── 02:00                       first pass
//!                  01:00 ──── 02:00 ──── 03:00            second pass
//!           First  ━━━━━━━━━━━             ━━━━━
//!                                     ━━━━━               (one row of time)
//! ```
//!
//! * an interval job counts every local time of every segment;
//! * a fixed-time job counts a repeated time in the first pass (or the last, or
//!   both), and a missing one at the segment's first instant (or not at all).
//!
//! # Ground rules
//!
//! The search carries what it found: a local time known to be the first match
//! from some point on stays so in the next segment, unless that begins before
//! the point (a fold) or after the match (a gap). A leap day eight clock
//! changes ahead costs one search and eight looks.

use crate::calendar::DAY;
use crate::mutants::mutant;
use crate::offsets::{Offsets, Segment};

/// A jump of this many seconds is a correction of the clock, not a season.
const CORRECTION: i64 = 3 * 3600;

/// No two segments closer than this show the same local time: offsets differ
/// by 26 hours at most.
const OVERLAP: i64 = 2 * DAY;

/// A set of local times, in seconds.
pub(crate) trait LocalTimes {
    /// The first that is not before `local`.
    fn at_or_after(&self, local: i64) -> Option<i64>;
    /// The last that is not after `local`.
    fn at_or_before(&self, local: i64) -> Option<i64>;
    /// How many lie from `from` up to but not including `to`.
    fn count(&self, from: i64, to: i64) -> u64;
}

/// Which pass of a repeated local time counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pass {
    First,
    Last,
    Both,
}

/// How local times become instants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Rules {
    pub(crate) pass: Pass,
    /// Whether a missing time happens right after the gap.
    pub(crate) shift: bool,
}

impl Rules {
    pub(crate) const REAL_TIME: Rules = Rules { pass: Pass::Both, shift: false };

    /// The local times of a segment that count, as a half-open range.
    fn window(self, segment: &Segment) -> (i64, i64) {
        let (start, end) = (segment.local_start(), segment.local_end());
        match self.pass {
            Pass::First => (mutant!("fold-first", start.max(segment.seen_until), start), end),
            Pass::Last => (start, mutant!("fold-last", end.min(segment.repeated_from), end)),
            Pass::Both => (start, end),
        }
    }

    /// The missing local times that happen at the segment's first instant.
    fn gap(self, segment: &Segment) -> Option<(i64, i64)> {
        let (from, to) = (segment.seen_until, segment.local_start());
        let is_season = mutant!("correction", to - from < CORRECTION, to - from <= CORRECTION);
        (mutant!("gap-shift", self.shift, false) && from < to && is_season).then_some((from, to))
    }
}

/// Local times in a zone: a row of instants, in seconds since the epoch.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Timeline<'a, L> {
    pub(crate) offsets: &'a Offsets,
    pub(crate) local: L,
    pub(crate) rules: Rules,
}

impl<L: LocalTimes> Timeline<'_, L> {
    /// The first occurrence that is not before `instant`, nor after `limit`.
    pub(crate) fn at_or_after(&self, instant: i64, limit: i64) -> Option<i64> {
        let mut segment = self.offsets.at(instant);
        let mut known = Known::first(&self.local);
        loop {
            if segment.start > limit {
                return None;
            }
            let (from, to) = self.rules.window(&segment);
            if segment.start >= instant {
                if let Some((missing, until)) = self.rules.gap(&segment) {
                    if known.at_or_after(missing).is_some_and(|local| local < until) {
                        return Some(segment.start);
                    }
                }
            }
            let from = from.max(instant + segment.offset);
            match known.at_or_after(from) {
                Some(local) if local < to => return Some(local - segment.offset).filter(|found| *found <= limit),
                // Later segments begin later, in local time too.
                None if segment.start > instant + OVERLAP => return None,
                _ => segment = self.offsets.after(&segment)?,
            }
        }
    }

    /// The last occurrence that is not after `instant`, nor before `limit`.
    pub(crate) fn at_or_before(&self, instant: i64, limit: i64) -> Option<i64> {
        let mut segment = self.offsets.at(instant);
        let mut known = Known::last(&self.local);
        loop {
            if segment.end <= limit {
                return None;
            }
            let (from, to) = self.rules.window(&segment);
            let to = (to - 1).min(instant + segment.offset);
            let found = known.at_or_before(to);
            if let Some(local) = found.filter(|local| *local >= from) {
                return Some(local - segment.offset).filter(|found| *found >= limit);
            }
            if self.has_missed(&segment) {
                return Some(segment.start).filter(|found| *found >= limit);
            }
            if found.is_none() && segment.end < instant - OVERLAP {
                return None;
            }
            segment = self.offsets.before(&segment)?;
        }
    }

    /// How many occurrences lie from `from` to `to`, both included.
    pub(crate) fn count(&self, from: i64, to: i64) -> u64 {
        let mut count = 0;
        if from > to {
            return count;
        }
        let mut segment = self.offsets.at(from);
        loop {
            let (first, end) = self.rules.window(&segment);
            let (first, end) = (first.max(from + segment.offset), end.min(to + 1 + segment.offset));
            count += self.local.count(first, end);
            let is_shifted = segment.start >= from && self.has_missed(&segment);
            // A shifted run that meets a regular one is the same run.
            let meets = is_shifted && self.local.at_or_after(segment.local_start()) == Some(segment.local_start());
            if is_shifted && mutant!("count-meeting", !meets, true) {
                count += mutant!("count-gap", 1, 0);
            }
            match self.offsets.after(&segment) {
                Some(next) if next.start <= to => segment = next,
                _ => return count,
            }
        }
    }

    fn has_missed(&self, segment: &Segment) -> bool {
        self.rules
            .gap(segment)
            .is_some_and(|(missing, until)| self.local.at_or_after(missing).is_some_and(|local| local < until))
    }
}

/// The last answer of a search, good for every question it also answers.
struct Known<'a, L> {
    local: &'a L,
    asked: i64,
    answer: Option<i64>,
}

impl<'a, L: LocalTimes> Known<'a, L> {
    fn first(local: &'a L) -> Self {
        // Nothing known: asked beyond the end of time.
        Self { local, asked: i64::MAX, answer: None }
    }

    fn last(local: &'a L) -> Self {
        Self { local, asked: i64::MIN, answer: None }
    }

    fn at_or_after(&mut self, from: i64) -> Option<i64> {
        let covers = self.asked <= from && self.answer.is_none_or(|answer| from <= answer);
        if !mutant!("carried-too-far", covers, self.asked != i64::MAX) {
            (self.asked, self.answer) = (from, self.local.at_or_after(from));
        }
        self.answer
    }

    fn at_or_before(&mut self, to: i64) -> Option<i64> {
        let covers = self.asked >= to && self.answer.is_none_or(|answer| to >= answer);
        if !covers {
            (self.asked, self.answer) = (to, self.local.at_or_before(to));
        }
        self.answer
    }
}
