//! The kinds of body, what a run is told, and control from everywhere.

#![allow(clippy::unwrap_used, reason = "tests")]

mod support;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use beatline_fixed_delay::FixedDelay;
use beatline_fixed_rate::FixedRate;
use beatline_scheduler::core::{
    Decision, EventKind, Fate, Job, JobResult, OnDemand, Once, Origin, Outcome, Overlap, OverlapPolicy, OverlapView,
    Run, SkipReason, async_trait, error_chain,
};
use beatline_scheduler::{Condition, Scheduler};
use beatline_test::{Gate, Tally, advance, settle};
use support::{Observed, assert_balanced, millis, secs};

#[derive(Clone)]
struct Db(Tally);

async fn refresh(_run: Run, db: Db) -> JobResult {
    db.0.add();
    Ok(())
}

fn compact(_run: Run, db: Db) -> Result<(), std::io::Error> {
    db.0.add();
    Ok(())
}

struct Object(Tally);

#[async_trait]
impl Job for Object {
    async fn run(&self, run: Run) -> JobResult {
        tokio::time::sleep(millis(1)).await;
        assert_eq!(run.attempt(), 1);
        self.0.add();
        Ok(())
    }
}

#[tokio::test(start_paused = true)]
async fn every_kind_of_body_runs_with_and_without_state() {
    let scheduler = beatline_test::scheduler(support::ANCHOR);
    let every = FixedRate::every(secs(1));
    let db = Db(Tally::new());
    let add = |name: &str| scheduler.job(name.to_owned(), every);
    let captured = db.clone();
    add("closure")
        .run(move |_| {
            let db = captured.clone();
            async move { db.0.add() }
        })
        .unwrap();
    add("function with state").with(db.clone()).run(refresh).unwrap();
    add("object").run_job(Object(db.0.clone())).unwrap();
    add("boxed object").run_job(Box::new(Object(db.0.clone())) as Box<dyn Job>).unwrap();
    add("blocking with state").with(db.clone()).run_blocking(compact).unwrap();
    let captured = db.clone();
    add("blocking").run_blocking(move |_| captured.0.add()).unwrap();
    add("inline with state").with(db.clone()).run_inline(|_, db| db.0.add()).unwrap();
    let captured = db.clone();
    add("inline").run_inline(move |_| captured.0.add()).unwrap();
    add("check with state").with(db.clone()).run_check(|run, db| Some(refresh(run, db))).unwrap();
    let captured = db.clone();
    add("check")
        .run_check(move |_| {
            captured.0.add();
            None::<std::future::Ready<()>>
        })
        .unwrap();
    advance(secs(3) + millis(5)).await;
    assert_eq!(db.0.count(), 30);
    assert_eq!(scheduler.jobs().len(), 10);
    for job in scheduler.jobs() {
        assert_eq!(job.statistics().outcome(Outcome::Completed), 3, "{}", job.name());
        assert_balanced(&job);
    }
}

#[tokio::test(start_paused = true)]
async fn a_check_goes_asynchronous_only_when_needed() {
    let scheduler = beatline_test::scheduler(support::ANCHOR);
    let reconnects = Tally::new();
    let job = scheduler
        .job("connections", FixedRate::every(secs(1)))
        .timeout(secs(3))
        .with(reconnects.clone())
        .run_check(|run, reconnects| {
            let stale = run.id().0 % 3 == 0;
            stale.then_some(async move {
                tokio::time::sleep(if reconnects.count() == 0 { millis(500) } else { secs(60) }).await;
                reconnects.add();
            })
        })
        .unwrap();
    advance(secs(10)).await;
    let statistics = job.statistics();
    assert_eq!(reconnects.count(), 1);
    // 3 reconnects; 6 hangs and is timed out at 9, which hangs again: 7, 8 and 10 overlap.
    assert_eq!((statistics.outcome(Outcome::TimedOut), statistics.skipped(SkipReason::Overlap)), (1, 3));
    assert_balanced(&job);
}

#[tokio::test(start_paused = true)]
async fn a_run_is_told_what_it_is() {
    let scheduler = beatline_test::scheduler(support::ANCHOR);
    let job = scheduler
        .job("job", FixedRate::every(secs(10)))
        .overlap(Overlap::buffer_all())
        .run(|run| async move {
            assert_eq!((run.job(), run.attempt(), run.is_cancelled()), ("job", 1, false));
            match run.id().0 {
                1 => {
                    assert_eq!(
                        (run.due().to_string().as_str(), run.origin()),
                        ("2026-01-01T10:00:10Z", Origin::Trigger)
                    );
                    assert_eq!((run.lateness(), run.coalesced(), run.missed_since()), (secs(0), 0, None));
                }
                2 => {
                    assert_eq!((run.due().to_string().as_str(), run.lateness()), ("2026-01-01T10:00:40Z", secs(5)));
                    assert_eq!(
                        (run.coalesced(), run.missed_since().unwrap().to_string()),
                        (2, "2026-01-01T10:00:20Z".into())
                    );
                }
                3 => assert_eq!(run.origin(), Origin::RunNow),
                id => panic!("{id}"),
            }
        })
        .unwrap();
    advance(secs(10)).await;
    support::stall(secs(35)).await;
    settle().await;
    let ended = job.run_now().unwrap().await.unwrap();
    assert_eq!(ended.fate, Fate::Ran(Outcome::Completed));
    assert_eq!(job.statistics().failures(), 0, "{:?}", job.statistics().last_error);
}

