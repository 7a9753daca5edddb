//! How an occurrence ends: it ran, or it was skipped for a named reason.

use std::fmt;

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Outcome {
    /// It returned `()` or `Ok(())`.
    Completed,
    /// It returned an error.
    Failed,
    /// It panicked, in the call that made the future or in a poll.
    Panicked,
    /// It outlasted its time-out and was dropped.
    TimedOut,
    /// It returned after its token had been cancelled, whatever it returned.
    Cancelled(Cause),
    /// It was dropped before it returned.
    Aborted(Cause),
}

impl Outcome {
    /// Every outcome's label, in the order of [`Outcome::index`].
    pub const LABELS: [&'static str; 6] = ["completed", "failed", "panicked", "timed_out", "cancelled", "aborted"];

    /// The position of this outcome in [`Outcome::LABELS`], whatever its cause.
    #[must_use]
    pub const fn index(self) -> usize {
        match self {
            Outcome::Completed => 0,
            Outcome::Failed => 1,
            Outcome::Panicked => 2,
            Outcome::TimedOut => 3,
            Outcome::Cancelled(_) => 4,
            Outcome::Aborted(_) => 5,
        }
    }

    /// The word for metrics and summaries, such as `timed_out`.
    #[must_use]
    pub const fn label(self) -> &'static str {
        Self::LABELS[self.index()]
    }

    /// Whether something went wrong with the run itself: it failed, panicked
    /// or timed out. Being cancelled is not a failure.
    #[must_use]
    pub const fn is_failure(self) -> bool {
        matches!(self, Outcome::Failed | Outcome::Panicked | Outcome::TimedOut)
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.label())?;
        match self {
            Outcome::Cancelled(cause) | Outcome::Aborted(cause) => write!(f, " ({})", cause.label()),
            _ => Ok(()),
        }
    }
}

/// Who ended a run that did not end by itself. The first cause is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Cause {
    /// A newer occurrence took its place.
    Replaced,
    /// The scheduler shut down or was dropped.
    Shutdown,
    /// Someone asked for it.
    User,
    /// The tokio runtime went away.
    Runtime,
}

impl Cause {
    /// The word for logs, such as `shutdown`.
    #[must_use]
    pub const fn label(self) -> &'static str {
        match self {
            Cause::Replaced => "replaced",
            Cause::Shutdown => "shutdown",
            Cause::User => "user",
            Cause::Runtime => "runtime",
        }
    }
}

/// Why an occurrence never started.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum SkipReason {
    /// It was missed, and the misfire policy drops what was missed.
    Misfire,
    /// It was missed by more than the window.
    MissedWindow,
    /// A later occurrence ran for it as well.
    Coalesced,
    /// More were missed than the catch-up policy makes up for.
    CatchupCap,
    /// Earlier runs were still active and the overlap policy says skip.
    Overlap,
    /// It would have waited, but the buffer was full.
    BufferFull,
    /// It waited, and a newer occurrence took its place.
    Superseded,
    /// The job was paused.
    Paused,
    /// A guard said no.
    Vetoed,
    /// The scheduler shut down first.
    Shutdown,
    /// The job was removed first.
    Removed,
}

impl SkipReason {
    /// Every reason's label, in the order of [`SkipReason::index`].
    pub const LABELS: [&'static str; 11] = [
        "misfire",
        "missed_window",
        "coalesced",
        "catchup_cap",
        "overlap",
        "buffer_full",
        "superseded",
        "paused",
        "vetoed",
        "shutdown",
        "removed",
    ];

    /// The position of this reason in [`SkipReason::LABELS`].
    #[must_use]
    pub const fn index(self) -> usize {
        match self {
            SkipReason::Misfire => 0,
            SkipReason::MissedWindow => 1,
            SkipReason::Coalesced => 2,
            SkipReason::CatchupCap => 3,
            SkipReason::Overlap => 4,
            SkipReason::BufferFull => 5,
            SkipReason::Superseded => 6,
            SkipReason::Paused => 7,
            SkipReason::Vetoed => 8,
            SkipReason::Shutdown => 9,
            SkipReason::Removed => 10,
        }
    }

    /// The word for metrics and summaries, such as `buffer_full`.
    #[must_use]
    pub const fn label(self) -> &'static str {
        Self::LABELS[self.index()]
    }
}

impl fmt::Display for SkipReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.label())
    }
}

/// The one end of an occurrence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Fate {
    /// It started, and the run ended so.
    Ran(Outcome),
    /// It never started.
    Skipped(SkipReason),
}

impl fmt::Display for Fate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fate::Ran(outcome) => outcome.fmt(f),
            Fate::Skipped(reason) => write!(f, "skipped ({reason})"),
        }
    }
}
