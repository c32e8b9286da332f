//! What [`crate::rooms::hostile`] needs of this room.

use super::bundles::{BundleMap, BundleUse, ThinnedBundle};
use super::compression;
use super::dictionary::Dictionary;
use super::free_map::{self, FreeMap};
use super::superblock::{self, Features, Release, Superblock};
use super::{BlockAddress, TreeRoot, Unit};
use crate::slabs::Buffer;
use crate::Compression;

/// Whatever the bytes are, as one copy of a superblock, and with the right checksum.
pub(crate) fn superblock(bytes: &[u8]) {
    superblock::decode_any(bytes);
}

/// A superblock with everything that one may have.
pub(crate) fn sample_superblock(directory: TreeRoot, system_map: BlockAddress) -> Vec<u8> {
    superblock::encode(&Superblock {
        version: Superblock::VERSION,
        engine_id: [7; 16],
        checkpoint: 42,
        timestamp: 1000,
        replay_from: 4096,
        next_tree: 30,
        next_txn: 2000,
        next_space: 5,
        directory: Some(directory),
        system_map: Some(system_map),
        features: Features::default(),
        read_from: Release::READS_OURS,
        clean: true,
    })
}

/// The bytes of a compressed block as the file has them.
pub(crate) fn decompress(
    stored: &[u8],
    raw_bytes: usize,
    compression: Compression,
    dictionary: Option<&Dictionary>,
) -> Result<Buffer, String> {
    let read = |buffer: &mut [u8]| {
        buffer.copy_from_slice(stored);
        Ok(())
    };
    compression::decompress(stored.len(), raw_bytes, compression, dictionary, read)
        .unwrap_or_else(|error| Err(error.to_string()))
}

/// The reverse; as it is if it does not get smaller.
pub(crate) fn compress(raw: &[u8], compression: Compression, dictionary: Option<&Dictionary>) -> Vec<u8> {
    let compressed = compression::compress(raw, compression.into(), dictionary, raw.len());
    compressed.ok().flatten().map_or_else(|| raw.to_vec(), |compressed| compressed.to_vec())
}

/// A map of space 3.
pub(crate) fn free_map(bytes: &[u8]) {
    if let Ok(map) = free_map::decode(3, Unit::Fine, bytes) {
        assert!(map.ranges.windows(2).all(|two| two[0].0 + two[0].1 <= two[1].0));
        assert!(map.ranges.last().is_none_or(|(offset, length)| offset + length <= map.end));
    }
}

/// The same with some ranges.
pub(crate) fn sample_free_map() -> Vec<u8> {
    let ranges = (1..30).map(|i| (i * 100 * 512, (i % 7 + 1) * 512)).collect();
    free_map::encode(
        3,
        Unit::Fine,
        &FreeMap { generation: 9, end: 1 << 30, ranges, bundles: BundleMap::default(), areas: Vec::new() },
    )
}

/// One that tells of bundles.
pub(crate) fn sample_map_of_bundles(address: BlockAddress) -> Vec<u8> {
    let usage =
        BundleUse { bundles: 9, values: 200, value_bytes: 2_000_000, stored_bytes: 90_000, most_values: 64 };
    let bundle =
        |at: u64, of, dead| ThinnedBundle { address: BlockAddress { offset: at * 512, ..address }, of, dead };
    let bundles = BundleMap { usage, thinned: vec![bundle(20, 64, 1 << 63), bundle(30, 3, 0b101)] };
    free_map::encode(
        3,
        Unit::Fine,
        &FreeMap {
            generation: 9,
            end: 1 << 30,
            ranges: vec![(512, 1024)],
            bundles,
            areas: vec![(0, 1024), (4096, 8192)],
        },
    )
}
