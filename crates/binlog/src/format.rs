//! The event that says how the others are written.
//!
//! ```text
//! version of the format: 2 | version of the server: 50 | created: 4 | length of headers: 1
//! | length of the fixed part of each type of event, from type 1 on | kind of checksum: 1 | checksum: 4
//! ```
//!
//! The last two are there from MySQL 5.6.1 and MariaDB 5.3 on: this event has a checksum in its file also where the
//! others have none. Before MySQL 5.0 there was an event without lengths.

use super::bytes::{before_zero, Bytes};
use super::error::Problem;
use super::header::{EventType, HEADER_BYTES};

const SERVER_VERSION_BYTES: usize = 50;

/// What is behind each event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Checksum {
    /// Nothing.
    #[default]
    None,
    /// CRC-32 of the event, as zlib computes it, in 4 bytes.
    Crc32,
}

impl Checksum {
    /// How long it is.
    pub fn bytes(self) -> usize {
        match self {
            Checksum::None => 0,
            Checksum::Crc32 => 4,
        }
    }
}

/// Whose server wrote a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Family {
    /// MariaDB.
    MariaDb,
    /// MySQL, and what descends from it but MariaDB.
    MySql,
}

/// How the events of a log are written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Format {
    /// 4 since MySQL 5.0; 3 is that of MySQL 4.0 and 4.1.
    pub version: u16,
    /// Such as `10.11.18-MariaDB-log`.
    pub server_version: String,
    /// When the server was started, if this is its first log since then; else 0. Seconds of Unix time.
    pub created: u32,
    /// Of all events but this one, and those that a server makes up.
    pub header_bytes: usize,
    /// Of the fixed part of each type of event, which comes behind the header; the first is of type 1.
    pub fixed_bytes: Vec<u8>,
    /// What is behind each event.
    pub checksum: Checksum,
    /// Whose server wrote it.
    pub family: Family,
    /// Whether there is a checksum behind this event.
    pub(crate) has_own_checksum: bool,
}

impl Format {
    /// Of the event's bytes without its header; the checksum is still there.
    pub(crate) fn read(body: &[u8]) -> Result<Format, Problem> {
        let mut bytes = Bytes(body);
        let (version, server_version, created) = Format::read_start(&mut bytes)?;
        let header_bytes = usize::from(bytes.u8("the length of headers")?);
        if version != 4 || header_bytes < HEADER_BYTES {
            return Err(Problem::invalid(format!(
                "a format of version {version} with headers of {header_bytes} bytes is not known"
            )));
        }
        // Whether there are checksums hangs on this alone, so that a damaged version must not pass for an old one.
        let (family, numbers) = version_of(&server_version)
            .ok_or_else(|| Problem::invalid(format!("{server_version:?} is no version of a server")))?;
        let since = match family {
            Family::MariaDb => [5, 3, 0],
            Family::MySql => [5, 6, 1],
        };
        let mut checksum = Checksum::None;
        let mut lengths = bytes.rest();
        let has_own_checksum = numbers >= since;
        if has_own_checksum {
            let (rest, kind) = match lengths {
                [rest @ .., kind, _, _, _, _] => (rest, *kind),
                _ => return Err(Problem::invalid("a format description without the kind of checksums")),
            };
            lengths = rest;
            checksum = match kind {
                0 | 255 => Checksum::None,
                1 => Checksum::Crc32,
                other => return Err(Problem::invalid(format!("checksums of kind {other} are not known"))),
            };
        }
        let fixed_bytes = lengths.to_vec();
        Ok(Format {
            version,
            server_version,
            created,
            header_bytes,
            fixed_bytes,
            checksum,
            family,
            has_own_checksum,
        })
    }

