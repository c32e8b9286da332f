//! Hashing of the numbers that the engine gives itself (trees, transactions): nobody can choose them so that they
//! collide, so a multiplication is enough.

use std::hash::{BuildHasherDefault, Hasher};

/// A map with numbers of the engine as keys.
pub(crate) type NumberMap<K, V> = std::collections::HashMap<K, V, BuildHasherDefault<NumberHasher>>;

/// A set of numbers of the engine.
pub(crate) type NumberSet<K> = std::collections::HashSet<K, BuildHasherDefault<NumberHasher>>;

/// See the module's documentation.
#[derive(Default)]
pub(crate) struct NumberHasher(u64);

impl Hasher for NumberHasher {
    fn finish(&self) -> u64 {
        self.0
    }
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.write_u64(u64::from(*byte)));
    }
    fn write_u64(&mut self, number: u64) {
        // The high half of the product depends on all bits of the number; tables take their places from the low ones.
        let product = u128::from(self.0.rotate_left(29) ^ number) * 0x9e37_79b9_7f4a_7c15;
        self.0 = (product >> 64) as u64 ^ product as u64;
    }
    fn write_isize(&mut self, number: isize) {
        self.write_u64(number as u64);
    }
    fn write_usize(&mut self, number: usize) {
        self.write_u64(number as u64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::hash::BuildHasher;

    #[test]
    fn numbers_one_after_the_other_spread_over_the_places_of_a_table() {
        let hash = BuildHasherDefault::<NumberHasher>::default();
        let mut places = [0u32; 256];
        (0..4096u64).for_each(|number| places[(hash.hash_one(number) & 255) as usize] += 1);
        assert!(places.iter().all(|&count| (1..64).contains(&count)), "{places:?}");
    }
}
