//! Free ranges of one file, in memory.
//!
//! Best fit keeps large ranges whole; among equals the lowest offset wins, so that the tail of the file empties and can
//! be given back. Everything is in bytes; the caller rounds.
//!
//! One mutex a file guards it, for the time of a few tree operations. Should 64 cores ever contend for one file: give
//! each core its own allocator over a run of, say, 4 MiB that it takes from this one, as allocation groups in XFS do,
//! and let freed extents go to the allocator whose run they lie in.
//!
//! Invariants: ranges are disjoint, never adjacent (they coalesce), within the file, and both indexes hold the same
//! ranges.

use std::collections::{BTreeMap, BTreeSet};

/// So many free ranges behind a limit are looked at for one that is near to it.
const LOOKS: usize = 64;

/// Free ranges below `end`, and `end` itself, past which the file has never been used.
#[derive(Debug, Clone)]
pub(super) struct Allocator {
    by_offset: BTreeMap<u64, u64>,
    by_size: BTreeSet<(u64, u64)>,
    free_bytes: u64,
    end: u64,
}

impl Allocator {
    /// Nothing is free below `end`.
    pub fn new(end: u64) -> Allocator {
        Allocator { by_offset: BTreeMap::new(), by_size: BTreeSet::new(), free_bytes: 0, end }
    }

    /// Highest position that was ever allocated and not trimmed.
    pub fn end(&self) -> u64 {
        self.end
    }

    /// Sum of the free ranges below `end`.
    pub fn free_bytes(&self) -> u64 {
        self.free_bytes
    }

    /// Free ranges (offset, length) by offset.
    pub fn ranges(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.by_offset.iter().map(|(&offset, &bytes)| (offset, bytes))
    }

