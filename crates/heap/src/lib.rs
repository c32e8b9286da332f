//! `teak_heap.so`: where the memory of a MariaDB server went, asked in SQL. It needs no table of Teak, nor `ha_teak`.
//!
//! ```text
//! the allocator ──hooks──> shim/thread_state.cc ──> recorder/ (live objects, stacks, statements; no malloc)
//! SQL ──> shim/functions.cc, tables.cc ──> ffi/ ──> control ──> recorder/, allocator/
//!                                                      └──> sites ──> symbols, dump/
//! ```
//!
//! | module | is responsible for |
//! |---|---|
//! | `recorder/` | what hooks do: stacks of allocations that are wanted, until they are freed |
//! | `allocator/` | which malloc the server has, its numbers, how it is watched |
//! | `sessions` | whose statements are followed, and marks in them |
//! | `control` | what runs: sampling, followed sessions, and with them the hooks |
//! | `digest` | statements without their values |
//! | `sites` | live objects by call site, session and statement |
//! | `keepers` | what a server keeps on purpose |
//! | `symbols` | names, files and lines of addresses |
//! | `dump/` | profiles as files, for `jeprof`, `google-pprof` and `pprof` |
//! | `ffi/` | the border to C++, and all that is unsafe of it |
#![deny(unsafe_op_in_unsafe_fn)]
#![deny(missing_docs)]

pub mod allocator;
pub mod control;
pub mod digest;
pub mod dump;
pub mod ffi;
pub mod keepers;
pub mod recorder;
pub mod sessions;
pub mod sites;
pub mod symbols;
