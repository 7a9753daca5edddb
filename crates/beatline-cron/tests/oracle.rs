//! The evaluator against an oracle that knows nothing of it: real time is
//! walked minute by minute (second by second where the dialect has seconds),
//! and at each step the zone is asked what its clocks show. What a clock skips
//! is seen as a jump between two steps, what it repeats by having been shown
//! before.
//!
//! `CASES=1000000 cargo test --release -p beatline-cron oracle` is the
//! long form. A failure names its case; `SEED=… CASES=1` repeats it.
#![allow(clippy::unwrap_used)] // a test may panic, its helpers too

mod common;

use std::collections::HashSet;

use beatline_core::Timestamp;
use beatline_cron::{Cron, Dialect, Fold, Gap};
use common::Random;
use jiff::civil::{Date, DateTime};
use jiff::tz::TimeZone;

/// One field as the oracle sees it: which numbers match, how it is written.
struct Field {
    matches: Vec<bool>,
    text: String,
}

impl Field {
    fn starts_with_star(&self) -> bool {
        self.text.starts_with('*')
    }
}

/// Day rules beyond numbers, by what they say about a date.
#[derive(Clone, Debug)]
enum Special {
    Last,
    LastWeekday,
    BeforeLast(i8),
    BeforeLastWeekday(i8),
    Nearest(i8),
    LastOf(u32),
    Nth(u32, i8),
}

struct Expression {
    dialect: Dialect,
    second: Field,
    minute: Field,
    hour: Field,
    day: Field,
    month: Field,
    weekday: Field,
    year: Option<Field>,
    special_days: Vec<Special>,
    special_weekdays: Vec<Special>,
    /// In Quartz: which of the two day fields is `?`.
    open: Option<usize>,
}

fn has_seconds(dialect: Dialect) -> bool {
    !matches!(dialect, Dialect::Classic | Dialect::Extended)
}

fn is_quartz(dialect: Dialect) -> bool {
    matches!(dialect, Dialect::Quartz | Dialect::QuartzYear)
}

const WEEKDAYS: [&str; 7] = ["sun", "MON", "Tue", "wed", "THU", "Fri", "sat"];
const MONTHS: [&str; 12] = ["jan", "FEB", "Mar", "apr", "may", "JUN", "jul", "aug", "sep", "oct", "nov", "DEC"];

/// A field of numbers from `low` to `high`; `named` writes a number.
fn field(
    random: &mut Random,
    low: usize,
    high: usize,
    quartz: bool,
    star: u64,
    named: &dyn Fn(&mut Random, usize) -> String,
) -> Field {
    let mut matches = vec![false; high + 1];
    if random.below(100) < star {
        matches[low..].fill(true);
        return Field { matches, text: "*".to_owned() };
    }
    let mut items = Vec::new();
    for _ in 0..[1, 1, 1, 2, 3][random.below(5) as usize] {
        let a = random.between(low as i64, high as i64) as usize;
        let b = random.between(low as i64, high as i64) as usize;
        let limit = if quartz { (high - low).min(23) as i64 } else { (high - low + 3) as i64 };
        let step = random.between(1, limit.max(1)) as usize;
        match random.below(if quartz { 7 } else { 5 }) {
            0 => {
                items.push(format!("*/{step}"));
                (low..=high).step_by(step).for_each(|n| matches[n] = true);
            }
            1 => {
                let (a, b) = (a.min(b), a.max(b));
                items.push(format!("{}-{}", named(random, a), named(random, b)));
                matches[a..=b].fill(true);
            }
            2 => {
                let (a, b) = (a.min(b), a.max(b));
                items.push(format!("{}-{}/{step}", named(random, a), named(random, b)));
                (a..=b).step_by(step).for_each(|n| matches[n] = true);
            }
            5 => {
                items.push(format!("{a}/{step}"));
                (a..=high).step_by(step).for_each(|n| matches[n] = true);
            }
            6 => {
                items.push(format!("{}-{}", named(random, a), named(random, b)));
                let mut n = a;
                loop {
                    matches[n] = true;
                    if n == b {
                        break;
                    }
                    n = if n == high { low } else { n + 1 };
                }
            }
            _ => {
                items.push(named(random, a));
                matches[a] = true;
            }
        }
    }
    Field { matches, text: items.join(",") }
}

fn plain(random: &mut Random, n: usize) -> String {
    if n < 10 && random.one_in(8) { format!("0{n}") } else { n.to_string() }
}

