//! Clock chaos: years of suspends, steps of the wall clock, pauses of the process
//! and changed zone data, against jobs on the wall clock and beside them.
//!
//! ```text
//!   wall  ──┬─────╮   ╭───────┬────────┬─── ▸ +400 d ──┬─────────▶
//!         step    suspend   pause    zone            step back
//!   after every step: nothing twice, nothing early, nothing late, no silence, all accounted for
//! ```
//!
//! The timers, the state machine and what each look does for wall-clock jobs are
//! the scheduler's own; when a job must begin anew, and what it must wait for
//! next, is worked out again here.
//!
//! A chaos is a row of *lives*: each is a process of its own, with other jobs,
//! weather of its own, with or without a system that tells when the clock is set.
//!
//! ```
//! use beatline_core::Overlap;
//! use beatline_test::simulator::ClockChaos;
//!
//! let report = ClockChaos::new(7, Overlap::Skip).hours(500).run()?;
//! assert!(report.fires > 0);
//! # Ok::<(), beatline_test::simulator::Violation>(())
//! ```

mod checks;
mod jobs;
mod life;

use std::time::Duration;

use beatline_core::Overlap;

use super::violation::{Broken, Violation};
use crate::random::mix;
use life::Life;

/// How long one life lasts, in virtual hours.
const LIFE: u64 = 500;

/// Clock chaos over so many virtual hours, for one overlap policy.
#[derive(Clone, Copy, Debug)]
pub struct ClockChaos {
    seed: u64,
    overlap: Overlap,
    hours: u64,
}

/// What a chaos without a violation came to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ClockReport {
    /// Virtual time that passed, suspends included.
    pub elapsed: Duration,
    /// Processes that lived through it.
    pub lives: u64,
    /// Looks of the driver.
    pub looks: u64,
    /// Steps of the state machine.
    pub steps: u64,
    /// Occurrences that became due.
    pub due: u64,
    /// Runs that started.
    pub fires: u64,
    /// What was done to time, in the order of [`ClockReport::KINDS`].
    pub injected: [u64; ClockReport::KINDS.len()],
    /// Schedules that began anew because the clock was set far back.
    pub rebases: u64,
    /// Due instants that were decided on again after such a rebase, as documented.
    pub repeated: u64,
    /// Jumps of the clock that were seen.
    pub jumps: u64,
    /// How long an occurrence on the wall clock was due before it was decided on,
    /// pauses apart, where the system does not tell when the clock is set.
    pub worst_lateness: Duration,
    /// The same where it tells.
    pub worst_lateness_watched: Duration,
    /// The longest silence of a job on the wall clock since it was decided on, or
    /// since the driver saw that the clock had been set back, in thousandths of what
    /// is allowed.
    pub worst_silence: u64,
}

impl ClockReport {
    /// What is done to time.
    pub const KINDS: [&'static str; 6] = ["suspend", "step 250 ms", "step 2 h", "step 400 d", "pause", "zone change"];

    /// Adds another report.
    pub fn add(&mut self, other: &ClockReport) {
        self.elapsed += other.elapsed;
        self.lives += other.lives;
        self.looks += other.looks;
        self.steps += other.steps;
        self.due += other.due;
        self.fires += other.fires;
        for (mine, theirs) in self.injected.iter_mut().zip(other.injected) {
            *mine += theirs;
        }
        self.rebases += other.rebases;
        self.repeated += other.repeated;
        self.jumps += other.jumps;
        self.worst_lateness = self.worst_lateness.max(other.worst_lateness);
        self.worst_lateness_watched = self.worst_lateness_watched.max(other.worst_lateness_watched);
        self.worst_silence = self.worst_silence.max(other.worst_silence);
    }
}

impl ClockChaos {
    /// A chaos of a thousand hours.
    #[must_use]
    pub const fn new(seed: u64, overlap: Overlap) -> Self {
        Self { seed, overlap, hours: 1000 }
    }

    /// Goes on for so many virtual hours.
    #[must_use]
    pub const fn hours(mut self, hours: u64) -> Self {
        self.hours = hours;
        self
    }

    /// Runs it.
    ///
    /// # Errors
    ///
    /// The first violation.
    pub fn run(self) -> Result<ClockReport, Violation> {
        let mut sum = ClockReport::default();
        for number in 0..self.hours.div_ceil(LIFE) {
            let hours = LIFE.min(self.hours - number * LIFE);
            let mut life = Life::new(self.seed ^ mix(number), self.overlap);
            let lived = life.live(Duration::from_secs(hours * 3600));
            let report = life.into_report();
            if let Err(Broken { invariant, message }) = lived {
                let (step, elapsed) = (sum.steps + report.steps, sum.elapsed + report.elapsed);
                let message = format!("{message}; life {number} with {:?}", self.overlap);
                let fires = sum.fires + report.fires;
                return Err(Violation { seed: self.seed, fires, invariant, step, elapsed, message });
            }
            sum.add(&report);
        }
        Ok(sum)
    }
}
