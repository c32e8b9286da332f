//! The mutable part of a leaf: keys written since its base block was made, each with a chain of versions.
//!
//! An insert-only skip list in an arena. One writer at a time, who holds the leaf's latch; any number of readers at the
//! same time, who hold nothing but a reference. Keys and versions never move and never go before the delta is dropped,
//! so a reader may keep references as long as it keeps the delta. Who may see which version is not decided here.
//!
//! ```text
//! tower  ──>  node: newest | head | key length, height | next[height] | key bytes
//!                      └──> version: status | sequence | length | older | payload
//!                                               └──> version ...
//! ```
//!
//! Publication: a node or version is complete before a Release store makes it reachable, and readers follow pointers
//! with Acquire loads, so whatever they reach is complete. A node is linked from the bottom level up; a reader that
//! misses it above finds it at the bottom or came before it.
//!
//! A typical delta has ten to two hundred keys: the towers are low, the first eight bytes of a key lie in its node as a
//! number, and an empty delta allocates nothing.

use std::alloc::{alloc, dealloc, handle_alloc_error, Layout};
use std::cell::UnsafeCell;
use std::cmp::Ordering as KeyOrder;
use std::marker::PhantomData;
use std::ptr::{addr_of, null_mut, NonNull};
use std::sync::atomic::{AtomicPtr, AtomicU32, AtomicUsize, Ordering};
use std::sync::Arc;

use super::blob::Blob;
use super::block::wide_head;
use crate::mvcc::{State, TxnStatus};
use crate::types::WriteOp;

const MAX_HEIGHT: usize = 8;
const FIRST_CHUNK_BYTES: usize = 1 << 10;
const MAX_CHUNK_BYTES: usize = 64 << 10;
/// Of everything in the arena.
const ALIGN: usize = 8;

/// What a version does to its key.
#[derive(Debug, Clone, Copy)]
pub enum VersionOp<'a> {
    /// The key has this value.
    Put(&'a [u8]),
    /// The key has this large value.
    Blob(&'a Arc<Blob>),
    /// The key is gone.
    Delete,
}

impl<'a> VersionOp<'a> {
    /// The operation on a value that is not large.
    pub fn of(op: &WriteOp<'a>) -> VersionOp<'a> {
        match *op {
            WriteOp::Insert(value) | WriteOp::Update(value) => VersionOp::Put(value),
            WriteOp::Delete => VersionOp::Delete,
        }
    }
}

/// In place of a length: the payload is an `Arc<Blob>`.
const BLOB: u32 = u32::MAX;
/// In place of a length: there is no payload.
const DELETE: u32 = u32::MAX - 1;

/// One write of one transaction to one key. Lives in the arena; reachable only by reference.
#[repr(C)]
pub struct Version {
    /// The transaction that wrote it, and what became of it.
    pub status: Arc<TxnStatus>,
    /// The number of the write within its transaction (savepoints void ranges of them).
    pub sequence: u32,
    /// Of the payload in bytes, or [`BLOB`], or [`DELETE`].
    length: u32,
    older: *const Version,
    /// What follows the version in the arena.
    payload: *const u8,
}

impl Version {
    /// What it does.
    #[inline]
    pub fn op(&self) -> VersionOp<'_> {
        match self.length {
            DELETE => VersionOp::Delete,
            // SAFETY: `Arena::version` wrote an `Arc<Blob>` there; it is dropped with the delta, from which `&self`
            // borrows.
            BLOB => VersionOp::Blob(unsafe { &*self.payload.cast::<Arc<Blob>>() }),
            // SAFETY: `Arena::version` wrote that many bytes there; they live as long as the delta.
            length => VersionOp::Put(unsafe { std::slice::from_raw_parts(self.payload, length as usize) }),
        }
    }

    /// Whether it was rolled back: nobody looks at it any more.
    pub fn is_void(&self) -> bool {
        self.status.state() == State::Aborted || self.status.is_void(self.sequence)
    }

    /// The version of the same key that was pushed before this one.
    #[inline]
    pub fn older(&self) -> Option<&Version> {
        // SAFETY: null, or a version of the same arena, complete before `self` was published and never changed since.
        unsafe { self.older.as_ref() }
    }
}

impl std::fmt::Debug for Version {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?} by {:?} #{}", self.op(), self.status, self.sequence)
    }
}

