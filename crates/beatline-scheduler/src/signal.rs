//! SIGINT and SIGTERM.

use std::future::Future;

use beatline_core::Error;
use tokio::runtime::Handle;

use crate::contain::contain;

/// Completes at the first SIGINT (Ctrl-C) or SIGTERM; a future of its own, for
/// servers that end by one.
///
/// From the call on, the process no longer ends by these signals by itself.
///
/// # Errors
///
/// [`Error::NoRuntime`] outside a tokio runtime, [`Error::NoIoDriver`] on one
/// without I/O, [`Error::Signal`] if the system refuses.
///
/// # Cancel safety
///
/// A signal that came while the future was not polled is not lost, as long as the
/// future lives.
pub fn shutdown_signal() -> Result<impl Future<Output = ()> + Send + 'static, Error> {
    let mut signals = Signals::new()?;
    Ok(async move { signals.next().await })
}

/// Both signals, one after the other.
pub(crate) struct Signals {
    #[cfg(unix)]
    interrupt: tokio::signal::unix::Signal,
    #[cfg(unix)]
    terminate: tokio::signal::unix::Signal,
    #[cfg(windows)]
    interrupt: tokio::signal::windows::CtrlC,
    #[cfg(windows)]
    terminate: tokio::signal::windows::CtrlClose,
}

impl Signals {
    pub(crate) fn new() -> Result<Self, Error> {
        Handle::try_current().map_err(|_| Error::NoRuntime)?;
        // tokio panics where it lacks an I/O driver, and has no other way to ask.
        contain(Self::install).map_err(|_| Error::NoIoDriver)?.map_err(Error::Signal)
    }

    #[cfg(unix)]
    fn install() -> std::io::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        Ok(Self { interrupt: signal(SignalKind::interrupt())?, terminate: signal(SignalKind::terminate())? })
    }

    #[cfg(windows)]
    fn install() -> std::io::Result<Self> {
        use tokio::signal::windows::{ctrl_c, ctrl_close};
        Ok(Self { interrupt: ctrl_c()?, terminate: ctrl_close()? })
    }

    pub(crate) async fn next(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }
}
