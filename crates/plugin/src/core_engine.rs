//! Which engine of the core the plugin runs on.

pub use teak_core::server::{
    Alteration, Cursor, Depth, Difference, Engine, Feed, IndexCheck, Items, Savepoint, SnapshotInfo,
    Statistics, Table, Transaction, Tree, TreeBuild, TreeSource, Window,
};
