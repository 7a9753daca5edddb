//! Whatever a user's code does, the schedule goes on, and it is counted.

#![allow(clippy::unwrap_used, reason = "tests")]

mod support;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use beatline_fixed_rate::FixedRate;
use beatline_scheduler::core::{
    Callback, Decision, Due, EventKind, JobResult, Monotonic, Next, OnDemand, Outcome, OverlapPolicy, OverlapView,
    Trigger, TriggerContext,
};
use beatline_scheduler::{Condition, Failure, Scheduler};
use beatline_test::{Tally, advance, settle};
use support::{Observed, assert_balanced, secs, since_anchor};

/// Returns nothing, rather than never: a job must be able to end.
fn explode(text: &str) {
    panic!("{text}");
}

fn explode_with(payload: impl Send + 'static) {
    std::panic::panic_any(payload);
}

// B01
#[tokio::test(start_paused = true)]
async fn a_panicking_job_goes_on_and_its_neighbour_is_untouched() {
    let failures: Arc<Mutex<Vec<(String, u64, String)>>> = Arc::default();
    let seen = Arc::clone(&failures);
    let scheduler = beatline_test::scheduler_builder(support::ANCHOR)
        .on_failure(move |failure: &Failure| {
            let text = failure.error.to_string();
            seen.lock().unwrap().push((failure.job.to_string(), since_anchor(failure.due), text));
        })
        .build()
        .unwrap();
    let every = FixedRate::every(secs(1)).immediately();
    let x = scheduler
        .job("x", every)
        .run(|run| async move {
            assert!(!matches!(run.id().0, 2 | 3), "number {}", run.id());
        })
        .unwrap();
    let y = scheduler.job("y", every).run(|_| async {}).unwrap();
    advance(secs(10)).await;

    let statistics = x.statistics();
    assert_eq!((statistics.started, statistics.outcome(Outcome::Panicked)), (11, 2));
    assert_eq!(statistics.outcome(Outcome::Completed), 9);
    assert_eq!(y.statistics().outcome(Outcome::Completed), 11);
    let expected =
        [("x".to_owned(), 1, "panicked: number 2".to_owned()), ("x".to_owned(), 2, "panicked: number 3".to_owned())];
    assert_eq!(*failures.lock().unwrap(), expected);
    assert_balanced(&x);
    // Nothing is poisoned: adding and cancelling still work.
    scheduler.job("z", every).run(|_| async {}).unwrap().cancel();
    x.cancel();
}

#[tokio::test(start_paused = true)]
async fn a_panic_is_caught_in_the_call_in_the_first_poll_and_in_later_ones() {
    let scheduler = beatline_test::scheduler(support::ANCHOR);
    let call = scheduler
        .job("call", OnDemand)
        .run(|_| {
            if true {
                panic!("in the call");
            }
            async {}
        })
        .unwrap();
    let first = scheduler.job("first poll", OnDemand).run(|_| async { explode("first") }).unwrap();
    let later = scheduler
        .job("later poll", OnDemand)
        .run(|_| async {
            tokio::time::sleep(secs(1)).await;
            explode("later")
        })
        .unwrap();
    let blocking = scheduler.job("blocking", OnDemand).run_blocking(|_| explode("blocking")).unwrap();
    let inline = scheduler.job("inline", FixedRate::every(secs(1))).run_inline(|_| explode("inline")).unwrap();
    let check =
        scheduler.job("check", OnDemand).run_check(|_| -> Option<std::future::Ready<()>> { panic!("check") }).unwrap();
    for job in [&call, &first, &later, &blocking, &check] {
        drop(job.run_now().unwrap());
    }
    advance(secs(1)).await;
    for job in [&call, &first, &later, &blocking, &inline, &check] {
        let statistics = job.statistics();
        assert_eq!((statistics.outcome(Outcome::Panicked), statistics.running), (1, 0), "{}", job.name());
        assert_eq!(statistics.last_error.unwrap().outcome, Outcome::Panicked);
    }
}

// B28
#[tokio::test(start_paused = true)]
async fn a_panicking_observer_harms_neither_the_job_nor_the_next_observer() {
    let second = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&second);
    let scheduler = beatline_test::scheduler_builder(support::ANCHOR)
        .observer(|_: &beatline_scheduler::core::Event| panic!("the first observer always panics"))
        .observer(move |event: &beatline_scheduler::core::Event| {
            if matches!(event.kind, EventKind::Finished(_)) {
                counted.fetch_add(1, Ordering::SeqCst);
            }
        })
        .build()
        .unwrap();
    let job = scheduler.job("job", FixedRate::every(secs(1)).immediately()).run(|_| async {}).unwrap();
    advance(secs(10)).await;
    assert_eq!((job.statistics().started, job.statistics().running), (11, 0));
    assert_eq!(second.load(Ordering::SeqCst), 11);
    // added, and for each run: decided, started, finished
    assert_eq!(scheduler.observer_panics(), 1 + 3 * 11);
}