fn expression(random: &mut Random) -> Expression {
    let dialect = random.pick(&[
        Dialect::Classic,
        Dialect::Classic,
        Dialect::Classic,
        Dialect::Extended,
        Dialect::Seconds,
        Dialect::SecondsYear,
        Dialect::Quartz,
        Dialect::QuartzYear,
    ]);
    let quartz = is_quartz(dialect);
    let second = if has_seconds(dialect) {
        field(random, 0, 59, quartz, 25, &plain)
    } else {
        let mut matches = vec![false; 60];
        matches[0] = true;
        Field { matches, text: String::new() }
    };
    let minute = field(random, 0, 59, quartz, 30, &plain);
    // Often in the hours where clocks change.
    let hour = if random.one_in(3) {
        let hour = random.below(4) as usize;
        let mut matches = vec![false; 24];
        matches[hour] = true;
        Field { matches, text: hour.to_string() }
    } else {
        field(random, 0, 23, quartz, 40, &plain)
    };
    let month = field(random, 1, 12, quartz, 70, &|random: &mut Random, n| {
        if random.one_in(3) { MONTHS[n - 1].to_owned() } else { plain(random, n) }
    });
    let day = field(random, 1, 31, quartz, 60, &plain);
    let mut weekday = if quartz {
        let mut field = field(random, 1, 7, true, 60, &|random: &mut Random, n| {
            if random.one_in(2) { WEEKDAYS[n - 1].to_owned() } else { plain(random, n) }
        });
        field.matches.remove(0);
        field
    } else {
        let mut field = field(random, 0, 7, false, 60, &|random: &mut Random, n| {
            if n < 7 && random.one_in(2) { WEEKDAYS[n].to_owned() } else { plain(random, n) }
        });
        field.matches[0] |= field.matches[7];
        field
    };
    let year = matches!(dialect, Dialect::SecondsYear | Dialect::QuartzYear).then(|| {
        if random.one_in(2) {
            Field { matches: (0..2200).map(|year| year >= 1970).collect(), text: "*".to_owned() }
        } else {
            field(random, 1970, 2199, false, 0, &|_: &mut Random, n| n.to_string())
        }
    });
    let mut day = day;
    let (mut special_days, mut special_weekdays) = (Vec::new(), Vec::new());
    if dialect != Dialect::Classic && random.one_in(4) {
        let n = random.between(1, 31) as i8;
        let (special, text) = match random.below(if quartz { 5 } else { 3 }) {
            0 => (Special::Last, "L".to_owned()),
            1 => (Special::LastWeekday, "lw".to_owned()),
            2 => (Special::Nearest(n), format!("{n}W")),
            3 => (Special::BeforeLast(n - 1), format!("L-{}", n - 1)),
            _ => (Special::BeforeLastWeekday(n - 1), format!("l-{}w", n - 1)),
        };
        special_days.push(special);
        if random.one_in(2) {
            day = Field { matches: vec![false; 32], text };
        } else {
            day.text = format!("{},{text}", day.text);
        }
    }
    if dialect != Dialect::Classic && random.one_in(4) {
        let n = random.below(7) as u32;
        let written = if quartz { n + 1 } else { n };
        let name = if random.one_in(2) { WEEKDAYS[n as usize].to_owned() } else { written.to_string() };
        let nth = random.between(1, 5) as i8;
        let (special, text) = if random.one_in(2) {
            (Special::LastOf(n), format!("{name}L"))
        } else {
            (Special::Nth(n, nth), format!("{name}#{nth}"))
        };
        special_weekdays.push(special);
        if random.one_in(2) {
            weekday = Field { matches: vec![false; 8], text };
        } else {
            weekday.text = format!("{text},{}", weekday.text);
        }
    }
    let open = quartz.then(|| random.below(2) as usize);
    match open {
        Some(0) => day = Field { matches: vec![true; 32], text: "?".to_owned() },
        Some(_) => weekday = Field { matches: vec![true; 8], text: "?".to_owned() },
        None => {}
    }
    Expression { dialect, second, minute, hour, day, month, weekday, year, special_days, special_weekdays, open }
}

impl Expression {
    fn text(&self) -> String {
        let mut parts = Vec::new();
        if has_seconds(self.dialect) {
            parts.push(&self.second);
        }
        parts.extend([&self.minute, &self.hour, &self.day, &self.month, &self.weekday]);
        parts.extend(&self.year);
        parts.iter().map(|field| field.text.as_str()).collect::<Vec<_>>().join(" ")
    }

    fn is_interval(&self) -> bool {
        self.minute.starts_with_star()
            || self.hour.starts_with_star()
            || (has_seconds(self.dialect) && self.second.starts_with_star())
    }

