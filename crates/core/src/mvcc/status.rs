//! The fate of one transaction, shared by all its versions.

use crate::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use crate::sync::RwLock;
use crate::types::{Timestamp, TxnId};
use std::sync::Arc;

const ACTIVE: u64 = u64::MAX;
const ABORTED: u64 = u64::MAX - 1;

/// What became of a transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// Not decided: visible to itself only.
    Active,
    /// Visible to snapshots at or after the timestamp.
    Committed(Timestamp),
    /// Never visible; its versions are garbage.
    Aborted,
}

/// Shared by a transaction and its versions. Rolling back marks here, and readers skip: O(1) whatever was written
/// (after Constant Time Recovery, PVLDB 12(12), 2019).
#[derive(Debug)]
pub struct TxnStatus {
    id: TxnId,
    state: AtomicU64,
    /// How often writes were rolled back to a savepoint.
    voided: AtomicU32,
    /// Whether somebody has charged this object.
    charged: AtomicBool,
    /// Sequence ranges (after, through] rolled back to savepoints: ascending, with gaps between them.
    voids: RwLock<Vec<(u32, u32)>>,
}

impl TxnStatus {
    /// Bytes of memory that one takes, with what its Arc and the allocator need.
    pub const BYTES: usize = 80;

    /// An active transaction.
    pub fn new(id: TxnId) -> Arc<TxnStatus> {
        TxnStatus::of(id, ACTIVE)
    }

    /// Stands for a transaction that has committed: for versions that were put away with no more than the timestamp.
    pub fn of_commit(timestamp: Timestamp) -> Arc<TxnStatus> {
        debug_assert!(timestamp < ABORTED);
        TxnStatus::of(0, timestamp)
    }

    fn of(id: TxnId, state: u64) -> Arc<TxnStatus> {
        Arc::new(TxnStatus {
            id,
            state: AtomicU64::new(state),
            voided: AtomicU32::new(0),
            charged: AtomicBool::new(false),
            voids: RwLock::new(Vec::new()),
        })
    }

    /// Whether the caller is the first to ask: it charges [`TxnStatus::BYTES`] for the object, which those who name it
    /// keep.
    #[inline]
    pub fn charges(&self) -> bool {
        // Relaxed: a mark that nothing depends on but who counts.
        !self.charged.load(Ordering::Relaxed) && !self.charged.swap(true, Ordering::Relaxed)
    }

    /// Its identifier.
    pub fn id(&self) -> TxnId {
        self.id
    }

    /// What became of it, as of now.
    pub fn state(&self) -> State {
        // Acquire: pairs with the Release stores below, so that void ranges set before the commit are seen.
        match self.state.load(Ordering::Acquire) {
            ACTIVE => State::Active,
            ABORTED => State::Aborted,
            timestamp => State::Committed(timestamp),
        }
    }

    /// Called by the clock only, under its latch.
    pub(super) fn set_committed(&self, timestamp: Timestamp) {
        debug_assert!(timestamp < ABORTED);
        // Release: whoever sees the timestamp sees all that the transaction did before.
        self.state.store(timestamp, Ordering::Release);
    }

    /// Rolls the whole transaction back.
    pub fn abort(&self) {
        debug_assert!(!matches!(self.state(), State::Committed(_)), "a committed transaction cannot abort");
        // Release: pairs with `state`.
        self.state.store(ABORTED, Ordering::Release);
    }

    /// Rolls back the writes with a sequence number in (`after`, `through`].
    pub fn void(&self, after: u32, through: u32) {
        if after >= through {
            return;
        }
        debug_assert_eq!(self.state(), State::Active, "a decided transaction rolls nothing back");
        let mut voids = self.voids.write();
        let kept = voids.partition_point(|range| range.0 < after);
        voids.truncate(kept);
        match voids.last_mut() {
            Some(last) if last.1 >= after => last.1 = through.max(last.1),
            _ => voids.push((after, through)),
        }
        debug_assert!(
            voids.windows(2).all(|pair| pair[0].1 < pair[1].0),
            "ranges with gaps, ascending: {voids:?}"
        );
        // Release: pairs with the Acquire in `voided`; the latch orders the writers.
        self.voided.fetch_add(1, Ordering::Release);
    }

    /// How often some of its writes were rolled back to a savepoint.
    #[inline]
    pub fn voided(&self) -> u32 {
        // Acquire: pairs with the Release in `void`.
        self.voided.load(Ordering::Acquire)
    }

    /// Whether the write with this sequence number was rolled back to a savepoint.
    pub fn is_void(&self, sequence: u32) -> bool {
        if self.voided() == 0 {
            return false;
        }
        let voids = self.voids.read();
        let before = voids.partition_point(|range| range.0 < sequence);
        before > 0 && sequence <= voids[before - 1].1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn void_ranges_cover_what_was_rolled_back_and_nothing_else() {
        let status = TxnStatus::new(1);
        status.void(2, 5);
        assert!(!status.is_void(2) && status.is_void(3) && status.is_void(5) && !status.is_void(6));
        status.void(1, 7);
        assert!(!status.is_void(1) && status.is_void(2) && status.is_void(7) && !status.is_void(8));
        status.void(7, 9);
        assert!(status.is_void(8) && status.is_void(4));
    }

    #[test]
    fn one_takes_no_more_memory_than_is_charged() {
        // Two counts of the Arc, and what the C library's malloc needs.
        assert!(std::mem::size_of::<TxnStatus>() + 3 * std::mem::size_of::<usize>() <= TxnStatus::BYTES);
        let status = TxnStatus::new(1);
        assert_eq!([status.charges(), status.charges()], [true, false]);
        assert_eq!(TxnStatus::of_commit(7).state(), State::Committed(7));
    }

    #[test]
    fn ten_thousand_rolled_back_savepoints_are_as_cheap_to_ask_for_as_one() {
        // Of ten writes after each savepoint one stays.
        const SAVEPOINTS: u32 = 10_000;
        let status = TxnStatus::new(1);
        (0..SAVEPOINTS).for_each(|n| status.void(n * 10 + 1, n * 10 + 10));
        let void = |sequence: u32| sequence > 0 && sequence % 10 != 1;
        let began = std::time::Instant::now();
        for sequence in 0..=SAVEPOINTS * 10 {
            assert_eq!(status.is_void(sequence), void(sequence), "{sequence}");
        }
        // A walk over all ranges takes 500 times that.
        assert!(began.elapsed().as_secs() < 2, "{:?}", began.elapsed());
        // Those that touch are one.
        (0..SAVEPOINTS).for_each(|n| status.void(200_000 + n, 200_001 + n));
        assert_eq!(status.voids.read().len(), SAVEPOINTS as usize + 1);
        // A savepoint before them all.
        status.void(0, 300_000);
        assert_eq!(*status.voids.read(), [(0, 300_000)]);
    }
}
