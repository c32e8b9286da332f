//! The mutable part of a leaf: keys written since its base block was made, each with a chain of versions.
//!
//! Insert-only, in an arena. One writer at a time, who holds the leaf's latch; any number of readers at the same time,
//! who hold nothing but a reference. Keys and versions never move and never go before the delta is dropped, so a reader
//! may keep references as long as it keeps the delta. Who may see which version is not decided here.
//!
//! ```text
//! first ──> node: newest | next | key bytes ──> node ...       in the order of the keys
//!                    └──> version: status | sequence | length | older | payload
//!                                             └──> version ...
//! index ──> heads of keys, side by side ──> node               (index.rs)
//! ```
//!
//! Publication: a node or version is complete before a Release store makes it reachable, and readers follow pointers
//! with Acquire loads, so whatever they reach is complete. A node is in the index before it is in the list; a reader
//! that finds it in neither came before it.
//!
//! A typical delta has ten to two hundred keys, and an empty one allocates nothing.

mod arena;
mod entry;
mod index;

use crate::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicUsize, Ordering};
use std::cell::UnsafeCell;
use std::ptr::{addr_of, null_mut};
use std::sync::Arc;

use crate::arrays::prefetch;
use crate::mvcc::TxnStatus;
use crate::tree::block::blob::Blob;
use arena::Arena;
pub use entry::{EntryRef, Version, VersionOp};
use entry::{Node, NodeRef};
use index::{Found, Index, Place};

/// How many entries are looked at together.
pub const SOME: usize = 32;

/// A key with its newest version.
pub type Newest<'a> = (EntryRef<'a>, Option<&'a Version>);

/// The keys and versions of a leaf since its base was made.
pub struct Delta {
    first: AtomicPtr<Node>,
    index: Index,
    keys: AtomicU32,
    versions: AtomicU32,
    memory: AtomicUsize,
    /// Whether a version has, or had, a large value.
    has_blobs: AtomicBool,
    /// Statuses that it charges.
    statuses: AtomicUsize,
    /// Whose the last version was that was not pushed but added. Only compared.
    last_added: *const TxnStatus,
    arena: UnsafeCell<Arena>,
}

// SAFETY: `arena` is touched only under `push`, whose caller holds the leaf's latch, and under `drop`; all else that
// changes after publication is atomic. What the arena owns (`Arc<TxnStatus>`, `Arc<Blob>`) is Send and Sync.
unsafe impl Send for Delta {}
// SAFETY: as above.
unsafe impl Sync for Delta {}

impl Default for Delta {
    fn default() -> Delta {
        Delta::new()
    }
}

impl Delta {
    /// An empty delta; allocates nothing.
    pub fn new() -> Delta {
        Delta {
            first: AtomicPtr::new(null_mut()),
            index: Index::new(),
            keys: AtomicU32::new(0),
            versions: AtomicU32::new(0),
            // An empty one stands for many leaves without changes.
            memory: AtomicUsize::new(0),
            has_blobs: AtomicBool::new(false),
            statuses: AtomicUsize::new(0),
            last_added: std::ptr::null(),
            arena: UnsafeCell::new(Arena::new()),
        }
    }

    /// Number of keys.
    pub fn len(&self) -> usize {
        // Relaxed: a count, nothing is reached through it.
        self.keys.load(Ordering::Relaxed) as usize
    }

    /// Whether there is no key.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Number of versions of all keys. Who reads it and then looks a key up finds at least these.
    #[inline]
    pub fn versions(&self) -> usize {
        // Acquire: pairs with the Release in `push`.
        self.versions.load(Ordering::Acquire) as usize
    }

    /// Bytes of memory that this delta holds; its blobs account for themselves.
    pub fn memory(&self) -> usize {
        // Relaxed: a count.
        self.memory.load(Ordering::Relaxed)
    }

    /// Bytes of memory that go with it, about: its own, and those of the transactions that it was the first to have a
    /// version of. They go when the last delta does that has one.
    pub fn charge(&self) -> usize {
        // Relaxed: a count.
        self.memory() + self.statuses.load(Ordering::Relaxed) * TxnStatus::BYTES
    }

    /// Makes a version the newest of `key`; tells whether the key is new. O(log keys).
    ///
    /// # Safety
    /// No other `push` on this delta runs at the same time: the caller holds the leaf's latch.
    pub unsafe fn push(&self, key: &[u8], status: Arc<TxnStatus>, sequence: u32, op: VersionOp<'_>) -> bool {
        if status.charges() {
            // Relaxed: a count.
            self.statuses.fetch_add(1, Ordering::Relaxed);
        }
        // SAFETY: as the caller says.
        unsafe { self.put(key, status, sequence, op) }
    }

