//! Heartbeats of very many connections, and four other ways to watch them.
//!
//! `cargo run --release -p benches --bin heartbeat -- [--connections N] [--json FILE] [--svg FILE]`
//!
//! Every figure comes from one run. Touches are measured in interleaved rounds
//! (A B C … A B C …), each connection once a round, with the handle or key of each
//! at hand, as it is for the task that owns a connection; minimum and median are
//! shown. They are made in the order of registration (clients that beat at an
//! interval keep that order) and, in a second column, in a shuffled order. Times are those of the thread on its processor,
//! so that neighbours on the machine count for little. Memory is the growth of
//! the resident set of a process of its own that holds the subject and nothing
//! else. A sweep is all the work of one tick of 100 ms, while connections beat
//! every 10 s and time out after 30 s. None of the others knows suspects, so ours
//! does without them here.

use std::error::Error;
use std::fmt::Write as _;
use std::future::poll_fn;
use std::hint::black_box;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU32, AtomicU64, Ordering};
use std::task::Poll;
use std::time::{Duration, Instant};

use beatline_core::{Clock, Moment, Monotonic, Timestamp};
use beatline_heartbeat::{Beat, HeartbeatChecker};
use clap::Parser;
use dashmap::DashMap;
use serde::Serialize;
use tokio::runtime::Runtime;
use tokio::sync::Notify;
use tokio_util::time::{DelayQueue, delay_queue};

const TIMEOUT: Duration = Duration::from_secs(30);
const INTERVAL: Duration = Duration::from_secs(10);
const TICK: Duration = Duration::from_millis(100);
const SUBJECTS: [&str; 5] = ["beatline", "dashmap", "delay-queue", "task-per-connection", "packed-scan"];

#[derive(Parser)]
#[command(about = "Heartbeats: touch, sweep and memory, beside four other ways to watch connections")]
struct Options {
    /// How many connections.
    #[arg(long, default_value_t = 1_000_000)]
    connections: usize,
    /// Rounds of touches, interleaved over all subjects.
    #[arg(long, default_value_t = 7)]
    rounds: usize,
    /// Ticks of 100 ms to sweep.
    #[arg(long, default_value_t = 1_200)]
    ticks: usize,
    /// Writes one row a subject as JSON.
    #[arg(long)]
    json: Option<PathBuf>,
    /// Writes a picture.
    #[arg(long)]
    svg: Option<PathBuf>,
    /// Holds one subject and prints its bytes a connection (used by the program itself).
    #[arg(long, hide = true)]
    memory_of: Option<String>,
}

#[derive(Serialize)]
struct Row {
    subject: &'static str,
    connections: usize,
    bytes_per_connection: f64,
    touch_ns: f64,
    sweep_us_mean: f64,
    sweep_us_max: f64,
    #[serde(skip)]
    touch_ns_min: f64,
    #[serde(skip)]
    shuffled_ns: f64,
    #[serde(skip)]
    false_expiries: u64,
}

