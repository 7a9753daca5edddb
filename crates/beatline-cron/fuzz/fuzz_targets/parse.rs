//! Any text, in any dialect: an expression, or an error that can be printed.
#![no_main]

use beatline_cron::{Cron, Dialect};
use libfuzzer_sys::fuzz_target;

const DIALECTS: [Dialect; 6] = [
    Dialect::Classic,
    Dialect::Extended,
    Dialect::Seconds,
    Dialect::SecondsYear,
    Dialect::Quartz,
    Dialect::QuartzYear,
];

fuzz_target!(|input: (u8, &str)| {
    let (dialect, text) = (DIALECTS[input.0 as usize % 6], input.1);
    match Cron::parse_with(dialect, text) {
        Ok(cron) => drop(cron.never_fires()),
        Err(error) => {
            assert!(error.position() <= text.len());
            assert!(error.to_string().bytes().all(|byte| (b' '..=b'~').contains(&byte)));
        }
    }
});
