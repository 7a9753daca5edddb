//! The program `cron_next`, as it is called from a shell.
#![allow(clippy::unwrap_used)] // a test may panic, its helpers too

mod support;

use support::{run, text};

/// What goes to standard output, when all is well.
fn answer(arguments: &[&str]) -> String {
    let output = run("cron_next", arguments, "");
    assert_eq!(output.status.code(), Some(0), "{arguments:?}: {}", text(&output.stderr));
    assert_eq!(text(&output.stderr), "");
    text(&output.stdout).to_owned()
}

/// What goes to standard error, when the exit code is 2 and there is no output.
fn complaint(arguments: &[&str]) -> String {
    let output = run("cron_next", arguments, "");
    assert_eq!(output.status.code(), Some(2), "{arguments:?}");
    assert_eq!(text(&output.stdout), "");
    text(&output.stderr).to_owned()
}

fn batch(input: &str) -> String {
    let output = run("cron_next", ["--batch"], input);
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(text(&output.stderr), "");
    text(&output.stdout).to_owned()
}

#[test]
fn three_instants_of_the_classic_dialect_unless_told_otherwise() {
    let found = answer(&["56 * * * *", "UTC", "2026-01-01T00:00:00Z"]);
    assert_eq!(found, "2026-01-01T00:56:00Z\n2026-01-01T01:56:00Z\n2026-01-01T02:56:00Z\n");
    let found = answer(&["0 3 * * mon-fri", "Asia/Shanghai", "2026-01-02T12:00:00+08:00", "1"]);
    assert_eq!(found, "2026-01-04T19:00:00Z\n");
    assert_eq!(answer(&["@daily", "UTC", "2026-01-01T00:00:00Z", "0"]), "");
    assert_eq!(answer(&["@daily", "UTC", "2026-01-01T00:00:00Z", "400"]).lines().count(), 400);
}

#[test]
fn never_where_there_is_none_or_no_further_one() {
    assert_eq!(answer(&["0 0 30 2 *", "UTC", "2026-01-01T00:00:00Z"]), "NEVER\n");
    let found = answer(&["--dialect", "seven", "0 0 12 1 1 * 2027", "UTC", "2026-01-01T00:00:00Z", "5"]);
    assert_eq!(found, "2027-01-01T12:00:00Z\nNEVER\n");
}

#[test]
fn each_dialect_has_a_short_name() {
    for (name, expression, wanted) in [
        ("vixie5", "0 12 * * 5", "2026-01-02T12:00:00Z\n"),
        ("ext5", "0 12 L * *", "2026-01-31T12:00:00Z\n"),
        ("six", "7 0 12 * * 5", "2026-01-02T12:00:07Z\n"),
        ("seven", "7 0 12 1 1 * 2028", "2028-01-01T12:00:07Z\n"),
        ("quartz6", "7 0 12 ? * 6", "2026-01-02T12:00:07Z\n"),
        ("quartz7", "7 0 12 L-3 * ? 2027", "2027-01-28T12:00:07Z\n"),
    ] {
        let arguments = ["--dialect", name, expression, "UTC", "2026-01-01T00:00:00Z", "1"];
        assert_eq!(answer(&arguments), wanted, "{name}");
        // The option may come last as well.
        let arguments = [expression, "UTC", "2026-01-01T00:00:00Z", "1", "--dialect", name];
        assert_eq!(answer(&arguments), wanted, "{name}");
    }
    assert!(complaint(&["--dialect", "vixie", "* * * * *", "UTC", "2026-01-01T00:00:00Z"]).contains("`vixie`"));
}

#[test]
fn an_error_in_the_expression_has_a_caret_under_its_byte() {
    assert_eq!(
        complaint(&["0 24 * * *", "UTC", "2026-01-01T00:00:00Z"]),
        "error: byte 2 (hour): expected a number from 0 to 23, found `24`\n  0 24 * * *\n    ^\n"
    );
    assert_eq!(
        complaint(&["*/0 * * * *", "UTC", "2026-01-01T00:00:00Z"]),
        "error: byte 2 (minute): expected a step of at least 1, found `0`\n  */0 * * * *\n    ^\n"
    );
    // What is longer on the screen than in the expression moves the caret along.
    let escaped = complaint(&["0 0 * * 1,\u{0663}", "UTC", "2026-01-01T00:00:00Z"]);
    let lines: Vec<&str> = escaped.lines().collect();
    assert!(lines[0].starts_with("error: byte 10 (day of week)"), "{escaped}");
    assert_eq!(lines[1..], ["  0 0 * * 1,\\u{663}", "            ^"]);
    let empty = complaint(&["", "UTC", "2026-01-01T00:00:00Z"]);
    assert!(empty.ends_with("\n  \n  ^\n"), "{empty:?}");
}

