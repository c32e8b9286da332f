//! What is in front of each event, and the types of events.
//!
//! ```text
//! time: 4 | type: 1 | server id: 4 | length: 4 | end position: 4 | flags: 2
//! ```

use super::bytes::Bytes;
use super::error::Problem;

/// The length of a header. A format description may tell a longer one, whose end is passed over.
pub const HEADER_BYTES: usize = 19;

/// What is in front of each event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    /// When its statement began, in seconds of Unix time; 0 for what a server makes up while it sends a log.
    pub time: u32,
    /// The number of its type, see [`EventType`].
    pub code: u8,
    /// The server that wrote it first.
    pub server_id: u32,
    /// Of the whole event, with header and checksum.
    pub length: u32,
    /// Where the next event begins, in its lower 32 bits. 0 if it is not known: MariaDB from 11.4 on does not write it
    /// for what went through the cache of a transaction.
    pub end_position: u32,
    /// See [`Flags`].
    pub flags: Flags,
}

/// Flags of an event's header.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Flags(pub u16);

impl Flags {
    /// Of a format description: the log was not closed. It is in use, or its server died.
    pub const IN_USE: u16 = 0x1;
    /// Its effect depends on the session, such as temporary tables.
    pub const THREAD_SPECIFIC: u16 = 0x4;
    /// No USE before it.
    pub const SUPPRESS_USE: u16 = 0x8;
    /// Made by the server that sends it, and in no file.
    pub const ARTIFICIAL: u16 = 0x20;
    /// Written by a replica to its own log of what it received.
    pub const RELAY_LOG: u16 = 0x40;
    /// Who does not know the event may pass over it.
    pub const IGNORABLE: u16 = 0x80;
    /// MySQL: no filter of a replica applies.
    pub const NO_FILTER: u16 = 0x100;
    /// MySQL: alone, beside no other transaction.
    pub const ISOLATED: u16 = 0x200;
    /// MariaDB: for the replica that wrote it, too.
    pub const ACCEPT_OWN: u16 = 0x4000;
    /// MariaDB: `@@skip_replication` was set.
    pub const SKIP_REPLICATION: u16 = 0x8000;

    const NAMES: [(u16, &'static str); 10] = [
        (Flags::IN_USE, "in_use"),
        (Flags::THREAD_SPECIFIC, "thread_specific"),
        (Flags::SUPPRESS_USE, "suppress_use"),
        (Flags::ARTIFICIAL, "artificial"),
        (Flags::RELAY_LOG, "relay_log"),
        (Flags::IGNORABLE, "ignorable"),
        (Flags::NO_FILTER, "no_filter"),
        (Flags::ISOLATED, "isolated"),
        (Flags::ACCEPT_OWN, "accept_own"),
        (Flags::SKIP_REPLICATION, "skip_replication"),
    ];

    /// Whether one of them is set.
    pub fn has(self, flag: u16) -> bool {
        self.0 & flag != 0
    }

    /// The names of those that are set, as far as they have one.
    pub fn names(self) -> impl Iterator<Item = &'static str> {
        Flags::NAMES.into_iter().filter(move |(flag, _)| self.has(*flag)).map(|(_, name)| name)
    }
}

impl Header {
    /// The header of an event, of which these are the bytes.
    pub fn of(event: &[u8]) -> Result<Header, Problem> {
        Header::read(&mut Bytes(event))
    }

    pub(crate) fn read(bytes: &mut Bytes<'_>) -> Result<Header, Problem> {
        let what = "the header of an event";
        Ok(Header {
            time: bytes.u32(what)?,
            code: bytes.u8(what)?,
            server_id: bytes.u32(what)?,
            length: bytes.u32(what)?,
            end_position: bytes.u32(what)?,
            flags: Flags(bytes.u16(what)?),
        })
    }

    /// The type, if it is known.
    pub fn kind(&self) -> Option<EventType> {
        EventType::of(self.code)
    }
}

