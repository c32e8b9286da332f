//! `teak_heap.so`: where the memory of a MariaDB server went, asked in SQL. It needs no table of Teak, nor `ha_teak`.
//!
//! ```text
//! the allocator ──hooks──> shim/thread_state.cc ──> recorder/ (live objects, stacks, statements; no malloc)
//! SQL ──> shim/functions.cc, *_table.cc ──> ffi/ ──> control ──> recorder/, allocator/
//!                                                      └──> sites ──> symbols, dump/
//! ```
//!
//! | module | is responsible for |
//! |---|---|
//! | `recorder/` | what hooks do: stacks of allocations that are wanted, until they are freed |
//! | `sessions` | whose statements are followed, and marks in them |
//! | `digest` | statements without their values |
#![deny(unsafe_op_in_unsafe_fn)]
#![deny(missing_docs)]

pub mod digest;
pub mod recorder;
pub mod sessions;
