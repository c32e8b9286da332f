//! Latencies counted in buckets that are 1/64 of their value wide, so that percentiles are at most 1.6 % too large.
//! Count, mean and maximum are exact.
//!
//! ```text
//! value      0 .. 127      128, 130 .. 254     256, 260 .. 508    ...
//! bucket     0 .. 127      128 .. 191          192 .. 255         ...   64 buckets for each doubling
//! ```

use std::time::Duration;

/// Doublings that have buckets; what is longer than 2^42 ns (73 minutes) counts as that.
const LONGEST: u32 = 42;

/// A distribution of latencies, in nanoseconds.
#[derive(Clone, Debug, Default)]
pub struct Histogram {
    /// As many as the largest latency needs.
    buckets: Vec<u64>,
    count: u64,
    sum: u128,
    max: u64,
}

impl Histogram {
    /// Counts one latency.
    pub fn record(&mut self, latency: Duration) {
        let value = u64::try_from(latency.as_nanos()).unwrap_or(u64::MAX);
        let bucket = bucket(value);
        if bucket >= self.buckets.len() {
            self.buckets.resize(bucket + 1, 0);
        }
        self.buckets[bucket] += 1;
        self.count += 1;
        self.sum += u128::from(value);
        self.max = self.max.max(value);
    }

    /// Adds all of `other`.
    pub fn merge(&mut self, other: &Histogram) {
        if other.buckets.len() > self.buckets.len() {
            self.buckets.resize(other.buckets.len(), 0);
        }
        for (mine, others) in self.buckets.iter_mut().zip(&other.buckets) {
            *mine += others;
        }
        self.count += other.count;
        self.sum += other.sum;
        self.max = self.max.max(other.max);
    }

    /// How many latencies were recorded.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Their mean, in milliseconds; 0 without any.
    pub fn mean_ms(&self) -> f64 {
        if self.count == 0 {
            return 0.0;
        }
        self.sum as f64 / self.count as f64 / 1e6
    }

    /// The largest, in milliseconds.
    pub fn max_ms(&self) -> f64 {
        self.max as f64 / 1e6
    }

    /// The latency that `fraction` of all do not exceed, in milliseconds; up to 1.6 % too large, never above the
    /// maximum.
    pub fn percentile_ms(&self, fraction: f64) -> f64 {
        let rank = ((fraction * self.count as f64).ceil() as u64).max(1);
        let mut seen = 0;
        for (index, count) in self.buckets.iter().enumerate() {
            seen += count;
            if seen >= rank {
                return upper_edge(index).min(self.max) as f64 / 1e6;
            }
        }
        self.max_ms()
    }
}

fn bucket(value: u64) -> usize {
    let value = value.min((1 << LONGEST) - 1);
    let shift = (64 - value.leading_zeros()).saturating_sub(7);
    (shift * 64) as usize + (value >> shift) as usize
}

/// The largest value of a bucket.
fn upper_edge(bucket: usize) -> u64 {
    if bucket < 128 {
        return bucket as u64;
    }
    let shift = bucket / 64 - 1;
    (((bucket - shift * 64) as u64 + 1) << shift) - 1
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    #[test]
    fn every_value_lies_in_its_bucket() {
        let mut previous = 0;
        for exponent in 0..LONGEST {
            for value in [1u64 << exponent, (1 << exponent) + (1 << exponent) / 3, (2u64 << exponent) - 1] {
                let index = bucket(value);
                assert!(index >= previous, "{value}");
                assert!(value <= upper_edge(index) && upper_edge(index) - value <= value / 64 + 1, "{value}");
                assert!(index == 0 || value > upper_edge(index - 1), "{value}");
                previous = index;
            }
        }
        assert_eq!(bucket(u64::MAX), bucket((1 << LONGEST) - 1));
    }

    #[test]
    fn percentiles_are_those_of_the_sorted_values() {
        let mut random = Random::new(3, 0);
        for count in [1usize, 2, 10, 999, 20_000] {
            let mut values: Vec<u64> =
                (0..count).map(|_| (random.normal() * 2.0 + 12.0).exp() as u64).collect();
            let mut parts = [Histogram::default(), Histogram::default()];
            for (index, value) in values.iter().enumerate() {
                parts[index % 2].record(Duration::from_nanos(*value));
            }
            let [mut whole, second] = parts;
            whole.merge(&second);
            values.sort_unstable();
            assert_eq!(whole.count(), count as u64);
            assert_eq!(whole.max_ms(), values[count - 1] as f64 / 1e6);
            let mean = values.iter().sum::<u64>() as f64 / count as f64 / 1e6;
            assert!((whole.mean_ms() - mean).abs() <= mean * 1e-9);
            for fraction in [0.01, 0.5, 0.95, 0.99, 1.0] {
                let rank = ((fraction * count as f64).ceil() as usize).max(1);
                let exact = values[rank - 1] as f64 / 1e6;
                let found = whole.percentile_ms(fraction);
                assert!(
                    found >= exact && found <= exact * (1.0 + 1.0 / 64.0) + 1e-6,
                    "{fraction} of {count}: {found} for {exact}"
                );
            }
        }
        assert_eq!(Histogram::default().percentile_ms(0.99), 0.0);
    }
}
