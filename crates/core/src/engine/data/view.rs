//! What was committed at a moment, for reads without a transaction.

use crate::engine::shared::{Engine, Shared};
use crate::mvcc::SnapshotGuard;
use crate::tree::{Reader, Tree};
use crate::types::Timestamp;
use crate::{Error, Result};
use std::sync::Arc;

/// Keeps what was committed when it was taken. Any number of threads may read with it.
pub(crate) struct FixedView {
    shared: Arc<Shared>,
    guard: SnapshotGuard,
}

impl Engine {
    /// The moment is now.
    pub(crate) fn fixed_view(&self) -> FixedView {
        FixedView::new(&self.shared, 0)
    }
}

impl FixedView {
    /// The moment is now. `label`: whose it is, see [`Engine::snapshots`].
    pub(in crate::engine) fn new(shared: &Arc<Shared>, label: u64) -> FixedView {
        FixedView { shared: shared.clone(), guard: shared.clock.snapshot(label) }
    }

    /// The last commit that it has.
    pub(crate) fn timestamp(&self) -> Timestamp {
        self.guard.timestamp()
    }

    /// The eyes through which the tree is read; [`Error::TableChanged`] if its content is younger.
    pub(crate) fn reader(&self, tree: &Tree) -> Result<Reader<'_>> {
        match self.timestamp() < tree.visible_from() {
            true => Err(Error::TableChanged),
            false => Ok(Reader { fate: Some(self.guard.fate()), ..Reader::at(self.timestamp()) }),
        }
    }

    /// So many keys were returned.
    pub(crate) fn count_reads(&self, keys: u64) {
        self.shared.counted.reads.add(keys);
    }
}
