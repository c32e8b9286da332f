//! Where in a value a deflate stream may stand: it is all of the value, or a part of which the value has the length in
//! front, as rows of tables have it: little-endian, in one to four bytes. What stands around that is short.

use std::ops::Range;

/// Bytes in front of a stream, and behind it, that are kept.
pub(super) const MOST_AROUND: usize = u8::MAX as usize;
/// A shorter part is not worth a try.
const LEAST_BYTES: usize = 64;

/// All of the value, and then each part of which it says the length; most of a value is in each of them.
pub(super) fn places(value: &[u8]) -> impl Iterator<Item = Range<usize>> + '_ {
    let length = |start: usize, width: usize| {
        let bytes = &value[start - width..start];
        bytes.iter().rev().fold(0, |length, &byte| length << 8 | usize::from(byte))
    };
    let part = move |(start, width): (usize, usize)| {
        let end = start + length(start, width);
        let is_one = end - start >= LEAST_BYTES.max(value.len() / 2)
            && end <= value.len()
            && value.len() - end <= MOST_AROUND;
        is_one.then_some(start..end)
    };
    let starts = 1..=MOST_AROUND.min(value.len());
    let parts = starts.flat_map(|start| (1..=start.min(4)).rev().map(move |width| (start, width)));
    std::iter::once(0..value.len()).chain(parts.filter_map(part))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_is_found_by_its_length() {
        let stream = vec![0xa5; 70_000];
        for width in 1..=4 {
            let stream = &stream[..[0, 200, 20_000, 70_000, 70_000][width]];
            let length = (stream.len() as u32).to_le_bytes();
            let value = [b"row", &length[..width], stream, b"tail"].concat();
            let found: Vec<_> = places(&value).collect();
            assert_eq!(found[0], 0..value.len());
            assert!(found[1..].contains(&(3 + width..value.len() - 4)), "{found:?}");
        }
        assert_eq!(places(b"").count(), 1);
        let far = [&[0; 300][..], &200u32.to_le_bytes(), &[0xa5; 200]].concat();
        assert_eq!(places(&far).count(), 1, "nobody keeps so much around it");
    }
}
