//! Nodes of a tree: identities that live as long as the structure needs them, with contents that are replaced whole.
//!
//! An inner node maps separators to children. Its view is immutable and swapped by structure changes, which are
//! serialised by the tree's structure latch. A stale view is harmless: it leads to a leaf which once held the key, and
//! the leaf knows that it no longer does (see [`crate::tree::leaf`]), upon which the descent starts again.

pub(crate) use super::inner_view::{InnerView, MAX_CHILDREN};
use super::shared::TreeShared;
use super::vacancy::Vacancy;
use crate::counts::Count;
use crate::store::Extent;
use crate::sync::atomic::{AtomicBool, Ordering};
use crate::sync::Mutex;
use crate::sync::{ArcSwapOption, Guard};
use crate::tree::block::Block;
use crate::tree::leaf::Leaf;
use crate::{Error, Result};
use std::ops::Deref;
use std::sync::{Arc, Weak};

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

/// Who can have a page of level 1 leave memory with its leaves: the tree.
pub(in crate::tree) trait Pages: Send + Sync {
    /// Bytes that are free now; 0: the page stays.
    fn evict_page(&self, page: &Inner) -> u64;
}

/// What the disk has of an inner node, under the tree's structure latch.
#[derive(Default)]
pub(crate) struct InnerImage {
    pub durable: Option<Arc<Extent>>,
    pub pending: Option<Arc<Extent>>,
}

/// The keys that a page must have, according to its parent: from here to there.
pub(crate) struct Bounds {
    pub low: Vec<u8>,
    pub high: Option<Vec<u8>>,
}

impl Bounds {
    /// Of a root.
    pub(crate) const ALL: Bounds = Bounds { low: Vec::new(), high: None };
}

pub(crate) struct Inner {
    /// Height above the leaves, at least 1.
    pub level: u32,
    shared: Arc<TreeShared>,
    me: Weak<Node>,
    /// What the parent said when the page was not in memory.
    bounds: Mutex<Option<Bounds>>,
    /// None: not read from disk yet.
    view: ArcSwapOption<InnerView>,
    /// Taken to read the page once, not twice; readers of a loaded node never meet it. Whether the clock knows it.
    loading: Mutex<bool>,
    pub image: Mutex<InnerImage>,
    /// A child's image has changed since this page was written.
    pub dirty: AtomicBool,
    pub vacancy: Vacancy,
    /// Somebody has come by since the clock did.
    touched: AtomicBool,
}

impl Inner {
    /// A node that is in memory only.
    pub(crate) fn node(shared: &Arc<TreeShared>, level: u32, view: InnerView) -> Arc<Node> {
        Inner::made(shared, level, Some(view), InnerImage::default(), None)
    }

    /// A page on disk.
    pub(crate) fn stored(
        shared: &Arc<TreeShared>,
        level: u32,
        extent: Arc<Extent>,
        bounds: Bounds,
    ) -> Arc<Node> {
        let image = InnerImage { durable: Some(extent), pending: None };
        Inner::made(shared, level, None, image, Some(bounds))
    }

    fn made(
        shared: &Arc<TreeShared>,
        level: u32,
        view: Option<InnerView>,
        image: InnerImage,
        bounds: Option<Bounds>,
    ) -> Arc<Node> {
        let is_new = view.is_some();
        let node = Arc::new_cyclic(|me| {
            Node::Inner(Inner {
                level,
                shared: shared.clone(),
                me: me.clone(),
                bounds: Mutex::new(bounds),
                view: ArcSwapOption::new(view.map(Arc::new)),
                loading: Mutex::new(false),
                image: Mutex::new(image),
                dirty: AtomicBool::new(is_new),
                vacancy: Vacancy::default(),
                touched: AtomicBool::new(true),
            })
        });
        if let (true, Node::Inner(inner)) = (is_new, &*node) {
            inner.enter_clock(&mut inner.loading.lock());
        }
        node
    }

    /// Has the clock know the page, if it may leave memory: those above others do not, and a tree that no checkpoint
    /// writes has none in its file.
    fn enter_clock(&self, is_known: &mut bool) {
        if self.level == 1 && !*is_known && self.shared.is_logged() {
            *is_known = true;
            self.shared.context.cache.register(self.me.clone());
        }
    }

    /// Whether the clock forgets the page, as it is not in memory.
    pub(super) fn leaves_clock(&self) -> bool {
        let Some(mut is_known) = self.loading.try_lock() else { return false };
        let leaves = self.view.load().is_none();
        *is_known &= !leaves;
        leaves
    }

    /// Has the page leave memory, if it can.
    pub(super) fn evict(&self) -> u64 {
        self.shared.pages.get().and_then(Weak::upgrade).map_or(0, |pages| pages.evict_page(self))
    }

    /// The content, read from disk on first use, and after it has left memory.
    #[inline]
    pub(crate) fn view(&self) -> Result<Guard<Option<Arc<InnerView>>>> {
        let view = self.view.load();
        // Relaxed: a hint to the clock; tested first so that the line stays with its readers.
        if !self.touched.load(Ordering::Relaxed) {
            self.touched.store(true, Ordering::Relaxed);
        }
        if view.is_some() {
            return Ok(view);
        }
        // Not what is there when it was read: it may have gone again.
        Ok(Guard::from_inner(Some(self.load()?)))
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
        self.vacancy.follow(&view);
        self.dirty.store(true, Ordering::SeqCst);
    }

    /// What is in neither memory nor file.
    pub(in crate::tree) fn without_content(&self) -> Error {
        Error::corrupt(self.shared.space.path(), 0, "an inner node without content")
    }

    fn load(&self) -> Result<Arc<InnerView>> {
        let mut loading = self.loading.lock();
        if let Some(view) = self.view.load_full() {
            return Ok(view);
        }
        let shared = &self.shared;
        let Some(extent) = self.image.lock().durable.clone() else {
            return Err(self.without_content());
        };
        Count::PagesMissed.add(1);
        let corrupt = |detail: String| {
            Error::corrupt(shared.space.path(), extent.address().offset, format!("inner page: {detail}"))
        };
        let page = Block::parse(extent.read()?, &|_| unreachable_blob()).map_err(corrupt)?;
        let view = InnerView::read(shared, self.level, &page).map_err(corrupt)?;
        // A descent would go round in circles otherwise, or past what it looks for.
        if let Some(bounds) = &*self.bounds.lock() {
            if !view.fits(bounds) {
                return Err(corrupt("its keys are not those that its parent says".to_string()));
            }
        }
        let view = Arc::new(view);
        self.view.store(Some(view.clone()));
        self.bounds.lock().take();
        self.enter_clock(&mut loading);
        Ok(view)
    }
}

fn unreachable_blob() -> Arc<crate::tree::block::blob::Blob> {
    Arc::new(crate::tree::block::blob::Blob::new(Vec::new()))
}
