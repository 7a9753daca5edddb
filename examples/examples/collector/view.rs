//! What a person sees while the jobs run: a live table on a terminal, lines
//! otherwise.
//!
//! It has a thread of its own, outside the runtime: a picture of a stalled runtime
//! is worth something only if it does not stall as well.

use std::collections::VecDeque;
use std::io::Write;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime};

use beatline::scheduler::{Condition, Statistics, Status};
use beatline::{JobHandle, Timestamp};
use crossterm::style::{StyledContent, Stylize};

use crate::jobs::Collector;
use crate::journal::{Entry, Line, Tone};
use crate::terminal::Terminal;
use crate::text::{column, countdown, counts, cut, short, spaced};

/// How often the table is drawn.
const REDRAW: Duration = Duration::from_millis(200);
/// So many lines are kept for the space under the table.
const KEPT: usize = 100;

/// The columns and their widths; the skipped have what the terminal leaves.
const COLUMNS: [(&str, usize); 7] =
    [("job", 9), ("next", 9), ("last outcome", 20), ("runs", 6), ("skipped", 0), ("late", 8), ("at most", 8)];
const GAP: usize = 2;
const SKIPPED_WIDTH: std::ops::RangeInclusive<usize> = 8..=30;

/// Shows until the journal ends.
pub(crate) fn start(
    entries: Receiver<Entry>,
    jobs: Vec<JobHandle>,
    collector: Arc<Collector>,
) -> std::io::Result<JoinHandle<()>> {
    let view = View { jobs, collector, since: Instant::now(), recent: VecDeque::new() };
    std::thread::Builder::new().name("view".to_owned()).spawn(move || view.show(&entries))
}

struct View {
    jobs: Vec<JobHandle>,
    collector: Arc<Collector>,
    since: Instant,
    recent: VecDeque<Line>,
}

impl View {
    fn show(mut self, entries: &Receiver<Entry>) {
        let mut terminal = Terminal::borrow();
        let mut due = Instant::now();
        loop {
            match entries.recv_timeout(due.saturating_duration_since(Instant::now())) {
                Ok(Entry::Line(line)) => self.take(line, terminal.is_some()),
                Ok(Entry::End) | Err(RecvTimeoutError::Disconnected) => return,
                Err(RecvTimeoutError::Timeout) => {
                    if let Some(screen) = &terminal {
                        let (width, height) = screen.size();
                        // Taken away by a panic: lines from here on.
                        if !screen.draw(&self.frame(width, height)) {
                            terminal = None;
                        }
                    }
                    due = Instant::now() + REDRAW;
                }
            }
        }
    }

    /// Keeps a line for the screen, or prints it.
    fn take(&mut self, line: Line, on_screen: bool) {
        if !on_screen {
            let at = line.at.as_secs_f64();
            // Who closed the other end wants no more lines, and no error either.
            let _ = writeln!(std::io::stdout(), "{at:>8.3} s  {:<10} {}", line.job, line.text);
        } else if line.tone != Tone::Routine {
            self.recent.push_back(line);
            if self.recent.len() > KEPT {
                self.recent.pop_front();
            }
        }
    }

    /// The whole picture.
    fn frame(&self, width: usize, height: usize) -> Vec<String> {
        let columns = columns(width);
        let whole: usize = columns.iter().map(|(_, width)| width + GAP).sum();
        let rule = "─".repeat(width.min(whole - GAP)).dark_grey().to_string();
        let headings = columns.map(|(heading, _)| heading.to_owned().bold());
        let mut lines = vec![self.title(width), String::new(), row(headings, columns, width), rule.clone()];
        let now = Timestamp::from(SystemTime::now());
        lines.extend(self.jobs.iter().map(|job| row(cells(&job.status(), now), columns, width)));
        lines.extend([rule, self.totals(width), String::new()]);
        let room = height.saturating_sub(lines.len());
        let first = self.recent.len().saturating_sub(room);
        lines.extend(self.recent.iter().skip(first).map(|line| recent(line, width)));
        lines.truncate(height);
        lines
    }

