//! The record of one table.

use crate::options::{Compression, Packing, TreeSpec};
use crate::types::TreeId;

/// Version 1 had no level of compression.
const VERSION: u8 = 2;

/// One table: its file, its trees, and what the caller wants to keep with it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableRecord {
    /// The file all its trees live in.
    pub space: u32,
    /// Its trees, in the caller's order.
    pub trees: Vec<(TreeId, TreeSpec)>,
    /// The caller's bytes, not interpreted.
    pub meta: Vec<u8>,
}

impl TableRecord {
    /// As stored in the catalog.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(7 + 14 * self.trees.len() + self.meta.len());
        out.push(VERSION);
        out.extend_from_slice(&self.space.to_le_bytes());
        out.extend_from_slice(&(self.trees.len() as u16).to_le_bytes());
        for (id, spec) in &self.trees {
            out.extend_from_slice(&id.to_le_bytes());
            out.extend_from_slice(&spec.block_bytes.to_le_bytes());
            out.push(spec.packing.compression as u8);
            out.push(spec.packing.level);
        }
        out.extend_from_slice(&self.meta);
        out
    }

    /// Reads a stored record; the error says which check failed.
    pub fn decode(bytes: &[u8]) -> Result<TableRecord, String> {
        let mut rest = bytes;
        let version = take::<1>(&mut rest)?[0];
        if !(1..=VERSION).contains(&version) {
            return Err(format!("table record of version {version}, this build reads {VERSION}"));
        }
        let space = u32::from_le_bytes(take(&mut rest)?);
        let count = u16::from_le_bytes(take(&mut rest)?);
        let mut trees = Vec::with_capacity(usize::from(count));
        for _ in 0..count {
            let id = u64::from_le_bytes(take(&mut rest)?);
            let block_bytes = u32::from_le_bytes(take(&mut rest)?);
            let compression = match take::<1>(&mut rest)?[0] {
                0 => Compression::None,
                1 => Compression::Lz4,
                2 => Compression::Zstd,
                other => return Err(format!("unknown compression {other} in a table record")),
            };
            let level = if version == 1 { 0 } else { take::<1>(&mut rest)?[0] };
            trees.push((id, TreeSpec { block_bytes, packing: Packing { compression, level } }));
        }
        Ok(TableRecord { space, trees, meta: rest.to_vec() })
    }
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

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(256))]

        #[test]
        fn a_record_comes_back_as_it_was(
            space: u32,
            trees in proptest::collection::vec((any::<u64>(), any::<u32>(), 0u8..3, any::<u8>()), 0..9),
            meta in proptest::collection::vec(any::<u8>(), 0..100),
        ) {
            let trees = trees
                .into_iter()
                .map(|(id, block_bytes, c, level)| {
                    let compression = [Compression::None, Compression::Lz4, Compression::Zstd][usize::from(c)];
                    (id, TreeSpec { block_bytes, packing: Packing { compression, level } })
                })
                .collect();
            let record = TableRecord { space, trees, meta };
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
        let record = TableRecord { space: 7, trees: vec![(9, spec)], meta: vec![88] };
        assert_eq!(TableRecord::decode(&old.concat()), Ok(record));
    }

    #[test]
    fn a_newer_version_is_refused() {
        let mut bytes = TableRecord { space: 1, trees: vec![], meta: vec![] }.encode();
        bytes[0] = 3;
        assert!(TableRecord::decode(&bytes).unwrap_err().contains("version 3"));
    }
}
