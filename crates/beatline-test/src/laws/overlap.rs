use std::time::Duration;

use beatline_core::{ActiveRun, Due, Monotonic, OverlapPolicy, OverlapView, Trigger, TriggerContext};
use beatline_scheduler::Condition;

use super::{BrokenLaw, hold};
use crate::random::{Random, mix};
use crate::timeline::{Record, Timeline};

/// How many scenarios a policy is driven through.
const SCENARIOS: u64 = 40;

const PURE: &str = "the same view, the same decision";
const VALID: &str = "its settings are valid and leave room for a run";
const LIMIT: &str = "no more active runs than the limit";
const BUFFER: &str = "no more waiting occurrences than the buffer holds";
const ACCOUNTED: &str = "every occurrence has a fate";
const ALIVE: &str = "the job is still scheduled afterwards";

/// Checks the laws of overlap policies: by itself, and driven through the real
/// state machine.
///
/// # Panics
///
/// If one is broken, saying which.
#[track_caller]
pub fn overlap<P: OverlapPolicy + Clone>(policy: &P) {
    if let Err(broken) = check_overlap(policy) {
        panic!("{}: {broken}", policy.describe());
    }
}

/// Checks the laws of overlap policies.
///
/// # Errors
///
/// The first law that does not hold.
pub fn check_overlap<P: OverlapPolicy + Clone>(policy: &P) -> Result<(), BrokenLaw> {
    let valid = policy.validate().is_ok() && policy.max_concurrent() > 0;
    hold(valid, VALID, || format!("{:?}, {} at once", policy.validate(), policy.max_concurrent()))?;
    check_purity(policy)?;
    for seed in 0..SCENARIOS {
        let most = [policy.max_concurrent(), 1, 2, 3][seed as usize % 4];
        let record = drive(policy.clone(), most, seed);
        hold(record.most_active <= most, LIMIT, || format!("{} of {most} (seed {seed})", record.most_active))?;
        let room = policy.buffer();
        hold(record.most_waiting <= room, BUFFER, || format!("{} of {room} (seed {seed})", record.most_waiting))?;
        let open = record.lines.iter().find(|line| line.fate.is_none());
        hold(open.is_none() && record.statistics.is_balanced(), ACCOUNTED, || format!("{open:?} (seed {seed})"))?;
        let alive = record.condition == Condition::Scheduled;
        hold(alive, ALIVE, || format!("it is {:?} (seed {seed})", record.condition))?;
    }
    Ok(())
}

fn check_purity<P: OverlapPolicy>(policy: &P) -> Result<(), BrokenLaw> {
    let second = |count: i64| Monotonic::from_nanoseconds(count * 1_000_000_000);
    let runs: Vec<_> = (0..4).map(|run| ActiveRun::new(second(run * 7), (run < 3).then(|| second(run * 7)))).collect();
    for active in 0..=runs.len() {
        for buffered in 0..=policy.buffer().min(4) {
            for max_concurrent in [1, 2, 4, 1000] {
                let mut view = OverlapView::new(second(30), Due::Monotonic(second(30))).with_runs(&runs[..active]);
                (view.max_concurrent, view.buffered) = (max_concurrent, buffered);
                let answers = [policy.decide(&view), policy.decide(&view), policy.decide(&view)];
                let same = answers.iter().all(|answer| *answer == answers[0]);
                hold(same, PURE, || format!("{answers:?} for {view:?}"))?;
            }
        }
    }
    Ok(())
}

/// A job every ten seconds whose runs take anything from nothing to a minute,
/// with a stall in between.
fn drive(policy: impl OverlapPolicy, most: usize, seed: u64) -> Record {
    let mut random = Random::new(seed);
    let stall = random.duration(Duration::from_secs(60));
    Timeline::of(EveryTenSeconds)
        .overlap(policy)
        .max_concurrent(most)
        .lasting(move |due| Duration::from_millis(mix(seed ^ due.as_secs()) % 60_000))
        .stalled(Duration::from_secs(205), stall)
        .until(Duration::from_secs(600))
}

/// The kit's own grid, so that it depends on no trigger crate for this.
struct EveryTenSeconds;

impl Trigger for EveryTenSeconds {
    fn next(&self, context: &TriggerContext) -> beatline_core::Next {
        let from = context.previous_monotonic().unwrap_or(context.registered.monotonic);
        beatline_core::Next::At(from.saturating_add(Duration::from_secs(10)))
    }
}
