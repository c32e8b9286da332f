//! Teak's core: ordered trees of byte keys and byte values, with transactions over all of them.
//!
//! The library knows no SQL and no MariaDB. `docs/architecture.md` is the map.
#![deny(unsafe_op_in_unsafe_fn)]
#![warn(missing_docs)]

mod arrays;
pub mod cache;
pub mod catalog;
pub mod checkpoint;
pub mod engine;
mod error;
pub mod file;
mod finding;
pub mod lock;
pub mod log;
pub mod model;
pub mod mvcc;
mod options;
pub mod sort;
pub mod store;
mod threads;
pub mod tree;
mod types;

pub use error::{Error, Result};
pub use finding::{Finding, Findings};
pub use options::{
    CommitFlush, Compression, ForceRecovery, HistoryFull, LogLevel, Observer, Options, Packing,
    SilentObserver, TreeSpec,
};
pub use types::{
    Isolation, LockMode, Seek, Timestamp, TreeId, TxnId, View, WaitPolicy, WaitRequest, WriteOp,
};
