//! The list of the extents of a backup: what a restore takes from where, and what an incremental backup need not copy.
//!
//! ```text
//!   0            8         12                 14       16          32
//!   | "TEAKEXTS" | version | backup in chain  | kinds  | engine id | spaces ... | XXH3-64 of all before it |
//!   space:  number 4 | extents 8 | extents
//!   extent: offset 8 | stored bytes 4 | checksum 8 | origin 2 | flags 1
//! kinds: 1 there is a list of tables in memory, too
//! flags: 1 it leads to other extents, 2 the newest image is known to name it
//! ```
//! Numbers are little-endian. A space without extents has a file all the same, with its header. The list of an
//! incremental backup has all that a restore needs, also what lies in the backups below it.

use std::collections::BTreeMap;
use std::path::Path;

use crate::file::{FileSystem, OpenMode};
use crate::store::{checksum, SMALLEST_UNIT};
use crate::{Error, Result};

const MAGIC: &[u8; 8] = b"TEAKEXTS";
const VERSION: u32 = 1;
const HEADER_BYTES: usize = 32;
const SPACE_BYTES: usize = 12;
const EXTENT_BYTES: usize = 23;
const LISTS_MEMORY: u16 = 1;
const LEADS_ON: u8 = 1;
const CURRENT: u8 = 2;

/// An extent of a backup.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ListedExtent {
    pub offset: u64,
    pub stored_bytes: u32,
    /// Of the stored bytes.
    pub checksum: u64,
    /// The backup whose files have it, counted from the full one, which is 0.
    pub origin: u16,
    /// It names other extents.
    pub leads_on: bool,
    /// The image that the backup ends with is known to name it.
    pub current: bool,
}

impl ListedExtent {
    pub fn end(&self) -> u64 {
        self.offset.saturating_add(u64::from(self.stored_bytes))
    }
}

/// The extents of a backup, also of those that lie in the backups below it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExtentList {
    /// The engine that was copied.
    pub engine_id: [u8; 16],
    /// 0 for a full backup; for an incremental one, how many are below it.
    pub backup: u16,
    /// The backup says which tables in memory it has; those of before there were such lists do not.
    pub lists_memory: bool,
    /// By number of the space, and by offset; none overlaps another.
    pub(super) spaces: BTreeMap<u32, Vec<ListedExtent>>,
}

impl ExtentList {
    /// Bytes of the extents that a restore writes.
    pub fn bytes(&self) -> u64 {
        self.extents().map(|extent| u64::from(extent.stored_bytes)).sum()
    }

    /// Bytes of those that this backup has itself.
    pub fn own_bytes(&self) -> u64 {
        let own = self.extents().filter(|extent| extent.origin == self.backup);
        own.map(|extent| u64::from(extent.stored_bytes)).sum()
    }

    fn extents(&self) -> impl Iterator<Item = &ListedExtent> {
        self.spaces.values().flatten()
    }

    /// Reads the list of a backup.
    pub fn read(fs: &dyn FileSystem, path: &Path) -> Result<ExtentList> {
        let file = fs.open(path, OpenMode::ReadOnly)?;
        let mut bytes = vec![0; file.len()? as usize];
        file.read_exact_at(0, &mut bytes)?;
        ExtentList::decode(&bytes).map_err(|detail| Error::corrupt(file.path(), 0, detail))
    }

    /// The list as it is stored.
    pub fn encode(&self) -> Vec<u8> {
        let extents: usize = self.spaces.values().map(Vec::len).sum();
        let length = HEADER_BYTES + self.spaces.len() * SPACE_BYTES + extents * EXTENT_BYTES + 8;
        let mut bytes = Vec::with_capacity(length);
        bytes.extend_from_slice(MAGIC);
        bytes.extend_from_slice(&VERSION.to_le_bytes());
        bytes.extend_from_slice(&self.backup.to_le_bytes());
        let kinds = if self.lists_memory { LISTS_MEMORY } else { 0 };
        bytes.extend_from_slice(&kinds.to_le_bytes());
        bytes.extend_from_slice(&self.engine_id);
        for (space, extents) in &self.spaces {
            bytes.extend_from_slice(&space.to_le_bytes());
            bytes.extend_from_slice(&(extents.len() as u64).to_le_bytes());
            for extent in extents {
                bytes.extend_from_slice(&extent.offset.to_le_bytes());
                bytes.extend_from_slice(&extent.stored_bytes.to_le_bytes());
                bytes.extend_from_slice(&extent.checksum.to_le_bytes());
                bytes.extend_from_slice(&extent.origin.to_le_bytes());
                let leads_on = if extent.leads_on { LEADS_ON } else { 0 };
                bytes.push(leads_on | if extent.current { CURRENT } else { 0 });
            }
        }
        let sum = checksum(&bytes);
        bytes.extend_from_slice(&sum.to_le_bytes());
        bytes
    }

