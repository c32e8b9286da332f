//! Trees of delta leaves: ordered maps of byte keys to byte values, many versions each.
//!
//! ```text
//! Tree ── root ──> inner ──> inner ──> leaf ──> view { base, delta, history }
//! ```
//!
//! Readers descend and read without latch or lock. A writer latches one leaf for one push. Structure changes (splits,
//! removal of empty leaves) are serialised by the tree's structure latch, and publish top-down: a parent knows a new
//! leaf before the old one is narrowed, so a descent that meets a narrowed leaf finds the right one by starting again.
//! Latch order: structure latch, then leaf latches; a thread that holds a leaf latch never waits for the structure
//! latch.
//!
//! This room knows `store` (to read and write blocks), `cache` (to account for memory) and `mvcc`; it knows neither the
//! log nor transactions beyond their [`TxnStatus`].

mod attended;
pub mod block;
mod change;
mod check;
mod check_image;
mod encoding;
mod leaf;
mod read;
mod storing;
#[cfg(test)]
mod tests;
mod versions;

pub use change::write::Write;
pub use check::Depth;
pub use check_image::{check_image, ImageVisitor};
pub use read::cursor::TreeCursor;
pub use read::pass_over::Lost;
pub use read::window::Window;
pub use storing::direct::{BlockQueue, DirectJob, Written};
pub use storing::image::Moment;
pub use storing::load::TreeLoader;
pub use versions::past::{Held, PastUsage};
pub use versions::visibility::Reader;

use crate::cache::Cache;
use crate::mvcc::{Clock, SnapshotGuard, TxnStatus};
use crate::options::TreeSpec;
use crate::store::{BlockAddress, Extent, Lifetime, PreparedBlock, Space, SpillFile, TreeRoot};
use crate::types::{Timestamp, TreeId};
use crate::{Error, Result};
use arc_swap::ArcSwap;
use attended::Attended;
use block::Block;
use encoding::Encoding;
pub(crate) use leaf::node::Node;
use leaf::node::{Bounds, Inner};
use leaf::{Image, Latched, Leaf};
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use versions::delta::Delta;

/// Longest key, in bytes.
pub const MAX_KEY_BYTES: usize = 16 << 10;
/// Longest value, in bytes.
pub const MAX_VALUE_BYTES: u64 = u32::MAX as u64 - 64;

/// What all trees of an engine share.
pub struct TreeContext {
    /// The memory budget.
    pub cache: Arc<Cache>,
    /// Commits and snapshots.
    pub clock: Arc<Clock>,
    /// Where dirty content goes under memory pressure.
    pub spill: Arc<SpillFile>,
    /// Blocks of a tree that its dictionary is trained on, in bytes; 0: none are trained.
    dictionary_sample_bytes: usize,
    /// Blocks on their way to their files.
    pub blocks: Arc<BlockQueue>,
    /// What is kept for old snapshots.
    pub past: PastUsage,
    with_past: Attended,
    with_spent: Attended,
    /// Leaves that wait for [`Tree::write_finished`].
    finished: AtomicUsize,
    /// What scans have passed over, if they may.
    lost: OnceLock<read::pass_over::LostRanges>,
}

impl TreeContext {
    /// For the trees of one engine; `dictionary_sample_bytes` as in [`crate::Options`].
    pub fn new(
        cache: Arc<Cache>,
        clock: Arc<Clock>,
        spill: Arc<SpillFile>,
        dictionary_sample_bytes: usize,
    ) -> TreeContext {
        TreeContext {
            cache,
            clock,
            spill,
            dictionary_sample_bytes,
            blocks: Arc::default(),
            past: PastUsage::new(),
            with_past: Attended::default(),
            with_spent: Attended::default(),
            finished: AtomicUsize::new(0),
            lost: OnceLock::new(),
        }
    }

    /// Leaves that appends have filled and that wait to be written.
    #[inline]
    pub fn finished_leaves(&self) -> usize {
        // Relaxed: a hint that there is work.
        self.finished.load(Ordering::Relaxed)
    }

    /// [`Tree::collect_history`] for all trees that have any, or vacant leaves.
    pub fn collect_history(&self) -> Result<()> {
        self.with_past.each(|tree| &tree.in_with_past, Tree::collect_history, Tree::has_past)
    }

    /// [`Tree::retire_spent`] for all trees with leaves whose rows were all deleted.
    pub fn retire_spent(&self) -> Result<()> {
        self.with_spent.each(|tree| &tree.in_with_spent, Tree::retire_spent, Tree::has_spent)
    }
}

