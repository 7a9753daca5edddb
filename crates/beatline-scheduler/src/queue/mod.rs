//! The timer structure.

mod wheel;

pub use wheel::OrderKey;
pub(crate) use wheel::{Entry, Wheel};
