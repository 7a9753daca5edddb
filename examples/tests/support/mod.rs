//! Runs the example programs.

use std::ffi::OsStr;
use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

/// The program of an example, which `cargo test` builds before it runs the first
/// test; with `--test NAME` it does not, and the program may be an older one.
fn program(example: &str) -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let profile = test.parent().and_then(|deps| deps.parent()).unwrap();
    let program = profile.join("examples").join(example).with_extension(std::env::consts::EXE_EXTENSION);
    assert!(program.exists(), "{} is not built: cargo build -p examples --examples", program.display());
    program
}

/// Runs an example to its end.
pub(crate) fn run(example: &str, arguments: impl IntoIterator<Item = impl AsRef<OsStr>>, input: &str) -> Output {
    let mut command = Command::new(program(example));
    command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    std::thread::scope(|scope| {
        // Beside the reading, so that neither side waits for the other's full pipe. A program that
        // reads no input may be gone already.
        scope.spawn(move || stdin.write_all(input.as_bytes()));
        child.wait_with_output().unwrap()
    })
}

pub(crate) fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}
