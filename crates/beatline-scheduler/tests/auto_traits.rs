//! Which public types may cross threads; losing one of these is a breaking change.

use beatline_scheduler as scheduler;
use beatline_scheduler::core;

fn send_sync<T: Send + Sync>() {}
fn send<T: Send>() {}
fn unpin<T: Unpin>() {}

#[test]
fn public_types_keep_their_auto_traits() {
    send_sync::<scheduler::Scheduler>();
    send_sync::<scheduler::SchedulerHandle>();
    send_sync::<scheduler::SchedulerBuilder>();
    send_sync::<scheduler::JobHandle>();
    send_sync::<scheduler::JobGuard>();
    send_sync::<scheduler::Status>();
    send_sync::<scheduler::Statistics>();
    send_sync::<scheduler::Ended>();
    send_sync::<scheduler::Failure>();
    send_sync::<scheduler::Shutdown>();
    send_sync::<scheduler::ShutdownReport>();
    send::<scheduler::JobBuilder>();
    send::<scheduler::Ticket>();
    send::<scheduler::Stopping>();
    send::<scheduler::ShuttingDown>();
    unpin::<scheduler::Ticket>();
    unpin::<scheduler::Stopping>();
    unpin::<scheduler::ShuttingDown>();
    send_sync::<core::Run>();
    send_sync::<core::CancellationToken>();
    send_sync::<core::Cancelled>();
    send_sync::<core::Event>();
    send_sync::<core::Error>();
    send_sync::<core::Timestamp>();
    send_sync::<core::Monotonic>();
    send_sync::<Box<dyn core::Trigger>>();
    send_sync::<Box<dyn core::OverlapPolicy>>();
    send_sync::<Box<dyn core::Job>>();
    send_sync::<Box<dyn core::Observer>>();
}

#[test]
fn the_futures_of_the_api_are_send() {
    fn is_send<T: Send>(_: T) {}
    #[allow(dead_code, reason = "compiled, never run")]
    async fn all(scheduler: &scheduler::Scheduler, job: &scheduler::JobHandle, run: &core::Run) {
        is_send(job.next_outcome());
        is_send(run.cancelled());
        is_send(scheduler.run_until(async {}));
        is_send(scheduler.run_until_signal());
    }
}
