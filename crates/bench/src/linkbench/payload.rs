//! The contents of nodes and links: bytes that compress about as well as Facebook's do. They are made of pieces of up
//! to 128 bytes, and each piece is either new or a part of a short text, the motif, that all contents of one generator
//! share.

use crate::random::Random;

const PIECE: usize = 128;

/// What contents look like; the figures are those of LinkBench's default workload.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    /// The smallest and the largest byte.
    bytes: (u8, u8),
    /// The share of pieces that are new.
    new: f64,
    /// The length of the motif.
    motif: usize,
    /// The median of the length, which is log-normal with sigma 1.
    median: f64,
    /// The length is below this.
    limit: usize,
}

/// Contents of links: 8 bytes in the median, compressible to about 30 %.
pub const LINK: Shape = Shape { bytes: (32, 100), new: 0.225, motif: 128, median: 8.0, limit: 255 };
/// Contents of nodes: 128 bytes in the median, compressible to about 60 %.
pub const NODE: Shape = Shape { bytes: (50, 220), new: 0.63, motif: 512, median: 128.0, limit: 1 << 20 };

/// Makes contents of one shape with a motif of its own.
#[derive(Clone, Debug)]
pub struct Payload {
    shape: Shape,
    motif: Vec<u8>,
}

impl Payload {
    /// The motif depends on `seed` and `stream`.
    pub fn new(shape: Shape, seed: u64, stream: u64) -> Payload {
        let mut random = Random::new(seed, stream);
        let motif = (0..shape.motif).map(|_| shape.byte(&mut random)).collect();
        Payload { shape, motif }
    }

    /// Contents of random length.
    pub fn make(&self, random: &mut Random) -> Vec<u8> {
        let length = self.shape.length(random);
        let mut made = Vec::with_capacity(length);
        while made.len() < length {
            let piece = PIECE.min(length - made.len());
            if random.fraction() < self.shape.new {
                made.extend((0..piece).map(|_| self.shape.byte(random)));
            } else {
                let from = random.below((self.motif.len() - piece + 1) as u64) as usize;
                made.extend_from_slice(&self.motif[from..from + piece]);
            }
        }
        made
    }
}

impl Shape {
    fn byte(&self, random: &mut Random) -> u8 {
        let (first, last) = self.bytes;
        first + random.below(u64::from(last - first) + 1) as u8
    }

    fn length(&self, random: &mut Random) -> usize {
        let length = (random.normal() + self.median.ln()).exp().round();
        (length as usize).min(self.limit - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_bytes_and_motifs_are_those_of_the_default_workload() {
        for (shape, median, mean) in [(LINK, 8.0, 13.1), (NODE, 128.0, 211.0)] {
            let payload = Payload::new(shape, 1, 2);
            let mut random = Random::new(4, 0);
            let mut lengths = Vec::new();
            let (mut pieces, mut known) = (0u32, 0u32);
            for _ in 0..20_000 {
                let made = payload.make(&mut random);
                assert!(made.len() < shape.limit);
                assert!(made.iter().all(|byte| (shape.bytes.0..=shape.bytes.1).contains(byte)));
                for piece in made.chunks(PIECE).filter(|piece| piece.len() >= 6) {
                    pieces += 1;
                    known += u32::from(payload.motif.windows(piece.len()).any(|part| part == piece));
                }
                lengths.push(made.len());
            }
            lengths.sort_unstable();
            let found = lengths[lengths.len() / 2] as f64;
            assert!((found / median - 1.0).abs() < 0.05, "{found}");
            // exp(1/2) times the median, a little less for the limit and the rounding.
            let found = lengths.iter().sum::<usize>() as f64 / lengths.len() as f64;
            assert!((found / mean - 1.0).abs() < 0.05, "{found}");
            let found = 1.0 - f64::from(known) / f64::from(pieces);
            assert!((found - shape.new).abs() < 0.02, "{found}");
        }
    }

    #[test]
    fn equal_streams_make_equal_contents() {
        let make = |stream| -> Vec<Vec<u8>> {
            let (payload, mut random) = (Payload::new(NODE, 1, stream), Random::new(1, 1));
            (0..20).map(|_| payload.make(&mut random)).collect()
        };
        assert_eq!(make(3), make(3));
        assert_ne!(make(3), make(4));
    }
}
