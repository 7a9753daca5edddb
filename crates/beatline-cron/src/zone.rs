//! Time zones: by name, by offset, the system's – and their data, which may
//! change while the program runs.
//!
//! # Ground rules
//!
//! * Each zone that was ever asked for by name is loaded once a process and
//!   shared; so is the system's zone.
//! * A version of a zone's data is immutable. A newer one is appended to it,
//!   and who reads walks to the end: no lock is taken on the way to an answer.
//! * Whether the file has changed is looked at when a zone is asked for, when
//!   [`refresh_zones`] is called, and when a scheduler asks a trigger and its
//!   monotonic clock is [`RECHECK`] from where it was at the last look. No
//!   clock is read here.
//! * Data that cannot be read leaves the version before it in force.

use std::collections::HashMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use beatline_core::{Error, Monotonic};
use jiff::tz::{TimeZone, TimeZoneDatabase};

use crate::mutants::mutant;
use crate::offsets::Offsets;

/// How far a scheduler's clock moves before the zone's file is looked at again.
const RECHECK: Duration = Duration::from_secs(5);

/// Where zone data is kept, unless `TZDIR` says otherwise.
const DIRECTORIES: [&str; 3] = ["/usr/share/zoneinfo", "/usr/share/lib/zoneinfo", "/etc/zoneinfo"];

const LOCAL_TIME: &str = "/etc/localtime";

/// The zone of a trigger.
#[derive(Clone)]
pub(crate) enum Zone {
    Fixed(Arc<FixedZone>),
    Shared(Arc<SharedZone>),
}

pub(crate) struct FixedZone {
    name: String,
    offsets: Offsets,
}

/// A zone whose data is kept somewhere and may change.
pub(crate) struct SharedZone {
    name: String,
    source: Source,
    first: Version,
    /// What the data's file looked like when it was last read.
    stamp: Mutex<Option<Stamp>>,
    /// The scheduler's clock at the last look.
    looked_at: AtomicI64,
}

struct Version {
    offsets: Offsets,
    newer: OnceLock<Box<Version>>,
}

enum Source {
    /// A file in the zone directory.
    File(PathBuf),
    /// Compiled in, or in a single file with all others: does not change.
    Database,
    /// What `/etc/localtime` is or points to.
    LocalTime,
}

impl Zone {
    pub(crate) fn utc() -> Self {
        static UTC: OnceLock<Arc<FixedZone>> = OnceLock::new();
        let utc = UTC.get_or_init(|| Arc::new(FixedZone { name: "UTC".to_owned(), offsets: Offsets::fixed(0) }));
        Zone::Fixed(Arc::clone(utc))
    }

    /// `seconds` east of Greenwich, at most a day.
    pub(crate) fn fixed(seconds: i32) -> Result<Self, Error> {
        if seconds == 0 {
            return Ok(Self::utc());
        }
        if seconds.unsigned_abs() >= 86_400 {
            return Err(Error::invalid(
                "offset",
                format!("{seconds} s is a day or more; offsets are less than 24 hours"),
            ));
        }
        let (sign, size) = (if seconds < 0 { '-' } else { '+' }, seconds.unsigned_abs());
        let mut name = format!("{sign}{:02}:{:02}", size / 3600, size / 60 % 60);
        if size % 60 != 0 {
            name.push_str(&format!(":{:02}", size % 60));
        }
        Ok(Zone::Fixed(Arc::new(FixedZone { name, offsets: Offsets::fixed(seconds) })))
    }

    /// By IANA name, or an offset such as `+05:30`.
    pub(crate) fn named(name: &str) -> Result<Self, Error> {
        if name.eq_ignore_ascii_case("utc") || name.eq_ignore_ascii_case("z") {
            return Ok(Self::utc());
        }
        if name.starts_with(['+', '-']) {
            let seconds = parse_offset(name).ok_or_else(|| unknown(name, "an offset is written `±hh:mm`"))?;
            return Self::fixed(seconds);
        }
        // Longer than any name there is; keeps nonsense out of the table.
        if name.is_empty() || name.len() > 64 || !name.is_ascii() {
            return Err(unknown(name, "expected an IANA name such as `Europe/Berlin`, `UTC` or an offset"));
        }
        let key = name.to_ascii_lowercase();
        if let Some(zone) = lock(zones()).get(&key) {
            let zone = Arc::clone(zone);
            zone.look();
            return Ok(Zone::Shared(zone));
        }
        // Loaded outside the lock: reading a file takes a while.
        let zone = Arc::new(SharedZone::load(name)?);
        Ok(Zone::Shared(Arc::clone(lock(zones()).entry(key).or_insert(zone))))
    }

