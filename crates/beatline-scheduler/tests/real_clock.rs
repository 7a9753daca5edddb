//! A real process, in real time, whose wall clock is set under it, and which is
//! stopped for a while.
//!
//! ```text
//!   wall clock     M−3 ─▶ M+1 ┐          ┌ M+5 ─▶ ┐           ┌ M+10 ─▶ ▮▮ stopped 5 s ▮▮ ─▶
//!                             └ M−19 ─▶ ─┘        └ M−2 h ─▶ ─┘
//!                            −20 s      +20 s    −2 h        +2 h
//!   every second    ▲▲▲▲▲      ▲▲▲▲      1×, ▲▲    ▲▲▲▲        1×, ▲▲              1×, ▲▲
//!   every minute       M      (holds: M is not repeated)       1×
//!   every 200 ms   ▲▲▲▲▲▲▲▲▲▲▲▲▲▲▲▲▲▲▲▲▲▲▲▲▲▲▲▲▲▲▲▲▲▲▲▲▲▲▲▲▲▲▲▲▲▲▲▲▲▲▲▲▲▲          1×, ▲▲
//! ```
//!
//! Set back, the clock shows times before the jobs were added.
//! The kernel does not know of the shim and reports nothing, so the child sees a
//! shift at its next look: its 200 ms job lets it look often.

// A statically linked C library takes nothing in from outside.
#![cfg(all(target_os = "linux", target_env = "gnu"))]
#![allow(clippy::unwrap_used, reason = "tests")]

mod support;

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use beatline_cron::{Cron, Dialect};
use beatline_fixed_rate::FixedRate;
use beatline_scheduler::Scheduler;
use beatline_scheduler::core::{Due, Event, EventKind};
use support::{millis, runtime, secs};

const OFFSET_FILE: &str = "BEATLINE_CLOCK_OFFSET";
const SECOND: i64 = 1_000_000_000;
const HOUR: i64 = 3600 * SECOND;

/// How long any one thing may take to show, on a machine that is busy.
const PATIENCE: Duration = Duration::from_secs(20);

/// The jobs of the child, the length of their periods, and whether they are on
/// the wall clock.
const JOBS: [(&str, i64, bool); 5] = [
    ("second", SECOND, true),
    ("four", 4 * SECOND, true),
    ("minute", 60 * SECOND, true),
    ("aligned", SECOND / 2, true),
    ("rate", SECOND / 5, false),
];

// ----- the child ----------------------------------------------------------

#[test]
#[ignore = "the child of the test below"]
fn child_under_the_shim() {
    // libtest has begun a line.
    println!();
    runtime(2).block_on(async {
        let scheduler = Scheduler::builder().observer(print).build().unwrap();
        let cron = |text| Cron::parse_with(Dialect::Seconds, text).unwrap();
        let rate = |period| FixedRate::every(millis(period));
        let jobs = [
            scheduler.job("second", cron("* * * * * *")).run(|_| async {}).unwrap(),
            scheduler.job("four", cron("*/4 * * * * *")).run(|_| async {}).unwrap(),
            scheduler.job("minute", cron("0 * * * * *")).run(|_| async {}).unwrap(),
            scheduler.job("aligned", rate(500).aligned()).run(|_| async {}).unwrap(),
            scheduler.job("rate", rate(200)).run(|_| async {}).unwrap(),
        ];
        // The parent closes it when it has seen enough.
        let closed = tokio::task::spawn_blocking(|| std::io::stdin().lines().count());
        closed.await.unwrap();
        scheduler.shutdown(secs(5)).await;
        for job in jobs {
            let books = job.statistics();
            let (due, started, skipped) = (books.due, books.started, books.skipped_total());
            assert!(books.is_balanced(), "{books:?}");
            println!("books {} {due} {started} {skipped} {} {}", job.name(), books.pending, books.running);
        }
    });
}

/// One line an event; `println!` writes each line out at once.
fn print(event: &Event) {
    let job = event.job.as_deref().unwrap_or("-");
    match &event.kind {
        EventKind::Decided(decided) => {
            let due = match decided.cursor {
                Due::Monotonic(at) => i128::from(at.nanoseconds()),
                Due::Wall(at) => at.unix_nanoseconds(),
            };
            let (monotonic, wall) = (event.at.monotonic.nanoseconds(), event.at.wall.unix_nanoseconds());
            println!("decided {job} {due} {} {} {monotonic} {wall}", decided.due, decided.coalesced);
        }
        EventKind::Started(facts) => println!("started {job} {}", facts.id),
        EventKind::ClockJump { by, backward } => {
            let by = by.as_nanos() as i64;
            println!("jump {}", if *backward { -by } else { by });
        }
        _ => {}
    }
}

