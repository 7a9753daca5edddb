//! What the two clocks tell about each other.
//!
//! ```text
//!   monotonic   ──┬────────┬────────┬────────┬──▶
//!   wall          12:00    12:10    13:10    12:20      forwards: what lies between was missed
//!                              ▲ +1 h    ▲ −1 h         backwards: hold, or begin anew from now
//! ```
//!
//! # Ground rules
//!
//! Pure: the driver and the simulator pass each reading in. A deviation within the
//! tolerance is a clock being slewed; beyond it the clock was set, or the machine
//! was suspended. Small backward deviations add up until they count, so that many
//! small steps are seen as well as one large one.

use std::time::Duration;

use beatline_core::{Moment, Monotonic};

use crate::engine::{Engine, PORTION};
use crate::mutants::mutant;

/// A deviation up to this, and a thousandth of the time passed, is no jump.
const TOLERANCE: i128 = 100_000_000;

/// How far ahead of the wall clock the newest due instant handled may be, at most:
/// three hours, in nanoseconds.
pub(crate) const LONGEST_HOLD: i64 = 3 * 3600 * 1_000_000_000;

/// Compares each reading of the pair of clocks with the one before.
#[derive(Debug, Default)]
pub struct ClockWatch {
    last: Option<Moment>,
    /// Backward deviations that were too small to count, in nanoseconds.
    set_back: i128,
}

/// What a reading showed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Deviation {
    /// The wall clock jumped by so much against the monotonic one.
    pub jump: Option<Jump>,
    /// The wall clock is behind what it would be: jobs on it are to be looked at.
    pub is_set_back: bool,
}

/// A jump of the wall clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Jump {
    /// How far.
    pub by: Duration,
    /// Whether into the past.
    pub backward: bool,
}

impl ClockWatch {
    /// A new reading.
    pub fn read(&mut self, now: Moment) -> Deviation {
        let Some(last) = self.last.replace(now) else { return Deviation::default() };
        let elapsed = i128::from(now.monotonic.nanoseconds()) - i128::from(last.monotonic.nanoseconds());
        let deviation = now.wall.unix_nanoseconds() - last.wall.unix_nanoseconds() - elapsed;
        let jumped = deviation.abs() > TOLERANCE + elapsed / 1000;
        let so_far = mutant!("small-steps-forgotten", self.set_back, 0);
        self.set_back = (so_far - deviation).max(0);
        let is_set_back = self.set_back > TOLERANCE;
        if is_set_back {
            self.set_back = 0;
        }
        let by = Duration::from_nanos(u64::try_from(deviation.unsigned_abs()).unwrap_or(u64::MAX));
        Deviation { jump: jumped.then_some(Jump { by, backward: deviation < 0 }), is_set_back }
    }
}

/// How often jobs on the wall clock are asked again, and how long the driver
/// sleeps at most where the system tells when the clock is set.
pub const WATCHED_RECHECK: Duration = Duration::from_secs(60);

/// What each look does for jobs on the wall clock, besides firing them.
#[derive(Debug)]
pub struct WallTurn<J> {
    watch: ClockWatch,
    refreshed: Option<Monotonic>,
    /// Jobs that are to be asked again, a portion at each look.
    stale: Vec<J>,
}

/// What a job on the wall clock is to be told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Word {
    /// [`State::clock_set_back`](crate::state::State::clock_set_back).
    SetBack,
    /// [`State::refresh`](crate::state::State::refresh): time-zone data may change
    /// while the program runs.
    Refresh,
}

impl<J> Default for WallTurn<J> {
    fn default() -> Self {
        Self { watch: ClockWatch::default(), refreshed: None, stale: Vec::new() }
    }
}

impl<J: Clone> WallTurn<J> {
    /// A look at `now`: gives each job that is to be told something to `tell`.
    /// `is_armed` tells whether a deadline is the one its job is armed for.
    /// Returns the jump that was seen, and whether there is more to do at once.
    pub fn look(
        &mut self,
        engine: &mut Engine<J>,
        now: Moment,
        is_armed: impl Fn(&J, i64) -> bool,
        mut tell: impl FnMut(J, Word),
    ) -> (Option<Jump>, bool) {
        let deviation = self.watch.read(now);
        if !engine.has_wall_jobs() {
            return (None, false);
        }
        if mutant!("set-back-not-told", deviation.is_set_back, false) {
            for job in engine.wall_jobs(&is_armed) {
                tell(job, Word::SetBack);
            }
        }
        let refreshed = *self.refreshed.get_or_insert(now.monotonic);
        if self.stale.is_empty() && now.monotonic.saturating_since(refreshed) >= WATCHED_RECHECK {
            self.refreshed = Some(now.monotonic);
            self.stale = mutant!("refresh-forgotten", engine.wall_jobs(&is_armed), Vec::new());
        }
        let rest = self.stale.len().saturating_sub(PORTION);
        for job in self.stale.drain(rest..) {
            tell(job, Word::Refresh);
        }
        (deviation.jump, !self.stale.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use beatline_core::{Monotonic, Timestamp};

    fn at(monotonic_ms: i64, wall_ms: i128) -> Moment {
        let wall = Timestamp::from_unix_nanoseconds(wall_ms * 1_000_000);
        Moment::new(Monotonic::from_nanoseconds(monotonic_ms * 1_000_000), wall)
    }

    #[test]
    fn a_slewed_clock_is_not_a_jump_and_a_set_one_is() {
        let mut watch = ClockWatch::default();
        assert_eq!(watch.read(at(0, 1_000)), Deviation::default());
        assert_eq!(watch.read(at(1_000, 2_050)), Deviation::default());
        assert_eq!(watch.read(at(3_601_000, 3_603_500)), Deviation::default(), "a thousandth of an hour");
        let forward = watch.read(at(3_602_000, 7_204_500)).jump;
        assert_eq!(forward, Some(Jump { by: Duration::from_secs(3_600), backward: false }));
        let back = watch.read(at(3_603_000, 5_500));
        assert_eq!(back.jump, Some(Jump { by: Duration::from_secs(7_200), backward: true }));
        assert!(back.is_set_back);
    }

    #[test]
    fn many_small_steps_back_are_seen() {
        let mut watch = ClockWatch::default();
        let seen = (0..30).filter(|step| watch.read(at(step * 1_000, i128::from(step * 950))).is_set_back).count();
        assert!(seen >= 9, "{seen}");
    }
}
