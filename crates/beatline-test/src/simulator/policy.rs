//! The overlap policies of a scenario, each with a reference.

use std::panic::resume_unwind;
use std::time::Duration;

use beatline_core::{Decision, Keep, Overflow, Overlap, OverlapPolicy, OverlapView};
use beatline_scheduler::simulation::OverlapChoice;

use super::trigger::nanoseconds;
use crate::random::mix;

/// A policy as the scenario describes it.
#[derive(Clone, Copy, Debug)]
pub(super) enum PolicySpec {
    BuiltIn(Overlap),
    Custom(Erratic),
}

/// A user's policy: gives every answer there is, at odds with sense, as a pure
/// function of what it is shown; and panics now and then.
#[derive(Clone, Copy, Debug)]
pub(super) struct Erratic {
    pub(super) seed: u64,
    pub(super) buffer: usize,
}

/// What a policy is shown, as the model sees it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shown {
    pub(super) due: i64,
    pub(super) lateness: Duration,
    pub(super) active: usize,
    pub(super) max_concurrent: usize,
    pub(super) buffered: usize,
    /// How long the oldest active run has been active.
    pub(super) oldest: Option<Duration>,
    /// How many of the active runs have started.
    pub(super) started: usize,
}

impl PolicySpec {
    pub(super) fn build(&self) -> OverlapChoice {
        match self {
            PolicySpec::BuiltIn(overlap) => OverlapChoice::BuiltIn(*overlap),
            PolicySpec::Custom(erratic) => OverlapChoice::new(*erratic),
        }
    }

    pub(super) fn buffer(&self) -> usize {
        match self {
            PolicySpec::BuiltIn(overlap) => overlap.buffer(),
            PolicySpec::Custom(erratic) => erratic.buffer,
        }
    }

    /// What the policy must answer; `None` for a panic.
    pub(super) fn decide(&self, shown: &Shown) -> Option<Decision> {
        let overlap = match self {
            PolicySpec::Custom(erratic) => return erratic.answer(shown),
            PolicySpec::BuiltIn(overlap) => overlap,
        };
        if shown.active < shown.max_concurrent {
            return Some(Decision::Start);
        }
        Some(match overlap {
            Overlap::BufferOne { keep: Keep::First } => Decision::Buffer,
            Overlap::BufferOne { keep: Keep::Latest } => Decision::BufferSupersede,
            Overlap::BufferAll { overflow: Overflow::DropNewest, .. } => Decision::Buffer,
            Overlap::BufferAll { overflow: Overflow::DropOldest, .. } => Decision::BufferDropOldest,
            _ => Decision::Skip,
        })
    }
}

impl Erratic {
    fn answer(&self, shown: &Shown) -> Option<Decision> {
        let counts = (shown.active as u64) << 32 | (shown.buffered as u64) << 16 | shown.started as u64;
        let ages = nanoseconds(shown.lateness) as u64 ^ shown.oldest.map_or(1, nanoseconds).rotate_left(17) as u64;
        let hash = mix(self.seed ^ mix(shown.due as u64 ^ mix(counts ^ mix(ages ^ shown.max_concurrent as u64))));
        Some(match hash % 64 {
            0 => return None,
            1..16 => Decision::Skip,
            16..36 => Decision::Start,
            36..46 => Decision::Buffer,
            46..55 => Decision::BufferDropOldest,
            _ => Decision::BufferSupersede,
        })
    }
}

impl OverlapPolicy for Erratic {
    fn decide(&self, view: &OverlapView<'_>) -> Decision {
        let due = match view.due {
            beatline_core::Due::Monotonic(at) => at.nanoseconds(),
            beatline_core::Due::Wall(at) => at.unix_nanoseconds() as i64,
        };
        let shown = Shown {
            due,
            lateness: view.lateness,
            active: view.runs.len(),
            max_concurrent: view.max_concurrent,
            buffered: view.buffered,
            oldest: view.oldest_age(),
            started: view.runs.iter().filter(|run| run.started.is_some()).count(),
        };
        // Past the panic hook: a scripted panic is no news.
        self.answer(&shown).unwrap_or_else(|| resume_unwind(Box::new("a scripted policy panicked")))
    }

    fn buffer(&self) -> usize {
        self.buffer
    }
}