    /// # Safety
    /// As of [`Delta::push`].
    unsafe fn put(&self, key: &[u8], status: Arc<TxnStatus>, sequence: u32, op: VersionOp<'_>) -> bool {
        // SAFETY: only `push` and `drop` touch the arena, and the caller excludes other pushes.
        let arena = unsafe { &mut *self.arena.get() };
        let place = self.index.place(key);
        let existing = self.at(&place.found, key, false).filter(|node| node.key() == key);
        // Relaxed: written by pushes only, which the latch orders.
        let older = existing.map_or(null_mut(), |node| node.get().newest.load(Ordering::Relaxed));
        if matches!(op, VersionOp::Blob(_)) {
            // Relaxed: who sees it late passes by a value that has just come.
            self.has_blobs.store(true, Ordering::Relaxed);
        }
        let version = arena.version(status, sequence, op, older);
        match existing {
            // Release: publishes the version; pairs with the Acquire in `newest`.
            Some(node) => node.get().newest.store(version, Ordering::Release),
            None => self.add_node(arena, &place, key, version),
        }
        // Release: pairs with the Acquire in `versions`. Relaxed: the latch orders the writers.
        self.versions.store(self.versions.load(Ordering::Relaxed) + 1, Ordering::Release);
        // Relaxed: a count.
        self.memory.store(std::mem::size_of::<Delta>() + arena.bytes(), Ordering::Relaxed);
        existing.is_none()
    }

    /// Like [`Delta::push`] on a delta that nobody else knows, of versions that were in another one, or in the spill
    /// file. That charges their transactions no longer: this one does.
    pub fn add(&mut self, key: &[u8], status: Arc<TxnStatus>, sequence: u32, op: VersionOp<'_>) {
        if self.last_added != Arc::as_ptr(&status) {
            self.last_added = Arc::as_ptr(&status);
            *self.statuses.get_mut() += 1;
        }
        // SAFETY: `&mut self`: nobody else pushes.
        unsafe { self.put(key, status, sequence, op) };
    }

    /// Adds the versions of `newer`, which come after those that are here. What is pushed to `newer` meanwhile may be
    /// among them or not.
    pub fn add_newer(&mut self, newer: &Delta) {
        for entry in newer.iter() {
            let mut versions: Vec<_> =
                std::iter::successors(entry.newest(), |version| version.older()).collect();
            versions.reverse();
            for version in versions {
                self.add(entry.key(), version.status.clone(), version.sequence, version.op());
            }
        }
    }

    fn add_node(&self, arena: &mut Arena, place: &Place<'_>, key: &[u8], version: *mut Version) {
        let link = place.found.before.map_or(&self.first, |before| &before.get().next);
        // Relaxed: links are written by pushes only, which the latch orders.
        let node = arena.node(key, version, link.load(Ordering::Relaxed));
        // SAFETY: complete, and of this delta.
        if let Some(new) = unsafe { NodeRef::new(node) } {
            self.index.insert(arena, place, new);
        }
        // Release: publishes the node; pairs with the Acquire in `next` and `first`.
        link.store(node, Ordering::Release);
        // Relaxed: a count.
        self.keys.store(self.keys.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
    }

    /// Where `key` is or belongs (behind it, if `past`).
    #[inline]
    fn locate(&self, key: &[u8], past: bool) -> Found<'_> {
        self.index.find(key, past).unwrap_or_else(|_| self.walk(key, past))
    }

