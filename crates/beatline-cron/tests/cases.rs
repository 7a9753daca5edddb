//! Every row of the two case files: dialect, expression, zone, from, and what
//! must come out.
#![allow(clippy::unwrap_used)] // a test may panic, its helpers too

mod common;

use beatline_cron::Cron;

fn run(file: &str) -> (usize, Vec<String>) {
    let mut failures = Vec::new();
    let mut rows = 0;
    for (number, line) in file.lines().enumerate().skip(1) {
        let columns: Vec<_> = line.split('\t').collect();
        let [name, expression, zone, from, expected, ..] = columns[..] else {
            panic!("line {}: too few columns", number + 1);
        };
        rows += 1;
        // The longer file explains the dialect in parentheses.
        let dialect = common::dialect(name.split(' ').next().unwrap());
        let expression = expression.replace("\\t", "\t");
        let wanted: Vec<_> = expected.split(',').collect();
        let found = match Cron::parse_with(dialect, &expression) {
            Err(_) => vec!["ERROR".to_owned()],
            Ok(cron) => common::upcoming(&cron.zone(zone).unwrap(), common::at(from), wanted.len()),
        };
        if found != wanted {
            failures
                .push(format!("line {}: {name} {expression:?} {zone} {from}: {wanted:?}, not {found:?}", number + 1));
        }
    }
    (rows, failures)
}

#[test]
fn all_rows_of_the_cases_hold() {
    let (rows, failures) = run(include_str!("data/cron-cases.tsv"));
    assert!(failures.is_empty(), "{} of {rows} rows fail:\n{}", failures.len(), failures.join("\n"));
    println!("{rows} rows");
    assert_eq!(rows, 129);
}

#[test]
fn all_rows_that_other_evaluators_state_hold() {
    let (rows, failures) = run(include_str!("data/cron-cases-peers.tsv"));
    assert!(failures.is_empty(), "{} of {rows} rows fail:\n{}", failures.len(), failures.join("\n"));
    println!("{rows} rows");
    assert_eq!(rows, 1456);
}