#[tokio::test(start_paused = true)]
async fn a_time_out_cancels_the_token_and_drops_the_run_at_once_or_after_the_grace() {
    let scheduler = beatline_test::scheduler(support::ANCHOR);
    let cleaned = Tally::new();
    let polite = |run: Run, cleaned: Tally| async move {
        run.cancelled().await;
        tokio::time::sleep(secs(1)).await;
        cleaned.add();
    };
    let every = FixedRate::every(secs(100)).immediately();
    let at_once = scheduler.job("at once", every).timeout(secs(5)).with(cleaned.clone()).run(polite).unwrap();
    let graceful = scheduler
        .job("graceful", every)
        .timeout(secs(5))
        .timeout_grace(secs(2))
        .with(cleaned.clone())
        .run(polite)
        .unwrap();
    let deaf = scheduler
        .job("deaf", every)
        .timeout(secs(5))
        .timeout_grace(secs(2))
        .run(|_| std::future::pending::<()>())
        .unwrap();
    let blocking =
        scheduler.job("in time", every).timeout(secs(5)).run_blocking(|run| assert!(!run.is_cancelled())).unwrap();
    advance(secs(5)).await;
    assert_eq!((at_once.statistics().outcome(Outcome::TimedOut), cleaned.count()), (1, 0));
    assert_eq!(graceful.statistics().running, 1);
    advance(secs(1)).await;
    assert_eq!((graceful.statistics().outcome(Outcome::TimedOut), cleaned.count()), (1, 1), "a time-out wins");
    advance(secs(1)).await;
    let statistics = deaf.statistics();
    assert_eq!((statistics.outcome(Outcome::TimedOut), statistics.last_duration), (1, secs(7)));
    assert_eq!(error_chain(&*statistics.last_error.unwrap().error), "timed out after 5s");
    assert_eq!(blocking.statistics().outcome(Outcome::Completed), 1);
}

#[tokio::test(start_paused = true)]
async fn requested_runs_have_tickets_and_do_not_move_the_schedule() {
    let scheduler = beatline_test::scheduler(support::ANCHOR);
    let gate = Gate::new();
    let job = scheduler.job("job", FixedRate::every(secs(10))).run(gate.job()).unwrap();
    let delay = scheduler.job("delay", FixedDelay::after(secs(10))).run(|_| async {}).unwrap();
    advance(secs(4)).await;
    delay.run_now().unwrap().await.unwrap();
    let first = job.run_now().unwrap();
    settle().await;
    let second = job.run_now().unwrap();
    assert_eq!(second.await.unwrap().fate, Fate::Skipped(SkipReason::Overlap));
    let beside = job.run_now_with(Overlap::AllowAll).unwrap();
    assert_eq!(beside.await.unwrap().fate, Fate::Skipped(SkipReason::Overlap), "the job's limit stays");
    let next = job.next_outcome();
    gate.open(1);
    assert_eq!(first.await.unwrap().fate, Fate::Ran(Outcome::Completed));
    advance(secs(6)).await;
    gate.open(1);
    assert_eq!(next.await.unwrap().run.origin, Origin::Trigger);
    assert_eq!((job.statistics().due, job.statistics().started), (4, 2));
    assert_eq!(delay.statistics().started, 2, "due at 10, where it always was");
    assert_balanced(&job);
}

#[tokio::test(start_paused = true)]
async fn nameless_one_shots_run_once_and_leave_nothing_behind() {
    let scheduler = beatline_test::scheduler(support::ANCHOR);
    let tally = Tally::new();
    for second in 1..=60 {
        drop(scheduler.after(secs(second), tally.job()).unwrap());
    }
    let at = tokio::time::Instant::now() + secs(50);
    let handle = scheduler.at(at, tally.job()).unwrap();
    assert_eq!((handle.name(), scheduler.jobs().len()), ("", 0));
    advance(secs(60)).await;
    assert_eq!((tally.count(), handle.status().condition), (61, Condition::Exhausted));
    let books = scheduler.one_shots();
    assert_eq!((books.due, books.started, books.outcome(Outcome::Completed)), (61, 61, 61));
    drop(scheduler.at(std::time::Instant::now(), tally.job()).unwrap());
    settle().await;
    assert_eq!(tally.count(), 62, "an instant that has passed is due at once");
    let named = scheduler.job("once", Once::after(secs(1))).run(tally.job()).unwrap();
    advance(secs(1)).await;
    assert_eq!((tally.count(), named.statistics().started), (63, 1));
    assert!(scheduler.find("once").is_none());
}

