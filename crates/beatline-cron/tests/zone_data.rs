//! Zone data that changes while the program runs. A directory of zones is
//! chosen by the environment, which a process must not change in itself: the
//! test starts itself again with one of its own.
#![allow(clippy::unwrap_used)] // a test may panic, its helpers too

mod common;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use beatline_core::{Moment, Monotonic, Next, Trigger, TriggerContext};
use beatline_cron::{Cron, refresh_zones};
use common::at;

/// A zone file (version 2) of nothing but a rule in POSIX form.
fn zone_file(rule: &str) -> Vec<u8> {
    let mut block = b"TZif2".to_vec();
    block.extend([0; 15]);
    // No changes and no leap seconds, one type, four letters of names.
    for count in [0_u32, 0, 0, 0, 1, 4] {
        block.extend(count.to_be_bytes());
    }
    block.extend([0; 6]);
    block.extend(b"LMT\0");
    let mut file = block.clone();
    file.extend(block);
    file.extend(format!("\n{rule}\n").bytes());
    file
}

fn write(directory: &Path, rule: &str) {
    // As package managers do: beside it, then over it.
    let (file, fresh) = (directory.join("Test/City"), directory.join("Test/City.new"));
    std::fs::write(&fresh, zone_file(rule)).unwrap();
    std::fs::rename(fresh, file).unwrap();
}

/// A directory that is gone when the test is.
struct Directory(PathBuf);

impl Directory {
    fn new() -> Self {
        let path = std::env::temp_dir().join(format!("beatline-zones-{}", std::process::id()));
        std::fs::create_dir_all(path.join("Test")).unwrap();
        Self(path)
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[test]
fn zone_data_that_changes_while_running_is_taken_over() {
    let directory = Directory::new();
    write(&directory.0, "<+08>-8");
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "in_a_process_of_its_own", "--ignored", "--nocapture"])
        .env("TZDIR", &directory.0)
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}\n{}", String::from_utf8_lossy(&output.stderr));
    assert!(text.contains("1 passed"), "{text}");
}

#[test]
#[ignore = "run by zone_data_that_changes_while_running_is_taken_over, with a zone directory"]
fn in_a_process_of_its_own() {
    let directory = PathBuf::from(std::env::var_os("TZDIR").unwrap());
    let noon = Cron::parse("0 12 * * *").unwrap().zone("test/city").unwrap();
    assert_eq!(noon.zone_name(), "Test/City");
    let from = at("2026-06-01T00:00:00Z");
    let next = |cron: &Cron| cron.next_after(from).unwrap().to_string();
    assert_eq!(next(&noon), "2026-06-01T04:00:00Z");
    assert!(!refresh_zones());

    // When told to look.
    write(&directory, "<+07>-7");
    assert_eq!(next(&noon), "2026-06-01T04:00:00Z", "not before anybody looked");
    assert!(refresh_zones());
    assert!(!refresh_zones());
    assert_eq!(next(&noon), "2026-06-01T05:00:00Z");

    // When the zone is asked for again, by everybody who has it.
    write(&directory, "<+06>-6");
    let again = Cron::parse("0 12 * * *").unwrap().zone("Test/City").unwrap();
    assert_eq!((next(&again), next(&noon)), ("2026-06-01T06:00:00Z".to_owned(), "2026-06-01T06:00:00Z".to_owned()));

    // By a scheduler, as its clock goes on.
    let registered = Moment::new(Monotonic::from_nanoseconds(1_000_000_000_000), from);
    let mut context = TriggerContext::new(registered);
    assert_eq!(noon.next(&context), Next::AtWall(at("2026-06-01T06:00:00Z")));
    write(&directory, "<+05>-5");
    assert_eq!(noon.next(&context), Next::AtWall(at("2026-06-01T06:00:00Z")));
    context.now = context.now.saturating_add(Duration::from_secs(10));
    assert_eq!(noon.next(&context), Next::AtWall(at("2026-06-01T07:00:00Z")));

    // Nonsense and nothing leave what was there.
    std::fs::write(directory.join("Test/City"), b"TZif2 and no more").unwrap();
    assert!(!refresh_zones());
    assert_eq!(next(&noon), "2026-06-01T07:00:00Z");
    std::fs::remove_file(directory.join("Test/City")).unwrap();
    assert!(!refresh_zones());
    assert_eq!(next(&noon), "2026-06-01T07:00:00Z");
    write(&directory, "EST5EDT,M3.2.0,M11.1.0");
    assert!(refresh_zones());
    assert_eq!(next(&noon), "2026-06-01T16:00:00Z");
    assert_eq!(noon.next_after(at("2026-12-01T00:00:00Z")).unwrap().to_string(), "2026-12-01T17:00:00Z");
}
