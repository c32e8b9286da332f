//! Events about the log itself, and those of both families that have no better place.

use super::query::file_name;
use crate::bytes::Bytes;
use crate::error::Problem;

/// The log goes on in another file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rotate<'a> {
    /// The other file.
    pub file: &'a [u8],
    /// Where in it.
    pub position: u64,
}

impl<'a> Rotate<'a> {
    /// Logs of MySQL 3.23 had no position.
    pub(crate) fn read(mut bytes: Bytes<'a>, fixed_bytes: usize) -> Result<Rotate<'a>, Problem> {
        let what = "a rotate event";
        let mut fixed = Bytes(bytes.take(fixed_bytes, what)?);
        let position = if fixed.is_empty() { 4 } else { fixed.u64(what)? };
        Ok(Rotate { file: file_name(bytes.rest())?, position })
    }
}

/// The server that sends has nothing to send, and tells where it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Heartbeat<'a> {
    /// The file that it reads.
    pub file: &'a [u8],
    /// Where in it; the older kind has it in the header alone.
    pub position: Option<u64>,
}

impl<'a> Heartbeat<'a> {
    pub(crate) fn read(bytes: Bytes<'a>) -> Result<Heartbeat<'a>, Problem> {
        Ok(Heartbeat { file: file_name(bytes.0)?, position: None })
    }

    /// Fields with their numbers and lengths: 1 is the name, 2 the position, 0 ends them.
    pub(crate) fn read_v2(mut bytes: Bytes<'a>) -> Result<Heartbeat<'a>, Problem> {
        let what = "a heartbeat";
        let (mut file, mut position) = (&b""[..], None);
        while !bytes.is_empty() {
            let field = bytes.packed(what)?;
            if field == 0 {
                break;
            }
            let mut value = Bytes(bytes.packed_string(what)?);
            match field {
                1 => file = value.rest(),
                2 => position = Some(value.packed(what)?),
                _ => (),
            }
        }
        Ok(Heartbeat { file: file_name(file)?, position })
    }
}

/// Something is missing from the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Incident<'a> {
    /// 1: events are lost.
    pub number: u16,
    /// What the server says of it.
    pub message: &'a [u8],
}

impl<'a> Incident<'a> {
    pub(crate) fn read(mut bytes: Bytes<'a>, fixed_bytes: usize) -> Result<Incident<'a>, Problem> {
        let what = "an incident event";
        let number = Bytes(bytes.take(fixed_bytes, what)?).u16(what)?;
        if number > 1 {
            return Err(Problem::invalid(format!("{what} of the unknown number {number}")));
        }
        Ok(Incident { number, message: bytes.short_string(what)? })
    }
}

/// A file of MySQL that holds one large transaction: where that ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LargeTransaction {
    /// Where in the file the transaction's last event begins.
    pub last_event_at: u64,
    /// The type of that.
    pub last_event_code: u8,
}

impl LargeTransaction {
    pub(crate) fn read(mut bytes: Bytes<'_>) -> Result<LargeTransaction, Problem> {
        let what = "a large_transaction_header event";
        let version = bytes.u8(what)?;
        if version != 1 {
            return Err(Problem::invalid(format!("{what} of version {version}")));
        }
        Ok(LargeTransaction { last_event_at: bytes.u64(what)?, last_event_code: bytes.u8(what)? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rotation_names_file_and_position() {
        let bytes = b"\x04\0\0\0\0\0\0\0b.000002";
        let rotate = Rotate { file: b"b.000002", position: 4 };
        assert_eq!(Rotate::read(Bytes(bytes), 8), Ok(rotate));
        assert!(Rotate::read(Bytes(&bytes[..8]), 8).is_err() && Rotate::read(Bytes(&bytes[..7]), 8).is_err());
    }

    #[test]
    fn heartbeats_of_both_kinds_tell_the_file() {
        assert_eq!(Heartbeat::read(Bytes(b"b.1\0")), Ok(Heartbeat { file: b"b.1", position: None }));
        let newer = b"\x09\x01x\x01\x03b.1\x02\x03\xfc\x01\x02\x00";
        assert_eq!(Heartbeat::read_v2(Bytes(newer)), Ok(Heartbeat { file: b"b.1", position: Some(513) }));
        for end in [0, 4, 6, 12] {
            assert!(Heartbeat::read_v2(Bytes(&newer[..end])).is_err(), "{end}");
        }
    }

    #[test]
    fn an_incident_has_number_and_message() {
        let incident = Incident { number: 1, message: b"lost" };
        assert_eq!(Incident::read(Bytes(b"\x01\0\x04lost"), 2), Ok(incident));
        assert!(Incident::read(Bytes(b"\x01\0\x05lost"), 2).is_err());
        assert!(Incident::read(Bytes(b"\x02\0\x04lost"), 2).is_err());
        let large = b"\x01\x09\0\0\0\0\0\0\0\x10padding";
        assert_eq!(LargeTransaction::read(Bytes(large)).unwrap().last_event_at, 9);
        assert!(LargeTransaction::read(Bytes(b"\x02\x09\0\0\0\0\0\0\0\x10")).is_err());
    }
}
