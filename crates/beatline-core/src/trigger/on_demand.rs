use crate::{Next, Trigger, TriggerContext};

/// Never by itself: the job runs only when someone asks for a run.
///
/// ```text
///   added ··· run_now() ▶ run ··· run_now() ▶ run ···
/// ```
///
/// The job is `Idle` in between and has statistics, time-out and overlap
/// policy like any other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OnDemand;

impl Trigger for OnDemand {
    fn next(&self, _context: &TriggerContext) -> Next {
        Next::Never
    }

    fn describe(&self) -> String {
        "on demand".to_owned()
    }
}