fn main() -> Result<(), Box<dyn Error>> {
    let options = Options::parse();
    if let Some(subject) = &options.memory_of {
        let before = resident_bytes()?;
        let held = build(subject, options.connections)?;
        let bytes = resident_bytes()?.saturating_sub(before);
        println!("{}", bytes as f64 / options.connections as f64);
        drop(held);
        return Ok(());
    }
    let mut subjects = Vec::new();
    for name in SUBJECTS {
        eprintln!("building {name}");
        subjects.push(build(name, options.connections)?);
    }
    let in_order = touches(&mut subjects, &options);
    let order = shuffled(options.connections);
    subjects.iter_mut().for_each(|subject| subject.shuffle(&order));
    let at_random = touches(&mut subjects, &options);
    let mut rows = Vec::new();
    for (position, (name, subject)) in SUBJECTS.into_iter().zip(&mut subjects).enumerate() {
        eprintln!("sweeping {name}");
        let ticks = options.ticks.min(subject.most_ticks());
        // Round robin: everyone beats once in 10 s.
        let share = (options.connections as u128 * TICK.as_nanos() / INTERVAL.as_nanos()) as usize;
        let (mut sum, mut max) = (Duration::ZERO, Duration::ZERO);
        let mut from = 0;
        for _ in 0..ticks {
            let to = (from + share).min(options.connections);
            subject.touch(from, to);
            from = if to == options.connections { 0 } else { to };
            let took = subject.sweep();
            sum += took;
            max = max.max(took);
        }
        rows.push(Row {
            subject: name,
            connections: options.connections,
            bytes_per_connection: memory_of(name, options.connections)?,
            touch_ns: in_order[position].0,
            touch_ns_min: in_order[position].1,
            shuffled_ns: at_random[position].0,
            sweep_us_mean: sum.as_secs_f64() * 1e6 / ticks as f64,
            sweep_us_max: max.as_secs_f64() * 1e6,
            false_expiries: subject.expired(),
        });
    }
    print_table(&rows);
    if let Some(file) = options.json {
        std::fs::write(file, serde_json::to_string_pretty(&rows)?)?;
    }
    if let Some(file) = options.svg {
        std::fs::write(file, picture(&rows))?;
    }
    Ok(())
}

/// Median and minimum of the nanoseconds of a touch, for each subject.
fn touches(subjects: &mut [Box<dyn Subject>], options: &Options) -> Vec<(f64, f64)> {
    let mut rounds = vec![Vec::new(); subjects.len()];
    for round in 0..options.rounds {
        eprintln!("touching, round {} of {}", round + 1, options.rounds);
        for (subject, rounds) in subjects.iter_mut().zip(&mut rounds) {
            subject.advance();
            let begun = processor_time();
            subject.touch(0, options.connections);
            rounds.push((processor_time() - begun).as_nanos() as f64 / options.connections as f64);
        }
    }
    rounds.iter_mut().for_each(|rounds| rounds.sort_by(f64::total_cmp));
    rounds.iter().map(|rounds| (rounds[rounds.len() / 2], rounds[0])).collect()
}

fn print_table(rows: &[Row]) {
    println!(
        "{:<20} {:>11} {:>8} {:>10} {:>10} {:>10} {:>13} {:>12} {:>8}",
        "subject",
        "connections",
        "bytes",
        "touch ns",
        "(minimum)",
        "(shuffled)",
        "sweep us mean",
        "sweep us max",
        "expired"
    );
    for row in rows {
        println!(
            "{:<20} {:>11} {:>8.1} {:>10.1} {:>10.1} {:>10.1} {:>13.1} {:>12.1} {:>8}",
            row.subject,
            row.connections,
            row.bytes_per_connection,
            row.touch_ns,
            row.touch_ns_min,
            row.shuffled_ns,
            row.sweep_us_mean,
            row.sweep_us_max,
            row.false_expiries
        );
    }
    let (ours, dashmap) = (&rows[0], &rows[1]);
    let ratio = ours.touch_ns / dashmap.touch_ns;
    let memory = ours.bytes_per_connection;
    let passed = ratio <= 0.05 && memory <= 32.0 && ours.sweep_us_mean <= 50.0 && ours.false_expiries == 0;
    println!(
        "P9: touch {ratio:.3} x dashmap (bar 0.05; shuffled {:.3}), {memory:.1} B a connection (bar 32), \
         sweep {:.1} us a tick (bar 50), {} false expiries (bar 0): {}",
        ours.shuffled_ns / dashmap.shuffled_ns,
        ours.sweep_us_mean,
        ours.false_expiries,
        if passed { "passed" } else { "FAILED" }
    );
}

/// A way to watch connections.
trait Subject {
    /// Moves its clock on, so that the next touch of each connection is news.
    fn advance(&mut self);
    /// From now on connections are touched in this order.
    fn shuffle(&mut self, order: &[u32]);
    /// Touches the connections from one position of the order to another.
    fn touch(&mut self, from: usize, to: usize);
    /// Lets one tick pass and answers what the work of it took.
    fn sweep(&mut self) -> Duration;
    /// How many it has declared dead; all of them wrongly.
    fn expired(&self) -> u64;
    /// A bound on how long the measurement may take.
    fn most_ticks(&self) -> usize {
        usize::MAX
    }
}

