//! Nodes of a tree: identities that live as long as the structure needs them, with contents that are replaced whole.
//!
//! An inner node maps separators to children. Its view is immutable and swapped by structure changes, which are
//! serialised by the tree's structure latch. A stale view is harmless: it leads to a leaf which once held the key, and
//! the leaf knows that it no longer does (see [`crate::tree::leaf`]), upon which the descent starts again.

use super::lifecycle::FileCopy;
use super::patch::Patch;
use super::shared::TreeShared;
use super::vacancy::Vacancy;
use crate::store::{ChildAddress, Extent};
use crate::sync::atomic::{AtomicBool, Ordering};
use crate::sync::Mutex;
use crate::sync::{ArcSwapOption, Guard};
use crate::tree::block::bound::Bound;
use crate::tree::block::builder::BlockBuilder;
use crate::tree::block::{Block, Value};
use crate::tree::leaf::{Image, Leaf};
use crate::{Error, Result};
use std::ops::Deref;
use std::sync::Arc;

/// Children of an inner node before it splits.
pub(crate) const MAX_CHILDREN: usize = 256;
/// A page of so many is too much beside blocks of less than this.
const SMALL_BLOCK_BYTES: usize = 4 << 10;

/// Which of the two it is stands at the beginning, beside what a descent looks at next.
#[repr(u8)]
pub(crate) enum Node {
    Inner(Inner),
    Leaf(Leaf),
}

impl Node {
    pub(crate) fn leaf(&self) -> Option<&Leaf> {
        match self {
            Node::Leaf(leaf) => Some(leaf),
            Node::Inner(_) => None,
        }
    }
}

/// A node that is a leaf.
#[derive(Clone)]
pub(in crate::tree) struct LeafRef(Arc<Node>);

impl LeafRef {
    /// `None` for an inner node.
    pub fn of(node: Arc<Node>) -> Option<LeafRef> {
        node.leaf().is_some().then_some(LeafRef(node))
    }

    pub fn node(&self) -> &Arc<Node> {
        &self.0
    }
}

impl Deref for LeafRef {
    type Target = Leaf;

    #[inline]
    fn deref(&self) -> &Leaf {
        match &*self.0 {
            Node::Leaf(leaf) => leaf,
            Node::Inner(_) => unreachable!("`LeafRef::of` has refused it"),
        }
    }
}

/// Immutable content of an inner node: child `i` covers the keys from `keys[i]` to `keys[i + 1]`.
pub(crate) struct InnerView {
    pub keys: Block,
    pub children: Vec<Arc<Node>>,
}

impl InnerView {
    pub(crate) fn new(entries: &[(Vec<u8>, Arc<Node>)]) -> InnerView {
        debug_assert!(!entries.is_empty() && entries.len() <= MAX_CHILDREN, "{} children", entries.len());
        debug_assert!(entries.windows(2).all(|pair| pair[0].0 < pair[1].0), "children out of order");
        let mut builder = BlockBuilder::new();
        for (key, _) in entries {
            builder.push(key, Value::Inline(&[]));
        }
        InnerView {
            keys: builder.finish(),
            children: entries.iter().map(|(_, child)| child.clone()).collect(),
        }
    }

    /// The child whose range holds `key`.
    #[inline]
    pub(crate) fn child_for(&self, key: &[u8]) -> usize {
        match self.keys.search(key) {
            Ok(at) => at,
            Err(at) => at.saturating_sub(1),
        }
    }

    /// The child whose range ends at or after `key` and begins before it.
    pub(crate) fn child_before(&self, key: &[u8]) -> usize {
        self.keys.lower_bound(key).saturating_sub(1)
    }

    /// Children of an inner node before it splits, where blocks are of so many bytes.
    pub(in crate::tree) fn most_children(block_bytes: u32) -> usize {
        match block_bytes as usize {
            SMALL_BLOCK_BYTES.. => MAX_CHILDREN,
            small => (small / 128).max(2),
        }
    }

    /// With more children behind the one at `at`; there is room for them. Much cheaper than by way of
    /// [`InnerView::entries`]: each split of a leaf needs it.
    pub(crate) fn with_children_behind(&self, at: usize, more: &[(Vec<u8>, Arc<Node>)]) -> InnerView {
        debug_assert!(self.children.len() + more.len() <= MAX_CHILDREN);
        let mut builder = BlockBuilder::reused();
        builder.push_range(&self.keys, 0..at + 1);
        for (key, _) in more {
            builder.push(key, Value::Inline(&[]));
        }
        builder.push_range(&self.keys, at + 1..self.keys.len());
        let keys = builder.finish();
        builder.give_back();
        let (left, right) = self.children.split_at(at + 1);
        let new = more.iter().map(|(_, child)| child);
        let view = InnerView { keys, children: left.iter().chain(new).chain(right).cloned().collect() };
        debug_assert!(view.entries().windows(2).all(|pair| pair[0].0 < pair[1].0), "children out of order");
        view
    }

