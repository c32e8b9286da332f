//! A tree as it is opened, written and dropped: its nodes in memory, and what is to become of them on disk.

use super::bundles::Bundles;
use super::direct::{BlockQueue, Named};
use super::lost::LostRanges;
use crate::cache::{Cache, Usage};
use crate::mvcc::{Clock, LastChange};
use crate::options::TreeSpec;
use crate::store::{BlockAddress, Extent, Space, SpillFile, TreeRoot};
use crate::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use crate::sync::Mutex;
use crate::tree::block::bound::Bound;
use crate::tree::block::Block;
use crate::tree::change::trunk::Trunk;
use crate::tree::change::waiting::Attention;
use crate::tree::encoding::Encoding;
use crate::tree::leaf::lifecycle::FileCopy;
use crate::tree::leaf::node::{Bounds, Inner, Node};
use crate::tree::leaf::shared::{Resources, Size, TreeShared, Uses};
use crate::tree::leaf::{Image, Leaf};
use crate::tree::versions::delta::Delta;
use crate::tree::versions::past::PastUsage;
use crate::types::{Timestamp, TreeId};
use std::collections::HashMap;
use std::ops::Deref;
use std::sync::{Arc, OnceLock, Weak};

/// What all trees of an engine share.
pub struct TreeContext {
    resources: Arc<Resources>,
    /// The budget of trees that live in memory alone.
    memory: Arc<Cache>,
    /// What the trees of each such table draw on, by space; some are gone.
    tables_in_memory: Mutex<HashMap<u32, Weak<Resources>>>,
    attention: Arc<Attention>,
    /// Blocks of a tree that its dictionary is trained on, in bytes; 0: none are trained.
    dictionary_sample_bytes: usize,
    /// Blocks on their way to their files.
    pub blocks: Arc<BlockQueue>,
    /// What scans have passed over, if they may.
    pub(in crate::tree) lost: OnceLock<LostRanges>,
}

impl TreeContext {
    /// For the trees of one engine; `memory` is the budget of tables without a file, `dictionary_sample_bytes` as in
    /// [`crate::Options`].
    pub fn new(
        cache: Arc<Cache>,
        memory: Arc<Cache>,
        clock: Arc<Clock>,
        spill: Arc<SpillFile>,
        dictionary_sample_bytes: usize,
    ) -> TreeContext {
        TreeContext {
            resources: Arc::new(Resources {
                changes: Usage::new(cache.budget()),
                leaves: Arc::new(Usage::new(cache.budget())),
                cache,
                clock,
                spill,
                past: Arc::new(PastUsage::new()),
                ahead: Arc::default(),
                frame_bytes: Arc::default(),
            }),
            memory,
            tables_in_memory: Mutex::default(),
            attention: Arc::default(),
            dictionary_sample_bytes,
            blocks: Arc::default(),
            lost: OnceLock::new(),
        }
    }

    /// The budget of trees that live in memory alone.
    pub fn memory(&self) -> &Arc<Cache> {
        &self.memory
    }

    /// What the leaves of a tree in `space` draw on.
    fn resources_of(&self, space: &Space) -> Arc<Resources> {
        let Some(limit) = space.memory_limit() else { return self.resources.clone() };
        let mut tables = self.tables_in_memory.lock();
        if let Some(known) = tables.get(&space.id()).and_then(Weak::upgrade) {
            return known;
        }
        if tables.len() == tables.capacity() {
            tables.retain(|_, table| table.strong_count() > 0);
        }
        let Resources { leaves, clock, spill, past, ahead, frame_bytes, .. } = &*self.resources;
        let resources = Arc::new(Resources {
            cache: Cache::of_table(&self.memory, limit),
            changes: Usage::new(self.memory.budget()),
            leaves: leaves.clone(),
            clock: clock.clone(),
            spill: spill.clone(),
            past: past.clone(),
            ahead: ahead.clone(),
            frame_bytes: frame_bytes.clone(),
        });
        tables.insert(space.id(), Arc::downgrade(&resources));
        resources
    }

    /// The work that trees have for threads in the background.
    #[inline]
    pub fn attention(&self) -> &Attention {
        &self.attention
    }
}

/// Cache, clock and files are those of the leaves.
impl Deref for TreeContext {
    type Target = Resources;

    #[inline]
    fn deref(&self) -> &Resources {
        &self.resources
    }
}

