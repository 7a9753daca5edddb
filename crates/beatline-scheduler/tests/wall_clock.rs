//! Jobs on the wall clock, on tokio's paused clock with the test kit's anchored
//! scheduler: a year passes in a moment.

#![allow(clippy::unwrap_used, reason = "tests")]

mod support;

use std::sync::{Arc, Mutex};

use beatline_cron::{At, CalendarInterval, Cron, Dialect, Weekday};
use beatline_fixed_rate::FixedRate;
use beatline_scheduler::core::{SkipReason, Timestamp, Trigger};
use beatline_scheduler::{Condition, JobHandle, Scheduler};
use beatline_test::advance;
use support::{assert_balanced, secs, stall};
use tokio::time::Instant;

const DAY: u64 = 24 * 3600;

/// An anchored scheduler, and where its wall clock began on tokio's clock.
struct World {
    scheduler: Scheduler,
    began: Instant,
    anchor: Timestamp,
}

/// A job and what its runs saw: when they were due, and what the wall clock
/// showed when they began.
struct Watched {
    job: JobHandle,
    starts: Arc<Mutex<Vec<(Timestamp, Timestamp)>>>,
}

impl World {
    fn at(anchor: &str) -> Self {
        let scheduler = beatline_test::scheduler(anchor);
        Self { scheduler, began: Instant::now(), anchor: anchor.parse().unwrap() }
    }

    fn add(&self, name: &str, trigger: impl Trigger) -> Watched {
        let starts = Arc::new(Mutex::new(Vec::new()));
        let (began, anchor) = (self.began, self.anchor);
        let job = self
            .scheduler
            .job(name, trigger)
            .with(Arc::clone(&starts))
            .run(move |run, starts| async move {
                let wall = anchor.saturating_add(began.elapsed());
                starts.lock().unwrap().push((run.due(), wall));
                tokio::time::sleep(secs(90)).await;
            })
            .unwrap();
        Watched { job, starts }
    }
}

impl Watched {
    /// When it was due, having checked that every run began at that very instant.
    fn on_time(&self) -> Vec<String> {
        assert_balanced(&self.job);
        assert_eq!(self.job.statistics().skipped_total(), 0);
        let starts = self.starts.lock().unwrap();
        for (due, wall) in starts.iter() {
            assert_eq!(due, wall);
        }
        starts.iter().map(|(due, _)| due.to_string()).collect()
    }
}

/// Days of a year as `mm-dd`, worked out without the evaluator.
fn days_of(year: u16) -> Vec<String> {
    let february = if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) { 29 } else { 28 };
    let lengths = [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    let month = |(index, length): (usize, u8)| (1..=length).map(move |day| format!("{:02}-{day:02}", index + 1));
    lengths.into_iter().enumerate().flat_map(month).collect()
}

/// Berlin is one hour ahead of UTC, two from 29 March to 24 October 2026; at
/// 03:00 on the days of the change the new offset holds.
fn three_in_berlin(day: &str) -> String {
    let summer = ("03-29".."10-25").contains(&day);
    format!("2026-{day}T{}:00:00Z", if summer { "01" } else { "02" })
}

