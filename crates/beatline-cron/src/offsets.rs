//! A zone as a table: from when on which offset from UTC holds.
//!
//! # Ground rules
//!
//! The table is made once per version of a zone's data and never changes. It
//! reaches to [`TAIL_END`]; from [`TAIL_START`] on every zone follows a yearly
//! rule, so that later instants are looked up 400 years – a whole cycle of the
//! calendar – earlier, as often as it takes.

use jiff::tz::TimeZone;

use crate::calendar::{CYCLE_DAYS, DAY, Date};
use crate::mutants::mutant;

const CYCLE: i64 = CYCLE_DAYS * DAY;
const TAIL_START: i64 = Date::new(2100, 1, 1).to_day() * DAY;
const TAIL_END: i64 = TAIL_START + CYCLE;

/// Before and after all timestamps, with room to add offsets.
const BEGINNING: i64 = i64::MIN / 4;
const END: i64 = i64::MAX / 4;

/// A stretch of time in which one offset holds, as it is stored.
#[derive(Clone, Copy, Debug)]
struct Stretch {
    /// The instant it begins.
    start: i64,
    /// Local time less UTC, in seconds.
    offset: i32,
    /// From this stretch's first local time to the end of what earlier
    /// stretches showed: positive in a fold, negative after a gap.
    seen: i32,
    /// From this stretch's last local time back to the earliest that a later
    /// stretch shows: positive where the time will be repeated.
    repeated: i32,
}

#[derive(Debug)]
pub(crate) struct Offsets {
    stretches: Vec<Stretch>,
    /// The first stretch that begins in the tail; the table's length where
    /// nothing changes any more.
    tail: usize,
}

/// A stretch of time in which one offset holds. Instants are seconds since the
/// epoch, local times likewise since the local one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Segment {
    index: usize,
    shift: i64,
    /// The first instant.
    pub(crate) start: i64,
    /// The first instant after it.
    pub(crate) end: i64,
    /// Local time less UTC.
    pub(crate) offset: i64,
    /// The local time up to which earlier segments have shown everything.
    pub(crate) seen_until: i64,
    /// The local time from which on later segments show everything again.
    pub(crate) repeated_from: i64,
}

impl Segment {
    pub(crate) fn local_start(&self) -> i64 {
        self.start + self.offset
    }

    pub(crate) fn local_end(&self) -> i64 {
        self.end + self.offset
    }
}

impl Offsets {
    pub(crate) fn fixed(offset: i32) -> Self {
        Self::from_changes(offset, &[])
    }

    pub(crate) fn of(zone: &TimeZone) -> Self {
        if let Ok(offset) = zone.to_fixed_offset() {
            return Self::fixed(offset.seconds());
        }
        let mut changes: Vec<(i64, i32)> = Vec::new();
        for change in zone.following(jiff::Timestamp::MIN) {
            let at = change.timestamp().as_second();
            if at >= TAIL_END {
                break;
            }
            changes.push((at, change.offset().seconds()));
        }
        Self::from_changes(zone.to_offset(jiff::Timestamp::MIN).seconds(), &changes)
    }

    /// From the offset at the beginning of time and the instants at which
    /// another one began to hold.
    fn from_changes(first: i32, changes: &[(i64, i32)]) -> Self {
        let stretch = |start, offset| Stretch { start, offset, seen: 0, repeated: 0 };
        let mut stretches = vec![stretch(BEGINNING, first)];
        for &(start, offset) in changes {
            // A change of name alone is none to us.
            if stretches.last().is_none_or(|last| last.offset != offset) {
                stretches.push(stretch(start, offset));
            }
        }
        let local = |instant: i64, stretch: &Stretch| instant + i64::from(stretch.offset);
        let mut seen = BEGINNING;
        for index in 1..stretches.len() {
            seen = seen.max(local(stretches[index].start, &stretches[index - 1]));
            stretches[index].seen = (seen - local(stretches[index].start, &stretches[index])) as i32;
        }
        let mut repeated = END;
        for index in (1..stretches.len()).rev() {
            repeated = repeated.min(local(stretches[index].start, &stretches[index]));
            stretches[index - 1].repeated = (local(stretches[index].start, &stretches[index - 1]) - repeated) as i32;
        }
        let tail = stretches.partition_point(|stretch| stretch.start < TAIL_START);
        if tail < stretches.len() {
            // What follows the last stretch of the table is the tail's first.
            let last = stretches.len() - 1;
            stretches[last].repeated = stretches[tail - 1].repeated;
        }
        stretches.shrink_to_fit();
        Self { stretches, tail }
    }

