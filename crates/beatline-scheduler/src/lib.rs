//! The engine of beatline: one driver and one timer for any number of recurring
//! asynchronous jobs on tokio.
//!
//! Applications depend on `beatline`, which adds the triggers and the guide. Used
//! alone, this crate wants one trigger crate beside it:
//!
//! ```no_run
//! use beatline_fixed_rate::FixedRate;
//! use beatline_scheduler::Scheduler;
//! use std::time::Duration;
//!
//! #[tokio::main]
//! async fn main() -> Result<(), beatline_scheduler::core::Error> {
//!     let scheduler = Scheduler::new();
//!     scheduler.job("quotes", FixedRate::every(Duration::from_secs(30))).run(|run| async move {
//!         println!("fetching for {}", run.due());
//!     })?;
//!     scheduler.run_until_signal().await?;
//!     Ok(())
//! }
//! ```
//!
//! # One fire, travelling through
//!
//! ```text
//!   handle ── command ──▶ driver ── due? ─▶ state machine ── accepted ──▶ runner ── gate ─▶ your future
//!                          │  ▲             (misfire, overlap)               │                  │
//!                   one armed timer              │ skipped: counted          └──── outcome ◀────┘
//!                                                ▼                                   │
//!                                       statistics, observers, tracing  ◀────────────┘
//! ```
//!
//! # Invariants
//!
//! Checked by the test kit's simulator after every step, on the same code:
//!
//! 1. `due = started + Σ skipped + pending` and `started = running + Σ outcomes`.
//! 2. No run starts before it is due, nor after `cancel` or `shutdown` returned.
//! 3. One due instant starts at most once (but for a wall clock set far back).
//! 4. No more runs are active, and no more occurrences wait, than the policy allows.
//! 5. A job has a next occurrence, awaits a completion, or is `Idle`, `Exhausted` or
//!    `Faulted`. It never just vanishes.
//! 6. Occurrences due at one instant are accepted by priority, then in the order
//!    their jobs were added.
//! 7. The driver never spins.
//!
//! # What is absent
//!
//! Only the driver sleeps. The state machine of a job ([`state`] internally) is a
//! pure function of state, event and moment and knows no tokio; the test kit's
//! simulator drives the same code. No runtime is owned: everything runs on the
//! tokio runtime at hand, and one helper thread watches it for stalls.
//!
//! # Features
//!
//! * `signal` (default): [`Scheduler::run_until_signal`] and [`shutdown_signal`].
//! * `simulation`: the pure parts, for simulators. No stability promise.

// What the simulator sees of these modules is private without its feature.
#![cfg_attr(not(feature = "simulation"), allow(unreachable_pub, dead_code))]

mod body;
mod builder;
mod clock;
mod clock_watcher;
mod config;
mod contain;
mod current;
mod driver;
mod engine;
mod handle;
mod job;
mod job_builder;
mod monitor;
mod mutants;
mod pulse;
mod queue;
mod registry;
mod runner;
mod scheduler;
mod shared;
mod shutdown;
#[cfg(feature = "signal")]
mod signal;
mod state;
mod telemetry;
mod wall;

#[cfg(feature = "simulation")]
pub mod simulation;

pub use beatline_core as core;

pub use builder::SchedulerBuilder;
#[doc(hidden)]
pub use pulse::pulse;

pub use handle::{CancelResult, JobGuard, JobHandle, Status, Stopping, Ticket};
pub use job_builder::{JobBuilder, NoState, WithState};
pub use scheduler::{CancelledAll, Scheduler, SchedulerHandle};
pub use shutdown::{Shutdown, ShutdownReport, ShuttingDown, StillRunning};
#[cfg(feature = "signal")]
pub use signal::shutdown_signal;
pub use state::{Condition, Ended, LastError, Statistics};
pub use telemetry::Failure;