// ----- the parent ---------------------------------------------------------

/// The child, whose wall clock this process shifts. Ended with this.
struct Shifted {
    child: Child,
    offset: File,
    shift: i64,
    lines: Receiver<String>,
    seen: Seen,
}

/// What the child has printed.
#[derive(Default)]
struct Seen {
    /// One for each time that the clock was set or the process stopped.
    phases: Vec<Phase>,
    started: BTreeMap<String, Vec<u64>>,
    jumps: Vec<i64>,
    /// Due, started, skipped, pending and running.
    books: BTreeMap<String, Vec<u64>>,
}

/// The decisions about each job while nobody touched the clock.
type Phase = BTreeMap<String, Vec<Decision>>;

#[derive(Clone, Copy, Debug)]
struct Decision {
    at: i64,
    due: u64,
    coalesced: u64,
    monotonic: i64,
    wall: i64,
}

impl Seen {
    fn line(&mut self, line: &str) {
        let words: Vec<_> = line.split(' ').collect();
        match words[..] {
            ["decided", job, at, due, coalesced, monotonic, wall] => {
                let number = |word: &str| word.parse().unwrap();
                let (due, coalesced) = (due.parse().unwrap(), coalesced.parse().unwrap());
                let decision =
                    Decision { at: number(at), due, coalesced, monotonic: number(monotonic), wall: number(wall) };
                self.phases.last_mut().unwrap().entry(job.to_owned()).or_default().push(decision);
            }
            ["started", job, run] => self.started.entry(job.to_owned()).or_default().push(run.parse().unwrap()),
            // The driver tells of it before it decides on anything by the new time.
            ["jump", by] => {
                self.jumps.push(by.parse().unwrap());
                self.phases.push(Phase::new());
            }
            ["books", job, ..] => {
                let numbers = words[2..].iter().map(|word| word.parse().unwrap());
                self.books.insert(job.to_owned(), numbers.collect());
            }
            _ => {} // libtest's own
        }
    }

    /// How often each of these jobs was decided on in the present phase.
    fn has(&self, wanted: &[(&str, usize)]) -> bool {
        let phase = self.phases.last().unwrap();
        wanted.iter().all(|(job, count)| phase.get(*job).map_or(0, Vec::len) >= *count)
    }

    fn starts(&self, job: &str) -> usize {
        self.started.get(job).map_or(0, Vec::len)
    }
}

impl Shifted {
    /// Starts the child, its wall clock three seconds before a full minute.
    fn start(folder: &Path, shim: &Path) -> Self {
        let path = folder.join("offset");
        let offset = File::create(&path).unwrap();
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos() as i64;
        let shift = 60 * SECOND - now % (60 * SECOND) - 3 * SECOND;
        offset.write_all_at(&shift.to_ne_bytes(), 0).unwrap();
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "child_under_the_shim", "--nocapture", "--ignored"])
            .env("LD_PRELOAD", shim)
            .env(OFFSET_FILE, &path)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let (sender, lines) = channel();
        let output = BufReader::new(child.stdout.take().unwrap());
        std::thread::spawn(move || {
            for line in output.lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        let seen = Seen { phases: vec![Phase::new()], ..Seen::default() };
        Self { child, offset, shift, lines, seen }
    }

    /// Reads what the child prints until it is enough.
    fn read_until(&mut self, what: &str, enough: impl Fn(&Seen) -> bool) {
        let deadline = Instant::now() + PATIENCE;
        while !enough(&self.seen) {
            match self.lines.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
                Ok(line) => self.seen.line(&line),
                Err(RecvTimeoutError::Timeout) => panic!("{what}: not seen; {:#?}", self.seen.phases.last()),
                Err(RecvTimeoutError::Disconnected) => panic!("{what}: the child has ended"),
            }
        }
    }

    /// Shifts the child's wall clock by so much; returns once the child has seen
    /// it and enough has happened since.
    fn set_clock(&mut self, by: i64, wanted: &[(&str, usize)]) {
        let jumps = self.seen.jumps.len();
        self.shift += by;
        self.offset.write_all_at(&self.shift.to_ne_bytes(), 0).unwrap();
        let what = format!("{} s", by / SECOND);
        self.read_until(&what, |seen| seen.jumps.len() > jumps && seen.has(wanted));
        // Slack for a process that is held up between its readings of the two clocks.
        let seen = self.seen.jumps[jumps];
        assert!((seen - by).abs() < SECOND, "{what}: reported as {seen} ns");
    }

    fn signal(&self, signal: &str) {
        let status = Command::new("kill").args([signal, &self.child.id().to_string()]).status().unwrap();
        assert!(status.success(), "kill {signal}");
    }

    /// Stops the process for so long, and begins another phase.
    fn stop(&mut self, duration: Duration) {
        self.signal("-STOP");
        let stat = format!("/proc/{}/stat", self.child.id());
        let deadline = Instant::now() + PATIENCE;
        // The state follows the name, which is in parentheses.
        while !std::fs::read_to_string(&stat).unwrap().contains(") T ") {
            assert!(Instant::now() < deadline, "the child does not stop");
            std::thread::sleep(millis(10));
        }
        std::thread::sleep(duration);
        while let Ok(line) = self.lines.try_recv() {
            self.seen.line(&line);
        }
        self.seen.phases.push(Phase::new());
        self.signal("-CONT");
    }

    /// Lets the child shut down and give account.
    fn end(mut self) -> Seen {
        drop(self.child.stdin.take());
        self.read_until("the books", |seen| seen.books.len() == JOBS.len());
        assert!(self.child.wait().unwrap().success());
        std::mem::take(&mut self.seen)
    }
}

