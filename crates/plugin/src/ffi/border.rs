//! Bytes, bounds and handles.
//!
//! And the few conversions in which raw pointers become references.

use std::cell::UnsafeCell;
use std::os::raw::{c_char, c_void};
use std::sync::Arc;

use super::window::{Pace, RawWindow, Windows};
use teak_core::server::Table;
use teak_rows::bounds::End;
use teak_rows::engine::{EngineHandle, SessionTag};
use teak_rows::outcome::{Result, Stop};
use teak_rows::scan::TableCursor;
use teak_rows::session::Session;

/// Bytes that somebody else owns.
#[derive(Clone, Copy)]
#[repr(C)]
#[allow(missing_docs)]
pub struct RawBytes {
    /// May be NULL when len is 0.
    pub data: *const u8,
    pub len: usize,
}

impl RawBytes {
    /// What a slice looks like from C.
    pub fn of(bytes: &[u8]) -> RawBytes {
        RawBytes { data: bytes.as_ptr(), len: bytes.len() }
    }

    /// No bytes.
    pub const NONE: RawBytes = RawBytes { data: std::ptr::null(), len: 0 };

    /// The bytes.
    ///
    /// # Safety
    /// `data` is readable for `len` bytes as long as the result is used, or `len` is 0.
    pub unsafe fn slice<'a>(self) -> &'a [u8] {
        if self.len == 0 || self.data.is_null() {
            return &[];
        }
        // SAFETY: by the contract of this function.
        unsafe { std::slice::from_raw_parts(self.data, self.len) }
    }

    /// The bytes as a name.
    ///
    /// # Safety
    /// As [`RawBytes::slice`].
    pub unsafe fn name<'a>(self) -> Result<&'a str> {
        // SAFETY: by the contract of this function.
        std::str::from_utf8(unsafe { self.slice() }).map_err(|_| Stop::Misuse("a name that is not UTF-8"))
    }
}

/// No bound.
pub const TEAK_BOUND_NONE: u32 = 0;
/// Keys that begin with the bytes are inside.
pub const TEAK_BOUND_INCLUDE: u32 = 1;
/// Keys that begin with the bytes are outside.
pub const TEAK_BOUND_EXCLUDE: u32 = 2;

/// A bound of a range. Bounds speak of prefixes: a key "is at" the bound when it begins with its bytes.
#[derive(Clone, Copy)]
#[repr(C)]
#[allow(missing_docs)]
pub struct RawBound {
    pub key: RawBytes,
    pub kind: u32,
}

/// The bound at `bound`; NULL is none.
///
/// # Safety
/// `bound` is NULL or readable, its key as for [`RawBytes::slice`].
pub unsafe fn end<'a>(bound: *const RawBound) -> Result<End<'a>> {
    // SAFETY: by the contract of this function.
    let Some(bound) = (unsafe { bound.as_ref() }) else { return Ok(End::Open) };
    // SAFETY: likewise.
    let key = unsafe { bound.key.slice() };
    match bound.kind {
        TEAK_BOUND_NONE => Ok(End::Open),
        TEAK_BOUND_INCLUDE => Ok(End::Include(key)),
        TEAK_BOUND_EXCLUDE => Ok(End::Exclude(key)),
        _ => Err(Stop::Misuse("kind of bound")),
    }
}

/// What a cursor stands on: valid until the next call on that cursor; also across calls on other cursors and row
/// operations.
#[repr(C)]
#[allow(missing_docs)]
pub struct RawEntryView {
    pub key: RawBytes,
    pub value: RawBytes,
}

impl RawEntryView {
    /// What the cursor stands on.
    pub fn of(cursor: &TableCursor) -> Result<RawEntryView> {
        Ok(RawEntryView { key: RawBytes::of(cursor.key()), value: RawBytes::of(cursor.value()?) })
    }
}

/// A text or list that Rust owns until it is given back.
#[repr(C)]
#[allow(missing_docs)]
pub struct RawBuffer {
    pub data: *const c_char,
    pub len: usize,
    pub owner: *mut c_void,
}

impl RawBuffer {
    /// Gives a text to the shim.
    pub fn of(text: String) -> RawBuffer {
        let owner = Box::new(text);
        let (data, len) = (owner.as_ptr().cast(), owner.len());
        RawBuffer { data, len, owner: Box::into_raw(owner).cast() }
    }
}

/// An open table.
pub struct TableHandle {
    /// Where it lives.
    pub engine: Arc<EngineHandle>,
    /// The table.
    pub table: Arc<Table>,
}

/// A connection. Any thread may use `engine` and `tag`; the rest belongs to the thread that works for the session.
pub struct SessionHandle {
    /// Where it lives.
    pub engine: Arc<EngineHandle>,
    /// What `teak_interrupt` needs.
    pub tag: Arc<SessionTag>,
    /// What its cursors let the shim walk over. Belongs to the thread that works for the session.
    pub windows: Windows,
    /// Everything else.
    pub state: UnsafeCell<Session>,
}

/// A cursor over one tree of a table.
pub struct CursorHandle {
    /// Where it lives.
    pub engine: Arc<EngineHandle>,
    /// What the shim may walk over, and how far it is. Current only when [`CursorHandle::settle_for`] was called.
    pub window: RawWindow,
    /// The present scan's moves one by one.
    pub pace: Pace,
    /// The cursor.
    pub cursor: TableCursor,
}

/// Stores a result.
///
/// # Safety
/// `out` is writable or NULL.
pub unsafe fn put<T>(out: *mut T, value: T) {
    if !out.is_null() {
        // SAFETY: by the contract of this function; `T` has no destructor worth running on what lies there.
        unsafe { out.write(value) }
    }
}

/// `n` things at `data`.
///
/// # Safety
/// `data` is readable for `n` things as long as the result is used, or `n` is 0.
pub unsafe fn array<'a, T>(data: *const T, n: usize) -> &'a [T] {
    if n == 0 || data.is_null() {
        return &[];
    }
    // SAFETY: by the contract of this function.
    unsafe { std::slice::from_raw_parts(data, n) }
}
