//! Words in bytes: where one ends, and which number it has.

/// Longest word, with the space before it.
pub(super) const WORD_BYTES: usize = 15;
/// Bytes looked at to find where one ends.
const WINDOW_BYTES: usize = WORD_BYTES + 1;
/// Shortest, likewise: what is shorter gains nothing.
const LEAST_WORD_BYTES: usize = 3;

const HIGH: u64 = 0x8080_8080_8080_8080;
const EACH: u64 = 0x0101_0101_0101_0101;

/// A word, padded with zeros, and its length.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Key(u64, u64);

impl Key {
    /// The word, with its length in the last place.
    pub(super) fn bytes(self) -> [u8; WINDOW_BYTES] {
        (u128::from(self.0) | u128::from(self.1) << 64).to_le_bytes()
    }

    fn hash(self) -> u64 {
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

/// Marks with its highest bit each byte that words are made of: letters, the apostrophe, all beyond ASCII.
#[inline]
fn marks(bytes: u64) -> u64 {
    let low = bytes & !HIGH;
    let lower = low | (EACH * 0x20);
    let from_a = lower + EACH * u64::from(0x80 - b'a');
    let past_z = lower + EACH * u64::from(0x7f - b'z');
    let no_apostrophe = (low ^ (EACH * u64::from(b'\''))) + EACH * 0x7f;
    (bytes | (from_a & !past_z) | !no_apostrophe) & HIGH
}

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

/// How many of the window's bytes are of one word, or the space before one.
#[inline]
fn length(window: Key) -> usize {
    let space = u64::from(window.0 & 0xff == u64::from(b' ')) << 7;
    let others = !(marks(window.0) | space) & HIGH;
    if others != 0 {
        return (others.trailing_zeros() / 8) as usize;
    }
    let others = !marks(window.1) & HIGH;
    if others != 0 {
        8 + (others.trailing_zeros() / 8) as usize
    } else {
        WINDOW_BYTES
    }
}

fn is_part(byte: u8) -> bool {
    byte.is_ascii_alphabetic() || byte == b'\'' || byte >= 0x80
}

/// Whether a word may begin with the byte.
#[inline]
pub(super) fn begins(byte: u8) -> bool {
    byte == b' ' || is_part(byte)
}

/// The word at `at`, if one begins there that may be in a dictionary, and its length.
#[inline]
pub(super) fn unit(bytes: &[u8], at: usize) -> Option<(Key, usize)> {
    let window = window(bytes, at);
    let length = length(window);
    if !(LEAST_WORD_BYTES..=WORD_BYTES).contains(&length) {
        return None;
    }
    let keep = |bytes: usize| if bytes >= 8 { u64::MAX } else { (1 << (8 * bytes)) - 1 };
    // The last place, which no word reaches, has the length: so keys are as the dictionary has its words.
    let high = window.1 & keep(length.saturating_sub(8)) | (length as u64) << 56;
    Some((Key(window.0 & keep(length), high), length))
}

/// How many bytes at `at` belong together though they are no word: at least one.
#[inline]
pub(super) fn run(bytes: &[u8], at: usize) -> usize {
    let rest = &bytes[at + 1..];
    match begins(bytes[at]) {
        true => 1 + rest.iter().position(|byte| !is_part(*byte)).unwrap_or(rest.len()),
        false => 1,
    }
}

/// Finds words by their bytes: an open hash table of their numbers, which the first words of the dictionary, the frequent ones, are first in.
pub(super) struct Index {
    /// Number + 1 in the low half, 0 if free; a part of the hash in the high half.
    slots: Vec<u32>,
    shift: u32,
}

impl Index {
    pub(super) fn new(words: usize) -> Index {
        let bits = (words.max(8) * 2).next_power_of_two().trailing_zeros();
        Index { slots: vec![0; 1 << bits], shift: 64 - bits }
    }

    pub(super) fn memory(&self) -> usize {
        self.slots.len() * 4
    }

    fn place(&self, key: Key) -> (usize, u32) {
        let hash = key.hash();
        ((hash >> self.shift) as usize, (hash as u32) << 16)
    }

    /// Takes in word `number`, below 2^16 - 1. There are at most half as many words as slots.
    pub(super) fn insert(&mut self, key: Key, number: usize) {
        let (mut slot, tag) = self.place(key);
        while self.slots[slot] != 0 {
            slot = (slot + 1) & (self.slots.len() - 1);
        }
        self.slots[slot] = tag | (number as u32 + 1);
    }

    /// The number of a word; `word` gives the bytes of one.
    #[inline]
    pub(super) fn find(&self, key: Key, word: impl Fn(usize) -> [u8; WINDOW_BYTES]) -> Option<usize> {
        let (mut slot, tag) = self.place(key);
        loop {
            let found = self.slots[slot];
            if found == 0 {
                return None;
            }
            let number = (found & 0xffff) as usize - 1;
            if found & 0xffff_0000 == tag && word(number) == key.bytes() {
                return Some(number);
            }
            slot = (slot + 1) & (self.slots.len() - 1);
        }
    }
}
