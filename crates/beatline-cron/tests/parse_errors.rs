//! Where reading stops, what was found and what would have been right.
#![allow(clippy::unwrap_used)] // a test may panic, its helpers too

mod common;

use beatline_cron::{Cron, Dialect};

/// Dialect, expression, and the error with a caret under its byte.
const ERRORS: &[(&str, &str, usize, &str)] = &[
    ("vixie5", "60 * * * *", 0, "byte 0 (minute): expected a number from 0 to 59, found `60`"),
    ("vixie5", "0 24 * * *", 2, "byte 2 (hour): expected a number from 0 to 23, found `24`"),
    ("vixie5", "  0\t0 0 * *", 6, "byte 6 (day of month): expected a number from 1 to 31, found `0`"),
    ("vixie5", "*/0 * * * *", 2, "byte 2 (minute): expected a step of at least 1, found `0`"),
    ("vixie5", "*5 * * * *", 1, "byte 1 (minute): expected `,`, `/` or the end of the field, found `5`"),
    (
        "vixie5",
        "0 0 5/2 * *",
        5,
        "byte 5 (day of month): expected `,` or the end of the field: a step follows `*` or a range only, found `/`",
    ),
    ("vixie5", "1,,2 * * * *", 2, "byte 2 (minute): expected a number from 0 to 59, found `,`"),
    ("vixie5", "1, * * * *", 2, "byte 2 (minute): expected a number from 0 to 59, found the end of the field"),
    ("vixie5", "9-5 * * * *", 2, "byte 2 (minute): expected a value of at least 9: ranges ascend, found `5`"),
    ("vixie5", "0 0 * foo *", 6, "byte 6 (month): expected a three-letter name from `jan` to `dec`, found `foo`"),
    (
        "vixie5",
        "0 0 * * ?",
        8,
        "byte 8 (day of week): expected a number from 0 to 7 or a name from `sun` to `sat`, found `?`",
    ),
    ("vixie5", "0 0 * * 1\u{1b}[2J", 9, "byte 9 (day of week): expected `,` or the end of the field, found `\\u{1b}`"),
    (
        "vixie5",
        "0 0 * * é",
        8,
        "byte 8 (day of week): expected a number from 0 to 7 or a name from `sun` to `sat`, found `\\u{e9}`",
    ),
    (
        "vixie5",
        "0 0 0 * * *",
        10,
        "byte 10: expected 5 fields (minute, hour, day of month, month, day of week), \
         or `Dialect::Seconds` or `Dialect::Quartz` for 6, found 6 fields",
    ),
    (
        "six",
        "0 0 * * *",
        9,
        "byte 9: expected 6 fields (second, minute, hour, day of month, month, day of week), \
         or `Dialect::Classic` or `Dialect::Extended` for 5, found 5 fields",
    ),
    ("vixie5", "", 0, "byte 0: expected 5 fields (minute, hour, day of month, month, day of week), found nothing"),
    ("vixie5", "@daily 5", 7, "byte 7: expected nothing after an alias, found `5`"),
    ("quartz6", "@daily", 0, "byte 0: expected fields; the Quartz dialects have no aliases, found `@daily`"),
    ("ext5", "0 0 * * 1#6", 10, "byte 10 (day of week): expected a number from 1 to 5 after `#`, found `6`"),
    ("ext5", "0 0 32W * *", 4, "byte 4 (day of month): expected a number from 1 to 31, found `32W`"),
    ("quartz6", "0 0 0 L-31 * ?", 8, "byte 8 (day of month): expected 0 to 30 days before the last, found `31`"),
    ("quartz6", "0/60 0 0 * * ?", 2, "byte 2 (second): expected a step from 1 to 59, found `60`"),
    (
        "quartz6",
        "0 0 12 ? * ?",
        11,
        "byte 11 (day of week): expected a day of the week, as the day of the month is `?` already, found `?`",
    ),
    (
        "quartz6",
        "0 0 12 1 * 2",
        11,
        "byte 11 (day of week): expected `?`, here or as the day of the month: one of the two must be open, found `2`",
    ),
];

#[test]
fn each_error_names_the_byte_what_was_found_and_what_was_expected() {
    for &(name, text, position, message) in ERRORS {
        let error = Cron::parse_with(common::dialect(name), text).unwrap_err();
        assert_eq!(error.to_string(), message, "{text:?}");
        assert_eq!(error.position(), position, "{text:?}");
    }
}

#[test]
fn an_error_becomes_the_schedulers_own_with_one_question_mark() {
    fn schedule() -> Result<Cron, beatline_core::Error> {
        Cron::parse("0 3 * * monday")?.zone("Asia/Shanghai")
    }
    let error = schedule().unwrap_err();
    assert_eq!(error.field(), Some("trigger"));
    assert!(error.to_string().starts_with("trigger: byte 8 (day of week): expected a three-letter name"), "{error}");

    let unknown = Cron::parse("0 3 * * *").unwrap().zone("Asia/Shangri-La").unwrap_err();
    assert_eq!(unknown.field(), Some("zone"));
}