    /// Of the first event of logs before MySQL 5.0.
    pub(crate) fn read_v3(body: &[u8]) -> Result<Format, Problem> {
        let (version, server_version, created) = Format::read_start(&mut Bytes(body))?;
        if version != 3 {
            return Err(Problem::invalid(format!("a format of version {version} is not known")));
        }
        // Types 1 to 14, as MySQL 4.0 and 4.1 wrote them.
        let fixed_bytes = vec![56, 11, 0, 8, 0, 18, 0, 4, 4, 4, 4, 18, 0, 0];
        Ok(Format {
            version,
            server_version,
            created,
            header_bytes: HEADER_BYTES,
            fixed_bytes,
            checksum: Checksum::None,
            family: Family::MySql,
            has_own_checksum: false,
        })
    }

    fn read_start(bytes: &mut Bytes<'_>) -> Result<(u16, String, u32), Problem> {
        let version = bytes.u16("the version of the format")?;
        let server_version = before_zero(bytes.take(SERVER_VERSION_BYTES, "the version of the server")?);
        let created = bytes.u32("the time of the log")?;
        Ok((version, String::from_utf8_lossy(server_version).into_owned(), created))
    }

    /// The length of the fixed part of an event. An event of a type that this has no length for is broken.
    pub(crate) fn fixed_bytes_of(&self, kind: EventType) -> Result<usize, Problem> {
        let length = self.fixed_bytes.get(usize::from(kind as u8).wrapping_sub(1));
        length.map(|&length| usize::from(length)).ok_or_else(|| {
            Problem::invalid(format!("the log's format description ends before type {}", kind as u8))
        })
    }
}

/// The family and the first three numbers of a version, of which the last may be missing. None of what servers that
/// write this format do not have: they begin with MySQL 5.0.
fn version_of(version: &str) -> Option<(Family, [u32; 3])> {
    let family = if version.contains("MariaDB") { Family::MariaDb } else { Family::MySql };
    let mut parts = version.splitn(3, '.');
    let mut number = || {
        let part = parts.next()?;
        let digits = part.len() - part.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        part[..digits].parse::<u32>().ok()
    };
    let (major, minor) = (number()?, number()?);
    let last = number().unwrap_or(0);
    (major >= 5).then_some((family, [major, minor, last]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn description(version: &str, kind: Option<u8>) -> Vec<u8> {
        let mut bytes = vec![4, 0];
        bytes.extend_from_slice(version.as_bytes());
        bytes.resize(2 + 50, 0);
        bytes.extend_from_slice(&[0, 0, 0, 0, 19, 56, 13, 0, 8]);
        if let Some(kind) = kind {
            bytes.extend_from_slice(&[kind, 1, 2, 3, 4]);
        }
        bytes
    }

    #[test]
    fn versions_tell_whether_there_are_checksums() {
        for (version, kind, family, checksum) in [
            ("10.11.18-MariaDB-log", Some(1), Family::MariaDb, Checksum::Crc32),
            ("5.3.0-MariaDB", Some(0), Family::MariaDb, Checksum::None),
            ("5.2.9-MariaDB", None, Family::MariaDb, Checksum::None),
            ("9.7.4-2", Some(1), Family::MySql, Checksum::Crc32),
            ("5.6.0-m4-log", None, Family::MySql, Checksum::None),
            ("5.1", None, Family::MySql, Checksum::None),
        ] {
            let format = Format::read(&description(version, kind)).unwrap();
            assert_eq!((format.family, format.checksum), (family, checksum), "{version}");
            assert_eq!(format.fixed_bytes, [56, 13, 0, 8], "{version}");
            assert_eq!(format.fixed_bytes_of(EventType::Rotate), Ok(8));
            assert!(format.fixed_bytes_of(EventType::Xid).is_err());
        }
    }

    #[test]
    fn what_is_not_known_is_refused() {
        assert!(Format::read(&description("9.7.4", Some(2))).is_err());
        assert!(Format::read(&description("9.7.4", None)[..57]).is_err());
        for version in ["", "4.1.22", "00.11.18-MariaDB", "x0.11.18", "5", "5.", "5.x.1"] {
            assert!(Format::read(&description(version, Some(1))).is_err(), "{version}");
        }
        let mut other = description("9.7.4", Some(1));
        other[0] = 5;
        assert!(Format::read(&other).is_err());
        assert!(Format::read_v3(&other[..56]).is_err());
    }
}