/// Owned by a run's future; panics when it is dropped.
struct Explosive;

impl Drop for Explosive {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            panic!("dropped");
        }
    }
}

// B46
#[tokio::test(start_paused = true)]
async fn a_value_that_panics_when_dropped_is_contained_wherever_it_is_dropped() {
    let observed = Observed::default();
    let scheduler = observed.builder().build().unwrap();
    let hanging = |_run| async {
        let _explosive = Explosive;
        std::future::pending::<()>().await;
    };
    let every = FixedRate::every(secs(10)).immediately();
    let timed = scheduler.job("time-out", every).timeout(secs(5)).run(hanging).unwrap();
    let stopped = scheduler.job("stop", every).run(hanging).unwrap();
    let returning = scheduler
        .job("return", every)
        .run(|_| async {
            let explosive = Explosive;
            tokio::time::sleep(secs(1)).await;
            std::mem::forget(explosive); // only the last one explodes
            let _last = Explosive;
        })
        .unwrap();
    let at_shutdown = scheduler.job("shutdown", every).run(hanging).unwrap();

    advance(secs(6)).await;
    assert_eq!(timed.statistics().outcome(Outcome::TimedOut), 1);
    assert_eq!(returning.statistics().ended(), 1);
    advance(secs(4)).await;
    assert_eq!(timed.statistics().started, 2, "the next run starts");
    stopped.stop(secs(1)).await.unwrap();
    assert_eq!(stopped.statistics().ended(), 1);
    let report = scheduler.shutdown(secs(1)).await;
    assert!(report.still_running.is_empty(), "{report:?}");
    assert!(report.aborted >= 2, "{report:?}");
    assert_eq!(at_shutdown.statistics().ended(), 1);
    let drops = observed.count(|kind| {
        matches!(kind, EventKind::CallbackPanicked { callback: Callback::Drop, message } if &**message == "dropped")
    });
    assert_eq!(drops, 4, "time-out twice, stop, shutdown");
}

/// An error whose `Drop` panics.
#[derive(Debug)]
struct ExplosiveError(#[allow(dead_code, reason = "dropped")] Explosive);

impl std::fmt::Debug for Explosive {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Explosive")
    }
}

impl std::fmt::Display for ExplosiveError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("explosive")
    }
}

impl std::error::Error for ExplosiveError {}

#[tokio::test(start_paused = true)]
async fn what_a_job_owns_may_panic_when_it_is_dropped_with_the_job() {
    let scheduler = beatline_test::scheduler(support::ANCHOR);
    let tally = Tally::new();
    scheduler.job("neighbour", FixedRate::every(secs(1))).run(tally.job()).unwrap();
    let every = FixedRate::every(secs(1));
    let captured = Explosive;
    scheduler
        .job("captures", every)
        .run(move |_| {
            let _captured = &captured;
            async {}
        })
        .unwrap()
        .cancel();
    let errs = scheduler.job("fails", every).run(|_| async { Err(ExplosiveError(Explosive)) }).unwrap();
    advance(secs(10)).await;
    assert_eq!((errs.statistics().failures(), errs.statistics().started), (10, 10));
    errs.cancel();
    drop(errs);
    advance(secs(10)).await;
    assert_eq!(tally.count(), 20);
    scheduler.shutdown(secs(1)).await;
}

#[tokio::test(start_paused = true)]
async fn a_payload_that_panics_when_dropped_does_no_harm() {
    let scheduler = beatline_test::scheduler(support::ANCHOR);
    let job = scheduler.job("job", FixedRate::every(secs(1))).run(|_| async { explode_with(Explosive) }).unwrap();
    advance(secs(3)).await;
    assert_eq!(job.statistics().outcome(Outcome::Panicked), 3);
}

#[tokio::test(start_paused = true)]
async fn a_panicking_policy_skips_that_occurrence_and_is_asked_again() {
    struct Moody(AtomicU64);
    impl OverlapPolicy for Moody {
        fn decide(&self, _view: &OverlapView<'_>) -> Decision {
            assert!(self.0.fetch_add(1, Ordering::SeqCst) % 2 == 1, "moody");
            Decision::Start
        }
    }
    let observed = Observed::default();
    let scheduler = observed.builder().build().unwrap();
    let every = FixedRate::every(secs(1)).immediately();
    let job = scheduler.job("job", every).overlap(Moody(AtomicU64::new(0))).run(|_| async {}).unwrap();
    advance(secs(9)).await;
    let statistics = job.statistics();
    assert_eq!((statistics.due, statistics.started, statistics.skipped_by_label()["overlap"]), (10, 5, 5));
    assert_eq!(statistics.contained_panics, 5);
    let told =
        observed.count(|kind| matches!(kind, EventKind::CallbackPanicked { callback: Callback::OverlapPolicy, .. }));
    assert_eq!(told, 5);
}

