//! The power law by which LinkBench picks ids: the id of rank r (from 0) with a probability proportional to 1 / (r +
//! 1)^shape.
//!
//! Drawn by the method of Gray and others, "Quickly Generating Billion-Record Synthetic Databases" (1994): the two
//! first ranks exactly, the others by an inverse of the approximate distribution, which takes constant time.

use crate::random::Random;

/// Terms of the harmonic sum that are added one by one; the rest is an integral with two corrections.
const EXACT_TERMS: u64 = 1000;

/// A Zipf distribution over the ranks from 0 to `ranks - 1`.
#[derive(Clone, Debug)]
pub struct Zipf {
    ranks: u64,
    /// Sum of all weights.
    total: f64,
    alpha: f64,
    eta: f64,
    /// Weight of the second rank; the first has 1.
    second: f64,
}

impl Zipf {
    /// `shape` is above 0 and below 1; `ranks` at least 1.
    pub fn new(ranks: u64, shape: f64) -> Zipf {
        let total = harmonic(ranks, shape);
        let eta = (1.0 - (2.0 / ranks as f64).powf(1.0 - shape)) / (1.0 - harmonic(2, shape) / total);
        Zipf { ranks, total, alpha: 1.0 / (1.0 - shape), eta, second: 0.5f64.powf(shape) }
    }

    /// One rank.
    pub fn draw(&self, random: &mut Random) -> u64 {
        let fraction = random.fraction();
        let weight = fraction * self.total;
        if weight < 1.0 || self.ranks == 1 {
            return 0;
        }
        if weight < 1.0 + self.second {
            return 1;
        }
        let rank = self.ranks as f64 * (self.eta * fraction - self.eta + 1.0).powf(self.alpha);
        (rank as u64).min(self.ranks - 1)
    }
}

/// 1 + 1/2^shape + ... + 1/count^shape, by Euler's and Maclaurin's formula beyond the first terms.
fn harmonic(count: u64, shape: f64) -> f64 {
    let exact = count.min(EXACT_TERMS);
    let term = |n: f64| n.powf(-shape);
    let sum: f64 = (1..=exact).map(|n| term(n as f64)).sum();
    if count == exact {
        return sum;
    }
    let (from, to) = (exact as f64, count as f64);
    let integral = (to.powf(1.0 - shape) - from.powf(1.0 - shape)) / (1.0 - shape);
    let edges = (term(to) - term(from)) / 2.0;
    let slopes = shape * (from.powf(-shape - 1.0) - to.powf(-shape - 1.0)) / 12.0;
    sum + integral + edges + slopes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sum_is_the_sum() {
        for shape in [0.606, 0.741, 0.8] {
            let exact: f64 = (1..=50_000u64).map(|n| (n as f64).powf(-shape)).sum();
            assert!((harmonic(50_000, shape) / exact - 1.0).abs() < 1e-9);
        }
    }

    #[test]
    fn ranks_are_drawn_as_often_as_the_power_law_says() {
        for (ranks, shape) in [(1_000_000u64, 0.8), (100_000, 0.741), (1000, 0.606)] {
            let zipf = Zipf::new(ranks, shape);
            let mut random = Random::new(5, 0);
            let draws = 300_000;
            let mut below = [0u64; 4];
            let borders = [1, 2, ranks / 100, ranks / 4];
            for _ in 0..draws {
                let rank = zipf.draw(&mut random);
                assert!(rank < ranks);
                for (count, border) in below.iter_mut().zip(borders) {
                    *count += u64::from(rank < border);
                }
            }
            for (count, border) in below.into_iter().zip(borders) {
                let expected = harmonic(border, shape) / harmonic(ranks, shape);
                let found = count as f64 / f64::from(draws);
                // The method is an approximation between the head and the tail.
                assert!(
                    (found - expected).abs() < 0.04 * expected + 0.002,
                    "{ranks} {shape} {border}: {found} for {expected}"
                );
            }
        }
    }

    #[test]
    fn one_rank_and_two_ranks_are_possible() {
        let mut random = Random::new(5, 0);
        let few: Vec<u64> = (0..100).map(|_| Zipf::new(2, 0.8).draw(&mut random)).collect();
        assert!(few.iter().all(|rank| *rank < 2) && few.contains(&1) && few.contains(&0));
        assert_eq!(Zipf::new(1, 0.8).draw(&mut random), 0);
    }
}
