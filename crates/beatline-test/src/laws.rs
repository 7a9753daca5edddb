//! The laws that every trigger and every overlap policy must obey, ours or
//! yours.
//!
//! ```
//! use beatline_core::Overlap;
//! use beatline_fixed_rate::FixedRate;
//! use beatline_test::laws;
//! use std::time::Duration;
//!
//! laws::trigger(&FixedRate::every(Duration::from_secs(30)));
//! laws::overlap(&Overlap::buffer_all());
//! ```

mod overlap;
mod trigger;

use std::fmt;

pub use overlap::{check_overlap, overlap};
pub use trigger::{check_trigger, trigger};

/// A law that does not hold, and where it does not.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct BrokenLaw {
    /// The law, as a sentence.
    pub law: &'static str,
    /// What was found.
    pub found: String,
}

impl fmt::Display for BrokenLaw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "law broken: {}; {}", self.law, self.found)
    }
}

impl std::error::Error for BrokenLaw {}

fn hold(holds: bool, law: &'static str, found: impl FnOnce() -> String) -> Result<(), BrokenLaw> {
    if holds { Ok(()) } else { Err(BrokenLaw { law, found: found() }) }
}
