//! The next occurrence of a cron expression, against croner 4 on chrono-tz, in
//! a zone with clock changes.
//!
//! Each call starts at another of 1,024 instants spread over a year, so that
//! neither side profits from being asked the same thing again.

use std::hint::black_box;

use beatline_core::{Due, Moment, Monotonic, Timestamp, Trigger, TriggerContext};
use beatline_cron::{Cron, Dialect};
use chrono::DateTime;
use chrono_tz::Tz;
use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};

const ZONE: &str = "America/New_York";

/// 2026-01-01, and steps that meet every hour and every day.
fn starts() -> Vec<i64> {
    (0..1024).map(|index| 1_767_225_600 + index * 30_803).collect()
}

/// Name, and an expression of both.
const EXPRESSIONS: &[(&str, &str)] = &[
    ("dense", "*/5 * * * *"),
    ("daily", "30 2 * * *"),
    ("weekly", "0 9 * * 1"),
    ("monthly", "0 0 1 * *"),
    ("sparse", "0 0 29 2 *"),
];

fn next(criterion: &mut Criterion) {
    let zone: Tz = ZONE.parse().expect("a zone of the database");
    for &(name, text) in EXPRESSIONS {
        let mut group = criterion.benchmark_group(format!("next/{name}"));
        let ours = Cron::parse(text).expect("an expression").zone(ZONE).expect("a zone");
        let instants: Vec<_> = starts().into_iter().map(|start| Timestamp::from_unix(start, 0)).collect();
        let mut turn = instants.iter().cycle();
        group.bench_function(BenchmarkId::new("beatline", text), |bencher| {
            bencher.iter(|| ours.next_after(black_box(*turn.next().expect("a cycle"))));
        });
        // As a scheduler asks: with a history, and an eye on the zone's data.
        let contexts: Vec<_> = instants
            .iter()
            .map(|instant| TriggerContext::new(Moment::new(Monotonic::ORIGIN, *instant)).after(Due::Wall(*instant)))
            .collect();
        let mut turn = contexts.iter().cycle();
        group.bench_function(BenchmarkId::new("beatline as a trigger", text), |bencher| {
            bencher.iter(|| ours.next(black_box(turn.next().expect("a cycle"))));
        });
        let parser = croner::parser::CronParser::builder().seconds(croner::parser::Seconds::Disallowed).build();
        let theirs = parser.parse(text).expect("an expression");
        let instants: Vec<_> = starts()
            .into_iter()
            .map(|start| DateTime::from_timestamp(start, 0).expect("in range").with_timezone(&zone))
            .collect();
        let mut turn = instants.iter().cycle();
        group.bench_function(BenchmarkId::new("croner", text), |bencher| {
            bencher.iter(|| theirs.find_next_occurrence(black_box(turn.next().expect("a cycle")), false));
        });
        group.finish();
    }
}

fn seek(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("a year of missed seconds");
    let every_second =
        Cron::parse_with(Dialect::Seconds, "* * * * * *").expect("an expression").zone(ZONE).expect("a zone");
    let (from, to) = (Timestamp::from_unix(1_767_225_600, 0), Timestamp::from_unix(1_798_761_600, 0));
    group.bench_function("count", |bencher| bencher.iter(|| every_second.count_in(black_box(from), black_box(to))));
    group.bench_function("latest", |bencher| bencher.iter(|| every_second.last_until(black_box(to))));
    group.finish();
}

fn parse(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("parse");
    for text in ["*/5 * * * *", "0 3 * jan-jun mon-fri", "0 0 30 2 *"] {
        group.bench_function(BenchmarkId::new("beatline", text), |bencher| {
            bencher.iter(|| Cron::parse(black_box(text)))
        });
        group.bench_function(BenchmarkId::new("croner", text), |bencher| {
            bencher.iter(|| black_box(text).parse::<croner::Cron>());
        });
    }
    group.finish();
}

criterion_group!(benches, next, seek, parse);
criterion_main!(benches);
