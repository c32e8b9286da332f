//! The shapes of arguments: handles, bytes, arrays, results, bounds.
//!
//! The type of an argument says what C++ promises of it, and is what a function of the border uses: there is nothing
//! that each of them would convert. The conversions that need a reason are here, once each.
//!
//! ```text
//! Rust                           C++                      what C++ promises
//! Option<&SessionHandle>         const teak_session *     NULL, or open to the end of the call
//! Option<&mut CursorHandle>      teak_cursor *            likewise, and nobody else uses it meanwhile
//! Option<Box<CursorHandle>>      teak_cursor *            likewise, and it is not used again
//! Option<&RawOptions>            const teak_options *     NULL, or readable to the end of the call
//! Bytes<'_>                      teak_bytes               readable to the end of the call
//! Array<'_, RawEntry<'_>>        teak_array<teak_entry>   readable to the end of the call, and what they point to
//! Out<'_, u64>                   uint64_t *               NULL, or writable to the end of the call
//! Out<'_, Box<CursorHandle>>     teak_cursor **           likewise; what is stored there belongs to C++
//! Room<'_, RawXid>               teak_room<teak_xid>      writable to the end of the call
//! Context                        void *                   what the functions beside it take
//! ```
//!
//! `Option` of a reference or a box has the layout of a pointer in which `None` is NULL; Rust promises that.

use std::cell::UnsafeCell;
use std::marker::PhantomData;
use std::mem::MaybeUninit;
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
}

/// Bytes that are readable for `'a`: those that C++ hands over, to the end of the call.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub struct Bytes<'a>(RawBytes, PhantomData<&'a [u8]>);

impl<'a> Bytes<'a> {
    /// No bytes.
    pub const NONE: Bytes<'static> = Bytes(RawBytes::NONE, PhantomData);

    /// What a slice looks like from C.
    pub fn of(bytes: &'a [u8]) -> Bytes<'a> {
        Bytes(RawBytes::of(bytes), PhantomData)
    }

    /// Without data, even of length 0.
    pub fn is_null(self) -> bool {
        self.0.data.is_null()
    }

    /// The bytes.
    pub fn slice(self) -> &'a [u8] {
        // SAFETY: there are two ways to such bytes: `of` a slice, or out of the hands of C++, which promises with the
        // type that they are readable to the end of the call. A function of the border cannot name a longer life.
        unsafe { self.0.slice() }
    }

    /// The bytes; `None` if there are none.
    pub fn non_empty(self) -> Option<&'a [u8]> {
        Some(self.slice()).filter(|bytes| !bytes.is_empty())
    }

    /// The bytes as a name.
    pub fn name(self) -> Result<&'a str> {
        std::str::from_utf8(self.slice()).map_err(|_| Stop::Misuse("a name that is not UTF-8"))
    }
}

/// Things that are readable for `'a`.
#[repr(C)]
pub struct Array<'a, T> {
    /// May be NULL when len is 0.
    data: *const T,
    len: usize,
    life: PhantomData<&'a [T]>,
}

impl<'a, T> Array<'a, T> {
    /// What a slice looks like from C.
    #[cfg(test)]
    pub fn of(things: &'a [T]) -> Array<'a, T> {
        Array { data: things.as_ptr(), len: things.len(), life: PhantomData }
    }

    /// The things.
    pub fn slice(&self) -> &'a [T] {
        if self.len == 0 || self.data.is_null() {
            return &[];
        }
        // SAFETY: as for `Bytes::slice`: they come from a slice, or from C++ with a promise.
        unsafe { std::slice::from_raw_parts(self.data, self.len) }
    }
}

/// Room for results that is writable for `'a`.
#[repr(C)]
pub struct Room<'a, T> {
    /// May be NULL when len is 0.
    data: *mut T,
    len: usize,
    life: PhantomData<&'a mut [T]>,
}

impl<'a, T> Room<'a, T> {
    /// What a slice looks like from C.
    #[cfg(test)]
    pub fn of(places: &'a mut [T]) -> Room<'a, T> {
        Room { data: places.as_mut_ptr(), len: places.len(), life: PhantomData }
    }

    /// For so many there is room.
    pub fn capacity(&self) -> usize {
        if self.data.is_null() {
            0
        } else {
            self.len
        }
    }

    /// The places, in which there is nothing yet.
    pub fn places(self) -> &'a mut [MaybeUninit<T>] {
        if self.capacity() == 0 {
            return &mut [];
        }
        // SAFETY: as for `Bytes::slice`, and there is one such room for these places: it is neither `Clone` nor used
        // again. What lies there is not looked at.
        unsafe { std::slice::from_raw_parts_mut(self.data.cast(), self.len) }
    }

    /// Stores as many of the things as there is room for; returns how many.
    pub fn fill(self, things: impl IntoIterator<Item = T>) -> usize {
        let stored = self.places().iter_mut().zip(things).map(|(place, thing)| place.write(thing));
        stored.count()
    }
}

/// Where a result goes, if anybody wants it. What lies there is not looked at.
pub type Out<'a, T> = Option<&'a mut MaybeUninit<T>>;

/// Stores a result.
pub fn put<T>(out: Out<'_, T>, value: T) {
    if let Some(out) = out {
        out.write(value);
    }
}

/// What functions of the shim get that are handed over beside it, from whatever thread.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub struct Context(pub *mut c_void);

impl Context {
    /// Calls a function of the shim that was handed over beside the context.
    pub fn tell<A, R>(self, function: unsafe extern "C" fn(*mut c_void, A) -> R, what: A) -> R {
        // SAFETY: the shim promises of each function of this kind that it takes the context beside it, on the thread
        // that called the border unless it says otherwise, and keeps nothing of `what`, which lives until it returns.
        unsafe { function(self.0, what) }
    }
}

// SAFETY: only the shim looks at what it points to, in functions that it promises several threads may call.
unsafe impl Send for Context {}
// SAFETY: likewise; the pointer itself is only copied.
unsafe impl Sync for Context {}

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
pub struct RawBound<'a> {
    pub key: Bytes<'a>,
    pub kind: u32,
}

/// The bound; NULL is none.
pub fn end<'a>(bound: Option<&RawBound<'a>>) -> Result<End<'a>> {
    let Some(bound) = bound else { return Ok(End::Open) };
    match bound.kind {
        TEAK_BOUND_NONE => Ok(End::Open),
        TEAK_BOUND_INCLUDE => Ok(End::Include(bound.key.slice())),
        TEAK_BOUND_EXCLUDE => Ok(End::Exclude(bound.key.slice())),
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
    pub owner: Option<Box<TextHandle>>,
}

/// What its data points into.
pub struct TextHandle {
    /// Goes with it.
    _text: String,
}

impl RawBuffer {
    /// No text.
    pub const NONE: RawBuffer = RawBuffer { data: std::ptr::null(), len: 0, owner: None };

    /// Gives a text to the shim.
    pub fn of(text: String) -> RawBuffer {
        // Moving the text into the box does not move what it points to.
        let (data, len) = (text.as_ptr().cast(), text.len());
        RawBuffer { data, len, owner: Some(Box::new(TextHandle { _text: text })) }
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
