//! Triggers that answer from a list, and triggers that break the contract.

use std::panic::resume_unwind;
use std::time::Duration;

use beatline_core::{Due, Line, Next, Timestamp, Trigger, TriggerContext};

/// A trigger that answers from a list.
///
/// Pure, as every trigger: where it stands in the list follows from the previous
/// due instant. A fault is reached when every instant before it was handled.
///
/// ```
/// use beatline_core::{Moment, Monotonic, Next, Timestamp, Trigger, TriggerContext};
/// use beatline_test::scripted::Scripted;
/// use std::time::Duration;
///
/// let trigger = Scripted::new().due_after(Duration::from_secs(1)).due_after(Duration::from_secs(5)).panics();
/// let context = TriggerContext::new(Moment::new(Monotonic::ORIGIN, Timestamp::UNIX_EPOCH));
/// assert_eq!(trigger.next(&context), Next::At(Monotonic::from_nanoseconds(1_000_000_000)));
/// ```
#[derive(Clone, Debug, Default)]
pub struct Scripted {
    line: Option<Line>,
    due: Vec<Duration>,
    end: End,
}

/// What a scripted trigger does after its last instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum End {
    /// It answers [`Next::Never`].
    #[default]
    Never,
    /// It panics.
    Panics,
    /// It answers the previous due instant again.
    StandsStill,
    /// It answers an instant on the other line.
    WrongLine,
    /// It answers [`Next::AfterCompletion`], whatever has completed.
    WaitsForEver,
}

impl Scripted {
    /// An empty list on the monotonic line.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The list's instants lie on the wall clock instead.
    #[must_use]
    pub fn on_the_wall(mut self) -> Self {
        self.line = Some(Line::Wall);
        self
    }

    /// One more instant, so long after the registration. Instants must ascend.
    #[must_use]
    pub fn due_after(mut self, delay: Duration) -> Self {
        debug_assert!(self.due.last().is_none_or(|last| *last < delay), "instants must ascend");
        self.due.push(delay);
        self
    }

    /// What it does after the last instant.
    #[must_use]
    pub const fn ending(mut self, end: End) -> Self {
        self.end = end;
        self
    }

    /// It panics after the last instant.
    #[must_use]
    pub const fn panics(self) -> Self {
        self.ending(End::Panics)
    }

    /// It answers the last instant again and again.
    #[must_use]
    pub const fn stands_still(self) -> Self {
        self.ending(End::StandsStill)
    }

    /// It answers on the wrong line after the last instant.
    #[must_use]
    pub const fn answers_the_wrong_line(self) -> Self {
        self.ending(End::WrongLine)
    }

    /// It waits for completions after the last instant, however many come.
    #[must_use]
    pub const fn waits_for_ever(self) -> Self {
        self.ending(End::WaitsForEver)
    }

    pub(crate) fn instants(&self) -> &[Duration] {
        &self.due
    }

    pub(crate) const fn end(&self) -> End {
        self.end
    }

    fn at(&self, context: &TriggerContext, delay: Duration) -> Due {
        match self.line() {
            Line::Monotonic => Due::Monotonic(context.registered.monotonic.saturating_add(delay)),
            Line::Wall => Due::Wall(context.registered.wall.saturating_add(delay)),
        }
    }
}

impl Trigger for Scripted {
    fn next(&self, context: &TriggerContext) -> Next {
        let is_next = |at: &Due| context.previous_due.is_none_or(|previous| *at > previous);
        if let Some(at) = self.due.iter().map(|delay| self.at(context, *delay)).find(is_next) {
            return at.into();
        }
        match (self.end, self.line()) {
            (End::Never, _) => Next::Never,
            // Past the panic hook: a scripted panic is no news.
            (End::Panics, _) => resume_unwind(Box::new("a scripted trigger panicked")),
            (End::StandsStill, _) => context.previous_due.unwrap_or(self.at(context, Duration::ZERO)).into(),
            (End::WrongLine, Line::Monotonic) => Next::AtWall(Timestamp::MAX),
            (End::WrongLine, Line::Wall) => Next::At(context.now.monotonic),
            (End::WaitsForEver, _) => Next::AfterCompletion,
        }
    }

    fn line(&self) -> Line {
        self.line.unwrap_or(Line::Monotonic)
    }

    fn describe(&self) -> String {
        format!("{} scripted instants", self.due.len())
    }
}
