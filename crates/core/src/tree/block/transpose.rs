//! Bytes of lines become lines of bytes: what [`super::columns`] does to each leaf that is read or written.
//!
//! A leaf of 32 KB is put together from its columns at each read that misses the cache. Squares of 16 by 16 bytes are
//! turned in registers; the last of a line or a column overlaps the one before, so that no edges are left.

/// Source lines, or bytes of each, below which squares are smaller.
const SQUARE: usize = 16;
/// Likewise; below it, bytes go one by one.
const SMALL_SQUARE: usize = 8;

/// Sixteen bytes in one register.
#[cfg(target_arch = "x86_64")]
type Row = std::arch::x86_64::__m128i;
#[cfg(not(target_arch = "x86_64"))]
type Row = [u8; SQUARE];

/// Byte `j` of line `i` of `source` becomes byte `i` of line `j` of `target`, for all `i` below `lines` and `j` below
/// `width`. A line begins where the function beside it says. Panics if one does not lie within its bytes.
pub(super) fn transpose(
    (source, source_line): (&[u8], impl Fn(usize) -> usize),
    (target, target_line): (&mut [u8], impl Fn(usize) -> usize),
    lines: usize,
    width: usize,
) {
    if lines.min(width) >= SQUARE {
        corners(lines, width, SQUARE, |i, j| {
            let square = std::array::from_fn(|k| row(array(&source[source_line(i + k) + j..])));
            for (k, row) in turn(square).into_iter().enumerate() {
                target[target_line(j + k) + i..][..SQUARE].copy_from_slice(&bytes(row));
            }
        });
    } else if lines.min(width) >= SMALL_SQUARE {
        corners(lines, width, SMALL_SQUARE, |i, j| {
            let square =
                std::array::from_fn(|k| u64::from_le_bytes(array(&source[source_line(i + k) + j..])));
            for (k, word) in turn_small(square).into_iter().enumerate() {
                target[target_line(j + k) + i..][..SMALL_SQUARE].copy_from_slice(&word.to_le_bytes());
            }
        });
    } else {
        corners(lines, width, 1, |i, j| target[target_line(j) + i] = source[source_line(i) + j]);
    }
}

/// Calls `copy` with the first line and the first byte of each square; `side` is at most `lines` and `width`.
#[inline]
fn corners(lines: usize, width: usize, side: usize, mut copy: impl FnMut(usize, usize)) {
    let firsts = |all: usize| (0..all).step_by(side).map(move |first| first.min(all - side));
    firsts(lines).for_each(|i| firsts(width).for_each(|j| copy(i, j)));
}

#[inline]
fn array<const N: usize>(bytes: &[u8]) -> [u8; N] {
    let mut array = [0; N];
    array.copy_from_slice(&bytes[..N]);
    array
}

/// Byte `j` of row `i` becomes byte `i` of row `j`. To interleave each row of the upper half with the one that lies as
/// deep in the lower half moves the highest bit of a byte's row number to the lowest of its place in the row, and the
/// highest of that to the lowest of the row number; four times, and the two are exchanged.
#[inline]
fn turn(mut square: [Row; SQUARE]) -> [Row; SQUARE] {
    for _ in 0..SQUARE.trailing_zeros() {
        let mut next = square;
        for i in 0..SQUARE / 2 {
            let [first, second] = interleave(square[i], square[i + SQUARE / 2]);
            (next[2 * i], next[2 * i + 1]) = (first, second);
        }
        square = next;
    }
    square
}

#[cfg(target_arch = "x86_64")]
#[inline]
fn row(bytes: [u8; SQUARE]) -> Row {
    // SAFETY: both are 16 bytes, and each value of them is one of either type.
    unsafe { std::mem::transmute(bytes) }
}

#[cfg(target_arch = "x86_64")]
#[inline]
fn bytes(row: Row) -> [u8; SQUARE] {
    // SAFETY: as in `row`.
    unsafe { std::mem::transmute(row) }
}

/// Bytes of `a` and `b` in turn.
#[cfg(target_arch = "x86_64")]
#[inline]
fn interleave(a: Row, b: Row) -> [Row; 2] {
    use std::arch::x86_64::{_mm_unpackhi_epi8, _mm_unpacklo_epi8};
    // SAFETY: every x86-64 processor has SSE2, which is all that these ask for.
    unsafe { [_mm_unpacklo_epi8(a, b), _mm_unpackhi_epi8(a, b)] }
}

#[cfg(not(target_arch = "x86_64"))]
fn row(bytes: [u8; SQUARE]) -> Row {
    bytes
}

#[cfg(not(target_arch = "x86_64"))]
fn bytes(row: Row) -> [u8; SQUARE] {
    row
}

#[cfg(not(target_arch = "x86_64"))]
#[inline]
fn interleave(a: Row, b: Row) -> [Row; 2] {
    let byte = |i: usize| if i % 2 == 0 { a[i / 2] } else { b[i / 2] };
    [std::array::from_fn(byte), std::array::from_fn(|i| byte(SQUARE + i))]
}

/// [`turn`] of small squares (Warren, Hacker's Delight, 7-3: blocks of 4, 2 and 1 bytes are swapped).
#[inline]
fn turn_small(mut square: [u64; SMALL_SQUARE]) -> [u64; SMALL_SQUARE] {
    const STEPS: [(usize, u64); 3] =
        [(4, 0x0000_0000_ffff_ffff), (2, 0x0000_ffff_0000_ffff), (1, 0x00ff_00ff_00ff_00ff)];
    for (distance, low) in STEPS {
        let shift = 8 * distance;
        for i in (0..SMALL_SQUARE).filter(|i| i & distance == 0) {
            let (a, b) = (square[i], square[i + distance]);
            square[i] = (a & low) | ((b & low) << shift);
            square[i + distance] = ((a >> shift) & low) | (b & !low);
        }
    }
    square
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lines of all sizes around those of squares, some bytes apart; nothing between them is touched.
    #[test]
    fn each_byte_goes_to_its_place() {
        for lines in [0, 1, 7, 8, 9, 15, 16, 17, 31, 33, 48] {
            for width in [0, 1, 7, 8, 9, 15, 16, 17, 31, 33, 48] {
                let source: Vec<u8> = (0..lines * (width + 3)).map(|i| ((i * 7919) >> 4) as u8).collect();
                let mut target = vec![0xa5; width * (lines + 5) + 2];
                let mut expected = target.clone();
                let source_line = |i: usize| i * (width + 3) + 1;
                let target_line = |j: usize| j * (lines + 5) + 2;
                for (i, j) in (0..lines).flat_map(|i| (0..width).map(move |j| (i, j))) {
                    expected[target_line(j) + i] = source[source_line(i) + j];
                }
                transpose((&source, source_line), (&mut target, target_line), lines, width);
                assert_eq!(target, expected, "{lines} lines of {width} bytes");
            }
        }
    }
}
