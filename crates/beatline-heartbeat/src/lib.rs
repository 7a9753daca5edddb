//! Heartbeats for very many connections.
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