fn build(name: &str, connections: usize) -> Result<Box<dyn Subject>, Box<dyn Error>> {
    Ok(match name {
        "beatline" => Box::new(Ours::new(connections)?),
        "dashmap" => Box::new(Mapped::new(connections)),
        "delay-queue" => Box::new(Queued::new(connections)?),
        "task-per-connection" => Box::new(Tasks::new(connections)?),
        "packed-scan" => Box::new(Packed::new(connections)),
        _ => return Err(format!("no subject {name}").into()),
    })
}

#[derive(Clone, Default)]
struct VirtualClock(Arc<AtomicI64>);

impl Clock for VirtualClock {
    fn now(&self) -> Moment {
        let now = self.0.load(Ordering::Relaxed);
        Moment::new(Monotonic::from_nanoseconds(now), Timestamp::from_unix_nanoseconds(i128::from(now)))
    }
}

struct Ours {
    clock: VirtualClock,
    checker: HeartbeatChecker<u64>,
    beats: Vec<Beat<u64>>,
}

impl Ours {
    fn new(connections: usize) -> Result<Self, Box<dyn Error>> {
        let clock = VirtualClock::default();
        let checker = HeartbeatChecker::builder(TIMEOUT).tick(TICK).without_suspects().clock(clock.clone()).build()?;
        checker.sweep();
        let mut beats = Vec::with_capacity(connections);
        beats.extend((0..connections as u64).map(|key| checker.register(key)));
        Ok(Self { clock, checker, beats })
    }

    fn step(&self) {
        self.clock.0.fetch_add(self.checker.sweep_interval().as_nanos() as i64, Ordering::Relaxed);
    }
}

impl Subject for Ours {
    fn advance(&mut self) {
        self.step();
        self.checker.sweep();
    }

    fn shuffle(&mut self, order: &[u32]) {
        arrange(&mut self.beats, order);
    }

    fn touch(&mut self, from: usize, to: usize) {
        for beat in &self.beats[from..to] {
            let _ = black_box(beat.touch());
        }
    }

    fn sweep(&mut self) -> Duration {
        let mut took = Duration::ZERO;
        // A tick is three sweeps.
        for _ in 0..3 {
            self.step();
            let begun = processor_time();
            black_box(self.checker.sweep());
            took += processor_time() - begun;
        }
        took
    }

    fn expired(&self) -> u64 {
        self.checker.statistics().expired
    }
}

struct Mapped {
    map: DashMap<u64, Instant>,
    order: Vec<u32>,
    expired: u64,
}

impl Mapped {
    fn new(connections: usize) -> Self {
        let map = DashMap::new();
        (0..connections as u64).for_each(|key| {
            map.insert(key, Instant::now());
        });
        Self { map, order: Vec::new(), expired: 0 }
    }
}

impl Subject for Mapped {
    fn advance(&mut self) {}

    fn shuffle(&mut self, order: &[u32]) {
        self.order = order.to_vec();
    }

    fn touch(&mut self, from: usize, to: usize) {
        for position in from..to {
            if let Some(mut seen) = self.map.get_mut(&u64::from(number(&self.order, position))) {
                *seen = Instant::now();
            }
        }
    }

    fn sweep(&mut self) -> Duration {
        let begun = processor_time();
        let now = Instant::now();
        // Real time: far less than the time-out passes, so nobody is due.
        self.expired +=
            self.map.iter().filter(|seen| now.saturating_duration_since(**seen) > 100 * TIMEOUT).count() as u64;
        processor_time() - begun
    }

    fn expired(&self) -> u64 {
        self.expired
    }

    fn most_ticks(&self) -> usize {
        100
    }
}

