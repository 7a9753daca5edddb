//! The test kit of beatline.
//!
//! # Testing your jobs
//!
//! One way: a test under tokio's paused clock, a [`scheduler`] whose wall clock
//! is tied to it, and [`advance`], which returns when everything that became due
//! has ended or waits for something.
//!
//! ```
//! use beatline_core::OnDemand;
//! use beatline_test::{advance, scheduler};
//! use std::time::Duration;
//!
//! # #[tokio::main(flavor = "current_thread", start_paused = true)] async fn main() {
//! // #[tokio::test(start_paused = true)]
//! let scheduler = scheduler("2026-01-01T02:59:58Z");
//! let job = scheduler.job("report", OnDemand).run(|run| async move {
//!     tokio::time::sleep(Duration::from_secs(3)).await; // virtual seconds
//! }).unwrap();
//! let ticket = job.run_now().unwrap();
//! advance(Duration::from_secs(2)).await;
//! assert!(job.status().is_active());
//! advance(Duration::from_secs(1)).await;
//! assert_eq!(job.statistics().ended(), 1);
//! # drop(ticket);
//! # }
//! ```
//!
//! * tokio's own `advance` is a jump: a stall of that length, in which whatever
//!   became due is missed. Here time passes instant by instant.
//! * A blocking job runs on a real thread and takes no virtual time: the clock
//!   stands still until it has returned, and `advance` waits for it. A blocking
//!   body must not wait for something that only `advance` would bring.
//! * Code that calls a job directly makes itself a run with
//!   [`Run::detached`](beatline_core::Run::detached).

mod jobs;
mod paused;

pub use jobs::{Gate, Tally};
pub use paused::{advance, scheduler, scheduler_builder, settle};

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct ReadmeDoctests;
