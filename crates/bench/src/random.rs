//! Random numbers that are the same on every machine and with every version: equal seeds make equal databases and
//! equal requests. The generator is xoshiro256++ (Blackman and Vigna), seeded by splitmix64.

/// One stream of random numbers.
#[derive(Clone, Debug)]
pub struct Random {
    state: [u64; 4],
}

impl Random {
    /// Stream number `stream` of `seed`; different streams have nothing to do with each other.
    pub fn new(seed: u64, stream: u64) -> Random {
        let mut mixed = split_mix(seed).wrapping_add(stream);
        let state = std::array::from_fn(|_| {
            mixed = mixed.wrapping_add(0x9E37_79B9_7F4A_7C15);
            split_mix(mixed)
        });
        Random { state }
    }

    /// 64 random bits.
    pub fn bits(&mut self) -> u64 {
        let s = &mut self.state;
        let result = s[0].wrapping_add(s[3]).rotate_left(23).wrapping_add(s[0]);
        let shifted = s[1] << 17;
        s[2] ^= s[0];
        s[3] ^= s[1];
        s[1] ^= s[2];
        s[0] ^= s[3];
        s[2] ^= shifted;
        s[3] = s[3].rotate_left(45);
        result
    }

    /// From 0 (included) to 1 (excluded).
    pub fn fraction(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// From 0 to `bound - 1`; `bound` is at least 1.
    pub fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.bits()) * u128::from(bound)) >> 64) as u64
    }

    /// The standard normal distribution (Box and Muller).
    pub fn normal(&mut self) -> f64 {
        let radius = (-2.0 * (1.0 - self.fraction()).ln()).sqrt();
        radius * (std::f64::consts::TAU * self.fraction()).cos()
    }

    /// The exponential distribution with mean 1: intervals between events that do not know of each other.
    pub fn exponential(&mut self) -> f64 {
        -(1.0 - self.fraction()).ln()
    }
}

fn split_mix(value: u64) -> u64 {
    let value = (value ^ (value >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    value ^ (value >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_repeat_and_differ() {
        let first: Vec<u64> = (0..4)
            .map({
                let mut random = Random::new(7, 1);
                move |_| random.bits()
            })
            .collect();
        let again: Vec<u64> = (0..4)
            .map({
                let mut random = Random::new(7, 1);
                move |_| random.bits()
            })
            .collect();
        assert_eq!(first, again);
        assert_ne!(first[0], Random::new(7, 2).bits());
        assert_ne!(first[0], Random::new(8, 1).bits());
    }

    #[test]
    fn moments_are_those_of_the_distributions() {
        let mut random = Random::new(1, 1);
        let count = 200_000;
        let (mut normal, mut square, mut exponential, mut fraction) = (0.0, 0.0, 0.0, 0.0);
        for _ in 0..count {
            let value = random.normal();
            normal += value;
            square += value * value;
            exponential += random.exponential();
            fraction += random.fraction();
            assert!(random.below(10) < 10);
        }
        let mean = |sum: f64| sum / f64::from(count);
        assert!(mean(normal).abs() < 0.02, "{}", mean(normal));
        assert!((mean(square) - 1.0).abs() < 0.02, "{}", mean(square));
        assert!((mean(exponential) - 1.0).abs() < 0.02, "{}", mean(exponential));
        assert!((mean(fraction) - 0.5).abs() < 0.01, "{}", mean(fraction));
    }
}
