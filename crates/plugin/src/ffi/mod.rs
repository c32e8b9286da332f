//! The functions of `shim/teak_ffi.h`, whose comments are their documentation. Each converts its arguments, runs under
//! the panic guard, and converts the result; what it does is in [`teak_rows`].
//!
//! All unsafe code of the plugin is here. It rests on what the header asks of the shim:
//! handles come from the matching `_new` or `_open` and are used until the matching `_free` or `_close`, a session or
//! cursor by one thread at a time; pointers with lengths are readable through the call; pointers for results are
//! writable or, where the header says so, NULL.
#![allow(clippy::missing_safety_doc)] // the paragraph above is the contract of every function here

pub mod alter;
pub mod border;
pub mod build;
pub mod callbacks;
pub mod check;
pub mod cursor;
pub mod engine;
pub mod feed;
pub mod guard;
pub mod row;
pub mod session;
pub mod status;
pub mod table;
pub mod trees;
mod window;

#[cfg(test)]
mod tests;
