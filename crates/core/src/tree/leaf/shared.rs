//! What leaves share: those of one tree, and those of all trees of an engine.

use super::ahead::ReadAhead;
use super::lifecycle::FileCopy;
use super::node::{InnerView, Pages};
use super::{watched, Image};
use crate::cache::{Cache, Usage};
use crate::mvcc::Clock;
use crate::options::TreeSpec;
use crate::store::{Lifetime, PreparedBlock, Space, SpillFile, TreeRoot};
use crate::sync::atomic::{AtomicI64, AtomicU64, AtomicUsize, Ordering};
use crate::tree::block::Block;
use crate::tree::encoding::Encoding;
use crate::tree::versions::delta::Delta;
use crate::tree::versions::past::PastUsage;
use crate::types::TreeId;
use crate::Result;
use std::sync::{Arc, OnceLock, Weak};

/// What the leaves of all trees of an engine draw on.
pub struct Resources {
    /// The memory budget.
    pub cache: Arc<Cache>,
    /// Commits and snapshots.
    pub clock: Arc<Clock>,
    /// Bytes of leaves, each at [`LEAF_BYTES`](super::LEAF_BYTES), wherever its content is.
    pub leaves: Arc<Usage>,
    /// Bytes of all deltas that a checkpoint is to fold, in memory or spilled.
    pub changes: Usage,
    /// Where dirty content goes under memory pressure.
    pub spill: Arc<SpillFile>,
    /// What is kept for old snapshots.
    pub past: Arc<PastUsage>,
    /// Blocks on their way to memory that nobody has asked for yet.
    pub ahead: Arc<ReadAhead>,
    /// Bytes of values in a frame, at least; 0 until the durable superblock says that leaves may be in frames.
    pub frame_bytes: Arc<AtomicUsize>,
}

/// What the leaves of one tree share.
pub(crate) struct TreeShared {
    pub id: TreeId,
    /// As the tree was opened; compression may have changed: see [`Encoding::packing`].
    pub spec: TreeSpec,
    /// How its blocks are stored.
    pub encoding: Encoding,
    pub space: Arc<Space>,
    pub context: Arc<Resources>,
    /// Stands in for the delta of leaves without changes.
    pub no_delta: Arc<Delta>,
    /// Stands in for a base that a reader does not see.
    pub no_rows: Arc<Block>,
    pub size: Size,
    pub uses: Uses,
    /// The tree, once there is one.
    pub(in crate::tree) pages: OnceLock<Weak<dyn Pages>>,
}

/// How large a tree is: statistics.
pub(crate) struct Size {
    entries: AtomicI64,
    /// Since it was opened; on the line that a commit writes to anyhow.
    inserts: AtomicU64,
    leaves: AtomicU64,
    stored_bytes: AtomicI64,
    raw_bytes: AtomicI64,
    changed_at: AtomicU64,
}

/// How often a tree is read since it was opened: statistics, which cursors add to now and then.
#[derive(Default)]
pub(crate) struct Uses {
    look_ups: AtomicU64,
    scans: AtomicU64,
}

impl Uses {
    // Relaxed in both of these: statistics.

    pub(in crate::tree) fn add(&self, look_ups: u64, scans: u64) {
        for (number, more) in [(&self.look_ups, look_ups), (&self.scans, scans)] {
            if more > 0 {
                number.fetch_add(more, Ordering::Relaxed); // Relaxed: see above
            }
        }
    }

    pub(in crate::tree) fn get(&self) -> (u64, u64) {
        (self.look_ups.load(Ordering::Relaxed), self.scans.load(Ordering::Relaxed))
        // Relaxed: see above
    }
}

impl Size {
    /// As the root says; of an empty tree without one.
    pub(in crate::tree) fn of(root: Option<&TreeRoot>) -> Size {
        Size {
            entries: AtomicI64::new(root.map_or(0, |r| r.entries as i64)),
            inserts: AtomicU64::new(0),
            leaves: AtomicU64::new(root.map_or(1, |r| r.leaves)),
            stored_bytes: AtomicI64::new(root.map_or(0, |r| r.stored_bytes as i64)),
            raw_bytes: AtomicI64::new(root.map_or(0, |r| r.raw_bytes as i64)),
            changed_at: AtomicU64::new(0),
        }
    }

    // Relaxed in all of these: statistics.

    pub(in crate::tree) fn entries(&self) -> u64 {
        self.entries.load(Ordering::Relaxed).max(0) as u64 // Relaxed: see above
    }

    pub(in crate::tree) fn add_entries(&self, change: i64) {
        self.entries.fetch_add(change, Ordering::Relaxed); // Relaxed: see above
    }

