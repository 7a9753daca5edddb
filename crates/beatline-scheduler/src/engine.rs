//! The timers of all jobs, on both lines: what is due, in which order, and when
//! to look again.
//!
//! # Ground rules
//!
//! Nothing here sleeps, reads a clock or knows a runtime: the driver and the
//! simulator pass in the moment and carry out what is due. One look takes at
//! most [`PORTION`] entries; of a tick with very many entries it takes no more
//! than the caller has room for, and later ticks are looked at first.

use std::time::Duration;

use beatline_core::{Line, Moment, Monotonic};

use crate::mutants::mutant;
use crate::queue::{Entry, OrderKey, Wheel};
use crate::state::wall_nanoseconds;

/// How many entries one look takes at most.
pub const PORTION: usize = 1024;

/// Dead entries below this number are not worth a sweep.
const TOMBSTONES: usize = 64;

/// The timers.
#[derive(Debug)]
pub struct Engine<J> {
    monotonic: Wheel<J>,
    wall: Wheel<J>,
    tombstones: usize,
    /// How long a wall-clock job lets the driver sleep at most: the wall clock may
    /// be set meanwhile.
    pub wall_recheck: Duration,
}

/// When to look again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Look {
    /// At once: there is more to do.
    Now,
    /// When there is room for more of a herd.
    WhenRoom,
    /// At this instant.
    At(Monotonic),
    /// When something is added.
    WhenAdded,
}

impl<J> Default for Engine<J> {
    fn default() -> Self {
        Self { monotonic: Wheel::new(), wall: Wheel::new(), tombstones: 0, wall_recheck: Duration::from_secs(10) }
    }
}

impl<J> Engine<J> {
    /// Adds an entry for a job.
    pub fn arm(&mut self, line: Line, deadline: i64, key: OrderKey, job: J) {
        self.wheel(line).insert(Entry { deadline, key, item: job });
    }

    /// The entry of a cancelled job has lost its meaning: it is dropped where
    /// that is cheap, else with many others.
    pub fn disarm(&mut self, line: Line, deadline: i64, is: impl FnMut(&J) -> bool, alive: impl FnMut(&J) -> bool) {
        if self.wheel(line).remove_if_cheap(deadline, is) {
            return;
        }
        self.tombstones += 1;
        if self.tombstones >= TOMBSTONES && self.tombstones > self.len() / 2 {
            let mut alive = alive;
            self.monotonic.retain(|job, _| alive(job));
            self.wall.retain(|job, _| alive(job));
            self.tombstones = 0;
        }
    }

    /// Gives what is due at `now` to `fire`, in order, with its deadline.
    /// Returns how many entries that were.
    pub fn advance(&mut self, now: Moment, room: usize, mut fire: impl FnMut(J, i64)) -> usize {
        let mut fired = 0;
        for (wheel, now) in self.lines(now) {
            while fired < PORTION {
                let Some(entry) = wheel.pop(now) else { break };
                fire(entry.item, entry.deadline);
                fired += 1;
            }
        }
        let mut room = room.min(PORTION - fired);
        for (wheel, now) in self.lines(now) {
            while room > 0 {
                let Some(entry) = wheel.pop_herd(now) else { break };
                fire(entry.item, entry.deadline);
                fired += 1;
                room -= 1;
            }
        }
        fired
    }

    /// When to look again, having looked at `now`.
    pub fn next_look(&self, now: Moment, has_room: bool) -> Look {
        let monotonic = self.monotonic.next_deadline();
        let wall = self.wall.next_deadline();
        let (mono_now, wall_now) = (now.monotonic.nanoseconds(), wall_nanoseconds(now.wall));
        if monotonic.is_some_and(|at| at <= mono_now) || wall.is_some_and(|at| at <= wall_now) {
            let herd = self.monotonic.has_herd() || self.wall.has_herd();
            return if herd && !has_room { Look::WhenRoom } else { Look::Now };
        }
        let monotonic = monotonic.map(Monotonic::from_nanoseconds);
        let wall = wall.map(|at| {
            let wait = Duration::from_nanos(at.abs_diff(wall_now));
            now.monotonic.saturating_add(mutant!("recheck-missing", wait.min(self.wall_recheck), wait))
        });
        monotonic.into_iter().chain(wall).min().map_or(Look::WhenAdded, Look::At)
    }

    /// The jobs with an entry on the wall clock, in no particular order; O(n).
    /// Entries that a later arming of their job has overtaken are dropped.
    pub fn wall_jobs(&mut self, is_armed: impl FnMut(&J, i64) -> bool) -> Vec<J>
    where
        J: Clone,
    {
        self.wall.retain(is_armed);
        self.wall.items().cloned().collect()
    }

    /// Whether any job has an entry on the wall clock.
    pub fn has_wall_jobs(&self) -> bool {
        self.wall.len() > 0
    }

    /// How many entries there are, dead ones included.
    pub fn len(&self) -> usize {
        self.monotonic.len() + self.wall.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn wheel(&mut self, line: Line) -> &mut Wheel<J> {
        match line {
            Line::Monotonic => &mut self.monotonic,
            Line::Wall => &mut self.wall,
        }
    }

    fn lines(&mut self, now: Moment) -> [(&mut Wheel<J>, i64); 2] {
        let wall = mutant!("wall-early", wall_nanoseconds(now.wall), wall_nanoseconds(now.wall) + 1_000_000_000);
        [(&mut self.monotonic, now.monotonic.nanoseconds()), (&mut self.wall, wall)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A schedule that began anew left its old entry behind, and each walk over the
    /// jobs on the wall clock then met the job once more.
    #[test]
    fn a_walk_meets_each_job_once_and_drops_what_was_overtaken() {
        let mut engine = Engine::default();
        for (sequence, deadline) in [(1, 5_000_000_000), (1, 7_000_000_000), (2, 6_000_000_000)] {
            engine.arm(Line::Wall, deadline, OrderKey::new(0, sequence), sequence);
        }
        let mut jobs = engine.wall_jobs(|job, deadline| *job == 2 || deadline == 7_000_000_000);
        jobs.sort_unstable();
        assert_eq!((jobs, engine.len()), (vec![1, 2], 2));
    }
}
