//! A fleet of clients that beat, fall silent, die and come back, and a server
//! that notices.
//!
//! ```text
//! cargo run --release -p examples --example heartbeat_fleet -- --for 20s
//! cargo run --release -p examples --example heartbeat_fleet -- --simulated 1000000 --for 120s
//! ```
//!
//! The first form runs a TCP server on loopback and clients of its own, 200 as
//! in the article, checked every 10 s (÷ speed) and dead after 30 s (÷ speed) of
//! silence. The second runs the table alone, at full scale, in virtual time.

use std::error::Error;
use std::io::{IsTerminal as _, Write as _};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use beatline_core::{Clock, Moment, Monotonic, Timestamp};
use beatline_heartbeat::{Beat, Edge, Ended, HeartbeatChecker, Statistics, Status};
use clap::Parser;
use futures::{FutureExt as _, StreamExt as _};
use serde::Serialize;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

type Result<T, E = Box<dyn Error + Send + Sync>> = std::result::Result<T, E>;

#[derive(Parser)]
#[command(about = "Heartbeats of a fleet: over TCP on loopback, or simulated at full scale")]
struct Options {
    /// How many clients.
    #[arg(long, default_value_t = 200, conflicts_with = "simulated")]
    connections: usize,
    /// How many times faster than the article's 10 s between checks.
    #[arg(long, default_value_t = 30.0, conflicts_with = "simulated")]
    speed: f64,
    /// How long, such as 20s, 2m or 500ms; virtual time if simulated.
    #[arg(long = "for", default_value = "60s", value_parser = duration)]
    length: Duration,
    /// Runs the table alone with so many connections, in virtual time.
    #[arg(long, value_name = "CONNECTIONS")]
    simulated: Option<usize>,
    /// Writes the summary as JSON.
    #[arg(long, value_name = "FILE")]
    summary: Option<PathBuf>,
}

fn main() -> Result<()> {
    let options = Options::parse();
    match options.simulated {
        Some(connections) => simulated(connections, options.length, options.summary),
        None => tokio::runtime::Builder::new_multi_thread().enable_all().build()?.block_on(fleet(options)),
    }
}

#[derive(Serialize)]
struct Summary {
    connections: usize,
    seconds: f64,
    registered: u64,
    alive: u64,
    expired: u64,
    removed: u64,
    /// Whether registered = alive + expired + removed.
    balanced: bool,
    suspected: u64,
    recovered: u64,
    beats: u64,
    came_back: u64,
    false_expiries: u64,
    sweeps: u64,
    sweep_us_max: f64,
}

/// What the clients do, as they alone know it.
#[derive(Default)]
struct Truth {
    beats: AtomicU64,
    came_back: AtomicU64,
    false_expiries: AtomicU64,
    silent: Vec<AtomicBool>,
}

async fn fleet(options: Options) -> Result<()> {
    room_for(options.connections)?;
    if !(options.speed.is_finite() && options.speed > 0.0) {
        return Err("--speed must be a positive number".into());
    }
    let check = Duration::try_from_secs_f64(10.0 / options.speed)?;
    let checker = HeartbeatChecker::builder(3 * check).tick(check).build()?;
    checker.start()?;
    let truth = Arc::new(Truth {
        silent: (0..options.connections).map(|_| AtomicBool::new(false)).collect(),
        ..Truth::default()
    });

    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    let server = tokio::spawn(accept(listener, checker.clone(), Arc::clone(&truth)));
    let clients: Vec<_> =
        (0..options.connections).map(|id| tokio::spawn(client(id, address, check, Arc::clone(&truth)))).collect();

    watch(&checker, &truth, options.length).await;

    // The books are closed before the connections are.
    let statistics = checker.shutdown(Duration::from_secs(1)).await;
    clients.iter().for_each(tokio::task::JoinHandle::abort);
    server.abort();
    let summary = Summary {
        connections: options.connections,
        seconds: options.length.as_secs_f64(),
        registered: statistics.registered,
        alive: statistics.alive,
        expired: statistics.expired,
        removed: statistics.removed,
        balanced: statistics.registered == statistics.alive + statistics.expired + statistics.removed,
        suspected: statistics.suspected,
        recovered: statistics.recovered,
        beats: truth.beats.load(Ordering::Relaxed),
        came_back: truth.came_back.load(Ordering::Relaxed),
        false_expiries: truth.false_expiries.load(Ordering::Relaxed),
        sweeps: statistics.sweeps,
        sweep_us_max: statistics.sweep_duration.max.as_secs_f64() * 1e6,
    };
    println!(
        "registered {} = alive {} + expired {} + removed {}; {} false expiries, {} beats",
        summary.registered, summary.alive, summary.expired, summary.removed, summary.false_expiries, summary.beats
    );
    write_summary(options.summary, &summary)
}

