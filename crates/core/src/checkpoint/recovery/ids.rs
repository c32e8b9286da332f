//! Maps keyed by the engine's own numbers.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// A map keyed by a tree or transaction. Their numbers are given out in order by the engine itself, so nobody can
/// choose them to collide, and one multiplication spreads them (Fibonacci hashing, Knuth).
pub type IdMap<V> = HashMap<u64, V, BuildHasherDefault<IdHasher>>;

/// See [`IdMap`].
#[derive(Default, Clone, Copy)]
pub struct IdHasher(u64);

impl Hasher for IdHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.write_u64(u64::from(byte));
        }
    }

    fn write_u64(&mut self, id: u64) {
        self.0 = (self.0 ^ id).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(32);
    }
}
