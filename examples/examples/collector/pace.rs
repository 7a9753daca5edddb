//! How fast the market's clock runs: `--speed`.

use std::str::FromStr;
use std::time::Duration;

/// The shortest period of a job, half a minute, is a millisecond at this speed;
/// a scheduler does not act more often.
const FASTEST: f64 = 30_000.0;

/// By what periods and time-outs are divided.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Pace(f64);

impl Pace {
    /// What `seconds` of the market's time take here.
    pub(crate) fn seconds(self, seconds: u32) -> Duration {
        // A speed near zero makes periods that never come, which is legal.
        Duration::try_from_secs_f64(f64::from(seconds) / self.0).unwrap_or(Duration::MAX)
    }

    /// The speed as a number.
    pub(crate) fn factor(self) -> f64 {
        self.0
    }
}

impl FromStr for Pace {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wanted = format!("give a number above 0 and up to {FASTEST}; 1 is real time");
        let speed: f64 = text.parse().map_err(|_| format!("is not a number; {wanted}"))?;
        if speed > 0.0 && speed <= FASTEST { Ok(Self(speed)) } else { Err(format!("is out of range; {wanted}")) }
    }
}
