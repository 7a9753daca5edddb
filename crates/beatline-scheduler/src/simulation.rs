//! The pure parts of the engine, for simulators: the timers, and the state machine
//! of one job. No stability promise.

pub use crate::config::{JobConfig, OverlapChoice};
pub use crate::engine::{Engine, Look, PORTION};
pub use crate::queue::OrderKey;
pub use crate::state::{Effects, End, Ending, Gate, Plan, Removal, State};
pub use crate::wall::{ClockWatch, Deviation, Jump, WATCHED_RECHECK, WallTurn, Word};
