//! What the operating system gives, and takes back: mappings, and pages of them.

use std::sync::OnceLock;

/// Address space whose pages are zero, and come when they are used. No huge pages: they would bring back what was given
/// back, as soon as one slot of them is in use.
pub(super) fn map(bytes: usize) -> Option<usize> {
    let (protection, kind) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
    // SAFETY: a new mapping, wherever there is room, changes nothing that is there.
    let start =
        unsafe { libc::mmap(std::ptr::null_mut(), bytes, protection, kind | libc::MAP_NORESERVE, -1, 0) };
    if start == libc::MAP_FAILED {
        return None;
    }
    #[cfg(target_os = "linux")]
    // SAFETY: the mapping was made just now, and the advice changes no bytes. That the kernel knows no huge pages is no
    // failure.
    unsafe {
        libc::madvise(start, bytes, libc::MADV_NOHUGEPAGE)
    };
    Some(start as usize)
}

/// A mapping that nobody uses any more goes.
pub(super) fn unmap(start: usize, bytes: usize) {
    // SAFETY: a mapping of `map`, or of `remap`, of so many bytes, whose last owner gave it away. A failure leaves it.
    unsafe { libc::munmap(start as *mut libc::c_void, bytes) };
}

/// A mapping with more bytes or fewer, which may be elsewhere; what stands in it moves with it. None: it is as it was.
pub(super) fn remap(start: usize, had: usize, wanted: usize) -> Option<usize> {
    #[cfg(target_os = "linux")]
    // SAFETY: a mapping of `map`, or of this, of `had` bytes, whose owner has nothing that points into it.
    let moved = unsafe { libc::mremap(start as *mut libc::c_void, had, wanted, libc::MREMAP_MAYMOVE) };
    #[cfg(not(target_os = "linux"))]
    let moved = libc::MAP_FAILED;
    (moved != libc::MAP_FAILED).then_some(moved as usize)
}

/// What the operating system gives and takes back memory by.
pub(super) fn page_bytes() -> usize {
    static PAGE_BYTES: OnceLock<usize> = OnceLock::new();
    // SAFETY: asks for a number.
    *PAGE_BYTES.get_or_init(|| unsafe { libc::sysconf(libc::_SC_PAGESIZE) }.max(1) as usize)
}

/// Gives back the whole pages of a range that nobody uses: they are zero when they are used again.
pub(super) fn lose_pages(start: usize, bytes: usize) {
    let page = page_bytes();
    let (first, end) = (start.next_multiple_of(page), (start + bytes) / page * page);
    if first < end {
        // SAFETY: the range lies within a mapping of `map`, in a slot or a slab that nobody has: what is in it is not
        // read again, and zero is a value of each byte. A failure leaves what was.
        unsafe { libc::madvise(first as *mut libc::c_void, end - first, libc::MADV_DONTNEED) };
    }
}
