//! Where the keys of a delta are: a B-tree of at most two levels over its nodes, made for few cache misses.
//!
//! Nodes lie where the arena had room, so each that a search looks at is a cache miss, and in a large cache a miss of
//! the TLB as well. A *chunk* therefore has the heads of its keys side by side: the eight bytes after what the keys
//! that it began with share. A search looks at one chunk, or at two, and at the node that it ends at.
//!
//! ```text
//! top ──> chunk of nodes                       (up to 32 keys)
//!   or ─> inner chunk ──> chunks of nodes      (any number: it grows)
//!
//! chunk   sequence | count | capacity | heads ... | pointers ...
//! ```
//!
//! There is one writer at a time, and readers take no latch: a chunk has a sequence number, odd while the writer moves
//! entries in it (a seqlock). A reader notes the numbers of the chunks on its way, and begins anew if one has changed
//! when it is through (optimistic lock coupling, as in the OLFIT and Masstree papers). What it met meanwhile is never
//! dangerous: pointers in chunks lead to complete nodes and chunks of the same arena, which stay until the delta goes.
//! A reader that meets the writer too often gets [`Busy`], and follows the list of nodes instead, which needs no luck.
//!
//! An entry behind all others is appended: nothing moves, and the number stays. To a chunk of nodes that is one node
//! more, which a reader that has counted before is free not to see. To an inner chunk it may be the upper half of its
//! last child, and the nodes in there are not new: who has chosen a child by the inner chunk's count compares the
//! count, too.
//!
//! The index is changed before the list: whatever a scan meets a search finds.
//!
//! What a search says is true by itself, of one moment while it ran; that the caller follows the list from there is not
//! part of the proof. Each look-up of `Delta` and what it takes:
//!
//! | look-up | by | takes |
//! |---|---|---|
//! | `find`, `first_at_or_after`, `first_after` | `find`, `at` | the next node, or the list behind `before` |
//! | `last_before`, `last_at_or_before` | `find` | `before`, as it is |
//! | `some_before` | `around` | the nodes before the key, as they are; without any, that there are none |
//! | `push` | `place` | all: it is the writer |
//! | `last` | `last`, which compares nothing | any node; it follows the list to its end |
//! | `first`, `iter`, `some_from` | the list | |

use crate::sync::atomic::{fence, AtomicPtr, AtomicU32, AtomicU64, Ordering};
use std::marker::PhantomData;
use std::ptr::{null, null_mut, NonNull};

use super::arena::Arena;
use super::entry::{Node, NodeRef};
use super::Delta;
use crate::tree::block::wide_head;

/// Keys of a full chunk of nodes: four cache lines of heads.
const FULL: usize = 32;
/// Capacities of chunks of nodes that grow.
const STEPS: [usize; 3] = [4, 12, FULL];
/// Of the first inner chunk; then twice as many each time.
const INNER: usize = 8;
/// How often a reader begins anew.
const TRIES: usize = 16;

/// Followed in the arena by `capacity` heads and `capacity` pointers.
#[repr(C)]
struct Chunk {
    /// Odd while entries are moved, and for ever once another chunk has taken its place.
    sequence: AtomicU32,
    count: AtomicU32,
    capacity: u32,
    /// Its entries are chunks of nodes, each under the first of its nodes. (The first is under nothing: it has all that
    /// is less than the second.)
    inner: bool,
    /// What the keys shared from which the chunk was made: the first bytes of the key of a node.
    prefix: *const u8,
    prefix_bytes: usize,
}

/// The writer is changing what was read.
struct Changed;

/// The writer is changing it all the time.
#[derive(Debug)]
pub(super) struct Busy;

/// A chunk with the permission to look at what follows it in the arena.
#[derive(Clone, Copy)]
struct ChunkRef<'a> {
    chunk: NonNull<Chunk>,
    delta: PhantomData<&'a Delta>,
}

/// Where a key is or belongs.
pub(super) struct Found<'a> {
    /// The last node before it.
    pub before: Option<NodeRef<'a>>,
    /// The node after that, unless it is in the next chunk.
    pub at: Option<NodeRef<'a>>,
}

/// A chunk's nodes, as they were at one moment.
pub(super) struct Around<'a> {
    /// In ascending order, then none.
    pub nodes: [Option<NodeRef<'a>>; FULL],
    /// How many of them are before the key.
    pub before: usize,
}

/// The same for the writer.
pub(super) struct Place<'a> {
    inner: Option<ChunkRef<'a>>,
    /// Among the entries of `inner`.
    child: usize,
    chunk: Option<ChunkRef<'a>>,
    /// Among the entries of `chunk`.
    at: usize,
    pub found: Found<'a>,
}

