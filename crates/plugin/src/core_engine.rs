//! Which engine of the core the plugin runs on. The model offers the same names, without durability.

pub use teak_core::model::{Cursor, Engine, Savepoint, SnapshotInfo, Table, Transaction, Tree};
