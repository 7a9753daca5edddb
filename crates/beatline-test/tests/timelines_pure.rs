//! The timelines of the overlap and misfire pages, through the real state machine
//! on virtual time. `┣━` a run, `·` an occurrence that waits, `x` one skipped.
//!
//! The replacing overlap policies and the other misfire policies follow here when
//! they are delivered; `Reaction` is their runs' part in it.

use std::time::Duration;

use beatline_core::{Keep, Misfire, Overflow, Overlap};
use beatline_fixed_rate::FixedRate;
use beatline_test::timeline::{Reaction, Record, Timeline};

const fn seconds(count: u64) -> Duration {
    Duration::from_secs(count)
}

const fn minutes(count: u64) -> Duration {
    Duration::from_secs(60 * count)
}

/// Timeline O: period 10 s; the run due at 0 lasts 23 s, the others 4 s.
fn timeline_o(overlap: Overlap) -> Record {
    Timeline::of(FixedRate::every(seconds(10)).immediately())
        .overlap(overlap)
        .lasting(|due| if due.is_zero() { seconds(23) } else { seconds(4) })
        .until(seconds(40))
}

/// Two at once, and every run lasts 23 s.
fn two_at_once(overlap: Overlap) -> Record {
    Timeline::of(FixedRate::every(seconds(10)).immediately())
        .overlap(overlap)
        .max_concurrent(2)
        .lasting(|_| seconds(23))
        .until(seconds(50))
}

fn stopped_at_12(reaction: Reaction) -> Record {
    Timeline::of(FixedRate::every(seconds(10)).immediately())
        .overlap(Overlap::buffer_all())
        .lasting(|_| seconds(23))
        .reaction(reaction)
        .stopped(seconds(12), seconds(5))
        .until(seconds(40))
}

/// How far the drawings below are indented.
const INDENT: usize = 8;

#[track_caller]
fn shows(record: &Record, rows: &[&str], drawing: &str) {
    assert_eq!(record.rows(), rows, "\n{}", record.drawing());
    let drawing: Vec<_> = drawing.lines().map(str::trim_end).filter(|line| !line.is_empty()).collect();
    let drawing: Vec<_> = drawing.into_iter().map(|line| &line[INDENT..]).collect();
    assert_eq!(record.drawing(), drawing.join("\n"), "\n{}", record.drawing());
    assert!(record.statistics.is_balanced());
}

/// What overlaps is skipped, and the phase stays.
///
/// ```text
/// 0         10        20        30        40
/// ┣━━━━━━━━━━━━━━━━━━━━━━       ┣━━━      ┣━━━
///           x         x
/// ```
#[test]
fn timeline_o_skip() {
    let record = timeline_o(Overlap::Skip);
    shows(
        &record,
        &["0→23", "Skipped{Overlap}", "Skipped{Overlap}", "30→34", "40→44"],
        "
        0         10        20        30        40
        ┣━━━━━━━━━━━━━━━━━━━━━━       ┣━━━      ┣━━━
                  x         x
        ",
    );
}

/// The first waits, the second finds the buffer full.
///
/// ```text
/// 0         10        20        30        40
/// ┣━━━━━━━━━━━━━━━━━━━━━━┣━━━   ┣━━━      ┣━━━
///           ··········x··
/// ```
#[test]
fn timeline_o_buffer_one_first() {
    let record = timeline_o(Overlap::BufferOne { keep: Keep::First });
    shows(
        &record,
        &["0→23", "23→27 late 13", "Skipped{BufferFull}", "30→34", "40→44"],
        "
        0         10        20        30        40
        ┣━━━━━━━━━━━━━━━━━━━━━━┣━━━   ┣━━━      ┣━━━
                  ··········x··
        ",
    );
}

/// The second takes the place of the first.
///
/// ```text
/// 0         10        20        30        40
/// ┣━━━━━━━━━━━━━━━━━━━━━━┣━━━   ┣━━━      ┣━━━
///           x         ···
/// ```
#[test]
fn timeline_o_buffer_one_latest() {
    let record = timeline_o(Overlap::BufferOne { keep: Keep::Latest });
    shows(
        &record,
        &["0→23", "Skipped{Superseded} at 20", "23→27 late 3", "30→34", "40→44"],
        "
        0         10        20        30        40
        ┣━━━━━━━━━━━━━━━━━━━━━━┣━━━   ┣━━━      ┣━━━
                  x         ···
        ",
    );
}

