//! Finds words by their bytes: a hash table without collisions.
//!
//! A part of a word's hash chooses its bucket, the bucket's *step* together with the rest of the hash the one slot
//! where the word can be. The steps are chosen, bucket by bucket, so that no two words share a slot. So a search takes
//! three reads and one comparison, whatever it finds.
//!
//! Source of the idea: Belazzougui, Botelho, Dietzfelbinger, "Hash, displace, and compress", 2009.

use super::words::Key;

/// Words of a bucket, on average: the fewer, the sooner a step for all is found.
const BUCKET_WORDS: usize = 3;

/// Where the items of words are. Item 0 is that of no word.
pub(super) struct Index {
    /// By bucket.
    steps: Vec<u8>,
    /// By slot: the item of the word, 0 if there is none.
    slots: Vec<u16>,
    /// Which bits of a hash choose the bucket.
    shift: u32,
}

impl Index {
    /// Of the words of `keys`, whose items are numbered from `first` on. A word that is there twice has its first item.
    /// One for which there is no slot is left out, which only words made for it bring about.
    pub(super) fn new(keys: &[Key], first: u16) -> Index {
        let slots = (keys.len() * 5 / 4).next_power_of_two();
        let bits = (keys.len() / BUCKET_WORDS).max(2).next_power_of_two().trailing_zeros();
        let mut index = Index { steps: vec![0; 1 << bits], slots: vec![0; slots], shift: 64 - bits };
        let mut words: Vec<(usize, Key, u16)> =
            keys.iter().zip(first..).map(|(key, item)| (index.bucket(key.hash()), *key, item)).collect();
        words.sort_unstable();
        words.dedup_by_key(|(_, key, _)| *key);
        let mut buckets: Vec<_> = words.chunk_by(|a, b| a.0 == b.0).collect();
        // Large ones first, while there is room.
        buckets.sort_by_key(|bucket| std::cmp::Reverse(bucket.len()));
        for mut bucket in buckets {
            while !index.place(bucket) {
                bucket = &bucket[..bucket.len() - 1];
            }
        }
        index
    }

    pub(super) fn memory(&self) -> usize {
        self.steps.capacity() + self.slots.capacity() * std::mem::size_of::<u16>()
    }

    /// The only item that may have the key, for each hash of a key.
    #[inline]
    pub(super) fn candidates(&self, hashes: &[u64], items: &mut [u16]) {
        for (hash, item) in hashes.iter().zip(items) {
            *item = self.slots[self.slot(*hash, self.steps[self.bucket(*hash)])];
        }
    }

    #[inline]
    fn bucket(&self, hash: u64) -> usize {
        (hash >> self.shift) as usize
    }

    #[inline]
    fn slot(&self, hash: u64, step: u8) -> usize {
        let stride = hash as usize >> 16 | 1;
        ((hash >> 24) as usize).wrapping_add(usize::from(step).wrapping_mul(stride)) & (self.slots.len() - 1)
    }

    /// Puts the words of a bucket into slots of their own; false if no step does that.
    fn place(&mut self, bucket: &[(usize, Key, u16)]) -> bool {
        let Some((number, ..)) = bucket.first() else { return true };
        for step in 0..=u8::MAX {
            let mut placed = 0;
            for (_, key, item) in bucket {
                let slot = self.slot(key.hash(), step);
                if self.slots[slot] != 0 {
                    break;
                }
                self.slots[slot] = *item;
                placed += 1;
            }
            if placed == bucket.len() {
                self.steps[*number] = step;
                return true;
            }
            for (_, key, _) in &bucket[..placed] {
                let slot = self.slot(key.hash(), step);
                self.slots[slot] = 0;
            }
        }
        false
    }
}
