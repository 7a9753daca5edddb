//! The one loop that sleeps.
//!
//! ```text
//!   commands ─▶ read both clocks ─▶ what is due? ─▶ decide each job ─▶ hand off ─▶ sleep to the earliest deadline
//!       ▲                                                                                     │
//!       └────────────────────────── woken: by the timer, a command, or a shutdown ◀───────────┘
//! ```
//!
//! # Ground rules
//!
//! * Both clocks are read once for each look; all decisions of that look use it.
//! * The loop never spins: it looks again at once only if the engine has more
//!   that is due and there is room for it, and then lets others run in between.
//! * It acts at most once a millisecond, which is as fine as tokio's timer is.
//! * Woken by the timer it yields once before it decides, so that runs which end
//!   at the very instant are over first.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use beatline_core::{Moment, Monotonic, RunFacts};
use tokio::task::yield_now;
use tokio::time::sleep_until;

use crate::body::Kind;
use crate::clock_watcher::ClockWatcher;
use crate::contain::contain;
use crate::engine::{Engine, Look, PORTION};
use crate::job::JobRef;
use crate::runner;
use crate::shared::{Command, Phase, Shared};
use crate::shutdown;
use crate::wall::{WATCHED_RECHECK, WallTurn, Word};

/// How many occurrences of a herd are on their way at once.
pub(crate) const ROOM: usize = 4096;

const MILLISECOND: i64 = 1_000_000;

pub(crate) async fn run(shared: Arc<Shared>) {
    let _gone = Gone(Arc::clone(&shared));
    let mut engine = Engine::default();
    let mut wall = Wall::default();
    let mut pending = Vec::new();
    let mut looked_for = None;
    loop {
        let busy = take_commands(&shared, &mut engine, &mut pending);
        let now = shared.now();
        shared.monitor.driver_looked(now.monotonic, looked_for.take(), &shared);
        let busy = wall.look(&shared, &mut engine, now) || busy;

        let look = match shared.phase() {
            Phase::Running => advance(&shared, &mut engine, now),
            Phase::Over => return,
            _ => match shutdown::advance(&shared, now) {
                Some(at) => Look::At(at),
                None => return,
            },
        };
        match look {
            Look::Now => yield_now().await,
            _ if busy => yield_now().await,
            Look::At(at) => {
                // Not before the next tick of tokio's timer, or a period of a nanosecond would spin.
                let tick = now.monotonic.nanoseconds().div_euclid(MILLISECOND) + 1;
                let at = at.max(Monotonic::from_nanoseconds(tick * MILLISECOND));
                looked_for = Some(at);
                shared.monitor.driver_sleeps(at);
                let sleep = sleep_until(shared.clock.sleep_target(at, now.monotonic));
                tokio::select! {
                    biased;
                    () = shared.driver.notified() => {}
                    () = sleep => yield_now().await,
                }
            }
            Look::WhenRoom => {
                shared.wants_room.store(true, Ordering::SeqCst);
                // Room may have been made before the wish was seen.
                if shared.injector.len() <= ROOM / 2 {
                    shared.wants_room.store(false, Ordering::SeqCst);
                    yield_now().await;
                } else {
                    let at = now.monotonic.saturating_add(Duration::from_millis(1));
                    shared.monitor.driver_sleeps(at);
                    tokio::select! {
                        biased;
                        () = shared.driver.notified() => {}
                        () = sleep_until(shared.clock.sleep_target(at, now.monotonic)) => {}
                    }
                }
            }
            Look::WhenAdded => {
                shared.monitor.driver_sleeps(Monotonic::MAX);
                shared.driver.notified().await;
            }
        }
    }
}

/// The jobs on the wall clock, and what tells when that is set.
#[derive(Default)]
struct Wall {
    turn: WallTurn<JobRef>,
    watcher: Option<ClockWatcher>,
    is_watched: bool,
}

impl Wall {
    /// Returns whether there is more to do at once.
    fn look(&mut self, shared: &Arc<Shared>, engine: &mut Engine<JobRef>, now: Moment) -> bool {
        let begins = !self.is_watched && engine.has_wall_jobs();
        if begins {
            self.begin(shared, engine);
        }
        let is_armed = |job: &JobRef, deadline| job.core().state().is_armed(deadline);
        let (jump, busy) = self.turn.look(engine, now, is_armed, |job, word| {
            let core = job.core();
            let effects = match word {
                Word::SetBack => core.state().clock_set_back(&core.plan, now),
                Word::Refresh => core.state().refresh(&core.plan, now),
            };
            shared.carry_out(&job, effects, now);
        });
        if let Some(jump) = jump {
            shared.telemetry.clock_jumped(jump, now);
        }
        // The clock may have been set after it was read and before it was watched.
        begins || busy
    }

