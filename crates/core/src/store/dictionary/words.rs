//! Words in bytes: where they are.
//!
//! The bytes are classified 64 at a time into the bits of a number; where neighbouring bits differ, a word begins or
//! ends. Nothing of this depends on what has been found before, and hardly anything branches on the text, whose turns
//! no processor foresees.

use crate::arrays::whole_arrays;

/// Longest word, with the space before it.
pub(super) const WORD_BYTES: usize = 15;
/// Shortest, likewise: what is shorter gains nothing.
const LEAST_WORD_BYTES: usize = 3;
/// Bytes looked at for a word and its length.
pub(super) const WINDOW_BYTES: usize = WORD_BYTES + 1;

/// Bytes classified at once.
const CHUNK_BYTES: usize = 64;
/// Bytes of which the words are found before any is looked at.
const BATCH_BYTES: usize = 8 * CHUNK_BYTES;
/// Edges are noted so many at a time, also past the last one.
const EDGES_AT_ONCE: usize = 8;

/// A word, padded with zeros, and in the last place its length.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Key(u64, u64);

impl Key {
    /// The word, with its length in the last place.
    pub(super) fn bytes(self) -> [u8; WINDOW_BYTES] {
        (u128::from(self.0) | u128::from(self.1) << 64).to_le_bytes()
    }

    #[inline]
    pub(super) fn hash(self) -> u64 {
        let mixed = self.0.wrapping_mul(0x9fb2_1c65_1e98_df25) ^ self.1.wrapping_mul(0xd6e8_feb8_6659_fd93);
        (mixed ^ (mixed >> 32)).wrapping_mul(0x9e37_79b9_7f4a_7c15)
    }
}

impl std::hash::Hash for Key {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        state.write_u64(Key::hash(*self));
    }
}

/// For tables of keys, whose hash is all there is.
#[derive(Default)]
pub(super) struct KeyHasher(u64);

impl std::hash::Hasher for KeyHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.write_u64(u64::from(*byte)));
    }

    fn write_u64(&mut self, hash: u64) {
        self.0 = self.0.rotate_left(5) ^ hash;
    }
}

/// Where a word is, with the space before it if there is one; of any length.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Span {
    pub start: usize,
    pub end: usize,
}

impl Span {
    /// The word of `bytes` between two edges, with its space.
    #[inline]
    pub(super) fn between(bytes: &[u8], edges: &[usize; 2]) -> Span {
        let space = bytes.get(edges[0].wrapping_sub(1)) == Some(&b' ');
        Span { start: edges[0] - usize::from(space), end: edges[1] }
    }

    /// Whether a word of this length may be in a dictionary.
    #[inline]
    pub(super) fn fits(&self) -> bool {
        (LEAST_WORD_BYTES..=WORD_BYTES).contains(&(self.end - self.start))
    }

    /// Its key; one that no word of a dictionary has if it does not fit.
    #[inline]
    pub(super) fn key(&self, bytes: &[u8]) -> Key {
        let length = (self.end - self.start).min(WINDOW_BYTES);
        let window = window(bytes, self.start);
        let (low, high) = KEEP[length];
        Key(window.0 & low, window.1 & high | (length as u64) << 56)
    }
}

/// Masks for the bytes of a word by its length; the last place is that of the length.
const KEEP: [(u64, u64); WINDOW_BYTES + 1] = {
    let mut keep = [(0, 0); WINDOW_BYTES + 1];
    let mut length = 0;
    while length <= WINDOW_BYTES {
        let low = if length >= 8 { u64::MAX } else { (1 << (8 * length)) - 1 };
        let most = if length > WORD_BYTES { WORD_BYTES } else { length };
        let high = if most > 8 { (1 << (8 * (most - 8))) - 1 } else { 0 };
        keep[length] = (low, high);
        length += 1;
    }
    keep
};

/// Sixteen bytes from `at` on, zeros behind the end.
#[inline]
fn window(bytes: &[u8], at: usize) -> Key {
    let read = |chunk: &[u8; WINDOW_BYTES]| {
        let both = u128::from_le_bytes(*chunk);
        Key(both as u64, (both >> 64) as u64)
    };
    let rest = &bytes[at..];
    match rest.first_chunk() {
        Some(chunk) => read(chunk),
        None => {
            let mut chunk = [0; WINDOW_BYTES];
            chunk[..rest.len()].copy_from_slice(rest);
            read(&chunk)
        }
    }
}

