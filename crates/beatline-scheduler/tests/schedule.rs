//! Due when it should be: no drift, no burst, no vanishing, never early.

#![allow(clippy::unwrap_used, reason = "tests")]

mod support;

use std::sync::{Arc, Mutex};

use beatline_fixed_delay::FixedDelay;
use beatline_fixed_rate::FixedRate;
use beatline_scheduler::Condition;
use beatline_scheduler::core::{
    Cause, EventKind, Keep, Next, OnDemand, Once, Outcome, Overlap, SkipReason, Trigger, TriggerContext,
};
use beatline_test::{Tally, advance, settle};
use support::{Observed, assert_balanced, millis, secs, stall};
use tokio::time::Instant;

/// ```text
///   added ── period ──▶ run ── period ──▶ run
/// ```
#[tokio::test(start_paused = true)]
async fn the_first_run_is_one_period_after_registration_unless_immediately() {
    let scheduler = beatline_test::scheduler(support::ANCHOR);
    let rate = scheduler.job("rate", FixedRate::every(secs(10))).run(|_| async {}).unwrap();
    let delay = scheduler.job("delay", FixedDelay::after(secs(10))).run(|_| async {}).unwrap();
    let rate_now = scheduler.job("rate now", FixedRate::every(secs(10)).immediately()).run(|_| async {}).unwrap();
    let delay_now = scheduler.job("delay now", FixedDelay::after(secs(10)).immediately()).run(|_| async {}).unwrap();
    settle().await;
    let started = || [&rate, &delay, &rate_now, &delay_now].map(|job| job.statistics().started);
    assert_eq!(started(), [0, 0, 1, 1]);
    advance(secs(10) - millis(1)).await;
    assert_eq!(started(), [0, 0, 1, 1]);
    advance(millis(1)).await;
    assert_eq!(started(), [1, 1, 2, 2]);
    advance(secs(20)).await;
    assert_eq!(started(), [3, 3, 4, 4]);
}

// B14
#[tokio::test(start_paused = true)]
async fn a_fixed_rate_never_drifts() {
    let scheduler = beatline_test::scheduler(support::ANCHOR);
    let dues = Arc::new(Mutex::new(Vec::new()));
    let job = scheduler
        .job("job", FixedRate::every(secs(1)))
        .with(Arc::clone(&dues))
        .run(|run, dues| async move {
            dues.lock().unwrap().push((run.due(), run.lateness()));
            tokio::time::sleep(millis(300)).await;
        })
        .unwrap();
    let anchor: beatline_scheduler::core::Timestamp = support::ANCHOR.parse().unwrap();
    // The loop wakes up to 20 ms late, in a pattern that never repeats within the test.
    for k in 0..3_000_u64 {
        advance(secs(1) - millis(300)).await;
        stall(millis(k * k % 21)).await;
        advance(millis(300 - k * k % 21)).await;
    }
    let dues = dues.lock().unwrap();
    assert_eq!(dues.len(), 3_000);
    for (k, (due, lateness)) in dues.iter().enumerate() {
        assert_eq!(*due, anchor.saturating_add(secs(k as u64 + 1)), "exactly");
        assert!(*lateness <= millis(20), "{lateness:?}");
    }
    assert_balanced(&job);
}

