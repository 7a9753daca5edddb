//! What users get wrong is answered, at compile time, with what to write instead.
//!
//! Each file under `ui/` must fail to compile, with the words of its first line
//! somewhere in the compiler's answer. The answer as a whole differs from one
//! compiler to the next; our words in it do not.

#![allow(clippy::unwrap_used, reason = "tests")]

use std::path::Path;
use std::process::Command;

#[test]
fn mistakes_are_answered_in_words() {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let project = Path::new(env!("CARGO_TARGET_TMPDIR")).join("compile_fail");
    std::fs::create_dir_all(project.join("src/bin")).unwrap();
    let manifest = format!(
        "[package]\nname = \"compile-fail\"\nversion = \"0.0.0\"\nedition = \"2024\"\n\n\
         [dependencies]\nbeatline-scheduler = {{ path = {here:?} }}\n\n[workspace]\n"
    );
    std::fs::write(project.join("Cargo.toml"), manifest).unwrap();
    std::fs::copy(here.join("../../Cargo.lock"), project.join("Cargo.lock")).unwrap();

    let mut cases = Vec::new();
    for entry in std::fs::read_dir(here.join("tests/ui")).unwrap() {
        let path = entry.unwrap().path();
        let source = std::fs::read_to_string(&path).unwrap();
        let expected = source.lines().next().unwrap().strip_prefix("//~ ").expect("the first line says what to expect");
        let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
        std::fs::write(project.join("src/bin").join(format!("{name}.rs")), &source).unwrap();
        cases.push((name, expected.to_owned()));
    }
    assert!(cases.len() >= 6);
    for (name, expected) in cases {
        let output = Command::new(env!("CARGO"))
            .args(["check", "--quiet", "--bin", &name, "--target-dir"])
            .arg(project.join("target"))
            .current_dir(&project)
            .output()
            .unwrap();
        let answer = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success(), "{name} compiles");
        assert!(answer.contains(&expected), "{name}: expected {expected:?} in\n{answer}");
    }
}
