//~ `Duration` does not say when a job is due
use beatline_scheduler::Scheduler;

fn main() {
    let scheduler = Scheduler::new();
    let _ = scheduler.job("job", std::time::Duration::from_secs(1));
}
