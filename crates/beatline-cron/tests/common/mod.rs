//! What several test programs need.
#![allow(dead_code, unreachable_pub)]

use beatline_core::Timestamp;
use beatline_cron::{Cron, Dialect};

/// The short names of the dialects, as the case files and the command line use
/// them.
pub fn dialect(name: &str) -> Dialect {
    match name {
        "vixie5" => Dialect::Classic,
        "ext5" => Dialect::Extended,
        "six" => Dialect::Seconds,
        "seven" => Dialect::SecondsYear,
        "quartz6" => Dialect::Quartz,
        "quartz7" => Dialect::QuartzYear,
        other => panic!("no such dialect: {other}"),
    }
}

pub fn at(text: &str) -> Timestamp {
    text.parse().unwrap()
}

pub fn cron(dialect: Dialect, expression: &str, zone: &str) -> Cron {
    Cron::parse_with(dialect, expression).unwrap().zone(zone).unwrap()
}

/// The next `count` instants as text, and `NEVER` where they end before.
pub fn upcoming(cron: &Cron, from: Timestamp, count: usize) -> Vec<String> {
    let mut found: Vec<_> = cron.upcoming(from, count).iter().map(ToString::to_string).collect();
    if found.len() < count {
        found.push("NEVER".to_owned());
    }
    found
}

/// A seeded source of numbers (SplitMix64), so that a failing case can be named
/// and repeated.
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    pub fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit
    }

    pub fn between(&mut self, low: i64, high: i64) -> i64 {
        low + self.below((high - low + 1) as u64) as i64
    }

    pub fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }

    pub fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len() as u64) as usize]
    }
}
