//! The memory of a delta: what is put there neither moves nor goes before the delta is dropped.

use crate::sync::atomic::AtomicPtr;
use std::ptr::null_mut;
use std::sync::Arc;

use super::entry::{Node, Version, VersionOp, BLOB, DELETE};
use crate::mvcc::TxnStatus;
use crate::slabs::Buffer;
use crate::tree::block::blob::Blob;

const FIRST_CHUNK_BYTES: usize = 1 << 10;
const MAX_CHUNK_BYTES: usize = 64 << 10;
/// Of everything in the arena.
const ALIGN: usize = 8;

/// What only the writer touches.
pub(super) struct Arena {
    chunks: Vec<Buffer>,
    free: *mut u8,
    free_bytes: usize,
    next_chunk_bytes: usize,
    chunk_bytes: usize,
}

impl Arena {
    pub(super) fn new() -> Arena {
        Arena {
            chunks: Vec::new(),
            free: null_mut(),
            free_bytes: 0,
            next_chunk_bytes: FIRST_CHUNK_BYTES,
            chunk_bytes: 0,
        }
    }

    /// Bytes that it has taken from the allocator.
    pub(super) fn bytes(&self) -> usize {
        self.chunk_bytes + self.chunks.capacity() * std::mem::size_of::<Buffer>()
    }

    /// Room for `bytes`, aligned to [`ALIGN`], alive until the arena is dropped.
    pub(super) fn allocate(&mut self, bytes: usize) -> *mut u8 {
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
        let chunk = Buffer::must(size);
        // What has room takes it: the chunk of a slab is as large as its slot.
        self.free = chunk.start().as_ptr();
        self.free_bytes = size;
        self.chunk_bytes += chunk.capacity();
        self.chunks.push(chunk);
        self.next_chunk_bytes = (self.next_chunk_bytes * 2).min(MAX_CHUNK_BYTES);
    }

    /// A complete version, not published yet.
    pub(super) fn version(
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

    /// A complete node, not published yet, before `next`.
    pub(super) fn node(&mut self, key: &[u8], version: *mut Version, next: *mut Node) -> *mut Node {
        let at = self.allocate(std::mem::size_of::<Node>() + key.len()).cast::<Node>();
        // SAFETY: `at` has room for the node and its key, aligned, and nobody else knows it yet.
        unsafe {
            at.add(1).cast::<u8>().copy_from_nonoverlapping(key.as_ptr(), key.len());
            at.write(Node {
                newest: AtomicPtr::new(version),
                next: AtomicPtr::new(next),
                key_bytes: key.len() as u32,
            });
        }
        at
    }
}