#[tokio::test(start_paused = true)]
async fn status_tells_what_a_job_is_waiting_for() {
    let scheduler = beatline_test::scheduler(support::ANCHOR);
    let gate = Gate::new();
    let rate = scheduler.job("rate", FixedRate::every(secs(30))).run(|_| async {}).unwrap();
    let delay = scheduler.job("delay", FixedDelay::after(secs(5))).run(gate.job()).unwrap();
    let demand = scheduler.job("demand", OnDemand).overlap(Overlap::AllowAll).run(|_| async {}).unwrap();
    let conditions = || [&rate, &delay, &demand].map(|job| job.status().condition);
    assert_eq!(conditions(), [Condition::Scheduled, Condition::Scheduled, Condition::Idle]);
    advance(secs(7)).await;
    assert_eq!(conditions(), [Condition::Scheduled, Condition::AwaitingCompletion, Condition::Idle]);
    let status = delay.status();
    assert!(status.is_active() && !status.is_cancelled() && status.next_due.is_none());
    assert_eq!(status.statistics.oldest_running, Some(secs(2)));
    let status = rate.status();
    assert_eq!((&*status.trigger, &*status.overlap), ("every 30s", "skip"));
    assert_eq!(status.next_due.unwrap().to_string(), "2026-01-01T10:00:30Z");
    assert_eq!(demand.status().overlap, "allow all");
    gate.open(1);
    advance(secs(1)).await;
    let statistics = delay.statistics();
    assert_eq!((statistics.run_count(), statistics.last_duration, statistics.mean_duration), (1, secs(2), secs(2)));
    assert_eq!(statistics.last_run_at.unwrap().to_string(), "2026-01-01T10:00:05Z");
    assert_eq!(statistics.last_success_at.unwrap().to_string(), "2026-01-01T10:00:07Z");
    let names: Vec<_> = scheduler.jobs().iter().map(|job| job.name().to_owned()).collect();
    assert_eq!(names, ["rate", "delay", "demand"]);
    assert_eq!(scheduler.find("delay").unwrap().statistics().started, 1);
}

#[tokio::test(start_paused = true)]
async fn a_custom_policy_sees_the_runs_and_is_held_to_its_limits() {
    /// Waits if the run before is nearly over, else skips; two at once.
    struct Patient;
    impl OverlapPolicy for Patient {
        fn decide(&self, view: &OverlapView<'_>) -> Decision {
            assert_eq!(view.active, view.runs.len());
            assert!(view.runs.iter().all(|run| run.started.is_some()));
            match view.oldest_age() {
                Some(age) if age >= secs(20) => Decision::Buffer,
                _ => Decision::Start,
            }
        }
        fn max_concurrent(&self) -> usize {
            2
        }
        fn buffer(&self) -> usize {
            1
        }
    }
    let observed = Observed::default();
    let scheduler = observed.builder().build().unwrap();
    let job = scheduler
        .job("job", FixedRate::every(secs(5)).immediately())
        .overlap(Patient)
        .run(support::lasting(&[27, 27]))
        .unwrap();
    advance(secs(29)).await;
    // 0 and 5 run; 10 and 15 ask to start above the limit; 20 waits; 25 finds it full.
    let statistics = job.statistics();
    assert_eq!(statistics.skipped(SkipReason::Overlap), 2);
    assert_eq!(statistics.skipped(SkipReason::BufferFull), 1);
    assert_eq!((statistics.started, statistics.running), (3, 2));
    assert_balanced(&job);
}

#[test]
fn handles_work_from_plain_threads() {
    let runtime = support::runtime(2);
    let scheduler = Arc::new(Scheduler::builder().runtime(runtime.handle().clone()).build().unwrap());
    let tally = Tally::new();
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let (scheduler, tally) = (&scheduler, &tally);
            scope.spawn(move || {
                for number in 0..250 {
                    let job = scheduler.job(format!("{thread}-{number}"), OnDemand).run(tally.job()).unwrap();
                    let ticket = job.run_now().unwrap();
                    let ended = futures_executor(ticket);
                    assert_eq!(ended.unwrap().fate, Fate::Ran(Outcome::Completed));
                    assert!(scheduler.find(job.name()).is_some());
                    if number % 2 == 0 {
                        job.cancel();
                    }
                }
            });
        }
    });
    assert_eq!((tally.count(), scheduler.jobs().len()), (1_000, 500));
    let report = futures_executor(scheduler.shutdown(secs(5)));
    assert!(report.still_running.is_empty());
}