/// Answers as it should twice, then breaks the contract.
struct Broken(fn(&TriggerContext) -> Next);

impl Trigger for Broken {
    fn next(&self, context: &TriggerContext) -> Next {
        let from = context.previous_monotonic().unwrap_or(context.registered.monotonic);
        if context.due_count < 2 { Next::At(from.saturating_add(secs(1))) } else { (self.0)(context) }
    }
}

#[tokio::test(start_paused = true)]
async fn a_trigger_that_breaks_its_contract_faults_its_job_alone() {
    let wall = |_: &TriggerContext| Next::AtWall("2026-01-01T11:00:00Z".parse().unwrap());
    type Breach = fn(&TriggerContext) -> Next;
    let breaches: [(&str, Breach); 5] = [
        ("panics", |_| panic!("broken")),
        ("stands still", |context| Next::At(context.previous_monotonic().unwrap())),
        ("goes back", |_| Next::At(Monotonic::ORIGIN)),
        ("changes the line", wall),
        ("waits twice for nothing", |_| Next::AfterCompletion),
    ];
    let observed = Observed::default();
    let scheduler = observed.builder().build().unwrap();
    let tally = Tally::new();
    let neighbour = scheduler.job("neighbour", FixedRate::every(secs(1))).run(tally.job()).unwrap();
    let jobs: Vec<_> = breaches
        .into_iter()
        .map(|(name, breach)| scheduler.job(name, Broken(breach)).run(|_| async {}).unwrap())
        .collect();
    advance(secs(10)).await;
    for job in &jobs {
        assert!(matches!(job.status().condition, Condition::Faulted { .. }), "{} {:?}", job.name(), job.status());
        assert_eq!(job.statistics().started, 2, "{}: what was due before ran", job.name());
        assert_balanced(job);
    }
    assert_eq!(observed.count(|kind| matches!(kind, EventKind::Faulted { .. })), jobs.len());
    assert_eq!(tally.count(), 10);
    assert!(!neighbour.status().is_cancelled());
    // A faulted job is still there, and still runs on demand.
    let ticket = jobs[0].run_now().unwrap();
    settle().await;
    ticket.await.unwrap();
    assert!(scheduler.find("panics").is_some());
}

#[tokio::test(start_paused = true)]
async fn a_trigger_that_fails_to_seek_loses_its_schedule_but_not_the_due_occurrence() {
    struct Unseekable;
    impl Trigger for Unseekable {
        fn next(&self, context: &TriggerContext) -> Next {
            let from = context.previous_monotonic().unwrap_or(context.registered.monotonic);
            Next::At(from.saturating_add(secs(1)))
        }
        fn latest_at_or_before(&self, _: &TriggerContext, _: Due) -> beatline_scheduler::core::Latest {
            panic!("cannot seek")
        }
    }
    let scheduler = beatline_test::scheduler(support::ANCHOR);
    let job = scheduler.job("job", Unseekable).run(|_| async {}).unwrap();
    support::stall(secs(30)).await;
    settle().await;
    assert_eq!((job.statistics().due, job.statistics().started), (1, 1));
    assert!(matches!(job.status().condition, Condition::Faulted { .. }));
}

#[tokio::test(start_paused = true)]
async fn errors_are_kept_counted_and_reset_by_a_success() {
    let scheduler = beatline_test::scheduler(support::ANCHOR);
    let job = scheduler
        .job("job", FixedRate::every(secs(1)))
        .run(|run| async move {
            if run.id().0 % 4 != 0 {
                Err(std::io::Error::other("no route"))?;
            }
            JobResult::Ok(())
        })
        .unwrap();
    advance(secs(3)).await;
    let statistics = job.statistics();
    assert_eq!((statistics.failures(), statistics.failures_in_a_row), (3, 3));
    let last = statistics.last_error.unwrap();
    assert_eq!((last.error.to_string().as_str(), last.outcome), ("no route", Outcome::Failed));
    advance(secs(1)).await;
    let statistics = job.statistics();
    assert_eq!((statistics.failures(), statistics.failures_in_a_row), (3, 0));
    assert!(statistics.last_error.is_some(), "the last error stays readable");
    let _: Scheduler = scheduler;
}
