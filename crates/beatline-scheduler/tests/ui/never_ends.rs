//~ a run ends: put the body of the loop here and let the trigger repeat it
use beatline_scheduler::{Scheduler, core::OnDemand};

fn main() {
    let scheduler = Scheduler::new();
    let _ = scheduler.job("job", OnDemand).run(|_| async {
        loop {
            std::future::pending::<()>().await;
        }
    });
}
