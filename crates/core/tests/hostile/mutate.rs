//! Mutations of bytes, the same for the same seed.

/// Marsaglia's xorshift: every bit pattern but zero, in a fixed order.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as usize % limit.max(1)
    }
}

/// Numbers at which lengths and offsets go wrong.
const EDGES: [u64; 12] =
    [0, 1, 0x7f, 0x80, 0xff, 0xffff, 0x7fff_ffff, 0x8000_0000, 0xffff_ffff, 1 << 40, 1 << 63, u64::MAX];

/// One to six changes of `bytes`: bits, bytes, numbers of all widths, runs that go, come twice, or come from another.
pub fn mutate(bytes: &[u8], others: &[(String, Vec<u8>)], seed: u64) -> Vec<u8> {
    let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    let mut out = bytes.to_vec();
    for _ in 0..=random.below(6) {
        // Most of what is decoded is at the beginning.
        let reach = if random.below(2) == 0 { out.len().min(64) } else { out.len() };
        let at = random.below(reach);
        let run = random.below(out.len().saturating_sub(at).min(64) + 1);
        match random.below(8) {
            _ if out.is_empty() => out.push(random.below(256) as u8),
            0 => out[at] ^= 1 << random.below(8),
            1 => out[at] = random.below(256) as u8,
            2 => {
                let number = EDGES[random.below(EDGES.len())].to_le_bytes();
                let width = [1, 2, 4, 8][random.below(4)].min(out.len() - at);
                out[at..at + width].copy_from_slice(&number[..width]);
            }
            3 => out[at] = out[at].wrapping_add(if random.below(2) == 0 { 1 } else { u8::MAX }),
            4 => drop(out.drain(at..at + run)),
            5 => {
                let twice = out[at..at + run].to_vec();
                drop(out.splice(at..at, twice));
            }
            6 => out.truncate(at),
            _ => {
                let other = &others[random.below(others.len())].1;
                let from = random.below(other.len());
                let piece = &other[from..other.len().min(from + run)];
                let end = out.len().min(at + piece.len());
                drop(out.splice(at..end, piece.iter().copied()));
            }
        }
    }
    out
}
