//! Seeded faults, to prove that the tests would see them.
//!
//! In an ordinary build every question is answered `false` at compile time.
//! Under `--cfg beatline_mutants` the environment variable `BEATLINE_MUTANT`
//! names the one fault that is switched on, so that one build tries them all.

#[cfg(not(beatline_mutants))]
#[inline(always)]
pub(crate) const fn planted(_name: &str) -> bool {
    false
}

#[cfg(beatline_mutants)]
pub(crate) fn planted(name: &str) -> bool {
    static CHOSEN: std::sync::OnceLock<String> = std::sync::OnceLock::new();
    CHOSEN.get_or_init(|| std::env::var("BEATLINE_MUTANT").unwrap_or_default()) == name
}
