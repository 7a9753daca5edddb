//! The simulator over a few hundred seeds, so that every `cargo test` runs it;
//! `benches` has the program for more.

use beatline_test::simulator::{Report, Simulation};

#[test]
fn three_hundred_seeds_keep_every_promise() {
    let mut sum = Report::default();
    for seed in 0..300 {
        match Simulation::new(seed).fires(60).run_twice() {
            Ok(report) => sum.add(&report),
            Err(violation) => panic!("{violation}"),
        }
    }
    assert!(sum.fires >= 300 * 60, "{sum:?}");
    // What is simulated really happens: every outcome, every reason there is today.
    assert!(sum.outcomes.iter().all(|count| *count > 0), "{sum:?}");
    let happens = ["coalesced", "overlap", "buffer_full", "superseded", "shutdown", "removed"];
    for (label, count) in beatline_core::SkipReason::LABELS.iter().zip(sum.skipped) {
        assert_eq!(count > 0, happens.contains(label), "{label}: {sum:?}");
    }
    assert!(sum.faulted > 0 && sum.wall_jumps > 0, "{sum:?}");
}

#[test]
fn a_seed_decides_everything() {
    let [one, same, other] = [7, 7, 8].map(|seed| Simulation::new(seed).fires(100).run().expect("no violation"));
    assert_eq!(one, same);
    assert_ne!(one.hash, other.hash);
}
