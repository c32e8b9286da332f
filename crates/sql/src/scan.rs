//! Finding the bytes that can end a string, a comment or a statement, 64 at a time.

/// Bytes looked at in one step.
const BLOCK: usize = 64;

/// Finds quotes, backslashes, beginnings of comments and the first byte of the delimiter.
///
/// Remembers what it saw in the block it last looked at; `forget` when the text under it changes.
pub struct Finder {
    delimiter: u8,
    /// Where the block begins whose bytes `mask` tells of; `usize::MAX` if none.
    base: usize,
    mask: u64,
}

impl Finder {
    pub fn new(delimiter: u8) -> Finder {
        Finder { delimiter, base: usize::MAX, mask: 0 }
    }

    /// The text changed, or moved.
    pub fn forget(&mut self) {
        self.base = usize::MAX;
    }

    /// The first special byte at or after `from`.
    #[inline(always)]
    pub fn next(&mut self, text: &[u8], from: usize) -> Option<usize> {
        let mut at = from;
        while at < text.len() {
            if self.base > at || at - self.base >= BLOCK {
                self.base = at;
                self.mask = match text[at..].first_chunk() {
                    Some(block) => special(block, self.delimiter),
                    None => {
                        let mut block = [0; BLOCK];
                        block[..text.len() - at].copy_from_slice(&text[at..]);
                        special(&block, self.delimiter)
                    }
                };
            }
            let left = self.mask >> (at - self.base);
            if left != 0 {
                let found = at + left.trailing_zeros() as usize;
                // The padding of the last block is zeros, which only a delimiter of zeros would find.
                return (found < text.len()).then_some(found);
            }
            at = self.base + BLOCK;
        }
        None
    }
}

/// Bit i tells whether byte i is special.
#[cfg(target_arch = "x86_64")]
#[inline]
fn special(block: &[u8; BLOCK], delimiter: u8) -> u64 {
    use std::arch::x86_64::{
        _mm_cmpeq_epi8, _mm_loadu_si128, _mm_movemask_epi8, _mm_or_si128, _mm_set1_epi8,
    };
    let mut mask = 0;
    for part in 0..BLOCK / 16 {
        // SAFETY: SSE2 is part of every x86-64 processor, and the 16 bytes read are inside the block.
        let bits = unsafe {
            let bytes = _mm_loadu_si128(block.as_ptr().add(part * 16).cast());
            let is = |byte: u8| _mm_cmpeq_epi8(bytes, _mm_set1_epi8(byte as i8));
            let quotes = _mm_or_si128(_mm_or_si128(is(b'\''), is(b'"')), _mm_or_si128(is(b'`'), is(b'\\')));
            let others =
                _mm_or_si128(_mm_or_si128(is(b'#'), is(b'-')), _mm_or_si128(is(b'/'), is(delimiter)));
            _mm_movemask_epi8(_mm_or_si128(quotes, others))
        };
        mask |= (bits as u16 as u64) << (part * 16);
    }
    mask
}

#[cfg(not(target_arch = "x86_64"))]
fn special(block: &[u8; BLOCK], delimiter: u8) -> u64 {
    let is = |byte: u8| byte == delimiter || matches!(byte, b'\'' | b'"' | b'`' | b'\\' | b'#' | b'-' | b'/');
    block.iter().enumerate().fold(0, |mask, (i, &byte)| mask | u64::from(is(byte)) << i)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_special_byte_is_found_at_every_place() {
        for length in [0, 1, 15, 16, 63, 64, 65, 127, 200] {
            for at in 0..length {
                for byte in 0..=255u8 {
                    let mut text = vec![b'x'; length];
                    text[at] = byte;
                    let special = b"'\"`\\#-/$".contains(&byte);
                    assert_eq!(
                        Finder::new(b'$').next(&text, 0),
                        special.then_some(at),
                        "{byte} at {at} of {length}"
                    );
                }
            }
        }
    }

    #[test]
    fn all_are_found_in_order_from_any_place() {
        let text: Vec<u8> = (0..500).map(|i| if i % 7 == 3 || i % 64 == 63 { b';' } else { b'a' }).collect();
        for from in 0..text.len() {
            let mut finder = Finder::new(b';');
            let (mut at, mut found) = (from, Vec::new());
            while let Some(next) = finder.next(&text, at) {
                found.push(next);
                at = next + 1;
            }
            assert_eq!(found, (from..text.len()).filter(|&i| text[i] == b';').collect::<Vec<_>>());
        }
    }
}
