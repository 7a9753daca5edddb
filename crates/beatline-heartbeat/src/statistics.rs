//! What a checker counts.

use std::time::Duration;

/// A distribution of durations in fixed buckets, with sum and maximum.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Distribution {
    /// How many were at most [`Distribution::BOUNDS`] of the same position (and
    /// above the one before); the last one counts what is above all bounds.
    pub buckets: [u64; 12],
    /// Their sum.
    pub sum: Duration,
    /// The largest.
    pub max: Duration,
}

impl Distribution {
    /// The upper bounds of all buckets but the last.
    pub const BOUNDS: [Duration; 11] = [
        Duration::from_micros(10),
        Duration::from_micros(50),
        Duration::from_micros(100),
        Duration::from_micros(500),
        Duration::from_millis(1),
        Duration::from_millis(5),
        Duration::from_millis(10),
        Duration::from_millis(50),
        Duration::from_millis(100),
        Duration::from_millis(500),
        Duration::from_secs(1),
    ];

    /// How many were recorded.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.buckets.iter().sum()
    }

    /// Their mean; zero if there are none.
    #[must_use]
    pub fn mean(&self) -> Duration {
        match u32::try_from(self.count()) {
            Ok(0) => Duration::ZERO,
            Ok(count) => self.sum / count,
            Err(_) => Duration::from_secs_f64(self.sum.as_secs_f64() / self.count() as f64),
        }
    }

    pub(crate) fn record(&mut self, duration: Duration, times: u64) {
        let bucket = Self::BOUNDS.partition_point(|bound| *bound < duration);
        self.buckets[bucket] += times;
        let total = duration.saturating_mul(u32::try_from(times).unwrap_or(u32::MAX));
        self.sum = self.sum.saturating_add(total);
        self.max = self.max.max(duration);
    }
}

impl Default for Distribution {
    fn default() -> Self {
        Self { buckets: [0; 12], sum: Duration::ZERO, max: Duration::ZERO }
    }
}

/// What a checker has counted since it was made.
///
/// `registered = alive + expired + removed`, always. Each number is exact; while
/// other threads are at work two of them may be from moments apart.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Statistics {
    /// Connections ever registered.
    pub registered: u64,
    /// Connections that are alive now, the suspect among them.
    pub alive: u64,
    /// Connections that are suspect now.
    pub suspect: u64,
    /// Connections declared dead, whether removed since or not.
    pub expired: u64,
    /// Connections removed while they were alive.
    pub removed: u64,
    /// Expired edges that nobody has taken yet; they wait in the table.
    pub unreported: u64,
    /// Suspect edges, one for each silence.
    pub suspected: u64,
    /// Suspects that beat again.
    pub recovered: u64,
    /// Suspect edges that found the queue full, or that a callback left in its
    /// batch. Expired edges are never dropped.
    pub events_dropped: u64,
    /// Panics of callbacks, probes, wakers and pings that were contained.
    pub callback_panics: u64,
    /// Probes that were answered.
    pub probes_answered: u64,
    /// Probes that failed, panicked or took too long.
    pub probes_failed: u64,
    /// Outgoing pings.
    pub pings: u64,
    /// Sweeps.
    pub sweeps: u64,
    /// Sweeps that ended a pause: the checker or the machine stood still.
    pub pauses: u64,
    /// Groups of 1,024 connections that sweeps had to look into.
    pub chunks_scanned: u64,
    /// How long sweeps took.
    pub sweep_duration: Distribution,
    /// How late sweeps began.
    pub sweep_lag: Distribution,
    /// From the latest instant at which a connection that beat when its stamp
    /// says was due, to its expiry: at most this.
    pub detection_delay: Distribution,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distributions_keep_count_sum_and_maximum() {
        let mut distribution = Distribution::default();
        assert_eq!(distribution.mean(), Duration::ZERO);
        distribution.record(Duration::from_micros(10), 1);
        distribution.record(Duration::from_micros(11), 2);
        distribution.record(Duration::from_secs(100), 1);
        assert_eq!((distribution.buckets[0], distribution.buckets[1], distribution.buckets[11]), (1, 2, 1));
        assert_eq!(distribution.count(), 4);
        assert_eq!(distribution.max, Duration::from_secs(100));
        assert_eq!(distribution.sum, Duration::from_micros(100_000_032));
    }
}