/// One after another, first in, first out.
///
/// ```text
/// 0         10        20        30        40
/// ┣━━━━━━━━━━━━━━━━━━━━━━┣━━━┣━━━┣━━━     ┣━━━
///           ·················   ·
/// ```
#[test]
fn timeline_o_buffer_all() {
    let record = timeline_o(Overlap::buffer_all());
    shows(
        &record,
        &["0→23", "23→27 late 13", "27→31 late 7", "31→35 late 1", "40→44"],
        "
        0         10        20        30        40
        ┣━━━━━━━━━━━━━━━━━━━━━━┣━━━┣━━━┣━━━     ┣━━━
                  ·················   ·
        ",
    );
}

/// With room for one this is `BufferOne`, keep first.
///
/// ```text
/// 0         10        20        30        40
/// ┣━━━━━━━━━━━━━━━━━━━━━━┣━━━   ┣━━━      ┣━━━
///           ··········x··
/// ```
#[test]
fn timeline_o_buffer_all_of_one_drops_the_newest() {
    let record = timeline_o(Overlap::BufferAll { cap: 1, overflow: Overflow::DropNewest });
    shows(
        &record,
        &["0→23", "23→27 late 13", "Skipped{BufferFull}", "30→34", "40→44"],
        "
        0         10        20        30        40
        ┣━━━━━━━━━━━━━━━━━━━━━━┣━━━   ┣━━━      ┣━━━
                  ··········x··
        ",
    );
}

/// The first makes room for the second.
///
/// ```text
/// 0         10        20        30        40
/// ┣━━━━━━━━━━━━━━━━━━━━━━┣━━━   ┣━━━      ┣━━━
///           x         ···
/// ```
#[test]
fn timeline_o_buffer_all_of_one_drops_the_oldest() {
    let record = timeline_o(Overlap::BufferAll { cap: 1, overflow: Overflow::DropOldest });
    shows(
        &record,
        &["0→23", "Skipped{BufferFull}", "23→27 late 3", "30→34", "40→44"],
        "
        0         10        20        30        40
        ┣━━━━━━━━━━━━━━━━━━━━━━┣━━━   ┣━━━      ┣━━━
                  x         ···
        ",
    );
}

/// Side by side.
///
/// ```text
/// 0         10        20        30        40
/// ┣━━━━━━━━━━━━━━━━━━━━━━       ┣━━━      ┣━━━
///           ┣━━━      ┣━━━
/// ```
#[test]
fn timeline_o_allow_all() {
    let record = timeline_o(Overlap::AllowAll);
    shows(
        &record,
        &["0→23", "10→14", "20→24", "30→34", "40→44"],
        "
        0         10        20        30        40
        ┣━━━━━━━━━━━━━━━━━━━━━━       ┣━━━      ┣━━━
                  ┣━━━      ┣━━━
        ",
    );
}

/// Two side by side; the third is one too many.
///
/// ```text
/// 0         10        20        30        40        50
/// ┣━━━━━━━━━━━━━━━━━━━━━━       ┣━━━━━━━━━━━━━━━━━━━━━━
///           ┣━━━━━━━━━━━━━━━━━━━━━━       ┣━━━━━━━━━━━━━━━━━━━━━━
///                     x                             x
/// ```
#[test]
fn timeline_o_skip_two_at_once() {
    let record = two_at_once(Overlap::Skip);
    shows(
        &record,
        &["0→23", "10→33", "Skipped{Overlap}", "30→53", "40→63", "Skipped{Overlap}"],
        "
        0         10        20        30        40        50
        ┣━━━━━━━━━━━━━━━━━━━━━━       ┣━━━━━━━━━━━━━━━━━━━━━━
                  ┣━━━━━━━━━━━━━━━━━━━━━━       ┣━━━━━━━━━━━━━━━━━━━━━━
                            x                             x
        ",
    );
}

