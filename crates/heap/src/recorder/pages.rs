//! Arrays of zeros straight from the kernel: memory that no allocator knows of.

use std::io;
use std::marker::PhantomData;
use std::ptr::NonNull;

/// What may be all zeros.
///
/// # Safety
/// Zeros in all its bytes are a value of the type, and it needs no drop.
pub unsafe trait Zeros {}

// SAFETY: a number.
unsafe impl Zeros for u8 {}
// SAFETY: a number.
unsafe impl Zeros for u16 {}
// SAFETY: a number.
unsafe impl Zeros for usize {}

/// An array that is there until the process ends. Who uses its places sees to it that one thread at a time does.
pub struct Pages<T> {
    start: NonNull<T>,
    len: usize,
    owns: PhantomData<T>,
}

// SAFETY: it is a place in memory, of whose content the functions say what their callers must see to.
unsafe impl<T: Send> Send for Pages<T> {}
// SAFETY: likewise.
unsafe impl<T: Send> Sync for Pages<T> {}

impl<T: Zeros> Pages<T> {
    /// Address space for so many, without memory until they are touched.
    ///
    /// # Errors
    /// The kernel has none.
    pub fn reserve(len: usize) -> io::Result<Pages<T>> {
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        // SAFETY: a new mapping, at an address that the kernel chooses.
        let start =
            unsafe { libc::mmap(std::ptr::null_mut(), Self::bytes_of(len), protection, flags, -1, 0) };
        match NonNull::new(start.cast::<T>()) {
            Some(first) if start != libc::MAP_FAILED => Ok(Pages { start: first, len, owns: PhantomData }),
            _ => Err(io::Error::last_os_error()),
        }
    }

    const fn bytes_of(len: usize) -> usize {
        len * std::mem::size_of::<T>()
    }

    /// Bytes of address space.
    pub fn bytes(&self) -> usize {
        Self::bytes_of(self.len)
    }

    /// Some of its places.
    ///
    /// # Safety
    /// No other thread looks at these meanwhile, nor has this one another reference to any of them.
    #[allow(clippy::mut_from_ref)]
    pub unsafe fn part(&self, from: usize, len: usize) -> &mut [T] {
        assert!(from <= self.len && len <= self.len - from);
        // SAFETY: within the mapping, which begins as zeros and ends with the process; alone by the caller's promise.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr().add(from), len) }
    }

    /// Some of its places, which nobody changes any more.
    ///
    /// # Safety
    /// They were written before this thread learned of them, and are not written again while the result is used.
    pub unsafe fn written(&self, from: usize, len: usize) -> &[T] {
        assert!(from <= self.len && len <= self.len - from);
        // SAFETY: as above; they are only read.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr().add(from), len) }
    }

    /// Where a place is.
    pub fn place(&self, at: usize) -> *mut T {
        assert!(at < self.len);
        // SAFETY: within the mapping.
        unsafe { self.start.as_ptr().add(at) }
    }

    /// Gives its memory back: all of it is zeros again.
    ///
    /// # Safety
    /// As [`Pages::part`], of all its places.
    pub unsafe fn clear(&self) {
        // SAFETY: an own private mapping reads as zeros after this, and nobody holds a reference into it.
        unsafe { libc::madvise(self.start.as_ptr().cast(), self.bytes(), libc::MADV_DONTNEED) };
    }
}