    /// As editable pairs.
    pub(crate) fn entries(&self) -> Vec<(Vec<u8>, Arc<Node>)> {
        let key = |i| {
            let mut key = Vec::new();
            self.keys.key_into(i, &mut key);
            key
        };
        self.children.iter().enumerate().map(|(i, child)| (key(i), child.clone())).collect()
    }
}

/// What the disk has of an inner node, under the tree's structure latch.
#[derive(Default)]
pub(crate) struct InnerImage {
    pub durable: Option<Arc<Extent>>,
    pub pending: Option<Arc<Extent>>,
}

/// The keys that a page must have, according to its parent: from here to there.
pub(crate) struct Bounds {
    low: Vec<u8>,
    high: Option<Vec<u8>>,
}

impl Bounds {
    /// Of a root.
    pub(crate) const ALL: Bounds = Bounds { low: Vec::new(), high: None };
}

pub(crate) struct Inner {
    /// Height above the leaves, at least 1.
    pub level: u32,
    /// What the parent said when the page was not in memory.
    bounds: Mutex<Option<Bounds>>,
    /// None: not read from disk yet.
    view: ArcSwapOption<InnerView>,
    /// Taken to read the page once, not twice; readers of a loaded node never meet it.
    loading: Mutex<()>,
    pub image: Mutex<InnerImage>,
    /// A child's image has changed since this page was written.
    pub dirty: AtomicBool,
    pub vacancy: Vacancy,
    /// Somebody has come by since the clock did.
    touched: AtomicBool,
}

impl Inner {
    pub(crate) fn new(level: u32, view: InnerView) -> Inner {
        Inner {
            level,
            bounds: Mutex::new(None),
            view: ArcSwapOption::from_pointee(view),
            loading: Mutex::new(()),
            image: Mutex::new(InnerImage::default()),
            dirty: AtomicBool::new(true),
            vacancy: Vacancy::default(),
            touched: AtomicBool::new(true),
        }
    }

    /// A page on disk.
    pub(crate) fn stored(level: u32, extent: Arc<Extent>, bounds: Option<Bounds>) -> Inner {
        Inner {
            level,
            bounds: Mutex::new(bounds),
            view: ArcSwapOption::empty(),
            loading: Mutex::new(()),
            image: Mutex::new(InnerImage { durable: Some(extent), pending: None }),
            dirty: AtomicBool::new(false),
            vacancy: Vacancy::default(),
            touched: AtomicBool::new(true),
        }
    }

    /// The content, read from disk on first use, and after it has left memory.
    #[inline]
    pub(crate) fn view(&self, shared: &Arc<TreeShared>) -> Result<Guard<Option<Arc<InnerView>>>> {
        let view = self.view.load();
        // Relaxed: a hint to the clock; tested first so that the line stays with its readers.
        if !self.touched.load(Ordering::Relaxed) {
            self.touched.store(true, Ordering::Relaxed);
        }
        if view.is_some() {
            return Ok(view);
        }
        // Not what is there when it was read: it may have gone again.
        Ok(Guard::from_inner(Some(self.load(shared)?)))
    }

    /// Whether somebody has come by since the last call.
    pub(in crate::tree) fn take_touched(&self) -> bool {
        // Relaxed: a hint.
        self.touched.load(Ordering::Relaxed) && self.touched.swap(false, Ordering::Relaxed)
    }

    /// Whether the durable image has the page as it is, and no other image is on its way. The structure latch is held,
    /// and no checkpoint writes the tree.
    pub(in crate::tree) fn is_as_stored(&self) -> bool {
        let is_durable = {
            let image = self.image.lock();
            image.pending.is_none() && image.durable.is_some()
        };
        // Looked at last: a checkpoint that is abandoned marks the page before it gives up the image.
        is_durable && !self.dirty.load(Ordering::SeqCst)
    }

    /// The page leaves memory; its keys end at `high`. It is as it is stored, and nobody comes to its children any
    /// more.
    pub(in crate::tree) fn unload(&self, high: Option<Vec<u8>>) {
        let mut low = Vec::new();
        if let Some(view) = self.loaded() {
            view.keys.key_into(0, &mut low);
        }
        *self.bounds.lock() = Some(Bounds { low, high });
        self.view.store(None);
    }

    /// The content if it is in memory.
    pub(crate) fn loaded(&self) -> Option<Arc<InnerView>> {
        self.view.load_full()
    }