/// What the grammar takes and the case files do not show.
#[test]
fn neighbours_of_the_rules() {
    let accepted = [
        ("vixie5", "0 0 * * 7-7"),
        ("vixie5", "0 0 * * sat-0/1"),
        ("vixie5", "*/100 * * * *"),
        ("vixie5", "*/99999999999999999999 * * * *"),
        ("vixie5", "0-59/60 * * * *"),
        ("vixie5", "1,* * * * *"),
        ("vixie5", "000 00 * * *"),
        ("vixie5", "0 0 * jan-3 mon-5"),
        ("vixie5", " @DAILY\t"),
        ("six", "@Hourly"),
        ("seven", "@yearly"),
        ("ext5", "0 0 l,lw,15w,1-5 * *"),
        ("ext5", "0 0 * * fril,FRI#2,0l,7#1,mon-wed"),
        ("quartz6", "0 0 0 L-0,L-30w,lw,l * ?"),
        ("quartz6", "0 0 0 ? * l,2#5,frIL,SAT-sun"),
        ("quartz6", "0 0 0 ? * mon/2"),
        ("quartz6", "0 0 0 ? * *"),
        ("quartz7", "0 0 0 1 jan ? 2026/2,2199"),
    ];
    for (name, text) in accepted {
        let parsed = Cron::parse_with(common::dialect(name), text);
        assert!(parsed.is_ok(), "{name} {text:?}: {}", parsed.unwrap_err());
    }
    let refused = [
        ("vixie5", "0 0 * * 7-1"),
        ("vixie5", "0 0 * * sun-L"),
        ("vixie5", "** * * * *"),
        ("vixie5", "*-5 * * * *"),
        ("vixie5", "0 0 * * mon/2"),
        ("vixie5", "0 0 * * 5L"),
        ("vixie5", "0 0 * * fri#2"),
        ("vixie5", "0 0 LW * *"),
        ("vixie5", "mon * * * *"),
        ("vixie5", "0 0 * mon *"),
        ("vixie5", "@reboot"),
        ("vixie5", "@every 5m"),
        ("vixie5", "0 0 * * *\n"),
        ("vixie5", "0 0 * * *\r"),
        ("ext5", "0 0 L-3 * *"),
        ("ext5", "0 0 L/2 * *"),
        ("ext5", "0 0 15W/2 * *"),
        ("ext5", "0 0 WL * *"),
        ("ext5", "0 0 * * mon-friL"),
        ("ext5", "0 0 * * 5L/2"),
        ("ext5", "0 0 * * 8L"),
        ("ext5", "0 0 * JANL *"),
        ("quartz6", "0 0 0 ?,1 * ?"),
        ("quartz6", "0 0 0 * ? 1"),
        ("quartz6", "0 0 0 ? * 8"),
        ("quartz6", "0 0/24/2 0 ? * 1"),
        ("quartz6", "0 0 */24 ? * 1"),
        ("quartz6", "0 0 0 ? 1/13 1"),
        ("quartz7", "0 0 0 1 1 ? 2030-2026"),
        ("quartz7", "0 0 0 1 1 ? 1969"),
        ("seven", "0 0 0 1 1 * 2200"),
    ];
    for (name, text) in refused {
        assert!(Cron::parse_with(common::dialect(name), text).is_err(), "{name} {text:?} was taken");
    }
    assert_eq!(Dialect::default(), Dialect::Classic);
}

/// Two ways to write one thing are one schedule.
#[test]
fn equal_meanings_have_equal_occurrences() {
    let same = [
        ("vixie5", "0 0 * * fri-sun", "vixie5", "0 0 * * 5,6,7"),
        ("vixie5", "0 0 * * mon-sun", "vixie5", "0 0 * * 1-7"),
        ("vixie5", "0 0 * * 7-0", "vixie5", "0 0 * * sun"),
        ("vixie5", "0 0 * * 0-0", "vixie5", "0 0 * * sun"),
        ("vixie5", "*/99 * * * *", "vixie5", "@hourly"),
        ("vixie5", "30 2 * * *", "six", "0 30 2 * * *"),
        ("ext5", "0 0 * * 0L", "ext5", "0 0 * * SUNl"),
        ("quartz6", "0 0 0 ? * L", "quartz6", "0 0 0 ? * 7"),
        ("quartz6", "0 0 0 L-0 * ?", "quartz6", "0 0 0 L * ?"),
        ("quartz6", "0 0 22-2/2 * * ?", "quartz6", "0 0 22,0,2 * * ?"),
        ("six", "0 0 12 * * MON-FRI", "quartz6", "0 0 12 ? * 2-6"),
    ];
    let from = common::at("2026-01-01T00:00:00Z");
    for (a, first, b, second) in same {
        let upcoming = |name, text| common::cron(common::dialect(name), text, "Europe/Berlin").upcoming(from, 500);
        assert_eq!(upcoming(a, first), upcoming(b, second), "{first} and {second}");
    }
}
