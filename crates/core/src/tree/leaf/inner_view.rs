//! What an inner node has: keys, and the children between them.
//!
//! A page that was read has an address for each child, and makes the object that stands for one when somebody first
//! comes to it. So a page costs what its keys and addresses take (some 60 bytes a child) and not what its leaves do
//! (half a KiB each), of which most are never asked for where data are much larger than memory.
//!
//! Two objects for one child would be two truths. Therefore a child is made under a latch; whoever replaces the content
//! of a node has all children of the old one made first ([`InnerView::entries`]); and a page that leaves memory is
//! closed: who knows it still is given children that say that they are gone ([`Closing::close`]).

use super::lifecycle::FileCopy;
use super::node::{Bounds, Inner, Node};
use super::patch::Patch;
use super::shared::TreeShared;
use super::{Image, Leaf};
use crate::store::ChildAddress;
use crate::sync::{Mutex, MutexGuard};
use crate::tree::block::bound::Bound;
use crate::tree::block::builder::BlockBuilder;
use crate::tree::block::{Block, Value};
use std::sync::{Arc, OnceLock};

/// Children of an inner node before it splits.
pub(crate) const MAX_CHILDREN: usize = 256;
/// A page of so many is too much beside blocks of less than this.
const SMALL_BLOCK_BYTES: usize = 4 << 10;

/// Immutable content of an inner node: child `i` covers the keys from `keys[i]` to `keys[i + 1]`.
pub(crate) struct InnerView {
    /// Where the children begin; of a page that was read with their addresses as values.
    pub keys: Block,
    children: Children,
}

enum Children {
    /// All are there.
    There(Vec<Arc<Node>>),
    /// Of a page that was read.
    AsAsked(Stored),
}

/// Children of which some are there, and what others are made of, beside their addresses.
struct Stored {
    made: Box<[OnceLock<Arc<Node>>]>,
    shared: Arc<TreeShared>,
    /// Of the children.
    level: u32,
    /// Where the last child ends.
    high: Option<Bound>,
    /// Whether the page has left memory. Held while a child is made.
    is_closed: Mutex<bool>,
}

/// Nobody makes a child of the page meanwhile.
pub(in crate::tree) struct Closing<'a>(Option<MutexGuard<'a, bool>>);

impl Closing<'_> {
    /// The page has left memory: children that are made from now on are dead.
    pub(in crate::tree) fn close(mut self) {
        if let Some(is_closed) = &mut self.0 {
            **is_closed = true;
        }
    }
}

impl InnerView {
    pub(crate) fn new(entries: &[(Vec<u8>, Arc<Node>)]) -> InnerView {
        debug_assert!(!entries.is_empty() && entries.len() <= MAX_CHILDREN, "{} children", entries.len());
        debug_assert!(entries.windows(2).all(|pair| pair[0].0 < pair[1].0), "children out of order");
        let mut builder = BlockBuilder::new();
        for (key, _) in entries {
            builder.push(key, Value::Inline(&[]));
        }
        let children = entries.iter().map(|(_, child)| child.clone()).collect();
        InnerView { keys: builder.finish(), children: Children::There(children) }
    }

    /// The content of a page of `level` as [`InnerView::page`] has made it; or what is wrong with it.
    pub(super) fn read(
        shared: &Arc<TreeShared>,
        level: u32,
        page: &Block,
    ) -> std::result::Result<InnerView, String> {
        if page.is_empty() || !page.blobs().is_empty() {
            return Err("no children, or blobs".to_string());
        }
        let is_fence = |at: usize| at > 0 && matches!(page.value(at), Value::Inline([]));
        let last = page.len() - 1;
        let count = if is_fence(last) { last } else { page.len() };
        for at in 0..count {
            let address = address_in(page, at).filter(|child| !child.has_no_large || level == 1);
            address.ok_or("a child's address")?;
        }
        let mut builder = BlockBuilder::reused();
        builder.push_range(page, 0..count);
        let keys = builder.finish();
        builder.give_back();
        let high = (count < page.len()).then(|| bound_of(page, last));
        let made = std::iter::repeat_with(OnceLock::new).take(count).collect();
        let is_closed = Mutex::new(false);
        let stored = Stored { made, shared: shared.clone(), level: level - 1, high, is_closed };
        Ok(InnerView { keys, children: Children::AsAsked(stored) })
    }

