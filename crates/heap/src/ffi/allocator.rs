//! The row of TEAK_HEAP_ALLOCATOR.

use std::os::raw::{c_int, c_void};

use super::border::{paused, Bytes, Context, OwnThread};
use crate::allocator::allocator;
use crate::{control, recorder};

/// What an allocator says that does not say it.
pub const TEAK_HEAP_UNKNOWN: u64 = 0xffffffffffffffff;

/// The allocator, and what is recorded of it. Its texts are there during the call that has it.
#[repr(C)]
#[allow(missing_docs)]
pub struct RawAllocator<'a> {
    pub name: Bytes<'a>,
    pub version: Bytes<'a>,
    pub library: Bytes<'a>,
    /// Bytes, or TEAK_HEAP_UNKNOWN; so the next three.
    pub allocated: u64,
    pub active: u64,
    pub resident: u64,
    pub retained: u64,
    /// Whether the allocator calls the hooks now.
    pub is_watched: u8,
    /// Mean bytes between samples; 0: it is not sampled.
    pub period: u64,
    /// Sessions that are followed.
    pub sessions: u64,
    pub recorded: u64,
    pub lost: u64,
    /// Of address space.
    pub recorder_bytes: u64,
    /// Why it cannot be watched; empty: it can.
    pub refusal: Bytes<'a>,
}

/// Gets the allocator.
pub type AllocatorFunction =
    Option<unsafe extern "C" fn(context: *mut c_void, allocator: *const RawAllocator<'_>) -> c_int>;

/// Tells of the allocator. False: it was not taken.
#[no_mangle]
pub extern "C" fn teak_heap_allocator(thread: OwnThread, take: AllocatorFunction, context: Context) -> u8 {
    let Some(take) = take else { return 0 };
    paused(thread, 0, |_| {
        let (allocator, running, recorder) = (allocator(), control::running(), recorder::recorder());
        let (numbers, version, library) = (allocator.numbers(), allocator.version(), allocator.library());
        let refusal = allocator.refusal().unwrap_or_default();
        let row = RawAllocator {
            name: Bytes::of(allocator.name().as_bytes()),
            version: Bytes::of(version.as_bytes()),
            library: Bytes::of(library.as_bytes()),
            allocated: numbers.allocated.unwrap_or(TEAK_HEAP_UNKNOWN),
            active: numbers.active.unwrap_or(TEAK_HEAP_UNKNOWN),
            resident: numbers.resident.unwrap_or(TEAK_HEAP_UNKNOWN),
            retained: numbers.retained.unwrap_or(TEAK_HEAP_UNKNOWN),
            is_watched: u8::from(running.is_watched),
            period: running.period.unwrap_or(0),
            sessions: control::sessions().followed() as u64,
            recorded: recorder.map_or(0, |recorder| recorder.records.count()),
            lost: recorder.map_or(0, |recorder| recorder.records.lost()),
            recorder_bytes: recorder.map_or(0, |recorder| recorder.reserved_bytes() as u64),
            refusal: Bytes::of(refusal.as_bytes()),
        };
        // SAFETY: the shim promised a function that takes the context beside it, and keeps nothing of the row.
        u8::from(unsafe { take(context.0, &row) } == 0)
    })
}
