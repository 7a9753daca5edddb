//! Any expression from any instant, in a zone with clock changes: the answers
//! of `next`, `last` and `count` agree.
#![no_main]

use beatline_core::Timestamp;
use beatline_cron::{Cron, Dialect};
use libfuzzer_sys::fuzz_target;

const DIALECTS: [Dialect; 3] = [Dialect::Extended, Dialect::SecondsYear, Dialect::Quartz];
const ZONES: [&str; 4] = ["America/New_York", "Australia/Lord_Howe", "Africa/Cairo", "+05:30"];

fuzz_target!(|input: (u8, u8, i64, u32, &str)| {
    let (dialect, zone, seconds, nanoseconds, text) = input;
    let Ok(cron) = Cron::parse_with(DIALECTS[dialect as usize % 3], text) else { return };
    let Ok(cron) = cron.zone(ZONES[zone as usize % 4]) else { return };
    let from = Timestamp::from_unix(seconds, nanoseconds);
    let mut at = from;
    for walked in 1..=5 {
        let Some(next) = cron.next_after(at) else { return };
        assert!(next > at);
        assert_eq!(cron.last_until(next), Some(next));
        assert_eq!(cron.count_in(from, next), walked);
        at = next;
    }
});