    fn matches_date(&self, date: Date) -> bool {
        let year = self.year.as_ref().is_none_or(|years| years.matches.get(date.year() as usize) == Some(&true));
        if !year || !self.month.matches[date.month() as usize] {
            return false;
        }
        let day = (self.open != Some(0) && self.special_days.iter().any(|special| matches_special(special, date)))
            || self.day.matches[date.day() as usize];
        let weekday = (self.open != Some(1)
            && self.special_weekdays.iter().any(|special| matches_special(special, date)))
            || self.weekday.matches[date.weekday().to_sunday_zero_offset() as usize];
        let both = self.open.is_some() || self.day.starts_with_star() || self.weekday.starts_with_star();
        if both { day && weekday } else { day || weekday }
    }

    fn matches_time(&self, local: DateTime) -> bool {
        self.hour.matches[local.hour() as usize]
            && self.minute.matches[local.minute() as usize]
            && self.second.matches[local.second() as usize]
    }

    fn matches(&self, local: DateTime) -> bool {
        self.matches_time(local) && self.matches_date(local.date())
    }
}

fn is_work_day(date: Date) -> bool {
    (1..=5).contains(&date.weekday().to_monday_one_offset())
}

/// The Monday to Friday nearest to a date, within its month: try the day, then
/// the neighbours.
fn nearest(date: Date) -> Date {
    for away in [0, -1, 1, -2, 2] {
        let candidate = date.checked_add(jiff::Span::new().days(away)).unwrap();
        if candidate.month() == date.month() && is_work_day(candidate) {
            return candidate;
        }
    }
    unreachable!("a month has work days");
}

fn matches_special(special: &Special, date: Date) -> bool {
    let last = date.last_of_month();
    let weekday = date.weekday().to_sunday_zero_offset() as u32;
    match *special {
        Special::Last => date == last,
        Special::LastWeekday => date == nearest(last),
        Special::BeforeLast(n) => last.day() - n == date.day(),
        Special::BeforeLastWeekday(n) => {
            last.day() > n && date == nearest(last.with().day(last.day() - n).build().unwrap())
        }
        Special::Nearest(n) => n <= last.day() && date == nearest(date.with().day(n).build().unwrap()),
        Special::LastOf(wanted) => weekday == wanted && date.day() + 7 > last.day(),
        Special::Nth(wanted, n) => weekday == wanted && (date.day() - 1) / 7 + 1 == n,
    }
}

/// Every instant that fires from `from` up to but not including `to`, by
/// walking.
fn walk(expression: &Expression, zone: &TimeZone, from: i64, to: i64, gap: Gap, fold: Fold) -> Vec<i64> {
    let step = if has_seconds(expression.dialect) { 1 } else { 60 };
    // Offsets of old are not whole minutes: then only seconds will do.
    let offset = zone.to_offset(jiff::Timestamp::from_second(from).unwrap()).seconds();
    let step = if offset % 60 == 0 { step } else { 1 };
    let from = from.div_euclid(step) * step;
    let local = |at: i64| zone.to_datetime(jiff::Timestamp::from_second(at).unwrap());
    let interval = expression.is_interval();
    let mut fired = Vec::new();
    // Local times shown in the four hours before, and in each pass.
    let mut before = local(from - step);
    let mut at = from;
    let mut date = None;
    let mut date_matches = false;
    while at < to {
        let now = local(at);
        if date != Some(now.date()) {
            date = Some(now.date());
            date_matches = expression.matches_date(now.date());
        }
        let mut fires = date_matches && expression.matches_time(now);
        if !interval {
            if fires {
                fires = match fold {
                    Fold::First => shown(zone, now, at).0,
                    Fold::Last => shown(zone, now, at).1,
                    _ => true,
                };
            }
            let jump = now.duration_since(before).as_secs() - step;
            if jump > 0 && jump < 3 * 3600 && gap == Gap::Shift && !fires {
                let mut missing = before.checked_add(jiff::Span::new().seconds(step)).unwrap();
                // A whole-minute walk may meet a jump of odd seconds.
                while missing < now && !fires {
                    fires = expression.matches(missing);
                    missing = missing.checked_add(jiff::Span::new().seconds(1)).unwrap();
                }
            }
        }
        if fires {
            fired.push(at);
        }
        before = now;
        at += step;
    }
    fired
}

/// Whether an instant is the first, and the last, at which clocks show `local`.
fn shown(zone: &TimeZone, local: DateTime, at: i64) -> (bool, bool) {
    let ambiguous = zone.to_ambiguous_timestamp(local);
    let second = |timestamp: Result<jiff::Timestamp, jiff::Error>| timestamp.unwrap().as_second();
    (second(ambiguous.earlier()) == at, second(ambiguous.later()) == at)
}

