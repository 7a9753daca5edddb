//! A small seeded generator: the same seed, the same numbers, on every platform
//! and in every version.

use std::time::Duration;

/// Pseudo-random numbers from a seed (SplitMix64). For scenarios, not for
/// secrets.
///
/// ```
/// use beatline_test::random::Random;
///
/// let (mut one, mut other) = (Random::new(7), Random::new(7));
/// assert_eq!(one.below(100), other.below(100));
/// ```
#[derive(Clone, Debug)]
pub struct Random(u64);

/// Spreads the bits of a number over all 64.
#[must_use]
pub const fn mix(value: u64) -> u64 {
    let mut mixed = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

impl Random {
    /// The sequence of this seed.
    #[must_use]
    pub const fn new(seed: u64) -> Self {
        // Neighbouring seeds must not give neighbouring sequences.
        Self(mix(seed))
    }

    /// Any number.
    pub fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(self.0)
    }

    /// A number less than `bound`; zero for a bound of zero.
    pub fn below(&mut self, bound: u64) -> u64 {
        // Multiply and shift: cheaper than a remainder, and even enough here.
        ((u128::from(self.number()) * u128::from(bound)) >> 64) as u64
    }

    /// Whether something that happens once in `times` happens now.
    pub fn once_in(&mut self, times: u64) -> bool {
        self.below(times) == 0
    }

    /// One of them.
    ///
    /// # Panics
    ///
    /// If there are none.
    pub fn pick<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len() as u64) as usize]
    }

    /// A duration from zero up to `most`, which is not included.
    pub fn duration(&mut self, most: Duration) -> Duration {
        Duration::from_nanos(self.below(u64::try_from(most.as_nanos()).unwrap_or(u64::MAX)))
    }
}
