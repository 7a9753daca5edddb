//! What happens in a simulation, drawn from its seed.

use std::time::Duration;

use beatline_core::{Keep, Line, Overflow, Overlap};

use super::policy::{Erratic, PolicySpec};
use super::trigger::{Gaps, Start, TriggerSpec, WallGrid, nanoseconds};
use crate::random::Random;
use crate::scripted::{End, Scripted};

/// Where a body runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Async,
    Inline,
    Blocking,
}

/// A job as the scenario describes it.
#[derive(Clone, Debug)]
pub(super) struct JobSpec {
    pub(super) trigger: TriggerSpec,
    pub(super) policy: PolicySpec,
    pub(super) max_concurrent: usize,
    pub(super) tolerance: Duration,
    pub(super) timeout: Option<Duration>,
    pub(super) timeout_grace: Duration,
    pub(super) priority: i8,
    pub(super) kind: Kind,
    /// How long its runs take; zero ends in the first poll.
    pub(super) duration: Duration,
    /// Once in so many runs one takes many times as long.
    pub(super) spike: u64,
    /// One in so many runs fails, and one panics.
    pub(super) fails: u64,
    pub(super) panics: u64,
    /// Whether it stops when it is asked to.
    pub(super) cooperates: bool,
    /// It continues a schedule that an earlier process left so long ago.
    pub(super) last_due: Option<Duration>,
    pub(super) continued: bool,
}

/// How time treats a simulation.
#[derive(Clone, Copy, Debug)]
pub(super) struct Weather {
    /// How long a hand-off may wait for a runner.
    pub(super) runner_delay: Duration,
    /// How late the driver may wake.
    pub(super) driver_delay: Duration,
    /// How often something is done to the jobs, on average.
    pub(super) operations: Duration,
    /// How long a stall may be.
    pub(super) stall: Duration,
    /// How long the machine may sleep; zero never.
    pub(super) suspend: Duration,
    /// How far the wall clock may be set, either way; zero never.
    pub(super) wall_step: Duration,
    /// Runners may overtake each other between taking a hand-off and its gate.
    pub(super) overtaking: bool,
}

const MILLISECOND: Duration = Duration::from_millis(1);

/// Few different periods, so that many instants are shared.
const PERIODS: [Duration; 9] = [
    Duration::from_millis(5),
    Duration::from_millis(10),
    Duration::from_millis(20),
    Duration::from_millis(50),
    Duration::from_millis(100),
    Duration::from_millis(250),
    Duration::from_secs(1),
    Duration::from_secs(5),
    Duration::from_secs(30),
];

impl Weather {
    pub(super) fn draw(random: &mut Random) -> Self {
        let calm = random.once_in(4);
        let or_calm = |random: &mut Random, choices: &[Duration]| {
            if calm { Duration::ZERO } else { random.pick(choices) }
        };
        Self {
            runner_delay: or_calm(random, &[Duration::ZERO, MILLISECOND / 10, MILLISECOND * 3, MILLISECOND * 40]),
            driver_delay: or_calm(random, &[Duration::ZERO, MILLISECOND, MILLISECOND * 7]),
            operations: random.pick(&[MILLISECOND * 40, MILLISECOND * 200, Duration::from_secs(2)]),
            stall: random.pick(&[MILLISECOND * 30, MILLISECOND * 400, Duration::from_secs(30)]),
            suspend: or_calm(random, &[Duration::ZERO, Duration::from_secs(20), Duration::from_secs(4 * 3600)]),
            wall_step: or_calm(random, &[Duration::ZERO, MILLISECOND * 250]),
            overtaking: !calm && random.once_in(3),
        }
    }
}

/// The first jobs of a simulation. The first of all never ends by itself.
pub(super) fn first_jobs(random: &mut Random) -> Vec<JobSpec> {
    let count = 2 + random.below(6);
    let mut jobs: Vec<_> = (0..count).map(|_| draw_job(random)).collect();
    jobs.insert(0, steady(random));
    jobs
}

/// A job that goes on, so that a simulation does.
pub(super) fn steady(random: &mut Random) -> JobSpec {
    let mut spec = draw_job(random);
    let (period, start) = (random.pick(&PERIODS[..6]), Start::OnePeriodLater);
    spec.trigger = TriggerSpec::FixedRate { period, start, end: None };
    spec
}

/// Enough jobs at one instant to be worked off in portions.
pub(super) fn herd(random: &mut Random) -> Vec<JobSpec> {
    let after = MILLISECOND * 50;
    let count = 1000 + random.below(5000);
    let mut one = draw_job(random);
    one.duration = Duration::ZERO;
    (0..count)
        .map(|_| {
            let trigger = TriggerSpec::Once(after);
            JobSpec { trigger, priority: random.below(3) as i8, last_due: None, continued: false, ..one.clone() }
        })
        .collect()
}