    fn begin(&mut self, shared: &Arc<Shared>, engine: &mut Engine<JobRef>) {
        self.is_watched = true;
        if shared.clock.is_tied() {
            engine.wall_recheck = Duration::MAX; // the wall clock follows the monotonic one
            return;
        }
        self.watcher = ClockWatcher::start(shared);
        if self.watcher.is_some() {
            engine.wall_recheck = WATCHED_RECHECK;
        }
    }
}

/// Takes commands over into the timers, a portion at a time. Returns whether
/// some are left.
fn take_commands(shared: &Shared, engine: &mut Engine<JobRef>, pending: &mut Vec<Command>) -> bool {
    if pending.is_empty() {
        *pending = shared.take_commands();
        pending.reverse();
    }
    for _ in 0..PORTION {
        match pending.pop() {
            None => return false,
            Some(Command::Arm(job, deadline)) => {
                let core = job.core();
                engine.arm(core.plan.line, deadline, core.order_key(), job);
            }
            Some(Command::Disarm { line, deadline, sequence }) => {
                let is = |job: &JobRef| job.core().sequence == sequence;
                let alive = |job: &JobRef| !job.core().state().is_job_cancelled();
                engine.disarm(line, deadline, is, alive);
            }
        }
    }
    !pending.is_empty()
}

/// Decides on what is due and hands off what shall run.
fn advance(shared: &Shared, engine: &mut Engine<JobRef>, now: Moment) -> Look {
    let room = ROOM.saturating_sub(shared.injector.len());
    let (mut handed, mut again, mut inline) = (0, Vec::new(), Vec::new());
    engine.advance(now, room, |job, deadline| {
        // The last net: nothing known gets here, and nothing unknown may end the driver.
        if let Err(message) = contain(|| fire(shared, job, deadline, now, &mut handed, &mut again, &mut inline)) {
            tracing::error!(target: "beatline", message, "a panic reached the driver");
        }
    });
    for (job, deadline) in again {
        let core = job.core();
        engine.arm(core.plan.line, deadline, core.order_key(), Arc::clone(&job));
    }
    shared.wake_runners(handed);
    for (job, facts) in inline {
        call_inline(shared, &job, facts);
    }
    engine.next_look(now, shared.injector.len() < ROOM)
}

/// One entry of the timer has come.
fn fire(
    shared: &Shared,
    job: JobRef,
    deadline: i64,
    now: Moment,
    handed: &mut usize,
    again: &mut Vec<(JobRef, i64)>,
    inline: &mut Vec<(JobRef, RunFacts)>,
) {
    let core = job.core();
    let mut effects = core.state().timer(&core.plan, deadline, now);
    if let Some(facts) = effects.hand_off.take() {
        if job.kind() == Kind::Inline {
            shared.count_active();
            inline.push((Arc::clone(&job), facts));
        } else {
            shared.hand_off(&job, facts);
            *handed += 1;
        }
    }
    let arm = effects.arm.take();
    shared.tell(core, effects, now);
    if let Some(deadline) = arm {
        again.push((job, deadline));
    }
}

/// Calls a body on the driver and warns if it took long.
fn call_inline(shared: &Shared, job: &JobRef, facts: RunFacts) {
    let before = std::time::Instant::now();
    runner::call(job, facts);
    let took = before.elapsed();
    if took > shared.inline_budget {
        shared.telemetry.over_budget(job.core(), took);
    }
}

/// The driver ended: nothing can start any more. It ends after a shutdown, or
/// with the runtime.
struct Gone(Arc<Shared>);

impl Drop for Gone {
    fn drop(&mut self) {
        let shared = &self.0;
        shared.enter_phase(Phase::Over);
        shared.monitor.stop();
        drop(shared.take_commands());
        while let Some(handed) = shared.take_handed_off() {
            drop(handed); // refused
        }
        shared.runners.notify_waiters();
        shutdown::conclude(shared);
    }
}
