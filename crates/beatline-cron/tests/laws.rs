//! The laws of [`Trigger`]: later than before, pure, and the quick answers are
//! what the slow walk gives.
#![allow(clippy::unwrap_used)] // a test may panic, its helpers too

mod common;

use std::time::Duration;

use beatline_core::{Count, Due, Latest, Line, Moment, Monotonic, Next, Timestamp, Trigger, TriggerContext};
use beatline_cron::{At, CalendarInterval, Cron, Dialect, Fold, Gap, Weekday};
use common::{Random, at, cron};

/// A trigger reduced to its `next`, so that core's walk answers the rest.
struct Walked<'a>(&'a dyn Trigger);

impl Walked<'_> {
    fn boxed(trigger: &dyn Trigger) -> Walked<'_> {
        Walked(trigger)
    }

    fn occurrences(&self, context: &TriggerContext, limit: Timestamp) -> Vec<Timestamp> {
        let mut context = *context;
        let mut found = Vec::new();
        while let Next::AtWall(next) = self.0.next(&context) {
            if let Some(Due::Wall(previous)) = context.previous_due {
                assert!(next > previous, "{next} is not after {previous}");
            } else {
                assert!(next >= context.registered.wall);
            }
            assert_eq!(self.0.next(&context), Next::AtWall(next), "not pure");
            if next > limit {
                break;
            }
            found.push(next);
            context = context.after(Due::Wall(next));
        }
        found
    }
}

fn registered(wall: Timestamp) -> TriggerContext {
    TriggerContext::new(Moment::new(Monotonic::ORIGIN, wall))
}

fn triggers() -> Vec<(&'static str, Box<dyn Trigger>)> {
    let zone = "Europe/Berlin";
    vec![
        ("half-hourly", Box::new(cron(Dialect::Classic, "*/30 * * * *", zone))),
        ("nightly", Box::new(cron(Dialect::Classic, "30 2 * * *", zone))),
        ("skipped", Box::new(cron(Dialect::Classic, "30 2 * * *", zone).gap(Gap::Skip).fold(Fold::Both))),
        ("last pass", Box::new(cron(Dialect::Classic, "15,45 1-3 * * *", zone).fold(Fold::Last))),
        ("leap day", Box::new(cron(Dialect::Classic, "0 0 29 2 *", zone))),
        ("one year", Box::new(cron(Dialect::SecondsYear, "0 0 */6 * * * 2027", zone))),
        ("never", Box::new(cron(Dialect::Classic, "0 0 30 2 *", zone))),
        ("instant", Box::new(At::instant(at("2026-04-01T00:00:00.5Z")))),
        ("past instant", Box::new(At::instant(at("1999-04-01T00:00:00.5Z")))),
        ("ten days", Box::new(CalendarInterval::days(10).at(2, 30, 0).zone(zone).unwrap())),
        (
            "two weeks",
            Box::new(
                CalendarInterval::weeks(2)
                    .starting(2026, 3, 4)
                    .on([Weekday::Tue, Weekday::Sun])
                    .at(2, 30, 0)
                    .zone(zone)
                    .unwrap(),
            ),
        ),
        (
            "three months",
            Box::new(CalendarInterval::months(3).starting(2026, 1, 31).on_day(31).on_day(-2).zone(zone).unwrap()),
        ),
        ("no such day", Box::new(CalendarInterval::months(12).starting(2026, 2, 1).on_day(30))),
    ]
}

#[test]
fn latest_and_count_are_what_walking_next_gives() {
    for (name, trigger) in triggers() {
        let random = &mut Random::new(17);
        for round in 0..60 {
            let wall = Timestamp::from_unix(random.between(1_767_225_600, 1_830_297_600), random.below(2) as u32);
            let context = registered(wall);
            let limit = wall.saturating_add(Duration::from_secs(random.below(if round % 3 == 0 {
                40_000_000
            } else {
                400_000
            })));
            let walked = Walked::boxed(&*trigger).occurrences(&context, limit);
            let latest = trigger.latest_at_or_before(&context, Due::Wall(limit));
            let wanted = walked.last().map_or(Latest::None, |last| Latest::At(Due::Wall(*last)));
            assert_eq!(latest, wanted, "{name} added {wall}, until {limit}");
            let Some(first) = walked.first() else { continue };
            let count = trigger.count_between(&context, Due::Wall(*first), Due::Wall(limit));
            assert_eq!(count, Count::Exact(walked.len() as u64 - 1), "{name} from {first} until {limit}");
            // And from the middle on, with a history.
            let middle = walked[walked.len() / 2];
            let later = context.after(Due::Wall(middle));
            let latest = trigger.latest_at_or_before(&later, Due::Wall(limit));
            let wanted =
                walked[walked.len() / 2 + 1..].last().map_or(Latest::None, |last| Latest::At(Due::Wall(*last)));
            assert_eq!(latest, wanted, "{name} after {middle}, until {limit}");
        }
    }
}

#[test]
fn all_are_on_the_wall_and_say_what_they_are() {
    let said: Vec<_> = triggers().iter().map(|(_, trigger)| trigger.describe()).collect();
    assert_eq!(said[1], "cron 30 2 * * * (Europe/Berlin)");
    assert_eq!(said[7], "once at 2026-04-01T00:00:00.500Z");
    assert_eq!(said[9], "every 10 days at 02:30:00 (Europe/Berlin)");
    for (name, trigger) in triggers() {
        assert_eq!(trigger.line(), Line::Wall, "{name}");
        assert!(trigger.validate().is_ok(), "{name}");
        assert_eq!(trigger.periodic(&registered(Timestamp::UNIX_EPOCH)), None, "{name}");
    }
}