async fn accept(listener: TcpListener, checker: HeartbeatChecker<usize>, truth: Arc<Truth>) {
    while let Ok((stream, _)) = listener.accept().await {
        let (checker, truth) = (checker.clone(), Arc::clone(&truth));
        tokio::spawn(async move {
            // A connection that fails ends its task, and dropping its beat removes it.
            let _ = serve(stream, &checker, &truth).await;
        });
    }
}

/// The task that owns a connection: its reads are beats, and when it has
/// expired it closes it.
async fn serve(mut stream: TcpStream, checker: &HeartbeatChecker<usize>, truth: &Truth) -> Result<()> {
    let id = stream.read_u64().await? as usize;
    let beat = checker.register(id);
    let mut buffer = [0; 64];
    loop {
        tokio::select! {
            read = stream.read(&mut buffer) => {
                if read? == 0 {
                    beat.remove().await;
                    return Ok(());
                }
                truth.beats.fetch_add(1, Ordering::Relaxed);
                beat.touch()?;
            }
            ended = beat.expired() => {
                let silent = truth.silent.get(id).is_some_and(|silent| silent.load(Ordering::SeqCst));
                if ended == Ended::Expired && !silent {
                    truth.false_expiries.fetch_add(1, Ordering::Relaxed);
                }
                // Dropping the stream closes the connection.
                return Ok(());
            }
        }
    }
}

/// Beats for a while, then falls silent, or leaves, and comes back.
async fn client(id: usize, address: std::net::SocketAddr, check: Duration, truth: Arc<Truth>) -> Result<()> {
    let mut random = Random(id as u64);
    loop {
        let mut stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        truth.silent[id].store(false, Ordering::SeqCst);
        stream.write_u64(id as u64).await?;
        for _ in 0..3 + random.below(30) {
            tokio::time::sleep(check.mul_f64(0.5 + random.below(1_000) as f64 / 2_000.0)).await;
            stream.write_all(b".").await?;
        }
        if random.below(3) > 0 {
            truth.silent[id].store(true, Ordering::SeqCst);
            // Silent, and still connected, until the server hangs up.
            let mut end = [0; 1];
            let _ = stream.read(&mut end).await;
        }
        drop(stream);
        tokio::time::sleep(check.mul_f64(random.below(2_000) as f64 / 1_000.0)).await;
        truth.came_back.fetch_add(1, Ordering::Relaxed);
    }
}

/// Draws the fleet while it runs: one sign a connection on a terminal, a line
/// now and then elsewhere.
async fn watch(checker: &HeartbeatChecker<usize>, truth: &Truth, length: Duration) {
    let terminal = std::io::stdout().is_terminal();
    let begun = Instant::now();
    let pace = if terminal { Duration::from_millis(200) } else { (length / 5).max(Duration::from_millis(100)) };
    while let Some(left) = length.checked_sub(begun.elapsed()) {
        tokio::time::sleep(pace.min(left)).await;
        let snapshot = checker.snapshot();
        let line = line(&snapshot.statistics, truth, begun.elapsed());
        if !terminal {
            println!("{line}");
            continue;
        }
        let mut signs = vec!["\x1b[2m·\x1b[0m"; truth.silent.len().min(1_600)];
        for connection in &snapshot.connections {
            if let Some(sign) = signs.get_mut(connection.key) {
                *sign = match connection.status {
                    Status::Alive => "\x1b[32m●\x1b[0m",
                    Status::Suspect => "\x1b[33m◐\x1b[0m",
                    _ => "\x1b[31m✕\x1b[0m",
                };
            }
        }
        let rows: Vec<String> = signs.chunks(80).map(|row| row.concat()).collect();
        let mut out = std::io::stdout();
        let _ = write!(out, "\x1b[2J\x1b[H{line}\n\n{}\n\n● alive  ◐ suspect  ✕ expired  · away\n", rows.join("\n"));
        let _ = out.flush();
    }
}

fn line(statistics: &Statistics, truth: &Truth, elapsed: Duration) -> String {
    format!(
        "{:6.1} s  alive {} (suspect {})  expired {}  removed {}  came back {}  beats {}",
        elapsed.as_secs_f64(),
        statistics.alive,
        statistics.suspect,
        statistics.expired,
        statistics.removed,
        truth.came_back.load(Ordering::Relaxed),
        truth.beats.load(Ordering::Relaxed),
    )
}