/// ```text
///   03:00 Berlin   ── 02Z ── 02Z ──╎ 29 March ╎── 01Z ── … ── 01Z ──╎ 25 October ╎── 02Z ── 02Z
/// ```
#[tokio::test(start_paused = true)]
async fn a_year_of_a_daily_job_has_a_start_for_every_day_across_both_clock_changes() {
    let world = World::at("2025-12-31T23:00:00Z"); // midnight in Berlin
    let daily = world.add("daily", Cron::parse("0 3 * * *").unwrap().zone("Europe/Berlin").unwrap());
    let weekdays = world.add("weekdays", Cron::parse("0 3 * * mon-fri").unwrap().zone("Europe/Berlin").unwrap());
    let quarters = world.add("quarters", FixedRate::every(secs(6 * 3600)).aligned());
    let at = world.add("at", At::local(2026, 7, 1, 8, 0, 0, "Europe/Berlin").unwrap());
    let fortnightly = CalendarInterval::weeks(2).starting(2026, 1, 6).on(Weekday::Tue).at(9, 30, 0);
    let fortnightly = world.add("fortnightly", fortnightly.zone("Europe/Berlin").unwrap());
    advance(secs(365 * DAY)).await;

    let days = days_of(2026);
    let expected: Vec<_> = days.iter().map(|day| three_in_berlin(day)).collect();
    assert_eq!(expected.len(), 365);
    assert_eq!(daily.on_time(), expected);

    // 1 January 2026 is a Thursday.
    let is_weekday = |index: usize| !matches!((index + 3) % 7, 5 | 6);
    let expected = days.iter().enumerate().filter(|(index, _)| is_weekday(*index));
    let expected: Vec<_> = expected.map(|(_, day)| three_in_berlin(day)).collect();
    assert_eq!(expected.len(), 261);
    assert_eq!(weekdays.on_time(), expected);

    let quarters = quarters.on_time();
    assert_eq!(quarters.len(), 4 * 365);
    let hours = ["00", "06", "12", "18"];
    let round = |at: &String| hours.iter().any(|hour| at.ends_with(&format!("T{hour}:00:00Z")));
    assert!(quarters.iter().all(round), "{quarters:?}");

    assert_eq!(at.on_time(), ["2026-07-01T06:00:00Z"]);
    assert_eq!(at.job.status().condition, Condition::Exhausted);

    let expected: Vec<_> = days[5..].iter().step_by(14).collect();
    let summer = |day: &str| ("03-29".."10-25").contains(&day);
    let expected: Vec<_> =
        expected.into_iter().map(|day| format!("2026-{day}T0{}:30:00Z", if summer(day) { 7 } else { 8 })).collect();
    assert_eq!(fortnightly.on_time(), expected);
}

// B48
#[tokio::test(start_paused = true)]
async fn a_daily_job_takes_the_new_offset_over_on_the_first_day_it_holds() {
    let cases: [(&str, &[&str]); 2] = [
        ("2025-03-29T18:00:00Z", &["2025-03-29T18:00:01Z", "2025-03-30T17:00:01Z", "2025-03-31T17:00:01Z"]),
        ("2025-10-25T17:00:00Z", &["2025-10-25T17:00:01Z", "2025-10-26T18:00:01Z"]),
    ];
    for (created, expected) in cases {
        let world = World::at(created);
        let cron = Cron::parse_with(Dialect::Seconds, "1 0 18 * * *").unwrap().zone("Europe/Dublin").unwrap();
        let job = world.add("job", cron);
        advance(secs(2 * DAY)).await;
        assert_eq!(job.on_time(), expected);
    }
}

/// ```text
///   due        03:00   03:00   03:00   03:00           03:00
///   process  ━━━━┿━━━━━━━┿━━╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌━━━━━━━━━━┿━━
///                ▲       ▲                    ▲ late       ▲
/// ```
#[tokio::test(start_paused = true)]
async fn what_a_stopped_process_slept_through_is_made_up_for_once() {
    let world = World::at("2026-03-27T12:00:00Z");
    let daily = world.add("daily", Cron::parse("30 2 * * *").unwrap().zone("Europe/Berlin").unwrap());
    advance(secs(13 * 3600 + 2700)).await; // 28 March, 02:45 in Berlin
    stall(secs(2 * DAY)).await;
    advance(secs(DAY)).await;
    let statistics = daily.job.statistics();
    assert_eq!((statistics.started, statistics.skipped(SkipReason::Coalesced)), (3, 1), "{statistics:?}");
    let starts = daily.starts.lock().unwrap();
    let starts: Vec<_> = starts.iter().map(|(due, wall)| (due.to_string(), wall.to_string())).collect();
    let pairs = [
        ("2026-03-28T01:30:00Z", "2026-03-28T01:30:00Z"),
        ("2026-03-30T00:30:00Z", "2026-03-30T01:45:00Z"), // after 29 March, 01:00Z: the end of the gap
        ("2026-03-31T00:30:00Z", "2026-03-31T00:30:00Z"),
    ];
    assert_eq!(starts, pairs.map(|(due, wall)| (due.to_owned(), wall.to_owned())));
    assert_balanced(&daily.job);
}
