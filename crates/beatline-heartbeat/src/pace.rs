//! From readings of the clock to steps, and what a late sweep means.
//!
//! # Steps
//!
//! A *step* is a third of the tick. The sweeper publishes the number of the
//! step it is in; a beat copies that number. Three uncertainties of at most one
//! step each make up the tick of the promise:
//!
//! ```text
//!  step      T        T+1       T+2                         N
//!  ──────────┼──●──────┼─────────┼──────── … ────────────────┼────► time
//!            │  beat   │         │                           │
//!        publishes T   │    latest instant               first sweep at
//!                publishes T+1   a beat stamped T         which it is due
//!                (perhaps a bit  can have had
//!                 late)          ├──────── time-out ─────────┤
//! ```
//!
//! A beat stamped `T` was made before the publication that followed `T`. If that
//! publication came within its own step, the beat was made before `T + 2`, and
//! the connection is due at step `N = T + 2 + ⌈time-out / step⌉`: never early,
//! and at most `time-out + 3 steps` after the beat.
//!
//! # Gaps
//!
//! If the publication after `T` was late, so that it published `T' > T + 1`,
//! beats stamped `T` may be as young as `T'`. The pair is kept as a *gap*, and
//! stamps equal to `T` are read as `T' - 1`. Nothing is rewritten, so no beat
//! under way can be missed, and the beat itself never reads a clock.
//!
//! # Pauses
//!
//! A sweep that is late by more than `late_after`, or before which the wall
//! clock ran ahead of the monotonic one (which stands still during suspend),
//! ends a *pause*: beats may be waiting unread in socket buffers. Of a pause no
//! more than `late_after` counts as time, and every class of connections gets a
//! full grace before anyone of it is declared dead, see [`Silence::effective`].

use std::collections::VecDeque;
use std::time::Duration;

use beatline_core::Moment;

use crate::class::Class;
use crate::mutants::planted;
use crate::word::{FIRST_STEP, MAX_ADVANCE, Word};

/// At most so many gaps are kept apart; then the two oldest become one, which
/// is later at detecting and never early.
const MAX_GAPS: usize = 1_024;

/// Suspend is seen by the wall clock; a step of it by less than this is not one.
const SHORTEST_SUSPEND: Duration = Duration::from_secs(1);

/// Beats stamped `first..=last` are read as stamped `effective`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Gap {
    first: u64,
    last: u64,
    effective: u64,
}

/// The late publications of which a stamp may still speak.
#[derive(Debug, Default)]
pub(crate) struct Gaps(VecDeque<Gap>);

impl Gaps {
    /// The latest step that a beat stamped `stamp` can be taken for.
    fn effective(&self, stamp: u64) -> u64 {
        if planted("gaps-ignored") {
            return stamp;
        }
        let after = self.0.partition_point(|gap| gap.last < stamp);
        match self.0.get(after) {
            Some(gap) if gap.first <= stamp => gap.effective,
            _ => stamp,
        }
    }

    fn push(&mut self, stamp: u64, effective: u64) {
        if self.0.len() >= MAX_GAPS {
            if let (Some(first), Some(second)) = (self.0.pop_front(), self.0.pop_front()) {
                self.0.push_front(Gap { first: first.first, last: second.last, effective: second.effective });
            }
        }
        self.0.push_back(Gap { first: stamp, last: stamp, effective });
    }

    /// Forgets gaps of stamps that are due either way.
    fn prune(&mut self, step: u64, longest: u64) {
        while self.0.front().is_some_and(|gap| gap.effective.saturating_add(longest) <= step) {
            self.0.pop_front();
        }
    }
}

/// The sweeper's reading of time.
#[derive(Debug)]
pub(crate) struct Pace {
    /// Nanoseconds.
    step_length: u64,
    /// `None`: pauses are not told from time.
    late_after: Option<Duration>,
    last: Option<Moment>,
    /// Nanoseconds since the first sweep, without what pauses do not count.
    observed: u64,
    step: u64,
    pub(crate) gaps: Gaps,
}