/// What the nodes of one tree share.
pub(crate) struct Shared {
    pub id: TreeId,
    /// As the tree was opened; compression may have changed: see [`Encoding::packing`].
    pub spec: TreeSpec,
    /// How its blocks are stored.
    pub encoding: Encoding,
    /// From where on leaves still have the compression of before.
    unconverted: Mutex<Option<Vec<u8>>>,
    pub space: Arc<Space>,
    pub context: Arc<TreeContext>,
    /// Stands in for the delta of leaves without changes.
    pub no_delta: Arc<Delta>,
    /// Stands in for a base that a reader does not see.
    pub no_rows: Arc<Block>,
    /// Blocks that the log names, until a checkpoint has their rows.
    direct: Mutex<Vec<storing::direct::Named>>,
    /// Leaves changed since the last checkpoint began.
    dirty: Mutex<Vec<Arc<Node>>>,
    is_dirty: AtomicBool,
    /// See [`Tree::is_dropped`].
    is_dropped: AtomicBool,
    /// Leaves that appends have filled, oldest first.
    finished: Mutex<VecDeque<storing::early::Finished>>,
    spent: Mutex<change::vacancy::Spent>,
    /// Leaves with history.
    past: Mutex<Vec<Arc<Node>>>,
    /// Nodes with a pending image.
    imaged: Mutex<Vec<Arc<Node>>>,
    entries: AtomicI64,
    leaves: AtomicU64,
    stored_bytes: AtomicI64,
    raw_bytes: AtomicI64,
    /// See [`Tree::visible_from`].
    visible_from: AtomicU64,
}

impl Shared {
    /// A leaf's block, compressed, with an extent to be written to: see [`Encoding::prepare`].
    pub(crate) fn prepare(&self, lifetime: Lifetime, block: &Block) -> Result<PreparedBlock> {
        // Relaxed: a statistic.
        let leaves = self.leaves.load(Ordering::Relaxed);
        let tree_bytes = leaves.saturating_mul(u64::from(self.spec.block_bytes));
        self.encoding.prepare(lifetime, tree_bytes, block)
    }

    /// A leaf's newest image is `now`, no longer `before`.
    fn count_image(&self, before: Option<&Arc<Image>>, now: Option<&Arc<Image>>) {
        let sizes = |image: Option<&Arc<Image>>| image.map_or((0, 0), |image| image.sizes());
        let ((stored_before, raw_before), (stored, raw)) = (sizes(before), sizes(now));
        // Relaxed: statistics.
        self.stored_bytes.fetch_add(stored - stored_before, Ordering::Relaxed);
        self.raw_bytes.fetch_add(raw - raw_before, Ordering::Relaxed); // Relaxed: as above
    }

    fn list_dirty(&self, state: &mut Latched<'_>, node: &Arc<Node>) {
        if !state.listed {
            state.listed = true;
            self.dirty.lock().push(node.clone());
            self.is_dirty.store(true, Ordering::SeqCst);
        }
    }
}

/// One ordered map. See the module's documentation for its concurrency.
pub struct Tree {
    shared: Arc<Shared>,
    root: ArcSwap<Node>,
    /// The structure latch, and what a checkpoint in progress must know of structure changes.
    structure: Mutex<change::structure::Structure>,
    /// Of the structure.
    changes: change::vacancy::Changes,
    me: Weak<Tree>,
    /// Whether it is in [`TreeContext::with_past`], and in [`TreeContext::with_spent`].
    in_with_past: AtomicBool,
    in_with_spent: AtomicBool,
    /// See [`Tree::written_at`].
    written_at: AtomicU64,
    /// See [`Tree::is_entered`].
    entered: AtomicBool,
}

impl Drop for Tree {
    /// The lists hold leaves, and each leaf holds what the tree's nodes share, the lists included: a dropped table
    /// would otherwise keep its memory and its file for ever.
    fn drop(&mut self) {
        let finished = std::mem::take(&mut *self.shared.finished.lock());
        // Relaxed: a hint.
        self.shared.context.finished.fetch_sub(finished.len(), Ordering::Relaxed);
        let lists =
            (std::mem::take(&mut *self.shared.dirty.lock()), std::mem::take(&mut *self.shared.imaged.lock()));
        let vacant = std::mem::take(&mut self.structure.get_mut().vacant);
        let past =
            (std::mem::take(&mut *self.shared.past.lock()), std::mem::take(&mut *self.shared.spent.lock()));
        drop((finished, lists, vacant, past));
    }
}

