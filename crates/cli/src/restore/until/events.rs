//! The frame of a binary log's events, as MariaDB writes them; all numbers are little-endian.
//!
//! ```text
//! file:      fe 'b' 'i' 'n' | event | event ...
//! event:     time:4 type:1 server:4 length:4 end:4 flags:2 | body
//! GTID:      number:8 domain:4 flags:1 ...
//! GTID list: count:4 (28 bits) | domain:4 server:4 number:8 | ...     the last of all that is in the logs before
//! rotate:    position:8 name of the next log
//! ```

use super::gtids::Gtid;
use crate::backup::BackupError;
use std::fs::File;
use std::io::{BufReader, Read};
use std::path::{Path, PathBuf};

const MAGIC: &[u8; 4] = b"\xfebin";
const HEADER: usize = 19;
/// Of a body this much is enough: a GTID list is the longest that is read.
const LONGEST_BODY: u64 = 1 << 20;

/// What is to be known of an event.
#[derive(Debug, PartialEq)]
pub enum Kind {
    Gtid(Gtid),
    /// The last of each domain and server in the logs before.
    List(Vec<Gtid>),
    /// Another log follows.
    Rotate,
    /// Nothing of a transaction.
    Frame,
    /// What may be the end of a transaction.
    Ending,
    /// Within one.
    Other,
    /// All that follows is encrypted.
    Encryption,
}

#[derive(Debug, PartialEq)]
pub struct Event {
    /// Where it begins and ends in the file.
    pub begin: u64,
    pub end: u64,
    /// When it was written, in seconds since 1970.
    pub time: u64,
    pub kind: Kind,
}

/// The events of a file. They end where the file was cut, too: in a log that is being written that is its end.
pub struct Events {
    path: PathBuf,
    file: BufReader<File>,
    at: u64,
    size: u64,
}

impl Events {
    pub fn open(path: &Path) -> Result<Events, BackupError> {
        let opened = File::open(path).and_then(|file| Ok((file.metadata()?.len(), file)));
        let (size, file) = opened.map_err(BackupError::io("cannot open", path))?;
        let mut events = Events { path: path.to_path_buf(), file: BufReader::new(file), at: 4, size };
        let mut magic = [0; 4];
        let read = events.file.read_exact(&mut magic);
        match read.is_ok() && magic == *MAGIC {
            true => Ok(events),
            false => Err(BackupError::damaged(path, "this is no binary log")),
        }
    }

    /// The next one, if it is there wholly.
    pub fn next(&mut self) -> Result<Option<Event>, BackupError> {
        if self.size - self.at < HEADER as u64 {
            return Ok(None);
        }
        let mut header = [0; HEADER];
        self.read(&mut header)?;
        let (time, server, length) = (number(&header, 0), number(&header, 5), u64::from(number(&header, 9)));
        if length < HEADER as u64 || length > self.size - self.at {
            return Ok(None);
        }
        let left = length - HEADER as u64;
        let is_read = matches!(header[4], 162 | 163);
        let mut body = vec![0; if is_read { left.min(LONGEST_BODY) as usize } else { 0 }];
        self.read(&mut body)?;
        let skipped = self.file.seek_relative((left - body.len() as u64) as i64);
        skipped.map_err(BackupError::io("cannot read", &self.path))?;
        let kind = self.kind(header[4], server, &body)?;
        let begin = self.at;
        self.at += length;
        Ok(Some(Event { begin, end: self.at, time: time.into(), kind }))
    }

    fn read(&mut self, buffer: &mut [u8]) -> Result<(), BackupError> {
        self.file.read_exact(buffer).map_err(BackupError::io("cannot read", &self.path))
    }

    fn kind(&self, kind: u8, server: u32, body: &[u8]) -> Result<Kind, BackupError> {
        let short = || BackupError::damaged(&self.path, format!("the event at {} is too short", self.at));
        Ok(match kind {
            4 => Kind::Rotate,
            // Stop, format description, checkpoint of the binary log.
            3 | 15 | 161 => Kind::Frame,
            // Statement, XID, XA PREPARE.
            2 | 16 | 38 => Kind::Ending,
            164 => Kind::Encryption,
            162 => {
                let body = body.get(..12).ok_or_else(short)?;
                Kind::Gtid(Gtid { domain: number(body, 8), server, number: long(body, 0) })
            }
            163 => {
                let count = number(body.get(..4).ok_or_else(short)?, 0) as usize & 0x0fff_ffff;
                let gtids = body.get(4..).unwrap_or_default().chunks_exact(16).take(count);
                let list: Vec<_> = gtids
                    .map(|gtid| Gtid {
                        domain: number(gtid, 0),
                        server: number(gtid, 4),
                        number: long(gtid, 8),
                    })
                    .collect();
                match list.len() == count {
                    true => Kind::List(list),
                    false => return Err(short()),
                }
            }
            _ => Kind::Other,
        })
    }
}

/// Four bytes of a slice that has them.
fn number(bytes: &[u8], at: usize) -> u32 {
    (0..4).fold(0, |number, i| number | u32::from(bytes[at + i]) << (8 * i))
}

fn long(bytes: &[u8], at: usize) -> u64 {
    u64::from(number(bytes, at)) | u64::from(number(bytes, at + 4)) << 32
}