impl Drop for Shifted {
    fn drop(&mut self) {
        // Both fail for a child that has ended in order.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Builds the shim; `None` where there is no C compiler, which a CI run must have.
fn build_shim(folder: &Path) -> Option<PathBuf> {
    let library = folder.join("shim.so");
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/real_clock/shim.c");
    let built = Command::new("gcc").args(["-O1", "-shared", "-fPIC", "-o"]).arg(&library).arg(source).output();
    match built {
        Ok(output) => {
            assert!(output.status.success(), "gcc: {}", String::from_utf8_lossy(&output.stderr));
            Some(library)
        }
        Err(error) => {
            assert!(std::env::var_os("CI").is_none(), "the clock shim needs gcc: {error}");
            eprintln!("SKIPPED: the clock shim needs gcc: {error}");
            None
        }
    }
}

#[test]
fn jobs_behave_when_the_wall_clock_is_set_and_when_the_process_is_stopped() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("real_clock-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let Some(shim) = build_shim(&folder) else { return std::fs::remove_dir_all(&folder).unwrap() };
    let mut child = Shifted::start(&folder, &shim);

    let all = [("second", 2), ("four", 1), ("aligned", 3), ("rate", 5)];
    child.read_until("the first minute", |seen| seen.has(&all) && seen.has(&[("minute", 1)]));
    child.set_clock(-20 * SECOND, &all);
    child.set_clock(20 * SECOND, &all);
    child.set_clock(-2 * HOUR, &all);
    child.set_clock(2 * HOUR, &[("minute", 1), ("second", 2), ("aligned", 3), ("rate", 5)]);
    child.stop(secs(5));
    child.read_until("life after the stop", |seen| seen.has(&[("second", 3), ("aligned", 4), ("rate", 9)]));
    let seen = child.end();
    std::fs::remove_dir_all(&folder).unwrap();

    assert_eq!(seen.jumps.len(), 4, "a stopped process is no jump: {:?}", seen.jumps);
    let [_, back, forward, far_back, far_forward, stopped] = &seen.phases[..] else { panic!("six phases") };

    // Set back by 20 s: short schedules begin anew (`set_clock` has seen them run),
    // that of a minute holds; forwards again, the minute that was handled is not repeated.
    assert!(!back.contains_key("minute") && !forward.contains_key("minute"), "{back:#?} {forward:#?}");
    for job in ["second", "four", "aligned"] {
        assert_eq!(missed_at_the_jump(back, job), 0, "set back, nothing was missed");
        assert_eq!(missed_at_the_jump(far_back, job), 0, "set back, nothing was missed");
    }

    // Forwards, what lies between was missed: one run stands for it.
    assert_one_for_all(forward, "second", 20 - 5..=20 + 5);
    assert_one_for_all(forward, "four", 3..=6);
    assert_one_for_all(forward, "aligned", 40 - 10..=40 + 10);
    assert_one_for_all(far_forward, "second", 7_200 - 5..=7_200 + 5);
    assert_one_for_all(far_forward, "four", 1_800 - 2..=1_800 + 2);
    assert_one_for_all(far_forward, "minute", 119..=121);
    assert_one_for_all(far_forward, "aligned", 14_400 - 10..=14_400 + 10);

    // Stopped: the same, on both clocks.
    assert_one_for_all(stopped, "second", 4..=10);
    assert_one_for_all(stopped, "aligned", 8..=20);
    assert_one_for_all(stopped, "rate", 20..=50);

    for (number, phase) in seen.phases.iter().enumerate() {
        for (job, period, on_wall) in JOBS {
            assert_regular(number, phase, job, period, on_wall);
        }
    }
    assert_rate_is_untouched(&seen.phases);
    assert_never_silent(&seen.phases);
    assert_conserved(&seen);
}

/// How many occurrences the first decision of a phase covers besides its newest.
fn missed_at_the_jump(phase: &Phase, job: &str) -> u64 {
    // The clock may have been shifted a moment before it was seen: a slow machine.
    let decision = phase[job][0];
    if decision.coalesced <= 5 { 0 } else { decision.coalesced }
}

/// The first decision of the phase covers so many occurrences, and starts one run;
/// none of those after it has to.
fn assert_one_for_all(phase: &Phase, job: &str, due: std::ops::RangeInclusive<u64>) {
    let [first, rest @ ..] = &phase[job][..] else { panic!("{job}: nothing") };
    assert!(due.contains(&first.due) && first.coalesced == first.due - 1, "{job}: {first:?}");
    let again: u64 = rest.iter().map(|decision| decision.coalesced).sum();
    assert!(again <= *due.start() / 2 + 10, "{job}: {phase:#?}");
}

/// Within a phase: on the grid, no occurrence twice or left out, none early, no burst.
fn assert_regular(number: usize, phase: &Phase, job: &str, period: i64, on_wall: bool) {
    let Some(decisions) = phase.get(job) else { return };
    for decision in decisions {
        let now = if on_wall { decision.wall } else { decision.monotonic };
        assert!(decision.at <= now, "phase {number}, {job}: early, {decision:?}");
        assert!(!on_wall || decision.at % period == 0, "phase {number}, {job}: off the grid, {decision:?}");
    }
    for pair in decisions.windows(2) {
        let steps = pair[1].due as i64;
        assert_eq!(pair[1].at - pair[0].at, steps * period, "phase {number}, {job}: {pair:?}");
    }
    let [first, .., last] = &decisions[..] else { return };
    let room = (last.monotonic - first.monotonic) / period + 2;
    assert!(decisions.len() as i64 <= room, "phase {number}, {job}: a burst, {decisions:#?}");
}

/// Over all phases the fixed rate keeps its phase and counts each period.
fn assert_rate_is_untouched(phases: &[Phase]) {
    let decisions: Vec<_> = phases.iter().flat_map(|phase| phase["rate"].iter()).collect();
    for pair in decisions.windows(2) {
        assert_eq!(pair[1].at - pair[0].at, pair[1].due as i64 * SECOND / 5, "{pair:?}");
    }
    let missed = |phase: &Phase| phase["rate"].iter().map(|decision| decision.coalesced).max();
    let before_the_stop = phases[..phases.len() - 1].iter().filter_map(missed).max();
    assert!(before_the_stop < Some(25), "no clock setting may cost it 5 s: {before_the_stop:?}");
}

/// No job on a short schedule pauses for long, whatever is done to the clock.
fn assert_never_silent(phases: &[Phase]) {
    for (job, period, _) in JOBS.into_iter().filter(|(job, ..)| *job != "minute") {
        let decisions: Vec<_> = phases.iter().filter_map(|phase| phase.get(job)).flatten().collect();
        for pair in decisions.windows(2) {
            // Its period, the stop, and as much again for a slow machine.
            let most = period + 10 * SECOND;
            assert!(pair[1].monotonic - pair[0].monotonic < most, "{job}: silent, {pair:?}");
        }
    }
}

/// What was printed and what the child's books say is the same.
fn assert_conserved(seen: &Seen) {
    for (job, ..) in JOBS {
        let [due, started, skipped, pending, running] = seen.books[job][..] else { panic!("{:?}", seen.books) };
        assert_eq!((due, pending, running), (started + skipped, 0, 0), "{job}");
        let decisions = || seen.phases.iter().filter_map(|phase| phase.get(job)).flatten();
        assert_eq!(due, decisions().map(|decision| decision.due).sum::<u64>(), "{job}");
        assert_eq!(started as usize, seen.starts(job), "{job}");
        assert!(seen.starts(job) <= decisions().count(), "{job}: at most one run a decision");
        let mut runs = seen.started[job].clone();
        runs.sort_unstable();
        runs.dedup();
        assert_eq!(runs.len(), seen.starts(job), "{job}: a run started twice");
    }
}
