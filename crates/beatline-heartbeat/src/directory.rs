//! Where chunks are found: by index, without a lock, while more are added.
//!
//! Entries live in buckets of 64, 64, 128, 256 … that are made once and never
//! move, so a reference to a chunk stays good as long as the table does.

use std::sync::OnceLock;

use crate::chunk::{Chunk, SLOT_BITS};
use crate::sync::AtomicU64;

const FIRST_BUCKET_BITS: u32 = if cfg!(loom) { 1 } else { 6 };
/// Enough buckets for every index of 32 bits.
const BUCKETS: usize = (32 - SLOT_BITS - FIRST_BUCKET_BITS) as usize;

/// A chunk and, beside those of its neighbours, the bound that a sweep reads.
pub(crate) struct Entry<K> {
    /// No slot of the chunk has to be looked at before this step.
    pub(crate) lower: AtomicU64,
    chunk: OnceLock<Box<Chunk<K>>>,
}

impl<K> Entry<K> {
    pub(crate) fn chunk(&self) -> Option<&Chunk<K>> {
        self.chunk.get().map(Box::as_ref)
    }
}

pub(crate) struct Directory<K> {
    buckets: [OnceLock<Box<[Entry<K>]>>; BUCKETS],
}

impl<K> Default for Directory<K> {
    fn default() -> Self {
        Self { buckets: std::array::from_fn(|_| OnceLock::new()) }
    }
}

impl<K> Directory<K> {
    /// The bucket of chunk `number`, and the place in it.
    #[inline]
    const fn place(number: u32) -> (usize, usize) {
        let shifted = number as u64 + (1 << FIRST_BUCKET_BITS);
        let bucket = shifted.ilog2() - FIRST_BUCKET_BITS;
        (bucket as usize, (shifted - (1 << (bucket + FIRST_BUCKET_BITS))) as usize)
    }

    #[inline]
    pub(crate) fn entry(&self, number: u32) -> Option<&Entry<K>> {
        let (bucket, offset) = Self::place(number);
        self.buckets.get(bucket)?.get()?.get(offset)
    }

    /// The chunk that `index` lies in, and which of its slots it is.
    #[inline]
    pub(crate) fn locate(&self, index: u32) -> Option<(&Entry<K>, &Chunk<K>, u32)> {
        let entry = self.entry(index >> SLOT_BITS)?;
        Some((entry, entry.chunk()?, index & ((1 << SLOT_BITS) - 1)))
    }

    /// Adds chunk `number`; the caller hands out each number once, in order.
    /// `None` beyond the last number there can be.
    pub(crate) fn add(&self, number: u32, chunk: Chunk<K>) -> Option<&Entry<K>> {
        let (bucket, offset) = Self::place(number);
        let entries = self.buckets.get(bucket)?.get_or_init(|| {
            let fresh = || Entry { lower: AtomicU64::new(u64::MAX), chunk: OnceLock::new() };
            std::iter::repeat_with(fresh).take(1 << (bucket as u32 + FIRST_BUCKET_BITS)).collect()
        });
        let entry = entries.get(offset)?;
        entry.chunk.set(Box::new(chunk)).ok()?;
        Some(entry)
    }

    /// The entries from chunk `from` to before chunk `count`, in order. Bucket by
    /// bucket: a sweep walks over all of them and finds most not due.
    pub(crate) fn entries(&self, from: u32, count: u32) -> impl Iterator<Item = (u32, &Entry<K>)> {
        let buckets = self.buckets.iter().enumerate().map_while(|(bucket, entries)| Some((bucket, entries.get()?)));
        let all = buckets.flat_map(move |(bucket, entries)| {
            let first = ((1_u64 << (bucket as u32 + FIRST_BUCKET_BITS)) - (1 << FIRST_BUCKET_BITS)) as u32;
            let skipped = from.saturating_sub(first) as usize;
            let numbers = first.saturating_add(skipped as u32)..;
            numbers.zip(entries.iter().skip(skipped))
        });
        all.take_while(move |(number, _)| *number < count)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn entries_are_walked_from_anywhere() {
        let directory = Directory::<()>::default();
        let thresholds = crate::class::Thresholds { suspect: None, expire: 1, grace: 0 };
        let class = std::sync::Arc::new(crate::class::Class::new(std::time::Duration::MAX, thresholds));
        for number in 0..300 {
            let added = directory.add(number, Chunk::new(std::sync::Arc::clone(&class)));
            added.unwrap().lower.store(u64::from(number), crate::sync::Ordering::Relaxed);
        }
        for from in [0, 1, 63, 64, 65, 127, 128, 200, 299, 300, 301] {
            let walked: Vec<_> = directory
                .entries(from, 300)
                .map(|(number, entry)| (number, entry.lower.load(crate::sync::Ordering::Relaxed)))
                .collect();
            assert_eq!(walked, (from..300).map(|number| (number, u64::from(number))).collect::<Vec<_>>());
        }
    }

    #[test]
    fn places_are_dense_and_disjoint() {
        let mut expected = (0, 0);
        for number in 0..100_000 {
            assert_eq!(Directory::<()>::place(number), expected, "chunk {number}");
            expected.1 += 1;
            if expected.1 == 64 << expected.0 {
                expected = (expected.0 + 1, 0);
            }
        }
        let last = (u32::MAX >> SLOT_BITS) - 64;
        assert_eq!(Directory::<()>::place(last).0, BUCKETS - 1);
    }
}