macro_rules! event_types {
    ($($(#[$doc:meta])* $name:ident = $code:literal $text:literal,)*) => {
        /// The types of events that are known.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[repr(u8)]
        pub enum EventType {
            $($(#[$doc])* $name = $code,)*
        }

        impl EventType {
            /// By its number.
            pub fn of(code: u8) -> Option<EventType> {
                match code {
                    $($code => Some(EventType::$name),)*
                    _ => None,
                }
            }

            /// As it is called in texts and in JSON.
            pub fn name(self) -> &'static str {
                match self {
                    $(EventType::$name => $text,)*
                }
            }
        }
    };
}

event_types! {
    /// The first event of logs before MySQL 5.0.
    StartV3 = 1 "start_v3",
    /// A statement.
    Query = 2 "query",
    /// The server was shut down.
    Stop = 3 "stop",
    /// The log goes on in another file.
    Rotate = 4 "rotate",
    /// INSERT_ID or LAST_INSERT_ID of the next statement.
    Intvar = 5 "intvar",
    /// LOAD DATA of MySQL 3.23.
    Load = 6 "load",
    /// Reserved.
    Slave = 7 "slave",
    /// LOAD DATA of MySQL 4.0: the first block of the file.
    CreateFile = 8 "create_file",
    /// A further block of a file.
    AppendBlock = 9 "append_block",
    /// LOAD DATA of MySQL 4.0: carry it out.
    ExecuteLoad = 10 "execute_load",
    /// A file is not needed.
    DeleteFile = 11 "delete_file",
    /// LOAD DATA of MySQL 4.0.
    NewLoad = 12 "new_load",
    /// The state of RAND() for the next statement.
    Rand = 13 "rand",
    /// A variable of the next statement.
    UserVar = 14 "user_var",
    /// What the log is written like.
    FormatDescription = 15 "format_description",
    /// A transaction of engines commits.
    Xid = 16 "xid",
    /// The first block of a file that LOAD DATA reads.
    BeginLoadQuery = 17 "begin_load_query",
    /// LOAD DATA of such a file.
    ExecuteLoadQuery = 18 "execute_load_query",
    /// The table of rows that follow.
    TableMap = 19 "table_map",
    /// Rows that came.
    WriteRowsV1 = 23 "write_rows_v1",
    /// Rows that changed.
    UpdateRowsV1 = 24 "update_rows_v1",
    /// Rows that went.
    DeleteRowsV1 = 25 "delete_rows_v1",
    /// Something is missing from the log.
    Incident = 26 "incident",
    /// The server that sends has nothing to send.
    Heartbeat = 27 "heartbeat",
    /// Something that may be ignored.
    Ignorable = 28 "ignorable",
    /// MySQL: the statement of the rows that follow.
    RowsQuery = 29 "rows_query",
    /// Rows that came.
    WriteRows = 30 "write_rows",
    /// Rows that changed.
    UpdateRows = 31 "update_rows",
    /// Rows that went.
    DeleteRows = 32 "delete_rows",
    /// MySQL: a transaction begins.
    Gtid = 33 "gtid",
    /// MySQL: a transaction without GTID begins.
    AnonymousGtid = 34 "anonymous_gtid",
    /// MySQL: all transactions of the logs before this one.
    PreviousGtids = 35 "previous_gtids",
    /// MySQL's group replication.
    TransactionContext = 36 "transaction_context",
    /// MySQL's group replication.
    ViewChange = 37 "view_change",
    /// An XA transaction is prepared.
    XaPrepare = 38 "xa_prepare",
    /// Rows that changed, with parts of JSON values.
    PartialUpdateRows = 39 "partial_update_rows",
    /// A whole transaction, compressed.
    TransactionPayload = 40 "transaction_payload",
    /// As [`EventType::Heartbeat`], for logs beyond 4 GiB.
    HeartbeatV2 = 41 "heartbeat_v2",
    /// MySQL: a transaction with a tag in its GTID begins.
    GtidTagged = 42 "gtid_tagged",
    /// MySQL: where a large transaction ends whose own file this is.
    LargeTransactionHeader = 43 "large_transaction_header",
    /// MariaDB: the statement of the rows that follow.
    AnnotateRows = 160 "annotate_rows",
    /// MariaDB: logs before this one are not needed for recovery.
    BinlogCheckpoint = 161 "binlog_checkpoint",
    /// MariaDB: a transaction or a single statement begins.
    MariaDbGtid = 162 "mariadb_gtid",
    /// MariaDB: the last GTIDs of the logs before this one.
    MariaDbGtidList = 163 "mariadb_gtid_list",
    /// MariaDB: what follows is encrypted.
    StartEncryption = 164 "start_encryption",
    /// A statement, compressed.
    QueryCompressed = 165 "query_compressed",
    /// Rows that came, compressed.
    WriteRowsCompressedV1 = 166 "write_rows_compressed_v1",
    /// Rows that changed, compressed.
    UpdateRowsCompressedV1 = 167 "update_rows_compressed_v1",
    /// Rows that went, compressed.
    DeleteRowsCompressedV1 = 168 "delete_rows_compressed_v1",
    /// Rows that came, compressed.
    WriteRowsCompressed = 169 "write_rows_compressed",
    /// Rows that changed, compressed.
    UpdateRowsCompressed = 170 "update_rows_compressed",
    /// Rows that went, compressed.
    DeleteRowsCompressed = 171 "delete_rows_compressed",
    /// MariaDB: a part of an event with rows.
    PartialRowData = 172 "partial_row_data",
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_is_read_as_it_is_written() {
        let bytes = [1, 2, 3, 4, 2, 5, 0, 0, 0, 19, 0, 0, 0, 0xff, 0, 0, 0, 0x88, 0];
        let header = Header::read(&mut Bytes(&bytes)).unwrap();
        assert_eq!((header.time, header.server_id), (0x0403_0201, 5));
        assert_eq!((header.kind(), header.length), (Some(EventType::Query), 19));
        assert_eq!(header.flags.names().collect::<Vec<_>>(), ["suppress_use", "ignorable"]);
        assert!(Header::read(&mut Bytes(&bytes[..18])).is_err());
    }

    #[test]
    fn codes_and_types_are_one_to_one() {
        for code in 0..=255 {
            assert!(EventType::of(code).is_none_or(|kind| kind as u8 == code));
        }
        assert_eq!((0..=255).filter(|&code| EventType::of(code).is_some()).count(), 53);
    }
}