const ZONES: &[&str] = &[
    "UTC",
    "America/New_York",
    "Europe/London",
    "Europe/Dublin",
    "Europe/Berlin",
    "Australia/Lord_Howe",
    "Antarctica/Troll",
    "America/Santiago",
    "Africa/Cairo",
    "Africa/Casablanca",
    "Asia/Kolkata",
    "Asia/Amman",
    "Asia/Shanghai",
    "Pacific/Apia",
    "Pacific/Chatham",
    "America/St_Johns",
    "America/Sao_Paulo",
    "Asia/Tehran",
    "Asia/Gaza",
];

/// A start: half of them in the days around a clock change.
fn start(random: &mut Random, zone: &TimeZone, years: Option<&Field>) -> i64 {
    let (first, last) = if years.is_some() { (0, 7_258_118_400) } else { (-157_766_400, 4_102_444_800) };
    let at = random.between(first, last);
    let near = jiff::Timestamp::from_second(at).unwrap();
    let change = if random.one_in(2) { zone.following(near).next() } else { None };
    match change {
        Some(change) if change.timestamp().as_second() < last => {
            change.timestamp().as_second() + random.between(-100_000, 10_000)
        }
        _ => at,
    }
}

fn check(seed: u64) -> Result<bool, String> {
    let random = &mut Random::new(seed);
    let expression = expression(random);
    let text = expression.text();
    let name = random.pick(ZONES);
    let zone = TimeZone::get(name).unwrap();
    let gap = random.pick(&[Gap::Shift, Gap::Shift, Gap::Skip]);
    let fold = random.pick(&[Fold::First, Fold::First, Fold::Last, Fold::Both]);
    let from = start(random, &zone, expression.year.as_ref());
    let cron = Cron::parse_with(expression.dialect, &text)
        .map_err(|error| format!("{text:?} is refused: {error}"))?
        .zone(name)
        .unwrap()
        .gap(gap)
        .fold(fold);
    let describe =
        || format!("{:?} {text:?} {name} {gap:?} {fold:?} after {}", expression.dialect, Timestamp::from_unix(from, 0));
    if cron.is_interval() != expression.is_interval() {
        return Err(format!("{}: interval or not", describe()));
    }
    // Two and a half days by the minute, an hour or six by the second.
    let span = if has_seconds(expression.dialect) { random.pick(&[3 * 3600, 6 * 3600]) } else { 216_000 };
    let until = from + span;
    let walked: Vec<_> =
        walk(&expression, &zone, from - 120, until + 1, gap, fold).into_iter().filter(|at| *at > from).collect();
    let mut found = Vec::new();
    let mut at = Timestamp::from_unix(from, 0);
    while let Some(next) = cron.next_after(at) {
        if next <= at {
            return Err(format!("{}: {next} is not after {at}", describe()));
        }
        if next.unix_seconds() > until {
            break;
        }
        found.push(next.unix_seconds());
        at = next;
        // Every second of six hours is enough to see; the rest is counted.
        if found.len() == 2_000 {
            break;
        }
    }
    let show = |at: Option<&i64>| at.map_or("none".to_owned(), |at| Timestamp::from_unix(*at, 0).to_string());
    let compared = found.len().min(2_000);
    let short = found.len() < 2_000 && walked.len() != found.len();
    if found != walked[..compared.min(walked.len())] || short {
        let index = found.iter().zip(&walked).position(|(a, b)| a != b).unwrap_or(found.len().min(walked.len()));
        return Err(format!(
            "{}: occurrence {index} is {}, by walking {}",
            describe(),
            show(found.get(index)),
            show(walked.get(index))
        ));
    }
    // Backwards, and counted.
    let end = Timestamp::from_unix(until, 0);
    let last = cron.last_until(end).map(Timestamp::unix_seconds).filter(|last| *last > from);
    if last != walked.last().copied() {
        return Err(format!("{}: last {}, by walking {}", describe(), show(last.as_ref()), show(walked.last())));
    }
    let count = cron.count_in(Timestamp::from_unix(from, 0), end);
    if count != walked.len() as u64 {
        return Err(format!("{}: counted {count}, by walking {}", describe(), walked.len()));
    }
    // From a random point between, as a scheduler would that was late.
    let middle = random.between(from, until);
    let wanted = walked.iter().rfind(|at| **at <= middle).copied();
    let last =
        cron.last_until(Timestamp::from_unix(middle, 5)).map(Timestamp::unix_seconds).filter(|last| *last > from);
    if last != wanted {
        return Err(format!("{}: last until {middle} {last:?}, by walking {wanted:?}", describe()));
    }
    let wanted = walked.iter().filter(|at| **at > middle).count() as u64;
    let count = cron.count_in(Timestamp::from_unix(middle, 999_999_999), end);
    if count != wanted {
        return Err(format!("{}: {count} after {middle}, by walking {wanted}", describe()));
    }
    Ok(!walked.is_empty())
}

