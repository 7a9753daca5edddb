use crate::{Due, Moment, Monotonic};

/// What a trigger may base its answer on.
///
/// Made by the scheduler. For tests and previews start from
/// [`TriggerContext::new`] and set the fields that matter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TriggerContext {
    /// Both clocks, read when the present decision began.
    pub now: Moment,
    /// Both clocks when the job was added; or, the wall clock having been set back
    /// to before that, the instant the schedule goes on from.
    pub registered: Moment,
    /// The occurrence handled last, whatever its fate; the answer must lie
    /// after it. `None` before the first.
    pub previous_due: Option<Due>,
    /// When the last run started, on the monotonic clock.
    pub last_start: Option<Monotonic>,
    /// When the occurrence at `previous_due` got its fate: its run ended, or
    /// it was skipped. `None` while it is waiting or running, and before the
    /// first.
    pub completion: Option<Monotonic>,
    /// How many occurrences became due so far.
    pub due_count: u64,
    /// How many runs started so far.
    pub started_count: u64,
}

impl TriggerContext {
    /// The context of a job that was added at `registered` and has no history.
    #[must_use]
    pub const fn new(registered: Moment) -> Self {
        Self {
            now: registered,
            registered,
            previous_due: None,
            last_start: None,
            completion: None,
            due_count: 0,
            started_count: 0,
        }
    }

    /// The previous occurrence on the monotonic line, if there was one there.
    #[must_use]
    pub const fn previous_monotonic(&self) -> Option<Monotonic> {
        match self.previous_due {
            Some(Due::Monotonic(at)) => Some(at),
            _ => None,
        }
    }

    /// This context one occurrence later: `due` was handled, and skipped or
    /// completed at once.
    #[must_use]
    pub const fn after(mut self, due: Due) -> Self {
        self.previous_due = Some(due);
        self.due_count += 1;
        self.completion = Some(match due {
            Due::Monotonic(at) => at,
            Due::Wall(_) => self.now.monotonic,
        });
        self
    }
}
