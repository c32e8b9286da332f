//! The record of one table.

use crate::options::{Compression, Packing, Residence, TreeSpec};
use crate::types::TreeId;
use std::collections::BTreeSet;

/// Without links. Version 1 had no level of compression.
const VERSION: u8 = 2;
/// With links, which are between the trees and the caller's bytes.
const VERSION_WITH_LINKS: u8 = 3;
/// Of a guarded table: as 3, but that there may be no links.
const VERSION_GUARDED: u8 = 4;
/// Of a table in memory: as 4; behind the links whether it is guarded, and its limit in bytes.
const VERSION_IN_MEMORY: u8 = 5;

/// Why bytes are not a record.
/// In the number of a tree's compression: large values that are alike are put together. Unknown to builds that cannot.
const SIMILARITY: u8 = 0x80;

const NOT_UTF8: &str = "a name in a table record is not UTF-8";

/// What one table says of its relation to another, by name: what it means is the caller's. The other need not exist.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Link {
    /// No two links of an engine have one name; empty: it has none.
    pub name: String,
    /// The table that it leads to.
    pub target: String,
    /// The caller's bytes, not interpreted.
    pub body: Vec<u8>,
}

/// One table: its file, its trees, and what the caller wants to keep with it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableRecord {
    /// The number of the file all its trees live in, if it has one.
    pub space: u32,
    /// Where its rows are.
    pub residence: Residence,
    /// Its trees, in the caller's order.
    pub trees: Vec<(TreeId, TreeSpec)>,
    /// Its links to other tables, in the caller's order.
    pub links: Vec<Link>,
    /// The caller's bytes, not interpreted.
    pub meta: Vec<u8>,
    /// The caller's rows are of a kind that builds from before guards do not know: they refuse the record.
    pub guarded: bool,
}

impl TableRecord {
    /// As stored in the catalog.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(7 + 14 * self.trees.len() + self.meta.len());
        let version = match (self.residence, self.guarded, self.links.is_empty()) {
            (Residence::Memory { .. }, _, _) => VERSION_IN_MEMORY,
            (Residence::Temporary { .. }, _, _) => unreachable!("a temporary table in the catalog"),
            (Residence::File, true, _) => VERSION_GUARDED,
            (Residence::File, false, true) => VERSION,
            (Residence::File, false, false) => VERSION_WITH_LINKS,
        };
        out.push(version);
        out.extend_from_slice(&self.space.to_le_bytes());
        out.extend_from_slice(&(self.trees.len() as u16).to_le_bytes());
        for (id, spec) in &self.trees {
            out.extend_from_slice(&id.to_le_bytes());
            out.extend_from_slice(&spec.block_bytes.to_le_bytes());
            out.push(spec.packing.compression as u8 | if spec.packing.similarity { SIMILARITY } else { 0 });
            out.push(spec.packing.level);
        }
        if version != VERSION {
            out.extend_from_slice(&(self.links.len() as u16).to_le_bytes());
        }
        for link in &self.links {
            for bytes in [link.name.as_bytes(), link.target.as_bytes(), &link.body] {
                out.extend_from_slice(&(bytes.len() as u16).to_le_bytes());
                out.extend_from_slice(bytes);
            }
        }
        if let Residence::Memory { limit_bytes } = self.residence {
            out.push(u8::from(self.guarded));
            out.extend_from_slice(&limit_bytes.to_le_bytes());
        }
        out.extend_from_slice(&self.meta);
        debug_assert_eq!(TableRecord::decode(&out).as_ref(), Ok(self), "what is written is what is read");
        out
    }

    /// Reads a stored record; the error says which check failed.
    pub fn decode(bytes: &[u8]) -> Result<TableRecord, String> {
        let mut rest = bytes;
        let version = take::<1>(&mut rest)?[0];
        if !(1..=VERSION_IN_MEMORY).contains(&version) {
            return Err(format!("table record of version {version}, this build reads {VERSION_IN_MEMORY}"));
        }
        let space = u32::from_le_bytes(take(&mut rest)?);
        let count = u16::from_le_bytes(take(&mut rest)?);
        let mut trees = Vec::with_capacity(usize::from(count));
        for _ in 0..count {
            let id = u64::from_le_bytes(take(&mut rest)?);
            let block_bytes = u32::from_le_bytes(take(&mut rest)?);
            let kind = take::<1>(&mut rest)?[0];
            let compression = match kind & !SIMILARITY {
                0 => Compression::None,
                1 => Compression::Lz4,
                2 => Compression::Zstd,
                3 => Compression::Recompress,
                _ => return Err(format!("unknown compression {kind} in a table record")),
            };
            let level = if version == 1 { 0 } else { take::<1>(&mut rest)?[0] };
            let similarity = kind & SIMILARITY != 0;
            trees.push((id, TreeSpec { block_bytes, packing: Packing { compression, level, similarity } }));
        }
        let links = if version < VERSION_WITH_LINKS { Vec::new() } else { decode_links(&mut rest)? };
        if version == VERSION_WITH_LINKS && links.is_empty() {
            return Err("a table record with links that has none".to_string());
        }
        let (residence, guarded) = match version {
            VERSION_IN_MEMORY => {
                let guarded = take::<1>(&mut rest)?[0] != 0;
                (Residence::Memory { limit_bytes: u64::from_le_bytes(take(&mut rest)?) }, guarded)
            }
            _ => (Residence::File, version == VERSION_GUARDED),
        };
        Ok(TableRecord { space, residence, trees, links, meta: rest.to_vec(), guarded })
    }

    /// Whether it has a file of its name.
    pub fn has_file(&self) -> bool {
        self.residence == Residence::File
    }

    /// The tables that its links lead to, each once.
    pub fn targets(&self) -> BTreeSet<&str> {
        self.links.iter().map(|link| link.target.as_str()).collect()
    }

    /// The names that its links have.
    pub fn link_names(&self) -> impl Iterator<Item = &str> {
        self.links.iter().map(|link| link.name.as_str()).filter(|name| !name.is_empty())
    }

    /// Its links are called `names` from now on, in their order; those beyond have none.
    pub fn rename_links(&mut self, names: &[&str]) {
        let names = names.iter().copied().chain(std::iter::repeat(""));
        self.links.iter_mut().zip(names).for_each(|(link, name)| link.name = name.to_string());
    }

    /// The same record with links that led to the table `from` leading to `to`.
    pub fn retargeted(&self, from: &str, to: &str) -> TableRecord {
        let mut new = self.clone();
        for link in new.links.iter_mut().filter(|link| link.target == from) {
            link.target = to.to_string();
        }
        new
    }
}

