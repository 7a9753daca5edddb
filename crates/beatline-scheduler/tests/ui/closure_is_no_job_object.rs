//~ closures and async functions go to `.run(…)`
use beatline_scheduler::{Scheduler, core::{OnDemand, Run}};

fn main() {
    let scheduler = Scheduler::new();
    let _ = scheduler.job("job", OnDemand).run_job(|_: Run| async {});
}
