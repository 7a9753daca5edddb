//! ```text
//!   due   0         10        20        30
//!         ━━━━━━━━━━━━━━━━━━━━━━━       ━━━━
//!                   ━━━━      ━━━━
//! ```

use super::Decision;

pub(super) const DEFAULT_MAX_CONCURRENT: usize = 1000;

/// Always start; the scheduler turns what is above the limit into a skip.
pub(super) const fn decide() -> Decision {
    Decision::Start
}
