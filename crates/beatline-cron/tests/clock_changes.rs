//! What happens when clocks change, and what never happens at all.
#![allow(clippy::unwrap_used)] // a test may panic, its helpers too

mod common;

use beatline_core::Timestamp;
use beatline_cron::{Cron, Dialect, Fold, Gap};
use common::{at, cron, upcoming};

fn instants(cron: &Cron, from: &str, count: usize) -> Vec<String> {
    upcoming(cron, at(from), count)
}

/// ```text
///   wall clock    01:59:59 ▸ 03:00:00        "30 2 * * *"
///   Shift                    ▲ runs at 03:00, once
///   Skip                                     no run on this day
/// ```
#[test]
fn a_fixed_time_in_a_gap_is_shifted_or_skipped() {
    let job = cron(Dialect::Classic, "30 2 * * *", "America/New_York");
    let from = "2025-03-08T12:00:00-05:00";
    assert_eq!(instants(&job, from, 2), ["2025-03-09T07:00:00Z", "2025-03-10T06:30:00Z"]);
    assert_eq!(instants(&job.gap(Gap::Skip), from, 2), ["2025-03-10T06:30:00Z", "2025-03-11T06:30:00Z"]);
}

#[test]
fn runs_that_meet_after_a_gap_are_one_and_are_counted_as_one() {
    let (from, to) = (at("2025-03-09T05:00:00Z"), at("2025-03-10T04:00:00Z"));
    for (text, runs) in [("0 2,3 * * *", 1), ("0,30 2 * * *", 1), ("0,30 2,3 * * *", 2), ("15 2,3 * * *", 2)] {
        let job = cron(Dialect::Classic, text, "America/New_York");
        assert_eq!(job.upcoming(from, 9).iter().filter(|next| **next <= to).count(), runs, "{text}");
        assert_eq!(job.count_in(from, to), runs as u64, "{text}");
    }
}

/// ```text
///   wall clock    01:00 ── 01:59 ▸ 01:00 ── 01:59 ── 02:00    "30 1 * * *"
///   First             ▲
///   Last                               ▲
///   Both              ▲                ▲
/// ```
#[test]
fn a_fixed_time_in_a_fold_runs_in_the_pass_that_was_asked_for() {
    let job = cron(Dialect::Classic, "30 1 * * *", "America/New_York");
    let from = "2025-11-02T00:00:00-04:00";
    let (first, second, next) = ("2025-11-02T05:30:00Z", "2025-11-02T06:30:00Z", "2025-11-03T06:30:00Z");
    assert_eq!(instants(&job, from, 2), [first, next]);
    assert_eq!(instants(&job.clone().fold(Fold::First), from, 2), [first, next]);
    assert_eq!(instants(&job.clone().fold(Fold::Last), from, 2), [second, next]);
    assert_eq!(instants(&job.fold(Fold::Both), from, 3), [first, second, next]);
}

#[test]
fn interval_jobs_follow_real_time_whatever_the_options() {
    for (text, from) in [("*/30 * * * *", "2025-11-02T04:45:00Z"), ("15 * * * *", "2025-03-09T05:45:00Z")] {
        let job = cron(Dialect::Classic, text, "America/New_York");
        assert!(job.is_interval());
        let plain = instants(&job, from, 8);
        assert_eq!(instants(&job.gap(Gap::Skip).fold(Fold::Last), from, 8), plain);
    }
    assert!(!cron(Dialect::Quartz, "0 0/30 1 * * ?", "UTC").is_interval(), "`a/n` has fixed times");
    assert!(cron(Dialect::Quartz, "0 */30 1 * * ?", "UTC").is_interval());
    assert!(cron(Dialect::Seconds, "*/20 59 1 * * *", "UTC").is_interval(), "a given second counts");
}

/// Casey's clocks went forward three hours at 02:00, and back three hours.
#[test]
fn a_jump_of_three_hours_is_a_correction_and_its_fixed_times_are_skipped() {
    let job = cron(Dialect::Classic, "30 3 * * *", "Antarctica/Casey");
    assert_eq!(instants(&job, "2009-10-17T00:00:00Z", 2), ["2009-10-18T16:30:00Z", "2009-10-19T16:30:00Z"]);
    // Two hours are a season still.
    let job = cron(Dialect::Classic, "30 1 * * *", "Antarctica/Troll");
    assert_eq!(instants(&job, "2025-03-29T12:00:00Z", 2), ["2025-03-30T01:00:00Z", "2025-03-30T23:30:00Z"]);
    // And a whole day that does not exist is skipped.
    let job = cron(Dialect::Classic, "0 12 30 12 *", "Pacific/Apia");
    assert_eq!(instants(&job, "2011-01-01T00:00:00Z", 1), ["2012-12-29T22:00:00Z"]);
}

/// A gap that swallows midnight: the run belongs to the day whose midnight it
/// is, also when that day begins a month.
#[test]
fn the_date_of_a_shifted_run_is_the_date_that_was_asked_for() {
    let job = cron(Dialect::Classic, "0 0 * * fri", "Africa/Cairo");
    assert_eq!(instants(&job, "2025-04-24T12:00:00Z", 1), ["2025-04-24T22:00:00Z"]);
    let job = cron(Dialect::Classic, "30 23 31 * *", "America/Santiago");
    assert_eq!(instants(&job, "2025-08-31T00:00:00Z", 1), ["2025-09-01T03:30:00Z"]);
}

/// B48
#[test]
fn a_job_made_just_before_a_clock_change_uses_the_new_offset_after_it() {
    let job = cron(Dialect::Seconds, "1 0 18 * * *", "Europe/Dublin");
    let spring = instants(&job, "2025-03-29T18:00:00Z", 2);
    assert_eq!(spring, ["2025-03-29T18:00:01Z", "2025-03-30T17:00:01Z"]);
    let autumn = instants(&job, "2025-10-25T18:00:00+01:00", 2);
    assert_eq!(autumn, ["2025-10-25T17:00:01Z", "2025-10-26T18:00:01Z"]);
}

/// B17
#[test]
fn a_date_that_never_comes_is_known_at_once_and_a_rare_one_is_found() {
    let never = ["0 0 30 2 *", "0 0 31 4 *", "0 0 31 2,4,6 *"].map(|text| Cron::parse(text).unwrap());
    let leap = Cron::parse("0 0 29 2 *").unwrap();
    let day = std::time::Duration::from_secs(86_400);
    let mut start = at("2097-01-01T00:00:00Z");
    while start < at("2106-01-01T00:00:00Z") {
        for job in &never {
            assert!(job.never_fires());
            assert_eq!(job.next_after(start), None);
        }
        let next = if start < at("2104-02-29T00:00:00Z") { "2104-02-29T00:00:00Z" } else { "2108-02-29T00:00:00Z" };
        assert_eq!(leap.next_after(start), Some(at(next)), "from {start}");
        start = start.saturating_add(day);
    }
}

#[test]
fn never_fires_is_exact_and_no_matter_of_how_far_one_looks() {
    let never = [
        ("vixie5", "* * 30-31 2 *"),
        ("vixie5", "0 0 31 2,4,6,9,11 *"),
        ("ext5", "* * 31W 4 *"),
        ("ext5", "0 0 */31 * sun#2"),
        ("ext5", "0 0 LW * */7"),
        ("seven", "0 0 0 29 2 * 2100"),
        ("seven", "0 0 0 29 2 * 2026-2027"),
        ("seven", "0 0 0 1 1 */7 2026"),
        ("quartz6", "0 0 0 L-30 2 ?"),
        ("quartz7", "0 0 0 29 2 ? 1970-1971"),
    ];
    for (name, text) in never {
        let job = cron(common::dialect(name), text, "Europe/Berlin");
        assert!(job.never_fires(), "{text}");
        assert_eq!((job.next_after(Timestamp::MIN), job.last_until(Timestamp::MAX)), (None, None), "{text}");
        assert_eq!(job.count_in(Timestamp::MIN, Timestamp::MAX), 0, "{text}");
    }
    let sometimes = [
        ("vixie5", "0 0 29 2 */7"),
        ("ext5", "0 0 * 2 */7,2#5"),
        ("ext5", "0 0 29 2 sun#5"),
        ("seven", "* * * * * * 1970"),
        ("seven", "0 0 0 29 2 * 2000"),
        ("quartz6", "0 0 0 L-28 2 ?"),
    ];
    for (name, text) in sometimes {
        let job = cron(common::dialect(name), text, "Europe/Berlin");
        assert!(!job.never_fires(), "{text}");
        assert!(job.next_after(Timestamp::MIN).is_some(), "{text}");
    }
    // The one run of its only year falls into a gap, and gaps are skipped.
    let job = cron(Dialect::SecondsYear, "0 30 2 9 3 * 2025", "America/New_York");
    assert!(!job.never_fires());
    assert!(job.gap(Gap::Skip).never_fires());
}

#[test]
fn years_end_where_the_field_ends() {
    let job = cron(Dialect::SecondsYear, "0 0 0 1 1 * *", "UTC");
    assert_eq!(instants(&job, "2198-06-01T00:00:00Z", 2), ["2199-01-01T00:00:00Z", "NEVER"]);
    assert_eq!(instants(&job, "1900-06-01T00:00:00Z", 1), ["1970-01-01T00:00:00Z"]);
    // Without a year field they do not.
    let job = cron(Dialect::Seconds, "0 0 0 1 1 *", "UTC");
    assert_eq!(instants(&job, "9998-06-01T00:00:00Z", 2), ["9999-01-01T00:00:00Z", "NEVER"]);
    assert_eq!(instants(&job, "1900-06-01T00:00:00Z", 1), ["1901-01-01T00:00:00Z"]);
}

#[test]
fn next_is_strictly_after_also_between_two_seconds() {
    let job = cron(Dialect::Seconds, "* * * * * *", "UTC");
    assert_eq!(instants(&job, "2026-06-01T12:00:00Z", 1), ["2026-06-01T12:00:01Z"]);
    assert_eq!(instants(&job, "2026-06-01T12:00:00.000000001Z", 1), ["2026-06-01T12:00:01Z"]);
    assert_eq!(instants(&job, "2026-06-01T11:59:59.999999999Z", 1), ["2026-06-01T12:00:00Z"]);
    assert_eq!(instants(&job, "1969-12-31T23:59:58.5Z", 2), ["1969-12-31T23:59:59Z", "1970-01-01T00:00:00Z"]);
}

/// A century of zone rules is a table; what lies beyond follows from it.
#[test]
fn clock_changes_centuries_ahead_are_the_same_as_today() {
    let job = cron(Dialect::Extended, "30 2 * 3 sun#2", "America/New_York");
    for year in [2026, 2090, 2104, 2490, 2510, 2890, 3702, 9990] {
        let from = at(&format!("{year:04}-01-01T00:00:00Z"));
        let next = job.next_after(from).unwrap().to_string();
        assert!(next.ends_with("T07:00:00Z") && next.starts_with(&format!("{year:04}-03-")), "{next}");
    }
    let job = cron(Dialect::Classic, "30 1 * * *", "America/New_York");
    // Either 365 or 366 runs, whatever the clocks do.
    for year in [2026, 2399, 2500, 2501, 4000, 9990] {
        let (from, to) = (format!("{year:04}-01-01T00:00:00-05:00"), format!("{:04}-01-01T00:00:00-05:00", year + 1));
        let leap = u64::from(year % 4 == 0 && (year % 100 != 0 || year % 400 == 0));
        assert_eq!(job.count_in(at(&from), at(&to)), 365 + leap, "{year}");
    }
}

#[test]
fn fixed_offsets_utc_and_the_systems_zone() {
    let from = at("2026-06-01T00:00:00Z");
    let next = |job: Cron| job.next_after(from).unwrap().to_string();
    let noon = Cron::parse("0 12 * * *").unwrap();
    assert_eq!(next(noon.clone()), "2026-06-01T12:00:00Z");
    assert_eq!(next(noon.clone().zone("Asia/Tokyo").unwrap().utc()), "2026-06-01T12:00:00Z");
    assert_eq!(next(noon.clone().fixed_offset(19_800).unwrap()), "2026-06-01T06:30:00Z");
    assert_eq!(next(noon.clone().zone("-03:30").unwrap()), "2026-06-01T15:30:00Z");
    assert_eq!(noon.clone().fixed_offset(19_800).unwrap(), noon.clone().zone("+05:30").unwrap());
    assert_eq!(noon.clone().fixed_offset(86_400).unwrap_err().field(), Some("offset"));
    assert_eq!(noon.clone().zone("asia/TOKYO").unwrap().zone_name(), "Asia/Tokyo");
    let system = noon.clone().system_zone().unwrap();
    assert!(system.next_after(from).is_some());
    assert_eq!(noon.to_string(), "0 12 * * * (UTC)");
}
