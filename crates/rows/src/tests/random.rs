//! Scans with random bounds against a sorted map.

use std::collections::BTreeSet;

use super::*;

/// xorshift64*
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Random {
        Random(seed | 1)
    }

    /// From TEAK_SEED, and printed.
    pub fn seed() -> u64 {
        let seed = std::env::var("TEAK_SEED").ok().and_then(|s| s.parse().ok()).unwrap_or(0x7EA6);
        println!("TEAK_SEED={seed}");
        seed
    }

    pub fn below(&mut self, n: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 33) % n
    }

    /// Up to three bytes of few values, so that prefixes and neighbours are common.
    fn key(&mut self) -> Vec<u8> {
        (0..=self.below(3)).map(|_| [0x00, 0x41, 0x42, 0xFE, 0xFF][self.below(5) as usize]).collect()
    }
}

/// How a key lies to "begins with `at`": -1 before, 0 at, 1 behind.
fn side(key: &[u8], at: &[u8]) -> i32 {
    match key.starts_with(at) {
        true => 0,
        false if key < at => -1,
        false => 1,
    }
}

fn expected(keys: &BTreeSet<Vec<u8>>, start: Start, key: &[u8], end: End<'_>) -> Vec<Vec<u8>> {
    let up = start.direction() == crate::bounds::Direction::Up;
    let from = |k: &[u8]| match start {
        Start::First | Start::Last => true,
        Start::AtOrAfter => k >= key,
        Start::After => side(k, key) > 0,
        Start::AtOrBefore => side(k, key) <= 0,
        Start::Before => k < key,
    };
    let to = |k: &[u8]| match (end, up) {
        (End::Open, _) => true,
        (End::Include(bound), true) => side(k, bound) <= 0,
        (End::Exclude(bound), true) => side(k, bound) < 0,
        (End::Include(bound), false) => side(k, bound) >= 0,
        (End::Exclude(bound), false) => side(k, bound) > 0,
    };
    let mut found: Vec<Vec<u8>> = keys.iter().filter(|k| from(k) && to(k)).cloned().collect();
    if !up {
        found.reverse();
    }
    found
}

#[test]
fn scans_return_what_lies_between_their_bounds() {
    let mut random = Random::new(Random::seed());
    for _ in 0..20 {
        let bench = Bench::new();
        let keys: BTreeSet<Vec<u8>> = (0..40).map(|_| random.key()).collect();
        let mut session = bench.repeatable();
        for key in &keys {
            let none = std::iter::empty();
            session.insert(&bench.table, key, key, none, Promise::default()).unwrap();
        }
        session.commit().unwrap();
        for _ in 0..100 {
            let (key, bound) = (random.key(), random.key());
            let starts =
                [Start::First, Start::Last, Start::AtOrAfter, Start::After, Start::AtOrBefore, Start::Before];
            let start = starts[random.below(6) as usize];
            let end =
                [End::Open, End::Include(&bound[..]), End::Exclude(&bound[..])][random.below(3) as usize];
            let read = [Read::SNAPSHOT, SHARED, EXCLUSIVE][random.below(3) as usize];
            let mut session = bench.repeatable();
            let mut cursor = bench.cursor(0);
            let mut found = Vec::new();
            let mut result = cursor.seek(&mut session, start, &key, end, read);
            while result.is_ok() {
                assert_eq!(cursor.value().unwrap(), cursor.key());
                found.push(cursor.key().to_vec());
                result = match start.direction() {
                    crate::bounds::Direction::Up => cursor.next(&mut session),
                    crate::bounds::Direction::Down => cursor.prev(&mut session),
                };
            }
            assert!(matches!(result, Err(Stop::NotFound | Stop::End)), "{result:?}");
            assert_eq!(found, expected(&keys, start, &key, end), "{start:?} {key:x?} {end:?} {read:?}");
        }
    }
}