impl Place<'_> {
    /// In an index without nodes.
    const NOWHERE: Place<'static> =
        Place { inner: None, child: 0, chunk: None, at: 0, found: Found { before: None, at: None } };
}

/// See the module's documentation.
pub(super) struct Index {
    top: AtomicPtr<Chunk>,
}

impl<'a> ChunkRef<'a> {
    /// # Safety
    /// `chunk` is null or a complete chunk of a delta borrowed for `'a`.
    #[inline]
    unsafe fn new(chunk: *mut Chunk) -> Option<ChunkRef<'a>> {
        NonNull::new(chunk).map(|chunk| ChunkRef { chunk, delta: PhantomData })
    }

    #[inline]
    fn get(self) -> &'a Chunk {
        // SAFETY: by `new`; a chunk lives as long as its delta, and only its atomics change.
        unsafe { self.chunk.as_ref() }
    }

    #[inline]
    fn capacity(self) -> usize {
        self.get().capacity as usize
    }

    /// How many entries it has; never more than its capacity.
    #[inline]
    fn count(self) -> usize {
        // Acquire: pairs with the Release after an entry was put behind the others.
        self.get().count.load(Ordering::Acquire) as usize
    }

    #[inline]
    fn heads(self) -> &'a [AtomicU64] {
        // SAFETY: `Chunk::make` wrote `capacity` heads behind the chunk, in the same allocation.
        unsafe { std::slice::from_raw_parts(self.chunk.as_ptr().add(1).cast::<AtomicU64>(), self.capacity()) }
    }

    #[inline]
    fn pointers(self) -> &'a [AtomicPtr<u8>] {
        // SAFETY: `Chunk::make` wrote `capacity` pointers behind the heads, in the same allocation; they live as long.
        unsafe {
            let heads = self.chunk.as_ptr().add(1).cast::<AtomicU64>();
            std::slice::from_raw_parts(heads.add(self.capacity()).cast::<AtomicPtr<u8>>(), self.capacity())
        }
    }

    /// What comparisons begin with: orders as the keys do, but may be equal for different ones.
    #[inline]
    fn head(self, key: &[u8]) -> u64 {
        let chunk = self.get();
        let prefix = match chunk.prefix_bytes {
            0 => &[][..],
            // SAFETY: that many bytes are at the start of a key of the arena, which never changes.
            bytes => unsafe { std::slice::from_raw_parts(chunk.prefix, bytes) },
        };
        match key.strip_prefix(prefix) {
            Some(rest) => wide_head(rest),
            None if key < prefix => 0,
            None => u64::MAX,
        }
    }

    /// The node at a place of a chunk of nodes; of an inner one, the first of the chunk at that place.
    #[inline]
    fn node(self, at: usize) -> Result<NodeRef<'a>, Changed> {
        match self.get().inner {
            true => self.child(at)?.node(0),
            false => {
                let node = self.pointers()[at].load(Ordering::Acquire).cast::<Node>();
                // SAFETY: entries of a chunk of nodes are null (not written yet) or complete nodes of the delta.
                unsafe { NodeRef::new(node) }.ok_or(Changed)
            }
        }
    }

    /// Its first node, for the writer.
    fn first(self) -> Option<NodeRef<'a>> {
        self.node(0).ok()
    }

    #[inline]
    fn child(self, at: usize) -> Result<ChunkRef<'a>, Changed> {
        debug_assert!(self.get().inner);
        let chunk = self.pointers()[at].load(Ordering::Acquire).cast::<Chunk>();
        // SAFETY: entries of an inner chunk are null (not written yet) or complete chunks of the delta.
        unsafe { ChunkRef::new(chunk) }.ok_or(Changed)
    }

    /// The sequence number, to be compared later.
    #[inline]
    fn begin(self) -> Result<u32, Changed> {
        // Acquire: what is read after it is not older.
        let sequence = self.get().sequence.load(Ordering::Acquire);
        sequence.is_multiple_of(2).then_some(sequence).ok_or(Changed)
    }

    /// Whether nothing was moved since; after an Acquire fence.
    #[inline]
    fn is_still(self, sequence: u32) -> bool {
        // Relaxed: the fence orders it behind the reads that it judges.
        self.get().sequence.load(Ordering::Relaxed) == sequence
    }

    /// How many of its entries are before `key`. An inner chunk's first counts always.
    #[inline]
    fn position(self, count: usize, key: &[u8], past: bool) -> Result<usize, Changed> {
        let head = self.head(key);
        let heads = &self.heads()[..count];
        let mut low = usize::from(self.get().inner);
        // Relaxed, here and below: the sequence number decides whether what was read counts.
        if low >= count || heads[count - 1].load(Ordering::Relaxed) < head {
            return Ok(count.max(low));
        }
        let mut high = count;
        while low < high {
            let middle = (low + high) / 2;
            match heads[middle].load(Ordering::Relaxed) < head {
                true => low = middle + 1,
                false => high = middle,
            }
        }
        // Among those with the same head the keys decide.
        let mut end = low;
        while end < count && heads[end].load(Ordering::Relaxed) == head {
            end += 1;
        }
        while low < end {
            let middle = (low + end) / 2;
            match self.node(middle)?.is_before(key, past) {
                true => low = middle + 1,
                false => end = middle,
            }
        }
        Ok(low)
    }

    /// Runs `change`, which moves entries, so that readers notice.
    fn change(self, change: impl FnOnce()) {
        let sequence = &self.get().sequence;
        // Relaxed: only the writer changes it.
        let before = sequence.load(Ordering::Relaxed);
        sequence.store(before.wrapping_add(1), Ordering::Relaxed);
        // What is stored below is not seen before the odd number.
        fence(Ordering::Release);
        change();
        // Release: nor after the even one.
        sequence.store(before.wrapping_add(2), Ordering::Release);
    }

    /// Another chunk has taken its place: readers that are still here begin anew.
    fn retire(self) {
        // Release: whoever sees it finds the other chunk.
        self.get().sequence.store(u32::MAX, Ordering::Release);
    }

    fn set(self, at: usize, head: u64, pointer: *mut u8) {
        // Relaxed: see `position`. Release: whoever follows the pointer finds it complete.
        self.heads()[at].store(head, Ordering::Relaxed);
        self.pointers()[at].store(pointer, Ordering::Release);
    }

    /// Puts an entry in, before the one at `at`. There is room.
    fn put(self, at: usize, key: &[u8], pointer: *mut u8) {
        let count = self.count();
        debug_assert!(at <= count && count < self.capacity());
        let head = self.head(key);
        let grow = || self.get().count.store(count as u32 + 1, Ordering::Release);
        if at == count {
            // Release: who sees the count sees the entry. Nothing moves; for an inner chunk see `try_read`.
            self.set(at, head, pointer);
            return grow();
        }
        self.change(|| {
            let (heads, pointers) = (self.heads(), self.pointers());
            for to in (at + 1..=count).rev() {
                // Relaxed: the writer reads what it wrote. Release: as in `set`.
                heads[to].store(heads[to - 1].load(Ordering::Relaxed), Ordering::Relaxed);
                pointers[to].store(pointers[to - 1].load(Ordering::Relaxed), Ordering::Release);
            }
            self.set(at, head, pointer);
            grow();
        });
    }

    /// All its entries, with `pointer` before the one at `at`.
    fn with(self, at: usize, pointer: *mut u8) -> Vec<*mut u8> {
        // Relaxed: the writer reads what it wrote.
        let load = |pointer: &AtomicPtr<u8>| pointer.load(Ordering::Relaxed);
        let (before, behind) = self.pointers()[..self.count()].split_at(at);
        let mut all = Vec::with_capacity(self.count() + 1);
        all.extend(before.iter().map(load));
        all.push(pointer);
        all.extend(behind.iter().map(load));
        all
    }
}

