//! Recurring asynchronous jobs on tokio, with pluggable scheduling policies: every
//! due instant either started or was skipped for a named reason.
//!
//! ```
//! use beatline::{FixedDelay, FixedRate, JobResult, Overlap, Run, Scheduler};
//! use std::time::Duration;
//!
//! async fn fetch_quotes(run: Run) -> JobResult {
//!     println!("quotes for {} ({:?} late)", run.due(), run.lateness());
//!     Ok(())
//! }
//!
//! #[tokio::main]
//! async fn main() -> Result<(), beatline::Error> {
//!     let scheduler = Scheduler::new();
//!     scheduler
//!         .job("quotes", FixedRate::every(Duration::from_secs(30)))
//!         .overlap(Overlap::Skip)
//!         .timeout(Duration::from_secs(10))
//!         .run(fetch_quotes)?;
//!     scheduler
//!         .job("cache", FixedDelay::after(Duration::from_secs(300)).immediately())
//!         .run(|_run| async { /* refresh */ })?;
//! # if false {
//!     scheduler.run_until_signal().await?; // Ctrl-C or SIGTERM: drain, report
//! # }
//!     Ok(())
//! }
//! ```
//!
//! # Five nouns
//!
//! A **job** is what is registered under a name. Its **trigger** says when it is
//! due; each due instant is an **occurrence**. An **overlap policy** decides what
//! happens to an occurrence while earlier runs are active; a **run** is one
//! execution.
//!
//! ```text
//!   trigger ──▶ occurrence ──▶ misfire? ──▶ overlap? ──┬──▶ run ──▶ completed, failed, panicked,
//!     │                        (missed:     (still     │            timed out, cancelled, aborted
//!     │                         one makes    running)  ├──▶ waits ──▶ run, or skipped
//!     └── next ◀── pure,        up for all)            └──▶ skipped: overlap, coalesced, …
//!                  no drift
//! ```
//!
//! # Choosing a trigger
//!
//! ```text
//!   FixedRate    added ── period ──▶ ━━━ ── period ──▶ ━━━━━━━━━━━━━━━━━━━━ ── period ──▶ ━━━
//!                ·                   ·                 ·                x                 ·
//!   FixedDelay   added ── delay ──▶ ━━━ ── delay ──▶ ━━━━━━━━━━━━━━━━━━━━ ── delay ──▶ ━━━
//!   aligned      added 10:07 ──▶ 10:15 ━━━ ──▶ 10:30 ━━━ ──▶ 10:45 ━━━ ──▶ 11:00 ━━━
//!   Cron         added ──▶ Thu 03:00 ━━━ ──▶ Fri 03:00 ━━━ ──▶ ── ──▶ ── ──▶ Mon 03:00 ━━━
//!   Once         added ── delay ──▶ ━━━
//!   OnDemand     added ·············· run_now() ▶ ━━━ ············ run_now() ▶ ━━━
//! ```
//!
//! [`FixedRate`] where the rhythm matters, [`FixedDelay`] where the work should not
//! press on, [`Once`] and [`OnDemand`] for the rest. The first run comes one
//! period (delay) after the job was added; with `.immediately()`, at once.
//!
//! What people read off a clock or a calendar is on the wall clock, in UTC unless a
//! zone is set:
//!
//! ```
//! use beatline::cron::{At, CalendarInterval, Weekday};
//! use beatline::{Cron, FixedRate};
//! use std::time::Duration;
//!
//! let reconcile = Cron::parse("0 3 * * mon-fri")?.zone("Asia/Shanghai")?;
//! let payroll = CalendarInterval::weeks(2).starting(2026, 1, 9).on(Weekday::Fri).at(9, 0, 0).zone("Asia/Tokyo")?;
//! let quarter_hours = FixedRate::every(Duration::from_secs(900)).aligned(); // :00, :15, :30, :45
//! let launch: At = "2026-07-01T08:00:00+02:00".parse()?;
//!
//! let from = "2026-01-02T12:00:00Z".parse()?;
//! assert_eq!(reconcile.upcoming(from, 1), ["2026-01-04T19:00:00Z".parse()?]); // Monday there
//! # Ok::<(), beatline::Error>(())
//! ```
//!
//! | what happens | intervals and delays | cron, calendar, aligned, [`At`](cron::At) |
//! |---|---|---|
//! | the wall clock is set forward | nothing | what lies between was missed: one run makes up for it |
//! | it is set back | nothing | nothing repeats; a job that would have to wait too long begins anew from now |
//! | the machine is suspended (Linux) | they stand still and go on | as set forward |
//! | daylight saving | nothing | fixed times run once each, `*` follows real time; [`cron`] draws it, [`Gap`](cron::Gap) and [`Fold`](cron::Fold) change it |
//!
//! *Too long* is more than three hours, or more than from the last instant that was
//! due to the next.
//!
//! A schedule of your own is one method of [`Trigger`].
//!
//! # Choosing an overlap policy
//!
//! | policy | an occurrence that is due while a run is active | for |
//! |---|---|---|
//! | [`Overlap::Skip`] | is skipped | polling, sampling: the next one will do |
//! | [`Overlap::BufferOne`] | waits, one at a time | refreshes: once more when this one is done |
//! | [`Overlap::BufferAll`] | waits in line, up to a cap | work that must all be done, in order |
//! | [`Overlap::AllowAll`] | starts beside it, up to a limit | independent work |
//!
//! `max_concurrent(n)` turns "a run is active" into "n runs are active". The page of
//! [`Overlap`] draws each; a policy of your own is one method of
//! [`OverlapPolicy`](core::OverlapPolicy).
//!
//! # Choosing a body
//!
//! | method | the closure | where it runs |
//! |---|---|---|
//! | [`run`](scheduler::JobBuilder::run) | `Fn(Run) -> impl Future` | on the runtime's workers |
//! | [`run_job`](scheduler::JobBuilder::run_job) | an `impl` [`Job`] | on the runtime's workers |
//! | [`run_check`](scheduler::JobBuilder::run_check) | `Fn(Run) -> Option<impl Future>` | on a worker; asynchronous only if needed |
//! | [`run_blocking`](scheduler::JobBuilder::run_blocking) | `Fn(Run)` that blocks | on the blocking pool |
//! | [`run_inline`](scheduler::JobBuilder::run_inline) | `Fn(Run)` that only looks | on the driver, the cheapest |
//!
//! All return `()` or `Result<(), E>`. With `.with(state)` each run gets a clone of
//! the state as a second argument.
//!
//! # Guaranteed
//!
//! * `due = started + Σ skipped + pending` and `started = running + Σ outcomes`, per
//!   job, at any moment.
//! * A fixed rate never drifts; nothing is ever early.
//! * One run of a job at a time, unless its policy says otherwise.
//! * After `cancel` or `shutdown` returned, nothing starts.
//! * A panic in a run, a trigger, a policy or an observer harms nothing else.
//!
//! # Not promised
//!
//! * Punctuality: lateness is measured, not bounded. The resolution is tokio's
//!   millisecond.
//! * That a blocking body can be stopped, or that an abort takes effect before the
//!   next await.
//! * Isolation under `panic = "abort"`.
//!
//! # Cancel safety
//!
//! Every future this crate returns may be dropped: waiting for an outcome, a
//! ticket or a shutdown stops the waiting, never the thing itself. A run's own
//! future is dropped at an await when it times out or is aborted.
//!
//! # Seeing what happens
//!
//! [`JobHandle::status`] for one job at one moment; an
//! [`Observer`](core::Observer) or
//! [`on_failure`](scheduler::SchedulerBuilder::on_failure) for everything as it
//! happens; `tracing` events under the target `beatline`: failures at `ERROR` (1st,
//! 2nd, 4th, 8th … of an episode), missed and late at `WARN`, skipped at `INFO`, the
//! rest at `DEBUG`. With neither, the first failure of an episode is written to
//! standard error.
//!
//! # Testing
//!
//! The crate `beatline-test` runs jobs in virtual time, under tokio's paused clock.
//!
//! # Features
//!
//! | feature | default | brings |
//! |---|---|---|
//! | `cron` | yes | [`Cron`], calendar intervals and wall instants in [`cron`] |
//! | `bundled-zones` | no | time-zone data inside the program |
//! | `fixed-rate` | yes | [`FixedRate`] |
//! | `fixed-delay` | yes | [`FixedDelay`] |
//! | `heartbeat` | no | [`heartbeat`]: one timer, any number of connections |
//! | `signal` | yes | [`Scheduler::run_until_signal`], [`shutdown_signal`] |
//! | `tokio-util` | no | a run's cancellation as tokio-util's token |

pub use beatline_core as core;
pub use beatline_scheduler as scheduler;

pub use beatline_core::{
    Error, Job, JobResult, Keep, Misfire, OnDemand, Once, Overflow, Overlap, Run, Timestamp, Trigger, async_trait,
};
#[cfg(feature = "cron")]
pub use beatline_cron as cron;
#[cfg(feature = "cron")]
pub use beatline_cron::Cron;
#[cfg(feature = "fixed-delay")]
pub use beatline_fixed_delay::FixedDelay;
#[cfg(feature = "fixed-rate")]
pub use beatline_fixed_rate::FixedRate;
#[cfg(feature = "heartbeat")]
pub use beatline_heartbeat as heartbeat;
#[cfg(feature = "signal")]
pub use beatline_scheduler::shutdown_signal;
pub use beatline_scheduler::{JobHandle, Scheduler, SchedulerHandle, Shutdown};

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct ReadmeDoctests;

#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct WorkspaceReadmeDoctests;
