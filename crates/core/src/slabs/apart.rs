//! Allocations beyond 64 KiB: mappings of their own.
//!
//! The redo of a large statement, what a dictionary is trained on, what is sorted: vectors that double as they grow,
//! and go. Between small objects they leave holes of their size, and the C library, which maps allocations of 128 KiB
//! at first, takes the size of each that is freed for what its heaps should serve from then on, up to 32 MiB; it never
//! gives back the upper end of any heap but the first before that is twice as much. So tens of megabytes stay that are
//! nobody's. A mapping goes back whole, and grows without a copy.
//!
//! Some stay for the next of their size, since a new page costs more than what is done to most of its bytes: values of
//! a megabyte that are read one after the other take the same, and so do the log's groups, of which 8 MiB may be
//! queued. These are a 32nd of the cache, up to 12 MiB, and a sixteenth of what is in use.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};

use super::pages::{map, page_bytes, remap, unmap};
use super::small::{self, taken_for};

/// Allocations with more bytes than this are mappings.
const LEAST_BYTES: usize = 64 << 10;
/// Sizes of mappings: so many between a power of two and the next. Pages that nobody writes to cost nothing.
const STEPS: usize = 4;
/// Mappings for the next of their size: their number, their bytes (at most, and of a cache of so many times as much),
/// and how much of what is in use they may be beside.
const KEPT: usize = 64;
const KEPT_BYTES: usize = 12 << 20;
const CACHE_PER_KEPT: usize = 32;
const USED_PER_KEPT: usize = 16;
/// More mappings than this are too many for the kernel, of whose 65,530 others need some.
const MOST_MAPPINGS: usize = 16 << 10;
/// What the C library serves in place of a mapping begins so many bytes behind a multiple of this, and never at a page.
const ODD: usize = 16;
const ODD_ALIGN: usize = 64;

/// The allocator of a program that has an engine: the C library's, but for allocations of more than 64 KiB.
///
/// ```
/// #[global_allocator]
/// static HEAP: teak_core::Heap = teak_core::Heap;
/// # let large = vec![1u8; 1 << 20];
/// # assert!(teak_core::Heap::bytes() >= large.len() || cfg!(not(target_os = "linux")));
/// ```
pub struct Heap;

// Relaxed: numbers, as all of this file but `SPARE`.
static BYTES: AtomicUsize = AtomicUsize::new(0);
static MAPPINGS: AtomicUsize = AtomicUsize::new(0);
static SPARE_BYTES: AtomicUsize = AtomicUsize::new(0);
static ROOM: AtomicUsize = AtomicUsize::new(KEPT_BYTES);
/// Mappings that nobody has: where they begin, and in the bits below a page which size they have. No mutex: one that
/// waits may allocate.
static SPARE: [AtomicUsize; KEPT] = [const { AtomicUsize::new(0) }; KEPT];

impl Heap {
    /// Bytes of all allocations beyond 64 KiB, as mapped: pages at their ends that nobody wrote to are included.
    pub fn bytes() -> usize {
        BYTES.load(Ordering::Relaxed)
    }

    /// Bytes of mappings that are kept for others.
    pub fn spare_bytes() -> usize {
        SPARE_BYTES.load(Ordering::Relaxed)
    }

    /// Bytes of all other allocations, with what the C library needs for them.
    pub fn small_bytes() -> usize {
        small::bytes()
    }
}

/// The number of the smallest size that so many bytes fit into.
fn size_of(bytes: usize) -> usize {
    let power = (bytes - 1).ilog2() as usize;
    // From the power of two up, in steps of a part of it.
    power * STEPS + ((bytes - 1) >> (power - STEPS.ilog2() as usize)) % STEPS
}

fn bytes_of(size: usize) -> usize {
    let power = 1usize << (size / STEPS);
    power + (size % STEPS + 1) * (power / STEPS)
}

/// What is mapped for it; None: it is the C library's.
fn mapped(layout: &Layout) -> Option<usize> {
    let is_large = layout.size() > LEAST_BYTES && layout.align() <= ODD;
    (is_large && (LEAST_BYTES / STEPS).is_multiple_of(page_bytes())).then(|| size_of(layout.size()))
}

/// One that is kept, of a size that is wanted, with whatever stands in it: where it begins, and its size.
fn take_spare(is_wanted: impl Fn(usize) -> bool) -> Option<(usize, usize)> {
    let spare = SPARE.iter().find_map(|spare| {
        let found = spare.load(Ordering::Relaxed);
        let fits = found != 0 && is_wanted(found % page_bytes());
        // Acquire: pairs with the Release of who had it.
        (fits && spare.compare_exchange(found, 0, Ordering::Acquire, Ordering::Relaxed).is_ok())
            .then_some(found)
    })?;
    let size = spare % page_bytes();
    SPARE_BYTES.fetch_sub(bytes_of(size), Ordering::Relaxed);
    Some((spare - size, size))
}

/// Whether one of that size is kept, at the moment.
fn has_spare(size: usize) -> bool {
    // Relaxed: a hint.
    let is_it = |spare: usize| spare != 0 && spare % page_bytes() == size;
    SPARE.iter().any(|spare| is_it(spare.load(Ordering::Relaxed)))
}

/// What mappings may be kept, in bytes.
fn most_spare() -> usize {
    ROOM.load(Ordering::Relaxed) + BYTES.load(Ordering::Relaxed) / USED_PER_KEPT
}

/// The cache has so many bytes.
pub(super) fn settle(cache: usize) {
    ROOM.store(KEPT_BYTES.min(cache / CACHE_PER_KEPT), Ordering::Relaxed);
}

/// Keeps a mapping for others, if it may stay.
fn keep_spare(start: usize, size: usize) -> bool {
    let bytes = bytes_of(size);
    if SPARE_BYTES.fetch_add(bytes, Ordering::Relaxed) + bytes <= most_spare() {
        // Release: see `take_spare`.
        let place = |spare: &AtomicUsize| {
            spare.compare_exchange(0, start + size, Ordering::Release, Ordering::Relaxed).is_ok()
        };
        if SPARE.iter().any(|spare| spare.load(Ordering::Relaxed) == 0 && place(spare)) {
            return true;
        }
    }
    SPARE_BYTES.fetch_sub(bytes, Ordering::Relaxed);
    false
}

/// A mapping; None: the C library has to serve it.
fn take(size: usize, zeroed: bool) -> Option<usize> {
    if MAPPINGS.load(Ordering::Relaxed) >= MOST_MAPPINGS {
        return None;
    }
    let spare = if zeroed { None } else { take_spare(|kept| kept == size) };
    let start = match spare {
        Some((start, _)) => start,
        None => map(bytes_of(size))?,
    };
    // Relaxed: numbers.
    BYTES.fetch_add(bytes_of(size), Ordering::Relaxed);
    MAPPINGS.fetch_add(1, Ordering::Relaxed);
    Some(start)
}

/// A mapping that [`take`] gave is nobody's any more.
fn give_back(start: usize, size: usize) {
    BYTES.fetch_sub(bytes_of(size), Ordering::Relaxed);
    MAPPINGS.fetch_sub(1, Ordering::Relaxed);
    if !keep_spare(start, size) {
        unmap(start, bytes_of(size));
    }
    while SPARE_BYTES.load(Ordering::Relaxed) > most_spare() {
        let Some((start, size)) = take_spare(|_| true) else { break };
        unmap(start, bytes_of(size));
    }
}

/// Whether what begins there is a mapping: what [`odd`] allocates never begins at a page.
fn is_mapping(start: *mut u8) -> bool {
    (start as usize).is_multiple_of(page_bytes())
}

/// The layout of what is allocated in place of a mapping: [`ODD`] bytes before it are nobody's.
fn odd(layout: &Layout) -> Option<Layout> {
    Layout::from_size_align(layout.size().checked_add(ODD)?, ODD_ALIGN).ok()
}

fn allocate(layout: Layout, zeroed: bool) -> *mut u8 {
    let Some(size) = mapped(&layout) else {
        // SAFETY: the size is not zero: whoever calls `alloc`, `alloc_zeroed` or `realloc` has promised that of it, by
        // their contract.
        return unsafe { allocate_small(layout, zeroed) };
    };
    if let Some(start) = take(size, zeroed) {
        return start as *mut u8;
    }
    let Some(odd) = odd(&layout) else { return std::ptr::null_mut() };
    // SAFETY: the size of `odd` is at least `ODD`, and so not zero; the allocation has that size, so that what begins
    // `ODD` bytes behind its start is within it, with room for all of `layout`.
    unsafe {
        let start = allocate_small(odd, zeroed);
        if start.is_null() {
            start
        } else {
            start.add(ODD)
        }
    }
}

/// # Safety
/// The size of `layout` is not zero.
unsafe fn allocate_small(layout: Layout, zeroed: bool) -> *mut u8 {
    // SAFETY: the size is not zero, which the caller has seen to.
    let start = unsafe {
        if zeroed {
            System.alloc_zeroed(layout)
        } else {
            System.alloc(layout)
        }
    };
    if !start.is_null() {
        small::count(taken_for(layout.size()));
    }
    start
}

/// # Safety
/// [`allocate_small`] gave `start` for this very layout, or `System.realloc` moved it there; nobody uses it any more.
unsafe fn free_small(start: *mut u8, layout: Layout) {
    small::count(-taken_for(layout.size()));
    // SAFETY: `System` has it under this layout, and nobody uses it any more: the caller has seen to both.
    unsafe { System.dealloc(start, layout) }
}

// SAFETY: what is small, or aligned to more than `ODD`, is the C library's allocator's, in all four calls, as the
// layout says. What is large is a mapping of at least its size, which begins at a page and is one owner's between
// `take` and `give_back`; or it was allocated with the layout of `odd`, which is told from its address. Nothing here
// panics or waits, and nothing allocates, but for a thread's first count, which then counts as another's.
unsafe impl GlobalAlloc for Heap {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        allocate(layout, false)
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        allocate(layout, true)
    }

    unsafe fn dealloc(&self, start: *mut u8, layout: Layout) {
        match mapped(&layout) {
            // SAFETY: nothing of this size and alignment is mapped: `allocate` had it from `allocate_small`, or
            // `realloc` from `System.realloc`, with this layout. The caller gives it away.
            None => unsafe { free_small(start, layout) },
            Some(size) if is_mapping(start) => give_back(start as usize, size),
            Some(_) => {
                if let Some(odd) = odd(&layout) {
                    // SAFETY: it would be mapped and begins at no page, so `allocate` had it from `allocate_small` with
                    // the layout `odd`, and has given its `start + ODD` away. The caller gives it back.
                    unsafe { free_small(start.sub(ODD), odd) }
                }
            }
        }
    }

    unsafe fn realloc(&self, start: *mut u8, layout: Layout, bytes: usize) -> *mut u8 {
        let Ok(wanted) = Layout::from_size_align(bytes, layout.align()) else { return std::ptr::null_mut() };
        match (mapped(&layout), mapped(&wanted)) {
            (None, None) => {
                // SAFETY: as neither size is mapped, `System` has it under `layout`, and goes on to have it. `bytes` is
                // not zero, by the contract of `realloc`, and does not overflow when it is rounded up to the alignment,
                // or `from_size_align` had refused it.
                let moved = unsafe { System.realloc(start, layout, bytes) };
                if !moved.is_null() {
                    small::count(taken_for(bytes) - taken_for(layout.size()));
                }
                return moved;
            }
            (Some(had), Some(wanted)) if is_mapping(start) => {
                if had == wanted {
                    return start;
                }
                // A copy into pages that are there costs less than as many new ones.
                let moved = match wanted > had && has_spare(wanted) {
                    true => None,
                    false => remap(start as usize, bytes_of(had), bytes_of(wanted)),
                };
                if let Some(moved) = moved {
                    BYTES.fetch_add(bytes_of(wanted), Ordering::Relaxed);
                    BYTES.fetch_sub(bytes_of(had), Ordering::Relaxed);
                    return moved as *mut u8;
                }
            }
            _ => {}
        }
        let moved = allocate(wanted, false);
        if !moved.is_null() {
            // SAFETY: `start` has `layout.size()` bytes, `moved` has `bytes`; they are two allocations, as `start` is
            // freed after the copy. It is the caller's, who has given it away, with its layout.
            unsafe {
                std::ptr::copy_nonoverlapping(start, moved, layout.size().min(bytes));
                self.dealloc(start, layout);
            }
        }
        moved
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn every_size_has_the_smallest_mapping_that_it_fits_into() {
        for bytes in (LEAST_BYTES + 1..1 << 20).step_by(37).chain([usize::MAX >> 3, 1 << 40, (1 << 40) + 1]) {
            let size = size_of(bytes);
            assert!(bytes_of(size) >= bytes && bytes_of(size - 1) < bytes, "{bytes}");
            assert!(
                bytes_of(size) - bytes <= bytes / STEPS && bytes_of(size).is_multiple_of(LEAST_BYTES / STEPS)
            );
            assert!(size < 4096, "the number of a size stands below a page");
        }
    }

    proptest! {
        /// Allocations of all sizes, as vectors do them, beside what stands in them.
        #[test]
        fn what_is_allocated_is_its_owners(
            steps in proptest::collection::vec((0..6usize, 0..3u8, 1..400usize, any::<bool>()), 1..60)
        ) {
            const NONE: (*mut u8, usize, u8, usize) = (std::ptr::null_mut(), 0, 0, 0);
            let mut held = [NONE; 6];
            let layout = |bytes, align| Layout::from_size_align(bytes, align).unwrap();
            for (number, (which, what, kilobytes, wide)) in steps.into_iter().enumerate() {
                let (start, bytes, mark, align) = held[which];
                let wanted = kilobytes << 10;
                // SAFETY: each is freed or moved with the layout that it has, and looked at within its bytes.
                unsafe {
                    if start.is_null() {
                        let align = if wide { 128 } else { 8 };
                        let zeroed = what == 0;
                        let new = match zeroed {
                            true => Heap.alloc_zeroed(layout(wanted, align)),
                            false => Heap.alloc(layout(wanted, align)),
                        };
                        prop_assert!((new as usize).is_multiple_of(align) && !new.is_null());
                        let slice = std::slice::from_raw_parts_mut(new, wanted);
                        prop_assert!(!zeroed || slice.iter().all(|byte| *byte == 0));
                        slice.fill(number as u8);
                        held[which] = (new, wanted, number as u8, align);
                        continue;
                    }
                    prop_assert!(std::slice::from_raw_parts(start, bytes).iter().all(|byte| *byte == mark));
                    if what == 0 {
                        Heap.dealloc(start, layout(bytes, align));
                        held[which] = NONE;
                    } else {
                        let moved = Heap.realloc(start, layout(bytes, align), wanted);
                        let slice = std::slice::from_raw_parts_mut(moved, wanted);
                        prop_assert!(slice[..bytes.min(wanted)].iter().all(|byte| *byte == mark));
                        slice.fill(mark);
                        held[which] = (moved, wanted, mark, align);
                    }
                }
            }
            for (start, bytes, _, align) in held.into_iter().filter(|held| !held.0.is_null()) {
                // SAFETY: it is allocated with this layout, and looked at by nobody any more.
                unsafe { Heap.dealloc(start, layout(bytes, align)) };
            }
        }
    }

    #[test]
    fn without_mappings_the_c_library_serves() {
        let layout = Layout::from_size_align(100 << 10, 16).unwrap();
        MAPPINGS.fetch_add(MOST_MAPPINGS, Ordering::Relaxed);
        // SAFETY: freed and moved with the layouts they have.
        unsafe {
            let (one, zeroed) = (Heap.alloc(layout), Heap.alloc_zeroed(layout));
            MAPPINGS.fetch_sub(MOST_MAPPINGS, Ordering::Relaxed);
            assert!(!is_mapping(one) && !is_mapping(zeroed) && *zeroed == 0);
            one.write_bytes(7, layout.size());
            let moved = Heap.realloc(one, layout, 200 << 10);
            assert!(is_mapping(moved) && *moved.add(layout.size() - 1) == 7);
            Heap.dealloc(moved, Layout::from_size_align(200 << 10, 16).unwrap());
            Heap.dealloc(zeroed, layout);
        }
    }

    #[test]
    fn some_mappings_stay_for_the_next_and_no_more() {
        let sizes: Vec<usize> = (0..40).map(|i| (1 << 20) + i).collect();
        let many: Vec<Vec<u8>> = sizes.iter().map(|&bytes| Vec::with_capacity(bytes)).collect();
        drop(many);
        // Other tests allocate, too, and are about to give back what is too much.
        assert!((0..100_000).any(|_| Heap::spare_bytes() <= most_spare()));
    }
}
