//! Binary logs of MariaDB (5.3 to 12.3) and MySQL (4.0 to 9.7). It does no I/O.
//!
//! A log is written in events. [`Framer`] cuts a file into them, in whatever pieces its bytes come; a server sends each
//! in a packet of its own, and [`Positions`] follows where they come from.
//!
//! What always holds, whatever the bytes are: nothing panics, no more memory is taken than bytes came and [`Limits`]
//! allow.

#![deny(missing_docs, unnameable_types)]
#![forbid(unsafe_code)]

mod bytes;
mod charset;
mod compressed;
mod error;
mod format;
mod framer;
mod header;
mod limits;
mod position;
mod table;
mod values;

pub use charset::{character_set, to_utf8};
pub use error::{Error, Place, Problem};
pub use format::{Checksum, Family, Format};
pub use framer::{Frame, Framer, MAGIC};
pub use header::{EventType, Flags, Header, HEADER_BYTES};
pub use limits::Limits;
pub use position::{LogPosition, Positions};
pub use table::{Column, ColumnType, KeyColumn, Table};
pub use values::{
    floats, Date, DateTime, Decimal, Integer, Json, JsonChange, JsonOperation, Time, Timestamp, Value,
};
