use std::time::Duration;

use crate::{Next, Trigger, TriggerContext};

/// Once, a delay after the job was added.
///
/// ```text
///   added ──── delay ────▶ run
/// ```
///
/// A delay of zero is due at once; [`Duration::MAX`] is legal and never comes.
/// After its one run the job is `Exhausted` and leaves the scheduler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Once {
    delay: Duration,
}

impl Once {
    /// Due `delay` after the job was added.
    #[must_use]
    pub const fn after(delay: Duration) -> Self {
        Self { delay }
    }

    /// Due when the job is added.
    #[must_use]
    pub const fn immediately() -> Self {
        Self { delay: Duration::ZERO }
    }
}

impl Trigger for Once {
    fn next(&self, context: &TriggerContext) -> Next {
        match context.previous_due {
            None => Next::At(context.registered.monotonic.saturating_add(self.delay)),
            Some(_) => Next::Never,
        }
    }

    fn describe(&self) -> String {
        format!("once after {:?}", self.delay)
    }
}
