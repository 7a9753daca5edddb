//! The measurements are in `benches/benches`: `cargo bench -p benches --bench …`.
