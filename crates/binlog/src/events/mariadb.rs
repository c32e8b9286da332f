//! Transactions of MariaDB: GTIDs, and what stands at the beginning of its logs.

use super::xa::Xid;
use crate::bytes::Bytes;
use crate::error::Problem;
use std::fmt;
use std::str::FromStr;

/// The number of a transaction: of a stream of them (domain), by the server that made it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct MariaDbGtid {
    /// `gtid_domain_id`.
    pub domain: u32,
    /// The server that carried the transaction out first.
    pub server_id: u32,
    /// Its number in the domain.
    pub sequence: u64,
}

impl fmt::Display for MariaDbGtid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}-{}", self.domain, self.server_id, self.sequence)
    }
}

impl FromStr for MariaDbGtid {
    type Err = Problem;

    fn from_str(text: &str) -> Result<MariaDbGtid, Problem> {
        let parts: Vec<&str> = text.trim().split('-').collect();
        let gtid = match parts[..] {
            [domain, server_id, sequence] => {
                (domain.parse().ok(), server_id.parse().ok(), sequence.parse().ok())
            }
            _ => (None, None, None),
        };
        match gtid {
            (Some(domain), Some(server_id), Some(sequence)) => {
                Ok(MariaDbGtid { domain, server_id, sequence })
            }
            _ => Err(Problem::invalid(format!("{text} is no GTID of MariaDB, such as 0-1-100"))),
        }
    }
}

/// A transaction begins, or a statement that is alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MariaDbTransaction {
    /// Its number.
    pub gtid: MariaDbGtid,
    /// See the constants.
    pub flags: u8,
    /// Transactions with the same one were committed together.
    pub commit_id: Option<u64>,
    /// Of an XA transaction that is prepared or completed here.
    pub xid: Option<Xid>,
    /// See the constants whose names begin with EXTRA.
    pub extra_flags: u8,
    /// Engines that take part, beyond the first.
    pub extra_engines: Option<u8>,
    /// Of COMMIT ALTER and ROLLBACK ALTER: the sequence of the START ALTER that it ends.
    pub alter_sequence: Option<u64>,
    /// The connection that carried it out.
    pub thread_id: Option<u32>,
}

impl MariaDbTransaction {
    /// A single statement, without a COMMIT behind it.
    pub const STANDALONE: u8 = 1;
    /// There is a commit id.
    pub const GROUP_COMMIT_ID: u8 = 2;
    /// All of it can be rolled back.
    pub const TRANSACTIONAL: u8 = 4;
    /// `@@skip_parallel_replication` was not set.
    pub const ALLOW_PARALLEL: u8 = 8;
    /// It waited for a lock.
    pub const WAITED: u8 = 16;
    /// It is DDL.
    pub const DDL: u8 = 32;
    /// It ends with XA PREPARE.
    pub const PREPARED_XA: u8 = 64;
    /// It is XA COMMIT or XA ROLLBACK of what was prepared.
    pub const COMPLETED_XA: u8 = 128;
    /// There is a number of engines.
    pub const EXTRA_ENGINES: u8 = 1;
    /// START ALTER.
    pub const EXTRA_START_ALTER: u8 = 2;
    /// COMMIT ALTER.
    pub const EXTRA_COMMIT_ALTER: u8 = 4;
    /// ROLLBACK ALTER.
    pub const EXTRA_ROLLBACK_ALTER: u8 = 8;
    /// There is a number of a connection.
    pub const EXTRA_THREAD_ID: u8 = 16;

