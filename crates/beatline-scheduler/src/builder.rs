use std::sync::Arc;
use std::time::Duration;

use beatline_core::{Error, Observer, Timestamp};
use tokio::runtime::Handle;

use crate::scheduler::Scheduler;
use crate::shutdown::Shutdown;
use crate::telemetry::{Failure, OnFailure};

/// The settings of a scheduler. Most need none: [`Scheduler::new`].
#[must_use = "a builder does nothing until `build`"]
pub struct SchedulerBuilder {
    pub(crate) name: String,
    pub(crate) runtime: Option<Handle>,
    pub(crate) wall_anchor: Option<Timestamp>,
    pub(crate) observers: Vec<Box<dyn Observer>>,
    pub(crate) quiet: bool,
    pub(crate) stall_threshold: Option<Duration>,
    pub(crate) inline_budget: Duration,
    pub(crate) shutdown: Shutdown,
}

impl SchedulerBuilder {
    pub(crate) fn new() -> Self {
        Self {
            name: "default".to_owned(),
            runtime: None,
            wall_anchor: None,
            observers: Vec::new(),
            quiet: false,
            stall_threshold: Some(Duration::from_millis(200)),
            inline_budget: Duration::from_millis(1),
            shutdown: Shutdown::default(),
        }
    }

    /// The scheduler's name, for logs and metrics; `default` if not given.
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = name.into();
        self
    }

    /// The tokio runtime to run on. Without it, it is the one inside of which the
    /// first job is added.
    pub fn runtime(mut self, handle: Handle) -> Self {
        self.runtime = Some(handle);
        self
    }

    /// Ties the wall clock to the monotonic one: it shows `anchor` when the first
    /// job is added and goes on from there. For tests under tokio's paused clock,
    /// whose wall clock otherwise stays real.
    pub fn wall_anchor(mut self, anchor: Timestamp) -> Self {
        self.wall_anchor = Some(anchor);
        self
    }

    /// Tells `observer` everything that happens. May be called several times.
    pub fn observer(mut self, observer: impl Observer) -> Self {
        self.observers.push(Box::new(observer));
        self
    }

    /// Calls `handler` for every run that fails, panics or times out, on the
    /// thread where it ended. It must not block.
    pub fn on_failure(self, handler: impl Fn(&Failure) + Send + Sync + 'static) -> Self {
        self.observer(OnFailure(handler))
    }

    /// Writes nothing to standard error. Without this, the first failure of an
    /// episode goes there if there is neither an observer nor a `tracing`
    /// subscriber to hear of it.
    pub fn quiet(mut self) -> Self {
        self.quiet = true;
        self
    }

    /// From which length on a stalled runtime, or a poll that does not end, is
    /// reported. The default is 200 ms. Zero is refused at `build`.
    pub fn stall_threshold(mut self, threshold: Duration) -> Self {
        self.stall_threshold = Some(threshold);
        self
    }

    /// Starts no monitor thread. Stalls are then neither reported nor, where a
    /// blocked worker went away with tokio's time driver, cured.
    pub fn without_stall_monitor(mut self) -> Self {
        self.stall_threshold = None;
        self
    }

    /// How long an inline callback may take before a warning is logged. The
    /// default is 1 ms.
    pub fn inline_budget(mut self, budget: Duration) -> Self {
        self.inline_budget = budget;
        self
    }

    /// How [`run_until_signal`](Scheduler::run_until_signal) ends the scheduler.
    pub fn shutdown(mut self, shutdown: Shutdown) -> Self {
        self.shutdown = shutdown;
        self
    }

    /// The scheduler. Touches no runtime yet.
    ///
    /// # Errors
    ///
    /// [`Error::Invalid`] names the setting that makes no sense.
    pub fn build(self) -> Result<Scheduler, Error> {
        validate_name("name", &self.name)?;
        if self.stall_threshold == Some(Duration::ZERO) {
            return Err(Error::invalid(
                "stall_threshold",
                "is zero, so everything would be a stall; give a duration, or call `without_stall_monitor()`",
            ));
        }
        Ok(Scheduler::from_builder(self))
    }
}

impl std::fmt::Debug for SchedulerBuilder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SchedulerBuilder").field("name", &self.name).finish_non_exhaustive()
    }
}

/// The longest name, in bytes.
const LONGEST_NAME: usize = 128;

/// Names end up in logs and labels: 1 to 128 bytes without control characters.
pub(crate) fn validate_name(field: &'static str, name: &str) -> Result<Arc<str>, Error> {
    if name.is_empty() {
        return Err(Error::invalid(field, "is empty; give 1 to 128 bytes"));
    }
    if name.len() > LONGEST_NAME {
        return Err(Error::invalid(field, format!("has {} bytes; give at most {LONGEST_NAME}", name.len())));
    }
    if let Some((byte, control)) = name.char_indices().find(|(_, character)| character.is_control()) {
        let control = control.escape_default();
        return Err(Error::invalid(field, format!("has the control character {control} at byte {byte}; leave it out")));
    }
    Ok(Arc::from(name))
}