impl Chunk {
    /// A chunk of these entries, complete and not published. Keys from `low` on are told apart best.
    fn make<'a>(
        arena: &mut Arena,
        inner: bool,
        capacity: usize,
        low: NodeRef<'_>,
        entries: &[*mut u8],
    ) -> ChunkRef<'a> {
        debug_assert!(!entries.is_empty() && entries.len() <= capacity);
        let bytes = size_of::<Chunk>() + capacity * (size_of::<AtomicU64>() + size_of::<AtomicPtr<u8>>());
        let at = arena.allocate(bytes).cast::<Chunk>();
        let key = |entry: usize| {
            let node = match inner {
                // SAFETY: the writer's entries for an inner chunk are complete chunks of the arena.
                true => unsafe { ChunkRef::new(entries[entry].cast()) }.and_then(ChunkRef::first),
                // SAFETY: its other entries are complete nodes of the arena.
                false => unsafe { NodeRef::new(entries[entry].cast()) },
            };
            node.map_or(&[][..], NodeRef::key)
        };
        let (low, high) = (low.key(), key(entries.len() - 1));
        let shared = match std::ptr::eq(low, high) {
            true => 0,
            false => low.iter().zip(high).take_while(|(a, b)| a == b).count(),
        };
        // SAFETY: `at` has room for the chunk, its heads and its pointers, aligned, and nobody else knows it yet.
        let chunk = unsafe {
            let heads = at.add(1).cast::<AtomicU64>();
            let pointers = heads.add(capacity).cast::<AtomicPtr<u8>>();
            for entry in 0..capacity {
                heads.add(entry).write(AtomicU64::new(0));
                pointers.add(entry).write(AtomicPtr::new(null_mut()));
            }
            at.write(Chunk {
                sequence: AtomicU32::new(0),
                count: AtomicU32::new(entries.len() as u32),
                capacity: capacity as u32,
                inner,
                prefix: if shared == 0 { null() } else { high.as_ptr() },
                prefix_bytes: shared,
            });
            ChunkRef { chunk: NonNull::new_unchecked(at), delta: PhantomData }
        };
        for (at, &pointer) in entries.iter().enumerate() {
            chunk.set(at, chunk.head(key(at)), pointer);
        }
        chunk
    }
}