/// Each connection needs two descriptors here, one for each end.
fn room_for(connections: usize) -> Result<()> {
    let limits = std::fs::read_to_string("/proc/self/limits").unwrap_or_default();
    let soft = limits
        .lines()
        .find_map(|line| line.strip_prefix("Max open files"))
        .and_then(|rest| rest.split_whitespace().next())
        .and_then(|soft| soft.parse::<usize>().ok())
        .unwrap_or(1_024);
    let most = soft.saturating_sub(40) / 2;
    if connections <= most {
        return Ok(());
    }
    Err(format!(
        "{connections} connections need {} descriptors and the soft limit is {soft}: raise it with `ulimit -n {}`, \
         use --connections {most}, or try --simulated {connections}",
        2 * connections + 40,
        2 * connections + 40
    )
    .into())
}

#[derive(Serialize)]
struct Simulation {
    connections: usize,
    virtual_seconds: f64,
    tick_ms: f64,
    timeout_s: f64,
    bytes_per_connection: f64,
    touches: u64,
    touch_ns: f64,
    sweeps: u64,
    sweep_us_mean: f64,
    sweep_us_max: f64,
    detection_delay_ms_min: f64,
    detection_delay_ms_max: f64,
    registered: u64,
    alive: u64,
    expired: u64,
    removed: u64,
    false_expiries: u64,
    missed: u64,
}

#[derive(Clone, Default)]
struct VirtualClock(Arc<AtomicI64>);

impl Clock for VirtualClock {
    fn now(&self) -> Moment {
        let now = self.0.load(Ordering::Relaxed);
        Moment::new(Monotonic::from_nanoseconds(now), Timestamp::from_unix_nanoseconds(i128::from(now)))
    }
}

/// A connection of the simulation, waiting for its next beat.
struct Waiting {
    beat: Beat<u32>,
    key: u32,
    /// Nanoseconds after the beginning of the step.
    offset: u32,
}