struct Queued {
    runtime: Runtime,
    queue: DelayQueue<u64>,
    keys: Vec<delay_queue::Key>,
    expired: u64,
}

impl Queued {
    fn new(connections: usize) -> Result<Self, Box<dyn Error>> {
        let runtime = paused_runtime()?;
        let (queue, keys) = runtime.block_on(async {
            let mut queue = DelayQueue::new();
            let keys: Vec<_> = (0..connections as u64).map(|key| queue.insert(key, TIMEOUT)).collect();
            (queue, keys)
        });
        Ok(Self { runtime, queue, keys, expired: 0 })
    }
}

impl Subject for Queued {
    fn advance(&mut self) {
        self.runtime.block_on(tokio::time::advance(TICK / 3));
    }

    fn shuffle(&mut self, order: &[u32]) {
        arrange(&mut self.keys, order);
    }

    fn touch(&mut self, from: usize, to: usize) {
        let _entered = self.runtime.enter();
        for key in &self.keys[from..to] {
            self.queue.reset(key, TIMEOUT);
        }
    }

    fn sweep(&mut self) -> Duration {
        let Self { runtime, queue, expired, .. } = self;
        runtime.block_on(async {
            tokio::time::advance(TICK).await;
            let begun = processor_time();
            *expired += poll_fn(|context| {
                let mut count = 0;
                while let Poll::Ready(Some(_)) = queue.poll_expired(context) {
                    count += 1;
                }
                Poll::Ready(count)
            })
            .await;
            processor_time() - begun
        })
    }

    fn expired(&self) -> u64 {
        self.expired
    }
}

struct Tasks {
    runtime: Runtime,
    notifies: Vec<Arc<Notify>>,
    expired: Arc<AtomicU64>,
    beaten: Arc<AtomicU64>,
}

impl Tasks {
    fn new(connections: usize) -> Result<Self, Box<dyn Error>> {
        let runtime = paused_runtime()?;
        let (expired, beaten) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
        let mut notifies = Vec::with_capacity(connections);
        for _ in 0..connections {
            let notify = Arc::new(Notify::new());
            notifies.push(Arc::clone(&notify));
            let (expired, beaten) = (Arc::clone(&expired), Arc::clone(&beaten));
            runtime.spawn(async move {
                while tokio::time::timeout(TIMEOUT, notify.notified()).await.is_ok() {
                    beaten.fetch_add(1, Ordering::Relaxed);
                }
                expired.fetch_add(1, Ordering::Relaxed);
            });
        }
        let tasks = Self { runtime, notifies, expired, beaten };
        tasks.settle(|| false);
        Ok(tasks)
    }

    /// Lets tasks run until `done`, or until all had a turn.
    fn settle(&self, done: impl Fn() -> bool) {
        self.runtime.block_on(async {
            for _ in 0..self.notifies.len() {
                if done() {
                    break;
                }
                tokio::task::yield_now().await;
            }
        });
    }
}

impl Subject for Tasks {
    fn advance(&mut self) {
        self.runtime.block_on(tokio::time::advance(TICK / 3));
    }

    fn shuffle(&mut self, order: &[u32]) {
        arrange(&mut self.notifies, order);
    }

    fn touch(&mut self, from: usize, to: usize) {
        let target = self.beaten.load(Ordering::Relaxed) + (to - from) as u64;
        self.notifies[from..to].iter().for_each(|notify| notify.notify_one());
        // A beat is over when its task has set its timer again.
        self.settle(|| self.beaten.load(Ordering::Relaxed) >= target);
    }

    fn sweep(&mut self) -> Duration {
        let begun = processor_time();
        self.runtime.block_on(tokio::time::advance(TICK));
        processor_time() - begun
    }

    fn expired(&self) -> u64 {
        self.expired.load(Ordering::Relaxed)
    }
}

struct Packed {
    seen: Vec<AtomicU32>,
    order: Vec<u32>,
    now: u32,
    expired: u64,
}

