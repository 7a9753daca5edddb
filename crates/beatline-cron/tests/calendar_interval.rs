//! Every so many days, weeks or months, and once at an instant.
#![allow(clippy::unwrap_used)] // a test may panic, its helpers too

mod common;

use std::time::Duration;

use beatline_core::{Due, Latest, Moment, Monotonic, Next, Timestamp, Trigger, TriggerContext};
use beatline_cron::{At, CalendarInterval, Fold, Gap, Weekday};
use common::at;

fn instants(interval: &CalendarInterval, from: &str, count: usize) -> Vec<String> {
    interval.upcoming(at(from), count).iter().map(Timestamp::to_string).collect()
}

#[test]
fn days_are_counted_from_the_start_and_keep_their_local_time() {
    let job = CalendarInterval::days(3).starting(2026, 3, 26).at(9, 0, 0).zone("Europe/Berlin").unwrap();
    assert_eq!(
        instants(&job, "2026-01-01T00:00:00Z", 3),
        ["2026-03-26T08:00:00Z", "2026-03-29T07:00:00Z", "2026-04-01T07:00:00Z"]
    );
    // From the middle of the series the phase is the same.
    assert_eq!(instants(&job, "2026-03-30T00:00:00Z", 1), ["2026-04-01T07:00:00Z"]);
}

/// ```text
///   Mo Tu We Th Fr Sa Su │ Mo Tu We Th Fr Sa Su │ Mo Tu We Th Fr Sa Su
///      ▲        ▲        │                      │    ▲        ▲
/// ```
#[test]
fn every_second_tuesday_and_friday() {
    let job = CalendarInterval::weeks(2).starting(2026, 1, 5).on([Weekday::Fri, Weekday::Tue]).at(9, 0, 0);
    assert_eq!(
        instants(&job, "2026-01-01T00:00:00Z", 4),
        ["2026-01-06T09:00:00Z", "2026-01-09T09:00:00Z", "2026-01-20T09:00:00Z", "2026-01-23T09:00:00Z"]
    );
    // A start within its week: what lies before it does not count.
    let job = CalendarInterval::weeks(2).starting(2026, 1, 7).on([Weekday::Fri, Weekday::Tue]).at(9, 0, 0);
    assert_eq!(instants(&job, "2026-01-01T00:00:00Z", 2), ["2026-01-09T09:00:00Z", "2026-01-20T09:00:00Z"]);
    // Without weekdays it is the start's own.
    let job = CalendarInterval::weeks(1).starting(2026, 1, 7);
    assert_eq!(instants(&job, "2026-01-01T00:00:00Z", 2), ["2026-01-07T00:00:00Z", "2026-01-14T00:00:00Z"]);
    let job = CalendarInterval::weeks(1).starting(2026, 1, 7).on(Weekday::Sat..=Weekday::Mon);
    assert_eq!(
        instants(&job, "2026-01-01T00:00:00Z", 4),
        ["2026-01-10T00:00:00Z", "2026-01-11T00:00:00Z", "2026-01-12T00:00:00Z", "2026-01-17T00:00:00Z"]
    );
}

#[test]
fn days_before_the_start_are_none_in_either_direction() {
    // The start is a Wednesday; the day before is of the same week.
    let job = CalendarInterval::weeks(2).starting(2026, 1, 7).on(Weekday::Tue);
    let context = TriggerContext::new(Moment::new(Monotonic::ORIGIN, at("2026-01-01T00:00:00Z")));
    let latest = |until: &str| job.latest_at_or_before(&context, Due::Wall(at(until)));
    assert_eq!(latest("2026-01-19T00:00:00Z"), Latest::None);
    assert_eq!(latest("2026-01-20T00:00:00Z"), Latest::At(Due::Wall(at("2026-01-20T00:00:00Z"))));
    assert_eq!(job.next(&context), Next::AtWall(at("2026-01-20T00:00:00Z")));
}

#[test]
fn months_skip_days_they_lack_and_count_from_the_end() {
    let job = CalendarInterval::months(1).starting(2026, 1, 31);
    assert_eq!(
        instants(&job, "2026-01-01T00:00:00Z", 3),
        ["2026-01-31T00:00:00Z", "2026-03-31T00:00:00Z", "2026-05-31T00:00:00Z"]
    );
    let job = CalendarInterval::months(1).starting(2026, 1, 1).on_day(-1);
    assert_eq!(instants(&job, "2028-01-31T00:00:00Z", 2), ["2028-02-29T00:00:00Z", "2028-03-31T00:00:00Z"]);
    let job = CalendarInterval::months(12).starting(2024, 2, 29);
    assert_eq!(instants(&job, "2024-03-01T00:00:00Z", 1), ["2028-02-29T00:00:00Z"]);
    let job = CalendarInterval::months(6).starting(2026, 1, 10).on_day(1).on_day(15).at(12, 30, 15);
    assert_eq!(
        instants(&job, "2026-01-01T00:00:00Z", 3),
        ["2026-01-15T12:30:15Z", "2026-07-01T12:30:15Z", "2026-07-15T12:30:15Z"]
    );
    // No February has a thirtieth, and so it is said rather than searched for.
    assert!(
        instants(&CalendarInterval::months(12).starting(2026, 2, 1).on_day(30), "2026-01-01T00:00:00Z", 1).is_empty()
    );
    assert_eq!(instants(&CalendarInterval::months(u32::MAX).starting(2026, 2, 1), "2026-01-01T00:00:00Z", 9).len(), 1);
}

