//! Rows of the directory tree: what the last checkpoint knows about each tree and space.
//!
//! ```text
//! key               value
//! 'R' tree u64      version u8 = 1 | tree root (63 bytes, see docs/format.md)
//! 'D' tree u64      version u8 = 1 | number u16 | block address     the tree's dictionary, by its number in the space
//! 'M' space u32     version u8 = 1 | block address of the space's free map (27 bytes)
//! 'C' tree u64      version u8 = 1 | counter u64     the persisted AUTO_INCREMENT counter of the table whose first tree this is
//! 'S' tree u64      version u8 = 1 | bytes     what the caller knows of the content of the table whose first tree this is
//! 'L'               version u8 = 2 | lsns u64        commits that are contained in the row counts of the roots, see `docs/format.md`
//! 'L' space u32     the same of a space whose image is older: its table could not be recovered
//! 'O' space u32     version u8 = 1            the space's file is of no table, and could not be removed so far
//! ```

use super::record::take;
use crate::arrays::whole_arrays;
use crate::log::Lsn;
use crate::store::{BlockAddress, TreeRoot};
use crate::types::TreeId;
use std::collections::BTreeMap;

const VERSION: u8 = 1;

/// The key of the row that tells which commits the stored row counts contain.
pub const COUNTED_KEY: &[u8] = b"L";

/// Key of the same for one space that differs from the others.
pub fn counted_apart_key(space: u32) -> [u8; 5] {
    let mut key = [b'L'; 5];
    key[1..].copy_from_slice(&space.to_be_bytes());
    key
}

/// The space in such a key.
pub fn space_of_counted_key(key: &[u8]) -> Option<u32> {
    let number = key.strip_prefix(COUNTED_KEY)?;
    number.try_into().ok().map(u32::from_be_bytes)
}

/// With this the keys of files of no table begin.
pub const ORPHANS: &[u8] = b"O";

/// Key of the row that says that the space's file is of no table.
pub fn orphan_key(space: u32) -> [u8; 5] {
    let mut key = [b'O'; 5];
    key[1..].copy_from_slice(&space.to_be_bytes());
    key
}

/// The space in such a key.
pub fn space_of_orphan_key(key: &[u8]) -> Option<u32> {
    let number = key.strip_prefix(ORPHANS)?;
    number.try_into().ok().map(u32::from_be_bytes)
}

/// The row has nothing besides its key.
pub fn encode_orphan() -> Vec<u8> {
    versioned(&[])
}

/// Whether the row is one that this build knows.
pub fn decode_orphan(bytes: &[u8]) -> Result<(), String> {
    body::<0>(bytes).map(drop)
}

/// Key of a tree's root.
pub fn root_key(tree: TreeId) -> [u8; 9] {
    long_key(b'R', tree)
}

/// Key of a tree's dictionary.
pub fn dictionary_key(tree: TreeId) -> [u8; 9] {
    long_key(b'D', tree)
}

/// Key of a table's counter, by its first tree.
pub fn counter_key(tree: TreeId) -> [u8; 9] {
    long_key(b'C', tree)
}

/// Key of what the caller knows of a table's content, by its first tree.
pub fn digest_key(tree: TreeId) -> [u8; 9] {
    long_key(b'S', tree)
}

/// Key of a space's free map.
pub fn map_key(space: u32) -> [u8; 5] {
    let mut key = [b'M'; 5];
    key[1..].copy_from_slice(&space.to_be_bytes());
    key
}

fn long_key(kind: u8, number: u64) -> [u8; 9] {
    let mut key = [kind; 9];
    key[1..].copy_from_slice(&number.to_be_bytes());
    key
}

/// A root as stored.
pub fn encode_root(root: &TreeRoot) -> Vec<u8> {
    versioned(&root.encode())
}

/// Reads a stored root; the error says which check failed.
pub fn decode_root(bytes: &[u8]) -> Result<TreeRoot, String> {
    let body = body::<{ TreeRoot::ENCODED_BYTES }>(bytes)?;
    TreeRoot::decode(&body).ok_or_else(|| "malformed tree root in a directory row".to_string())
}

/// The address of a free map as stored.
pub fn encode_map(address: &BlockAddress) -> Vec<u8> {
    versioned(&address.encode())
}

/// Reads the stored address of a free map.
pub fn decode_map(bytes: &[u8]) -> Result<BlockAddress, String> {
    let body = body::<{ BlockAddress::ENCODED_BYTES }>(bytes)?;
    BlockAddress::decode(&body).ok_or_else(|| "malformed block address in a directory row".to_string())
}

/// A dictionary of a tree: its number within the space, and where its words are.
pub type StoredDictionary = (u16, BlockAddress);

/// The same as stored.
pub fn encode_dictionary(&(number, address): &StoredDictionary) -> Vec<u8> {
    versioned(&[&number.to_le_bytes()[..], &address.encode()].concat())
}

/// Reads a stored dictionary.
pub fn decode_dictionary(bytes: &[u8]) -> Result<StoredDictionary, String> {
    let body = body::<{ 2 + BlockAddress::ENCODED_BYTES }>(bytes)?;
    let number = u16::from_le_bytes([body[0], body[1]]);
    match BlockAddress::decode(&body[2..]) {
        Some(address) if number > 0 && address.dictionary == 0 => Ok((number, address)),
        _ => Err("malformed dictionary in a directory row".to_string()),
    }
}

/// A number as stored (counters, log positions).
pub fn encode_number(number: u64) -> Vec<u8> {
    versioned(&number.to_le_bytes())
}

/// Reads a stored number.
pub fn decode_number(bytes: &[u8]) -> Result<u64, String> {
    body(bytes).map(u64::from_le_bytes)
}

