//! What a job was added with; the same for its whole life.

use std::sync::Arc;
use std::time::Duration;

use beatline_core::{Decision, Misfire, Overlap, OverlapPolicy, OverlapView};

/// The settings of a job. Jobs with equal settings share one.
#[derive(Debug)]
pub struct JobConfig {
    /// What happens if it is still running.
    pub overlap: OverlapChoice,
    /// How many runs may be active.
    pub max_concurrent: usize,
    /// How many occurrences may wait.
    pub buffer: usize,
    /// What happens to missed occurrences.
    pub misfire: Misfire,
    /// How long a run may take.
    pub timeout: Option<Duration>,
    /// How long a run that timed out may take to stop by itself.
    pub timeout_grace: Duration,
    /// Higher goes first among equal deadlines.
    pub priority: i8,
    /// The trigger in a few words.
    pub trigger: String,
    /// The longest time between two occurrences.
    pub longest_gap: Option<Duration>,
}

impl JobConfig {
    /// Whether a job with these settings can share `other`. Custom policies are
    /// objects of their own and never shared.
    pub(crate) fn is_same(&self, other: &JobConfig) -> bool {
        let (OverlapChoice::BuiltIn(mine), OverlapChoice::BuiltIn(theirs)) = (&self.overlap, &other.overlap) else {
            return false;
        };
        mine == theirs
            && self.max_concurrent == other.max_concurrent
            && self.buffer == other.buffer
            && self.misfire == other.misfire
            && self.timeout == other.timeout
            && self.timeout_grace == other.timeout_grace
            && self.priority == other.priority
            && self.trigger == other.trigger
            && self.longest_gap == other.longest_gap
    }
}

/// A built-in policy, decided without a virtual call, or a user's own.
#[derive(Clone)]
pub enum OverlapChoice {
    /// One of ours.
    BuiltIn(Overlap),
    /// A user's.
    Custom(Arc<dyn OverlapPolicy>),
}

impl OverlapChoice {
    /// Tells ours from a user's.
    pub fn new(policy: impl OverlapPolicy) -> Self {
        match policy.built_in() {
            Some(overlap) => OverlapChoice::BuiltIn(overlap),
            None => OverlapChoice::Custom(Arc::new(policy)),
        }
    }

    /// The policy as an object.
    pub fn policy(&self) -> &dyn OverlapPolicy {
        match self {
            OverlapChoice::BuiltIn(overlap) => overlap,
            OverlapChoice::Custom(policy) => &**policy,
        }
    }

    pub(crate) fn needs_runs(&self) -> bool {
        matches!(self, OverlapChoice::Custom(_))
    }

    pub(crate) fn decide(&self, view: &OverlapView<'_>) -> Decision {
        match self {
            OverlapChoice::BuiltIn(overlap) => overlap.decision(view.has_room()),
            OverlapChoice::Custom(policy) => policy.decide(view),
        }
    }
}

impl std::fmt::Debug for OverlapChoice {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.policy().describe())
    }
}