/// The date in UTC.
fn date_of(second: i64) -> Date {
    TimeZone::UTC.to_datetime(jiff::Timestamp::from_second(second).unwrap()).date()
}

fn setting(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|value| value.parse().unwrap())
}

#[test]
fn oracle_by_walking_real_time() {
    let cases = setting("CASES").unwrap_or(5_000);
    let first = setting("SEED").unwrap_or(1);
    let threads = std::thread::available_parallelism().map_or(2, usize::from) as u64;
    let results: Vec<_> = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads)
            .map(|worker| {
                scope.spawn(move || {
                    let mut fired = 0_u64;
                    let mut failures = Vec::new();
                    for seed in (first..first + cases).skip(worker as usize).step_by(threads as usize) {
                        match check(seed) {
                            Ok(true) => fired += 1,
                            Ok(false) => {}
                            Err(failure) => failures.push(format!("SEED={seed}: {failure}")),
                        }
                    }
                    (fired, failures)
                })
            })
            .collect();
        workers.into_iter().map(|worker| worker.join().unwrap()).collect()
    });
    let fired: u64 = results.iter().map(|(fired, _)| fired).sum();
    let failures: Vec<_> = results.into_iter().flat_map(|(_, failures)| failures).collect();
    println!("{cases} cases, {fired} with occurrences, {} mismatches", failures.len());
    assert!(failures.is_empty(), "{} mismatches:\n{}", failures.len(), failures[..failures.len().min(20)].join("\n"));
    assert!(cases < 100 || fired * 3 > cases, "too few cases fire to prove much: {fired} of {cases}");
}

/// Dates over decades, a day at a time; where months, leap years and the rules
/// for single days of a month show.
#[test]
fn oracle_of_dates_by_walking_days() {
    let cases = setting("CASES").unwrap_or(5_000).min(100_000) / 10;
    for seed in 0..cases {
        let random = &mut Random::new(seed ^ 0xdada);
        let expression = expression(random);
        let text = expression.text();
        let cron = common::cron(expression.dialect, &text, "UTC");
        let first = Date::constant(random.between(1965, 2090) as i16, random.between(1, 12) as i8, 1);
        let days = 365 * 9_i32;
        let instant =
            |date: Date| Timestamp::from_unix(TimeZone::UTC.to_timestamp(date.at(0, 0, 0, 0)).unwrap().as_second(), 0);
        let (from, to) = (first, first.checked_add(jiff::Span::new().days(days)).unwrap());
        let wanted: HashSet<_> = from
            .series(jiff::Span::new().days(1))
            .take(days as usize)
            .filter(|date| expression.matches_date(*date))
            .collect();
        let mut found = HashSet::new();
        let mut at = Timestamp::from_unix(instant(from).unix_seconds() - 1, 0);
        let end = Timestamp::from_unix(instant(to).unix_seconds() - 1, 0);
        while let Some(next) = cron.next_after(at).filter(|next| *next <= end) {
            let day = next.unix_seconds().div_euclid(86_400) * 86_400;
            found.insert(date_of(day));
            // On to the last second of this day.
            at = Timestamp::from_unix(day + 86_399, 0);
        }
        let odd: Vec<_> = wanted.symmetric_difference(&found).take(3).collect();
        assert!(odd.is_empty(), "seed {seed}: {text:?} ({:?}) from {from}: {odd:?}", expression.dialect);
        // All times of a day are the same number on each day that matches.
        let times = |field: &Field| field.matches.iter().filter(|matches| **matches).count() as u64;
        let each_day = times(&expression.second) * times(&expression.minute) * times(&expression.hour);
        assert_eq!(
            cron.count_in(Timestamp::from_unix(instant(from).unix_seconds() - 1, 0), end),
            wanted.len() as u64 * each_day,
            "{text:?}"
        );
        let last = cron.last_until(end).filter(|last| *last >= instant(from));
        let last = last.map(|last| date_of(last.unix_seconds()));
        assert_eq!(last, wanted.iter().max().copied(), "seed {seed}: {text:?} backwards from {to}");
    }
    println!("{cases} cases of nine years");
}