fn decode_links(rest: &mut &[u8]) -> Result<Vec<Link>, String> {
    let count = u16::from_le_bytes(take(rest)?);
    let mut links = Vec::new();
    for _ in 0..count {
        let name = text(cut(rest)?)?;
        let target = text(cut(rest)?)?;
        links.push(Link { name, target, body: cut(rest)?.to_vec() });
    }
    Ok(links)
}

fn text(bytes: &[u8]) -> Result<String, String> {
    String::from_utf8(bytes.to_vec()).map_err(|_| NOT_UTF8.to_string())
}

/// Cuts off two bytes of length and as many bytes as they say.
fn cut<'a>(rest: &mut &'a [u8]) -> Result<&'a [u8], String> {
    let length = usize::from(u16::from_le_bytes(take(rest)?));
    let (head, tail) = rest.split_at_checked(length).ok_or("the row ends within a link")?;
    *rest = tail;
    Ok(head)
}

/// Cuts the next `N` bytes off.
pub(super) fn take<const N: usize>(rest: &mut &[u8]) -> Result<[u8; N], String> {
    match rest.split_first_chunk::<N>() {
        Some((head, tail)) => {
            *rest = tail;
            Ok(*head)
        }
        None => Err(format!("the row ends where {N} more bytes should be")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const COMPRESSIONS: [Compression; 4] =
        [Compression::None, Compression::Lz4, Compression::Zstd, Compression::Recompress];

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(256))]

        #[test]
        fn a_record_comes_back_as_it_was(
            space: u32,
            trees in proptest::collection::vec(
                (any::<u64>(), any::<u32>(), 0usize..4, any::<u8>(), any::<bool>()), 0..9),
            links in proptest::collection::vec(("[a-z]{0,9}", "[a-z/]{0,9}", any::<[u8; 3]>()), 0..4),
            meta in proptest::collection::vec(any::<u8>(), 0..100),
            guarded: bool,
            limit in proptest::option::of(any::<u64>()),
        ) {
            let trees = trees
                .into_iter()
                .map(|(id, block_bytes, c, level, similarity)| {
                    let compression = COMPRESSIONS[c];
                    (id, TreeSpec { block_bytes, packing: Packing { compression, level, similarity } })
                })
                .collect();
            let links = links
                .into_iter()
                .map(|(name, target, body)| Link { name, target, body: body.to_vec() })
                .collect();
            let residence = limit.map_or(Residence::File, |limit_bytes| Residence::Memory { limit_bytes });
            let record = TableRecord { space, residence, trees, links, meta, guarded };
            prop_assert_eq!(TableRecord::decode(&record.encode()), Ok(record));
        }

        #[test]
        fn damaged_bytes_give_an_error_or_a_record_never_a_panic(bytes in proptest::collection::vec(any::<u8>(), 0..64)) {
            let _ = TableRecord::decode(&bytes);
        }
    }

    #[test]
    fn a_record_without_level_is_still_read() {
        let old = [
            &[1][..],
            &7u32.to_le_bytes(),
            &1u16.to_le_bytes(),
            &9u64.to_le_bytes(),
            &4096u32.to_le_bytes(),
            &[1, 88],
        ];
        let spec = TreeSpec { block_bytes: 4096, packing: Compression::Lz4.into() };
        let record = TableRecord {
            space: 7,
            residence: Residence::File,
            trees: vec![(9, spec)],
            links: vec![],
            meta: vec![88],
            guarded: false,
        };
        assert_eq!(TableRecord::decode(&old.concat()), Ok(record));
    }

    #[test]
    fn a_newer_version_is_refused() {
        let mut bytes = TableRecord {
            space: 1,
            residence: Residence::File,
            trees: vec![],
            links: vec![],
            meta: vec![],
            guarded: false,
        }
        .encode();
        bytes[0] = 6;
        assert!(TableRecord::decode(&bytes).unwrap_err().contains("version 6"));
    }

    #[test]
    fn a_record_without_links_and_guard_is_one_that_older_builds_read() {
        let link = Link { name: "l".into(), target: "t".into(), body: vec![1] };
        let without = TableRecord {
            space: 1,
            residence: Residence::File,
            trees: vec![],
            links: vec![],
            meta: vec![],
            guarded: false,
        };
        let with = TableRecord { links: vec![link], ..without.clone() };
        let guarded = TableRecord { guarded: true, ..without.clone() };
        assert_eq!((without.encode()[0], with.encode()[0], guarded.encode()[0]), (2, 3, 4));
        assert_eq!(with.retargeted("t", "u").targets().into_iter().collect::<Vec<_>>(), ["u"]);
        assert_eq!(with.retargeted("x", "u"), with);
    }
}
