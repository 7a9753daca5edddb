//! ```text
//!   due             0         10        20        30
//!   one, first      ━━━━━━━━━━··········x··━━━━   ━━━━    10 waits, 20 finds the buffer full
//!   one, latest     ━━━━━━━━━━··········x··━━━━   ━━━━    20 takes the place of 10
//!   all             ━━━━━━━━━━·············━━━━━━━━━━━━   10, 20, 30 one after another
//! ```

use super::Decision;

pub(super) const DEFAULT_CAP: usize = 1000;

/// Which occurrence waits, where only one may.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Keep {
    /// The first; later ones are `Skipped{BufferFull}`.
    First,
    /// The latest; the one that waited is `Skipped{Superseded}`.
    Latest,
}

/// Which occurrence gives way when the buffer is full, as `Skipped{BufferFull}`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Overflow {
    /// The one that just became due.
    DropNewest,
    /// The one that has waited longest.
    DropOldest,
}

pub(super) const fn decide_one(keep: Keep, has_room: bool) -> Decision {
    match (has_room, keep) {
        (true, _) => Decision::Start,
        (false, Keep::First) => Decision::Buffer,
        (false, Keep::Latest) => Decision::BufferSupersede,
    }
}

pub(super) const fn decide_all(overflow: Overflow, has_room: bool) -> Decision {
    match (has_room, overflow) {
        (true, _) => Decision::Start,
        (false, Overflow::DropNewest) => Decision::Buffer,
        (false, Overflow::DropOldest) => Decision::BufferDropOldest,
    }
}
