//! The border between the C++ half of ha_teak.so (shim/) and its Rust half.
//!
//! It is written here, once: scripts/border.py makes the header `teak_ffi.h` of it when the shim is built, with these
//! comments. The types of its arguments say what C++ promises of them ([`border`]): a function is safe code, which runs
//! under the panic guard; what it does is in [`teak_rows`].
//!
//! Who does what. C++ has keys and rows: memcomparable encoding by collation, row codec, index entries, the server's
//! conditions and record buffers. Rust has transactions, locks, uniqueness, row operations over all trees of a table,
//! scans, errors, panics, statistics. It sees keys and values as plain bytes.
//!
//! What holds for all functions, and is what the unsafe code relies on:
//!
//! - Handles come from the matching `_new` or `_open` and are used until the matching `_free` or `_close`: sessions,
//!   cursors, builds and checks by one thread at a time, everything else, and `teak_interrupt`, by any thread.
//! - Every function that returns `teak_status` leaves a text behind when it is not `TEAK_OK`, `TEAK_NOT_FOUND` or
//!   `TEAK_END`: `teak_last_error` on the same thread fetches it.
//! - No function unwinds. A panic is logged with its backtrace, turns the engine read-only and comes back as
//!   `TEAK_INTERNAL`.
//! - No two arguments are the same handle, or point into each other, but for those that are only read.
//! - `teak_bytes` and `teak_array` are readable through the call, and only read during it. Byte strings that come out
//!   point into memory of the handle they came from and stay valid until the next call on that handle, unless it is
//!   said otherwise.
//! - Pointers for results are writable, or NULL if nobody wants it. In a `teak_room` there is room for `len` of them.
//! - Names (tables) are bytes of UTF-8 without a terminating zero, e.g. "db/table". Booleans are `uint8_t` 0 or 1.
//!
//! Trees of a table. Tree 0 holds the rows: key = primary key (memcomparable) or hidden row id (8 bytes, big-endian),
//! value = packed row. The others hold one index each:
//!
//! ```text
//! non-unique   key = index columns, then the primary key     value = whatever the shim needs to restore columns
//! unique       key = index columns alone                     value = primary key length (2 bytes, little-endian),
//!                                                                    primary key, then what the shim needs
//! unique, but a column is NULL: stored as a non-unique entry (columns, then primary key; same value format as a
//!              unique entry), TEAK_ENTRY_UNIQUE not set. The shim sees to it that the two cannot collide (the NULL
//!              marker does it).
//! ```
//!
//! Keys must be self-delimiting part by part: "begins with the encoded parts" must mean "equal in these parts".
//!
//! All unsafe code of the plugin is here: the shapes of arguments in [`border`], calls of the shim's functions, and a
//! session's state, which one thread uses at a time.

pub mod alter;
pub mod border;
pub mod build;
pub mod callbacks;
pub mod check;
pub mod counts;
pub mod cursor;
pub mod deadlocks;
pub mod engine;
pub mod exports;
pub mod feed;
pub mod foreign;
pub mod guard;
pub mod indexes;
pub mod instruments;
pub mod locks;
pub mod memory;
pub mod online;
pub mod pack;
pub mod pause;
pub mod results;
pub mod row;
pub mod session;
pub mod status;
pub mod table;
pub mod transactions;
pub mod trees;
pub mod waits;
mod window;

#[cfg(test)]
mod tests;