/// What one sweep learned from the clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Progress {
    /// The step before.
    pub(crate) previous: u64,
    /// The step now.
    pub(crate) step: u64,
    /// How late this sweep is, against the step that was next.
    pub(crate) lag: Duration,
    /// How long the checker, or the machine, stood still.
    pub(crate) pause: Option<Duration>,
    /// Until the next step begins.
    pub(crate) until_next: Duration,
}

impl Pace {
    pub(crate) fn new(step_length: Duration, late_after: Option<Duration>) -> Self {
        Self {
            step_length: nanoseconds(step_length).max(1),
            late_after,
            last: None,
            observed: 0,
            step: FIRST_STEP,
            gaps: Gaps::default(),
        }
    }

    /// Takes a reading. The first one is the beginning: what was before it
    /// counts for nobody.
    pub(crate) fn advance(&mut self, now: Moment) -> Progress {
        let expected = self.step_length - self.observed % self.step_length;
        let mut lag = 0;
        let mut pause = None;
        if let Some(last) = self.last {
            let elapsed = nanoseconds(now.monotonic.saturating_since(last.monotonic));
            lag = elapsed.saturating_sub(expected);
            pause = self.pause(lag, elapsed, last, now);
            // Not nothing: a checker that is late each time must get on, too.
            let most = expected.saturating_add(nanoseconds(self.late_after.unwrap_or_default()));
            let counted = if pause.is_some() { elapsed.min(most) } else { elapsed };
            let bounded = counted.min(MAX_ADVANCE.saturating_mul(self.step_length));
            self.observed = self.observed.saturating_add(bounded);
        }
        self.last = Some(match self.last {
            // A clock that ran backwards broke its contract; do not count the same time twice.
            Some(last) if now.monotonic < last.monotonic => Moment::new(last.monotonic, now.wall),
            _ => now,
        });
        let previous = self.step;
        self.step = FIRST_STEP + self.observed / self.step_length;
        if self.step > previous + 1 {
            self.gaps.push(previous, self.step - 1);
        }
        Progress {
            previous,
            step: self.step,
            lag: Duration::from_nanos(lag),
            pause,
            until_next: Duration::from_nanos(self.step_length - self.observed % self.step_length),
        }
    }

    fn pause(&self, lag: u64, elapsed: u64, last: Moment, now: Moment) -> Option<Duration> {
        let late_after = self.late_after?;
        let ahead = now.wall.unix_nanoseconds() - last.wall.unix_nanoseconds() - i128::from(elapsed);
        let suspended = Duration::from_nanos(u64::try_from(ahead.max(0)).unwrap_or(u64::MAX));
        if planted("pause-unnoticed") {
            return None;
        }
        if suspended > late_after.max(SHORTEST_SUSPEND) && !planted("suspend-unnoticed") {
            return Some(suspended);
        }
        let lag = Duration::from_nanos(lag);
        (lag > late_after).then_some(lag)
    }

    pub(crate) fn prune(&mut self, longest: u64) {
        self.gaps.prune(self.step, longest);
    }
}

/// How one sweep reads the stamps of one class.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Silence<'a> {
    pub(crate) step: u64,
    pub(crate) gaps: &'a Gaps,
    /// Beats of the class are read as not older than this step …
    pub(crate) forgiven: u64,
    /// … but not as younger than their own stamp by more than this.
    pub(crate) forgiven_at_most: u64,
}

impl<'a> Silence<'a> {
    pub(crate) fn new(step: u64, gaps: &'a Gaps, class: &Class) -> Self {
        Self { step, gaps, forgiven: class.forgiven(), forgiven_at_most: 3 * class.grace_steps() }
    }

    /// The step that the last beat in `word` counts for.
    ///
    /// After a pause that is late enough to give everyone a grace; but however
    /// often the checker pauses, a beat is never read as younger by more than
    /// three graces, so that the dead are found out in the end.
    pub(crate) fn effective(&self, word: Word) -> u64 {
        let stamp = self.step - word.age(self.step);
        let forgiven = self.forgiven.min(stamp.saturating_add(self.forgiven_at_most));
        self.gaps.effective(stamp).max(forgiven)
    }
}