/// Connections beat at random, every 10 s on the average and never more than
/// 20 s apart; one in 12,000 beats is the last.
fn simulated(connections: usize, length: Duration, summary: Option<PathBuf>) -> Result<()> {
    const TIMEOUT: Duration = Duration::from_secs(30);
    const SUSPECT: Duration = Duration::from_secs(25);
    const TICK: Duration = Duration::from_millis(100);
    const LONGEST: u64 = 20_000_000_000;
    if connections == 0 || u32::try_from(connections).is_err() {
        return Err("--simulated takes 1 to 4,294,967,295 connections".into());
    }
    let before = resident_bytes();
    let clock = VirtualClock::default();
    let (checker, mut events) = HeartbeatChecker::builder(TIMEOUT)
        .suspect_after(SUSPECT)
        .tick(TICK)
        .clock(clock.clone())
        .build_with_events()?;
    checker.sweep();
    let mut beats = Vec::with_capacity(connections);
    beats.extend((0..connections as u32).map(|key| checker.register(key)));
    let bytes = resident_bytes().saturating_sub(before) as f64 / connections as f64;

    let step = checker.sweep_interval().as_nanos() as u64;
    let steps = (length.as_nanos() / u128::from(step)) as u64;
    let mut random = Random(1);
    // A wheel of steps: what beats in each, and in which nanosecond of it.
    let mut wheel: Vec<Vec<Waiting>> = (0..LONGEST / step + 2).map(|_| Vec::new()).collect();
    let place = |wheel: &mut Vec<Vec<Waiting>>, beat, key, at: u64| {
        let slots = wheel.len() as u64;
        wheel[(at / step % slots) as usize].push(Waiting { beat, key, offset: (at % step) as u32 });
    };
    beats.into_iter().zip(0..).for_each(|(beat, key)| place(&mut wheel, beat, key, random.below(LONGEST)));
    let mut fallen_silent = Vec::new();
    let mut last = vec![0_u64; connections];
    let mut silent = vec![false; connections];
    let (mut touches, mut touching) = (0_u64, Duration::ZERO);
    let (mut sweeping, mut longest) = (Duration::ZERO, Duration::ZERO);
    let (mut soonest, mut latest) = (u64::MAX, 0_u64);
    let (mut false_expiries, mut found) = (0_u64, 0_u64);
    for number in 0..steps {
        let slots = wheel.len() as u64;
        let due = std::mem::take(&mut wheel[(number % slots) as usize]);
        let begun = Instant::now();
        let refused = due.iter().filter(|waiting| waiting.beat.touch().is_err()).count();
        touching += begun.elapsed();
        touches += due.len() as u64;
        false_expiries += refused as u64;
        for Waiting { beat, key, offset } in due {
            let at = number * step + u64::from(offset);
            last[key as usize] = at;
            if random.below(12_000) == 0 {
                silent[key as usize] = true;
                fallen_silent.push((key, beat));
            } else {
                place(&mut wheel, beat, key, (at + 1 + random.below(LONGEST)).max((number + 1) * step));
            }
        }
        let now = (number + 1) * step;
        clock.0.store(now as i64, Ordering::Relaxed);
        let begun = Instant::now();
        checker.sweep();
        let took = begun.elapsed();
        sweeping += took;
        longest = longest.max(took);
        while let Some(Some(event)) = events.next().now_or_never() {
            if event.edge == Edge::Expired {
                let silence = now - last[event.key as usize];
                if !silent[event.key as usize] || silence < TIMEOUT.as_nanos() as u64 {
                    false_expiries += 1;
                }
                soonest = soonest.min(silence.saturating_sub(TIMEOUT.as_nanos() as u64));
                latest = latest.max(silence.saturating_sub(TIMEOUT.as_nanos() as u64));
                found += 1;
            }
        }
    }
    let end = steps * step;
    let overdue = |key: u32| end - last[key as usize] > (TIMEOUT + TICK).as_nanos() as u64;
    let missed = fallen_silent.iter().filter(|(key, beat)| overdue(*key) && beat.status() != Status::Expired).count();
    let statistics = checker.statistics();
    let result = Simulation {
        connections,
        virtual_seconds: Duration::from_nanos(end).as_secs_f64(),
        tick_ms: TICK.as_secs_f64() * 1e3,
        timeout_s: TIMEOUT.as_secs_f64(),
        bytes_per_connection: bytes,
        touches,
        touch_ns: touching.as_nanos() as f64 / touches.max(1) as f64,
        sweeps: steps,
        sweep_us_mean: sweeping.as_secs_f64() * 1e6 / steps.max(1) as f64,
        sweep_us_max: longest.as_secs_f64() * 1e6,
        detection_delay_ms_min: if found == 0 { 0.0 } else { soonest as f64 / 1e6 },
        detection_delay_ms_max: latest as f64 / 1e6,
        registered: statistics.registered,
        alive: statistics.alive,
        expired: statistics.expired,
        removed: statistics.removed,
        false_expiries,
        missed: missed as u64,
    };
    println!(
        "{} connections, {:.0} virtual s, tick 100 ms, time-out 30 s\n\
         bytes per connection  {:.1}\n\
         touch                 {:.1} ns ({} touches at random)\n\
         sweep                 {:.1} us mean, {:.1} us longest ({} sweeps, three a tick)\n\
         detection delay       {:.1} to {:.1} ms after the time-out ({} expired)\n\
         false expiries        {}\n\
         missed                {}\n\
         registered {} = alive {} + expired {} + removed {}",
        result.connections,
        result.virtual_seconds,
        result.bytes_per_connection,
        result.touch_ns,
        result.touches,
        result.sweep_us_mean,
        result.sweep_us_max,
        result.sweeps,
        result.detection_delay_ms_min,
        result.detection_delay_ms_max,
        found,
        result.false_expiries,
        result.missed,
        result.registered,
        result.alive,
        result.expired,
        result.removed
    );
    write_summary(summary, &result)
}

fn write_summary(file: Option<PathBuf>, summary: &impl Serialize) -> Result<()> {
    if let Some(file) = file {
        std::fs::write(file, serde_json::to_string_pretty(summary)?)?;
    }
    Ok(())
}

/// The resident set; 0 where the system does not say.
fn resident_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    line.and_then(|line| line.trim().trim_end_matches("kB").trim().parse::<u64>().ok()).unwrap_or(0) * 1_024
}

fn duration(text: &str) -> Result<Duration, String> {
    let digits = text.find(|sign: char| !sign.is_ascii_digit() && sign != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let scale = match unit {
        "ms" => 0.001,
        "s" | "" => 1.0,
        "m" => 60.0,
        "h" => 3_600.0,
        _ => return Err(format!("{unit:?} is no unit; use ms, s, m or h")),
    };
    let number: f64 = number.parse().map_err(|_| format!("{text:?} is no duration, such as 20s"))?;
    Duration::try_from_secs_f64(number * scale).map_err(|error| error.to_string())
}

/// SplitMix64.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % bound
    }
}