    pub(in crate::tree) fn inserts(&self) -> u64 {
        self.inserts.load(Ordering::Relaxed) // Relaxed: see above
    }

    pub(in crate::tree) fn add_inserts(&self, more: u64) {
        if more > 0 {
            self.inserts.fetch_add(more, Ordering::Relaxed); // Relaxed: see above
        }
    }

    pub(in crate::tree) fn changed_at(&self) -> u64 {
        self.changed_at.load(Ordering::Relaxed) // Relaxed: see above
    }

    /// Written once a second, however many commits there are: all of them would share the cache line otherwise.
    pub(in crate::tree) fn note_change(&self, second: u64) {
        if self.changed_at() != second {
            self.changed_at.store(second, Ordering::Relaxed); // Relaxed: see above
        }
    }

    pub(in crate::tree) fn leaves(&self) -> u64 {
        self.leaves.load(Ordering::Relaxed) // Relaxed: see above
    }

    pub(in crate::tree) fn add_leaves(&self, more: usize) {
        self.leaves.fetch_add(more as u64, Ordering::Relaxed); // Relaxed: see above
    }

    pub(in crate::tree) fn remove_leaf(&self) {
        let before = self.leaves.fetch_sub(1, Ordering::Relaxed); // Relaxed: see above
        debug_assert!(before > 1, "a tree without leaves");
    }

    pub(in crate::tree) fn raw_bytes(&self) -> u64 {
        self.raw_bytes.load(Ordering::Relaxed).max(0) as u64 // Relaxed: see above
    }

    pub(in crate::tree) fn stored_bytes(&self) -> u64 {
        self.stored_bytes.load(Ordering::Relaxed).max(0) as u64 // Relaxed: see above
    }

    /// A leaf's newest copy is `now`, no longer `before`.
    pub(in crate::tree) fn count_image(&self, before: Option<&FileCopy>, now: Option<&FileCopy>) {
        let sizes = |copy: Option<&FileCopy>| copy.map_or((0, 0), FileCopy::sizes);
        let ((stored_before, raw_before), (stored, raw)) = (sizes(before), sizes(now));
        self.stored_bytes.fetch_add(stored - stored_before, Ordering::Relaxed); // Relaxed: see above
        self.raw_bytes.fetch_add(raw - raw_before, Ordering::Relaxed); // Relaxed: see above
    }

    /// The tree consists of these leaves, and of nothing else.
    pub(in crate::tree) fn become_images(&self, leaves: u64, images: &[Arc<Image>]) {
        let sizes = images.iter().map(|image| image.sizes());
        let (stored, raw) = sizes.fold((0, 0), |sum, image| (sum.0 + image.0, sum.1 + image.1));
        self.stored_bytes.store(stored, Ordering::Relaxed); // Relaxed: see above
        self.raw_bytes.store(raw, Ordering::Relaxed); // Relaxed: see above
        self.leaves.store(leaves, Ordering::Relaxed); // Relaxed: see above
    }
}

impl TreeShared {
    /// Whether the tree has no file: then no leaf ever leaves memory.
    #[inline]
    pub(in crate::tree) fn is_in_memory(&self) -> bool {
        self.space.memory_limit().is_some()
    }

    /// Whether the log has what is written to the tree, and checkpoints have its leaves: of one that outlives the
    /// engine.
    #[inline]
    pub(in crate::tree) fn is_logged(&self) -> bool {
        self.space.is_lasting()
    }

    /// Children of an inner node before it splits.
    pub(in crate::tree) fn most_children(&self) -> usize {
        InnerView::most_children(self.spec.block_bytes)
    }

    /// Children of one that is filled in order: some places stay free in each, as the keys of a page are never quite in
    /// order.
    pub(in crate::tree) fn filled_children(&self) -> usize {
        let most = self.most_children();
        most - most / 16
    }

    /// A leaf's block, compressed, with an extent to be written to (see [`Encoding::prepare`]); and what is to be said
    /// of it once it is written. All that come to disk by themselves go this way.
    pub(in crate::tree) fn prepare(
        &self,
        lifetime: Lifetime,
        block: &Arc<Block>,
    ) -> Result<(FileCopy, PreparedBlock)> {
        debug_assert!(watched::has_none(), "a block is compressed under a tree's structure latch");
        let tree_bytes = self.size.leaves().saturating_mul(u64::from(self.spec.block_bytes));
        // Relaxed: nothing is reached through it.
        let least_frame = self.context.frame_bytes.load(Ordering::Relaxed);
        let prepared = self.encoding.prepare(lifetime, tree_bytes, block, least_frame)?;
        let image = Image::with_blobs(prepared.extent().clone(), block.blobs());
        Ok((FileCopy::of(image, block), prepared))
    }
}
