//! What can be wrong with a request to the scheduler.

use std::borrow::Cow;
use std::sync::Arc;

/// Any error a job may end in.
pub type BoxError = Box<dyn std::error::Error + Send + Sync + 'static>;

/// A job's error after it was recorded: shared by statistics, observers and
/// whoever waits for the outcome.
pub type SharedError = Arc<dyn std::error::Error + Send + Sync + 'static>;

/// Why a request was refused.
///
/// Everything that can be wrong with a job is reported when it is added, before
/// anything is scheduled. Each message names the field and says what to do.
///
/// `#[non_exhaustive]`: match the variants you handle and print the rest.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A value is not usable. The caller's to mend; trying again does not help.
    #[error("{field}: {problem}")]
    Invalid {
        /// The field or argument, as it is spelled in the API.
        field: &'static str,
        /// What is wrong with it and what would be right.
        problem: Cow<'static, str>,
    },
    /// The name is taken by a job that is still scheduled.
    #[error("name: a job named {name:?} is already scheduled; cancel it first or choose another name")]
    DuplicateName {
        /// The name in question.
        name: String,
    },
    /// There is no tokio runtime to run on.
    #[error(
        "runtime: not inside a tokio runtime; call from within one, or hand one over with \
         `Scheduler::builder().runtime(handle)`"
    )]
    NoRuntime,
    /// The tokio runtime has no timer.
    #[error("runtime: its timer is off; build it with `enable_time()` or `enable_all()`")]
    NoTimeDriver,
    /// The tokio runtime has no I/O driver, which signals need.
    #[error("runtime: its I/O driver is off, and signals need it; build it with `enable_io()` or `enable_all()`")]
    NoIoDriver,
    /// The scheduler is shutting down or has shut down and takes no jobs.
    #[error("scheduler: it is shutting down and takes no new jobs")]
    ShuttingDown,
    /// The scheduler behind a handle is gone.
    #[error("scheduler: it is gone; its `Scheduler` was dropped or its runtime has ended")]
    Gone,
    /// A run would wait for its own end.
    #[error("job: a run cannot wait for its own end; use `cancel()`, or wait from elsewhere")]
    WouldDeadlock,
    /// The operating system refused to deliver signals.
    #[error("signal: the handler could not be installed")]
    Signal(#[source] std::io::Error),
    /// A trigger crate's own error, such as a cron expression's.
    #[error("trigger: {0}")]
    Trigger(#[source] BoxError),
}

impl Error {
    /// An [`Error::Invalid`] for `field`; for trigger and policy crates.
    #[must_use]
    pub fn invalid(field: &'static str, problem: impl Into<Cow<'static, str>>) -> Self {
        Error::Invalid { field, problem: problem.into() }
    }

    /// The field or argument at fault, where there is one.
    #[must_use]
    pub fn field(&self) -> Option<&'static str> {
        match self {
            Error::Invalid { field, .. } => Some(field),
            Error::DuplicateName { .. } => Some("name"),
            Error::NoRuntime | Error::NoTimeDriver | Error::NoIoDriver => Some("runtime"),
            Error::Trigger(_) => Some("trigger"),
            _ => None,
        }
    }
}

/// Writes an error and everything it was caused by, `outer: inner: innermost`.
///
/// ```
/// let parse = "x".parse::<u8>().unwrap_err();
/// assert_eq!(beatline_core::error_chain(&parse), "invalid digit found in string");
/// ```
#[must_use]
pub fn error_chain(error: &(dyn std::error::Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let cause_text = cause.to_string();
        // Some errors already print their source; do not say it twice.
        if !text.ends_with(&cause_text) {
            text.push_str(": ");
            text.push_str(&cause_text);
        }
        source = cause.source();
    }
    text
}