impl Tree {
    /// A tree whose root is on disk, or a new empty one. No I/O.
    pub(crate) fn open(
        id: TreeId,
        spec: TreeSpec,
        space: Arc<Space>,
        root: Option<TreeRoot>,
        context: Arc<TreeContext>,
    ) -> Arc<Tree> {
        let extent = root.as_ref().map(|root| space.adopt(root.address));
        let shared = Arc::new(Shared {
            id,
            spec,
            encoding: Encoding::new(
                spec.packing,
                space.clone(),
                context.cache.clone(),
                context.dictionary_sample_bytes,
            ),
            unconverted: Mutex::new(None),
            space,
            context,
            no_delta: Arc::new(Delta::new()),
            no_rows: Arc::new(Block::empty()),
            direct: Mutex::default(),
            dirty: Mutex::new(Vec::new()),
            is_dirty: AtomicBool::new(false),
            is_dropped: AtomicBool::new(false),
            finished: Mutex::default(),
            spent: Mutex::default(),
            past: Mutex::new(Vec::new()),
            imaged: Mutex::new(Vec::new()),
            entries: AtomicI64::new(root.as_ref().map_or(0, |r| r.entries as i64)),
            leaves: AtomicU64::new(root.as_ref().map_or(1, |r| r.leaves)),
            stored_bytes: AtomicI64::new(root.as_ref().map_or(0, |r| r.stored_bytes as i64)),
            raw_bytes: AtomicI64::new(root.as_ref().map_or(0, |r| r.raw_bytes as i64)),
            visible_from: AtomicU64::new(0),
        });
        let node = match (root, extent) {
            (Some(root), Some(extent)) => Tree::stored_root(&shared, &root, extent),
            _ => Node::Leaf(Leaf::empty(shared.clone())),
        };
        let root = ArcSwap::from_pointee(node);
        Arc::new_cyclic(|me| Tree {
            shared,
            root,
            structure: Mutex::default(),
            changes: Default::default(),
            me: me.clone(),
            in_with_past: AtomicBool::new(false),
            in_with_spent: AtomicBool::new(false),
            written_at: AtomicU64::new(0),
            entered: AtomicBool::new(false),
        })
    }

    fn stored_root(shared: &Arc<Shared>, root: &TreeRoot, extent: Arc<Extent>) -> Node {
        if root.height == 0 {
            return Node::Leaf(Leaf::stored(
                shared.clone(),
                block::bound::Bound::from(&[][..]),
                None,
                Image::new(extent),
            ));
        }
        Node::Inner(Inner::stored(root.height, extent, Some(Bounds::ALL)))
    }

    /// Identity, never reused.
    pub fn id(&self) -> TreeId {
        self.shared.id
    }

    /// Physical properties.
    pub fn spec(&self) -> TreeSpec {
        TreeSpec { packing: self.shared.encoding.packing(), ..self.shared.spec }
    }

    /// The tree has a dictionary since an earlier checkpoint. No I/O; to be called before the tree is used.
    pub(crate) fn adopt_dictionary(&self, number: u16, address: BlockAddress) {
        self.shared.encoding.adopt_dictionary(number, address);
    }

    /// Has the image of checkpoint `generation`, which is being written, contain the dictionary. What the directory is
    /// to say of it, if that is new.
    pub(crate) fn save_dictionary(&self, generation: u64) -> Option<(u16, BlockAddress)> {
        self.shared.encoding.save_dictionary(generation)
    }

    /// Bytes that its dictionary takes on disk.
    pub fn dictionary_bytes(&self) -> u64 {
        self.shared.encoding.dictionary_bytes()
    }

    /// The file it lives in.
    pub(crate) fn space(&self) -> &Arc<Space> {
        &self.shared.space
    }

    /// Number of committed entries, counted at commits; may drift by a crash.
    pub fn entries(&self) -> u64 {
        // Relaxed: a statistic.
        self.shared.entries.load(Ordering::Relaxed).max(0) as u64
    }

    /// Adjusts the number of entries when a transaction commits.
    pub(crate) fn add_entries(&self, change: i64) {
        // Relaxed: a statistic.
        self.shared.entries.fetch_add(change, Ordering::Relaxed);
    }

    /// Number of leaves.
    pub fn leaves(&self) -> u64 {
        // Relaxed: a statistic.
        self.shared.leaves.load(Ordering::Relaxed)
    }

    /// Bytes of its leaves before they were encoded and compressed, each as of when it was last written; large values,
    /// which have extents of their own, and inner pages not included.
    pub fn raw_bytes(&self) -> u64 {
        // Relaxed: a statistic.
        self.shared.raw_bytes.load(Ordering::Relaxed).max(0) as u64
    }

    /// What the same takes on disk. Both are as of the last checkpoint, and that may be a while ago.
    pub fn disk_bytes(&self) -> u64 {
        // Relaxed: a statistic.
        self.shared.stored_bytes.load(Ordering::Relaxed).max(0) as u64
    }