/// Two side by side, and one that waits for the first end.
///
/// ```text
/// 0         10        20        30        40        50
/// ┣━━━━━━━━━━━━━━━━━━━━━━┣━━━━━━━━━━━━━━━━━━━━━━┣━━━━━━━━━━━━━━━━━━━━━━
///           ┣━━━━━━━━━━━━━━━━━━━━━━┣━━━━━━━━━━━━━━━━━━━━━━┣━━━━━━━━━━━━━━━━━━━━━━
///                     ···       ···       ······    ······
/// ```
#[test]
fn timeline_o_buffer_one_first_two_at_once() {
    let record = two_at_once(Overlap::BufferOne { keep: Keep::First });
    shows(
        &record,
        &["0→23", "10→33", "23→46 late 3", "33→56 late 3", "46→69 late 6", "56→79 late 6"],
        "
        0         10        20        30        40        50
        ┣━━━━━━━━━━━━━━━━━━━━━━┣━━━━━━━━━━━━━━━━━━━━━━┣━━━━━━━━━━━━━━━━━━━━━━
                  ┣━━━━━━━━━━━━━━━━━━━━━━┣━━━━━━━━━━━━━━━━━━━━━━┣━━━━━━━━━━━━━━━━━━━━━━
                            ···       ···       ······    ······
        ",
    );
}

/// The process stands still from 5 to 37 minutes; a run takes one. One run makes
/// up for all that was missed, and the phase stays.
///
/// ```text
///           10        20        30        40
///                                      ┣  ┣
///           x         x         ·······
/// ```
#[test]
fn timeline_m_fire_once_latest() {
    let record = Timeline::of(FixedRate::every(minutes(10)))
        .misfire(Misfire::fire_once_latest())
        .lasting(|_| minutes(1))
        .stalled(minutes(5), minutes(32))
        .unit(minutes(1))
        .until(minutes(40));
    shows(
        &record,
        &["Skipped{Coalesced}", "Skipped{Coalesced}", "37→38 late 7 coalesced 2", "40→41"],
        "
                  10        20        30        40
                                             ┣  ┣
                  x         x         ·······
        ",
    );
}

/// A period of 200 ms and a stall from 0.5 s to 2.5 s; one column is 100 ms.
///
/// ```text
///   2 4 6 8 10  14  18  22  26  30
///   ┣ ┣                    ┣┣ ┣ ┣
///       x x x x x x x x x ·
/// ```
#[test]
fn timeline_m_two_seconds_of_stall_make_one_run_of_a_fast_job() {
    let record = Timeline::of(FixedRate::every(Duration::from_millis(200)))
        .stalled(Duration::from_millis(500), seconds(2))
        .unit(Duration::from_millis(100))
        .until(seconds(3));
    shows(
        &record,
        &[
            "2→2",
            "4→4",
            "Skipped{Coalesced}",
            "Skipped{Coalesced}",
            "Skipped{Coalesced}",
            "Skipped{Coalesced}",
            "Skipped{Coalesced}",
            "Skipped{Coalesced}",
            "Skipped{Coalesced}",
            "Skipped{Coalesced}",
            "Skipped{Coalesced}",
            "25→25 late 1 coalesced 9",
            "26→26",
            "28→28",
            "30→30",
        ],
        "
          2 4 6 8 10  14  18  22  26  30
          ┣ ┣                    ┣┣ ┣ ┣
              x x x x x x x x x ·
        ",
    );
}

/// Runs of 23 s, told to stop at 12 with a grace of 5 s: one listens …
///
/// ```text
/// 0         10
/// ┣━━━━━━━━━━━━━
///           x
/// ```
#[test]
fn timeline_a_job_that_is_told_to_stop() {
    let record = stopped_at_12(Reaction::StopsAfter(seconds(2)));
    shows(
        &record,
        &["0→14 cancelled (user)", "Skipped{Removed} at 12"],
        "
        0         10
        ┣━━━━━━━━━━━━━
                  x
        ",
    );
}

/// … and one does not.
///
/// ```text
/// 0         10
/// ┣━━━━━━━━━━━━━━━━
///           x
/// ```
#[test]
fn timeline_a_job_that_does_not_listen_is_dropped() {
    let record = stopped_at_12(Reaction::Ignores);
    shows(
        &record,
        &["0→17 aborted (user)", "Skipped{Removed} at 12"],
        "
        0         10
        ┣━━━━━━━━━━━━━━━━
                  x
        ",
    );
}
