//! Keys and versions as they lie in a delta's arena, and the references through which they are read.

use crate::sync::atomic::{AtomicPtr, Ordering};
use std::marker::PhantomData;
use std::ptr::NonNull;
use std::sync::Arc;

use super::Delta;
use crate::mvcc::{State, TxnStatus};
use crate::tree::block::blob::Blob;
use crate::types::WriteOp;

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
pub(super) const BLOB: u32 = u32::MAX;
/// In place of a length: there is no payload.
pub(super) const DELETE: u32 = u32::MAX - 1;

/// One write of one transaction to one key. Lives in the arena; reachable only by reference.
#[repr(C)]
pub struct Version {
    /// The transaction that wrote it, and what became of it.
    pub status: Arc<TxnStatus>,
    /// The number of the write within its transaction (savepoints void ranges of them).
    pub sequence: u32,
    /// Of the payload in bytes, or [`BLOB`], or [`DELETE`].
    pub(super) length: u32,
    pub(super) older: *const Version,
    /// What follows the version in the arena.
    pub(super) payload: *const u8,
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

/// A key, which follows it in the arena.
#[repr(C)]
pub(super) struct Node {
    pub(super) newest: AtomicPtr<Version>,
    /// The node of the next greater key.
    pub(super) next: AtomicPtr<Node>,
    pub(super) key_bytes: u32,
}

/// A node with the permission to look at what follows it in the arena.
#[derive(Clone, Copy)]
pub(super) struct NodeRef<'a> {
    node: NonNull<Node>,
    delta: PhantomData<&'a Delta>,
}

impl<'a> NodeRef<'a> {
    /// # Safety
    /// `node` is null or a published (or, for the writer, complete) node of a delta borrowed for `'a`.
    #[inline]
    pub(super) unsafe fn new(node: *mut Node) -> Option<NodeRef<'a>> {
        NonNull::new(node).map(|node| NodeRef { node, delta: PhantomData })
    }

    pub(super) fn as_ptr(self) -> *mut Node {
        self.node.as_ptr()
    }

    #[inline]
    pub(super) fn get(self) -> &'a Node {
        // SAFETY: by `new`; a node lives as long as its delta, and only its atomics change.
        unsafe { self.node.as_ref() }
    }

    #[inline]
    pub(super) fn next(self) -> Option<NodeRef<'a>> {
        // Acquire: pairs with the Release that linked the node.
        // SAFETY: null, or a node of the same delta.
        unsafe { NodeRef::new(self.get().next.load(Ordering::Acquire)) }
    }

    #[inline]
    pub(super) fn key(self) -> &'a [u8] {
        // SAFETY: `Arena::node` wrote that many bytes behind the node, in the same allocation; they never change.
        unsafe {
            let key = self.node.as_ptr().add(1).cast::<u8>();
            std::slice::from_raw_parts(key, self.get().key_bytes as usize)
        }
    }

    /// Whether its key is less than `key` (or not greater, if `past`).
    #[inline]
    pub(super) fn is_before(self, key: &[u8], past: bool) -> bool {
        match past {
            true => self.key() <= key,
            false => self.key() < key,
        }
    }
}

/// One key of a delta.
#[derive(Clone, Copy)]
pub struct EntryRef<'a>(pub(super) NodeRef<'a>);

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
        self.0.next().map(EntryRef)
    }
}

impl std::fmt::Debug for EntryRef<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "EntryRef({:02x?}, {:?})", self.key(), self.newest())
    }
}
