//! Texts for tests: words of a small vocabulary, some much more frequent than others, the same for the same seed.
//! `crates/core/tests/fixtures/deflated/write.py` makes the same ones.

use super::zlib::{Deflater, Memory};

/// Knuth's linear congruential generator; its high bits.
pub(super) struct Random(pub u64);

impl Random {
    pub(super) fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 33) % limit
    }
}

/// One of 512 words; the smaller its number, the more frequent.
pub(super) fn word(random: &mut Random) -> String {
    const SYLLABLES: [&str; 16] = [
        "ba", "den", "ci", "tor", "lu", "mes", "no", "pri", "qua", "ren", "si", "tal", "ver", "wo", "an",
        "ge",
    ];
    let number = ((random.below(512) * random.below(512)) >> 9) as usize;
    let mut word = String::new();
    for digit in 0..2 + number % 3 {
        word.push_str(SYLLABLES[((number * 7) >> (3 * digit)) % 16]);
    }
    word
}

/// A text of so many bytes.
pub(crate) fn text(seed: u64, bytes: usize) -> Vec<u8> {
    let mut random = Random(seed);
    let mut text = String::new();
    while text.len() < bytes {
        text.push_str(&word(&mut random));
        text.push_str(if random.below(12) == 0 { ".\n" } else { " " });
    }
    text.truncate(bytes);
    text.into_bytes()
}

/// `content` as a raw deflate stream of level 6.
pub(crate) fn deflated(content: &[u8]) -> Vec<u8> {
    let mut stream = Vec::with_capacity(content.len() + content.len() / 8 + 200);
    let made = Deflater::with(6, Memory::Usual, |deflater| deflater.step(content, &mut stream, usize::MAX));
    assert!(made.expect("memory").ended);
    stream
}

/// Bytes that nothing compresses.
pub(super) fn noise(seed: u64, bytes: usize) -> Vec<u8> {
    let mut random = Random(seed);
    (0..bytes).map(|_| random.below(256) as u8).collect()
}
