//! The Rust half of `ha_teak.so`: the C border between the shim and `teak-rows`.
//!
//! ```text
//! shim/*.cc  --teak_ffi.h-->  ffi/ (extern "C", all unsafe code of the plugin)  -->  teak-rows  -->  teak-core
//! ```
//!
//! What is here gives arguments their types, guards against panics and converts results; what an operation does is in
//! `teak-rows`, and what it does to trees in `teak-core`.
#![deny(unsafe_op_in_unsafe_fn)]
#![deny(missing_docs)]

pub mod ffi;

/// Of all Rust in the server; what is C++ has the C library's.
#[global_allocator]
static HEAP: teak_core::Heap = teak_core::Heap;
