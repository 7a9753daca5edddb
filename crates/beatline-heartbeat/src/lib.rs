//! Heartbeats for very many connections: one timer watches over all of them, a
//! beat is one atomic store, and a sweep costs what it finds.
//!
//! Do not spend a task or a timer on each connection. Look at all of them in one
//! callback, and start asynchronous work only for those that need it:
//!
//! ```
//! # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use beatline_heartbeat::{Ended, HeartbeatChecker};
//! use std::time::Duration;
//!
//! let checker = HeartbeatChecker::new(Duration::from_secs(30))?;
//! checker.start()?; // one task, one timer, any number of connections
//!
//! let beat = checker.register(7_u64); // 16 bytes, for whoever owns the connection
//! beat.touch()?; // something arrived: a few nanoseconds, no lock, no clock
//! tokio::select! {
//!     ended = beat.expired() => assert_eq!(ended, Ended::ShutDown),
//!     _ = checker.shutdown(Duration::from_secs(1)) => {}
//! }
//! beat.remove().await; // or drop it
//! # Ok(()) }
//! ```
//!
//! # A connection's life
//!
//! ```text
//! register     beats         silence                       declared dead
//!    │     ●  ●   ●  ●  ●                                        │
//!    ├─────┴──┴───┴──┴──┼──────────────┬─────────────────────────┼──►
//!    alive              │    alive     │         suspect         │ expired
//!                       │              ▼                         ▼
//!                       │        suspect edge              expired edge
//!                       │        (probe, if any)     (expired().await, events)
//!                       ├─ suspect_after ─┤                      │
//!                       ├──────────── timeout × missed ──────────┤ + at most one tick
//!
//! suspect ── beat, or a probe that was answered ──► alive
//! expired ── a touch is refused ──► for good; whoever comes back registers anew
//! any     ── drop, or remove().await ──► gone, and nothing more is reported
//! ```
//!
//! # Levels of use
//!
//! | you have | you use |
//! |---|---|
//! | a task that owns its connection | [`Beat::touch`], [`Beat::expired`] |
//! | ids rather than handles | [`HeartbeatChecker::keyed`], [`Keyed::touch`] |
//! | one place that hears of all | [`Builder::build_with_events`]: a bounded [`Stream`](futures::Stream) |
//! | asynchronous work for each of the dead | [`Builder::on_events`]: batches, bounded concurrency |
//! | a way to ask before giving up | [`Builder::probe`] |
//! | peers that want to hear from you | [`Builder::ping`], spread over the interval |
//! | connections of different patience | [`HeartbeatChecker::timeout_class`] |
//! | a scheduler with a timer of its own | the checker is a [`Job`](beatline_core::Job) |
//! | a clock of your own | [`Builder::clock`], [`HeartbeatChecker::sweep`] |
//!
//! # Guarantees
//!
//! * **Never early.** A connection is declared dead only after a full time-out
//!   without a beat, by the monotonic clock, however late the sweeps are. A new
//!   connection has a full time-out before it. The time of a touch is when it
//!   was called.
//! * **Within a tick.** It is declared dead at most one tick after the time-out,
//!   plus what two sweeps were late: the first after the last beat, and the one
//!   that finds out.
//! * **Touch or expiry, one of both.** A touch that was answered `Ok` is followed
//!   by a full time-out; after an expiry every touch is refused.
//! * **An expired edge is never dropped.** Until somebody takes it, it waits in
//!   the table, and needs no memory. Only suspect edges may be dropped, and are
//!   counted then.
//! * **Nothing after removal.** When a handle was dropped or `remove` has
//!   returned, no report about the connection is begun, whatever queue it was in.
//! * **A pause kills nobody.** After the process or the machine stood still
//!   (stop signal, stall, suspend), every connection gets a full grace before it
//!   can be declared dead; see [`Builder::grace`].
//! * **Panics are contained** and counted: of callbacks, probes, pings, wakers.
//!   That needs panics that unwind, the default.
//! * **The books balance**: `registered = alive + expired + removed`.
//! * No task is left behind by a checker that was dropped or shut down, as soon
//!   as the current poll of each has returned.
//!
//! # What is not promised
//!
//! * Which of several connections that expire in one sweep is reported first.
//! * That a connection is reported as suspect before it expires: where sweeps are
//!   late, or the reader slow, the suspicion may be overtaken.
//! * That a stream or callback hears of an expiry whose owner was faster: an owner
//!   that drops its handle when `expired()` resolves has removed the connection,
//!   and nothing is reported after that. [`Statistics`] counts it all the same.
//! * That a *callback which has taken* an edge is over when `remove` returns.
//! * Detection while nobody sweeps. Between [`HeartbeatChecker::new`] and
//!   [`start`](HeartbeatChecker::start) time does not pass for anyone.
//! * Precision below that of tokio's timer, 1 ms.
//! * A time-out is at most 2²⁶ thirds of a tick: 25 days at 100 ms.
//!
//! # Memory
//!
//! For each connection, with keys of 8 bytes:
//!
//! ```text
//!  what a beat touches   u32   4 B  ┐ groups of 1,024 slots, contiguous; beside each group the step
//!                                   ┘ before which no slot of it needs a look (8 B a group)
//!  key                   K     8 B  ┐ touched when it is added, removed
//!  place of the key      u16   2 B  ┘ or reported
//!  handle                Beat 16 B    held by the owner (a keyed front has a map of some 20 B instead)
//!                             ────
//!                             30 B
//!  waiting for expiry         24 B    only in groups where somebody awaits `expired()`
//! ```
//!
//! A slot is used again after a removal; groups are never given back while the
//! checker lives, but an empty one keeps only 6 bytes a slot.
//!
//! # Ground rules
//!
//! For those who read the source: `word` is the four bytes, `chunk` a group and
//! who may do what to it, `table` all groups and the bound, `pace` what time
//! means. A beat never moves a timer. It stores a stamp, and the sweep looks
//! again when the old deadline has come: of a million connections that beat
//! every 10 s, a sweep looks into a handful of groups.
//!
//! Locks are held for a bounded time and never while foreign code runs, a key's
//! `Clone` excepted. No map guard is held over an await.
//!
//! # What is absent
//!
//! This crate does not know the scheduler. It owns no runtime and no thread. It
//! has no wire protocol: what a beat is, a frame, a pong, a datagram, is yours to
//! say. It counts no beats, because a shared counter costs more than the beat.
#![forbid(unsafe_code)]
#![cfg_attr(loom, allow(dead_code))] // the models use the table alone

