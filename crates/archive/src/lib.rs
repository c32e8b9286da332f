//! An archive that knows what is in it: data by content, each once, and records with typed metadata, found by queries.
//!
//! ```
//! use teak_archive::{Archive, Chunking, Metadata, Name, Rules};
//!
//! # let dir = std::env::temp_dir().join(format!("teak-archive-page-{}", std::process::id()));
//! # let _ = std::fs::remove_dir_all(&dir);
//! let archive = Archive::init(&dir, Chunking::default(), &Rules::default())?;
//! let mut metadata = Metadata::default();
//! metadata.text("file.name", "hello.txt");
//! let stored = archive.put(&mut &b"hello"[..], &metadata)?;
//!
//! let mut bytes = Vec::new();
//! archive.get(Name::Record(stored.oid), None, &mut bytes)?;
//! assert_eq!(bytes, b"hello");
//! archive.close()?;
//! # std::fs::remove_dir_all(&dir).unwrap();
//! # Ok::<(), teak_archive::Error>(())
//! ```
//!
//! | module | is about |
//! |---|---|
//! | `archive/` | an open archive: putting, getting, changing, protecting, collecting, scrubbing |
//! | `schema/` | fields, types, values, indexes |
//! | `view/` | directories made of fields |
//! | `tree/` | the tree of `system.path`, and those of views, as file systems have them |
//! | `query/` | expressions, which index answers them, answers in order, cursors |
//! | `rows` | what stands in the rows of the core's trees |
//! | `oid`, `calendar`, `bytes` | names; dates as texts; numbers as bytes |
//!
//! It is built on the core's public interface, knows no network and no SQL, and no thread is its own.
//! `docs/archive.md` is for users, `docs/design/archive.md` says how it works.

#![deny(missing_docs, unnameable_types)]
#![deny(unsafe_code)]

mod archive;
mod bytes;
mod calendar;
mod error;
mod oid;
mod query;
mod rows;
mod schema;
mod tree;
mod view;

pub use archive::{
    Archive, Chunking, Clock, Collected, Damage, Durability, Entry, Imported, Metadata, Options, Protecting,
    Range, Rules, Scrub, Scrubbed, Stat, Stored,
};
pub use error::{Error, Result};
pub use oid::{Digest, Name, Oid};
pub use query::{Direction, Query};
pub use rows::{Protection, Record};
pub use schema::{Definition, Field, FieldDefinition, FullDefinition, Scalar, Schema, Type, Value};
pub use tree::{ChangeProperties, Check, Folder, Node, Root, TellChild};
pub use view::{Item, Listing, View};