    const FLAGS: [(u8, &'static str); 8] = [
        (Self::STANDALONE, "standalone"),
        (Self::GROUP_COMMIT_ID, "group_commit_id"),
        (Self::TRANSACTIONAL, "transactional"),
        (Self::ALLOW_PARALLEL, "allow_parallel"),
        (Self::WAITED, "waited"),
        (Self::DDL, "ddl"),
        (Self::PREPARED_XA, "prepared_xa"),
        (Self::COMPLETED_XA, "completed_xa"),
    ];
    const EXTRA: [(u8, &'static str); 5] = [
        (Self::EXTRA_ENGINES, "engines"),
        (Self::EXTRA_START_ALTER, "start_alter"),
        (Self::EXTRA_COMMIT_ALTER, "commit_alter"),
        (Self::EXTRA_ROLLBACK_ALTER, "rollback_alter"),
        (Self::EXTRA_THREAD_ID, "thread_id"),
    ];
    const EXTRA_KNOWN: u8 = 0x1f;

    /// Whether one of these flags is set.
    pub fn has(&self, flags: u8) -> bool {
        self.flags & flags != 0
    }

    /// The names of the flags that are set, those of the extra flags behind the others.
    pub fn flag_names(&self) -> Vec<&'static str> {
        let set = |flags: u8| move |(flag, name): &(u8, &'static str)| (flags & flag != 0).then_some(*name);
        let extra = Self::EXTRA.iter().filter_map(set(self.extra_flags));
        Self::FLAGS.iter().filter_map(set(self.flags)).chain(extra).collect()
    }

    pub(crate) fn read(mut bytes: Bytes<'_>, server_id: u32) -> Result<MariaDbTransaction, Problem> {
        let what = "a GTID event";
        let (sequence, domain, flags) = (bytes.u64(what)?, bytes.u32(what)?, bytes.u8(what)?);
        let gtid = MariaDbGtid { domain, server_id, sequence };
        if sequence == 0 {
            return Err(Problem::invalid("a GTID of sequence 0"));
        }
        let commit_id = if flags & Self::GROUP_COMMIT_ID != 0 { Some(bytes.u64(what)?) } else { None };
        let is_xa = flags & (Self::PREPARED_XA | Self::COMPLETED_XA) != 0;
        let xid = if is_xa { Some(Xid::read_short(&mut bytes)?) } else { None };
        // Zeros fill up what is shorter than it was once.
        let extra_flags = bytes.0.first().copied().unwrap_or(0);
        if extra_flags & !Self::EXTRA_KNOWN != 0 {
            return Err(Problem::invalid(format!("a GTID event with unknown flags ({extra_flags:#x})")));
        }
        let mut extra = Bytes(bytes.0.get(1..).unwrap_or_default());
        let has = |flag: u8| extra_flags & flag != 0;
        let extra_engines = if has(Self::EXTRA_ENGINES) { Some(extra.u8(what)?) } else { None };
        let ends_alter = has(Self::EXTRA_COMMIT_ALTER | Self::EXTRA_ROLLBACK_ALTER);
        let alter_sequence = if ends_alter { Some(extra.u64(what)?) } else { None };
        let thread_id = if has(Self::EXTRA_THREAD_ID) { Some(extra.u32(what)?) } else { None };
        Ok(MariaDbTransaction {
            gtid,
            flags,
            commit_id,
            xid,
            extra_flags,
            extra_engines,
            alter_sequence,
            thread_id,
        })
    }
}

/// The last transactions of the logs before this one: of each domain the last one of each server, the last of all
/// behind the others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MariaDbGtidList {
    /// In the upper four bits: 1 until where a replica wanted to go is reached, 2 these were passed over.
    pub flags: u8,
    /// The last transactions.
    pub gtids: Vec<MariaDbGtid>,
}

impl MariaDbGtidList {
    pub(crate) fn read(mut bytes: Bytes<'_>) -> Result<MariaDbGtidList, Problem> {
        let what = "a list of GTIDs";
        let head = bytes.u32(what)?;
        let mut list = Bytes(bytes.take_long(u64::from(head & 0x0fff_ffff) * 16, what)?);
        let mut gtids = Vec::new();
        while !list.is_empty() {
            gtids.push(MariaDbGtid {
                domain: list.u32(what)?,
                server_id: list.u32(what)?,
                sequence: list.u64(what)?,
            });
        }
        Ok(MariaDbGtidList { flags: (head >> 28) as u8, gtids })
    }
}

/// What follows is encrypted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StartEncryption {
    /// How: 1 is AES-CBC as MariaDB 10.1 has it.
    pub scheme: u8,
    /// Of the key.
    pub key_version: u32,
    /// What makes the file's encryption unlike that of others.
    pub nonce: [u8; 12],
}

impl StartEncryption {
    pub(crate) fn read(mut bytes: Bytes<'_>) -> Result<StartEncryption, Problem> {
        let what = "a start_encryption event";
        Ok(StartEncryption {
            scheme: bytes.u8(what)?,
            key_version: bytes.u32(what)?,
            nonce: bytes.array(what)?,
        })
    }
}

/// The name in a checkpoint event: logs before that one are not needed for recovery.
pub(crate) fn checkpoint(mut bytes: Bytes<'_>) -> Result<&[u8], Problem> {
    let length = bytes.u32("a checkpoint event")?;
    bytes.take_long(length.into(), "the name of a log")
}

/// An event of rows that was cut into several: one part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RowsPart<'a> {
    /// How many there are.
    pub parts: u32,
    /// Which one this is, from 1 on.
    pub part: u32,
    /// The length of the whole event; the first part has it.
    pub whole_bytes: Option<u64>,
    /// A piece of the event.
    pub bytes: &'a [u8],
}