mod chunk;
mod class;
mod directory;
mod mutants;
mod pace;
mod sync;
mod table;
mod waiters;
mod word;

#[cfg(not(loom))]
mod beat;
#[cfg(not(loom))]
mod builder;
#[cfg(not(loom))]
mod checker;
#[cfg(not(loom))]
mod clock;
#[cfg(not(loom))]
mod error;
#[cfg(not(loom))]
mod event;
#[cfg(not(loom))]
mod keyed;
#[cfg(not(loom))]
mod ping;
#[cfg(not(loom))]
mod probe;
#[cfg(not(loom))]
mod shared;
#[cfg(not(loom))]
mod statistics;
#[cfg(not(loom))]
mod telemetry;
#[cfg(not(loom))]
mod workers;

/// The README's program, compiled.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}

#[cfg(loom)]
#[doc(hidden)]
pub mod model;

pub use async_trait::async_trait;
pub use beatline_core::{BoxError, Clock, Error};

#[cfg(not(loom))]
pub use crate::{
    beat::{Beat, Ended, Status, UntilExpired},
    builder::Builder,
    checker::{Connection, HeartbeatChecker, Snapshot, TimeoutClass},
    error::{Expired, TouchError},
    event::{Batch, Edge, Event, Events},
    keyed::Keyed,
    probe::Probe,
    shared::Sweep,
    statistics::{Distribution, Statistics},
};

/// What names a connection in reports: an id, an address, a string.
///
/// Implemented for everything that can be cloned and sent to other threads.
/// Keys are cloned when an edge is reported, under the lock of a group of
/// connections: `Clone` must not call back into the checker.
pub trait Key: Clone + Send + Sync + 'static {}

impl<K: Clone + Send + Sync + 'static> Key for K {}