impl Drop for Version {
    fn drop(&mut self) {
        if self.length == BLOB {
            // SAFETY: `Arena::version` wrote an `Arc<Blob>` there, which nobody else drops.
            unsafe { self.payload.cast::<Arc<Blob>>().cast_mut().drop_in_place() };
        }
    }
}

/// Followed in the arena by `height` links and the key.
#[repr(C)]
struct Node {
    newest: AtomicPtr<Version>,
    head: u64,
    key_bytes: u32,
    height: u32,
}

type Link = AtomicPtr<Node>;

/// A node with the permission to look at what follows it in the arena.
#[derive(Clone, Copy)]
struct NodeRef<'a> {
    node: NonNull<Node>,
    delta: PhantomData<&'a Delta>,
}

impl<'a> NodeRef<'a> {
    /// # Safety
    /// `node` is null or a published (or, for the writer, complete) node of a delta borrowed for `'a`.
    #[inline]
    unsafe fn new(node: *mut Node) -> Option<NodeRef<'a>> {
        NonNull::new(node).map(|node| NodeRef { node, delta: PhantomData })
    }

    #[inline]
    fn get(self) -> &'a Node {
        // SAFETY: by `new`; a node lives as long as its delta, and only its atomics change.
        unsafe { self.node.as_ref() }
    }

    #[inline]
    fn link(self, level: usize) -> &'a Link {
        debug_assert!(level < self.get().height as usize);
        // SAFETY: `height` links follow the node in its allocation, and callers stay below it: a node is reached on
        // a level only through a link that was set because the node is that high.
        unsafe { &*self.node.as_ptr().add(1).cast::<Link>().add(level) }
    }

    #[inline]
    fn next(self, level: usize) -> Option<NodeRef<'a>> {
        // Acquire: pairs with the Release that published the node.
        // SAFETY: links hold null or nodes of the same delta.
        unsafe { NodeRef::new(self.link(level).load(Ordering::Acquire)) }
    }

    #[inline]
    fn key(self) -> &'a [u8] {
        let node = self.get();
        // SAFETY: the key follows the links in the allocation and never changes.
        unsafe {
            let links = self.node.as_ptr().add(1).cast::<Link>();
            std::slice::from_raw_parts(links.add(node.height as usize).cast::<u8>(), node.key_bytes as usize)
        }
    }

    #[inline]
    fn compare(self, head: u64, key: &[u8]) -> KeyOrder {
        match self.get().head.cmp(&head) {
            KeyOrder::Equal => self.key().cmp(key),
            decided => decided,
        }
    }
}

/// One key of a delta.
#[derive(Clone, Copy)]
pub struct EntryRef<'a>(NodeRef<'a>);

impl<'a> EntryRef<'a> {
    /// Its key.
    #[inline]
    pub fn key(&self) -> &'a [u8] {
        self.0.key()
    }

    /// Its newest version, as of now. There is always one; the option spares callers an assumption.
    #[inline]
    pub fn newest(&self) -> Option<&'a Version> {
        // Acquire: pairs with the Release in `push`.
        let newest = self.0.get().newest.load(Ordering::Acquire);
        // SAFETY: null or a complete version of the arena, which is borrowed for 'a.
        unsafe { newest.as_ref() }
    }

    /// The entry with the next greater key.
    #[inline]
    pub fn next(&self) -> Option<EntryRef<'a>> {
        self.0.next(0).map(EntryRef)
    }
}

impl std::fmt::Debug for EntryRef<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "EntryRef({:02x?}, {:?})", self.key(), self.newest())
    }
}

/// What only the writer touches.
struct Arena {
    chunks: Vec<(NonNull<u8>, Layout)>,
    free: *mut u8,
    free_bytes: usize,
    next_chunk_bytes: usize,
    chunk_bytes: usize,
    random: u32,
    /// The last node on each level.
    last: [*mut Node; MAX_HEIGHT],
}