    fn decode(bytes: &[u8]) -> std::result::Result<ExtentList, String> {
        if bytes.get(..8) != Some(MAGIC) {
            return Err("this is no list of extents".into());
        }
        let (body, sum) = bytes.split_last_chunk::<8>().ok_or("the list of extents is cut short")?;
        if checksum(body) != u64::from_le_bytes(*sum) {
            return Err("the checksum of the list of extents is wrong".into());
        }
        let mut rest = Bytes(&body[8..]);
        let version = u32::from_le_bytes(rest.take()?);
        if version != VERSION {
            return Err(format!("a list of extents of version {version}; this program reads {VERSION}"));
        }
        let backup = u16::from_le_bytes(rest.take()?);
        let lists_memory = u16::from_le_bytes(rest.take()?) & LISTS_MEMORY != 0;
        let engine_id = rest.take()?;
        let mut spaces = BTreeMap::new();
        while !rest.0.is_empty() {
            let space = u32::from_le_bytes(rest.take()?);
            let extents = u64::from_le_bytes(rest.take()?);
            spaces.insert(space, rest.extents(extents, backup)?);
        }
        Ok(ExtentList { engine_id, backup, lists_memory, spaces })
    }
}

/// What is still to be decoded.
struct Bytes<'a>(&'a [u8]);

impl Bytes<'_> {
    fn take<const N: usize>(&mut self) -> std::result::Result<[u8; N], String> {
        let (taken, rest) = self.0.split_first_chunk().ok_or("the list of extents is cut short")?;
        self.0 = rest;
        Ok(*taken)
    }

    /// So many extents, in order and apart from each other.
    fn extents(&mut self, count: u64, backup: u16) -> std::result::Result<Vec<ListedExtent>, String> {
        if count > (self.0.len() / EXTENT_BYTES) as u64 {
            return Err("the list of extents is cut short".into());
        }
        let mut extents: Vec<ListedExtent> = Vec::with_capacity(count as usize);
        for _ in 0..count {
            let extent = self.extent()?;
            let before = extents.last().map_or(0, ListedExtent::end);
            if extent.offset < before || extent.offset % SMALLEST_UNIT != 0 || extent.origin > backup {
                return Err(format!("an impossible extent at {} in the list", extent.offset));
            }
            extents.push(extent);
        }
        Ok(extents)
    }

    fn extent(&mut self) -> std::result::Result<ListedExtent, String> {
        let offset = u64::from_le_bytes(self.take()?);
        let stored_bytes = u32::from_le_bytes(self.take()?);
        let checksum = u64::from_le_bytes(self.take()?);
        let origin = u16::from_le_bytes(self.take()?);
        let [flags] = self.take()?;
        let (leads_on, current) = (flags & LEADS_ON != 0, flags & CURRENT != 0);
        Ok(ListedExtent { offset, stored_bytes, checksum, origin, leads_on, current })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list() -> ExtentList {
        let extent = |offset, origin, leads_on| ListedExtent {
            offset,
            stored_bytes: 700,
            checksum: 0x1234_5678_9abc_def0 ^ offset,
            origin,
            leads_on,
            current: origin == 1,
        };
        let spaces = [(0, vec![extent(4096, 0, true), extent(5120, 1, false)]), (7, vec![])];
        ExtentList { engine_id: *b"0123456789abcdef", backup: 1, lists_memory: true, spaces: spaces.into() }
    }

    #[test]
    fn a_list_is_read_as_it_was_written() {
        let list = list();
        assert_eq!(ExtentList::decode(&list.encode()).unwrap(), list);
        assert_eq!((list.bytes(), list.own_bytes()), (1400, 700));
    }

    #[test]
    fn a_damaged_list_is_refused_whatever_its_checksum_says() {
        let bytes = list().encode();
        for cut in 0..bytes.len() {
            assert!(ExtentList::decode(&bytes[..cut]).is_err(), "{cut}");
        }
        for at in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[at] ^= 0x81;
            assert!(ExtentList::decode(&damaged).is_err(), "{at}");
            // With a checksum that fits it may be another list, and must not be more.
            let body = damaged.len() - 8;
            let sum = checksum(&damaged[..body]);
            damaged[body..].copy_from_slice(&sum.to_le_bytes());
            if let Ok(other) = ExtentList::decode(&damaged) {
                assert_eq!(ExtentList::decode(&other.encode()).unwrap(), other);
            }
        }
    }
}
