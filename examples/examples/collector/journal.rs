//! What happened, in lines: an observer of the scheduler, and the jobs' own notes.

use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::{Duration, Instant};

use beatline::Run;
use beatline::core::{Event, EventKind, Finished, Observer, Outcome, Stalled, Verdict, error_chain};

use crate::text::{in_one_line, short, spaced};

/// So many lines may wait to be shown.
const WAITING: usize = 1_024;

/// Where lines are written to. Clones are the same journal.
#[derive(Clone)]
pub(crate) struct Journal {
    since: Instant,
    lines: SyncSender<Entry>,
}

/// What the view is told.
pub(crate) enum Entry {
    Line(Line),
    /// No more lines; time to give back the terminal.
    End,
}

/// One thing that happened.
pub(crate) struct Line {
    pub(crate) at: Duration,
    pub(crate) tone: Tone,
    pub(crate) job: String,
    pub(crate) text: String,
}

/// How much a line matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tone {
    /// All is well, and nothing new.
    Routine,
    Note,
    Warning,
    Failure,
}

impl Journal {
    /// A journal, and where its lines come out.
    pub(crate) fn open() -> (Self, Receiver<Entry>) {
        let (lines, receiver) = sync_channel(WAITING);
        (Self { since: Instant::now(), lines }, receiver)
    }

    /// A note by a job.
    pub(crate) fn note(&self, run: &Run, text: impl Into<String>) {
        self.write(Tone::Note, run.job(), text.into());
    }

    /// A note by the program.
    pub(crate) fn say(&self, text: impl Into<String>) {
        self.write(Tone::Note, "", text.into());
    }

    /// Ends it.
    pub(crate) fn end(&self) {
        // Waits for room, unlike lines: the end must not be lost. Without a reader it is over anyway.
        let _ = self.lines.send(Entry::End);
    }

    fn write(&self, tone: Tone, job: &str, text: String) {
        let line = Line { at: self.since.elapsed(), tone, job: job.to_owned(), text: in_one_line(&text) };
        // An observer must not block: a terminal that does not keep up loses lines, no job loses time.
        let _ = self.lines.try_send(Entry::Line(line));
    }
}

impl Observer for Journal {
    fn observe(&self, event: &Event) {
        if let Some((tone, text)) = describe(&event.kind) {
            self.write(tone, event.job.as_deref().unwrap_or(""), text);
        }
    }
}

/// An event in words; `None` for those that say nothing new.
fn describe(event: &EventKind) -> Option<(Tone, String)> {
    match event {
        EventKind::Finished(finished) => Some(ended(finished)),
        EventKind::Skipped { reason, count } => {
            Some((Tone::Warning, format!("{count} skipped: {}", spaced(reason.label()))))
        }
        EventKind::Decided(decided) if decided.misfire => {
            let others = decided.coalesced;
            Some((
                Tone::Warning,
                format!("missed by {}; one run for it and {others} before it", short(decided.lateness)),
            ))
        }
        EventKind::Decided(decided) => match decided.verdict {
            Verdict::Skipped(reason) => Some((Tone::Warning, format!("skipped: {}", spaced(reason.label())))),
            _ => None,
        },
        EventKind::FellBehind { by } => {
            Some((Tone::Warning, format!("behind by {}: runs take longer than the period", short(*by))))
        }
        EventKind::ClockJump { by, backward } => {
            let direction = if *backward { "back" } else { "forward" };
            Some((Tone::Warning, format!("the wall clock jumped {direction} by {}", short(*by))))
        }
        EventKind::CaughtUp => Some((Tone::Note, "caught up".to_owned())),
        EventKind::Faulted { reason } => Some((Tone::Failure, format!("scheduled no more: {reason}"))),
        EventKind::Stalled(stalled) => Some(stall(stalled)),
        EventKind::CallbackPanicked { callback, message } => {
            Some((Tone::Failure, format!("a panic in the {} was contained: {message}", callback.label())))
        }
        _ => None,
    }
}

fn ended(finished: &Finished) -> (Tone, String) {
    let mut text = format!("{} after {}", spaced(&finished.outcome.to_string()), short(finished.duration));
    if !finished.outcome.is_failure() {
        let tone = if finished.error.is_some() { Tone::Warning } else { Tone::Routine };
        return (tone, text);
    }
    // A time-out's error says no more than the outcome does.
    if let Some(error) = finished.error.as_ref().filter(|_| finished.outcome != Outcome::TimedOut) {
        text += &format!(": {}", error_chain(&**error));
    }
    if finished.failures_in_a_row > 1 {
        text += &format!(" ({} in a row)", finished.failures_in_a_row);
    }
    (Tone::Failure, text)
}

fn stall(stalled: &Stalled) -> (Tone, String) {
    let culprit =
        stalled.culprit.as_deref().map_or("something that is no job".to_owned(), |job| format!("job {job:?}"));
    let lag = short(stalled.lag);
    match (stalled.over, stalled.driver_late) {
        (false, false) => (Tone::Failure, format!("stall: {culprit} has been blocking a worker for {lag}")),
        (false, true) => (Tone::Failure, format!("stall: {culprit} has been holding up the runtime for {lag}")),
        (true, _) => (Tone::Warning, format!("stall over: {culprit} blocked for {lag}")),
    }
}
