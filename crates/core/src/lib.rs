//! Teak's core: ordered trees of byte keys and byte values, with transactions over all of them.
//!
//! The library knows no SQL and no MariaDB. `docs/architecture.md` is the map.
#![deny(unsafe_op_in_unsafe_fn)]
#![warn(missing_docs, unnameable_types)]

mod arrays;
mod cache;
mod catalog;
mod checkpoint;
mod engine;
mod error;
pub mod file;
mod finding;
mod lock;
mod log;
#[cfg(any(test, feature = "model"))]
pub mod model;
mod mvcc;
mod options;
#[cfg(feature = "rooms")]
pub mod rooms;
pub mod server;
mod sort;
mod store;
mod threads;
mod tree;
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