    /// Whether a page that was read has the keys that its parent says.
    pub(super) fn fits(&self, Bounds { low, high }: &Bounds) -> bool {
        let begins = bound_of(&self.keys, 0)[..] == low[..];
        let ends = high.as_ref().is_none_or(|high| {
            let last = bound_of(&self.keys, self.len() - 1);
            last[..] < high[..] && self.high().is_some_and(|fence| fence[..] <= high[..])
        });
        begins && ends
    }

    /// The page to write: address of each child, and the node's upper bound as a last key without a value.
    pub(crate) fn page(&self, addresses: &[ChildAddress], high: Option<&[u8]>) -> Block {
        let mut builder = BlockBuilder::new();
        let mut key = Vec::new();
        for (i, address) in addresses.iter().enumerate() {
            self.keys.key_into(i, &mut key);
            builder.push(&key, Value::Inline(&address.encode()));
        }
        if let Some(high) = high {
            builder.push(high, Value::Inline(&[]));
        }
        builder.finish()
    }

    /// Number of children.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        match &self.children {
            Children::There(children) => children.len(),
            Children::AsAsked(stored) => stored.made.len(),
        }
    }

    fn stored(&self) -> Option<&Stored> {
        match &self.children {
            Children::There(_) => None,
            Children::AsAsked(stored) => Some(stored),
        }
    }

    /// Child `at`, made if need be.
    #[inline]
    pub(crate) fn child(&self, at: usize) -> &Arc<Node> {
        match &self.children {
            Children::There(children) => &children[at],
            Children::AsAsked(stored) => match stored.made[at].get() {
                Some(child) => child,
                None => self.make(stored, at),
            },
        }
    }

    /// All children in order, made if need be.
    #[cfg(test)]
    pub(in crate::tree) fn children(&self) -> impl Iterator<Item = &Arc<Node>> {
        (0..self.len()).map(|at| self.child(at))
    }

    /// The children in order, as far as they are there. Those that are not are as the page has them.
    pub(in crate::tree) fn made(
        &self,
    ) -> impl DoubleEndedIterator<Item = Option<&Arc<Node>>> + ExactSizeIterator {
        (0..self.len()).map(|at| self.made_child(at))
    }

    fn made_child(&self, at: usize) -> Option<&Arc<Node>> {
        match &self.children {
            Children::There(children) => children.get(at),
            Children::AsAsked(stored) => stored.made.get(at)?.get(),
        }
    }

    /// What the page that was read says of child `at`.
    pub(in crate::tree) fn address(&self, at: usize) -> Option<ChildAddress> {
        self.stored().and_then(|_| address_in(&self.keys, at))
    }

    /// Leaf `at` as the page has it that was read, if it is known to have no large values and nobody has come to it.
    pub(in crate::tree) fn plain_copy(&self, at: usize) -> Option<FileCopy> {
        let stored = self.stored().filter(|stored| stored.level == 0 && stored.made[at].get().is_none())?;
        let address = self.address(at).filter(|address| address.has_no_large)?;
        Some(copy_at(&stored.shared, &address))
    }

    /// Where the page ends that was read; later on a child may have got more keys.
    pub(in crate::tree) fn high(&self) -> Option<&Bound> {
        self.stored().and_then(|stored| stored.high.as_ref())
    }

    /// Holds up who wants to make a child.
    pub(in crate::tree) fn closing(&self) -> Closing<'_> {
        Closing(self.stored().map(|stored| stored.is_closed.lock()))
    }

    /// Bytes, without those of children.
    pub(in crate::tree) fn memory(&self) -> usize {
        let children = match &self.children {
            Children::There(children) => size_of_val(&children[..]),
            Children::AsAsked(stored) => size_of_val(&stored.made[..]),
        };
        self.keys.memory() + children
    }

    #[cold]
    fn make<'v>(&self, stored: &'v Stored, at: usize) -> &'v Arc<Node> {
        let is_closed = stored.is_closed.lock();
        stored.made[at].get_or_init(|| {
            let child = self.made_of(stored, at);
            if let (true, Node::Leaf(leaf)) = (*is_closed, &*child) {
                leaf.leave(&mut leaf.latch());
            }
            child
        })
    }

    fn made_of(&self, stored: &Stored, at: usize) -> Arc<Node> {
        let shared = &stored.shared;
        let Some(child) = address_in(&self.keys, at) else {
            unreachable!("all were looked at when it was read")
        };
        let (low, high) = self.bounds_of(stored, at);
        if stored.level > 0 {
            let bounds = Bounds { low: low.to_vec(), high: high.map(|high| high.to_vec()) };
            return Inner::stored(shared, stored.level, shared.space.adopt(child.block), bounds);
        }
        Arc::new(Node::Leaf(Leaf::stored(shared.clone(), low, high, copy_at(shared, &child))))
    }

    /// Where child `at` begins and ends. Leaves share the bound between them, if both are there.
    fn bounds_of(&self, stored: &Stored, at: usize) -> (Bound, Option<Bound>) {
        let leaf = |at: usize| self.made_child(at)?.leaf().map(Leaf::view);
        let low = bound_of(&self.keys, at);
        let before = at.checked_sub(1).and_then(leaf).and_then(|view| view.high.clone());
        let behind = leaf(at + 1).map(|view| view.low.clone());
        let high = match at + 1 < self.len() {
            true => Some(bound_of(&self.keys, at + 1)),
            false => stored.high.clone(),
        };
        let high = high.map(|high| behind.filter(|behind| *behind == high).unwrap_or(high));
        (before.filter(|before| *before == low).unwrap_or(low), high)
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
        debug_assert!(self.len() + more.len() <= MAX_CHILDREN);
        let Children::There(children) = &self.children else {
            let mut entries = self.entries();
            entries.splice(at + 1..at + 1, more.iter().cloned());
            return InnerView::new(&entries);
        };
        let mut builder = BlockBuilder::reused();
        builder.push_range(&self.keys, 0..at + 1);
        for (key, _) in more {
            builder.push(key, Value::Inline(&[]));
        }
        builder.push_range(&self.keys, at + 1..self.keys.len());
        let keys = builder.finish();
        builder.give_back();
        let (left, right) = children.split_at(at + 1);
        let new = more.iter().map(|(_, child)| child);
        let children = left.iter().chain(new).chain(right).cloned().collect();
        let view = InnerView { keys, children: Children::There(children) };
        debug_assert!(view.entries().windows(2).all(|pair| pair[0].0 < pair[1].0), "children out of order");
        view
    }

    /// As editable pairs; all children are made.
    pub(crate) fn entries(&self) -> Vec<(Vec<u8>, Arc<Node>)> {
        let entry = |at| {
            let mut key = Vec::new();
            self.keys.key_into(at, &mut key);
            (key, self.child(at).clone())
        };
        (0..self.len()).map(entry).collect()
    }
}

fn address_in(page: &Block, at: usize) -> Option<ChildAddress> {
    match page.value(at) {
        Value::Inline(bytes) => ChildAddress::decode(bytes),
        Value::Blob(_) => None,
    }
}

/// What the file has of a leaf.
fn copy_at(shared: &TreeShared, child: &ChildAddress) -> FileCopy {
    let block = shared.space.adopt(child.block);
    let image = if child.has_no_large { Image::with_blobs(block, &[]) } else { Image::new(block) };
    FileCopy::stored(image, child.patch.map(|patch| Patch::stored(shared.space.adopt(patch))))
}

fn bound_of(page: &Block, at: usize) -> Bound {
    let mut key = Vec::new();
    page.key_into(at, &mut key);
    Bound::from(&key[..])
}