    /// The same by the list.
    #[cold]
    fn walk(&self, key: &[u8], past: bool) -> Found<'_> {
        let mut found = Found { before: None, at: self.first_node() };
        while let Some(node) = found.at.filter(|node| node.is_before(key, past)) {
            found = Found { before: Some(node), at: node.next() };
        }
        found
    }

    /// The first node that is not before `key`.
    #[inline]
    fn at<'a>(&'a self, found: &Found<'a>, key: &[u8], past: bool) -> Option<NodeRef<'a>> {
        if found.at.is_some() {
            return found.at;
        }
        // It is in the next chunk. What was put in after the search may be before the key.
        let mut next = found.before.map_or_else(|| self.first_node(), NodeRef::next);
        while let Some(node) = next.filter(|node| node.is_before(key, past)) {
            next = node.next();
        }
        next
    }

    #[inline]
    fn first_node(&self) -> Option<NodeRef<'_>> {
        // Acquire: pairs with the Release that linked the node.
        // SAFETY: null or a node of this delta.
        unsafe { NodeRef::new(self.first.load(Ordering::Acquire)) }
    }

    /// The entry of `key`.
    #[inline]
    pub fn find(&self, key: &[u8]) -> Option<EntryRef<'_>> {
        self.at(&self.locate(key, false), key, false).filter(|node| node.key() == key).map(EntryRef)
    }

    /// The entry with the least key >= `key`.
    #[inline]
    pub fn first_at_or_after(&self, key: &[u8]) -> Option<EntryRef<'_>> {
        self.at(&self.locate(key, false), key, false).map(EntryRef)
    }

    /// The entry with the least key > `key`.
    #[inline]
    pub fn first_after(&self, key: &[u8]) -> Option<EntryRef<'_>> {
        self.at(&self.locate(key, true), key, true).map(EntryRef)
    }

    /// The entry with the greatest key <= `key`.
    #[cfg(test)]
    pub fn last_at_or_before(&self, key: &[u8]) -> Option<EntryRef<'_>> {
        self.locate(key, true).before.map(EntryRef)
    }

    /// The entry with the greatest key < `key`.
    pub fn last_before(&self, key: &[u8]) -> Option<EntryRef<'_>> {
        self.locate(key, false).before.map(EntryRef)
    }

    /// Replaces `out` by `first` and some that follow it, each with its newest version.
    pub fn some_from<'a>(&'a self, first: EntryRef<'a>, out: &mut Vec<Newest<'a>>) {
        out.clear();
        // By the list: statements with many rows push in the order of keys, so that nodes lie as they follow.
        let entries = std::iter::successors(Some(first), |entry| entry.next()).take(SOME);
        out.extend(entries.map(|entry| (entry, entry.newest())));
        fetch(out);
    }

    /// Replaces `out` by some entries before `key`, the greatest first; if it is empty there are none.
    pub fn some_before<'a>(&'a self, key: &[u8], out: &mut Vec<Newest<'a>>) {
        out.clear();
        match self.index.around(key, false) {
            Ok(around) => {
                let nodes = around.nodes[..around.before].iter().rev().filter_map(|node| node.map(EntryRef));
                out.extend(nodes.map(|entry| (entry, entry.newest())));
            }
            Err(_) => {
                let before = self.walk(key, false).before.map(EntryRef);
                out.extend(before.map(|entry| (entry, entry.newest())));
            }
        }
        fetch(out);
    }

    /// The entry with the least key.
    #[inline]
    pub fn first(&self) -> Option<EntryRef<'_>> {
        self.first_node().map(EntryRef)
    }

    /// The entry with the greatest key.
    pub fn last(&self) -> Option<EntryRef<'_>> {
        let mut last = self.index.last().or_else(|| self.first_node())?;
        while let Some(next) = last.next() {
            last = next;
        }
        Some(EntryRef(last))
    }

    /// Whether the transaction has written any of its versions. O(versions).
    pub fn has_of(&self, transaction: &TxnStatus) -> bool {
        self.all_versions().any(|version| std::ptr::eq(&*version.status, transaction))
    }

    fn all_versions(&self) -> impl Iterator<Item = &Version> {
        self.iter().flat_map(|entry| std::iter::successors(entry.newest(), |version| version.older()))
    }

    /// All large values with the versions that have them. Looks at no version if there are none: evictions ask.
    pub fn blobs(&self) -> impl Iterator<Item = (&Version, &Arc<Blob>)> {
        // Relaxed: see `put`.
        let all = self.has_blobs.load(Ordering::Relaxed).then(|| self.all_versions());
        all.into_iter().flatten().filter_map(|version| match version.op() {
            VersionOp::Blob(blob) => Some((version, blob)),
            VersionOp::Put(_) | VersionOp::Delete => None,
        })
    }

    /// All entries in ascending order.
    pub fn iter(&self) -> impl Iterator<Item = EntryRef<'_>> {
        std::iter::successors(self.first(), |entry| entry.next())
    }
}

/// Has the processor fetch the versions, and what their values begin with, at the same time.
fn fetch(entries: &[Newest<'_>]) {
    for version in entries.iter().filter_map(|(_, newest)| *newest) {
        if let VersionOp::Put(value) = version.op() {
            prefetch(value);
        }
    }
}

impl Drop for Delta {
    fn drop(&mut self) {
        let mut node = *self.first.get_mut();
        // SAFETY: `&mut self`: no reader, no writer. Every version is reachable from exactly one node and dropped once;
        // its memory stays until the arena goes, after this.
        while let Some(current) = unsafe { NodeRef::new(node) } {
            // Relaxed: nobody else is left.
            let mut version = current.get().newest.load(Ordering::Relaxed);
            while !version.is_null() {
                // SAFETY: as above; `older` is read before the version is dropped.
                unsafe {
                    let older = *addr_of!((*version).older);
                    version.drop_in_place();
                    version = older.cast_mut();
                }
            }
            // Relaxed: nobody else is left.
            node = current.get().next.load(Ordering::Relaxed);
        }
    }
}

#[cfg(all(test, feature = "schedules"))]
mod schedules;
#[cfg(test)]
mod tests;
