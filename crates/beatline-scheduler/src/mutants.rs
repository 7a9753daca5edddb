//! Seeded faults of the loop that serves the wall clock, to prove that the tests
//! would notice them.
//!
//! `mutant!("name", right, wrong)` is `right`, and in a build with
//! `--cfg beatline_mutants` it is `wrong` while the environment variable
//! `BEATLINE_MUTANT` holds that name. `.ci/mutants wall` tries them all.

macro_rules! mutant {
    ($name:literal, $right:expr, $wrong:expr) => {{
        #[cfg(beatline_mutants)]
        let value = if $crate::mutants::is_chosen($name) { $wrong } else { $right };
        #[cfg(not(beatline_mutants))]
        let value = $right;
        value
    }};
}

pub(crate) use mutant;

#[cfg(beatline_mutants)]
pub(crate) fn is_chosen(name: &str) -> bool {
    static CHOSEN: std::sync::OnceLock<Option<String>> = std::sync::OnceLock::new();
    CHOSEN.get_or_init(|| std::env::var("BEATLINE_MUTANT").ok()).as_deref() == Some(name)
}