    fn title(&self, width: usize) -> String {
        let source = self.collector.source.url();
        let speed = self.collector.pace.factor();
        let elapsed = short(Duration::from_secs(self.since.elapsed().as_secs()));
        let rest = format!("  {source} · {speed}× · {elapsed} · Ctrl-C ends");
        let name = cut("collector", width);
        format!("{}{}", name.as_str().bold(), cut(&rest, width.saturating_sub(name.len())).dark_grey())
    }

    fn totals(&self, width: usize) -> String {
        let totals = self.collector.store.totals();
        let path = self.collector.store.path();
        let text = format!(
            "answers {} · acknowledged {} · quotes {} in {}",
            totals.answers,
            totals.acknowledged,
            totals.quotes,
            path.display()
        );
        cut(&text, width).dark_grey().to_string()
    }
}

/// The columns for a terminal of this width.
fn columns(width: usize) -> [(&'static str, usize); 7] {
    let others: usize = COLUMNS.iter().map(|(_, width)| width + GAP).sum();
    let skipped = width.saturating_sub(others).clamp(*SKIPPED_WIDTH.start(), *SKIPPED_WIDTH.end());
    COLUMNS.map(|(heading, width)| (heading, if width == 0 { skipped } else { width }))
}

/// Cells side by side, filled up before they are coloured; what does not fit the
/// terminal is cut.
fn row(cells: [StyledContent<String>; 7], columns: [(&str, usize); 7], width: usize) -> String {
    let (mut line, mut left) = (String::new(), width);
    for (cell, (_, width)) in cells.into_iter().zip(columns) {
        let text: String = format!("{}{:GAP$}", column(cell.content(), width), "").chars().take(left).collect();
        left -= text.chars().count();
        line += &cell.style().apply(text).to_string();
    }
    line
}

/// What the table says of one job.
fn cells(status: &Status, now: Timestamp) -> [StyledContent<String>; 7] {
    let books = &status.statistics;
    let skipped = counts(&books.skipped_by_label());
    let skipped = if books.skipped_total() == 0 { skipped.dark_grey() } else { skipped.yellow() };
    let late = |lateness| if books.started == 0 { "–".to_owned().dark_grey() } else { short(lateness).stylize() };
    [
        status.name.to_string().stylize(),
        next(status, now),
        last_outcome(books),
        books.run_count().to_string().stylize(),
        skipped,
        late(books.last_lateness),
        late(books.max_lateness),
    ]
}

fn next(status: &Status, now: Timestamp) -> StyledContent<String> {
    match (&status.condition, status.next_due) {
        (Condition::Scheduled, Some(due)) => countdown(due.saturating_since(now)).stylize(),
        (Condition::AwaitingCompletion, _) => "after run".to_owned().stylize(),
        (Condition::Idle, _) => "on demand".to_owned().dark_grey(),
        (Condition::Faulted { .. }, _) => "faulted".to_owned().red(),
        (Condition::Cancelled, _) => "cancelled".to_owned().dark_grey(),
        _ => "–".to_owned().dark_grey(),
    }
}

fn last_outcome(books: &Statistics) -> StyledContent<String> {
    if let Some(age) = books.oldest_running {
        return format!("running for {}", short(age)).cyan();
    }
    match books.last_outcome {
        None => "–".to_owned().dark_grey(),
        Some(outcome) => {
            let text = format!("{}, {}", spaced(outcome.label()), short(books.last_duration));
            if outcome.is_failure() { text.red() } else { text.green() }
        }
    }
}

fn recent(line: &Line, width: usize) -> String {
    let at = format!("{:>7.1} s  ", line.at.as_secs_f64());
    let text = cut(&format!("{:<10} {}", line.job, line.text), width.saturating_sub(at.len()));
    let text = match line.tone {
        Tone::Routine | Tone::Note => text.stylize(),
        Tone::Warning => text.yellow(),
        Tone::Failure => text.red(),
    };
    format!("{}{text}", cut(&at, width).dark_grey())
}
