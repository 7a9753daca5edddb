//! What can be wrong with a job, and what the scheduler says about it: one error a
//! line, each naming the field. Nothing panics, nothing is silently replaced.

use beatline::core::Overflow;
use beatline::{Error, FixedDelay, FixedRate, JobHandle, Overlap, Scheduler, Timestamp};
use std::time::Duration;

const SECOND: Duration = Duration::from_secs(1);

/// Prints the error. A job that was accepted would be a fault of the scheduler.
fn show<T>(what: &str, result: Result<T, Error>) -> Result<(), String> {
    match result {
        Ok(_) => Err(format!("{what}: was accepted")),
        Err(error) => {
            println!("{what}: {error}");
            Ok(())
        }
    }
}

/// Adds a job named so, with a trigger that is in order.
fn named(scheduler: &Scheduler, name: &str) -> Result<JobHandle, Error> {
    scheduler.job(name, FixedRate::every(SECOND)).run(|_run| async {})
}

async fn inside_a_runtime() -> Result<(), String> {
    let scheduler = Scheduler::new();
    let noon = Timestamp::from_unix(1_767_268_800, 0);

    let rate = |trigger| scheduler.job("job", trigger).run(|_run| async {});
    show("zero period", rate(FixedRate::every(Duration::ZERO)))?;
    show("phase beyond the period", rate(FixedRate::every(SECOND).phase(2 * SECOND)))?;
    show("end before start", rate(FixedRate::every(SECOND).starting_at(noon).ending_at(noon.saturating_sub(SECOND))))?;
    show("zero delay", scheduler.job("job", FixedDelay::after(Duration::ZERO)).run(|_run| async {}))?;

    let job = || scheduler.job("job", FixedRate::every(SECOND));
    show("zero time-out", job().timeout(Duration::ZERO).run(|_run| async {}))?;
    show("grace without time-out", job().timeout_grace(SECOND).run(|_run| async {}))?;
    show("time-out on an inline job", job().timeout(SECOND).run_inline(|_run| ()))?;
    show("no concurrency", job().max_concurrent(0).run(|_run| async {}))?;
    let no_room = Overlap::BufferAll { cap: 0, overflow: Overflow::DropNewest };
    show("no room to wait", job().overlap(no_room).run(|_run| async {}))?;
    let tomorrow = Timestamp::from(std::time::SystemTime::now()).saturating_add(86_400 * SECOND);
    show("last due in the future", job().last_due(tomorrow).run(|_run| async {}))?;

    show("empty name", named(&scheduler, ""))?;
    show("control character", named(&scheduler, "quo\ttes"))?;
    show("long name", named(&scheduler, &"q".repeat(129)))?;
    named(&scheduler, "quotes").map_err(|error| format!("a job that is in order was refused: {error}"))?;
    show("name taken", named(&scheduler, "quotes"))?;

    show("empty scheduler name", Scheduler::builder().name("").build())?;
    show("zero stall threshold", Scheduler::builder().stall_threshold(Duration::ZERO).build())?;

    scheduler.shutdown(SECOND).await;
    show("after shutdown", named(&scheduler, "late"))
}

fn main() -> Result<(), String> {
    show("no runtime", named(&Scheduler::new(), "early"))?;
    let gone = Scheduler::new().handle();
    show("scheduler gone", gone.job("job", FixedRate::every(SECOND)).run(|_run| async {}))?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.map_err(|error| format!("no runtime to go on with: {error}"))?.block_on(inside_a_runtime())
}
