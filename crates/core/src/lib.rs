//! Teak's core: a storage engine in a library. Ordered trees of byte keys and byte values on disk, with transactions
//! over all of them.
//!
//! ```
//! use teak_core::{Engine, TreeSpec};
//!
//! # let dir = std::env::temp_dir().join(format!("teak-core-page-{}", std::process::id()));
//! # let _ = std::fs::remove_dir_all(&dir);
//! let engine = Engine::open(&dir)?;
//! // A table has one tree or several, which are changed together and dropped together.
//! let fruits = engine.create_table("fruits", &[TreeSpec::default(); 2])?;
//! let (by_name, by_colour) = (fruits.tree(0), fruits.tree(1));
//!
//! // All of it is there after the commit, also if the power goes, or nothing.
//! let mut txn = engine.begin();
//! for (name, colour) in [("apple", "red"), ("banana", "yellow"), ("cherry", "red")] {
//!     txn.insert(by_name, name, colour)?;
//!     txn.insert(by_colour, format!("{colour}/{name}"), "")?;
//! }
//! txn.commit()?;
//!
//! // A snapshot shows what was committed when it was taken, whatever others do.
//! let before = engine.snapshot();
//! let mut txn = engine.begin();
//! assert_eq!(txn.get(by_name, "apple")?.as_deref(), Some(&b"red"[..]));
//! assert!(txn.delete(by_name, "apple")?);
//! assert!(txn.delete(by_colour, "red/apple")?);
//! txn.commit()?;
//! assert_eq!(before.rows(by_name).count(), 3);
//!
//! // Rows come in the order of their keys, which are compared byte by byte.
//! let red = engine.snapshot().range(by_colour, "red/".."red0").collect::<Result<Vec<_>, _>>()?;
//! assert_eq!(red, [(b"red/cherry".to_vec(), b"".to_vec())]);
//! engine.close()?;
//! # std::fs::remove_dir_all(&dir).unwrap();
//! # Ok::<(), teak_core::Error>(())
//! ```
//!
//! | | |
//! |---|---|
//! | [`Engine`] | a directory; tables are created, opened and dropped by it |
//! | [`Table`], [`Tree`] | handles: a name, and the trees that belong to it |
//! | [`Transaction`] | reads and writes that are all done, or none; [`Isolation`] is what it may see of others |
//! | [`Snapshot`] | reads of what was committed at a moment, for as long as it takes, without any lock |
//! | [`Cursor`] | the rows of a range: an iterator, and a form that lends each row |
//! | [`Options`], [`Settings`] | how an engine is opened, and what can be changed while it runs |
//! | [`Error`] | what can go wrong: variants are what a caller acts on differently |
//! | [`mod@file`] | the one door to the operating system, and a file system that loses power on command |
//! | [`server`] | the steps below all this, one by one: what MariaDB's plugin and the command line use |
//!
//! `crates/core/examples` has four programs that check what they do: transfers between accounts, a queue with several
//! consumers, a long report while others write, and a bulk load. The library knows no SQL and no MariaDB;
//! `docs/architecture.md` is its map, `docs/format.md` what is on disk.
//!
//! The feature `model` adds an engine in memory that is simple enough to be believed at sight, with the interface of
//! [`server`]: the oracle of the property tests.
#![deny(unsafe_op_in_unsafe_fn)]
#![warn(missing_docs, unnameable_types)]

mod api;
mod arrays;
mod backup;
mod cache;
mod catalog;
mod checkpoint;
mod counts;
mod engine;
mod error;
mod exports;
pub mod file;
mod finding;
mod lock;
mod log;
#[cfg(any(test, feature = "model"))]
pub mod model;
mod mvcc;
mod numbers;
mod options;
#[cfg(feature = "rooms")]
pub mod rooms;
pub mod server;
mod slabs;
mod sort;
mod stop;
mod store;
mod sync;
mod threads;
mod time;
mod tree;
mod types;
mod values;

pub use api::{Cursor, Engine, Savepoint, Settings, Snapshot, Statistics, Table, Transaction, Tree};
pub use error::{Error, Result};
pub use finding::{Finding, Findings};
pub use lock::{WaitPolicy, WaitRequest};
pub use options::{
    CommitFlush, Compression, FileBuffering, ForceRecovery, HistoryFull, LogLevel, Observer, Options,
    Packing, Residence, SilentObserver, TreeSpec,
};
pub use slabs::Heap;
pub use time::Time;
pub use types::{Isolation, LockMode, Seek, Timestamp, TreeId, TxnId, View, WriteOp};

#[cfg(test)]
#[global_allocator]
static HEAP: Heap = Heap;
