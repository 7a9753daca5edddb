//~ a job cannot return `Result<u32, std::io::Error>`
use beatline_scheduler::{Scheduler, core::OnDemand};

fn main() {
    let scheduler = Scheduler::new();
    let _ = scheduler.job("job", OnDemand).run(|_| async { Ok::<u32, std::io::Error>(7) });
}
