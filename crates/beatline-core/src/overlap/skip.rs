//! ```text
//!   due   0         10        20        30
//!         ━━━━━━━━━━x━━━━━━━━━x━━       ━━━━
//! ```

use super::Decision;

pub(super) const fn decide(has_room: bool) -> Decision {
    if has_room { Decision::Start } else { Decision::Skip }
}