/// What the caller knows of a table's content, as stored.
pub fn encode_digest(digest: &[u8]) -> Vec<u8> {
    versioned(digest)
}

/// Reads the same.
pub fn decode_digest(bytes: &[u8]) -> Result<Vec<u8>, String> {
    unversioned(bytes).map(<[u8]>::to_vec)
}

/// Which commits row counts contain, and which the image may.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Counted {
    /// All whose records begin before it.
    pub before: Lsn,
    /// The image has nothing of records that begin here or later.
    pub end: Lsn,
    /// And these, which were published before their turn.
    pub early: Vec<Lsn>,
}

impl Counted {
    /// What the image has that was there when the log began, at `from`.
    pub fn nothing(from: Lsn) -> Counted {
        Counted { before: from, end: from, early: Vec::new() }
    }

    /// Whether they contain the commit whose record is at `lsn`.
    pub fn contains(&self, lsn: Lsn) -> bool {
        lsn < self.before || self.early.contains(&lsn)
    }
}

/// What the images of all spaces contain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Contained {
    /// Of the spaces that are not in `apart`.
    pub common: Counted,
    /// Spaces of tables that could not take their part of the log: their images are as old as the replay that failed.
    pub apart: BTreeMap<u32, Counted>,
}

impl Contained {
    /// What the image of `space` contains.
    pub fn of(&self, space: u32) -> &Counted {
        self.apart.get(&space).unwrap_or(&self.common)
    }
}

/// Version 1 had no end.
const COUNTED_VERSION: u8 = 2;

/// The same as stored: the two positions, then the early ones.
pub fn encode_counted(counted: &Counted) -> Vec<u8> {
    let numbers = [&counted.before, &counted.end].into_iter().chain(&counted.early);
    let bytes = numbers.flat_map(|lsn| lsn.to_le_bytes());
    std::iter::once(COUNTED_VERSION).chain(bytes).collect()
}

/// Reads what [`encode_counted`] wrote.
pub fn decode_counted(bytes: &[u8]) -> Result<Counted, String> {
    let (&version, numbers) = bytes.split_first().ok_or("an empty row of counted commits")?;
    if version != COUNTED_VERSION {
        return Err(format!("version {version} of the row of counted commits"));
    }
    match whole_arrays::<_, 8>(numbers) {
        [before, end, early @ ..] if numbers.len() % 8 == 0 => {
            let early = early.iter().map(|lsn| u64::from_le_bytes(*lsn)).collect();
            Ok(Counted { before: u64::from_le_bytes(*before), end: u64::from_le_bytes(*end), early })
        }
        _ => Err("an odd row of counted commits".to_string()),
    }
}

fn versioned(body: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(1 + body.len());
    out.push(VERSION);
    out.extend_from_slice(body);
    out
}

fn unversioned(bytes: &[u8]) -> Result<&[u8], String> {
    let mut rest = bytes;
    match take::<1>(&mut rest)?[0] {
        VERSION => Ok(rest),
        other => Err(format!("directory row of version {other}, this build reads {VERSION}")),
    }
}

fn body<const N: usize>(bytes: &[u8]) -> Result<[u8; N], String> {
    let mut rest = unversioned(bytes)?;
    let body = take::<N>(&mut rest)?;
    match rest.len() {
        0 => Ok(body),
        n => Err(format!("{n} bytes too many in a directory row")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::Compression;

    #[test]
    fn rows_come_back_as_they_were_and_damaged_ones_are_errors() {
        let address = BlockAddress {
            offset: 4096,
            stored_bytes: 700,
            raw_bytes: 4000,
            checksum: 0x1234_5678_9abc_def0,
            compression: Compression::Zstd,
            in_parts: false,
            is_tight: false,
            dictionary: 7,
        };
        let root =
            TreeRoot { address, height: 2, entries: 12, leaves: 3, stored_bytes: 2048, raw_bytes: 4096 };
        assert_eq!(decode_root(&encode_root(&root)), Ok(root));
        assert_eq!(decode_map(&encode_map(&address)), Ok(address));
        let words = BlockAddress { dictionary: 0, ..address };
        assert_eq!(decode_dictionary(&encode_dictionary(&(3, words))), Ok((3, words)));
        for wrong in [(0, words), (3, address)] {
            assert!(decode_dictionary(&encode_dictionary(&wrong)).is_err());
        }
        assert_eq!(decode_number(&encode_number(77)), Ok(77));
        assert_eq!(decode_digest(&encode_digest(b"abc")), Ok(b"abc".to_vec()));
        assert!(decode_digest(b"").is_err() && decode_digest(b"\x02abc").is_err());
        for early in [vec![], vec![5, 80]] {
            let counted = Counted { before: 77, end: 90, early };
            assert_eq!(decode_counted(&encode_counted(&counted)), Ok(counted));
        }
        assert!([&[][..], &[1, 0, 0], &[1; 9], &[2; 9], &[2; 20]]
            .iter()
            .all(|bytes| decode_counted(bytes).is_err()));
        let bytes = encode_root(&root);
        for cut in 0..bytes.len() {
            assert!(decode_root(&bytes[..cut]).is_err());
        }
        assert!(decode_number(&[2, 0, 0, 0, 0, 0, 0, 0, 0]).is_err());
        assert!(decode_number(&[1, 0, 0, 0, 0, 0, 0, 0, 0, 0]).is_err());
        assert_eq!(space_of_counted_key(&counted_apart_key(258)), Some(258));
        assert_eq!(space_of_counted_key(COUNTED_KEY), None);
        assert_eq!(space_of_orphan_key(&orphan_key(258)), Some(258));
        assert!(decode_orphan(&encode_orphan()).is_ok() && decode_orphan(&[1, 0]).is_err());
    }
}
