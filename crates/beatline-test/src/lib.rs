//! The test kit.

pub mod laws;
pub mod manual_clock;
pub mod random;
pub mod scripted;
pub mod simulator;
pub mod timeline;