#[test]
fn what_else_is_wrong_is_named() {
    let from = "2026-01-01T00:00:00Z";
    for (arguments, named) in [
        (&["* * * * *", "Asia/Atlantis", from][..], "Asia/Atlantis"),
        (&["* * * * *", "UTC", "yesterday"], "timestamp"),
        (&["* * * * *", "UTC", from, "many"], "`many`"),
        (&["* * * * *", "UTC"], "usage:"),
        (&[], "usage:"),
    ] {
        let complaint = complaint(arguments);
        assert!(complaint.contains(named), "{arguments:?}: {complaint}");
    }
}

#[test]
fn a_batch_has_a_line_for_a_line() {
    let input = "vixie5\t0 0 * * *\tUTC\t2026-01-01T00:00:00Z\t2
vixie5\t0\\t0 * *\\t*\tUTC\t2026-01-01T00:00:00Z\t1
quartz6\t0 0 12 ? * ?\tUTC\t2026-01-01T00:00:00Z\t1
vixie5\t0 0 30 2 *\tUTC\t2026-01-01T00:00:00Z\t3
seven\t0 0 12 1 1 * 2027\tUTC\t2026-01-01T00:00:00Z\t3
vixie5\t0 0 * *\\t13\tUTC\t2026-01-01T00:00:00Z\t3
nine\t* * * * *\tUTC\t2026-01-01T00:00:00Z\t3

vixie5\t0 0 * * *\tEurope/Berlin\t2026-01-01T00:00:00Z\t1
";
    let output = batch(input);
    let lines: Vec<&str> = output.lines().collect();
    assert_eq!(lines.len(), input.lines().count(), "{output}");
    assert_eq!(lines[0], "2026-01-02T00:00:00Z,2026-01-03T00:00:00Z");
    assert_eq!(lines[1], "2026-01-02T00:00:00Z");
    assert!(lines[2].starts_with("ERROR 11 "), "{}", lines[2]);
    assert_eq!(lines[3], "NEVER");
    assert_eq!(lines[4], "2027-01-01T12:00:00Z,NEVER");
    assert!(lines[5].starts_with("ERROR 8 "), "{}", lines[5]);
    assert!(lines[6].starts_with("ERROR 0 ") && lines[6].contains("nine"), "{}", lines[6]);
    assert!(lines[7].starts_with("ERROR 0 "), "{}", lines[7]);
    assert_eq!(lines[8], "2026-01-01T23:00:00Z");
}

/// All in one process.
#[test]
fn a_batch_answers_every_row_of_the_cases() {
    let cases = include_str!("../../crates/beatline-cron/tests/data/cron-cases.tsv");
    let (mut input, mut wanted) = (String::new(), Vec::new());
    for line in cases.lines().skip(1) {
        let columns: Vec<&str> = line.split('\t').collect();
        // The file explains the dialect in parentheses.
        let dialect = columns[0].split(' ').next().unwrap();
        let (expression, zone, from, expected) = (columns[1], columns[2], columns[3], columns[4]);
        let count = expected.split(',').count();
        input += &format!("{dialect}\t{expression}\t{zone}\t{from}\t{count}\n");
        wanted.push((line, expected));
    }
    let output = batch(&input);
    assert_eq!(output.lines().count(), wanted.len());
    assert_eq!(wanted.len(), 129);
    for (found, (line, expected)) in output.lines().zip(wanted) {
        let matches = if expected == "ERROR" { is_error(found) } else { found == expected };
        assert!(matches, "{line}: {found}");
    }
}

/// `ERROR position message`.
fn is_error(answer: &str) -> bool {
    let mut words = answer.splitn(3, ' ');
    let word = words.next() == Some("ERROR");
    let position = words.next().is_some_and(|position| position.parse::<usize>().is_ok());
    word && position && words.next().is_some_and(|message| !message.is_empty())
}