impl Packed {
    fn new(connections: usize) -> Self {
        Self {
            seen: (0..connections).map(|_| AtomicU32::new(1_000)).collect(),
            order: Vec::new(),
            now: 1_000,
            expired: 0,
        }
    }
}

impl Subject for Packed {
    fn advance(&mut self) {
        self.now += 1;
    }

    fn shuffle(&mut self, order: &[u32]) {
        self.order = order.to_vec();
    }

    fn touch(&mut self, from: usize, to: usize) {
        for position in from..to {
            self.seen[number(&self.order, position) as usize].store(self.now, Ordering::Relaxed);
        }
    }

    fn sweep(&mut self) -> Duration {
        self.now += 1;
        let begun = processor_time();
        let ticks = (TIMEOUT.as_nanos() / TICK.as_nanos()) as u32;
        self.expired += self.seen.iter().filter(|seen| self.now - seen.load(Ordering::Relaxed) > ticks).count() as u64;
        processor_time() - begun
    }

    fn expired(&self) -> u64 {
        self.expired
    }
}

fn number(order: &[u32], position: usize) -> u32 {
    order.get(position).copied().unwrap_or(position as u32)
}

fn arrange<T>(items: &mut Vec<T>, order: &[u32]) {
    let mut taken: Vec<_> = items.drain(..).map(Some).collect();
    items.extend(order.iter().filter_map(|number| taken[*number as usize].take()));
}

fn paused_runtime() -> std::io::Result<Runtime> {
    tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build()
}

/// SplitMix64.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
}

fn shuffled(connections: usize) -> Vec<u32> {
    let mut order: Vec<u32> = (0..connections as u32).collect();
    let mut random = Random(42);
    for position in (1..order.len()).rev() {
        order.swap(position, (random.next() % (position as u64 + 1)) as usize);
    }
    order
}

/// How long this thread has been on a processor.
fn processor_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

fn resident_bytes() -> Result<u64, Box<dyn Error>> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).ok_or("no VmRSS")?;
    Ok(line.trim().trim_end_matches("kB").trim().parse::<u64>()? * 1_024)
}

fn memory_of(subject: &str, connections: usize) -> Result<f64, Box<dyn Error>> {
    let output = std::process::Command::new(std::env::current_exe()?)
        .args(["--memory-of", subject, "--connections", &connections.to_string()])
        .output()?;
    Ok(String::from_utf8(output.stdout)?.trim().parse()?)
}

/// One group of bars a figure, on a logarithmic scale.
fn picture(rows: &[Row]) -> String {
    type Figure = fn(&Row) -> f64;
    let figures: [(&str, Figure); 3] = [
        ("bytes per connection", |row| row.bytes_per_connection),
        ("touch, ns", |row| row.touch_ns),
        ("mean sweep per 100 ms tick, us", |row| row.sweep_us_mean),
    ];
    let height = figures.len() * (rows.len() * 22 + 50) + 20;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"760\" height=\"{height}\" font-family=\"sans-serif\" \
         font-size=\"13\">\n<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n"
    );
    let mut y = 30;
    for (title, figure) in figures {
        let _ = writeln!(svg, "<text x=\"10\" y=\"{y}\" font-weight=\"bold\">{title} (logarithmic)</text>");
        let most = rows.iter().map(figure).fold(1.0_f64, f64::max);
        for row in rows {
            y += 22;
            let value = figure(row);
            let width = 10.0 + 430.0 * (value.max(0.1) / 0.1).ln() / (most / 0.1).ln();
            let colour = if row.subject == "beatline" { "#2a7f62" } else { "#9aa5b1" };
            let _ = writeln!(
                svg,
                "<text x=\"10\" y=\"{}\">{}</text><rect x=\"160\" y=\"{}\" width=\"{width:.0}\" height=\"16\" \
                 fill=\"{colour}\"/><text x=\"{:.0}\" y=\"{}\">{value:.1}</text>",
                y + 13,
                row.subject,
                y,
                166.0 + width,
                y + 13
            );
        }
        y += 50;
    }
    svg.push_str("</svg>\n");
    svg
}
