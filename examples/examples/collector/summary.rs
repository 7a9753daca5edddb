//! The end: every due instant accounted for, as a table and as JSON.

use std::collections::BTreeMap;
use std::io::Write;

use beatline::core::error_chain;
use beatline::scheduler::Status;
use serde::Serialize;

use crate::text::{column, counts, in_one_line};

/// The books at the end.
#[derive(Debug, Serialize)]
pub(crate) struct Summary {
    jobs: Vec<Books>,
    left: Left,
}

/// One job's books.
#[derive(Debug, Serialize)]
struct Books {
    name: String,
    due: u64,
    started: u64,
    pending: u64,
    running: u64,
    outcomes: BTreeMap<&'static str, u64>,
    skipped: BTreeMap<&'static str, u64>,
    /// For people, who read it in the table.
    #[serde(skip)]
    last_error: Option<String>,
}

/// What outlived the end.
#[derive(Debug, Serialize)]
struct Left {
    tasks: usize,
}

impl Summary {
    /// The books of these jobs, and how many tasks are alive that were not before.
    pub(crate) fn new(jobs: &[Status], tasks: usize) -> Self {
        Self { jobs: jobs.iter().map(Books::new).collect(), left: Left { tasks } }
    }

    /// Whether every due instant is accounted for, and nothing is left.
    pub(crate) fn is_clean(&self) -> bool {
        self.left.tasks == 0 && self.jobs.iter().all(|books| books.balance() && books.pending + books.running == 0)
    }

    /// As one line of JSON.
    pub(crate) fn to_json(&self) -> serde_json::Result<String> {
        serde_json::to_string(self).map(|json| json + "\n")
    }

    /// For people.
    pub(crate) fn print(&self, out: &mut impl Write) -> std::io::Result<()> {
        writeln!(out, "\njob          due = started + skipped + pending   outcomes; reasons for skipping")?;
        for books in &self.jobs {
            let mut fates = counts(&books.outcomes);
            if books.running > 0 {
                fates += &format!(", {} running still and cannot be stopped", books.running);
            }
            if !books.skipped.is_empty() {
                fates += &format!("; {}", counts(&books.skipped));
            }
            let Books { name, due, started, pending, .. } = books;
            writeln!(
                out,
                "{} {due:>5}   {started:>7}   {:>7}   {pending:>7}   {fates}",
                column(name, 10),
                books.skips()
            )?;
        }
        for books in &self.jobs {
            if let Some(error) = &books.last_error {
                writeln!(out, "last error of {}: {error}", books.name)?;
            }
        }
        let total = |count: fn(&Books) -> u64| self.jobs.iter().map(count).sum::<u64>();
        let (due, started) = (total(|books| books.due), total(|books| books.started));
        let (skipped, pending, running) =
            (total(Books::skips), total(|books| books.pending), total(|books| books.running));
        let verdict = if self.jobs.iter().all(Books::balance) {
            "every due instant is accounted for"
        } else {
            "THE BOOKS DO NOT BALANCE"
        };
        writeln!(out, "\n{verdict}: due {due} = started {started} + skipped {skipped} + pending {pending}")?;
        writeln!(out, "left behind: {} tasks, {running} runs", self.left.tasks)
    }
}

impl Books {
    fn new(status: &Status) -> Self {
        let statistics = &status.statistics;
        let last_error = statistics.last_error.as_ref().map(|last| in_one_line(&error_chain(&*last.error)));
        Self {
            name: status.name.to_string(),
            due: statistics.due,
            started: statistics.started,
            pending: statistics.pending,
            running: statistics.running,
            outcomes: statistics.outcomes_by_label(),
            skipped: statistics.skipped_by_label(),
            last_error,
        }
    }

    fn skips(&self) -> u64 {
        self.skipped.values().sum()
    }

    /// The law that the scheduler keeps for every job.
    fn balance(&self) -> bool {
        let ended: u64 = self.outcomes.values().sum();
        self.due == self.started + self.skips() + self.pending && self.started == self.running + ended
    }
}
