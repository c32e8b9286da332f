//! What events say.
//!
//! | file | is about |
//! |---|---|
//! | `query.rs` | statements and their sessions |
//! | `statement.rs` | what comes before a statement and belongs to it |
//! | `rows.rs`, `converted.rs` | rows; those with MySQL's own types for a server that has not these |
//! | `mariadb.rs` | GTIDs of MariaDB, encryption, parts of events |
//! | `mysql.rs` | GTIDs of MySQL |
//! | `serialized.rs` | MySQL's serialization library |
//! | `payload.rs` | whole transactions in one event |
//! | `xa.rs` | XA transactions |
//! | `control.rs` | the log itself |

pub(crate) mod control;
pub(crate) mod converted;
pub(crate) mod mariadb;
pub(crate) mod mysql;
pub(crate) mod payload;
pub(crate) mod query;
pub(crate) mod rows;
mod serialized;
pub(crate) mod statement;
pub(crate) mod xa;

use crate::error::Place;
use crate::format::Format;
use crate::header::Header;
use crate::table::Table;
use control::{Heartbeat, Incident, LargeTransaction, Rotate};
use mariadb::{MariaDbGtidList, MariaDbTransaction, RowsPart, StartEncryption};
use mysql::{GtidSet, MySqlTransaction};
use payload::TransactionPayload;
use query::{ExecuteLoadQuery, Query};
use rows::Rows;
use statement::{FileBlock, Intvar, Rand, UserVar};
use std::sync::Arc;
use xa::XaPrepare;

/// An event.
#[derive(Debug, Clone, PartialEq)]
pub struct Event<'a> {
    /// What is in front of it.
    pub header: Header,
    /// Where it is.
    pub place: Place,
    /// What is behind it, if the log has checksums; it is right.
    pub checksum: Option<u32>,
    /// What it says.
    pub body: Body<'a>,
}

/// What an event says.
#[derive(Debug, Clone, PartialEq)]
pub enum Body<'a> {
    /// How the log is written: also the first event of logs before MySQL 5.0.
    FormatDescription(Arc<Format>),
    /// The log goes on elsewhere.
    Rotate(Rotate<'a>),
    /// The server was shut down.
    Stop,
    /// Something is missing from the log.
    Incident(Incident<'a>),
    /// The server that sends has nothing to send.
    Heartbeat(Heartbeat<'a>),
    /// A statement, also one that was compressed.
    Query(Query<'a>),
    /// A number that the next statement uses.
    Intvar(Intvar),
    /// The state of RAND() for the next statement.
    Rand(Rand),
    /// A variable that the next statement uses.
    UserVar(UserVar<'a>),
    /// The first block of a file that LOAD DATA reads.
    BeginLoadQuery(FileBlock<'a>),
    /// A further block.
    AppendBlock(FileBlock<'a>),
    /// A file is not needed.
    DeleteFile(FileBlock<'a>),
    /// LOAD DATA.
    ExecuteLoadQuery(ExecuteLoadQuery<'a>),
    /// LOAD DATA of MySQL before 5.0.3: known to be a statement, and no more.
    OldLoad(&'a [u8]),
    /// A transaction of the engines commits, with this number.
    Xid(u64),
    /// An XA transaction is prepared.
    XaPrepare(XaPrepare),
    /// The statement of the rows that follow.
    RowsQuery(&'a [u8]),
    /// The table of rows that follow.
    TableMap(Arc<Table>),
    /// Rows.
    Rows(Rows<'a>),
    /// A part of an event with rows, and with the last part the whole.
    RowsPart(RowsPart<'a>, Option<Rows<'static>>),
    /// The end of a statement whose rows came before, in an event that has none.
    EndOfRows,
    /// MariaDB: a transaction begins.
    MariaDbGtid(MariaDbTransaction),
    /// MariaDB: the last transactions of the logs before this one.
    MariaDbGtidList(MariaDbGtidList),
    /// MariaDB: logs before this one are not needed for recovery.
    BinlogCheckpoint(&'a [u8]),
    /// MariaDB: what follows is encrypted.
    StartEncryption(StartEncryption),
    /// MySQL: a transaction begins.
    MySqlGtid(MySqlTransaction),
    /// MySQL: all transactions of the logs before this one.
    PreviousGtids(GtidSet),
    /// MySQL: a whole transaction.
    TransactionPayload(TransactionPayload<'a>),
    /// MySQL: where the file's one transaction ends.
    LargeTransaction(LargeTransaction),
    /// Of MySQL's group replication, which only its members need, or an event of a type that is not known and may be
    /// ignored: its bytes.
    Other(&'a [u8]),
}
