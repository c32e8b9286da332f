//! Rows of SQL tables over the trees of the core: what a database server means by reading, locking and writing a row.
//!
//! ```text
//! crates/plugin  (the server's THDs, pointers, numbers)  -->  this crate  -->  crates/core (trees, locks, log)
//! ```
//!
//! | module | is responsible for |
//! |---|---|
//! | [`host`] | what the server does for an engine: error log, KILL, reports of lock waits |
//! | [`engine`] | the handle of an engine, its sessions, what happens on a panic |
//! | [`session`] | a connection's transaction: statements, savepoints, two-phase commit, lock waits |
//! | [`bounds`], [`scan`], `locking` | cursors: where they start and end, how they move; locking reads and ranges |
//! | [`row`], [`unique`], [`collision`] | operations on a row in all trees of a table; uniqueness |
//! | [`foreign`] | looks at rows of other tables, for foreign keys |
//! | [`orphans`] | rows whose parents are missing, all of a table at once |
//! | [`counter`] | AUTO_INCREMENT |
//! | [`results`] | results of queries that the server keeps: who may leave one, who may take one |
//! | [`transactions`], [`locks`] | who is at what, and has locked what |
//! | [`lock_waits`], [`deadlocks`] | who waits for whom, and who has in circles |
//! | [`metrics`] | numbers with names and meanings: SHOW STATUS, information_schema.TEAK_METRICS |
//! | [`report`] | SHOW ENGINE TEAK STATUS |
//! | [`xid`] | identifiers of XA transactions as people write them |
//! | [`outcome`] | why an operation did not succeed |
//!
//! It knows tables as trees: tree 0 has the rows by their primary key, each other tree is an index. Keys and values are
//! plain bytes, which the server's side makes and understands; except that the value of an entry in a unique index
//! begins with the primary key ([`unique::primary_key`]). It knows no pointer and no number of the C border:
//! conversions, and all unsafe code, are the plugin's.
#![forbid(unsafe_code)]
#![deny(missing_docs)]

pub mod bounds;
pub mod collision;
pub mod counter;
pub mod deadlocks;
pub mod engine;
pub mod foreign;
pub mod host;
pub mod lock_waits;
mod locking;
pub mod locks;
pub mod metrics;
pub mod orphans;
pub mod outcome;
pub mod report;
pub mod results;
pub mod row;
pub mod scan;
pub mod session;
pub mod transactions;
pub mod unique;
mod vanished;
mod way;
pub mod xid;

#[cfg(test)]
mod tests;
