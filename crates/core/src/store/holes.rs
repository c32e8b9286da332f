//! Which free ranges of a file the file system has back.
//!
//! ```text
//! free:   |      ###########        ####################################        ###    |
//! holes:  |                            ======================                          |    known, of whole blocks
//! missing |                          --                      ----------                |    those that are long enough
//! ```
//! Known are the holes that this process made. A start knows of none and makes them again, which costs a system call
//! each.
//!
//! Invariants: holes are disjoint, never adjacent, of whole blocks, and free.

use std::collections::BTreeMap;

use super::allocator::Allocator;

/// The blocks of most file systems. Where they are larger, the edges of a hole go on taking space.
const BLOCK_BYTES: u64 = 4096;
/// A range is taken away from writers while it is punched: not more than this at a time.
const LARGEST: u64 = 16 << 20;

/// The holes of one file: their ends by their beginnings.
#[derive(Debug, Default)]
pub(super) struct Holes {
    ends: BTreeMap<u64, u64>,
    bytes: u64,
}

impl Holes {
    /// All of them together.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// This range, of whole blocks, has become a hole.
    pub fn punched(&mut self, offset: u64, bytes: u64) {
        let (mut start, mut end) = (offset, offset + bytes);
        while let Some((other, other_end)) = self.last_before(end + 1).filter(|&(_, e)| e >= start) {
            self.remove(other, other_end);
            (start, end) = (start.min(other), end.max(other_end));
        }
        self.insert(start, end);
    }

    /// The range is going to be written: each block that it touches takes space again.
    pub fn filled(&mut self, offset: u64, bytes: u64) {
        let (start, end) = (down(offset), (offset + bytes).next_multiple_of(BLOCK_BYTES));
        while let Some((hole, hole_end)) = self.last_before(end).filter(|&(_, e)| e > start) {
            self.remove(hole, hole_end);
            self.insert(hole, start);
            self.insert(end, hole_end);
        }
    }

    /// The file ends there.
    pub fn cut(&mut self, end: u64) {
        if let Some((_, last)) = self.last_before(u64::MAX).filter(|&(_, last)| last > end) {
            self.filled(end, last - end);
        }
    }

    /// Up to `maximum` ranges (offset, length) of whole blocks that are free and no holes, each of at least `smallest`
    /// bytes or cut from such; those in the largest free ranges first, so that a bounded number of calls gives back as
    /// much as it can.
    pub fn missing(&self, free: &Allocator, smallest: u64, maximum: usize) -> Vec<(u64, u64)> {
        let smallest = smallest.max(BLOCK_BYTES);
        let mut found = Vec::new();
        for (offset, bytes) in free.largest(smallest) {
            let (mut start, end) = (offset.next_multiple_of(BLOCK_BYTES), down(offset + bytes));
            let before = self.last_before(start + 1);
            let inside = self.ends.range(start + 1..end.max(start + 1)).map(|(&hole, &end)| (hole, end));
            for (hole, hole_end) in before.into_iter().chain(inside).chain([(end, end)]) {
                if hole.saturating_sub(start) >= smallest {
                    let pieces = (start..hole).step_by(LARGEST as usize);
                    found.extend(pieces.map(|at| (at, LARGEST.min(hole - at))).take(maximum - found.len()));
                }
                start = start.max(hole_end);
            }
            if found.len() >= maximum {
                break;
            }
        }
        found
    }

    fn last_before(&self, offset: u64) -> Option<(u64, u64)> {
        self.ends.range(..offset).next_back().map(|(&start, &end)| (start, end))
    }

    fn insert(&mut self, start: u64, end: u64) {
        if start < end {
            self.ends.insert(start, end);
            self.bytes += end - start;
        }
    }

    fn remove(&mut self, start: u64, end: u64) {
        self.ends.remove(&start);
        self.bytes -= end - start;
    }
}

