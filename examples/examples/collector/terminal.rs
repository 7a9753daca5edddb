//! Borrows the terminal for the live table, and gives it back whatever happens.
//!
//! # Ground rules
//!
//! The screen is borrowed while `BORROWED` is set, and everything that writes to
//! it or gives it back does so under the lock of standard output. So a panic on
//! another thread finds either a whole frame or none, and nothing is drawn after
//! the screen was given back.

use std::io::{IsTerminal, Write};
use std::sync::atomic::{AtomicBool, Ordering};

use crossterm::terminal::{
    BeginSynchronizedUpdate, Clear, ClearType, EndSynchronizedUpdate, EnterAlternateScreen, LeaveAlternateScreen,
};
use crossterm::{cursor, queue};

static BORROWED: AtomicBool = AtomicBool::new(false);

/// The alternate screen, until it is dropped.
pub(crate) struct Terminal(());

impl Terminal {
    /// Borrows the screen, if there is one that can be drawn on.
    pub(crate) fn borrow() -> Option<Self> {
        let dumb = std::env::var_os("TERM").is_some_and(|terminal| terminal == "dumb");
        let mut out = std::io::stdout().lock();
        if dumb || !out.is_terminal() {
            return None;
        }
        queue!(out, EnterAlternateScreen, cursor::Hide).and_then(|()| out.flush()).ok()?;
        BORROWED.store(true, Ordering::SeqCst);
        drop(out);
        // The message of a panic belongs on the screen that stays.
        let hook = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            give_back();
            hook(panic);
        }));
        Some(Self(()))
    }

    /// Draws a frame over the last one, in one write and without clearing first,
    /// so that nothing flickers. Returns false once the screen was given back.
    pub(crate) fn draw(&self, lines: &[String]) -> bool {
        let mut frame = Vec::new();
        let written = queue!(frame, BeginSynchronizedUpdate, cursor::MoveTo(0, 0)).and_then(|()| {
            for (row, line) in (0..).zip(lines) {
                queue!(frame, cursor::MoveTo(0, row))?;
                frame.write_all(line.as_bytes())?;
                queue!(frame, Clear(ClearType::UntilNewLine))?;
            }
            queue!(frame, Clear(ClearType::FromCursorDown), EndSynchronizedUpdate)
        });
        let mut out = std::io::stdout().lock();
        BORROWED.load(Ordering::SeqCst)
            && written.and_then(|()| out.write_all(&frame)).and_then(|()| out.flush()).is_ok()
    }

    /// Columns and rows.
    pub(crate) fn size(&self) -> (usize, usize) {
        let (columns, rows) = crossterm::terminal::size().unwrap_or((80, 24));
        (columns.into(), rows.into())
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        give_back();
    }
}

fn give_back() {
    let mut out = std::io::stdout().lock();
    if BORROWED.swap(false, Ordering::SeqCst) {
        // Nobody is left to tell if this fails.
        let _ = queue!(out, cursor::Show, LeaveAlternateScreen).and_then(|()| out.flush());
    }
}
