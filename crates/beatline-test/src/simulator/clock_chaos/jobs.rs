//! The jobs of a life.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use beatline_core::{Count, Due, Latest, Line, Next, Periodic, Timestamp, Trigger, TriggerContext};
use beatline_cron::{CalendarInterval, Cron, Dialect, Weekday};
use beatline_fixed_delay::FixedDelay;
use beatline_fixed_rate::FixedRate;

use crate::random::Random;

const HOUR: u64 = 3600;

/// A job as the scenario describes it.
pub(super) struct JobSpec {
    pub(super) trigger: SharedTrigger,
    /// The longest time from one occurrence to the next.
    pub(super) gap: Duration,
    /// How long its runs take.
    pub(super) takes: Duration,
    pub(super) max_concurrent: usize,
}

/// The jobs of a life. The zones with changing data follow `shift`, in seconds
/// ahead of UTC.
pub(super) fn draw(random: &mut Random, shift: &Arc<AtomicI64>, may_overlap: bool) -> Vec<JobSpec> {
    let mut jobs = Vec::new();
    let mut add = |trigger: SharedTrigger, gap: u64, random: &mut Random| {
        let gap = Duration::from_secs(gap);
        let takes = random.pick(&[Duration::ZERO, Duration::from_secs(2), gap / 3, gap + gap / 2]);
        let max_concurrent = if may_overlap { 100 } else { random.pick(&[1, 1, 2]) };
        jobs.push(JobSpec { trigger, gap, takes, max_concurrent });
    };
    if random.once_in(50) {
        add(cron(Dialect::Seconds, "*/7 * * * * *", "UTC"), 7, random);
    }
    if random.once_in(4) {
        add(cron(Dialect::Classic, "* * * * *", "+05:30"), 60, random);
    }
    let often = random.pick(&[("*/15 * * * *", 15 * 60), ("7 * * * *", HOUR), ("*/40 * * * *", 40 * 60)]);
    add(cron(Dialect::Classic, often.0, "UTC"), often.1, random);
    // Looking at the files of zones takes most of the time there is.
    let zones = ["+01:00", "-03:30", "UTC", "+12:45", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe"];
    let zone = random.pick(&zones);
    let daily = random.pick(&["30 2 * * *", "0 3 * * *", "15 12 * * *", "30 1 * * *"]);
    add(cron(Dialect::Classic, daily, zone), 25 * HOUR, random);
    if random.once_in(3) {
        add(cron(Dialect::Classic, "0 3 * * mon-fri", zone), 73 * HOUR, random);
    }
    if random.once_in(3) {
        let days = CalendarInterval::days(2).at(9, 30, 0);
        add(SharedTrigger::new(days), 2 * 24 * HOUR, random);
        let weeks = CalendarInterval::weeks(1).on([Weekday::Tue, Weekday::Fri]).at(6, 0, 0);
        add(SharedTrigger::new(weeks), 4 * 24 * HOUR, random);
    }
    let moved = random.pick(&[("0 3 * * *", 25 * HOUR), ("30 */6 * * *", 7 * HOUR), ("*/20 * * * *", 20 * 60)]);
    if let Ok(inner) = Cron::parse(moved.0) {
        add(SharedTrigger::new(MovingZone { inner, shift: Arc::clone(shift) }), moved.1, random);
    }
    add(SharedTrigger::new(Paced(Duration::from_secs(47 * 60))), 47 * 60, random);
    let aligned = random.pick(&[15 * 60, 6 * HOUR]);
    add(SharedTrigger::new(FixedRate::every(Duration::from_secs(aligned)).aligned()), aligned, random);
    let rate = random.pick(&[10 * 60, HOUR]);
    add(SharedTrigger::new(FixedRate::every(Duration::from_secs(rate))), rate, random);
    add(SharedTrigger::new(FixedDelay::after(Duration::from_secs(13 * 60))), 13 * 60, random);
    jobs
}

fn cron(dialect: Dialect, expression: &str, zone: &str) -> SharedTrigger {
    let cron = Cron::parse_with(dialect, expression).expect("the expression is valid");
    SharedTrigger::new(cron.zone(zone).expect("the zone exists"))
}

/// A trigger that the scheduler and the reference both ask.
#[derive(Clone)]
pub(super) struct SharedTrigger(Arc<dyn Trigger>);

impl SharedTrigger {
    fn new(trigger: impl Trigger) -> Self {
        Self(Arc::new(trigger))
    }
}

impl Trigger for SharedTrigger {
    fn next(&self, context: &TriggerContext) -> Next {
        self.0.next(context)
    }
    fn latest_at_or_before(&self, context: &TriggerContext, limit: Due) -> Latest {
        self.0.latest_at_or_before(context, limit)
    }
    fn count_between(&self, context: &TriggerContext, after: Due, until: Due) -> Count {
        self.0.count_between(context, after, until)
    }
    fn line(&self) -> Line {
        self.0.line()
    }
    fn periodic(&self, context: &TriggerContext) -> Option<Periodic> {
        self.0.periodic(context)
    }
    fn describe(&self) -> String {
        self.0.describe()
    }
}

fn wall(due: Option<Due>, context: &TriggerContext) -> Timestamp {
    match due {
        Some(Due::Wall(at)) => at,
        _ => context.registered.wall,
    }
}

/// An interval on the wall clock: so long after the due instant before.
struct Paced(Duration);

impl Trigger for Paced {
    fn next(&self, context: &TriggerContext) -> Next {
        Next::AtWall(wall(context.previous_due, context).saturating_add(self.0))
    }
    fn line(&self) -> Line {
        Line::Wall
    }
    fn describe(&self) -> String {
        format!("{:?} after the one before", self.0)
    }
}

/// A schedule in a zone whose data changes: clocks there show UTC and `shift`
/// seconds.
struct MovingZone {
    inner: Cron,
    shift: Arc<AtomicI64>,
}

impl MovingZone {
    fn moved(at: Timestamp, seconds: i64) -> Timestamp {
        Timestamp::from_unix_nanoseconds(at.unix_nanoseconds() + i128::from(seconds) * 1_000_000_000)
    }
}

impl Trigger for MovingZone {
    fn next(&self, context: &TriggerContext) -> Next {
        let shift = self.shift.load(Ordering::Relaxed);
        let local = Self::moved(wall(context.previous_due, context), shift);
        self.inner.next_after(local).map_or(Next::Never, |local| Next::AtWall(Self::moved(local, -shift)))
    }
    fn latest_at_or_before(&self, context: &TriggerContext, limit: Due) -> Latest {
        let (shift, from) = (self.shift.load(Ordering::Relaxed), wall(context.previous_due, context));
        let limit = Self::moved(wall(Some(limit), context), shift);
        match self.inner.last_until(limit).map(|local| Self::moved(local, -shift)) {
            Some(at) if at > from => Latest::At(Due::Wall(at)),
            _ => Latest::None,
        }
    }
    fn count_between(&self, context: &TriggerContext, after: Due, until: Due) -> Count {
        let shift = self.shift.load(Ordering::Relaxed);
        let local = |due| Self::moved(wall(Some(due), context), shift);
        Count::Exact(self.inner.count_in(local(after), local(until)))
    }
    fn line(&self) -> Line {
        Line::Wall
    }
    fn describe(&self) -> String {
        format!("{} in a zone whose data changes", self.inner)
    }
}
