//! Who has been to which tree: tells an owner that it is alone there without a look at any row.
//!
//! An owner enters a tree before its first request of a row of it and leaves when it has given back everything. Trees
//! share places, so "alone" may be denied without reason, and never said without. A place is counted in several cells,
//! so that short transactions of one table do not all write to the same cache line.

use crossbeam_utils::CachePadded;

use crate::sync::atomic::{AtomicU32, Ordering};
use crate::{TreeId, TxnId};

const PLACES: usize = 256;
/// Of a place.
const CELLS: usize = 4;

/// Of all owners.
pub(super) struct Presence {
    cells: Box<[[CachePadded<AtomicU32>; CELLS]]>,
}

/// Where an owner has entered.
#[derive(Default)]
pub(super) struct Entered([u64; PLACES / 64]);

fn place(tree: TreeId) -> usize {
    tree as usize % PLACES
}

impl Presence {
    pub(super) fn new() -> Presence {
        Presence { cells: (0..PLACES).map(|_| Default::default()).collect() }
    }

    fn cell(&self, place: usize, txn: TxnId) -> &AtomicU32 {
        &self.cells[place][txn as usize % CELLS]
    }

    /// An owner is about to ask for its first row of the tree, or of none.
    #[inline]
    pub(super) fn enter(&self, entered: &mut Entered, tree: TreeId, txn: TxnId) {
        let place = place(tree);
        let (word, bit) = (&mut entered.0[place / 64], 1 << (place % 64));
        if *word & bit == 0 {
            *word |= bit;
            self.cell(place, txn).fetch_add(1, Ordering::SeqCst);
        }
    }

    /// An owner has given back all that it had locked.
    pub(super) fn leave(&self, entered: &mut Entered, txn: TxnId) {
        for (of, word) in entered.0.iter_mut().enumerate() {
            while *word != 0 {
                let bit = word.trailing_zeros() as usize;
                *word &= *word - 1;
                self.cell(of * 64 + bit, txn).fetch_sub(1, Ordering::SeqCst);
            }
        }
    }

    /// Whether there is none but the one who asks, and who has entered.
    pub(super) fn is_alone(&self, tree: TreeId) -> bool {
        self.cells[place(tree)].iter().map(|cell| cell.load(Ordering::SeqCst)).sum::<u32>() == 1
    }

    /// Whether all have left.
    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        self.cells.iter().flatten().all(|cell| cell.load(Ordering::SeqCst) == 0)
    }
}
