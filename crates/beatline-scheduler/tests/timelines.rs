//! The timelines of the overlap and misfire policies, on tokio's paused clock.
//!
//! One job with a period of 10 s whose first run lasts 23 s and whose others last
//! 4 s, unless a test says otherwise. `━` running, `·` waiting, `x` skipped.

#![allow(clippy::unwrap_used, reason = "tests")]

mod support;

use beatline_fixed_rate::FixedRate;
use beatline_scheduler::JobHandle;
use beatline_scheduler::core::{Keep, Misfire, Overflow, Overlap, OverlapPolicy};
use beatline_test::advance;
use support::{Observed, assert_balanced, lasting, secs, stall};

/// Runs the job for `length` seconds; its lines, sorted by due.
async fn timeline(
    overlap: impl OverlapPolicy,
    max_concurrent: Option<usize>,
    durations: &'static [u64],
    length: u64,
) -> Vec<String> {
    let observed = Observed::default();
    let scheduler = observed.builder().build().unwrap();
    let mut job = scheduler.job("job", FixedRate::every(secs(10)).immediately()).overlap(overlap);
    if let Some(runs) = max_concurrent {
        job = job.max_concurrent(runs);
    }
    let job: JobHandle = job.run(lasting(durations)).unwrap();
    advance(secs(length)).await;
    assert_balanced(&job);
    let mut lines = observed.lines();
    // By due instant; a line that begins with `@` names the instant of the skip.
    lines.sort_by_key(|line| line.trim_start_matches('@').split(':').next().unwrap().parse::<u64>().unwrap());
    lines
}

/// ```text
///   due   0         10        20        30        40
///         ━━━━━━━━━━x━━━━━━━━━x━━       ━━━━      ━━━━
/// ```
#[tokio::test(start_paused = true)]
async fn timeline_skip() {
    let lines = timeline(Overlap::Skip, None, &[23, 4], 49).await;
    assert_eq!(
        lines,
        [
            "0: 0→23 completed",
            "10: skipped overlap",
            "20: skipped overlap",
            "30: 30→34 completed",
            "40: 40→44 completed"
        ]
    );
}

/// ```text
///   due   0         10        20        30        40
///         ━━━━━━━━━━··········x··━━━━   ━━━━      ━━━━
/// ```
#[tokio::test(start_paused = true)]
async fn timeline_buffer_one_first() {
    let lines = timeline(Overlap::BufferOne { keep: Keep::First }, None, &[23, 4], 49).await;
    assert_eq!(
        lines,
        [
            "0: 0→23 completed",
            "10: 23→27 late 13 completed",
            "20: skipped buffer_full",
            "30: 30→34 completed",
            "40: 40→44 completed"
        ]
    );
}

/// ```text
///   due   0         10        20        30        40
///         ━━━━━━━━━━··········x··━━━━   ━━━━      ━━━━     10 gives way to 20 at 20
/// ```
#[tokio::test(start_paused = true)]
async fn timeline_buffer_one_latest() {
    let lines = timeline(Overlap::BufferOne { keep: Keep::Latest }, None, &[23, 4], 49).await;
    assert_eq!(
        lines,
        [
            "0: 0→23 completed",
            "@20: skipped superseded ×1",
            "20: 23→27 late 3 completed",
            "30: 30→34 completed",
            "40: 40→44 completed"
        ]
    );
}

/// ```text
///   due   0         10        20        30        40
///         ━━━━━━━━━━·············━━━━━━━━━━━━     ━━━━
/// ```
#[tokio::test(start_paused = true)]
async fn timeline_buffer_all() {
    let lines = timeline(Overlap::buffer_all(), None, &[23, 4], 49).await;
    assert_eq!(
        lines,
        [
            "0: 0→23 completed",
            "10: 23→27 late 13 completed",
            "20: 27→31 late 7 completed",
            "30: 31→35 late 1 completed",
            "40: 40→44 completed"
        ]
    );
}