    /// The zone the machine is set to.
    pub(crate) fn system() -> Result<Self, Error> {
        // A zone in the environment is fixed for the life of the process.
        if std::env::var_os("TZ").is_none() && Path::new(LOCAL_TIME).exists() {
            let mut zones = lock(zones());
            // No zone has an empty name.
            if let Some(zone) = zones.get("") {
                let zone = Arc::clone(zone);
                zone.look();
                return Ok(Zone::Shared(zone));
            }
            if let Ok(zone) = SharedZone::load_local_time().map(Arc::new) {
                zones.insert(String::new(), Arc::clone(&zone));
                return Ok(Zone::Shared(zone));
            }
        }
        let zone = TimeZone::try_system()
            .map_err(|error| Error::invalid("zone", format!("the system's time zone is not known: {error}")))?;
        match zone.iana_name() {
            Some(name) => Self::named(name),
            None => {
                let offsets = Offsets::of(&zone);
                Ok(Zone::Fixed(Arc::new(FixedZone { name: "the system's zone".to_owned(), offsets })))
            }
        }
    }

    pub(crate) fn name(&self) -> &str {
        match self {
            Zone::Fixed(zone) => &zone.name,
            Zone::Shared(zone) => &zone.name,
        }
    }

    /// The newest version known.
    pub(crate) fn offsets(&self) -> &Offsets {
        match self {
            Zone::Fixed(zone) => &zone.offsets,
            Zone::Shared(zone) => &zone.newest().offsets,
        }
    }

    /// The newest version, as a scheduler sees it whose clock shows `now`.
    pub(crate) fn offsets_at(&self, now: Monotonic) -> &Offsets {
        if let Zone::Shared(zone) = self {
            zone.look_by(now);
        }
        self.offsets()
    }
}

impl PartialEq for Zone {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Zone::Fixed(a), Zone::Fixed(b)) => a.name == b.name,
            (Zone::Shared(a), Zone::Shared(b)) => a.name == b.name,
            _ => false,
        }
    }
}

impl Eq for Zone {}

impl fmt::Debug for Zone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Looks whether the data of a zone in use has changed, and takes it over if it
/// has; answers whether any did.
///
/// Schedulers get this without asking: a trigger that is asked for its next
/// occurrence looks by itself every few seconds of the scheduler's clock. Call
/// it where instants are computed without a scheduler, in a process that lives
/// longer than its zone data; it costs one look at a file for each zone in use.
///
/// Instants that were computed before stay as they are: compute them again
/// where the answer is `true`.
pub fn refresh_zones() -> bool {
    let zones: Vec<_> = lock(zones()).values().cloned().collect();
    zones.iter().fold(false, |changed, zone| zone.look() | changed)
}

type Zones = HashMap<String, Arc<SharedZone>>;

fn zones() -> &'static Mutex<Zones> {
    static ZONES: OnceLock<Mutex<Zones>> = OnceLock::new();
    ZONES.get_or_init(Mutex::default)
}

/// Nothing under these locks can be left half done.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl SharedZone {
    fn load(name: &str) -> Result<Self, Error> {
        // A name that the machine's database lacks may be in the bundled one.
        let zone = TimeZone::get(name).or_else(|_| TimeZoneDatabase::bundled().get(name)).map_err(|_| {
            unknown(
                name,
                "it is not in the time-zone database (is there one? feature `bundled-zones` brings one along)",
            )
        })?;
        let name = zone.iana_name().unwrap_or(name).to_owned();
        let file = zone_directory().map(|directory| directory.join(&name)).filter(|file| file.is_file());
        let source = file.map_or(Source::Database, Source::File);
        // The database may hold on to what it read before: what counts is what
        // the file says now.
        let (stamp, zone) = match source.read() {
            Some((stamp, fresh)) => (Some(stamp), fresh),
            None => (None, zone),
        };
        Ok(Self::new(name, source, stamp, &zone))
    }

    fn load_local_time() -> Result<Self, Error> {
        let source = Source::LocalTime;
        let (stamp, zone) =
            source.read().ok_or_else(|| Error::invalid("zone", "the system's time zone cannot be read"))?;
        Ok(Self::new("the system's zone".to_owned(), source, Some(stamp), &zone))
    }

    fn new(name: String, source: Source, stamp: Option<Stamp>, zone: &TimeZone) -> Self {
        Self {
            name,
            source,
            first: Version { offsets: Offsets::of(zone), newer: OnceLock::new() },
            stamp: Mutex::new(stamp),
            looked_at: AtomicI64::new(i64::MIN),
        }
    }

    fn newest(&self) -> &Version {
        let mut version = &self.first;
        while let Some(newer) = version.newer.get() {
            version = newer;
        }
        version
    }

    fn look_by(&self, now: Monotonic) {
        let now = now.nanoseconds();
        let moved = now.abs_diff(self.looked_at.load(Ordering::Relaxed));
        if mutant!("zone-recheck", u128::from(moved) >= RECHECK.as_nanos(), false) {
            self.looked_at.store(now, Ordering::Relaxed);
            self.look();
        }
    }

    /// Takes over changed data; answers whether there was any.
    fn look(&self) -> bool {
        let mut stamp = lock(&self.stamp);
        let Some(known) = stamp.as_ref() else { return false };
        if self.source.stamp().as_ref() == Some(known) {
            return false;
        }
        // Unreadable or half written: the next look tries again.
        let Some((fresh, zone)) = self.source.read() else { return false };
        let version = Version { offsets: Offsets::of(&zone), newer: OnceLock::new() };
        // The lock makes this the only writer, so that the newest stays so.
        let appended = self.newest().newer.set(Box::new(version)).is_ok();
        *stamp = Some(fresh);
        appended
    }
}

