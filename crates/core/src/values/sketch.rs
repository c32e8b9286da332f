//! A few numbers that are the same for values which share much of their content.
//!
//! The bytes are cut into chunks where the content says so: a hash of the last [`WINDOW`] bytes has certain bits zero.
//! An insertion moves the cuts behind it with the content, and the chunks that it does not touch stay what they are.
//! Each chunk is hashed, and the smallest hashes of all are kept: of two values, the expected share of hashes that both
//! keep is what they have in common of all their chunks (A. Broder, *On the resemblance and containment of documents*,
//! 1997). That it takes no more than eight, and of chunks this small, is from L. Xu et al., *Online Deduplication for
//! Databases* (SIGMOD 2017), dbDedup.

use twox_hash::XxHash3_64;

/// Hashes that are kept of a value.
pub(super) const FEATURES: usize = 8;
/// No chunk but the last is shorter, in bytes.
const LEAST_BYTES: usize = 64;
/// None is longer.
const MOST_BYTES: usize = 512;
/// Bytes that decide about a cut.
const WINDOW: usize = 16;
/// Six bits, of which the highest depends on [`WINDOW`] bytes: behind the first [`LEAST_BYTES`] of a chunk every 64th
/// place is a cut, so that chunks have some 128 bytes.
const CUT: u32 = 0x3f << (WINDOW - 6);

/// Of values above so many bytes only [`PIECES`] are looked at.
const WHOLE_BYTES: usize = 1 << 20;
/// Pieces, from the beginning to the end.
const PIECES: usize = 4;

/// See the module's documentation. For memory only: what it says of a value may change with the program.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Sketch {
    /// The smallest first; those that a small value does not have are the largest number.
    smallest: [u64; FEATURES],
}

impl Sketch {
    /// The sketch of a value: O(n), and no more than for [`WHOLE_BYTES`].
    pub(crate) fn of(value: &[u8]) -> Sketch {
        let mut sketch = Sketch { smallest: [u64::MAX; FEATURES] };
        if value.len() <= WHOLE_BYTES {
            sketch.add(value);
        } else {
            let piece = WHOLE_BYTES / PIECES;
            for i in 0..PIECES {
                let start = (value.len() - piece) / (PIECES - 1) * i;
                sketch.add(&value[start..start + piece]);
            }
        }
        sketch
    }

    /// The sketch that values of `owner` have: it has nothing in common with those of others.
    pub(crate) fn of_owner(&self, owner: u64) -> Sketch {
        let salt = owner.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 1;
        Sketch { smallest: self.smallest.map(|hash| if hash == u64::MAX { hash } else { hash ^ salt }) }
    }

    /// The hashes, in their order; at most [`FEATURES`].
    pub(super) fn features(&self) -> impl Iterator<Item = u64> + '_ {
        self.smallest.iter().copied().filter(|&feature| feature != u64::MAX)
    }

    fn add(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let (chunk, rest) = bytes.split_at(chunk_end(bytes));
            let hash = XxHash3_64::oneshot(chunk);
            if hash < self.smallest[FEATURES - 1] {
                if let Err(at) = self.smallest.binary_search(&hash) {
                    self.smallest[at..].rotate_right(1);
                    self.smallest[at] = hash;
                }
            }
            bytes = rest;
        }
    }
}

/// Where the first chunk of `bytes` ends.
fn chunk_end(bytes: &[u8]) -> usize {
    let Some((head, rest)) = bytes.split_at_checked(LEAST_BYTES) else { return bytes.len() };
    let roll = |hash: u32, byte: &u8| (hash << 1).wrapping_add(GEAR[usize::from(*byte)]);
    let mut hash = head[LEAST_BYTES - WINDOW..].iter().fold(0, roll);
    let rest = &rest[..rest.len().min(MOST_BYTES - LEAST_BYTES)];
    for (i, byte) in rest.iter().enumerate() {
        if hash & CUT == 0 {
            return LEAST_BYTES + i;
        }
        hash = roll(hash, byte);
    }
    LEAST_BYTES + rest.len()
}

/// A number without a pattern for each byte: the hash is a sum of them, each shifted by how long ago it was (W. Xia et
/// al., *Ddelta*, 2014, call it a gear hash).
static GEAR: [u32; 256] = gear();

const fn gear() -> [u32; 256] {
    let mut table = [0; 256];
    let mut i = 0;
    while i < table.len() {
        // The finalizer of splitmix64 (G. Steele et al., 2014).
        let mut mixed = (i as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        table[i] = (mixed >> 32) as u32;
        i += 1;
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::values::texts::{noise, text};

    fn shared(a: &Sketch, b: &Sketch) -> usize {
        a.features().filter(|feature| b.features().any(|other| other == *feature)).count()
    }

    fn chunks(mut bytes: &[u8]) -> Vec<&[u8]> {
        let mut chunks = Vec::new();
        while !bytes.is_empty() {
            let (chunk, rest) = bytes.split_at(chunk_end(bytes));
            chunks.push(chunk);
            bytes = rest;
        }
        chunks
    }

    #[test]
    fn chunks_have_some_128_bytes_within_their_bounds() {
        for content in [text(1, 500_000), noise(2, 500_000)] {
            let chunks = chunks(&content);
            let bounds = LEAST_BYTES..=MOST_BYTES;
            assert!(chunks[..chunks.len() - 1].iter().all(|chunk| bounds.contains(&chunk.len())));
            let average = content.len() / chunks.len();
            assert!((115..=140).contains(&average), "{average}");
        }
        assert!(chunks(&[7; 10_000])[..19].iter().all(|chunk| chunk.len() == chunks(&[7; 10_000])[0].len()));
    }

    #[test]
    fn what_is_put_in_front_moves_the_chunks_and_changes_few_features() {
        for seed in 0..50 {
            let content = text(seed, 35_000);
            let sketch = Sketch::of(&content);
            assert_eq!(sketch.features().count(), FEATURES);
            for length in [1, 2, 3, 7, 8, 63, 64, 65, 500] {
                let longer = [&noise(seed + 1000, length)[..], &content].concat();
                let left = shared(&sketch, &Sketch::of(&longer));
                assert!(
                    left >= FEATURES - 3,
                    "{left} features are left, with {length} bytes in front, seed {seed}"
                );
            }
        }
    }

    #[test]
    fn a_sketch_has_each_hash_once_and_the_smallest_ones() {
        let content = text(3, 20_000);
        let mut hashes: Vec<u64> = chunks(&content).into_iter().map(XxHash3_64::oneshot).collect();
        hashes.sort_unstable();
        assert_eq!(Sketch::of(&content).features().collect::<Vec<_>>(), hashes[..FEATURES]);
        assert_eq!(Sketch::of(&[&content[..], &content].concat()).features().count(), FEATURES);
        assert_eq!(Sketch::of(&[0; 100_000]).features().count(), 2, "a chunk of zeros, and a shorter one");
        assert_eq!(Sketch::of(b"short").features().count(), 1);
        assert_eq!(Sketch::of(b"").features().count(), 0);
    }

    #[test]
    fn values_that_are_looked_at_in_pieces_are_alike_as_well() {
        let content = text(4, 3_000_000);
        let longer = [b"a few words more ", &content[..]].concat();
        assert!(shared(&Sketch::of(&content), &Sketch::of(&longer)) >= FEATURES - 2);
        assert_eq!(shared(&Sketch::of(&content), &Sketch::of(&text(5, 3_000_000))), 0);
    }
}
