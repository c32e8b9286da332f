//! Which words a dictionary gets: those that save most in a sample of the tree's blocks.

use super::words::{Key, KeyHasher, Span, Words, WORD_BYTES};
use super::{Dictionary, BYTES, HEADER_BYTES, MAGIC, VERSION};
use hashbrown::HashMap;
use std::hash::BuildHasherDefault;

/// More words than these are not told apart; those seen once are forgotten then.
const MOST_CANDIDATES: usize = 1 << 17;
/// One word for so many bytes of the sample, so that a dictionary is small beside its tree.
const SAMPLE_BYTES_PER_WORD: usize = 400;
/// Most words: 24,000 take 600 KB of memory, 100 KB on disk.
const MOST_WORDS: usize = 24_000;
/// A word that the sample has less often is not worth its place.
const LEAST_COUNT: u32 = 3;
/// A byte that serves as a code takes two bytes from then on: all together at most one in so many of the sample.
const RARE: usize = 100;
/// Codes of one byte, at most.
const MOST_SINGLES: usize = 60;

/// Counts words, block by block. Its memory is bounded.
pub struct Training {
    words: HashMap<Key, u32, BuildHasherDefault<KeyHasher>>,
    bytes: [usize; BYTES],
    sampled: usize,
}

impl Default for Training {
    fn default() -> Training {
        Training { words: HashMap::default(), bytes: [0; BYTES], sampled: 0 }
    }
}

impl Training {
    /// Bytes seen so far.
    pub fn sampled(&self) -> usize {
        self.sampled
    }

    /// Bytes of memory that it takes.
    pub fn memory(&self) -> usize {
        std::mem::size_of::<Training>() + self.words.capacity() * (std::mem::size_of::<(Key, u32)>() + 1)
    }

    /// Counts the words of a block.
    pub fn add(&mut self, block: &[u8]) {
        let mut counted = 0;
        let mut words = Words::new(block);
        while let Some(batch) = words.next_batch() {
            for span in batch.iter().map(|edges| Span::between(block, edges)).filter(Span::fits) {
                *self.words.entry(span.key(block)).or_insert(0) += 1;
                count(&mut self.bytes, &block[counted..span.start]);
                counted = span.end;
            }
        }
        count(&mut self.bytes, &block[counted..]);
        self.sampled += block.len();
        if self.words.len() > MOST_CANDIDATES {
            self.words.retain(|_, count| *count > 1);
            if self.words.len() > MOST_CANDIDATES {
                self.words.clear();
            }
        }
    }

    /// The dictionary in its stored form; None if there is nothing to gain.
    pub fn finish(&self) -> Option<Vec<u8>> {
        let frequent = self.words.iter().filter(|(_, count)| **count >= LEAST_COUNT);
        let mut words: Vec<(Key, u32)> = frequent.map(|(key, count)| (*key, *count)).collect();
        let bytes = |key: Key| word(&key.bytes()).len();
        // By what it saves; by itself where that is equal, so that the same blocks give the same dictionary.
        words.sort_unstable_by_key(|(key, count)| {
            (std::cmp::Reverse(*count as usize * (bytes(*key) - 1)), *key)
        });
        words.truncate((self.sampled / SAMPLE_BYTES_PER_WORD).min(MOST_WORDS));
        words.sort_unstable_by_key(|(key, count)| (std::cmp::Reverse(*count), *key));
        let codes = self.rare_bytes();
        let (escape, codes) = codes.split_first()?;
        if codes.len() < 2 || words.len() < 2 {
            return None;
        }
        // As many codes of one byte as the leading bytes of all others leave, but no word unreachable.
        let leads = words.len().div_ceil(BYTES).min(codes.len() - 1);
        let singles = (codes.len() - leads).min(MOST_SINGLES).min(words.len());
        words.truncate(singles + BYTES * leads);
        let leads = (words.len() - singles).div_ceil(BYTES);
        let mut stored = Vec::with_capacity(HEADER_BYTES + BYTES + words.len() * 10);
        stored.extend_from_slice(MAGIC);
        stored.extend_from_slice(&[VERSION, *escape, singles as u8, leads as u8]);
        stored.extend_from_slice(&(words.len() as u32).to_le_bytes());
        stored.extend_from_slice(&codes[..singles + leads]);
        stored.extend(words.iter().map(|(key, _)| bytes(*key) as u8));
        words.iter().for_each(|(key, _)| stored.extend_from_slice(word(&key.bytes())));
        Some(stored)
    }

    /// The bytes that are rare enough to become codes, the rarest first.
    fn rare_bytes(&self) -> Vec<u8> {
        let mut bytes: Vec<u8> = (0..=u8::MAX).collect();
        bytes.sort_by_key(|byte| self.bytes[usize::from(*byte)]);
        let mut left = self.sampled / RARE;
        let rare = bytes.iter().take_while(|byte| match left.checked_sub(self.bytes[usize::from(**byte)]) {
            Some(less) => {
                left = less;
                true
            }
            None => false,
        });
        // One has to stay for the text.
        rare.take(BYTES - 1).copied().collect()
    }
}

fn count(counts: &mut [usize; BYTES], bytes: &[u8]) {
    bytes.iter().for_each(|byte| counts[usize::from(*byte)] += 1);
}

/// The word of a key.
fn word(bytes: &[u8; WORD_BYTES + 1]) -> &[u8] {
    &bytes[..usize::from(bytes[WORD_BYTES])]
}

impl Dictionary {
    /// What `training` has found, as dictionary `number`.
    pub fn trained(training: &Training, number: u16) -> Option<Dictionary> {
        Dictionary::parse(number, training.finish()?).ok()
    }
}