/// Nanoseconds of a duration, at most `u64::MAX` (584 years).
pub(crate) fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use beatline_core::{Monotonic, Timestamp};

    const STEP: Duration = Duration::from_millis(10);

    fn at(milliseconds: i64) -> Moment {
        Moment::new(
            Monotonic::from_nanoseconds(milliseconds * 1_000_000),
            Timestamp::from_unix_nanoseconds(i128::from(milliseconds) * 1_000_000),
        )
    }

    fn running() -> Pace {
        let mut pace = Pace::new(STEP, Some(Duration::from_millis(200)));
        pace.advance(at(1_000));
        pace
    }

    #[test]
    fn time_before_the_first_reading_counts_for_nobody() {
        let mut pace = Pace::new(STEP, None);
        let progress = pace.advance(at(1_000_000));
        assert_eq!((progress.previous, progress.step), (FIRST_STEP, FIRST_STEP));
        assert_eq!(progress.until_next, STEP);
    }

    #[test]
    fn steps_keep_their_phase_under_jitter() {
        let mut pace = running();
        for (now, step, next) in [(1_012, 1, 8), (1_020, 2, 10), (1_039, 3, 1), (1_040, 4, 10), (1_041, 4, 9)] {
            let progress = pace.advance(at(now));
            assert_eq!(progress.step, FIRST_STEP + step);
            assert_eq!(progress.until_next, Duration::from_millis(next));
        }
        assert_eq!(pace.gaps.0.len(), 0);
    }

    #[test]
    fn a_late_publication_makes_beats_before_it_younger() {
        let mut pace = running();
        let progress = pace.advance(at(1_075));
        assert_eq!((progress.step, progress.lag), (FIRST_STEP + 7, Duration::from_millis(65)));
        assert_eq!(progress.pause, None);
        assert_eq!(pace.gaps.effective(FIRST_STEP), FIRST_STEP + 6);
        assert_eq!(pace.gaps.effective(FIRST_STEP + 1), FIRST_STEP + 1);
        pace.prune(3);
        assert_eq!(pace.gaps.effective(FIRST_STEP), FIRST_STEP + 6);
        pace.prune(1);
        assert_eq!(pace.gaps.effective(FIRST_STEP), FIRST_STEP);
    }

    #[test]
    fn gaps_are_bounded_and_merging_them_is_never_early() {
        let mut gaps = Gaps::default();
        for index in 0..5_000 {
            gaps.push(index * 10, index * 10 + 7);
        }
        assert!(gaps.0.len() <= MAX_GAPS);
        for index in 0..5_000 {
            assert!(gaps.effective(index * 10) >= index * 10 + 7);
        }
        assert_eq!(gaps.effective(49_990), 49_997);
    }

    #[test]
    fn of_a_pause_only_the_tolerance_counts() {
        let mut pace = running();
        pace.advance(at(1_013));
        let progress = pace.advance(at(61_013));
        assert_eq!(progress.pause, Some(Duration::from_millis(59_993)));
        assert_eq!((progress.previous, progress.step), (FIRST_STEP + 1, FIRST_STEP + 22));
        assert_eq!(progress.until_next, STEP);
        assert_eq!(pace.gaps.effective(FIRST_STEP + 1), FIRST_STEP + 21);
    }

    #[test]
    fn suspend_is_seen_by_the_wall_clock() {
        let mut pace = running();
        let hour = Duration::from_secs(3_600);
        let woken = Moment::new(at(1_010).monotonic, at(1_010).wall.saturating_add(hour));
        assert_eq!(pace.advance(woken).pause, Some(hour));
        let back = at(1_020);
        assert_eq!(pace.advance(back).pause, None, "a step backwards is no suspend");
    }

    #[test]
    fn a_standstill_of_years_does_not_confuse_the_wrap() {
        let mut pace = Pace::new(STEP, None);
        pace.advance(at(0));
        let years = 10 * 365 * 86_400_000_i64;
        let progress = pace.advance(at(years));
        assert_eq!(progress.step - progress.previous, MAX_ADVANCE);
    }

    #[test]
    fn a_clock_that_runs_backwards_stands_still() {
        let mut pace = running();
        pace.advance(at(1_050));
        assert_eq!(pace.advance(at(900)).step, FIRST_STEP + 5);
        assert_eq!(pace.advance(at(1_050)).step, FIRST_STEP + 5);
        assert_eq!(pace.advance(at(1_060)).step, FIRST_STEP + 6);
    }
}