    /// The segment that holds at an instant.
    pub(crate) fn at(&self, instant: i64) -> Segment {
        let mut shift = 0;
        if instant >= TAIL_END && self.tail < self.stretches.len() {
            shift = (instant - TAIL_START).div_euclid(CYCLE) * mutant!("cycle", CYCLE, CYCLE - DAY);
        }
        let index = self.stretches.partition_point(|stretch| stretch.start <= instant - shift) - 1;
        if shift > 0 && index < self.tail {
            // Between the beginning of a cycle and its first change.
            return self.segment(self.stretches.len() - 1, shift - CYCLE);
        }
        self.segment(index, shift)
    }

    pub(crate) fn after(&self, segment: &Segment) -> Option<Segment> {
        if segment.index + 1 < self.stretches.len() {
            Some(self.segment(segment.index + 1, segment.shift))
        } else if self.tail < self.stretches.len() {
            Some(self.segment(self.tail, segment.shift + CYCLE))
        } else {
            None
        }
    }

    pub(crate) fn before(&self, segment: &Segment) -> Option<Segment> {
        if segment.index == self.tail && segment.shift > 0 {
            Some(self.segment(self.stretches.len() - 1, segment.shift - CYCLE))
        } else {
            Some(self.segment(segment.index.checked_sub(1)?, segment.shift))
        }
    }

    fn segment(&self, index: usize, shift: i64) -> Segment {
        let stretch = &self.stretches[index];
        let end = match self.stretches.get(index + 1) {
            Some(next) => next.start + shift,
            None if self.tail < self.stretches.len() => self.stretches[self.tail].start + shift + CYCLE,
            None => END,
        };
        let (start, offset) = (stretch.start + shift, i64::from(stretch.offset));
        Segment {
            index,
            shift,
            start,
            end,
            offset,
            seen_until: start + offset + i64::from(stretch.seen),
            repeated_from: end + offset - i64::from(stretch.repeated),
        }
    }

    /// The largest number of seconds a clock change moved local time by, in
    /// either direction, since 1970; zero where the offset never changed.
    pub(crate) fn largest_change(&self) -> i64 {
        let recent = self.stretches.windows(2).filter(|pair| pair[1].start >= 0);
        recent.map(|pair| i64::from((pair[1].offset - pair[0].offset).abs())).max().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers without a pattern, the same in every run.
    fn scrambled(index: u64) -> u64 {
        let mixed = (index ^ index >> 30).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (mixed ^ mixed >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9) ^ index
    }

    #[test]
    fn the_table_answers_as_the_zone_does_over_ten_thousand_years() {
        for name in ["America/New_York", "Europe/Dublin", "Africa/Casablanca", "Australia/Lord_Howe", "Asia/Shanghai"] {
            let zone = TimeZone::get(name).unwrap();
            let offsets = Offsets::of(&zone);
            let (first, last) = (-62_167_219_200_i64, 253_402_200_000_i64);
            for index in 0..20_000 {
                let at = first + (scrambled(index) % (last - first) as u64) as i64;
                let timestamp = jiff::Timestamp::from_second(at).unwrap();
                let segment = offsets.at(at);
                assert_eq!(segment.offset, i64::from(zone.to_offset(timestamp).seconds()), "{name} at {timestamp}");
                assert!((segment.start..segment.end).contains(&at), "{name} at {timestamp}");
            }
        }
    }

    #[test]
    fn segments_join_without_a_seam_across_the_cycles() {
        let offsets = Offsets::of(&TimeZone::get("Europe/Berlin").unwrap());
        let mut segment = offsets.at(TAIL_START - 400 * 366 * DAY);
        for _ in 0..3_000 {
            let next = offsets.after(&segment).unwrap();
            assert_eq!(next.start, segment.end);
            assert_eq!(offsets.before(&next).unwrap().start, segment.start);
            assert_eq!(offsets.at(next.start).start, next.start);
            assert_eq!(offsets.at(next.start - 1).start, segment.start);
            let jump = next.offset - segment.offset;
            assert_eq!(next.seen_until, next.local_start() - jump);
            assert_eq!(segment.repeated_from, next.local_start());
            segment = next;
        }
    }
}
