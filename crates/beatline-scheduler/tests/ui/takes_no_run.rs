//~ takes 1 argument
use beatline_scheduler::{Scheduler, core::OnDemand};

async fn tick() {}

fn main() {
    let scheduler = Scheduler::new();
    let _ = scheduler.job("job", OnDemand).run(tick);
}