/// Any job.
pub(super) fn draw_job(random: &mut Random) -> JobSpec {
    let policy = draw_policy(random);
    let max_concurrent = match policy {
        PolicySpec::BuiltIn(Overlap::AllowAll) => random.pick(&[1000, 5]),
        _ => random.pick(&[1, 1, 1, 2, 3]),
    };
    let trigger = draw_trigger(random);
    let kind = random.pick(&[Kind::Async, Kind::Async, Kind::Async, Kind::Inline, Kind::Blocking]);
    let timeout = (kind != Kind::Inline && random.once_in(4)).then(|| MILLISECOND + random.duration(MILLISECOND * 200));
    let timeout_grace = match timeout {
        Some(_) if random.once_in(2) => random.duration(MILLISECOND * 50),
        _ => Duration::ZERO,
    };
    let last_due = (matches!(trigger, TriggerSpec::FixedRate { .. } | TriggerSpec::FixedDelay { .. })
        && random.once_in(8))
    .then(|| random.duration(Duration::from_secs(60)));
    JobSpec {
        trigger,
        policy,
        max_concurrent,
        tolerance: random.pick(&[Duration::from_secs(1), MILLISECOND * 5, Duration::ZERO, Duration::MAX]),
        timeout,
        timeout_grace,
        priority: random.pick(&[0, 0, 0, 0, 5, -3, i8::MAX, i8::MIN]),
        kind,
        duration: random.pick(&[Duration::ZERO, Duration::ZERO, MILLISECOND * 4, MILLISECOND * 30, MILLISECOND * 400]),
        spike: random.pick(&[5, 50, 1 << 40]),
        fails: random.pick(&[8, 100, 1 << 40]),
        panics: random.pick(&[20, 200, 1 << 40]),
        cooperates: random.once_in(2),
        continued: last_due.is_some(),
        last_due,
    }
}

pub(super) fn draw_policy(random: &mut Random) -> PolicySpec {
    let cap = 1 + random.below(4) as usize;
    PolicySpec::BuiltIn(match random.below(9) {
        0 => Overlap::Skip,
        1 => Overlap::BufferOne { keep: Keep::First },
        2 => Overlap::BufferOne { keep: Keep::Latest },
        3 => Overlap::BufferAll { cap, overflow: Overflow::DropNewest },
        4 => Overlap::BufferAll { cap, overflow: Overflow::DropOldest },
        5 => Overlap::buffer_all(),
        6 => Overlap::AllowAll,
        _ => return PolicySpec::Custom(Erratic { seed: random.number(), buffer: random.below(4) as usize }),
    })
}

fn draw_trigger(random: &mut Random) -> TriggerSpec {
    let period = random.pick(&PERIODS);
    match random.below(16) {
        0..6 => {
            // Now and then faster than the driver may act, or beyond all time.
            let period = match random.below(24) {
                0 => Duration::from_nanos(1 + random.below(4_000_000)),
                1 => Duration::MAX,
                _ => period,
            };
            let end = random.once_in(3).then(|| random.duration(Duration::from_secs(20)));
            TriggerSpec::FixedRate { period, start: draw_start(random, period), end }
        }
        6..9 => {
            let delay = if random.once_in(16) { Duration::MAX } else { period };
            let initial = if random.once_in(2) { Duration::ZERO } else { delay };
            TriggerSpec::FixedDelay { delay, initial }
        }
        9 => TriggerSpec::Once(random.pick(&[Duration::ZERO, period, Duration::MAX])),
        10 => TriggerSpec::OnDemand,
        11 | 12 => {
            let unit = random.pick(&PERIODS[3..7]);
            let line = random.pick(&[Line::Monotonic, Line::Wall]);
            TriggerSpec::Gaps(Gaps { line, seed: random.number(), unit })
        }
        13 | 14 => {
            let period = nanoseconds(period.max(MILLISECOND * 100));
            let offset = random.below(period as u64) as i64;
            TriggerSpec::WallGrid(WallGrid { period, offset })
        }
        _ => TriggerSpec::Scripted(draw_script(random)),
    }
}

fn draw_start(random: &mut Random, period: Duration) -> Start {
    match random.below(4) {
        0 => Start::After(Duration::ZERO),
        1 => Start::After(random.duration(Duration::from_secs(1))),
        2 => Start::Phase(random.duration(period)),
        _ => Start::OnePeriodLater,
    }
}

fn draw_script(random: &mut Random) -> Scripted {
    let mut script = Scripted::new();
    if random.once_in(3) {
        script = script.on_the_wall();
    }
    let mut at = Duration::ZERO;
    for _ in 0..random.below(12) {
        at += MILLISECOND + random.pick(&PERIODS[..7]);
        script = script.due_after(at);
    }
    script.ending(random.pick(&[End::Never, End::Panics, End::StandsStill, End::WrongLine, End::WaitsForEver]))
}
