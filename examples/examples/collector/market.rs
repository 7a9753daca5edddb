//! Market time: a clock that runs `--speed` times as fast as the wall clock, and a
//! trigger that follows it.
//!
//! ```text
//!   market   Mon 02:57 ──────────── Mon 03:00 ────────── … ── Tue 03:00
//!                                   ▲ reconcile               ▲
//!   wall     start ──────────────── + 6 s ────────────── … ── + 48 min     at 30 × speed
//! ```

use std::time::Duration;

use beatline::core::{Count, Due, Latest, Line, Moment, Next, TriggerContext};
use beatline::{Error, Timestamp, Trigger};

/// Where the market is.
pub(crate) const ZONE: &str = "Asia/Shanghai";
/// A Monday, three minutes before a job at 03:00.
const MONDAY: i64 = 1_767_553_020;
/// How it is said.
const MONDAY_IN_WORDS: &str = "Monday 02:57";

/// What the speed is counted in: billionths of the wall clock's.
const REAL_TIME: i128 = 1_000_000_000;

/// A clock that began to run beside the wall clock.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct MarketClock {
    /// What both clocks showed then, in nanoseconds.
    wall: i128,
    market: i128,
    speed: i128,
    factor: f64,
}

impl MarketClock {
    /// At speed 1 the wall clock itself; at any other one that is now at Monday
    /// 02:57.
    pub(crate) fn starting(now: Timestamp, factor: f64) -> Self {
        let speed = ((factor * REAL_TIME as f64).round() as i128).max(1);
        let market = if speed == REAL_TIME { now } else { Timestamp::from_unix(MONDAY, 0) };
        Self { wall: now.unix_nanoseconds(), market: market.unix_nanoseconds(), speed, factor }
    }

    fn is_real(self) -> bool {
        self.speed == REAL_TIME
    }

    /// For the first line of the log.
    pub(crate) fn in_words(self) -> String {
        if self.is_real() {
            return format!("market time: real time in {ZONE}, speed 1");
        }
        format!("market time: {MONDAY_IN_WORDS} in {ZONE}, {}× as fast", self.factor)
    }

    /// When the wall clock shows that it is this time in the market, rounded up:
    /// nothing is early.
    fn to_wall(self, market: Timestamp) -> i128 {
        let elapsed = market.unix_nanoseconds() - self.market;
        self.wall - (-elapsed * REAL_TIME).div_euclid(self.speed)
    }

    /// The newest instant of the market that has come when the wall clock shows
    /// this: the other way, rounded down. It ends before the last instant there is,
    /// which in a schedule stands for never.
    fn to_market(self, wall: i128) -> Timestamp {
        let elapsed = (wall - self.wall) * self.speed;
        let market = Timestamp::from_unix_nanoseconds(self.market + elapsed.div_euclid(REAL_TIME));
        market.min(Timestamp::MAX.saturating_sub(Duration::from_nanos(1)))
    }
}

/// A schedule that is meant in market time: due on the wall clock, at the instants
/// that the market clock maps it to.
///
/// It asks the schedule inside in the market's terms and answers in the wall
/// clock's. The clock is part of the trigger's settings and never read, so that the
/// trigger is pure if the one inside is. Occurrences less than a nanosecond apart
/// on the wall clock would become one, which no schedule of whole seconds comes
/// near.
#[derive(Clone, Debug)]
pub(crate) struct MarketTime<T> {
    clock: MarketClock,
    schedule: T,
}

impl<T: Trigger> MarketTime<T> {
    pub(crate) fn new(clock: MarketClock, schedule: T) -> Self {
        Self { clock, schedule }
    }

    /// An occurrence in market time; one of the other line stays as it is.
    fn due_in_market(&self, due: Due) -> Due {
        match due {
            Due::Wall(at) => Due::Wall(self.clock.to_market(at.unix_nanoseconds())),
            other => other,
        }
    }

    fn due_on_wall(&self, due: Due) -> Due {
        match due {
            Due::Wall(at) => Due::Wall(Timestamp::from_unix_nanoseconds(self.clock.to_wall(at))),
            other => other,
        }
    }

    /// The history as the schedule inside knows it.
    fn in_market(&self, context: &TriggerContext) -> TriggerContext {
        let moment = |moment: Moment, wall| Moment::new(moment.monotonic, wall);
        let mut inside = *context;
        inside.now = moment(context.now, self.clock.to_market(context.now.wall.unix_nanoseconds()));
        // The first instant of the market that is not before the registration.
        let before = self.clock.to_market(context.registered.wall.unix_nanoseconds() - 1);
        inside.registered = moment(context.registered, before.saturating_add(Duration::from_nanos(1)));
        inside.previous_due = context.previous_due.map(|due| self.due_in_market(due));
        inside
    }
}

impl<T: Trigger> Trigger for MarketTime<T> {
    fn next(&self, context: &TriggerContext) -> Next {
        match self.schedule.next(&self.in_market(context)) {
            Next::AtWall(Timestamp::MAX) => Next::Never,
            Next::AtWall(at) => {
                let wall = self.clock.to_wall(at);
                let due = Timestamp::from_unix_nanoseconds(wall);
                // At the ends of time one clock still has instants that the other has not.
                if due.unix_nanoseconds() == wall { Next::AtWall(due) } else { Next::Never }
            }
            other => other,
        }
    }

    fn latest_at_or_before(&self, context: &TriggerContext, limit: Due) -> Latest {
        match self.schedule.latest_at_or_before(&self.in_market(context), self.due_in_market(limit)) {
            Latest::At(due) => Latest::At(self.due_on_wall(due)),
            Latest::Unknown { reached, walked } => Latest::Unknown { reached: self.due_on_wall(reached), walked },
            other => other,
        }
    }

    fn count_between(&self, context: &TriggerContext, after: Due, until: Due) -> Count {
        let (after, until) = (self.due_in_market(after), self.due_in_market(until));
        self.schedule.count_between(&self.in_market(context), after, until)
    }

    fn line(&self) -> Line {
        Line::Wall
    }

    fn validate(&self) -> Result<(), Error> {
        if self.schedule.line() != Line::Wall {
            return Err(Error::invalid("schedule", "is not on the wall clock; give one that is, such as a Cron"));
        }
        self.schedule.validate()
    }

    fn longest_gap(&self) -> Option<Duration> {
        let gap = self.schedule.longest_gap()?.as_secs_f64() / self.clock.factor;
        // A nanosecond more than what rounding can take away.
        Some(Duration::try_from_secs_f64(gap).ok()?.saturating_add(Duration::from_nanos(1)))
    }

    fn describe(&self) -> String {
        let schedule = self.schedule.describe();
        if self.clock.is_real() { schedule } else { format!("{schedule}, {}× as fast", self.clock.factor) }
    }
}
