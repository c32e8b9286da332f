//! The Rust half of `ha_teak.so`: everything between the C++ shim and the core.
//!
//! ```text
//! shim/*.cc  --teak_ffi.h-->  ffi/ (extern "C", the only unsafe code)  -->  this crate's safe modules  -->  teak-core
//! ```
//!
//! | module | is responsible for |
//! |---|---|
//! | `ffi/` | the functions of `shim/teak_ffi.h`: conversions and the panic guard, nothing else |
//! | [`core_engine`] | which engine of the core is used: one line |
//! | [`engine`] | the handle of an engine, its sessions, what happens on a panic |
//! | [`callbacks`] | what the server does for us: error log, KILL, lock wait reports |
//! | [`session`] | a connection's transaction: statements, savepoints, two-phase commit, lock waits |
//! | [`bounds`], [`scan`], [`locking`] | cursors: where they start and end, how they move; locking reads and the ranges they lock |
//! | [`row`], [`unique`] | row operations over all trees of a table; uniqueness |
//! | [`counter`] | AUTO_INCREMENT |
//! | [`report`] | status variables and SHOW ENGINE TEAK STATUS |
//! | [`outcome`] | why an operation did not succeed, as the shim sees it |
//!
//! Keys and values are plain bytes here; what they mean is the shim's business, except that the value of an entry in a
//! unique index begins with the primary key (see `teak_ffi.h`).
#![deny(unsafe_op_in_unsafe_fn)]
#![warn(missing_docs)]

pub mod bounds;
pub mod callbacks;
pub mod core_engine;
pub mod counter;
pub mod engine;
pub mod ffi;
pub mod locking;
pub mod outcome;
pub mod report;
pub mod row;
pub mod scan;
pub mod session;
pub mod unique;
pub mod xid;

#[cfg(test)]
mod tests;
