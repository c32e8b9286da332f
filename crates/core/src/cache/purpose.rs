//! What the memory is charged for, in shares of the whole.
//!
//! Each thread adds to a row of its own, as in [`super::usage`]. What each write charges has no counter here: it is
//! what the others leave of the sum.

use std::sync::atomic::{AtomicI64, Ordering};

use crossbeam_utils::CachePadded;

use super::usage::{own_counter, COUNTERS};

/// What memory is charged for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[repr(usize)]
pub enum Purpose {
    /// Leaves' bases: blocks, and what is in memory as it is stored.
    Blocks,
    /// Large values.
    Values,
    /// Dictionaries, and the samples that they are made of.
    Dictionaries,
    /// Of transactions: redo that is not in the log yet, and entries that are gathered until the statement ends.
    Transactions,
    /// Runs of entries that are sorted.
    Sorting,
    /// Inner pages that a checkpoint writes.
    Checkpoints,
    /// Operations of the log that a start replays.
    Recovery,
    /// What statements charge row by row: leaves' changes, versions that are kept for snapshots, and row locks. Both of
    /// the latter are counted where they are.
    Rows,
}

impl Purpose {
    /// How many there are.
    pub const COUNT: usize = Purpose::Rows as usize + 1;
}

/// Those with a counter.
const COUNTED: usize = Purpose::Rows as usize;

/// Bytes by purpose. All orderings are Relaxed: these are numbers, nothing is reached through them.
#[derive(Default)]
pub(super) struct ByPurpose([CachePadded<[AtomicI64; COUNTED]>; COUNTERS]);

impl ByPurpose {
    #[inline]
    pub fn add(&self, purpose: Purpose, bytes: i64) {
        // Those that have one.
        if let Some(counter) = self.0[own_counter()].get(purpose as usize) {
            counter.fetch_add(bytes, Ordering::Relaxed);
        }
    }

    /// What each has of `charged` bytes, in all; exact while nobody adds.
    pub fn of(&self, charged: u64) -> [u64; Purpose::COUNT] {
        let counted = |purpose: usize| {
            let sum: i64 = self.0.iter().map(|row| row[purpose].load(Ordering::Relaxed)).sum();
            sum.max(0) as u64
        };
        let mut shares = [0; Purpose::COUNT];
        (0..COUNTED).for_each(|purpose| shares[purpose] = counted(purpose));
        shares[Purpose::Rows as usize] = charged.saturating_sub(shares.iter().sum());
        shares
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_others_leave_is_for_rows() {
        let by_purpose = ByPurpose::default();
        by_purpose.add(Purpose::Values, 70);
        by_purpose.add(Purpose::Rows, 1000);
        // What one thread takes another gives back.
        std::thread::scope(|scope| {
            scope.spawn(|| by_purpose.add(Purpose::Values, -30));
            scope.spawn(|| by_purpose.add(Purpose::Blocks, 5));
        });
        let mut expected = [0; Purpose::COUNT];
        let told = [(Purpose::Blocks, 5), (Purpose::Values, 40), (Purpose::Rows, 1000)];
        told.into_iter().for_each(|(purpose, bytes)| expected[purpose as usize] = bytes);
        assert_eq!(by_purpose.of(1045), expected);
    }
}
