//! The shapes of arguments: bytes, texts, results, threads.
//!
//! ```text
//! Rust                           C++                      what C++ promises
//! OwnThread                      teak_thread *            the calling thread's own, or NULL
//! Bytes<'_>                      teak_bytes               readable to the end of the call
//! Out<'_, RawBuffer>             teak_buffer *            NULL, or writable to the end of the call
//! Context                        void *                   what the function beside it takes
//! ```

use std::marker::PhantomData;
use std::mem::MaybeUninit;
use std::os::raw::{c_char, c_void};
use std::panic::{catch_unwind, AssertUnwindSafe};

use crate::recorder::thread::{ThreadState, PAUSED};

/// Bytes that somebody else owns.
#[derive(Clone, Copy)]
#[repr(C)]
#[allow(missing_docs)]
pub struct RawBytes {
    /// May be NULL when len is 0.
    pub data: *const u8,
    pub len: usize,
}

/// Bytes that are readable for `'a`: those that C++ hands over, to the end of the call.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub struct Bytes<'a>(RawBytes, PhantomData<&'a [u8]>);

impl<'a> Bytes<'a> {
    /// What a slice looks like from C.
    pub fn of(bytes: &'a [u8]) -> Bytes<'a> {
        Bytes(RawBytes { data: bytes.as_ptr(), len: bytes.len() }, PhantomData)
    }

    /// The bytes.
    pub fn slice(self) -> &'a [u8] {
        if self.0.len == 0 || self.0.data.is_null() {
            return &[];
        }
        // SAFETY: they come from `of` a slice, or from C++, which promises with the type that they are readable to the
        // end of the call. A function of the border cannot name a longer life.
        unsafe { std::slice::from_raw_parts(self.0.data, self.0.len) }
    }

    /// The bytes as text, whatever they are.
    pub fn text(self) -> String {
        String::from_utf8_lossy(self.slice()).into_owned()
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

/// A text that Rust owns until it is given back.
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
    /// Gives a text to the shim.
    pub fn of(text: String) -> RawBuffer {
        // Moving the text into the box does not move what it points to.
        let (data, len) = (text.as_ptr().cast(), text.len());
        RawBuffer { data, len, owner: Some(Box::new(TextHandle { _text: text })) }
    }
}

/// Gives a text back.
#[no_mangle]
pub extern "C" fn teak_buffer_free(thread: OwnThread, owner: Option<Box<TextHandle>>) {
    paused(thread, (), |_| drop(owner));
}

/// What a function of the shim gets that is handed over beside it.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub struct Context(pub *mut c_void);

/// Of a thread's storage.
pub const TEAK_THREAD_WORDS: usize = 12;

/// A thread's own storage, for Rust alone. Zeros are a new thread.
#[repr(C)]
pub struct RawThread {
    words: [u64; TEAK_THREAD_WORDS],
}

const _: () = assert!(size_of::<ThreadState>() <= size_of::<RawThread>());
const _: () = assert!(align_of::<ThreadState>() <= align_of::<RawThread>());

/// The calling thread's own.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub struct OwnThread(*mut RawThread);

impl OwnThread {
    /// What is in it, for the time of a call; `None` of NULL.
    fn state<'a>(self) -> Option<&'a ThreadState> {
        // SAFETY: by the type's promise it is NULL or the calling thread's storage, which is there as long as the
        // thread is. It has room for a state and is aligned, as is asserted above; it began as zeros, which are a
        // state, and nothing else was ever written there, nor by another thread. It is shared: a call of this border
        // allocates, and the hook comes back with the same storage.
        unsafe { self.0.cast::<ThreadState>().as_ref() }
    }
}

/// Runs `body` for a hook; a panic ends what is done for this call.
pub fn hooked(thread: OwnThread, body: impl FnOnce(&ThreadState)) {
    if let Some(state) = thread.state() {
        // There is nobody to tell: Rust's own hook has written it to standard error.
        let _ = catch_unwind(AssertUnwindSafe(|| body(state)));
    }
}

/// Runs `body`, of whose own allocations nothing is recorded; `otherwise` is the answer after a panic.
pub fn paused<T>(thread: OwnThread, otherwise: T, body: impl FnOnce(&ThreadState) -> T) -> T {
    let Some(state) = thread.state() else { return otherwise };
    let _marked = state.mark(PAUSED);
    catch_unwind(AssertUnwindSafe(|| body(state))).unwrap_or(otherwise)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pause_ends_with_its_call_whatever_happens() {
        let mut storage = RawThread { words: [0; TEAK_THREAD_WORDS] };
        let thread = OwnThread(&mut storage);
        assert!(paused(thread, false, |state| state.is_marked(PAUSED)));
        assert_eq!(paused(thread, 7, |_| panic!("planned")), 7);
        assert!(!thread.state().unwrap().is_marked(PAUSED));
    }
}
