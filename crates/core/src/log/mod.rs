//! The write-ahead log: the logical row operations of transactions, in one endless space of bytes addressed by [`Lsn`].
//!
//! What it is responsible for: that a record is durable when it says so, that records are published in the order in
//! which they are in the log, that a scan returns exactly a prefix of what was appended, and that damage is told from
//! the unfinished end of the log. It knows `file` below it and nothing of trees or pages.
//!
//! - [`record`]: what a record says, and the redo buffer of a transaction;
//! - `segment`: the files, their headers, the frames around records, recycling;
//! - `writer`: frames into segments; `group`: group commit over it, and the [`Log`] itself; `slot`: where its members
//!   wait;
//! - `prerequisites`: what must be durable before the log is;
//! - `reader`: scanning and recovery; `copy`: for backups.
//!
//! The bytes are described in `docs/format.md`, "Write-ahead log".

mod copy;
mod group;
/// What [`crate::rooms::hostile`] needs of this room.
#[cfg(feature = "rooms")]
pub(crate) mod hostile {
    pub(crate) use super::packed::unpack;
}
mod packed;
mod prerequisites;
mod reader;
pub mod record;
#[cfg(all(test, feature = "schedules"))]
mod schedules;
mod segment;
mod slot;
#[cfg(test)]
mod tests;
mod varint;
mod writer;

/// Byte position in the endless log. Records begin and end at multiples of 8.
pub type Lsn = u64;

pub use copy::copy_segments;
pub use group::Log;
pub use prerequisites::Prerequisite;
pub use reader::{Gathering, RecordReader, Segments};
pub use record::{CounterChange, LogRecord, Op, OpKind, Ops, RedoBuffer, RedoMark};
