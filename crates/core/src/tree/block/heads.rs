//! Heads: the first bytes of keys, as numbers that order as the keys do, side by side for searches.

/// Fewer heads than these are searched by halves: they are in some cache lines that are all near.
const FEW: usize = 256;
/// Steps of a search grow from this: a cache line's worth of heads.
const FIRST_STEP: usize = 8;

/// The first eight bytes as a big-endian number, padded with zeros: orders as the bytes do, except that a difference
/// only in trailing zeros or beyond eight bytes is not seen.
#[inline]
pub fn wide_head(bytes: &[u8]) -> u64 {
    if let Some(head) = bytes.first_chunk::<8>() {
        return u64::from_be_bytes(*head);
    }
    // Short ones without a copy of variable length, which would be a call.
    match (bytes.first_chunk::<4>(), bytes.last_chunk::<4>()) {
        (Some(first), Some(last)) => {
            let rest = u64::from(u32::from_be_bytes(*last)) << (8 * (8 - bytes.len()));
            (u64::from(u32::from_be_bytes(*first)) << 32) | (rest & 0xffff_ffff)
        }
        // Each of up to three, some of them twice.
        _ if bytes.is_empty() => 0,
        _ => {
            let last = bytes.len() - 1;
            [0, bytes.len() / 2, last].iter().fold(0, |head, &i| head | u64::from(bytes[i]) << (56 - 8 * i))
        }
    }
}

/// The first four bytes, likewise.
#[inline]
pub(in crate::tree) fn narrow_head(bytes: &[u8]) -> u32 {
    (wide_head(bytes) >> 32) as u32
}

/// The first of ascending heads that is not less than `head`. Most keys are spread so evenly that it lies near where a
/// straight line from the first to the last would have it: from there a search touches two or three cache lines, where
/// halving touches one for each step but the last few. `guessed` is told what to begin with, before that is looked at.
#[inline]
pub(super) fn first_at_or_after<const W: usize>(
    heads: &[[u8; W]],
    head: u64,
    guessed: impl FnOnce(usize),
) -> usize {
    if heads.len() < FEW {
        return heads.partition_point(|h| big_endian(*h) < head);
    }
    let (Some(first), Some(last)) = (heads.first(), heads.last()) else { return 0 };
    let (least, greatest) = (big_endian(*first), big_endian(*last));
    if head <= least {
        return 0;
    }
    if head > greatest {
        return heads.len();
    }
    // What is at `low` is less, what is at `high` is not.
    let (mut low, mut high) = (0, heads.len() - 1);
    // So that the product fits.
    let shift = (64 - (greatest - least).leading_zeros()).saturating_sub(32);
    let line = ((head - least) >> shift) * high as u64 / ((greatest - least) >> shift).max(1);
    let guess = (line as usize).clamp(1, high);
    guessed(guess);
    let mut step = FIRST_STEP;
    if big_endian(heads[guess]) < head {
        low = guess;
        while low + step < high && big_endian(heads[low + step]) < head {
            low += step;
            step *= 4;
        }
        high = high.min(low + step);
    } else {
        high = guess;
        while high > low + step && big_endian(heads[high - step]) >= head {
            high -= step;
            step *= 4;
        }
        low = low.max(high.saturating_sub(step));
    }
    low + 1 + heads[low + 1..high].partition_point(|h| big_endian(*h) < head)
}

#[inline]
pub(super) fn big_endian<const W: usize>(head: [u8; W]) -> u64 {
    let mut number = [0; 8];
    number[8 - W..].copy_from_slice(&head);
    u64::from_be_bytes(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heads_of_all_lengths_are_the_first_bytes_and_zeros() {
        let bytes = [0xf1, 0xe2, 0xd3, 0xc4, 0xb5, 0xa6, 0x97, 0x88, 0x79, 0x6a];
        for length in 0..=bytes.len() {
            let mut first = [0; 8];
            first[..length.min(8)].copy_from_slice(&bytes[..length.min(8)]);
            assert_eq!(wide_head(&bytes[..length]), u64::from_be_bytes(first), "{length}");
        }
    }

    #[test]
    fn heads_are_found_however_they_are_spread() {
        let spreads: [fn(u64) -> u64; 6] = [
            |n| n,
            |n| n * n * n,
            |n| n / 7,
            |n| if n < 300 { n } else { u64::from(u32::MAX) - 1000 + n },
            |n| u64::from(u32::MAX) - (1 << (31 - n.min(620) / 20)),
            |_| 5,
        ];
        for (which, spread) in spreads.into_iter().enumerate() {
            for length in [0, 1, 100, 256, 257, 600] {
                let mut numbers: Vec<u64> = (0..length).map(spread).collect();
                numbers.sort_unstable();
                let narrow: Vec<[u8; 4]> = numbers.iter().map(|n| (*n as u32).to_be_bytes()).collect();
                let wide: Vec<[u8; 8]> = numbers.iter().map(|n| (*n << 31).to_be_bytes()).collect();
                let near = numbers.iter().flat_map(|n| [n.saturating_sub(1), *n, n + 1]);
                for probe in near.chain([0, u64::from(u32::MAX)]) {
                    let expected = numbers.partition_point(|n| *n < probe);
                    assert_eq!(
                        first_at_or_after(&narrow, probe, |_| {}),
                        expected,
                        "spread {which}, {length}: {probe}"
                    );
                    assert_eq!(
                        first_at_or_after(&wide, probe << 31, |_| {}),
                        expected,
                        "spread {which}, {length}: {probe}"
                    );
                }
            }
        }
    }
}