impl Index {
    pub(super) const fn new() -> Index {
        Index { top: AtomicPtr::new(null_mut()) }
    }

    fn top<'a>(&'a self) -> Option<ChunkRef<'a>> {
        // Acquire: pairs with the Release that published the chunk.
        // SAFETY: null or a complete chunk of the delta that has this index.
        unsafe { ChunkRef::new(self.top.load(Ordering::Acquire)) }
    }

    /// Where `key` is or belongs (behind it, if `past`).
    #[inline]
    pub(super) fn find(&self, key: &[u8], past: bool) -> Result<Found<'_>, Busy> {
        self.read(key, past, |chunk, count, at| {
            Ok(Found {
                before: if at > 0 { Some(chunk.node(at - 1)?) } else { None },
                at: if at < count { Some(chunk.node(at)?) } else { None },
            })
        })
        .map(|found| found.unwrap_or(Found { before: None, at: None }))
    }

    /// The nodes of the chunk in which `key` is or belongs (behind it, if `past`), and how many of them are before.
    pub(super) fn around(&self, key: &[u8], past: bool) -> Result<Around<'_>, Busy> {
        self.read(key, past, |chunk, count, at| {
            let mut around = Around { nodes: [None; FULL], before: at };
            for (to, from) in around.nodes.iter_mut().zip(0..count) {
                *to = Some(chunk.node(from)?);
            }
            Ok(around)
        })
        .map(|found| found.unwrap_or(Around { nodes: [None; FULL], before: 0 }))
    }

    /// What `look` says of the chunk in which `key` is or belongs, of the number of its entries, and of how many of
    /// them are before `key` (behind it, if `past`); `None` in an index without nodes. `look` may be called again.
    #[inline]
    fn read<'a, T>(
        &'a self,
        key: &[u8],
        past: bool,
        look: impl Fn(ChunkRef<'a>, usize, usize) -> Result<T, Changed>,
    ) -> Result<Option<T>, Busy> {
        for _ in 0..TRIES {
            if let Ok(found) = self.try_read(key, past, &look) {
                return Ok(found);
            }
            std::hint::spin_loop();
        }
        Err(Busy)
    }

    #[inline]
    fn try_read<'a, T>(
        &'a self,
        key: &[u8],
        past: bool,
        look: impl Fn(ChunkRef<'a>, usize, usize) -> Result<T, Changed>,
    ) -> Result<Option<T>, Changed> {
        let Some(top) = self.top() else { return Ok(None) };
        let of_top = top.begin()?;
        let children = top.count();
        let (chunk, of_chunk) = match top.get().inner {
            true => {
                let child = top.child(top.position(children, key, past)? - 1)?;
                (child, child.begin()?)
            }
            false => (top, of_top),
        };
        let count = chunk.count();
        let found = look(chunk, count, chunk.position(count, key, past)?)?;
        // What is read below is not older than what was read above.
        fence(Ordering::Acquire);
        // A child that was divided after `children` were counted has given nodes to one behind them. `split` appends
        // that before it shortens the child (and puts an even number): if the child was short when `begin` looked at
        // it, the greater count is seen here. A chunk of nodes may have grown: it is looked at as of its own count.
        // Relaxed: ordered by the fence.
        let same_children = || top.get().count.load(Ordering::Relaxed) as usize == children;
        let still = chunk.is_still(of_chunk)
            && top.is_still(of_top)
            && (!top.get().inner || same_children())
            && self.top.load(Ordering::Relaxed) == top.chunk.as_ptr();
        still.then_some(Some(found)).ok_or(Changed)
    }

    /// The last node; `None` if there is none, or if the writer is at it.
    pub(super) fn last(&self) -> Option<NodeRef<'_>> {
        let mut chunk = self.top()?;
        if chunk.get().inner {
            chunk = chunk.child(chunk.count().checked_sub(1)?).ok()?;
        }
        chunk.node(chunk.count().checked_sub(1)?).ok()
    }

    /// Where `key` is or belongs, for the writer, whom nobody disturbs.
    pub(super) fn place(&self, key: &[u8]) -> Place<'_> {
        let place = self.try_place(key);
        debug_assert!(place.is_ok(), "the writer met another");
        place.unwrap_or(Place::NOWHERE)
    }

    fn try_place(&self, key: &[u8]) -> Result<Place<'_>, Changed> {
        let Some(top) = self.top() else { return Ok(Place::NOWHERE) };
        let (inner, child, chunk) = match top.get().inner {
            true => {
                let child = top.position(top.count(), key, false)? - 1;
                (Some(top), child, top.child(child)?)
            }
            false => (None, 0, top),
        };
        let count = chunk.count();
        let at = chunk.position(count, key, false)?;
        let before = if at > 0 { Some(chunk.node(at - 1)?) } else { None };
        let found = Found { before, at: if at < count { Some(chunk.node(at)?) } else { None } };
        Ok(Place { inner, child, chunk: Some(chunk), at, found })
    }

    /// Puts a complete node where `place` says.
    pub(super) fn insert(&self, arena: &mut Arena, place: &Place<'_>, node: NodeRef<'_>) {
        let pointer = node.as_ptr().cast::<u8>();
        let Some(chunk) = place.chunk else {
            let chunk = Chunk::make(arena, false, STEPS[0], node, &[pointer]);
            return self.set_top(chunk);
        };
        if chunk.count() < chunk.capacity() {
            return chunk.put(place.at, node.key(), pointer);
        }
        if chunk.capacity() == FULL {
            return self.split(arena, place, chunk, node);
        }
        let capacity = STEPS.into_iter().find(|&step| step > chunk.capacity()).unwrap_or(FULL);
        let low = chunk.first().unwrap_or(node);
        let larger = Chunk::make(arena, false, capacity, low, &chunk.with(place.at, pointer));
        match place.inner {
            // Release: whoever finds the chunk finds it complete.
            Some(inner) => {
                inner.pointers()[place.child].store(larger.chunk.as_ptr().cast(), Ordering::Release)
            }
            None => self.set_top(larger),
        }
        chunk.retire();
    }

    fn set_top(&self, chunk: ChunkRef<'_>) {
        // Release: whoever finds the chunk finds it complete.
        self.top.store(chunk.chunk.as_ptr(), Ordering::Release);
    }

    /// Divides a full chunk, and puts the node where it belongs. Behind the last key a new chunk begins: keys that
    /// ascend fill their chunks.
    fn split(&self, arena: &mut Arena, place: &Place<'_>, chunk: ChunkRef<'_>, node: NodeRef<'_>) {
        let pointer = node.as_ptr().cast::<u8>();
        let all = chunk.with(place.at, pointer);
        let from = if place.at == FULL { FULL } else { FULL / 2 };
        // What goes along includes the node, or what stays does.
        let stays = place.at < from;
        let low = chunk.first().unwrap_or(node);
        let upper = Chunk::make(arena, false, FULL, low, &all[from + usize::from(stays)..]);
        self.add_chunk(arena, place, low, chunk, upper);
        if from == FULL {
            return;
        }
        // Release: it is not seen before the odd number; the entries beyond are in `upper`, which is found by now.
        chunk.change(|| chunk.get().count.store(from as u32, Ordering::Release));
        if stays {
            chunk.put(place.at, node.key(), pointer);
        }
    }

    /// Puts `upper` behind `chunk` in the inner chunk.
    fn add_chunk(
        &self,
        arena: &mut Arena,
        place: &Place<'_>,
        low: NodeRef<'_>,
        chunk: ChunkRef<'_>,
        upper: ChunkRef<'_>,
    ) {
        let pointer = upper.chunk.as_ptr().cast::<u8>();
        let Some(inner) = place.inner else {
            let both = [chunk.chunk.as_ptr().cast::<u8>(), pointer];
            return self.set_top(Chunk::make(arena, true, INNER, low, &both));
        };
        let at = place.child + 1;
        if inner.count() < inner.capacity() {
            let key = upper.first().map_or(&[][..], NodeRef::key);
            return inner.put(at, key, pointer);
        }
        let low = inner.first().unwrap_or(low);
        let larger = Chunk::make(arena, true, 2 * inner.capacity(), low, &inner.with(at, pointer));
        self.set_top(larger);
        inner.retire();
    }
}
