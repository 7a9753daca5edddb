//! What became of a scenario: lines, rows and a drawing.

use std::time::Duration;

use beatline_core::{Fate, Outcome, SkipReason};
use beatline_scheduler::{Condition, Statistics};

/// What became of a scenario.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Record {
    /// One line for each occurrence, by due instant.
    pub lines: Vec<Line>,
    /// The most runs active at once.
    pub most_active: usize,
    /// The most occurrences waiting at once.
    pub most_waiting: usize,
    /// What the job waited for at the end.
    pub condition: Condition,
    /// The job's own books at the end.
    pub statistics: Statistics,
    pub(super) unit: Duration,
}

/// What became of one occurrence.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Line {
    /// When it was due.
    pub due: Duration,
    /// Its fate; `None` if it had none when the scenario ended.
    pub fate: Option<Fate>,
    /// When the fate of one that never started was known.
    pub settled: Option<Duration>,
    /// When its run started.
    pub start: Option<Duration>,
    /// When its run ended.
    pub end: Option<Duration>,
    /// How late the scheduler came to it, waiting for other runs not included.
    pub lateness: Duration,
    /// How many missed occurrences its run stood for.
    pub coalesced: u64,
}

impl Line {
    /// From the due instant to the start, waiting for other runs included.
    #[must_use]
    pub fn late(&self) -> Option<Duration> {
        self.start.map(|start| start.saturating_sub(self.due))
    }
}

impl Record {
    /// One text for each occurrence: `0→23`, `23→27 late 13`, `Skipped{Overlap}`,
    /// `Skipped{Superseded} at 20`.
    #[must_use]
    pub fn rows(&self) -> Vec<String> {
        self.lines.iter().map(|line| self.row(line)).collect()
    }

    fn row(&self, line: &Line) -> String {
        let mut text = match (line.start, line.end, line.fate) {
            (Some(start), Some(end), Some(Fate::Ran(outcome))) => {
                let mut text = format!("{}→{}", self.count(start), self.count(end));
                if outcome != Outcome::Completed {
                    text.push_str(&format!(" {outcome}"));
                }
                text
            }
            (Some(start), ..) => format!("{}→", self.count(start)),
            (None, _, Some(Fate::Skipped(reason))) => format!("Skipped{{{reason:?}}}"),
            _ => "waits".to_owned(),
        };
        if let Some(late) = line.late().filter(|late| !late.is_zero()) {
            text.push_str(&format!(" late {}", self.count(late)));
        }
        if line.start.is_some() && line.coalesced > 0 {
            text.push_str(&format!(" coalesced {}", line.coalesced));
        }
        let waited = |reason| matches!(reason, SkipReason::Superseded | SkipReason::Shutdown | SkipReason::Removed);
        match (line.fate, line.settled) {
            (Some(Fate::Skipped(reason)), Some(settled)) if waited(reason) => {
                text.push_str(&format!(" at {}", self.count(settled)));
            }
            _ => {}
        }
        text
    }

    /// In units, with at most three decimals.
    fn count(&self, duration: Duration) -> f64 {
        (duration.as_secs_f64() / self.unit.as_secs_f64() * 1000.0).round() / 1000.0
    }

    fn column(&self, at: Duration) -> usize {
        (at.as_nanos() / self.unit.as_nanos().max(1)) as usize
    }

    /// A drawing, one column for each unit: `┣━` a run from its start, `·` an
    /// occurrence that waits, `x` one that was skipped.
    #[must_use]
    pub fn drawing(&self) -> String {
        let mut lanes: Vec<Vec<char>> = vec![Vec::new()];
        let mut waits = Vec::new();
        for line in &self.lines {
            let due = self.column(line.due);
            if let (Some(start), Some(end)) = (line.start, line.end) {
                let (start, end) = (self.column(start), self.column(end));
                let free = lanes.iter().position(|lane| lane.len() <= start);
                let lane = free.unwrap_or(lanes.len());
                lanes.resize(lanes.len().max(lane + 1), Vec::new());
                put(&mut lanes[lane], start, '┣');
                (start + 1..end).for_each(|column| put(&mut lanes[lane], column, '━'));
                (due..start).for_each(|column| put(&mut waits, column, '·'));
            } else if matches!(line.fate, Some(Fate::Skipped(_))) {
                put(&mut waits, due, 'x');
            }
        }
        let mut ruler = Vec::new();
        for line in &self.lines {
            let (column, text) = (self.column(line.due), format!("{}", self.count(line.due)));
            if ruler.is_empty() || ruler.len() < column {
                text.chars().enumerate().for_each(|(index, digit)| put(&mut ruler, column + index, digit));
            }
        }
        let mut drawn: Vec<_> = std::iter::once(ruler).chain(lanes).chain([waits]).collect();
        drawn.retain(|row| !row.is_empty());
        drawn.into_iter().map(|row| row.into_iter().collect::<String>()).collect::<Vec<_>>().join("\n")
    }
}

fn put(row: &mut Vec<char>, column: usize, sign: char) {
    if row.len() <= column {
        row.resize(column + 1, ' ');
    }
    row[column] = sign;
}
