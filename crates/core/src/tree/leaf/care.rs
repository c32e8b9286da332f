//! What leaves wait for, and the marks that say which leaf waits for what. Who puts a mark on and takes it off is in
//! [`crate::tree::change::waiting`].

use crate::sync::atomic::{AtomicU8, Ordering};

/// What a leaf waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Care {
    /// It has something that no image has; or, of a tree that has none, changes that were not settled.
    Write,
    /// It was due for consolidation while its changes were undecided: it is folded once they are decided.
    Fold,
    /// It has lost most of its rows: it is merged with a neighbour where both fit into one.
    Merge,
    /// All of its rows were deleted, but perhaps not for good: it is consolidated once that is decided.
    Retire,
    /// It has history, which goes once no snapshot needs it.
    Collect,
    /// It is vacant, and leaves the tree once no snapshot and no checkpoint needs it.
    Remove,
    /// Appends have filled it, and nothing changes it soon: its image may be written ahead of the next checkpoint.
    WriteAhead,
}

impl Care {
    /// How many there are.
    pub(in crate::tree) const COUNT: usize = 7;
    /// All of them.
    pub(in crate::tree) const ALL: [Care; Care::COUNT] =
        [Care::Write, Care::Fold, Care::Merge, Care::Retire, Care::Collect, Care::Remove, Care::WriteAhead];

    /// Leaves that wait for it.
    pub(in crate::tree) fn leaves(self) -> &'static str {
        match self {
            Care::Write => "dirty leaves",
            Care::Fold => "due leaves",
            Care::Merge => "thin leaves",
            Care::Retire => "spent leaves",
            Care::Collect => "leaves with history",
            Care::Remove => "vacant leaves",
            Care::WriteAhead => "finished leaves",
        }
    }

    /// So many more of them are worth waking somebody for; `None`: they wait until somebody comes.
    pub(in crate::tree) fn many(self) -> Option<usize> {
        match self {
            Care::Retire => Some(32),
            _ => None,
        }
    }

    /// More do not wait: the oldest are left to somebody else.
    pub(in crate::tree) fn most(self) -> usize {
        match self {
            // Who is so far behind leaves them to the checkpoint.
            Care::WriteAhead => 4096,
            _ => usize::MAX,
        }
    }

    fn bit(self) -> u8 {
        1 << self as u8
    }
}

/// A set of cares: those for which a leaf is in a list of its tree, or a tree in one of its engine.
#[derive(Default)]
pub(in crate::tree) struct Marks(AtomicU8);

impl Marks {
    #[inline]
    pub fn has(&self, care: Care) -> bool {
        self.0.load(Ordering::SeqCst) & care.bit() != 0
    }

    /// Whether it waits for nothing.
    pub fn are_none(&self) -> bool {
        self.0.load(Ordering::SeqCst) == 0
    }

    /// `true`: it was not there.
    pub fn put_on(&self, care: Care) -> bool {
        self.0.fetch_or(care.bit(), Ordering::SeqCst) & care.bit() == 0
    }

    pub fn take_off(&self, care: Care) {
        self.0.fetch_and(!care.bit(), Ordering::SeqCst);
    }
}
