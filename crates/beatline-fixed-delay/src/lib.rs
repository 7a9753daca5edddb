//! The fixed-delay trigger: a pause of constant length after each run.
//!
//! ```text
//!   added ── delay ──▶ ━━━ run ━━━ ── delay ──▶ ━ run ━ ── delay ──▶ ━━━━━━ run ━━━━━━ ── delay ──▶
//! ```
//!
//! **First run.** One delay after the job was added; with
//! [`immediately`](FixedDelay::immediately), when it is added.
//!
//! Choose it for work that should not press on: refreshing a cache, polling a
//! queue, cleaning up. A run that takes long, or fails, or is skipped, moves all
//! later ones; two runs are never active at once. Choose a fixed rate where the
//! rhythm matters.
//!
//! # What is absent
//!
//! This crate reads no clock and knows no runtime: the trigger is a pure
//! function of the history that the scheduler hands it.

use std::time::Duration;

use beatline_core::{Error, Next, Trigger, TriggerContext};

/// With no delay, starts are at least this far apart.
const NO_DELAY_SPACING: Duration = Duration::from_millis(1);

/// Due a constant time after the end of the previous run.
///
/// end(k) → start(k + 1) = delay, whatever run k took and however it ended. An
/// occurrence that was skipped counts as ended when it was skipped.
///
/// ```
/// use beatline_fixed_delay::FixedDelay;
/// use std::time::Duration;
///
/// let cache = FixedDelay::after(Duration::from_secs(300)).immediately();
/// ```
///
/// A delay of zero is refused when the job is added: a typing error would be a
/// busy loop. Who means it says [`FixedDelay::no_delay`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FixedDelay {
    delay: Duration,
    initial_delay: Duration,
}

impl FixedDelay {
    /// Due `delay` after the end of the previous run, and for the first time
    /// `delay` after the job was added.
    #[must_use]
    pub const fn after(delay: Duration) -> Self {
        Self { delay, initial_delay: delay }
    }

    /// Due as soon as the previous run has ended, at most once a millisecond;
    /// for the first time when the job is added.
    #[must_use]
    pub const fn no_delay() -> Self {
        Self { delay: NO_DELAY_SPACING, initial_delay: Duration::ZERO }
    }

    /// The first run when the job is added, instead of one delay later.
    #[must_use]
    pub const fn immediately(self) -> Self {
        self.initial_delay(Duration::ZERO)
    }

    /// The first run `delay` after the job was added.
    #[must_use]
    pub const fn initial_delay(mut self, delay: Duration) -> Self {
        self.initial_delay = delay;
        self
    }
}

impl Trigger for FixedDelay {
    fn next(&self, context: &TriggerContext) -> Next {
        match (context.previous_due, context.completion) {
            (None, _) => Next::At(context.registered.monotonic.saturating_add(self.initial_delay)),
            (Some(_), None) => Next::AfterCompletion,
            (Some(_), Some(end)) => Next::At(end.saturating_add(self.delay)),
        }
    }

    fn validate(&self) -> Result<(), Error> {
        if self.delay.is_zero() {
            return Err(Error::invalid(
                "delay",
                "is zero; give a delay, or say `FixedDelay::no_delay()` if the next run shall follow at once",
            ));
        }
        Ok(())
    }

    fn describe(&self) -> String {
        format!("{:?} after each run", self.delay)
    }
}

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct ReadmeDoctests;
