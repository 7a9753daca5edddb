//! Recurring asynchronous jobs on tokio, with pluggable scheduling policies.

pub use beatline_core as core;
pub use beatline_core::{
    Error, Job, JobResult, Misfire, OnDemand, Once, Overlap, Run, Timestamp, Trigger, async_trait,
};
#[cfg(feature = "fixed-delay")]
pub use beatline_fixed_delay::FixedDelay;
#[cfg(feature = "fixed-rate")]
pub use beatline_fixed_rate::FixedRate;
pub use beatline_scheduler as scheduler;
#[cfg(feature = "signal")]
pub use beatline_scheduler::shutdown_signal;
pub use beatline_scheduler::{JobHandle, Scheduler, SchedulerHandle, Shutdown};