/// Waits for a future on a thread that is no part of any runtime.
fn futures_executor<F: std::future::Future>(future: F) -> F::Output {
    struct Unpark(std::thread::Thread);
    impl std::task::Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let waker = std::task::Waker::from(Arc::new(Unpark(std::thread::current())));
    let mut future = std::pin::pin!(future);
    loop {
        match future.as_mut().poll(&mut std::task::Context::from_waker(&waker)) {
            std::task::Poll::Ready(output) => return output,
            std::task::Poll::Pending => std::thread::park(),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_job_may_add_find_and_cancel_others() {
    let scheduler = beatline_test::scheduler(support::ANCHOR);
    let handle = scheduler.handle();
    let children = Tally::new();
    scheduler
        .job("parent", FixedRate::every(secs(1)))
        .with(children.clone())
        .run(move |run, children| {
            let handle = handle.clone();
            async move {
                let name = format!("child {}", run.id());
                handle.job(&*name, FixedRate::every(secs(1)).immediately()).run(children.job())?;
                if run.id().0 > 1 {
                    handle.find(&format!("child {}", run.id().0 - 1)).unwrap().cancel();
                }
                JobResult::Ok(())
            }
        })
        .unwrap();
    advance(secs(5)).await;
    assert_eq!(scheduler.jobs().len(), 2, "the parent and the last child");
    assert!(children.count() >= 5);
    assert_eq!(scheduler.find("parent").unwrap().statistics().failures(), 0);
}

#[test]
fn a_burst_of_adds_from_another_thread_neither_hangs_nor_drops() {
    const BURST: usize = 200_000;
    let runtime = support::runtime(2);
    let scheduler = Scheduler::builder().runtime(runtime.handle().clone()).build().unwrap();
    let tally = Tally::new();
    for _ in 0..BURST {
        drop(scheduler.after(millis(1), tally.job()).unwrap());
    }
    while tally.count() < BURST as u64 {
        std::thread::yield_now();
    }
    while scheduler.one_shots().ended() < BURST as u64 {
        std::thread::yield_now();
    }
    assert!(scheduler.one_shots().is_balanced());
}

// B37
#[tokio::test(start_paused = true)]
async fn a_long_running_job_leaves_no_trail() {
    let scheduler = beatline_test::scheduler(support::ANCHOR);
    let peak = Arc::new(AtomicUsize::new(0));
    let alive = Arc::clone(&peak);
    let baseline = tokio::runtime::Handle::current().metrics().num_alive_tasks();
    let job = scheduler
        .job("job", FixedRate::every(millis(1)))
        .run(move |run| {
            let tasks = tokio::runtime::Handle::current().metrics().num_alive_tasks() - baseline;
            alive.fetch_max(tasks, Ordering::Relaxed);
            let pending = run.id().0 % 2 == 0;
            async move {
                if pending {
                    tokio::task::yield_now().await;
                }
            }
        })
        .unwrap();
    advance(secs(10)).await;
    let before = resident_bytes();
    let seconds = support::repetitions(30, 990);
    advance(secs(seconds)).await;
    assert_eq!(job.statistics().started, 10_000 + seconds * 1_000);
    // The driver, the runner, and at most one run.
    assert!(peak.load(Ordering::Relaxed) <= 3, "{}", peak.load(Ordering::Relaxed));
    let grown = resident_bytes().saturating_sub(before);
    assert!(grown < 4 << 20, "{grown} bytes after {seconds},000 runs");
}

#[cfg(target_os = "linux")]
fn resident_bytes() -> u64 {
    let pages = std::fs::read_to_string("/proc/self/statm").unwrap();
    pages.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() * 4096
}

#[cfg(not(target_os = "linux"))]
fn resident_bytes() -> u64 {
    0
}

#[tokio::test(start_paused = true)]
async fn observers_are_told_of_everything_in_order() {
    let observed = Observed::default();
    let scheduler = observed.builder().build().unwrap();
    let job = scheduler.job("job", FixedRate::every(secs(1))).run(|_| async {}).unwrap();
    advance(secs(1)).await;
    job.cancel();
    scheduler.shutdown(secs(1)).await;
    let kinds: Vec<_> = observed
        .events()
        .iter()
        .map(|event| format!("{:?}", event.kind).split(['(', ' ']).next().unwrap().to_owned())
        .collect();
    assert_eq!(kinds, ["Added", "Decided", "Started", "Finished", "Removed", "ShuttingDown"]);
    let cursor = observed.events().into_iter().find_map(|event| match event.kind {
        EventKind::Decided(decided) => Some(decided.cursor_wall),
        _ => None,
    });
    assert_eq!(cursor.unwrap().to_string(), "2026-01-01T10:00:01Z");
}