/// The keys and versions of a leaf since its base was made.
pub struct Delta {
    tower: [Link; MAX_HEIGHT],
    height: AtomicUsize,
    keys: AtomicU32,
    versions: AtomicU32,
    memory: AtomicUsize,
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
            tower: [const { AtomicPtr::new(null_mut()) }; MAX_HEIGHT],
            height: AtomicUsize::new(1),
            keys: AtomicU32::new(0),
            versions: AtomicU32::new(0),
            memory: AtomicUsize::new(std::mem::size_of::<Delta>()),
            arena: UnsafeCell::new(Arena {
                chunks: Vec::new(),
                free: null_mut(),
                free_bytes: 0,
                next_chunk_bytes: FIRST_CHUNK_BYTES,
                chunk_bytes: 0,
                random: 0x9e37_79b9,
                last: [null_mut(); MAX_HEIGHT],
            }),
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

    /// Number of versions of all keys.
    pub fn versions(&self) -> usize {
        // Relaxed: a count.
        self.versions.load(Ordering::Relaxed) as usize
    }

    /// Bytes of memory that this delta holds; its blobs account for themselves.
    pub fn memory(&self) -> usize {
        // Relaxed: a count.
        self.memory.load(Ordering::Relaxed)
    }

    /// Makes a version the newest of `key`; tells whether the key is new. O(log keys).
    ///
    /// # Safety
    /// No other `push` on this delta runs at the same time: the caller holds the leaf's latch.
    pub unsafe fn push(&self, key: &[u8], status: Arc<TxnStatus>, sequence: u32, op: VersionOp<'_>) -> bool {
        // SAFETY: only `push` and `drop` touch the arena, and the caller excludes other pushes.
        let arena = unsafe { &mut *self.arena.get() };
        let head = wide_head(key);
        let mut links: [Option<NodeRef<'_>>; MAX_HEIGHT] = [None; MAX_HEIGHT];
        // SAFETY: null or nodes of this delta, complete.
        let last = |level: usize| unsafe { NodeRef::new(arena.last[level]) };
        let found = if last(0).is_some_and(|last| last.compare(head, key).is_lt()) {
            links = std::array::from_fn(last);
            None
        } else {
            self.descend(head, key, false, |level, before| links[level] = before)
        };
        let existing = found.filter(|node| node.compare(head, key).is_eq());
        // Relaxed: written by pushes only, which the latch orders.
        let older = existing.map_or(null_mut(), |node| node.get().newest.load(Ordering::Relaxed));
        let version = arena.version(status, sequence, op, older);
        match existing {
            // Release: publishes the version; pairs with the Acquire in `newest`.
            Some(node) => node.get().newest.store(version, Ordering::Release),
            None => {
                let node = arena.node(key, head, version);
                self.link_node(node, &links);
                arena.note_last(node);
            }
        }
        // Relaxed: counts; the latch orders their writers.
        self.versions.store(self.versions.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
        // Relaxed: a count.
        self.memory.store(std::mem::size_of::<Delta>() + arena.chunk_bytes, Ordering::Relaxed);
        existing.is_none()
    }

    /// Like [`Delta::push`] on a delta that nobody else knows.
    pub fn add(&mut self, key: &[u8], status: Arc<TxnStatus>, sequence: u32, op: VersionOp<'_>) {
        // SAFETY: `&mut self`: nobody else pushes.
        unsafe { self.push(key, status, sequence, op) };
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

    /// Links a complete node behind those in `before` (`None`: behind the tower).
    fn link_node(&self, node: NonNull<Node>, before: &[Option<NodeRef<'_>>; MAX_HEIGHT]) {
        let new = NodeRef { node, delta: PhantomData };
        let height = new.get().height as usize;
        for (level, before) in before.iter().enumerate().take(height) {
            let link = before.map_or(&self.tower[level], |before| before.link(level));
            // Relaxed: links are written by pushes only, which the latch orders; the node is not published yet on this
            // level.
            new.link(level).store(link.load(Ordering::Relaxed), Ordering::Relaxed);
            // Release: publishes the node; pairs with the Acquire in `next` and `descend`.
            link.store(node.as_ptr(), Ordering::Release);
        }
        // Relaxed: a hint where readers begin; a reader that sees the old height only takes more steps, and one that
        // sees the new before the links finds them null.
        if height > self.height.load(Ordering::Relaxed) {
            self.height.store(height, Ordering::Relaxed);
        }
        // Relaxed: a count.
        self.keys.store(self.keys.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
    }

    /// The first node at or after `key` (after it, if `past`); `visit` is told, level by level, the last node before
    /// that (`None`: there is none on the level).
    #[inline]
    fn descend<'a>(
        &'a self,
        head: u64,
        key: &[u8],
        past: bool,
        mut visit: impl FnMut(usize, Option<NodeRef<'a>>),
    ) -> Option<NodeRef<'a>> {
        let mut before: Option<NodeRef<'a>> = None;
        let mut bound: Option<NodeRef<'a>> = None;
        // Relaxed: see `link_node`.
        for level in (0..self.height.load(Ordering::Relaxed)).rev() {
            loop {
                let next = self.successor(before, level);
                match next {
                    // Met on the level above, and known not to be before the key.
                    Some(node) if bound.is_some_and(|bound| bound.node == node.node) => break,
                    Some(node) if is_before(node, head, key, past) => before = next,
                    _ => {
                        bound = next;
                        break;
                    }
                }
            }
            visit(level, before);
        }
        bound
    }

    #[inline]
    fn successor<'a>(&'a self, before: Option<NodeRef<'a>>, level: usize) -> Option<NodeRef<'a>> {
        match before {
            Some(node) => node.next(level),
            // Acquire: pairs with the Release that published the node.
            // SAFETY: the tower holds null or nodes of this delta.
            None => unsafe { NodeRef::new(self.tower[level].load(Ordering::Acquire)) },
        }
    }

    /// The last node before `key` (or at it, if `through`).
    fn predecessor(&self, key: &[u8], through: bool) -> Option<EntryRef<'_>> {
        let mut last = None;
        self.descend(wide_head(key), key, through, |_, before| last = before);
        last.map(EntryRef)
    }

    /// The entry of `key`.
    #[inline]
    pub fn find(&self, key: &[u8]) -> Option<EntryRef<'_>> {
        let head = wide_head(key);
        let node = self.descend(head, key, false, |_, _| ())?;
        node.compare(head, key).is_eq().then_some(EntryRef(node))
    }

    /// The entry with the least key >= `key`.
    #[inline]
    pub fn first_at_or_after(&self, key: &[u8]) -> Option<EntryRef<'_>> {
        self.descend(wide_head(key), key, false, |_, _| ()).map(EntryRef)
    }

    /// The entry with the least key > `key`.
    #[inline]
    pub fn first_after(&self, key: &[u8]) -> Option<EntryRef<'_>> {
        self.descend(wide_head(key), key, true, |_, _| ()).map(EntryRef)
    }

