//! Wakes the driver when the wall clock is set, or the machine comes back from
//! suspend.
//!
//! Linux tells whoever waits on a timer that is cancelled when the clock is set. A
//! thread waits there; it exists from the first wall-clock job on, and costs no
//! wake-up until the clock is set. Where there is no such timer the driver looks
//! at the clock more often instead.

#[cfg(target_os = "linux")]
pub(crate) use linux::ClockWatcher;

#[cfg(not(target_os = "linux"))]
pub(crate) use elsewhere::ClockWatcher;

#[cfg(target_os = "linux")]
mod linux {
    use std::os::fd::OwnedFd;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::sync::{Arc, Weak};

    use rustix::io::{Errno, read};
    use rustix::time::{
        Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create, timerfd_settime,
    };

    use crate::shared::Shared;

    /// Seconds since the epoch that are never reached.
    const FAR: i64 = 1 << 40;

    /// The waiting thread, ended when this is dropped.
    pub(crate) struct ClockWatcher {
        timer: Arc<OwnedFd>,
        stopped: Arc<AtomicBool>,
    }

    impl ClockWatcher {
        /// Starts the thread; `None` where the system has no such timer.
        pub(crate) fn start(shared: &Arc<Shared>) -> Option<Self> {
            let timer = Arc::new(timerfd_create(TimerfdClockId::Realtime, TimerfdFlags::CLOEXEC).ok()?);
            arm(&timer, FAR).ok()?;
            let stopped = Arc::new(AtomicBool::new(false));
            let (weak, theirs, flag) = (Arc::downgrade(shared), Arc::clone(&timer), Arc::clone(&stopped));
            let thread = std::thread::Builder::new().name("beatline-clock".to_owned());
            thread.spawn(move || watch(&weak, &theirs, &flag)).ok()?;
            Some(Self { timer, stopped })
        }
    }

    impl Drop for ClockWatcher {
        fn drop(&mut self) {
            self.stopped.store(true, Ordering::SeqCst);
            // An instant that has passed ends the wait. If it fails the thread waits on, for ever.
            let _ = arm(&self.timer, 1);
        }
    }

    fn arm(timer: &OwnedFd, seconds: i64) -> rustix::io::Result<()> {
        let never = Timespec { tv_sec: 0, tv_nsec: 0 };
        let at = Itimerspec { it_interval: never, it_value: Timespec { tv_sec: seconds, tv_nsec: 0 } };
        match timerfd_settime(timer, TimerfdTimerFlags::ABSTIME | TimerfdTimerFlags::CANCEL_ON_SET, &at) {
            // It is armed: this tells that the clock was set since the last read. Whoever
            // arms has the clock looked at after that anyway.
            Ok(_) | Err(Errno::CANCELED) => Ok(()),
            Err(error) => Err(error),
        }
    }

    fn watch(shared: &Weak<Shared>, timer: &OwnedFd, stopped: &AtomicBool) {
        let mut expirations = [0; 8];
        loop {
            let ended = read(timer, &mut expirations);
            if stopped.load(Ordering::SeqCst) {
                return;
            }
            match ended {
                // The clock was set. Armed first and told then, so that nothing between is missed.
                Err(Errno::CANCELED) => {
                    if arm(timer, FAR).is_err() {
                        return;
                    }
                    // Armed again after `drop` had asked for the end: ask once more.
                    if stopped.load(Ordering::SeqCst) {
                        return;
                    }
                    let Some(shared) = shared.upgrade() else { return };
                    shared.driver.notify_one();
                }
                Ok(_) | Err(Errno::INTR) => {}
                Err(_) => return,
            }
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod elsewhere {
    use std::sync::Arc;

    use crate::shared::Shared;

    /// There is none.
    pub(crate) struct ClockWatcher;

    impl ClockWatcher {
        pub(crate) fn start(_shared: &Arc<Shared>) -> Option<Self> {
            None
        }
    }
}