// B51
#[tokio::test(start_paused = true)]
async fn a_fixed_delay_pauses_after_each_run_whatever_it_took() {
    let scheduler = beatline_test::scheduler(support::ANCHOR);
    let spans = Arc::new(Mutex::new(Vec::new()));
    let job = scheduler
        .job("job", FixedDelay::after(secs(1)))
        .overlap(Overlap::buffer_all())
        .with(Arc::clone(&spans))
        .run(|run, spans| async move {
            let start = Instant::now();
            tokio::time::sleep(secs(if run.id().0 == 50 { 60 } else { 5 })).await;
            spans.lock().unwrap().push((start, Instant::now()));
        })
        .unwrap();
    advance(secs(99 * 6 + 60 + 1)).await;
    let spans = spans.lock().unwrap();
    assert_eq!(spans.len(), 100);
    for pair in spans.windows(2) {
        assert_eq!(pair[1].0 - pair[0].1, secs(1));
    }
    assert_eq!(job.statistics().skipped_total(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_fixed_delay_lives_on_whatever_becomes_of_a_run() {
    let scheduler = beatline_test::scheduler(support::ANCHOR);
    type IsBad = fn(u64) -> bool;
    let ends: [(&str, IsBad); 3] = [("fails", |_| true), ("panics", |n| n % 2 == 0), ("hangs", |_| true)];
    let job = |name: &'static str, bad: IsBad| {
        scheduler
            .job(name, FixedDelay::after(secs(1)))
            .timeout(secs(2))
            .run(move |run| async move {
                match name {
                    _ if !bad(run.id().0) => {}
                    "fails" => Err("failed")?,
                    "panics" => panic!("panicked"),
                    _ => std::future::pending::<()>().await,
                }
                beatline_scheduler::core::JobResult::Ok(())
            })
            .unwrap()
    };
    let jobs = ends.map(|(name, bad)| job(name, bad));
    advance(secs(60)).await;
    let started = jobs.each_ref().map(|job| job.statistics().started);
    assert_eq!(started, [60, 60, 20]);
    // A run on demand that is active when it is due: skipped, and the pause begins anew.
    let gate = beatline_test::Gate::new();
    let skipped = scheduler.job("skipped", FixedDelay::after(secs(10))).run(gate.job()).unwrap();
    advance(secs(9)).await;
    drop(skipped.run_now().unwrap());
    advance(secs(1)).await;
    assert_eq!(skipped.statistics().skipped(SkipReason::Overlap), 1);
    assert_eq!(skipped.status().condition, Condition::Scheduled);
    gate.open(10);
    advance(secs(10)).await;
    assert_eq!(skipped.statistics().started, 2);
}

#[tokio::test(start_paused = true)]
async fn a_fixed_delay_whose_waiting_occurrence_is_superseded_is_asked_again() {
    let scheduler = beatline_test::scheduler(support::ANCHOR);
    let gate = beatline_test::Gate::new();
    let job = scheduler
        .job("job", FixedDelay::after(secs(10)))
        .overlap(Overlap::BufferOne { keep: Keep::Latest })
        .run(gate.job())
        .unwrap();
    drop(job.run_now().unwrap()); // active
    advance(secs(10)).await; // the trigger's own occurrence waits
    assert_eq!(job.status().condition, Condition::AwaitingCompletion);
    drop(job.run_now().unwrap()); // takes its place
    assert_eq!(job.status().condition, Condition::Scheduled, "a schedule never dies");
    gate.open(100);
    advance(secs(100)).await;
    assert!(job.statistics().started > 5);
    assert_balanced(&job);
}

#[tokio::test(start_paused = true)]
async fn no_delay_starts_at_most_once_a_millisecond() {
    let scheduler = beatline_test::scheduler(support::ANCHOR);
    let tally = Tally::new();
    let job = scheduler.job("job", FixedDelay::no_delay()).run(tally.job()).unwrap();
    advance(secs(1)).await;
    assert!((900..=1_001).contains(&tally.count()), "{}", tally.count());
    assert_eq!(job.status().condition, Condition::Scheduled);
}

#[tokio::test(start_paused = true)]
async fn periods_shorter_than_the_driver_is_fast_lose_nothing_unaccounted() {
    let scheduler = beatline_test::scheduler(support::ANCHOR);
    let tally = Tally::new();
    let job = scheduler.job("job", FixedRate::every(std::time::Duration::from_nanos(1))).run(tally.job()).unwrap();
    advance(millis(100)).await;
    let statistics = job.statistics();
    assert_eq!(statistics.due, statistics.started + statistics.skipped(SkipReason::Coalesced));
    assert!(statistics.due >= 99_000_000 && tally.count() <= 101, "{statistics:?}");
}

// B23
#[tokio::test(start_paused = true)]
async fn a_job_never_vanishes_however_long_the_loop_stands_still() {
    for seed in 0..20_u64 {
        let scheduler = beatline_test::scheduler(support::ANCHOR);
        let mut random = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
        let mut next = move |below: u64| {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            random % below
        };
        let run_time = next(91);
        let starts = Arc::new(Mutex::new(vec![Instant::now()]));
        let job = scheduler
            .job("job", FixedRate::every(secs(30)))
            .with(Arc::clone(&starts))
            .run(move |_, starts| async move {
                starts.lock().unwrap().push(Instant::now());
                tokio::time::sleep(secs(run_time)).await;
            })
            .unwrap();
        let mut longest_stall = 0;
        for _ in 0..50 {
            let length = next(201);
            longest_stall = longest_stall.max(length);
            stall(secs(length)).await;
            advance(secs(next(60))).await;
            assert!(job.next_due().is_some(), "an enabled job has a next occurrence");
            assert_balanced(&job);
        }
        advance(secs(200)).await;
        let starts = starts.lock().unwrap();
        let longest = starts.windows(2).map(|pair| pair[1] - pair[0]).max().unwrap();
        // A stall that begins during a run can hide two.
        assert!(longest <= secs(2 * longest_stall + 30 + run_time + 60), "{longest:?} {longest_stall} {run_time}");
        assert!(Instant::now() - *starts.last().unwrap() <= secs(30 + run_time.max(30)), "still alive");
    }
}

// B52
#[tokio::test(start_paused = true)]
async fn an_earlier_job_wakes_a_sleeping_driver() {
    let scheduler = beatline_test::scheduler(support::ANCHOR);
    let far = scheduler.job("in an hour", FixedRate::every(secs(3_600))).run(|_| async {}).unwrap();
    settle().await;
    for number in 0..1_000 {
        let at = Arc::new(Mutex::new(None));
        let seen = Arc::clone(&at);
        let handle = scheduler.handle();
        let asked = Instant::now();
        std::thread::spawn(move || {
            handle
                .after(millis(50), move |_| {
                    *seen.lock().unwrap() = Some(Instant::now());
                    async {}
                })
                .unwrap();
        })
        .join()
        .unwrap();
        advance(millis(52)).await;
        let late = at.lock().unwrap().unwrap() - (asked + millis(50));
        assert!(late <= millis(2), "{number}: {late:?}");
    }
    assert_eq!(far.statistics().started, 0);
    assert_eq!(scheduler.one_shots().started, 1_000);
}

#[tokio::test(start_paused = true)]
async fn equal_instants_start_in_priority_then_registration_order() {
    let scheduler = beatline_test::scheduler(support::ANCHOR);
    let order = Arc::new(Mutex::new(Vec::new()));
    for (name, priority) in [("a", 0), ("b", 5), ("c", -1), ("d", 5), ("e", 0)] {
        let order = Arc::clone(&order);
        scheduler
            .job(name, FixedRate::every(secs(1)))
            .priority(priority)
            .run(move |run| {
                order.lock().unwrap().push(run.job().to_owned());
                async {}
            })
            .unwrap();
    }
    advance(secs(2)).await;
    assert_eq!(order.lock().unwrap().join(""), "bdaecbdaec");
}

#[tokio::test(start_paused = true)]
async fn the_end_of_time_is_legal_and_never_comes() {
    let scheduler = beatline_test::scheduler(support::ANCHOR);
    let max = std::time::Duration::MAX;
    let rate = scheduler.job("rate", FixedRate::every(max)).run(|_| async {}).unwrap();
    let delay = scheduler.job("delay", FixedDelay::after(max)).run(|_| async {}).unwrap();
    let once = scheduler.job("once", Once::after(max)).run(|_| async {}).unwrap();
    scheduler.after(max, |_| async {}).unwrap();
    let centuries = scheduler.job("centuries", FixedRate::every(secs(300 * 365 * 86_400))).run(|_| async {}).unwrap();
    let timeout = scheduler.job("time-out", OnDemand).timeout(max).run(|_| tokio::time::sleep(secs(1))).unwrap();
    let ticket = timeout.run_now().unwrap();
    advance(secs(10_000 * 86_400)).await;
    for job in [rate, delay, once, centuries] {
        assert_eq!((job.statistics().due, job.status().condition), (0, Condition::Scheduled), "{}", job.name());
    }
    ticket.await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn bounds_and_phases_of_a_fixed_rate_are_exact() {
    let observed = Observed::default();
    let scheduler = observed.builder().build().unwrap();
    let bounded = FixedRate::every(secs(10))
        .anchored_at("2026-01-01T09:59:57Z".parse().unwrap())
        .starting_at("2026-01-01T10:00:10Z".parse().unwrap())
        .ending_at("2026-01-01T10:00:37Z".parse().unwrap());
    let job = scheduler.job("bounded", bounded).run(|_| async {}).unwrap();
    advance(secs(100)).await;
    assert_eq!(observed.lines(), ["17: 17→17 completed", "27: 27→27 completed", "37: 37→37 completed"]);
    assert_eq!(job.status().condition, Condition::Exhausted);
    assert!(scheduler.find("bounded").is_none(), "what is over leaves the scheduler");
    let spread =
        scheduler.job("spread", FixedRate::every(secs(10)).phase(secs(3)).immediately()).run(|_| async {}).unwrap();
    assert_eq!(spread.next_due().unwrap().to_string(), "2026-01-01T10:01:43Z");
}

// B38
#[tokio::test(start_paused = true)]
async fn a_hung_run_is_visible_and_a_time_out_frees_the_job() {
    let scheduler = beatline_test::scheduler(support::ANCHOR);
    let hang = |run: beatline_scheduler::core::Run| async move {
        if run.id().0 == 1 {
            std::future::pending::<()>().await;
        }
    };
    let every = FixedRate::every(secs(1));
    let with = scheduler.job("with", every).timeout(secs(5)).run(hang).unwrap();
    let without = scheduler.job("without", every).run(hang).unwrap();
    let other = scheduler.job("other", every).run(|_| async {}).unwrap();
    advance(secs(20)).await;
    let statistics = with.statistics();
    assert_eq!(statistics.outcome(Outcome::TimedOut), 1);
    assert!(statistics.started >= 14, "{statistics:?}");
    let statistics = without.statistics();
    assert_eq!((statistics.skipped(SkipReason::Overlap), statistics.oldest_running), (19, Some(secs(19))));
    assert_eq!(other.statistics().started, 20);
    drop(scheduler);
    settle().await;
    assert_eq!(without.statistics().last_outcome, Some(Outcome::Aborted(Cause::Shutdown)));
}

#[tokio::test(start_paused = true)]
async fn falling_behind_is_told_once_an_episode() {
    let observed = Observed::default();
    let scheduler = observed.builder().build().unwrap();
    let job = scheduler
        .job("slow", FixedRate::every(secs(10)).immediately())
        .overlap(Overlap::BufferOne { keep: Keep::First })
        .run(support::lasting(&[12, 12, 12, 1, 1, 1, 1, 15, 1, 1]))
        .unwrap();
    advance(secs(200)).await;
    let told: Vec<_> = observed
        .events()
        .into_iter()
        .filter_map(|event| match event.kind {
            EventKind::FellBehind { by } => Some(format!("behind by {by:?}")),
            EventKind::CaughtUp => Some("caught up".to_owned()),
            _ => None,
        })
        .collect();
    assert_eq!(told, ["behind by 2s", "caught up", "behind by 5s", "caught up"]);
    assert_balanced(&job);
}

/// Counts in triangular numbers; has no closed form.
struct Triangular;

impl Trigger for Triangular {
    fn next(&self, context: &TriggerContext) -> Next {
        let from = context.previous_monotonic().unwrap_or(context.registered.monotonic);
        Next::At(from.saturating_add(secs(context.due_count + 1)))
    }
}

#[tokio::test(start_paused = true)]
async fn a_trigger_without_a_closed_form_is_walked_and_counted() {
    let scheduler = beatline_test::scheduler(support::ANCHOR);
    let job = scheduler.job("job", Triangular).run(|_| async {}).unwrap();
    advance(secs(6)).await; // 1, 3, 6
    assert_eq!(job.statistics().started, 3);
    stall(secs(49)).await; // 10, 15, 21, 28, 36, 45, 55
    settle().await;
    let statistics = job.statistics();
    assert_eq!((statistics.due, statistics.started, statistics.skipped(SkipReason::Coalesced)), (10, 4, 6));
    assert_eq!(job.next_due().unwrap().to_string(), "2026-01-01T10:01:06Z");
}

#[tokio::test(start_paused = true)]
async fn a_trigger_too_dense_to_walk_is_cut_off_and_goes_on_from_now() {
    struct Dense;
    impl Trigger for Dense {
        fn next(&self, context: &TriggerContext) -> Next {
            let from = context.previous_monotonic().unwrap_or(context.registered.monotonic);
            Next::At(from.saturating_add(millis(1)))
        }
    }
    let observed = Observed::default();
    let scheduler = observed.builder().build().unwrap();
    let job = scheduler.job("job", Dense).run(|_| async {}).unwrap();
    stall(secs(86_400)).await;
    settle().await;
    let cut_off = observed.events().into_iter().find_map(|event| match event.kind {
        EventKind::Decided(decided) => Some(decided),
        _ => None,
    });
    let cut_off = cut_off.unwrap();
    assert!(cut_off.at_least && cut_off.due > 100_000, "{cut_off:?}");
    assert_balanced(&job);
    assert_eq!(job.next_due().unwrap().to_string(), "2026-01-02T10:00:00.001Z");
}

/// Found by the simulator, seed 8208: a period longer than the clock can count,
/// continued from before the clock's origin, was taken for one of 292 years.
#[tokio::test(start_paused = true)]
async fn a_period_beyond_the_clock_never_comes_from_wherever_it_is_counted() {
    let scheduler = beatline_test::scheduler(support::ANCHOR);
    let endless = FixedRate::every(std::time::Duration::MAX);
    let fresh = scheduler.job("fresh", endless).run(|_| async {}).unwrap();
    let continued = scheduler
        .job("continued", endless.initial_delay(millis(83)))
        .last_due("2026-01-01T09:00:00Z".parse().unwrap())
        .run(|_| async {})
        .unwrap();
    settle().await;
    assert_eq!((continued.statistics().started, fresh.statistics().started), (1, 0));
    assert_eq!(fresh.next_due(), continued.next_due());
    assert_eq!(continued.status().condition, Condition::Scheduled);
}