    /// The entry with the greatest key <= `key`.
    #[cfg(test)]
    pub fn last_at_or_before(&self, key: &[u8]) -> Option<EntryRef<'_>> {
        self.predecessor(key, true)
    }

    /// The entry with the greatest key < `key`.
    pub fn last_before(&self, key: &[u8]) -> Option<EntryRef<'_>> {
        self.predecessor(key, false)
    }

    /// The entry with the least key.
    #[inline]
    pub fn first(&self) -> Option<EntryRef<'_>> {
        self.successor(None, 0).map(EntryRef)
    }

    /// The entry with the greatest key.
    pub fn last(&self) -> Option<EntryRef<'_>> {
        let mut last = None;
        // Relaxed: see `link_node`.
        for level in (0..self.height.load(Ordering::Relaxed)).rev() {
            while let Some(node) = self.successor(last, level) {
                last = Some(node);
            }
        }
        last.map(EntryRef)
    }

    /// All large values with the versions that have them.
    pub fn blobs(&self) -> impl Iterator<Item = (&Version, &Arc<Blob>)> {
        fn versions(entry: EntryRef<'_>) -> impl Iterator<Item = &Version> {
            std::iter::successors(entry.newest(), |version| version.older())
        }
        self.iter().flat_map(versions).filter_map(|version| match version.op() {
            VersionOp::Blob(blob) => Some((version, blob)),
            VersionOp::Put(_) | VersionOp::Delete => None,
        })
    }

    /// All entries in ascending order.
    pub fn iter(&self) -> impl Iterator<Item = EntryRef<'_>> {
        std::iter::successors(self.first(), |entry| entry.next())
    }
}

#[inline]
fn is_before(node: NodeRef<'_>, head: u64, key: &[u8], past: bool) -> bool {
    match node.compare(head, key) {
        KeyOrder::Less => true,
        KeyOrder::Equal => past,
        KeyOrder::Greater => false,
    }
}