    /// Replaces the content; the caller holds the structure latch.
    pub(crate) fn publish(&self, view: InnerView) {
        let view = Arc::new(view);
        self.view.store(Some(view.clone()));
        self.vacancy.follow(&view.children);
        self.dirty.store(true, Ordering::SeqCst);
    }

    fn load(&self, shared: &Arc<TreeShared>) -> Result<Arc<InnerView>> {
        let _loading = self.loading.lock();
        if let Some(view) = self.view.load_full() {
            return Ok(view);
        }
        let Some(extent) = self.image.lock().durable.clone() else {
            return Err(Error::corrupt(shared.space.path(), 0, "an inner node without content"));
        };
        let corrupt = |detail: String| {
            Error::corrupt(shared.space.path(), extent.address().offset, format!("inner page: {detail}"))
        };
        let page = Block::parse(extent.read()?, &|_| unreachable_blob()).map_err(corrupt)?;
        if page.is_empty() || !page.blobs().is_empty() {
            return Err(corrupt("no children, or blobs".to_string()));
        }
        let mut entries: Vec<(Vec<u8>, Stored)> = Vec::with_capacity(page.len());
        let mut fence = None;
        for i in 0..page.len() {
            let Value::Inline(bytes) = page.value(i) else {
                return Err(corrupt("a blob as child".to_string()));
            };
            let mut key = Vec::new();
            page.key_into(i, &mut key);
            if bytes.is_empty() && i + 1 == page.len() && i > 0 {
                fence = Some(key);
                break;
            }
            let child = ChildAddress::decode(bytes).filter(|child| !child.has_no_large || self.level == 1);
            let child = child.ok_or_else(|| corrupt("a child's address".to_string()))?;
            let patch = child.patch.map(|patch| shared.space.adopt(patch));
            let (block, has_no_large) = (shared.space.adopt(child.block), child.has_no_large);
            entries.push((key, Stored { block, patch, has_no_large }));
        }
        // A descent would go round in circles otherwise, or past what it looks for.
        if let Some(Bounds { low, high }) = &*self.bounds.lock() {
            let last = entries.last().map(|entry| &entry.0);
            let fits = entries.first().is_some_and(|entry| entry.0 == *low)
                && high.as_ref().is_none_or(|high| {
                    last < Some(high) && fence.as_ref().is_some_and(|fence| fence <= high)
                });
            if !fits {
                return Err(corrupt("its keys are not those that its parent says".to_string()));
            }
        }
        // A key is the bound of two neighbours, who share it.
        let mut bounds: Vec<Bound> = entries.iter().map(|(key, _)| Bound::from(&key[..])).collect();
        bounds.extend(fence.map(|fence| Bound::from(&fence[..])));
        let child = |(at, (key, stored)): (usize, (Vec<u8>, Stored))| {
            (key, self.child(shared, &bounds[at], bounds.get(at + 1), stored))
        };
        let children: Vec<_> = entries.into_iter().enumerate().map(child).collect();
        let view = Arc::new(InnerView::new(&children));
        self.view.store(Some(view.clone()));
        self.bounds.lock().take();
        Ok(view)
    }

    /// The page to write: address of each child, and the node's upper bound as a last key without a value.
    pub(crate) fn page(view: &InnerView, addresses: &[ChildAddress], high: Option<&[u8]>) -> Block {
        let mut builder = BlockBuilder::new();
        let mut key = Vec::new();
        for (i, address) in addresses.iter().enumerate() {
            view.keys.key_into(i, &mut key);
            builder.push(&key, Value::Inline(&address.encode()));
        }
        if let Some(high) = high {
            builder.push(high, Value::Inline(&[]));
        }
        builder.finish()
    }

    fn child(
        &self,
        shared: &Arc<TreeShared>,
        low: &Bound,
        high: Option<&Bound>,
        Stored { block, patch, has_no_large }: Stored,
    ) -> Arc<Node> {
        if self.level > 1 {
            let bounds = Bounds { low: low.to_vec(), high: high.map(|high| high.to_vec()) };
            return Arc::new(Node::Inner(Inner::stored(self.level - 1, block, Some(bounds))));
        }
        let image = if has_no_large { Image::with_blobs(block, &[]) } else { Image::new(block) };
        let copy = FileCopy::stored(image, patch.map(Patch::stored));
        Arc::new(Node::Leaf(Leaf::stored(shared.clone(), low.clone(), high.cloned(), copy)))
    }
}

/// What a page says of a child, held.
struct Stored {
    block: Arc<Extent>,
    patch: Option<Arc<Extent>>,
    has_no_large: bool,
}

fn unreachable_blob() -> Arc<crate::tree::block::blob::Blob> {
    Arc::new(crate::tree::block::blob::Blob::new(Vec::new()))
}
