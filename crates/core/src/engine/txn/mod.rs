//! Transactions: what one has done so far, the ways in which a row goes in, its end, what is read in it.
//!
//! | file | what |
//! |---|---|
//! | `transaction.rs`, `work.rs` | the handle of a transaction, and what it has done so far |
//! | `claim.rs` | the rule of a row: lock, look, ranges, snapshot |
//! | `verbs.rs` | one verb for a row: claim and write |
//! | `append.rs`, `sorting.rs` | new rows that go to table files and not to the log: in key order, or sorted |
//! | `deferred.rs` | entries of indexes that are gathered and written in the order of their keys |
//! | `prepared.rs` | prepared transactions without a handle, and who waits for them |
//! | `holds.rs`, `log_copy.rs` | who pins the log; copying what an old one has in it |
//! | `cursor.rs` | reading in a transaction |

pub(super) mod append;
pub(super) mod claim;
pub(super) mod cursor;
pub(super) mod deferred;
pub(super) mod holds;
pub(super) mod log_copy;
pub(super) mod prepared;
pub(super) mod sorting;
pub(super) mod transaction;
pub(super) mod verbs;
pub(super) mod work;
