//~ `&str` does not say what to do with overlapping runs
use beatline_scheduler::{Scheduler, core::OnDemand};

fn main() {
    let scheduler = Scheduler::new();
    let _ = scheduler.job("job", OnDemand).overlap("skip");
}