impl Arena {
    /// Room for `bytes`, aligned to [`ALIGN`], alive until the delta is dropped.
    fn allocate(&mut self, bytes: usize) -> *mut u8 {
        let bytes = bytes.next_multiple_of(ALIGN);
        if bytes > self.free_bytes {
            self.grow(bytes);
        }
        let start = self.free;
        self.free_bytes -= bytes;
        // SAFETY: `free_bytes` bytes from `free` lie in one chunk.
        self.free = unsafe { start.add(bytes) };
        start
    }

    fn grow(&mut self, bytes: usize) {
        let size = self.next_chunk_bytes.max(bytes);
        let Ok(layout) = Layout::from_size_align(size, ALIGN) else {
            panic!("an allocation of {size} bytes")
        };
        // SAFETY: the size is not zero.
        let Some(chunk) = NonNull::new(unsafe { alloc(layout) }) else { handle_alloc_error(layout) };
        self.chunks.push((chunk, layout));
        self.free = chunk.as_ptr();
        self.free_bytes = size;
        self.chunk_bytes += size;
        self.next_chunk_bytes = (self.next_chunk_bytes * 2).min(MAX_CHUNK_BYTES);
    }

    /// A complete version, not published yet.
    fn version(
        &mut self,
        status: Arc<TxnStatus>,
        sequence: u32,
        op: VersionOp<'_>,
        older: *const Version,
    ) -> *mut Version {
        let (length, payload_bytes) = match op {
            VersionOp::Put(bytes) => (bytes.len() as u32, bytes.len()),
            VersionOp::Blob(_) => (BLOB, std::mem::size_of::<Arc<Blob>>()),
            VersionOp::Delete => (DELETE, 0),
        };
        assert!(payload_bytes < DELETE as usize, "values of that size are blobs");
        let at = self.allocate(std::mem::size_of::<Version>() + payload_bytes).cast::<Version>();
        // SAFETY: `at` has room for the version and the payload behind it, aligned for an Arc, and nobody else knows it
        // yet.
        unsafe {
            let payload = at.add(1).cast::<u8>();
            match op {
                VersionOp::Put(bytes) => payload.copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()),
                VersionOp::Blob(blob) => payload.cast::<Arc<Blob>>().write(blob.clone()),
                VersionOp::Delete => {}
            }
            at.write(Version { status, sequence, length, older, payload });
        }
        at
    }

    /// A complete node with empty links, not published yet.
    fn node(&mut self, key: &[u8], head: u64, version: *mut Version) -> NonNull<Node> {
        let height = self.random_height();
        let links = height * std::mem::size_of::<Link>();
        let at = self.allocate(std::mem::size_of::<Node>() + links + key.len()).cast::<Node>();
        // SAFETY: `at` has room for the node, its links and its key, aligned, and nobody else knows it yet.
        unsafe {
            let first = at.add(1).cast::<Link>();
            for level in 0..height {
                first.add(level).write(AtomicPtr::new(null_mut()));
            }
            first.add(height).cast::<u8>().copy_from_nonoverlapping(key.as_ptr(), key.len());
            at.write(Node {
                newest: AtomicPtr::new(version),
                head,
                key_bytes: key.len() as u32,
                height: height as u32,
            });
            NonNull::new_unchecked(at)
        }
    }

    /// A node that is linked, and perhaps the last.
    fn note_last(&mut self, node: NonNull<Node>) {
        let new = NodeRef { node, delta: PhantomData };
        for level in 0..new.get().height as usize {
            if new.next(level).is_none() {
                self.last[level] = node.as_ptr();
            }
        }
    }

    /// 1 with probability 3/4, then each level more with 1/4.
    fn random_height(&mut self) -> usize {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 17;
        self.random ^= self.random << 5;
        (1 + self.random.trailing_zeros() as usize / 2).min(MAX_HEIGHT)
    }
}

impl Drop for Delta {
    fn drop(&mut self) {
        let mut node = *self.tower[0].get_mut();
        // SAFETY: `&mut self`: no reader, no writer. Every version is reachable from exactly one node and dropped once;
        // its memory stays until the chunks go below.
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
            node = current.link(0).load(Ordering::Relaxed);
        }
        for (chunk, layout) in self.arena.get_mut().chunks.drain(..) {
            // SAFETY: allocated in `grow` with this layout, freed once.
            unsafe { dealloc(chunk.as_ptr(), layout) };
        }
    }
}

#[cfg(test)]
mod tests;
