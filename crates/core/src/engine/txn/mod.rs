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
//! | `vitals.rs` | what others may see of one while it works |
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
pub(super) mod vitals;
pub(super) mod work;

use self::holds::Holds;
use self::prepared::Prepared;
use crate::lock::Intents;
use crate::Time;
use std::sync::Arc;

/// What this floor keeps: of transactions that are not decided.
pub(in crate::engine) struct Undecided {
    /// Open ones that have records in the log.
    pub(in crate::engine) holds: Holds,
    /// Prepared ones without a handle.
    pub(in crate::engine) prepared: Prepared,
    /// What prepared ones have written to.
    pub(in crate::engine) intents: Arc<Intents>,
}

impl Undecided {
    /// There is none.
    pub(in crate::engine) fn new(time: &Time) -> Undecided {
        let (holds, prepared) = Default::default();
        Undecided { holds, prepared, intents: Arc::new(Intents::new(time.clone())) }
    }
}
