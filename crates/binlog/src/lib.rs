//! Binary logs of MariaDB (5.3 to 12.3) and MySQL (4.0 to 9.7): from bytes to events, and from events to rows and
//! values. It does no I/O.
//!
//! ```text
//! a file's bytes ──> Framer ─┐
//!                            ├─> Decoder ──> Event ──> Rows ──> Row ──> Value
//! a server's packets ────────┘      │
//!            Positions              └──> TransactionPayload ──> events again
//! ```
//!
//! A log is written in events. [`Framer`] cuts a file into them, in whatever pieces its bytes come; a server sends each
//! in a packet of its own, and [`Positions`] follows where they come from. [`Decoder`] takes them in their order and
//! gives what they say: checksums are verified, and what later events need of earlier ones (the format, the tables of
//! rows) is kept. Rows and values are decoded when they are asked for, and borrow from the event's bytes.
//!
//! ```
//! use teak_binlog::{Body, Decoder, Error, Framer, Limits};
//!
//! fn count_rows(name: &str, file: &[u8]) -> Result<usize, Error> {
//!     let mut framer = Framer::new(Limits::default());
//!     let mut decoder = Decoder::of_file(name, Limits::default());
//!     let mut rows = 0;
//!     framer.feed(file);
//!     while let Some(frame) = framer.next_event().map_err(|problem| Error::new(Default::default(), problem))? {
//!         if let Body::Rows(event) = decoder.decode(frame.position, frame.bytes)?.body {
//!             for row in &event {
//!                 rows += usize::from(row?.new.is_some());
//!             }
//!         }
//!     }
//!     Ok(rows)
//! }
//! # assert_eq!(count_rows("b.000001", b"\xfebin"), Ok(0));
//! ```
//!
//! What always holds, whatever the bytes are: nothing panics, no more memory is taken than bytes came and [`Limits`]
//! allow, and what is not known is an [`Error`] that names log, position and event, and of rows table and column.
//! Nothing is guessed: what a log does not tell of a column (its name, its sign, its character set) is `None`.

#![deny(missing_docs, unnameable_types)]
// The tests have an allocator that counts.
#![cfg_attr(not(test), forbid(unsafe_code))]

mod base64;
mod bytes;
mod charset;
mod compressed;
mod decoder;
#[cfg(test)]
mod decoder_tests;
mod error;
mod events;
mod format;
mod framer;
mod header;
#[cfg(any(test, feature = "hostile"))]
pub mod hostile;
mod limits;
mod parts;
mod position;
mod table;
mod values;

pub use base64::base64;
pub use charset::{character_set, to_utf8};
pub use decoder::Decoder;
pub use error::{Error, Place, Problem};
pub use events::control::{Heartbeat, Incident, LargeTransaction, Rotate};
pub use events::converted::{Conversion, Known};
pub use events::mariadb::{MariaDbGtid, MariaDbGtidList, MariaDbTransaction, RowsPart, StartEncryption};
pub use events::mysql::{GtidIntervals, GtidSet, MySqlGtid, MySqlTransaction, Uuid};
pub use events::payload::{Compression, PayloadEvents, TransactionPayload};
pub use events::query::{ExecuteLoadQuery, Query, Session};
pub use events::rows::{Change, Image, Row, RowIterator, Rows};
pub use events::statement::{FileBlock, Intvar, Rand, UserValue, UserVar};
pub use events::xa::{XaPrepare, Xid};
pub use events::{Body, Event};
pub use format::{Checksum, Family, Format};
pub use framer::{Frame, Framer, MAGIC};
pub use header::{EventType, Flags, Header, HEADER_BYTES};
pub use limits::Limits;
pub use position::{LogPosition, Positions};
pub use table::{Column, ColumnType, KeyColumn, Table};
pub use values::{
    changed as changed_document, floats, Date, DateTime, Decimal, Integer, Json, JsonChange, JsonOperation,
    Time, Timestamp, Value,
};