#[test]
fn an_occurrence_at_the_moment_of_registration_counts() {
    let job = Cron::parse("0 12 * * *").unwrap();
    let noon = at("2026-06-01T12:00:00Z");
    assert_eq!(job.next(&registered(noon)), Next::AtWall(noon));
    let later = noon.saturating_add(Duration::from_nanos(1));
    assert_eq!(job.next(&registered(later)), Next::AtWall(at("2026-06-02T12:00:00Z")));
    assert_eq!(job.next(&registered(noon).after(Due::Wall(noon))), Next::AtWall(at("2026-06-02T12:00:00Z")));
}

#[test]
fn the_ends_of_time_are_ends_and_no_panic() {
    for (name, trigger) in triggers() {
        for wall in [Timestamp::MIN, Timestamp::MAX, Timestamp::UNIX_EPOCH] {
            let context = registered(wall);
            for limit in [Timestamp::MIN, Timestamp::MAX] {
                let latest = trigger.latest_at_or_before(&context, Due::Wall(limit));
                if let Latest::At(Due::Wall(latest)) = latest {
                    assert!(latest >= wall && latest <= limit, "{name}");
                }
                let count = trigger.count_between(&context, Due::Wall(wall), Due::Wall(limit));
                assert!(matches!(count, Count::Exact(_)), "{name}");
            }
            let after = context.after(Due::Wall(Timestamp::MAX));
            assert_eq!(trigger.next(&after), Next::Never, "{name}");
        }
    }
    // A job that had an interval before, now asked on the wall.
    let job = Cron::parse("0 12 * * *").unwrap();
    let context = registered(at("2026-06-01T00:00:00Z")).after(Due::Monotonic(Monotonic::from_nanoseconds(5)));
    assert_eq!(job.next(&context), Next::AtWall(at("2026-06-01T12:00:00Z")));
}

/// One year of missed seconds is counted, not walked; so are eight thousand.
#[test]
fn what_was_missed_is_counted_exactly_however_much_it_is() {
    let job = cron(Dialect::Seconds, "* * * * * *", "America/New_York");
    let (from, to) = (at("2025-01-01T00:00:00Z"), at("2026-01-01T00:00:00Z"));
    assert_eq!(job.count_in(from, to), 31_536_000);
    assert_eq!(job.last_until(to), Some(to));
    let (from, to) = (at("2000-01-01T00:00:00Z"), at("9600-01-01T00:00:00Z"));
    assert_eq!(job.count_in(from, to), 19 * 146_097 * 86_400);
    let job = cron(Dialect::Classic, "*/20 2 * * *", "America/New_York");
    let (from, to) = (at("2025-01-01T05:00:00Z"), at("2026-01-01T05:00:00Z"));
    // Three a day, none on the day whose second hour is missing.
    assert_eq!(job.count_in(from, to), 3 * 364);
    assert_eq!(job.clone().gap(Gap::Skip).count_in(from, to), 3 * 364);
    let job = cron(Dialect::Classic, "0,20,40 2 * * *", "America/New_York");
    // Three a day, one on the day whose second hour is missing.
    assert_eq!(job.count_in(from, to), 3 * 364 + 1);
}

#[test]
fn the_longest_gap_is_never_exceeded() {
    let from = at("2026-01-01T00:00:00Z");
    for (name, text, zone, hours) in [
        ("vixie5", "0 * * * *", "UTC", 1),
        ("vixie5", "0 9-17 * * *", "UTC", 16),
        ("vixie5", "0 12 * * mon-fri", "UTC", 72),
        ("vixie5", "0 12 * * *", "Europe/Berlin", 25),
        ("vixie5", "0 0 29 2 *", "UTC", 8 * 365 * 24 + 24),
        ("ext5", "0 0 L * *", "UTC", 31 * 24),
        ("vixie5", "0 0,1,6 * * *", "UTC", 18),
        ("vixie5", "0 0 1 * *", "UTC", 31 * 24),
        ("vixie5", "0 0 31 12 *", "UTC", 366 * 24),
        ("ext5", "0 0 * * mon#5", "UTC", 119 * 24),
    ] {
        let job = cron(common::dialect(name), text, zone);
        let longest = job.longest_gap().unwrap();
        assert_eq!(longest, Duration::from_secs(hours * 3600), "{text}");
        let instants = job.upcoming(from, 800);
        assert!(instants.windows(2).all(|pair| pair[1].saturating_since(pair[0]) <= longest), "{text}");
    }
    for (text, seconds) in
        [("* * * * * *", 1), ("*/25 * * * * *", 25), ("0 5,50 * * * *", 2_700), ("10,50 0,30 9 * * *", 84_560)]
    {
        assert_eq!(cron(Dialect::Seconds, text, "UTC").longest_gap(), Some(Duration::from_secs(seconds)), "{text}");
    }
    assert_eq!(cron(Dialect::Classic, "*/20 2 * * *", "Europe/Berlin").longest_gap(), None);
    assert_eq!(cron(Dialect::SecondsYear, "0 0 0 1 1 * 2030", "UTC").longest_gap(), None);
}

#[test]
fn triggers_are_shared_between_threads() {
    fn shared<T: Send + Sync + Clone + std::fmt::Debug + 'static>() {}
    shared::<Cron>();
    shared::<CalendarInterval>();
    shared::<At>();
    shared::<beatline_cron::CronBuilder>();
    shared::<beatline_cron::ParseError>();
}