/// One ordered map. See the module's documentation for its concurrency.
pub struct Tree {
    trunk: Arc<Trunk>,
    pub(in crate::tree) context: Arc<TreeContext>,
    /// Blocks that the log names, until a checkpoint has their rows.
    pub(super) direct: Mutex<Vec<Named>>,
    /// Nodes with a pending image.
    pub(super) imaged: Mutex<Vec<Arc<Node>>>,
    /// What is put together of its large values.
    pub(super) bundles: Bundles,
    /// From where on leaves still have the compression of before.
    pub(super) unconverted: Mutex<Option<Vec<u8>>>,
    /// See [`Tree::visible_from`].
    pub(super) visible_from: AtomicU64,
    /// See [`Tree::written_at`].
    written_at: AtomicU64,
    /// See [`Tree::is_entered`].
    entered: AtomicBool,
    /// See [`Tree::last_change`].
    last_change: LastChange,
    /// See [`Tree::is_dropped`].
    is_dropped: AtomicBool,
    /// See [`Tree::note_miscounted`].
    pub(super) is_miscounted: AtomicBool,
}

/// A tree is read and written in memory as its trunk is; what is added here is how it comes to disk.
impl Deref for Tree {
    type Target = Trunk;

    #[inline]
    fn deref(&self) -> &Trunk {
        &self.trunk
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
        let resources = context.resources_of(&space);
        let sample_bytes = context.dictionary_sample_bytes;
        let shared = Arc::new(TreeShared {
            id,
            spec,
            encoding: Encoding::new(spec.packing, space.clone(), resources.cache.clone(), sample_bytes),
            space,
            context: resources,
            no_delta: Arc::new(Delta::new()),
            no_rows: Arc::new(Block::empty()),
            size: Size::of(root.as_ref()),
            uses: Uses::default(),
            pages: OnceLock::new(),
        });
        let node = match (root, extent) {
            (Some(root), Some(extent)) => Tree::stored_root(&shared, &root, extent),
            _ => Arc::new(Node::Leaf(Leaf::empty(shared.clone()))),
        };
        Arc::new(Tree {
            trunk: Trunk::new(shared, node, context.attention.clone()),
            context,
            direct: Mutex::default(),
            imaged: Mutex::default(),
            bundles: Bundles::default(),
            unconverted: Mutex::default(),
            visible_from: AtomicU64::new(0),
            written_at: AtomicU64::new(0),
            entered: AtomicBool::new(false),
            last_change: LastChange::default(),
            is_dropped: AtomicBool::new(false),
            is_miscounted: AtomicBool::new(false),
        })
    }

    fn stored_root(shared: &Arc<TreeShared>, root: &TreeRoot, extent: Arc<Extent>) -> Arc<Node> {
        if root.height == 0 {
            let copy = FileCopy::stored(Image::new(extent), None);
            return Arc::new(Node::Leaf(Leaf::stored(shared.clone(), Bound::from(&[][..]), None, copy)));
        }
        Inner::stored(shared, root.height, extent, Bounds::ALL)
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

    /// Memory that the table of the tree takes, in bytes, if it lives in memory alone.
    pub fn memory_bytes(&self) -> Option<u64> {
        self.is_in_memory().then(|| self.shared.context.cache.used())
    }

    /// What that may be from now on; 0: what all such tables may take.
    pub(crate) fn set_memory_limit(&self, bytes: u64) {
        self.shared.space.set_memory_limit(bytes);
        self.shared.context.cache.set_limit(bytes);
    }

    /// Bytes that its dictionary takes on disk.
    pub fn dictionary_bytes(&self) -> u64 {
        self.shared.encoding.dictionary_bytes()
    }

    /// Snapshots before this timestamp must not read the tree: it is younger, or was filled with what was there then.
    #[inline]
    pub(crate) fn visible_from(&self) -> Timestamp {
        self.visible_from.load(Ordering::SeqCst)
    }

    /// The mark of the owner's list of trees that the next checkpoint must write: whether this one is in it.
    #[inline]
    pub(crate) fn is_entered(&self) -> bool {
        self.entered.load(Ordering::SeqCst)
    }

    /// The last commit that has written to it, as far as that is kept.
    #[inline]
    pub(crate) fn last_change(&self) -> &LastChange {
        &self.last_change
    }

    /// The newest image stands beside a count of other commits than it has: the next checkpoint writes its root again,
    /// also if nothing else has changed.
    pub(crate) fn note_miscounted(&self) {
        self.is_miscounted.store(true, Ordering::SeqCst);
    }

    pub(super) fn is_miscounted(&self) -> bool {
        self.is_miscounted.load(Ordering::SeqCst)
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

    /// No table has it any more: no checkpoint that has not begun yet is to write it.
    pub(crate) fn note_dropped(&self) {
        self.is_dropped.store(true, Ordering::SeqCst);
    }

    /// Whether no table has it any more.
    #[inline]
    pub(crate) fn is_dropped(&self) -> bool {
        self.is_dropped.load(Ordering::SeqCst)
    }
}
