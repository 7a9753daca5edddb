//! Whatever text comes in: an answer or an error that can be printed, at once.
#![allow(clippy::unwrap_used)] // a test may panic, its helpers too

mod common;

use std::time::{Duration, Instant};

use beatline_core::Timestamp;
use beatline_cron::{Cron, Dialect, MAXIMUM_LENGTH};
use common::Random;

const DIALECTS: [Dialect; 6] =
    [Dialect::Classic, Dialect::Extended, Dialect::Seconds, Dialect::SecondsYear, Dialect::Quartz, Dialect::QuartzYear];

/// What expressions are made of, and what they are not.
const PIECES: &[&str] = &[
    "*",
    "*",
    "*",
    " ",
    " ",
    " ",
    " ",
    " ",
    ",",
    "-",
    "/",
    "?",
    "L",
    "W",
    "#",
    "LW",
    "L-3",
    "15W",
    "5L",
    "fri#2",
    "0",
    "1",
    "2",
    "5",
    "7",
    "12",
    "23",
    "29",
    "30",
    "31",
    "59",
    "60",
    "2026",
    "2199",
    "1970",
    "*/2",
    "*/59",
    "0-7",
    "5-1",
    "mon",
    "SUN",
    "jan",
    "Dec",
    "@daily",
    "@",
    "\t",
    "\n",
    "\0",
    "\u{1b}[31m",
    "é",
    "٣",
    "\u{202e}",
    "🕛",
    "4294967296",
    "99999999999999999999",
    "-1",
    "+1",
    "0x1",
    "1e3",
    "%",
    "\"",
    "\\",
    "0 0 30 2 *",
    "0 0 12 ? * ",
];

fn text(random: &mut Random) -> String {
    match random.below(4) {
        // Any bytes that are text.
        0 => {
            let bytes: Vec<_> = (0..random.below(40)).map(|_| random.below(256) as u8).collect();
            String::from_utf8_lossy(&bytes).into_owned()
        }
        // Printable ASCII.
        1 => (0..random.below(40)).map(|_| (b' ' + random.below(95) as u8) as char).collect(),
        // Pieces in any order.
        2 => (0..random.below(24)).map(|_| random.pick(PIECES)).collect(),
        // Nearly right: as many fields as a dialect has, most of them sound.
        _ => {
            let fields: Vec<String> = (0..random.between(5, 7))
                .map(|_| match random.below(12) {
                    0 => (0..random.between(1, 3)).map(|_| random.pick(PIECES)).collect(),
                    _ => random.pick(&["*", "*", "*", "*/2", "1", "2-5", "?", "3,7", "0-6/3", "6"]).to_owned(),
                })
                .collect();
            fields.join(" ")
        }
    }
}

/// Parses, and asks everything of what could be parsed. Answers whether it
/// could.
fn exercise(dialect: Dialect, text: &str) -> bool {
    match Cron::parse_with(dialect, text) {
        Err(error) => {
            assert!(error.position() <= text.len().min(MAXIMUM_LENGTH), "{text:?}: {error}");
            assert!(text.is_char_boundary(error.position()) || error.position() == MAXIMUM_LENGTH, "{text:?}: {error}");
            let printed = error.to_string();
            assert!(printed.bytes().all(|byte| (b' '..=b'~').contains(&byte)), "{text:?}: {printed:?}");
            assert!(printed.len() < 400, "{printed}");
            false
        }
        Ok(cron) => {
            assert!(text.is_ascii(), "{text:?} was taken");
            let from = Timestamp::from_unix(1_800_000_000, 1);
            let next = cron.next_after(from);
            if let Some(next) = next {
                assert!(next > from);
                assert_eq!(cron.count_in(from, next), 1, "{text:?}");
                assert_eq!(cron.last_until(next), Some(next), "{text:?}");
            }
            assert!(!(cron.never_fires() && next.is_some()), "{text:?}");
            let (first, last) = (cron.next_after(Timestamp::MIN), cron.last_until(Timestamp::MAX));
            assert_eq!(first.is_none(), last.is_none(), "{text:?}");
            assert_eq!(first.is_none(), cron.never_fires(), "{text:?}");
            assert_eq!(cron.next_after(Timestamp::MAX), None);
            true
        }
    }
}

/// Printed and never asserted: the machine may be busy with others.
fn parse_time(dialect: Dialect, text: &str) -> Duration {
    let began = Instant::now();
    let parsed = Cron::parse_with(dialect, text);
    let took = began.elapsed();
    drop(parsed);
    took
}

#[test]
fn four_hundred_thousand_texts_are_answered_and_none_panics() {
    let texts = std::env::var("CASES").map_or(400_000, |cases| cases.parse().unwrap());
    let (mut taken, mut slowest) = (0, (Duration::ZERO, String::new()));
    for seed in 0..texts {
        let random = &mut Random::new(seed);
        let text = text(random);
        let dialect = random.pick(&DIALECTS);
        let took = parse_time(dialect, &text);
        if took > slowest.0 {
            // Not counted: what the machine did meanwhile.
            let took = (0..9).map(|_| parse_time(dialect, &text)).min().unwrap_or(took);
            if took > slowest.0 {
                slowest = (took, format!("{dialect:?} {text:?}"));
            }
        }
        taken += u64::from(exercise(dialect, &text));
    }
    println!("{texts} texts, {taken} of them expressions, the slowest {:?}: {}", slowest.0, slowest.1);
    assert!(taken * 200 > texts, "hardly any text was an expression: {taken}");
}

/// B40
#[test]
fn hostile_input_is_refused_with_a_text_that_can_be_printed() {
    let long = "0,".repeat(50_000);
    let many = "* ".repeat(10_000);
    let padded = format!("{}0 0 * * *", " ".repeat(60_000));
    for text in [
        "1/0 * * * *",
        "*/0 * * * *",
        "99-1 * * * *",
        "0 0 * * \0",
        "\u{1b}]0;x\u{7} * * * *",
        "0 0 * * mon\u{202e}",
        "\u{feff}0 0 * * *",
        "٣ * * * *",
        "0 0 * * *\n",
        "0\u{a0}0 * * *",
        &long,
        &many,
        &padded,
        "",
        " ",
        "\t\t",
    ] {
        for dialect in DIALECTS {
            assert!(!exercise(dialect, text), "{text:?} was taken as {dialect:?}");
        }
    }
}

#[test]
fn the_cap_counts_bytes_and_can_be_raised_by_who_wants_to() {
    let fits = format!("0 0 * * 1{}", ",1".repeat((MAXIMUM_LENGTH - 9) / 2));
    assert!(Cron::parse(&fits).is_ok(), "{} bytes", fits.len());
    let long = format!("{fits},1,1");
    assert!(long.len() > MAXIMUM_LENGTH);
    let error = Cron::parse(&long).unwrap_err();
    assert_eq!((error.position(), error.expected()), (256, "at most 256 bytes"));
    assert!(Cron::parse_capped(Dialect::Classic, &long, 1000).is_ok());
}
