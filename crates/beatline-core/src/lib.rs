//! The traits and records that everything in beatline stands on.
//!
//! **Writing an application?** Depend on the `beatline` crate and read its front
//! page. This crate is for those who write a trigger, an overlap policy, an
//! observer or a job that others schedule: it is small, changes rarely, and
//! builds in seconds.
//!
//! | you want to say | implement |
//! |---|---|
//! | when a job is due | [`Trigger`] |
//! | what happens if it is still running | [`OverlapPolicy`] |
//! | what runs | [`Job`] (or pass a closure) |
//! | what to do when something happened | [`Observer`] |
//!
//! # Vocabulary
//!
//! A **job** is what is registered under a name. Its **trigger** says when it is
//! due; each due instant is an **occurrence**. An occurrence is *accepted* when
//! the overlap policy says so and *started* when its run begins; a **run** is
//! one execution. Each occurrence ends in exactly one [`Fate`]: it ran and had an
//! [`Outcome`], or it was skipped for a named [`SkipReason`].
//!
//! # What is absent
//!
//! This crate knows no runtime and reads no clock. Triggers are pure; only the
//! engine's driver sleeps. There is no date-time type of a third party here:
//! [`Timestamp`] is a number that can be printed, [`Monotonic`] one that cannot.
//!
//! # Features
//!
//! * `tokio-util`: [`CancellationToken`] can also be handed out as tokio-util's.

mod cancellation;
mod clock;
mod error;
mod event;
mod job;
pub mod metric_names;
mod misfire;
mod outcome;
mod overlap;
mod publish;
mod run;
mod timestamp;
mod trigger;

pub use async_trait::async_trait;

pub use cancellation::{CancellationToken, Cancelled};
pub use clock::{Clock, Moment, Monotonic};
pub use error::{BoxError, Error, SharedError, error_chain};
pub use event::{Callback, Decided, Event, EventKind, Finished, Observer, Stalled, Verdict};
pub use job::{Job, JobOutput, JobResult};
pub use misfire::{Misfire, MisfirePolicy};
pub use outcome::{Cause, Fate, Outcome, SkipReason};
pub use overlap::{ActiveRun, Decision, Keep, Overflow, Overlap, OverlapPolicy, OverlapView};
pub use publish::{BeforeRender, Publish};
pub use run::{Origin, Run, RunControl, RunFacts, RunId};
pub use timestamp::Timestamp;
pub use trigger::{
    Count, Due, Latest, Line, Next, OnDemand, Once, Periodic, Trigger, TriggerContext, WALK_LIMIT, upcoming,
};