/// ```text
///   due   0         10        20        30        40
///         ━━━━━━━━━━━━━━━━━━━━━━━       ━━━━      ━━━━
///                   ━━━━      ━━━━
/// ```
#[tokio::test(start_paused = true)]
async fn timeline_allow_all() {
    let lines = timeline(Overlap::AllowAll, None, &[23, 4], 49).await;
    assert_eq!(
        lines,
        [
            "0: 0→23 completed",
            "10: 10→14 completed",
            "20: 20→24 completed",
            "30: 30→34 completed",
            "40: 40→44 completed"
        ]
    );
}

/// With room for one, dropping the newest is keeping the first.
#[tokio::test(start_paused = true)]
async fn timeline_buffer_all_with_room_for_one_drops_the_newest() {
    let overlap = Overlap::BufferAll { cap: 1, overflow: Overflow::DropNewest };
    assert_eq!(
        timeline(overlap, None, &[23, 4], 49).await,
        timeline(Overlap::BufferOne { keep: Keep::First }, None, &[23, 4], 49).await
    );
}

/// ```text
///   due   0         10        20        30        40
///         ━━━━━━━━━━··········x··━━━━   ━━━━      ━━━━     10 finds itself dropped at 20
/// ```
#[tokio::test(start_paused = true)]
async fn timeline_buffer_all_with_room_for_one_drops_the_oldest() {
    let overlap = Overlap::BufferAll { cap: 1, overflow: Overflow::DropOldest };
    let lines = timeline(overlap, None, &[23, 4], 49).await;
    assert_eq!(
        lines,
        [
            "0: 0→23 completed",
            "@20: skipped buffer_full ×1",
            "20: 23→27 late 3 completed",
            "30: 30→34 completed",
            "40: 40→44 completed"
        ]
    );
}

/// Two at once, every run 23 s:
///
/// ```text
///   due   0         10        20        30        40        50
///         ━━━━━━━━━━━━━━━━━━━━━━━       ━━━━━━━━━━━━━━━━━━━━━━━
///                   ━━━━━━━━━━x━━━━━━━━━━━━       ━━━━━━━━━━x━━━━
/// ```
#[tokio::test(start_paused = true)]
async fn timeline_skip_with_two_at_once() {
    let lines = timeline(Overlap::Skip, Some(2), &[23], 64).await;
    assert_eq!(
        lines[..6],
        [
            "0: 0→23 completed",
            "10: 10→33 completed",
            "20: skipped overlap",
            "30: 30→53 completed",
            "40: 40→63 completed",
            "50: skipped overlap"
        ]
    );
}

/// Two at once, one waits, every run 23 s:
///
/// ```text
///   due   0         10        20        30        40        50
///         ━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━…   0, 20, 40
///                   ━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━…   10, 30, 50
/// ```
#[tokio::test(start_paused = true)]
async fn timeline_buffer_one_with_two_at_once() {
    let lines = timeline(Overlap::BufferOne { keep: Keep::First }, Some(2), &[23], 89).await;
    let expected = [
        "0: 0→23 completed",
        "10: 10→33 completed",
        "20: 23→46 late 3 completed",
        "30: 33→56 late 3 completed",
        "40: 46→69 late 6 completed",
        "50: 56→79 late 6 completed",
    ];
    assert_eq!(
        lines.iter().filter(|line| line.ends_with("completed")).take(6).collect::<Vec<_>>(),
        expected.each_ref()
    );
}

/// An end and a due at one instant: the end is processed first.
///
/// ```text
///   due   0         10        20
///         ━━━━━━━━━━━━━━━━━━━━━━━━━     no occurrence is skipped
/// ```
#[tokio::test(start_paused = true)]
async fn timeline_an_end_goes_before_a_due_at_the_same_instant() {
    let lines = timeline(Overlap::Skip, None, &[10], 29).await;
    assert_eq!(lines, ["0: 0→10 completed", "10: 10→20 completed"]);
}