    /// Free ranges (offset, length) of at least `bytes`, the largest first.
    pub fn largest(&self, bytes: u64) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.by_size.range((bytes, 0)..).rev().map(|&(bytes, offset)| (offset, bytes))
    }

    /// Whether nothing of the range is free. O(log n).
    pub fn is_taken(&self, offset: u64, bytes: u64) -> bool {
        let before = self.by_offset.range(..offset + bytes).next_back();
        before.is_none_or(|(&start, &length)| start + length <= offset)
    }

    /// The free range (offset, length) that has the byte at `at`.
    pub fn range_at(&self, at: u64) -> Option<(u64, u64)> {
        let (&offset, &bytes) = self.by_offset.range(..=at).next_back()?;
        (at < offset + bytes).then_some((offset, bytes))
    }

    /// Those (offset, length) that begin from `start` on, before `end`.
    pub fn ranges_in(&self, start: u64, end: u64) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.by_offset.range(start..end).map(|(&offset, &bytes)| (offset, bytes))
    }

    /// Takes `bytes` from the best fitting range, else from the end of the file. O(log n).
    pub fn allocate(&mut self, bytes: u64) -> u64 {
        match self.by_size.range((bytes, 0)..).next().copied() {
            Some((found, offset)) => {
                self.remove(offset, found);
                if found > bytes {
                    self.insert(offset + bytes, found - bytes);
                }
                offset
            }
            None => {
                // A free tail is too small but need not stay behind as a hole.
                let offset = self.trim();
                self.end = offset + bytes;
                offset
            }
        }
    }

    /// Takes `bytes` from the best fitting range that has room before `limit`, else from one not far behind it, else as
    /// [`Allocator::allocate`]. O(log n) for each size of which only ranges behind the limit are free.
    pub fn allocate_near(&mut self, limit: u64, bytes: u64) -> u64 {
        let near = self.best_before(limit, bytes).or_else(|| {
            let behind = self.by_offset.range(limit..).take(LOOKS);
            behind.into_iter().find(|&(_, &length)| length >= bytes).map(|(&offset, _)| offset)
        });
        match near {
            Some(offset) if self.take(offset, bytes) => offset,
            _ => self.allocate(bytes),
        }
    }

    fn best_before(&self, limit: u64, bytes: u64) -> Option<u64> {
        let mut least = bytes;
        loop {
            let (found, offset) = self.by_size.range((least, 0)..).next().copied()?;
            if offset + bytes <= limit {
                return Some(offset);
            }
            least = found + 1;
        }
    }

    /// Takes `bytes` from behind the end of the file and `least`; what lies between becomes free.
    pub fn allocate_behind(&mut self, least: u64, bytes: u64) -> u64 {
        let (before, offset) = (self.end, self.end.max(least));
        self.end = offset + bytes;
        if offset > before {
            let released = self.release(before, offset - before);
            debug_assert!(released, "nothing behind the end is free");
        }
        offset
    }

    /// Takes this range. `false`, and nothing changes, if part of it is in use.
    #[must_use]
    pub fn take(&mut self, offset: u64, bytes: u64) -> bool {
        let Some(end) = offset.checked_add(bytes).filter(|_| bytes > 0) else { return false };
        if end > self.end {
            // What lies between becomes free, and with it all of the range.
            let (before, grown) = (self.end, end - self.end);
            self.end = end;
            if !self.release(before, grown) {
                self.end = before;
                return false;
            }
        }
        let range = self.range_at(offset).filter(|&(o, b)| o + b >= end);
        let Some((start, length)) = range else { return false };
        self.remove(start, length);
        if start < offset {
            self.insert(start, offset - start);
        }
        if end < start + length {
            self.insert(end, start + length - end);
        }
        true
    }

    /// Makes a range free. `false`, and nothing changes, if part of it is free already or lies past the end: the
    /// caller's books are wrong, and to lose the range is then better than to hand it out twice.
    #[must_use]
    pub fn release(&mut self, offset: u64, bytes: u64) -> bool {
        let Some(end) = offset.checked_add(bytes).filter(|&end| end <= self.end && bytes > 0) else {
            return false;
        };
        let before = self.by_offset.range(..end).next_back().map(|(&o, &b)| (o, b));
        if before.is_some_and(|(o, b)| o + b > offset) {
            return false;
        }
        let (mut offset, mut bytes) = (offset, bytes);
        if let Some((o, b)) = before.filter(|&(o, b)| o + b == offset) {
            self.remove(o, b);
            (offset, bytes) = (o, b + bytes);
        }
        if let Some(&b) = self.by_offset.get(&end) {
            self.remove(end, b);
            bytes += b;
        }
        self.insert(offset, bytes);
        true
    }

    /// Drops the free range at the end, if there is one, and returns the new end.
    pub fn trim(&mut self) -> u64 {
        if let Some((offset, bytes)) = self.by_offset.last_key_value().map(|(&o, &b)| (o, b)) {
            if offset + bytes == self.end {
                self.remove(offset, bytes);
                self.end = offset;
            }
        }
        self.end
    }

    fn insert(&mut self, offset: u64, bytes: u64) {
        debug_assert!(bytes > 0 && offset + bytes <= self.end, "{bytes} bytes at {offset}, end {}", self.end);
        let known = self.by_offset.insert(offset, bytes).is_some() | !self.by_size.insert((bytes, offset));
        debug_assert!(!known, "the range at {offset} is free already");
        self.free_bytes += bytes;
    }

    fn remove(&mut self, offset: u64, bytes: u64) {
        let known = self.by_offset.remove(&offset) == Some(bytes) && self.by_size.remove(&(bytes, offset));
        debug_assert!(known, "the indexes disagree about {bytes} bytes at {offset}");
        debug_assert!(self.free_bytes >= bytes, "{bytes} of {} free bytes are taken", self.free_bytes);
        self.free_bytes -= bytes;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[derive(Debug, Clone)]
    enum Step {
        Allocate(u64),
        Release(usize),
        ReleaseAgain(usize),
        Trim,
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            4 => (1u64..20).prop_map(Step::Allocate),
            3 => any::<usize>().prop_map(Step::Release),
            1 => any::<usize>().prop_map(Step::ReleaseAgain),
            1 => Just(Step::Trim),
        ]
    }

    proptest! {
        /// The model is one owner per byte.
        #[test]
        fn ranges_neither_overlap_nor_leak(steps in proptest::collection::vec(step(), 1..300)) {
            let mut allocator = Allocator::new(8);
            let mut used: Vec<(u64, u64)> = vec![(0, 8)];
            for step in steps {
                match step {
                    Step::Allocate(bytes) => {
                        let fits = allocator.ranges().any(|(_, b)| b >= bytes);
                        let end = allocator.end();
                        let offset = allocator.allocate(bytes);
                        prop_assert!(!fits || allocator.end() == end, "grew although a range fits");
                        used.push((offset, bytes));
                    }
                    Step::Release(i) if used.len() > 1 => {
                        let (offset, bytes) = used.swap_remove(1 + i % (used.len() - 1));
                        prop_assert!(allocator.release(offset, bytes));
                    }
                    Step::ReleaseAgain(i) => {
                        let ranges: Vec<_> = allocator.ranges().collect();
                        if let Some(&(offset, bytes)) = ranges.get(i % ranges.len().max(1)) {
                            prop_assert!(!allocator.release(offset, bytes));
                            prop_assert!(!allocator.release(offset + bytes - 1, 2));
                        }
                    }
                    Step::Release(_) => (),
                    Step::Trim => { allocator.trim(); }
                }
                let mut owned = vec![0u8; allocator.end() as usize];
                for (offset, bytes) in used.iter().copied().chain(allocator.ranges()) {
                    owned[offset as usize..(offset + bytes) as usize].iter_mut().for_each(|n| *n += 1);
                }
                prop_assert!(owned.iter().all(|&n| n == 1), "each byte has one owner: {owned:?}");
                let free: u64 = allocator.ranges().map(|r| r.1).sum();
                prop_assert_eq!(free, allocator.free_bytes());
                prop_assert_eq!(allocator.by_size.len(), allocator.by_offset.len());
                let mut last = None;
                for (offset, bytes) in allocator.ranges() {
                    prop_assert!(last != Some(offset), "ranges coalesce");
                    last = Some(offset + bytes);
                }
            }
        }
    }

    #[test]
    fn the_best_fit_at_the_lowest_offset_is_taken() {
        let mut allocator = Allocator::new(1000);
        for (offset, bytes) in [(10, 50), (100, 20), (200, 20), (300, 30)] {
            assert!(allocator.release(offset, bytes));
        }
        assert_eq!(allocator.allocate(20), 100);
        assert_eq!(allocator.allocate(15), 200);
        assert_eq!(allocator.allocate(40), 10);
        assert_eq!(allocator.allocate(100), 1000);
    }

    #[test]
    fn what_is_to_lie_near_the_beginning_does_where_there_is_room() {
        let mut allocator = Allocator::new(1000);
        for (offset, bytes) in [(10, 50), (200, 20), (300, 30), (600, 100), (800, 20)] {
            assert!(allocator.release(offset, bytes));
        }
        // The best fit before the limit, though there is a better one behind it.
        assert_eq!(allocator.allocate_near(250, 20), 200);
        assert_eq!(allocator.allocate_near(250, 20), 10);
        // A range that the limit cuts has room before it, or has not.
        assert_eq!(allocator.allocate_near(320, 25), 30);
        assert_eq!(allocator.allocate_near(320, 20), 300);
        // The first behind it, not the best.
        assert_eq!(allocator.allocate_near(320, 20), 600);
        assert_eq!(allocator.allocate_near(320, 90), 1000);
    }
}