impl<'a> RowsPart<'a> {
    pub(crate) fn read(mut bytes: Bytes<'a>) -> Result<RowsPart<'a>, Problem> {
        let what = "a part of an event with rows";
        let (parts, part, flags) = (bytes.u32(what)?, bytes.u32(what)?, bytes.u8(what)?);
        if flags & !1 != 0 || part == 0 || part > parts || (flags & 1 != 0) != (part == 1) {
            return Err(Problem::invalid(format!(
                "part {part} of {parts}, with flags {flags:#x}, of an event"
            )));
        }
        let whole_bytes = if flags & 1 != 0 { Some(bytes.u64(what)?) } else { None };
        Ok(RowsPart { parts, part, whole_bytes, bytes: bytes.rest() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: [u8; 12] = [9, 0, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0];

    fn read(tail: &[u8]) -> Result<MariaDbTransaction, Problem> {
        MariaDbTransaction::read(Bytes(&[&HEAD[..], tail].concat()), 7)
    }

    #[test]
    fn a_gtid_has_what_its_flags_say() {
        let plain = read(&[1 | 8 | 32, 0, 0, 0, 0, 0, 0]).unwrap();
        assert_eq!(plain.gtid.to_string(), "3-7-9");
        assert_eq!((plain.commit_id, plain.xid, plain.extra_flags), (None, None, 0));
        assert_eq!(plain.flag_names(), ["standalone", "allow_parallel", "ddl"]);
        let grouped = read(&[2 | 4, 5, 0, 0, 0, 0, 0, 0, 0, 1, 2]).unwrap();
        assert_eq!((grouped.commit_id, grouped.extra_engines), (Some(5), Some(2)));
        let xa = read(&[64, 1, 0, 0, 0, 2, 1, b'a', b'b', b'c', 16, 8, 0, 0, 0]).unwrap();
        assert_eq!(xa.xid.unwrap().to_string(), "X'6162',X'63',1");
        assert_eq!(xa.thread_id, Some(8));
        let alter = read(&[33, 4, 8, 0, 0, 0, 0, 0, 0, 0]).unwrap();
        assert_eq!((alter.alter_sequence, alter.flag_names().pop()), (Some(8), Some("commit_alter")));
    }

    #[test]
    fn what_its_flags_say_must_be_there() {
        for tail in [
            &[][..],
            &[2, 1, 2],
            &[64, 1, 0, 0, 0, 65, 0],
            &[64, 1, 0, 0, 0, 2, 1, 9],
            &[0, 1],
            &[0, 4, 1],
            &[0, 32],
        ] {
            assert!(read(tail).is_err(), "{tail:?}");
        }
        assert!(MariaDbTransaction::read(Bytes(&[0; 19]), 7).is_err());
    }

    #[test]
    fn lists_of_gtids_are_as_long_as_they_say() {
        let mut bytes = vec![2, 0, 0, 0x10];
        bytes.extend_from_slice(&[1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0]);
        assert!(MariaDbGtidList::read(Bytes(&bytes)).is_err());
        bytes.extend_from_slice(&[4, 0, 0, 0, 5, 0, 0, 0, 6, 0, 0, 0, 0, 0, 0, 0]);
        let list = MariaDbGtidList::read(Bytes(&bytes)).unwrap();
        let texts: Vec<String> = list.gtids.iter().map(MariaDbGtid::to_string).collect();
        assert_eq!((list.flags, texts.join(",")), (1, "1-2-3,4-5-6".into()));
        assert_eq!("4-5-6".parse(), Ok(list.gtids[1]));
        for text in ["", "1-2", "1-2-3-4", "a-b-c", "4294967296-1-1"] {
            assert!(text.parse::<MariaDbGtid>().is_err(), "{text}");
        }
        assert!(MariaDbGtidList::read(Bytes(&[0xff, 0xff, 0xff, 0xff])).is_err());
    }

    #[test]
    fn parts_are_numbered_and_the_first_knows_the_whole() {
        let first = [2, 0, 0, 0, 1, 0, 0, 0, 1, 9, 0, 0, 0, 0, 0, 0, 0, b'x'];
        let part = RowsPart::read(Bytes(&first)).unwrap();
        assert_eq!((part.parts, part.part, part.whole_bytes, part.bytes), (2, 1, Some(9), &b"x"[..]));
        assert_eq!(RowsPart::read(Bytes(&[2, 0, 0, 0, 2, 0, 0, 0, 0, b'y'])).unwrap().bytes, b"y");
        for (at, byte) in [(0, 0), (4, 0), (4, 3), (8, 0), (8, 3)] {
            let mut other = first;
            other[at] = byte;
            assert!(RowsPart::read(Bytes(&other)).is_err(), "{at}");
        }
    }
}
