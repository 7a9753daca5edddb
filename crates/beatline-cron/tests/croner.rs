//! Against croner, where its rules and ours agree: no clock changes (fixed
//! offsets), day fields that are either `*` or do not begin with it, and only
//! what both grammars have.
#![allow(clippy::unwrap_used)] // a test may panic, its helpers too

mod common;

use beatline_core::Timestamp;
use beatline_cron::Dialect;
use chrono::{DateTime, FixedOffset};
use common::Random;

fn field(random: &mut Random, low: i64, high: i64, star: u64, steps: bool) -> String {
    if random.below(100) < star {
        return "*".to_owned();
    }
    let mut items = Vec::new();
    for _ in 0..random.between(1, 3) {
        let (a, b) = (random.between(low, high), random.between(low, high));
        let (a, b) = (a.min(b), a.max(b));
        let step = random.between(1, high - low);
        items.push(match random.below(4) {
            0 if steps => format!("*/{step}"),
            1 => format!("{a}-{b}"),
            2 => format!("{a}-{b}/{}", random.between(1, (b - a).max(1))),
            _ => a.to_string(),
        });
    }
    items.join(",")
}

#[test]
fn oracle_croner_finds_the_same_instants_where_the_rules_are_the_same() {
    let cases = std::env::var("CASES").map_or(5_000, |cases| cases.parse().unwrap());
    let mut instants = 0;
    for seed in 0..cases {
        let random = &mut Random::new(seed);
        let with_second = random.one_in(2);
        let mut fields = vec![
            field(random, 0, 59, 30, true),
            field(random, 0, 23, 40, true),
            field(random, 1, 31, 50, false),
            field(random, 1, 12, 60, true),
            field(random, 0, 6, 50, false),
        ];
        match random.below(8) {
            0 => fields[2] = "L".to_owned(),
            1 => fields[2] = format!("{}W", random.between(2, 27)),
            2 => fields[4] = format!("{}#{}", random.between(0, 6), random.between(1, 5)),
            3 => fields[4] = format!("{}L", random.between(0, 6)),
            _ => {}
        }
        let (dialect, seconds) = if with_second {
            fields.insert(0, field(random, 0, 59, 20, true));
            (Dialect::Seconds, croner::parser::Seconds::Required)
        } else {
            (Dialect::Extended, croner::parser::Seconds::Disallowed)
        };
        let text = fields.join(" ");
        let parser = croner::parser::CronParser::builder().seconds(seconds).year(croner::parser::Year::Disallowed);
        let theirs = parser.build().parse(&text).unwrap_or_else(|error| panic!("seed {seed}: {text:?}: {error}"));
        let (offset, zone) = random.pick(&[(0, "UTC"), (19_800, "+05:30"), (-12_600, "-03:30"), (45_900, "+12:45")]);
        let ours = common::cron(dialect, &text, zone);
        let start = random.between(0, 4_000_000_000);
        let offset = FixedOffset::east_opt(offset).unwrap();
        let mut at = DateTime::from_timestamp(start, 0).unwrap().with_timezone(&offset);
        let mut mine = Timestamp::from_unix(start, 0);
        for _ in 0..4 {
            let expected = theirs.find_next_occurrence(&at, false).ok().map(|next| next.timestamp());
            let found = ours.next_after(mine).map(Timestamp::unix_seconds);
            // Theirs gives up after some years; ours does not.
            let Some(expected) = expected else {
                assert!(found.is_none_or(|found| found - mine.unix_seconds() > 86_400 * 365), "seed {seed}: {text:?}");
                break;
            };
            assert_eq!(found, Some(expected), "seed {seed}: {text:?} in {zone} after {mine}");
            instants += 1;
            (at, mine) = (
                DateTime::from_timestamp(expected, 0).unwrap().with_timezone(&offset),
                Timestamp::from_unix(expected, 0),
            );
        }
    }
    println!("{cases} expressions, {instants} instants");
    assert!(instants > cases * 3);
}