#[test]
fn clock_changes_are_handled_as_crons_fixed_times_are() {
    let job = CalendarInterval::days(1).starting(2025, 1, 1).at(2, 30, 0).zone("America/New_York").unwrap();
    let spring = "2025-03-08T12:00:00Z";
    assert_eq!(instants(&job, spring, 2), ["2025-03-09T07:00:00Z", "2025-03-10T06:30:00Z"]);
    assert_eq!(instants(&job.gap(Gap::Skip), spring, 1), ["2025-03-10T06:30:00Z"]);
    let job = CalendarInterval::days(1).starting(2025, 1, 1).at(1, 30, 0).zone("America/New_York").unwrap();
    let autumn = "2025-11-01T12:00:00Z";
    assert_eq!(instants(&job, autumn, 2), ["2025-11-02T05:30:00Z", "2025-11-03T06:30:00Z"]);
    assert_eq!(instants(&job.clone().fold(Fold::Last), autumn, 1), ["2025-11-02T06:30:00Z"]);
    assert_eq!(instants(&job.fold(Fold::Both), autumn, 2), ["2025-11-02T05:30:00Z", "2025-11-02T06:30:00Z"]);
}

#[test]
fn without_a_start_the_day_of_registration_counts_where_the_zone_is() {
    // In Tokyo it is the second of January already.
    let registered = at("2026-01-01T20:00:00Z");
    let context = TriggerContext::new(Moment::new(Monotonic::ORIGIN, registered));
    let job = CalendarInterval::days(5).zone("Asia/Tokyo").unwrap();
    assert_eq!(job.next(&context), Next::AtWall(at("2026-01-06T15:00:00Z")));
    let job = CalendarInterval::days(5).at(6, 0, 0).zone("Asia/Tokyo").unwrap();
    assert_eq!(job.next(&context), Next::AtWall(at("2026-01-01T21:00:00Z")));
}

#[test]
fn what_makes_no_sense_is_refused_when_the_job_is_added() {
    for (job, field) in [
        (CalendarInterval::days(0), "every"),
        (CalendarInterval::days(1).on(Weekday::Mon), "on"),
        (CalendarInterval::weeks(1).on_day(3), "on_day"),
        (CalendarInterval::months(1).on_day(0), "on_day"),
        (CalendarInterval::months(1).on_day(32), "on_day"),
        (CalendarInterval::months(1).on_day(i8::MIN), "on_day"),
        (CalendarInterval::days(1).at(24, 0, 0), "at"),
        (CalendarInterval::days(1).starting(2026, 2, 29), "starting"),
        (CalendarInterval::days(1).starting(2026, 13, 1), "starting"),
        (CalendarInterval::days(1).starting(-1, 1, 1), "starting"),
    ] {
        assert_eq!(job.validate().unwrap_err().field(), Some(field));
        let context = TriggerContext::new(Moment::new(Monotonic::ORIGIN, Timestamp::UNIX_EPOCH));
        assert_eq!(job.next(&context), Next::Never);
        assert!(job.upcoming(Timestamp::UNIX_EPOCH, 1).is_empty());
    }
    assert_eq!(CalendarInterval::days(1).zone("Nowhere").unwrap_err().field(), Some("zone"));
}

#[test]
fn at_comes_once_and_not_if_it_was_before() {
    let due = at("2026-07-01T06:00:00.25Z");
    let job = At::instant(due);
    let before = TriggerContext::new(Moment::new(Monotonic::ORIGIN, at("2026-01-01T00:00:00Z")));
    assert_eq!(job.next(&before), Next::AtWall(due));
    assert_eq!(job.next(&before.after(Due::Wall(due))), Next::Never);
    // Rescheduled from a trigger that had an occurrence before.
    assert_eq!(job.next(&before.after(Due::Wall(at("2026-02-01T00:00:00Z")))), Next::AtWall(due));
    let now = TriggerContext::new(Moment::new(Monotonic::ORIGIN, due));
    assert_eq!(job.next(&now), Next::AtWall(due));
    let late = TriggerContext::new(Moment::new(Monotonic::ORIGIN, due.saturating_add(Duration::from_nanos(1))));
    assert_eq!(job.next(&late), Next::Never);
}

#[test]
fn at_a_local_time_that_is_missing_or_repeated() {
    let local = |year, month, day, hour, minute| At::local(year, month, day, hour, minute, 0, "America/New_York");
    assert_eq!(local(2025, 7, 1, 8, 0).unwrap().timestamp(), at("2025-07-01T12:00:00Z"));
    assert_eq!(local(2025, 3, 9, 2, 30).unwrap().timestamp(), at("2025-03-09T07:00:00Z"));
    assert_eq!(local(2025, 11, 2, 1, 30).unwrap().timestamp(), at("2025-11-02T05:30:00Z"));
    assert_eq!(local(2025, 2, 29, 0, 0).unwrap_err().field(), Some("at"));
    assert_eq!(local(2025, 2, 28, 24, 0).unwrap_err().field(), Some("at"));
    assert_eq!(At::local(2025, 1, 1, 0, 0, 0, "Nowhere").unwrap_err().field(), Some("zone"));
    // A day that Samoa left out.
    assert_eq!(At::local(2011, 12, 30, 12, 0, 0, "Pacific/Apia").unwrap_err().field(), Some("at"));
    assert!("2025-13-01T00:00:00Z".parse::<At>().is_err());
}
