//! A permutation of the ids and its inverse: ranks that follow each other must not be ids that follow each other, or
//! the most popular nodes would lie in the same few pages.
//!
//! As LinkBench has it: the ids are dealt out to 1024 groups (id modulo 1024), and each group is rotated by a random
//! number of places. Two distributions that use the same permutation are correlated, with different ones they are not.

use crate::random::Random;

/// Groups that are rotated; fewer if there are fewer ids.
const GROUPS: u64 = 1024;

/// A permutation of 0 .. size-1.
#[derive(Clone, Debug)]
pub struct Shuffle {
    size: u64,
    rotations: Vec<u64>,
}

impl Shuffle {
    /// The permutation of `seed` over `size` numbers, at least 1.
    pub fn new(seed: u64, size: u64) -> Shuffle {
        let groups = GROUPS.min(size);
        let mut random = Random::new(seed, 0);
        let rotations = (0..groups).map(|_| random.below(size / groups)).collect();
        Shuffle { size, rotations }
    }

    /// Where `index` goes.
    pub fn forward(&self, index: u64) -> u64 {
        self.rotate(index, |rotation, _| rotation)
    }

    /// What goes to `index`.
    pub fn inverse(&self, index: u64) -> u64 {
        self.rotate(index, |rotation, members| members - rotation)
    }

    fn rotate(&self, index: u64, places: impl Fn(u64, u64) -> u64) -> u64 {
        let groups = self.rotations.len() as u64;
        let group = index % groups;
        let members = self.size / groups + u64::from(group < self.size % groups);
        let place = (index / groups + places(self.rotations[group as usize], members)) % members;
        place * groups + group
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_a_permutation_with_its_inverse() {
        for size in [1, 2, 1023, 1024, 1025, 5000, 20_480] {
            let shuffle = Shuffle::new(9, size);
            let mut hit = vec![false; size as usize];
            for index in 0..size {
                let to = shuffle.forward(index);
                assert!(!std::mem::replace(&mut hit[to as usize], true), "{size}: {to} twice");
                assert_eq!(shuffle.inverse(to), index);
            }
        }
    }

    #[test]
    fn seeds_make_different_permutations() {
        let (a, b) = (Shuffle::new(1, 100_000), Shuffle::new(2, 100_000));
        let same = (0..100_000).filter(|index| a.forward(*index) == b.forward(*index)).count();
        assert!(same < 5000, "{same}");
        assert!((0..100_000).filter(|index| a.forward(*index) == *index).count() < 5000);
    }
}
