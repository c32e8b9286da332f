//! The free ranges of a space as a block on disk.
//!
//! ```text
//!  0            8          12  16           24    32      40
//!  | "TEAKFREE" | space id | 0 | generation | end | count | count x (gap, length) | zeros
//! ```
//! `end` is in bytes. Gap (from the end of the range before, or from 0) and length are LEB128 in units of the file.
//! What lies past `end` is free too. The block is stored uncompressed; its checksum is in its address.

use super::address::MAX_FILE_BYTES;
use super::{u32_at, u64_at, Unit};

const MAGIC: &[u8; 8] = b"TEAKFREE";
const PREAMBLE_BYTES: usize = 40;

/// What a map says.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct FreeMap {
    /// The checkpoint it was written for.
    pub generation: u64,
    /// Past this everything is free.
    pub end: u64,
    /// Free ranges (offset, length) in bytes, ascending, disjoint.
    pub ranges: Vec<(u64, u64)>,
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
    let mut position = 0;
    for &(offset, bytes) in &map.ranges {
        // In release as well: what overlaps would be given out twice after the next start.
        assert!(
            offset >= position && bytes > 0,
            "{bytes} free bytes at {offset}, after what ends at {position}"
        );
        debug_assert!((offset | bytes) % unit == 0, "{bytes} free bytes at {offset} are no whole units");
        push_varint(&mut out, (offset - position) / unit);
        push_varint(&mut out, bytes / unit);
        position = offset + bytes;
    }
    debug_assert!(position <= map.end, "free up to {position} in a space that ends at {}", map.end);
    out
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
    // A range takes at least two bytes: a count that cannot be true allocates nothing.
    if count > rest.len() as u64 / 2 {
        return Err(SHORT);
    }
    let mut ranges = Vec::with_capacity(count as usize);
    let mut position = 0u64;
    for _ in 0..count {
        let gap = pop_varint(&mut rest).ok_or(SHORT)?;
        let length = pop_varint(&mut rest).ok_or(SHORT)?;
        let limit = (end - position) / unit;
        if length == 0 || gap > limit || length > limit - gap {
            return Err("free-space map with a range past its end");
        }
        let offset = position + gap * unit;
        ranges.push((offset, length * unit));
        position = offset + length * unit;
    }
    Ok(FreeMap { generation, end, ranges })
}

fn push_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

fn pop_varint(bytes: &mut &[u8]) -> Option<u64> {
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
            let map = FreeMap { generation: 9, end: position, ranges };
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
            let mut bytes = encode(0, Unit::Fine, &FreeMap { generation: 1, end: end * 32, ranges: Vec::new() });
            bytes[32..40].copy_from_slice(&count.to_le_bytes());
            bytes.extend_from_slice(&tail);
            if let Ok(map) = decode(0, Unit::Fine, &bytes) {
                prop_assert!(map.ranges.iter().all(|&(o, b)| o + b <= map.end));
            }
        }
    }
}
