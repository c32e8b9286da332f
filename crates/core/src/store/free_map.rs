//! The free ranges of a space as a block on disk.
//!
//! ```text
//!  0            8          12  16           24    32      40
//!  | "TEAKFREE" | space id | 0 | generation | end | count | count x (gap, length) | bundles | areas | zeros
//!
//! bundles, if there are any, or areas: five figures (`BundleUse`), LEB128 | count, LEB128 | count x
//!                          (address of the bundle, 27 bytes | values u8 | which of them are dead, u64 little-endian)
//! areas, if there are any: count, LEB128 | count x (gap, length)
//! ```
//! `end` is in bytes. Gap (from the end of the range before, or from 0) and length are LEB128 in units of the file.
//! What lies past `end` is free too. The block is stored uncompressed; its checksum is in its address.

use super::address::MAX_FILE_BYTES;
use super::bundles::{BundleMap, BundleUse, ThinnedBundle};
use super::{fixed, u32_at, u64_at, BlockAddress, Unit};

const MAGIC: &[u8; 8] = b"TEAKFREE";
const PREAMBLE_BYTES: usize = 40;
/// Six numbers.
const LEAST_BUNDLES_BYTES: usize = 6;
const THINNED_BYTES: usize = BlockAddress::ENCODED_BYTES + 1 + 8;

/// What a map says.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct FreeMap {
    /// The checkpoint it was written for.
    pub generation: u64,
    /// Past this everything is free.
    pub end: u64,
    /// Free ranges (offset, length) in bytes, ascending, disjoint.
    pub ranges: Vec<(u64, u64)>,
    /// What is known of extents that hold several values.
    pub bundles: BundleMap,
    /// Parts of the file for small extents (offset, length), ascending, disjoint.
    pub areas: Vec<(u64, u64)>,
}

pub(super) fn encode(space: u32, unit: Unit, map: &FreeMap) -> Vec<u8> {
    let unit = unit.bytes();
    let mut out = Vec::with_capacity(PREAMBLE_BYTES + 4 * map.ranges.len());
    out.extend_from_slice(MAGIC);
    out.extend_from_slice(&space.to_le_bytes());
    out.extend_from_slice(&[0; 4]);
    out.extend_from_slice(&map.generation.to_le_bytes());
    out.extend_from_slice(&map.end.to_le_bytes());
    out.extend_from_slice(&(map.ranges.len() as u64).to_le_bytes());
    encode_ranges(&map.ranges, map.end, unit, &mut out);
    if map.bundles != BundleMap::default() || !map.areas.is_empty() {
        encode_bundles(&map.bundles, &mut out);
    }
    if !map.areas.is_empty() {
        push_varint(&mut out, map.areas.len() as u64);
        encode_ranges(&map.areas, map.end, unit, &mut out);
    }
    out
}

fn encode_ranges(ranges: &[(u64, u64)], end: u64, unit: u64, out: &mut Vec<u8>) {
    let mut position = 0;
    for &(offset, bytes) in ranges {
        // In release as well: what overlaps would be given out twice after the next start.
        assert!(
            offset >= position && bytes > 0,
            "{bytes} bytes of a map at {offset}, after what ends at {position}"
        );
        debug_assert!((offset | bytes) % unit == 0, "{bytes} bytes at {offset} are no whole units");
        push_varint(out, (offset - position) / unit);
        push_varint(out, bytes / unit);
        position = offset + bytes;
    }
    debug_assert!(position <= end, "a map up to {position} of a space that ends at {end}");
}

fn encode_bundles(bundles: &BundleMap, out: &mut Vec<u8>) {
    let BundleUse { bundles: count, values, value_bytes, stored_bytes, most_values } = bundles.usage;
    for number in [count, values, value_bytes, stored_bytes, most_values, bundles.thinned.len() as u64] {
        push_varint(out, number);
    }
    for bundle in &bundles.thinned {
        out.extend_from_slice(&bundle.address.encode());
        out.push(bundle.of);
        out.extend_from_slice(&bundle.dead.to_le_bytes());
    }
}

/// What stands behind the ranges: nothing in maps of spaces without bundles, or the zeros that fill their last sector,
/// which read as no bundles, and no areas.
fn decode_bundles(rest: &mut &[u8], end: u64) -> Result<BundleMap, &'static str> {
    const MALFORMED: &str = "free-space map with malformed bundles";
    if rest.len() < LEAST_BUNDLES_BYTES {
        return Ok(BundleMap::default());
    }
    let mut number = || pop_varint(rest).ok_or(MALFORMED);
    let (bundles, values, value_bytes) = (number()?, number()?, number()?);
    let (stored_bytes, most_values, count) = (number()?, number()?, number()?);
    let usage = BundleUse { bundles, values, value_bytes, stored_bytes, most_values };
    if count > (rest.len() / THINNED_BYTES) as u64 {
        return Err(MALFORMED);
    }
    let mut thinned: Vec<ThinnedBundle> = Vec::with_capacity(count as usize);
    let (listed, behind) = rest.split_at(count as usize * THINNED_BYTES);
    *rest = behind;
    for bytes in listed.chunks_exact(THINNED_BYTES) {
        let address = BlockAddress::decode(bytes).filter(|at| at.offset < end).ok_or(MALFORMED)?;
        let of = bytes[BlockAddress::ENCODED_BYTES];
        let dead = fixed(bytes, BlockAddress::ENCODED_BYTES + 1).map(u64::from_le_bytes).ok_or(MALFORMED)?;
        let bundle = ThinnedBundle { address, of, dead };
        let follows = thinned.last().is_none_or(|before| before.address.offset < address.offset);
        if !follows || of > 64 || dead == 0 || dead & !ThinnedBundle::all(of) != 0 || bundle.alive() == 0 {
            return Err(MALFORMED);
        }
        thinned.push(bundle);
    }
    Ok(BundleMap { usage, thinned })
}