/// The key of `word`, if that is a word that may be in a dictionary.
pub(super) fn key_of(word: &[u8]) -> Option<Key> {
    let span = Span { start: 0, end: word.len() };
    let letters = word.strip_prefix(b" ").unwrap_or(word);
    (span.fits() && letters.iter().all(|byte| is_part(*byte))).then(|| span.key(word))
}

/// Whether words are made of it: letters, the apostrophe, all beyond ASCII.
fn is_part(byte: u8) -> bool {
    byte.is_ascii_alphabetic() || byte == b'\'' || byte >= 0x80
}

/// The same of 64 bytes, a bit each. Written so that the compiler makes it instructions on many bytes at once.
#[inline]
fn parts(chunk: &[u8; CHUNK_BYTES]) -> u64 {
    let marks = chunk.map(|byte| {
        let letter = (byte | 0x20).wrapping_sub(b'a') < 26;
        u8::from(letter) | u8::from(byte == b'\'') | byte >> 7
    });
    let mut parts = 0;
    for (i, eight) in whole_arrays::<_, 8>(&marks).iter().enumerate() {
        // The product gathers the eight bits in the highest byte.
        let bits = u64::from_le_bytes(*eight).wrapping_mul(0x0102_0408_1020_4080) >> 56;
        parts |= bits << (8 * i);
    }
    parts
}

/// Finds the words of some bytes, a batch at a time.
pub(super) struct Words<'a> {
    bytes: &'a [u8],
    /// Up to where they have been classified.
    at: usize,
    /// Whether the byte before is part of a word: 1 if so.
    open: u64,
    /// Where words begin and end, in turn.
    edges: [usize; BATCH_BYTES + 1 + EDGES_AT_ONCE],
    /// How many edges there are, of which an odd one begins a word that ends in the next batch.
    count: usize,
}

impl<'a> Words<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Words<'a> {
        Words { bytes, at: 0, open: 0, edges: [0; BATCH_BYTES + 1 + EDGES_AT_ONCE], count: 0 }
    }

    /// The most words of a batch.
    pub(super) const MOST: usize = BATCH_BYTES / 2 + 1;

    /// Where the words of the next batch begin, not counting spaces, and end; at most [`Words::MOST`]. None behind the
    /// last one.
    #[inline]
    pub(super) fn next_batch(&mut self) -> Option<&[[usize; 2]]> {
        if self.at > self.bytes.len() {
            return None;
        }
        let open = self.count % 2;
        if open == 1 {
            self.edges[0] = self.edges[self.count - 1];
        }
        self.count = open;
        self.classify();
        Some(whole_arrays(&self.edges[..self.count]))
    }

    /// Adds the edges of a batch.
    #[inline]
    fn classify(&mut self) {
        for _ in 0..BATCH_BYTES / CHUNK_BYTES {
            let rest = self.bytes.get(self.at..).unwrap_or_default();
            match rest.first_chunk() {
                Some(chunk) => self.note(parts(chunk)),
                None => {
                    // Zeros are no letters: the last word ends.
                    let mut chunk = [0; CHUNK_BYTES];
                    chunk[..rest.len()].copy_from_slice(rest);
                    self.note(parts(&chunk));
                    self.at = self.bytes.len() + 1;
                    return;
                }
            }
            self.at += CHUNK_BYTES;
        }
    }

    /// Adds the edges among the bytes of a chunk.
    #[inline]
    fn note(&mut self, parts: u64) {
        let mut edges = parts ^ (parts << 1 | self.open);
        self.open = parts >> 63;
        let more = edges.count_ones() as usize;
        let mut at = self.count;
        while edges != 0 {
            // Fewer turns that depend on the text; what is noted in excess is overwritten.
            for edge in &mut self.edges[at..at + EDGES_AT_ONCE] {
                *edge = self.at + edges.trailing_zeros() as usize;
                edges &= edges.wrapping_sub(1);
            }
            at += EDGES_AT_ONCE;
        }
        self.count += more;
    }
}
