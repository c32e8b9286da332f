//! The border between the C++ half of teak_heap.so (shim/) and its Rust half.
//!
//! It is written here, once: scripts/border.py makes the header `teak_ffi.h` of it when the shim is built, with these
//! comments. C++ has what the server's interfaces force, and the storage of each thread, of which it can be said in C++
//! alone that reaching it does not allocate. Rust has the rest.
//!
//! - A `teak_thread` is the calling thread's, and begins as zeros.
//! - Functions that are called by hooks (`hooks.rs`) neither allocate nor wait for anything but a few instructions of
//!   another thread; the others may do both, and what they allocate is not recorded.
//! - No function unwinds. Of a panic, standard error (the error log) has the text.
//! - `teak_bytes` are readable through the call. What is in a `teak_buffer` is there until `teak_buffer_free`.

pub mod allocator;
pub mod border;
pub mod functions;
pub mod hooks;
pub mod sites;
pub mod statements;
