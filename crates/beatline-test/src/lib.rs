//! The test kit.

pub mod manual_clock;
pub mod random;
pub mod scripted;
pub mod simulator;
