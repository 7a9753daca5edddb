//! The deterministic simulator: the real timers and the real state machine of
//! every job, on a virtual clock, against everything that can happen to them.
//!
//! ```text
//!   seed ─▶ scenario ─▶ ┌ driver ─▶ timers ─▶ state machine ─▶ hand-offs ─▶ runners ─▶ ends ┐ ─▶ report
//!                       │   ▲ commands: add, cancel, run now, shutdown                      │    or the first
//!                       │   ▲ time: stalls, suspends, wall-clock steps, late runners        │    violation
//!                       └── after every step: I1–I7, and the reference model ───────────────┘
//! ```
//!
//! It does what the scheduler's tokio shell does, in the same order and the same
//! portions, and keeps books of its own: for each job a reference model
//! that works out again, from plain lists, what every step must bring about. A
//! difference is a violation, and a violation is told with the seed that shows
//! it.
//!
//! ```
//! use beatline_test::simulator::Simulation;
//!
//! let report = Simulation::new(42).fires(200).run_twice()?;
//! assert!(report.fires >= 200);
//! # Ok::<(), beatline_test::simulator::Violation>(())
//! ```
//!
//! # What is absent
//!
//! No runtime, no thread, no real time: the shell around the state machine
//! (wakers, tasks, locks) is not simulated; its tests run under tokio's paused
//! clock.

mod checks;
mod clock_chaos;
mod driver;
mod model;
mod operations;
mod policy;
mod runs;
mod scenario;
mod shutdown;
mod trigger;
mod violation;
mod world;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use beatline_core::{Outcome, SkipReason};

pub use clock_chaos::{ClockChaos, ClockReport};
pub use violation::{Invariant, Violation};

use world::World;

/// One simulation: a seed, and how many fires to go on for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Simulation {
    seed: u64,
    fires: u64,
}

/// What a simulation without a violation came to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Report {
    /// Runs that started.
    pub fires: u64,
    /// Occurrences that became due.
    pub due: u64,
    /// Steps of the state machine, each followed by all checks.
    pub steps: u64,
    /// Looks of the driver.
    pub looks: u64,
    /// Jobs that were added.
    pub jobs: u64,
    /// Virtual time that passed, suspends included.
    pub elapsed: Duration,
    /// Suspends and steps of the wall clock.
    pub wall_jumps: u64,
    /// Ended runs by outcome, in the order of [`Outcome::LABELS`].
    pub outcomes: [u64; Outcome::LABELS.len()],
    /// Skipped occurrences by reason, in the order of [`SkipReason::LABELS`].
    pub skipped: [u64; SkipReason::LABELS.len()],
    /// Jobs whose trigger broke the contract, as some do on purpose.
    pub faulted: u64,
    /// The hash of everything that happened.
    pub hash: u64,
}

impl Simulation {
    /// A simulation of a thousand fires.
    #[must_use]
    pub const fn new(seed: u64) -> Self {
        Self { seed, fires: 1000 }
    }

    /// Goes on for so many fires.
    #[must_use]
    pub const fn fires(mut self, fires: u64) -> Self {
        self.fires = fires;
        self
    }

    /// Runs it.
    ///
    /// # Errors
    ///
    /// The first violation.
    pub fn run(self) -> Result<Report, Violation> {
        let mut world = World::new(self.seed, self.fires);
        let ran = catch_unwind(AssertUnwindSafe(|| world.run()));
        let broken = match ran {
            Ok(Ok(())) => return Ok(world.report()),
            Ok(Err(broken)) => broken,
            Err(payload) => {
                let text = payload.downcast_ref::<String>().cloned();
                let text = text.or_else(|| payload.downcast_ref::<&str>().map(|text| (*text).to_owned()));
                let message = text.unwrap_or_else(|| "a panic without a text".to_owned());
                violation::Broken { invariant: Invariant::Panic, message }
            }
        };
        let (step, elapsed) = world.position();
        let violation::Broken { invariant, message } = broken;
        Err(Violation { seed: self.seed, fires: self.fires, invariant, step, elapsed, message })
    }

    /// Runs it twice and compares the hashes of all that happened.
    ///
    /// # Errors
    ///
    /// The first violation.
    pub fn run_twice(self) -> Result<Report, Violation> {
        let (first, second) = (self.run()?, self.run()?);
        if first == second {
            return Ok(first);
        }
        Err(Violation {
            seed: self.seed,
            fires: self.fires,
            invariant: Invariant::Determinism,
            step: first.steps,
            elapsed: first.elapsed,
            message: format!("the first run came to {first:?}, the second to {second:?}"),
        })
    }
}

impl Report {
    /// Adds another report: counts and times; hashes are mixed.
    pub fn add(&mut self, other: &Report) {
        self.fires += other.fires;
        self.due += other.due;
        self.steps += other.steps;
        self.looks += other.looks;
        self.jobs += other.jobs;
        self.elapsed += other.elapsed;
        self.wall_jumps += other.wall_jumps;
        for (mine, theirs) in self.outcomes.iter_mut().zip(other.outcomes) {
            *mine += theirs;
        }
        for (mine, theirs) in self.skipped.iter_mut().zip(other.skipped) {
            *mine += theirs;
        }
        self.faulted += other.faulted;
        self.hash = crate::random::mix(self.hash ^ other.hash);
    }
}