fn down(offset: u64) -> u64 {
    offset - offset % BLOCK_BYTES
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const FILE_BLOCKS: u64 = 64;

    #[derive(Debug, Clone)]
    enum Step {
        Allocate(u64),
        Release(usize),
        Punch { smallest: u64, maximum: usize },
        Trim,
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            3 => (1u64..60).prop_map(|units| Step::Allocate(units * 512)),
            3 => any::<usize>().prop_map(Step::Release),
            2 => (0u64..40_000, 0usize..9).prop_map(|(smallest, maximum)| Step::Punch { smallest, maximum }),
            1 => Just(Step::Trim),
        ]
    }

    proptest! {
        /// The model is one flag per block: it is a hole since it was punched and until a byte of it is given out.
        #[test]
        fn holes_are_free_blocks_that_were_punched(steps in proptest::collection::vec(step(), 1..200)) {
            let mut allocator = Allocator::new(0);
            let mut holes = Holes::default();
            let mut used: Vec<(u64, u64)> = Vec::new();
            let mut model = vec![false; FILE_BLOCKS as usize * 100];
            for step in steps {
                match step {
                    Step::Allocate(bytes) => {
                        let offset = allocator.allocate(bytes);
                        holes.filled(offset, bytes);
                        used.push((offset, bytes));
                        (down(offset)..offset + bytes).step_by(4096).for_each(|at| model[(at / 4096) as usize] = false);
                    }
                    Step::Release(i) if !used.is_empty() => {
                        let (offset, bytes) = used.swap_remove(i % used.len());
                        prop_assert!(allocator.release(offset, bytes));
                    }
                    Step::Release(_) => (),
                    Step::Punch { smallest, maximum } => {
                        let missing = holes.missing(&allocator, smallest, maximum);
                        prop_assert!(missing.len() <= maximum);
                        for (offset, bytes) in missing {
                            prop_assert!(allocator.clone().take(offset, bytes), "it is free");
                            prop_assert!(bytes > 0 && bytes % 4096 == 0 && offset % 4096 == 0);
                            for at in (offset..offset + bytes).step_by(4096) {
                                let was = std::mem::replace(&mut model[(at / 4096) as usize], true);
                                prop_assert!(!was, "it is no hole yet");
                            }
                            holes.punched(offset, bytes);
                        }
                        if maximum == 8 && smallest < 4096 {
                            // Until nothing is left to do.
                            while let Some(&(offset, bytes)) = holes.missing(&allocator, 0, 1).first() {
                                (offset..offset + bytes).step_by(4096).for_each(|at| model[(at / 4096) as usize] = true);
                                holes.punched(offset, bytes);
                            }
                            let whole = |(offset, bytes): (u64, u64)| offset.next_multiple_of(4096)..down(offset + bytes);
                            let blocks: u64 = allocator.ranges().map(whole).map(|r| r.end.saturating_sub(r.start)).sum();
                            prop_assert_eq!(holes.bytes(), blocks, "each whole free block is a hole");
                        }
                    }
                    Step::Trim => {
                        let end = allocator.trim();
                        holes.cut(end);
                        model[(end / 4096) as usize..].fill(false);
                    }
                }
                let expected = model.iter().filter(|&&hole| hole).count() as u64 * 4096;
                prop_assert_eq!(holes.bytes(), expected);
                for (&start, &end) in &holes.ends {
                    prop_assert!((start..end).step_by(4096).all(|at| model[(at / 4096) as usize]));
                }
                prop_assert!(holes.ends.iter().zip(holes.ends.keys().skip(1)).all(|((_, end), next)| end < next));
            }
        }
    }

    #[test]
    fn the_largest_come_first_and_in_pieces() {
        let mut free = Allocator::new(1 << 30);
        for (offset, bytes) in [(100 << 10, 20 << 10), (1 << 20, 40 << 20), (60 << 20, 300 << 10)] {
            assert!(free.release(offset, bytes));
        }
        let mut holes = Holes::default();
        let first = holes.missing(&free, 64 << 10, 2);
        assert_eq!(first, [(1 << 20, 16 << 20), (17 << 20, 16 << 20)]);
        first.iter().for_each(|&(offset, bytes)| holes.punched(offset, bytes));
        assert_eq!(holes.missing(&free, 64 << 10, 9), [(33 << 20, 8 << 20), (60 << 20, 300 << 10)]);
    }
}