/// The process stands still from minute 5 to minute 37; due every ten minutes, a
/// run takes one:
///
/// ```text
///   due      10      20      30             40
///            x       x       └─────▶ 37━    ━     late 7 min, coalesced 2
/// ```
#[tokio::test(start_paused = true)]
async fn timeline_fire_once_latest_after_a_standstill() {
    let observed = Observed::default();
    let scheduler = observed.builder().build().unwrap();
    let job = scheduler.job("job", FixedRate::every(secs(600))).run(lasting(&[60])).unwrap();
    advance(secs(300)).await;
    stall(secs(32 * 60)).await;
    advance(secs(10 * 60)).await;
    assert_eq!(observed.lines(), ["1800: 2220→2280 late 420 coalesced 2 completed", "2400: 2400→2460 completed"]);
    let statistics = job.statistics();
    assert_eq!((statistics.due, statistics.misfires, statistics.started), (4, 1, 2));
    assert_balanced(&job);
}

/// The same for an earlier process that stopped at minute 5 and one that starts at
/// minute 37:
///
/// ```text
///   due      10      20      30             40
///   process  ┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄▶ 37━    ━     last_due = 0
/// ```
#[tokio::test(start_paused = true)]
async fn timeline_fire_once_latest_after_a_restart() {
    let observed = Observed::default();
    let scheduler = observed.builder().build().unwrap();
    let job = scheduler
        .job("job", FixedRate::every(secs(600)))
        .last_due("2026-01-01T09:23:00Z".parse().unwrap()) // 37 minutes before the anchor
        .run(move |run| async move {
            assert_eq!((run.coalesced(), run.lateness()), (2, secs(420)));
            assert_eq!(run.due().to_string(), "2026-01-01T09:53:00Z");
            assert_eq!(run.missed_since().unwrap().to_string(), "2026-01-01T09:33:00Z");
        })
        .unwrap();
    advance(secs(179)).await;
    let statistics = job.statistics();
    assert_eq!((statistics.due, statistics.started, statistics.failures()), (3, 1, 0));
    assert_eq!(job.next_due().unwrap().to_string(), "2026-01-01T10:03:00Z");
}

/// A period of 200 ms and a standstill of 2 s: one run, not ten, and the phase is
/// kept.
#[tokio::test(start_paused = true)]
async fn timeline_a_short_period_does_not_burst_after_a_standstill() {
    let observed = Observed::default();
    let scheduler = observed.builder().build().unwrap();
    let job = scheduler.job("job", FixedRate::every(support::millis(200))).run(|_| async {}).unwrap();
    advance(support::millis(500)).await;
    stall(secs(2)).await;
    advance(support::millis(90)).await;
    // 0.2, 0.4 ran; 0.6 … 2.4 are ten, of which the newest ran.
    let statistics = job.statistics();
    assert_eq!((statistics.due, statistics.started, statistics.skipped_by_label()["coalesced"]), (12, 3, 9));
    advance(support::millis(10)).await;
    assert_eq!(job.statistics().started, 4, "the next one is due at 2.6, where it always was");
}

/// The tolerance decides what is reported as missed, not what runs.
#[tokio::test(start_paused = true)]
async fn timeline_lateness_within_the_tolerance_is_no_misfire() {
    let observed = Observed::default();
    let scheduler = observed.builder().build().unwrap();
    let tolerant = Misfire::fire_once_latest().tolerance(secs(60));
    let job = scheduler.job("job", FixedRate::every(secs(600))).misfire(tolerant).run(|_| async {}).unwrap();
    stall(secs(630)).await;
    advance(secs(1)).await;
    assert_eq!((job.statistics().started, job.statistics().misfires), (1, 0));
    stall(secs(630)).await;
    advance(secs(1)).await;
    assert_eq!((job.statistics().started, job.statistics().misfires), (2, 1), "61 s late at minute 20");
}