impl Source {
    fn path(&self) -> Option<&Path> {
        match self {
            Source::File(path) => Some(path),
            Source::Database => None,
            Source::LocalTime => Some(Path::new(LOCAL_TIME)),
        }
    }

    fn stamp(&self) -> Option<Stamp> {
        Stamp::of(self.path()?)
    }

    /// The data, and what its file looked like just before it was read.
    fn read(&self) -> Option<(Stamp, TimeZone)> {
        let stamp = self.stamp()?;
        let bytes = std::fs::read(self.path()?).ok()?;
        Some((stamp, TimeZone::tzif("zone", &bytes).ok()?))
    }
}

/// What a file looks like from outside; another file in its place, or new
/// content, looks different.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Stamp {
    length: u64,
    modified: Option<std::time::SystemTime>,
    /// Inode and time of the last change of any kind, which cannot be set.
    #[cfg(unix)]
    identity: (u64, i64, i64),
}

impl Stamp {
    fn of(path: &Path) -> Option<Self> {
        let metadata = std::fs::metadata(path).ok()?;
        Some(Self {
            length: metadata.len(),
            modified: metadata.modified().ok(),
            #[cfg(unix)]
            identity: {
                use std::os::unix::fs::MetadataExt;
                (metadata.ino(), metadata.ctime(), metadata.ctime_nsec())
            },
        })
    }
}

fn zone_directory() -> Option<PathBuf> {
    if let Some(directory) = std::env::var_os("TZDIR").filter(|directory| !directory.is_empty()) {
        return Some(PathBuf::from(directory));
    }
    DIRECTORIES.iter().map(PathBuf::from).find(|directory| directory.is_dir())
}

/// `±hh:mm`, `±hh` or `±hh:mm:ss`, in seconds.
fn parse_offset(text: &str) -> Option<i32> {
    let (sign, digits) = match text.as_bytes().first()? {
        b'+' => (1, &text[1..]),
        b'-' => (-1, &text[1..]),
        _ => return None,
    };
    let mut seconds = 0;
    let mut parts = 0;
    for (part, unit) in digits.split(':').zip([3600, 60, 1]) {
        let limit = if unit == 3600 { 24 } else { 60 };
        if part.len() != 2 || !part.bytes().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        seconds += part.parse::<i32>().ok().filter(|number| *number < limit)? * unit;
        parts += 1;
    }
    (parts == digits.split(':').count()).then_some(sign * seconds)
}

fn unknown(name: &str, why: &str) -> Error {
    let shown: String = name.chars().take(64).flat_map(char::escape_default).collect();
    Error::invalid("zone", format!("`{shown}` is unknown: {why}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offsets_are_read_strictly() {
        for (text, seconds) in
            [("+00:00", 0), ("+05:30", 19_800), ("-03:00", -10_800), ("+08", 28_800), ("-00:44:30", -2_670)]
        {
            assert_eq!(parse_offset(text), Some(seconds), "{text}");
        }
        for text in ["", "+", "05:30", "+5:30", "+24:00", "+05:60", "+05:30:00:00", "+05:3x", "+\u{665}"] {
            assert_eq!(parse_offset(text), None, "{text}");
        }
    }

    #[test]
    fn names_are_found_in_any_case_and_unknown_ones_are_errors_that_can_be_printed() {
        assert_eq!(Zone::named("europe/berlin").unwrap().name(), "Europe/Berlin");
        assert_eq!(Zone::named("utc").unwrap(), Zone::utc());
        assert_eq!(Zone::named("-00:00").unwrap(), Zone::utc());
        assert_eq!(Zone::named("+05:30").unwrap().name(), "+05:30");
        for name in ["", "Mars/Olympus", "../../etc/passwd", "Europe/Ber\u{1b}[2Jlin", &"x".repeat(100_000)] {
            let error = Zone::named(name).unwrap_err().to_string();
            assert!(error.starts_with("zone: ") && error.is_ascii(), "{error}");
            assert!(!error.contains('\u{1b}') && error.len() < 1000, "{error}");
        }
    }
}
