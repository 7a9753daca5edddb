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
use crate::text::{column, counts, cut, short, spaced};

/// How often the table is drawn.
const REDRAW: Duration = Duration::from_millis(200);
/// So many lines are kept for the space under the table.
const KEPT: usize = 100;

const HEADINGS: [(&str, usize); 6] =
    [("job", 10), ("next", 9), ("last outcome", 23), ("runs", 6), ("skipped", 23), ("late", 24)];

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
        let rule = "─".repeat(width.min(HEADINGS.iter().map(|(_, width)| width + 1).sum())).dark_grey().to_string();
        let mut lines = vec![self.title(width), String::new(), headings(width), rule.clone()];
        let now = Timestamp::from(SystemTime::now());
        lines.extend(self.jobs.iter().map(|job| row(&job.status(), now, width)));
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
            "{} quotes in {} answers, {} acknowledged · {}",
            totals.quotes,
            totals.answers,
            totals.acknowledged,
            path.display()
        );
        cut(&text, width).dark_grey().to_string()
    }
}

fn headings(width: usize) -> String {
    let line: String = HEADINGS.iter().map(|(heading, width)| column(heading, *width) + " ").collect();
    cut(&line, width).bold().to_string()
}

/// One job. Cells are filled up before they are coloured, and those that do not
/// fit the terminal are left out.
fn row(status: &Status, now: Timestamp, width: usize) -> String {
    let books = &status.statistics;
    let runs = StyledContent::new(Default::default(), books.run_count().to_string());
    let skipped = counts(&books.skipped_by_label());
    let skipped = if books.skipped_total() == 0 { skipped.dark_grey() } else { skipped.yellow() };
    let late = match books.started {
        0 => "–".to_owned().dark_grey(),
        _ => format!("{}, at most {}", short(books.last_lateness), short(books.max_lateness)).stylize(),
    };
    let name = status.name.to_string().stylize();
    let cells = [name, next(status, now), last_outcome(books), runs, skipped, late];
    let mut line = String::new();
    let mut left = width;
    for (cell, (_, width)) in cells.into_iter().zip(HEADINGS) {
        let text = cut(&(column(cell.content(), width) + " "), left);
        left -= text.chars().count();
        line += &cell.style().apply(text).to_string();
    }
    line
}

fn next(status: &Status, now: Timestamp) -> StyledContent<String> {
    match (&status.condition, status.next_due) {
        (Condition::Scheduled, Some(due)) => short(due.saturating_since(now)).stylize(),
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
            let text = format!("{} in {}", spaced(outcome.label()), short(books.last_duration));
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
