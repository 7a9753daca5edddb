//! What goes to the log, target `beatline::heartbeat`.

use std::time::Duration;

pub(crate) fn paused(pause: Duration) {
    tracing::warn!(
        target: "beatline::heartbeat",
        ?pause,
        "the checker or the machine stood still; every connection is given a grace"
    );
}

pub(crate) fn swept(suspected: u64, expired: u64) {
    if suspected + expired > 0 {
        tracing::debug!(target: "beatline::heartbeat", suspected, expired, "connections fell silent");
    }
}

pub(crate) fn panicked(callback: &'static str, message: &str) {
    tracing::error!(target: "beatline::heartbeat", callback, message, "a callback panicked and was contained");
}

pub(crate) fn probe_failed(reason: &str) {
    tracing::debug!(target: "beatline::heartbeat", reason, "a probe was not answered");
}

pub(crate) fn closed(alive: u64, unreported: u64) {
    tracing::debug!(target: "beatline::heartbeat", alive, unreported, "the checker has shut down");
}
