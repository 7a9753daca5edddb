//! Clock chaos over some hundred hours, so that every `cargo test` runs it;
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
    for (seed, overlap) in (0..).zip(policies) {
        match ClockChaos::new(seed, overlap).hours(300).run() {
            Ok(report) => sum.add(&report),
            Err(violation) => panic!("{violation}"),
        }
    }
    // What is simulated really happens.
    assert!(sum.injected.iter().all(|count| *count > 5), "{sum:?}");
    assert!(sum.rebases > 5 && sum.repeated > 0 && sum.jumps > 50, "{sum:?}");
}
