//! Clock chaos over a few thousand hours, so that every `cargo test` runs it;
//! `benches` has the program for more.

use beatline_core::{Keep, Overlap};
use beatline_test::simulator::{ClockChaos, ClockReport};

#[test]
fn wall_clock_jobs_keep_every_promise_however_the_clock_is_set() {
    let policies = [
        Overlap::Skip,
        Overlap::BufferOne { keep: Keep::First },
        Overlap::BufferOne { keep: Keep::Latest },
        Overlap::buffer_all(),
        Overlap::AllowAll,
    ];
    let mut sum = ClockReport::default();
    for overlap in policies {
        match ClockChaos::new(1, overlap).hours(4_000).run() {
            Ok(report) => sum.add(&report),
            Err(violation) => panic!("{violation}"),
        }
    }
    // What is simulated really happens.
    assert!(sum.injected.iter().all(|count| *count > 50), "{sum:?}");
    assert!(sum.rebases > 50 && sum.repeated > 10 && sum.jumps > 500, "{sum:?}");
}