    /// Snapshots before this timestamp must not read the tree: it is younger, or was filled with what was there then.
    #[inline]
    pub(crate) fn visible_from(&self) -> Timestamp {
        self.shared.visible_from.load(Ordering::SeqCst)
    }

    /// The mark of the owner's list of trees that the next checkpoint must write: whether this one is in it.
    #[inline]
    pub(crate) fn is_entered(&self) -> bool {
        self.entered.load(Ordering::SeqCst)
    }

    /// Under the mutex of that list.
    pub(crate) fn set_entered(&self, entered: bool) {
        self.entered.store(entered, Ordering::SeqCst);
    }

    /// Timestamp of the last durable checkpoint since the tree was opened that had it to write; 0 if there was none.
    /// While nothing is dirty, a snapshot from then or later finds on disk all that it sees.
    pub(crate) fn written_at(&self) -> Timestamp {
        self.written_at.load(Ordering::SeqCst)
    }

    /// A checkpoint at `at` that had the tree to write is durable.
    pub(crate) fn note_written(&self, at: Timestamp) {
        self.written_at.fetch_max(at, Ordering::SeqCst);
    }

    /// Whether a checkpoint has something to write.
    pub(crate) fn is_dirty(&self) -> bool {
        self.shared.is_dirty.load(Ordering::SeqCst)
    }

    /// No table has it any more: no checkpoint that has not begun yet is to write it.
    pub(crate) fn note_dropped(&self) {
        self.shared.is_dropped.store(true, Ordering::SeqCst);
    }

    /// Whether no table has it any more.
    #[inline]
    pub(crate) fn is_dropped(&self) -> bool {
        self.shared.is_dropped.load(Ordering::SeqCst)
    }

    /// The leaf that is responsible for `key`, or was a moment ago.
    #[inline]
    pub(crate) fn find_leaf(&self, key: &[u8]) -> Result<Arc<Node>> {
        descend(&self.root.load(), &self.shared, &|view| view.child_for(key))
    }

    /// The leaf that is responsible for the keys just before `key`.
    pub(crate) fn find_leaf_before(&self, key: &[u8]) -> Result<Arc<Node>> {
        descend(&self.root.load(), &self.shared, &|view| view.child_before(key))
    }

    /// A descent led to a leaf that is not the right one: an error if the structure has not changed since `moment`,
    /// before it, as the next would lead there again.
    pub(crate) fn check_way(&self, moment: u64) -> Result<()> {
        if !self.changes.is_still(moment) {
            return Ok(());
        }
        Err(Error::corrupt(
            self.shared.space.path(),
            0,
            format!("tree {}: pages do not fit each other", self.id()),
        ))
    }

    pub(crate) fn last_leaf(&self) -> Result<Arc<Node>> {
        descend(&self.root.load(), &self.shared, &|view| view.children.len() - 1)
    }

    /// Whether another transaction committed a change of `key` after `snapshot`.
    pub(crate) fn changed_since(
        &self,
        key: &[u8],
        snapshot: &SnapshotGuard,
        own: &TxnStatus,
    ) -> Result<bool> {
        let (fate, snapshot) = (snapshot.fate(), snapshot.timestamp());
        loop {
            let moment = self.changes.now();
            let node = self.find_leaf(key)?;
            let Some(leaf) = node.leaf() else { continue };
            let view = leaf.view();
            if view.holds(key) {
                fate.check()?;
                let delta = leaf.delta(&view)?;
                let born = view.birth.as_ref().filter(|birth| birth.committed_after(snapshot, own));
                if born.is_some() && leaf.base(&node, &view)?.search(key).is_ok() {
                    return Ok(true);
                }
                let history = if snapshot < view.horizon { leaf.history(&view)? } else { None };
                return Ok(versions::visibility::changed_since(
                    view.horizon,
                    &delta,
                    history.as_deref(),
                    key,
                    snapshot,
                    own,
                ));
            }
            self.check_way(moment)?;
        }
    }
}

fn descend(
    node: &Arc<Node>,
    shared: &Arc<Shared>,
    choose: &impl Fn(&leaf::node::InnerView) -> usize,
) -> Result<Arc<Node>> {
    match &**node {
        Node::Leaf(_) => Ok(node.clone()),
        Node::Inner(inner) => {
            let view = inner.view(shared)?;
            let Some(view) = view.as_ref() else {
                return Err(Error::corrupt(shared.space.path(), 0, "an inner node without content"));
            };
            descend(&view.children[choose(view)], shared, choose)
        }
    }
}
