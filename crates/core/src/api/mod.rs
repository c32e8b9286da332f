//! What a program sees of the core: handles on those of [`crate::engine`], with which no step can be left out.
//!
//! The engine of a server has the steps one by one ([`crate::server`]); here a row is locked, looked for, compared with
//! the snapshot and written by one call, each waits as long as its transaction is told to, and nobody can write past
//! the log. Tables and trees are the same.

mod cursor;
mod engine;
mod snapshot;
#[cfg(test)]
mod tests;
mod transaction;

pub use crate::engine::{Savepoint, Settings, Statistics, Table, Tree};
pub use cursor::Cursor;
pub use engine::Engine;
pub use snapshot::Snapshot;
pub use transaction::Transaction;
