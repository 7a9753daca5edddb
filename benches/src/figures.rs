//! Quantiles and tables.

use std::time::Duration;

use serde::Serialize;

/// Median, 99th percentile and maximum.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct Quantiles {
    /// The median, in milliseconds.
    pub p50_ms: f64,
    /// The 99th percentile, in milliseconds.
    pub p99_ms: f64,
    /// The maximum, in milliseconds.
    pub max_ms: f64,
}

impl Quantiles {
    /// Of these; all zero if there are none.
    #[must_use]
    pub fn of(mut samples: Vec<Duration>) -> Self {
        samples.sort_unstable();
        let at = |share: f64| {
            let rank = (share * samples.len() as f64).ceil() as usize;
            samples.get(rank.clamp(1, samples.len().max(1)) - 1).map_or(0.0, |sample| sample.as_secs_f64() * 1e3)
        };
        Self { p50_ms: at(0.5), p99_ms: at(0.99), max_ms: at(1.0) }
    }
}

/// Prints rows with columns as wide as they need to be, the first to the left.
pub fn print_table(rows: &[Vec<String>]) {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max();
    let widths: Vec<_> = (0..columns).map(|column| width(column).unwrap_or(0)).collect();
    for row in rows {
        let cells = row.iter().zip(&widths).enumerate().map(|(column, (cell, width))| match column {
            0 => format!("{cell:<width$}"),
            _ => format!("{cell:>width$}"),
        });
        println!("{}", cells.collect::<Vec<_>>().join("  ").trim_end());
    }
}