/// Reads a map of `space`, whose extents are in units of `unit`; the error says what is wrong with it.
pub(super) fn decode(space: u32, unit: Unit, bytes: &[u8]) -> Result<FreeMap, &'static str> {
    const SHORT: &str = "free-space map is too short";
    let unit = unit.bytes();
    if bytes.get(..8) != Some(MAGIC) {
        return Err("not a free-space map");
    }
    if u32_at(bytes, 8) != Some(space) {
        return Err("free-space map of another space");
    }
    let generation = u64_at(bytes, 16).ok_or(SHORT)?;
    let end = u64_at(bytes, 24).ok_or(SHORT)?;
    let count = u64_at(bytes, 32).ok_or(SHORT)?;
    if end > MAX_FILE_BYTES || end % unit != 0 {
        return Err("free-space map with an impossible end");
    }
    let mut rest = bytes.get(PREAMBLE_BYTES..).ok_or(SHORT)?;
    let ranges = decode_ranges(&mut rest, count, end, unit)?;
    let bundles = decode_bundles(&mut rest, end)?;
    let count = pop_varint(&mut rest).unwrap_or(0);
    let areas = decode_ranges(&mut rest, count, end, unit)?;
    Ok(FreeMap { generation, end, ranges, bundles, areas })
}

fn decode_ranges(rest: &mut &[u8], count: u64, end: u64, unit: u64) -> Result<Vec<(u64, u64)>, &'static str> {
    const SHORT: &str = "free-space map is too short";
    // A range takes at least two bytes: a count that cannot be true allocates nothing.
    if count > rest.len() as u64 / 2 {
        return Err(SHORT);
    }
    let mut ranges = Vec::with_capacity(count as usize);
    let mut position = 0u64;
    for _ in 0..count {
        let gap = pop_varint(rest).ok_or(SHORT)?;
        let length = pop_varint(rest).ok_or(SHORT)?;
        let limit = (end - position) / unit;
        if length == 0 || gap > limit || length > limit - gap {
            return Err("free-space map with a range past its end");
        }
        let offset = position + gap * unit;
        ranges.push((offset, length * unit));
        position = offset + length * unit;
    }
    Ok(ranges)
}

pub(super) fn push_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

pub(super) fn pop_varint(bytes: &mut &[u8]) -> Option<u64> {
    let mut value = 0u64;
    for shift in (0..63).step_by(7) {
        let (&byte, rest) = bytes.split_first()?;
        *bytes = rest;
        value |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Some(value);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn any_map_survives_a_round_trip(pairs in proptest::collection::vec((0u64..1 << 30, 1u64..1 << 30), 0..50), is_fine: bool) {
            let unit = if is_fine { Unit::Fine } else { Unit::Sector };
            let (mut position, mut ranges) = (0, Vec::new());
            for (gap, length) in pairs {
                ranges.push((position + gap * unit.bytes(), length * unit.bytes()));
                position += (gap + length) * unit.bytes();
            }
            let areas = ranges.iter().copied().step_by(3).collect();
            let map = FreeMap { generation: 9, end: position, ranges, bundles: BundleMap::default(), areas };
            let mut bytes = encode(3, unit, &map);
            bytes.resize(bytes.len().next_multiple_of(512), 0);
            prop_assert_eq!(decode(3, unit, &bytes), Ok(map));
            prop_assert!(decode(4, unit, &bytes).is_err());
        }

        #[test]
        fn decoding_any_bytes_does_not_panic(
            tail in proptest::collection::vec(any::<u8>(), 0..80), end in 0u64..100, count in 0u64..30,
        ) {
            let _ = decode(0, Unit::Fine, &tail);
            let bundles = BundleMap::default();
            let empty = FreeMap { generation: 1, end: end * 32, ranges: Vec::new(), bundles, areas: Vec::new() };
            let mut bytes = encode(0, Unit::Fine, &empty);
            bytes[32..40].copy_from_slice(&count.to_le_bytes());
            bytes.extend_from_slice(&tail);
            if let Ok(map) = decode(0, Unit::Fine, &bytes) {
                prop_assert!(map.ranges.iter().all(|&(o, b)| o + b <= map.end));
            }
        }
    }
}
