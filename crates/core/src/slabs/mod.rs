//! Bytes of blocks and deltas: a [`Buffer`] lies in memory that nothing else is in, and that goes back.
//!
//! Blocks of tens of kilobytes between small objects leave the C library's heaps full of holes: a block does not fit
//! where small objects were, and a heap shrinks from its end only. A process would keep the highest use that each kind
//! of memory ever had. So buffers from half a KiB to 64 KiB are slots of slabs ([`class`]), by size: what one frees the
//! next of its size takes, warm and without a call to the operating system, and what is more than a 32nd of what
//! is in use goes back to it at once. Smaller ones are the C library's (tables of a few rows). What is larger, buffers
//! and all else, has mappings of its own, if the program has [`Heap`] for its allocator ([`apart`]).
//!
//! A new buffer's bytes are any: zeros, or what stood in another one. Who makes one writes all of it.

mod apart;
mod class;
mod pages;
mod small;

use std::alloc::{alloc_zeroed, dealloc, Layout};
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;

use class::Slot;

/// Of everything in a buffer.
const ALIGN: usize = 16;

/// Where the bytes of a buffer are.
enum Home {
    /// There are none.
    Nowhere,
    Slab(Slot),
    Heap(NonNull<u8>, Layout),
}

/// A run of bytes, of a length that it had from the first on: see [`crate::slabs`].
pub struct Buffer {
    home: Home,
    bytes: usize,
}

// SAFETY: a buffer is the only one that knows its bytes, as a Vec is.
unsafe impl Send for Buffer {}
// SAFETY: as above; `&Buffer` gives `&[u8]` and no more.
unsafe impl Sync for Buffer {}

impl Buffer {
    /// A buffer of `bytes` bytes, whatever stands in them; None if there is no memory.
    pub fn new(bytes: usize) -> Option<Buffer> {
        if bytes == 0 {
            return Some(Buffer { home: Home::Nowhere, bytes });
        }
        if let Some(class) = class::of(bytes) {
            if let Some(slot) = class::take(class) {
                return Some(Buffer { home: Home::Slab(slot), bytes });
            }
        }
        let layout = Layout::from_size_align(bytes, ALIGN).ok()?;
        // SAFETY: the size is not zero.
        let start = NonNull::new(unsafe { alloc_zeroed(layout) })?;
        Some(Buffer { home: Home::Heap(start, layout), bytes })
    }

    /// The same; without memory the process ends, as with a Vec.
    pub fn must(bytes: usize) -> Buffer {
        Buffer::new(bytes).unwrap_or_else(|| {
            std::alloc::handle_alloc_error(
                Layout::from_size_align(bytes, ALIGN).unwrap_or(Layout::new::<u8>()),
            )
        })
    }

    /// Bytes of memory that it holds.
    pub fn capacity(&self) -> usize {
        match &self.home {
            Home::Nowhere => 0,
            Home::Slab(slot) => slot.bytes(),
            Home::Heap(_, layout) => layout.size(),
        }
    }

    /// Has the first `bytes` only, if there are more.
    pub fn truncate(&mut self, bytes: usize) {
        self.bytes = self.bytes.min(bytes);
    }

    /// Where the bytes begin: aligned to 16 bytes. They do not move before it is dropped.
    pub fn start(&self) -> NonNull<u8> {
        match &self.home {
            Home::Nowhere => NonNull::dangling(),
            Home::Slab(slot) => slot.start(),
            Home::Heap(start, _) => *start,
        }
    }
}

impl Deref for Buffer {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        // SAFETY: at the start are at least `bytes` bytes that nobody else knows; they were zero when they came from
        // the operating system or the C library, and are since what was written, so they have values.
        unsafe { std::slice::from_raw_parts(self.start().as_ptr(), self.bytes) }
    }
}

impl DerefMut for Buffer {
    #[inline]
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: as in `deref`, borrowed for writing.
        unsafe { std::slice::from_raw_parts_mut(self.start().as_ptr(), self.bytes) }
    }
}

impl AsRef<[u8]> for Buffer {
    fn as_ref(&self) -> &[u8] {
        self
    }
}

impl<B: AsRef<[u8]> + ?Sized> PartialEq<B> for Buffer {
    fn eq(&self, other: &B) -> bool {
        **self == *other.as_ref()
    }
}

impl From<&[u8]> for Buffer {
    fn from(bytes: &[u8]) -> Buffer {
        let mut buffer = Buffer::must(bytes.len());
        buffer.copy_from_slice(bytes);
        buffer
    }
}

impl From<Vec<u8>> for Buffer {
    fn from(bytes: Vec<u8>) -> Buffer {
        Buffer::from(&bytes[..])
    }
}

impl std::fmt::Debug for Buffer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} bytes", self.bytes)
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        match std::mem::replace(&mut self.home, Home::Nowhere) {
            Home::Nowhere => {}
            Home::Slab(slot) => class::give_back(slot),
            // SAFETY: allocated in `new` with this layout, freed once.
            Home::Heap(start, layout) => unsafe { dealloc(start.as_ptr(), layout) },
        }
    }
}

pub use apart::Heap;
pub use class::{kept_bytes, used_bytes};

/// Bytes that the engines of this process have taken, if the program has [`Heap`] for its allocator; without what is
/// kept for the next, and without `large` bytes of allocations beyond 64 KiB, if there are so many. Takes the latch of
/// each size for a moment.
pub fn taken_bytes(large: usize) -> usize {
    used_bytes() + Heap::bytes().saturating_sub(large) + Heap::small_bytes()
}

/// What is free may keep `room` bytes, of a cache of `cache` bytes; if buffers have more, some lose their pages, and so
/// do larger allocations with the next that is freed. Waits for nobody. Of several engines in a process the last one
/// counts.
pub fn settle(room: usize, cache: usize) {
    apart::settle(cache);
    class::settle(room);
}

/// Has the C library give back the whole pages inside what is free of its heaps, where small objects are. It holds each
/// heap's lock while it walks it: for moments when many of them went, as after a checkpoint.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
pub fn trim_heaps() {
    // SAFETY: `malloc_trim` takes its own locks and may be called from any thread at any time.
    unsafe { libc::malloc_trim(0) };
}

/// Bytes that are free in the C library's heaps, whether these pages are in memory or not. Holds each heap's lock while
/// it walks what is free.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
pub fn free_in_heaps() -> usize {
    // SAFETY: `mallinfo2` takes its own locks and may be called from any thread at any time.
    unsafe { libc::mallinfo2() }.fordblks
}

/// Elsewhere nobody knows.
#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
pub fn free_in_heaps() -> usize {
    0
}

/// Elsewhere what is freed stays with the process, for the next that is allocated.
#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
pub fn trim_heaps() {}

#[cfg(test)]
mod tests;
