//! Free space of one file for blocks, and apart from it for small extents.
//!
//! Patches of leaves are small, are written many at a time, and die one by one: among blocks each would leave a hole
//! that no block fits into. So they lie in *areas*, parts of the file that have nothing else:
//!
//! ```text
//! blocks   | block | block  | free |   area   | block | free ...
//! area                              |pp pp   p|     p: a patch; runs of free bytes are filled again, if it is worth it
//! ```
//!
//! An area is made where blocks are allocated, of a size by that of the file: a 64th, from 8 KiB to 4 MiB. As much as
//! that free at one piece of areas, or an area without anything, goes back to the blocks. Areas that lie side by side
//! are one. With patches that live for three checkpoints, and are replaced in no order, areas are two to three times
//! what they hold; nothing is moved.
//!
//! Invariants: areas are disjoint, not adjacent, and before the end; no free range of blocks reaches into one, and no
//! free range of small extents out of one.

use std::collections::BTreeMap;

use super::allocator::Allocator;

/// Runs of free bytes that are shorter are left in an area: the kernel writes whole pages, and has to read those of
/// which it gets a part.
const LEAST_RUN_BYTES: u64 = 4 << 10;
const SMALLEST_AREA: u64 = 8 << 10;
const LARGEST_AREA: u64 = 4 << 20;
/// So many runs are looked at for one in the right part of the file.
const LOOKS: usize = 64;

/// Where new extents may lie, or should.
#[derive(Debug, Clone, Copy)]
pub(super) enum Placement {
    /// Where they fit best.
    Anywhere,
    /// Before this, or near to it, where there is room.
    Below(u64),
    /// Nowhere else than behind this.
    Behind(u64),
}

/// What is free of a file.
#[derive(Debug, Clone)]
pub(super) struct AreaAllocator {
    blocks: Allocator,
    /// Free ranges in areas. Its own end means nothing.
    small: Allocator,
    /// Areas, by where they begin: where they end.
    areas: BTreeMap<u64, u64>,
}

impl AreaAllocator {
    /// Nothing is free below `end`, and there are these areas (offset, length), ascending.
    pub fn new(end: u64, areas: &[(u64, u64)]) -> AreaAllocator {
        let (blocks, small) = (Allocator::new(end), Allocator::new(u64::MAX));
        let mut allocator = AreaAllocator { blocks, small, areas: BTreeMap::new() };
        areas.iter().for_each(|&(offset, bytes)| allocator.enter_area(offset, offset + bytes));
        allocator
    }

    /// Of what blocks may have.
    pub fn blocks(&self) -> &Allocator {
        &self.blocks
    }

    /// Highest position in use or kept for small extents.
    pub fn end(&self) -> u64 {
        self.blocks.end()
    }

    /// Bytes free below the end.
    pub fn free_bytes(&self) -> u64 {
        self.blocks.free_bytes() + self.small.free_bytes()
    }

    /// Free ranges (offset, length, whether in an area), first those of blocks, each kind by offset.
    pub fn ranges(&self) -> impl Iterator<Item = (u64, u64, bool)> + '_ {
        let of_kind = |in_area| move |(offset, bytes)| (offset, bytes, in_area);
        self.blocks.ranges().map(of_kind(false)).chain(self.small.ranges().map(of_kind(true)))
    }

    /// The areas (offset, length), ascending.
    pub fn areas(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.areas.iter().map(|(&offset, &end)| (offset, end - offset))
    }

    /// Whether nothing of the range is free.
    pub fn is_taken(&self, offset: u64, bytes: u64) -> bool {
        self.blocks.is_taken(offset, bytes) && self.small.is_taken(offset, bytes)
    }

    /// Takes `bytes` for a block.
    pub fn allocate(&mut self, bytes: u64, placement: Placement) -> u64 {
        match placement {
            Placement::Anywhere => self.blocks.allocate(bytes),
            Placement::Below(limit) => self.blocks.allocate_near(limit, bytes),
            Placement::Behind(least) => self.blocks.allocate_behind(least, bytes),
        }
    }

    /// Takes room in an area for as many of the small extents of these `sizes`, one at least, as fit side by side:
    /// where it is, and for how many.
    pub fn allocate_small(&mut self, sizes: &[u64], placement: Placement) -> (u64, usize) {
        let least = sizes.first().map_or(LEAST_RUN_BYTES, |&first| first.max(LEAST_RUN_BYTES));
        let run = self.small.largest(least).take(LOOKS).find(|&run| is_at(run, placement));
        let (run, length) = run.unwrap_or_else(|| self.add_area(sizes.iter().sum(), placement));
        let (mut count, mut bytes) = (0, 0);
        while let Some(size) = sizes.get(count).filter(|&size| bytes + size <= length) {
            (count, bytes) = (count + 1, bytes + size);
        }
        debug_assert!(count > 0 || sizes.is_empty(), "a run of {length} bytes is too short for {sizes:?}");
        let taken = self.small.take(run, bytes);
        debug_assert!(taken, "{bytes} bytes of the run at {run} are not free");
        (run, count)
    }

    /// A new area with room for so much, all of it free.
    fn add_area(&mut self, least: u64, placement: Placement) -> (u64, u64) {
        let bytes = self.area_bytes().max(least.next_multiple_of(LEAST_RUN_BYTES));
        let offset = self.allocate(bytes, placement);
        self.enter_area(offset, offset + bytes);
        let released = self.small.release(offset, bytes);
        debug_assert!(released, "the new area at {offset} is free already");
        (offset, bytes)
    }

    /// From `start` to `end` there is an area, one with those beside it.
    fn enter_area(&mut self, mut start: u64, mut end: u64) {
        if let Some((&before, _)) = self.areas.range(..start).next_back().filter(|(_, &e)| e == start) {
            start = before;
        }
        if let Some(behind) = self.areas.remove(&end) {
            end = behind;
        }
        self.areas.insert(start, end);
    }

    fn area_bytes(&self) -> u64 {
        (self.end() / 64).next_power_of_two().clamp(SMALLEST_AREA, LARGEST_AREA)
    }

    /// Where the area that has the byte at `offset` begins and ends.
    fn area_of(&self, offset: u64) -> Option<(u64, u64)> {
        let (&start, &end) = self.areas.range(..=offset).next_back()?;
        (offset < end).then_some((start, end))
    }

    /// Makes an extent free, or a range of a map. `false`: part of it is free already, or lies past the end, and stays
    /// as it is.
    #[must_use]
    pub fn release(&mut self, offset: u64, bytes: u64) -> bool {
        let Some(end) = offset.checked_add(bytes).filter(|&end| end <= self.end() && bytes > 0) else {
            return false;
        };
        let (mut at, mut released) = (offset, true);
        while at < end {
            match self.area_of(at) {
                Some((_, area_end)) => {
                    let until = end.min(area_end);
                    released &= self.small.release(at, until - at);
                    self.give_back(at);
                    at = until;
                }
                None => {
                    let next_area = self.areas.range(at..).next().map_or(u64::MAX, |(&start, _)| start);
                    let until = end.min(next_area);
                    released &= self.blocks.release(at, until - at);
                    at = until;
                }
            }
        }
        released
    }

    /// Gives what is free around `at`, which is in an area, back to the blocks, if that is much.
    fn give_back(&mut self, at: u64) {
        let (Some((start, end)), Some((offset, bytes))) = (self.area_of(at), self.small.range_at(at)) else {
            return;
        };
        if bytes < self.area_bytes() && (offset, offset + bytes) != (start, end) {
            return;
        }
        self.areas.remove(&start);
        if start < offset {
            self.areas.insert(start, offset);
        }
        if offset + bytes < end {
            self.areas.insert(offset + bytes, end);
        }
        self.give(offset, bytes);
    }

    /// A free range that is in no area any more is one of blocks.
    fn give(&mut self, offset: u64, bytes: u64) {
        let moved = self.small.take(offset, bytes) && self.blocks.release(offset, bytes);
        debug_assert!(moved, "{bytes} bytes at {offset} were free in an area");
    }

    /// Takes this range. `false`: part of it is in use, and nothing is taken.
    #[must_use]
    pub fn take(&mut self, offset: u64, bytes: u64) -> bool {
        let end = offset.saturating_add(bytes);
        while let Some((start, area_end)) = self.areas.range(..end).next_back().map(|(&s, &e)| (s, e)) {
            if area_end <= offset {
                break;
            }
            self.dissolve(start, area_end);
        }
        self.blocks.take(offset, bytes)
    }

    /// The area is none any more: what is free of it is for blocks.
    fn dissolve(&mut self, start: u64, end: u64) {
        self.areas.remove(&start);
        let free: Vec<(u64, u64)> = self.small.ranges_in(start, end).collect();
        free.into_iter().for_each(|(offset, bytes)| self.give(offset, bytes));
    }

    /// Drops the free range at the end, if there is one, and returns the new end.
    pub fn trim(&mut self) -> u64 {
        self.blocks.trim()
    }
}

/// Whether the run (offset, length) is where new extents may lie.
fn is_at((offset, bytes): (u64, u64), placement: Placement) -> bool {
    match placement {
        Placement::Anywhere => true,
        Placement::Below(limit) => offset + bytes <= limit,
        Placement::Behind(least) => offset >= least,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const UNIT: u64 = 32;

    #[derive(Debug, Clone)]
    enum Step {
        Block(u64, Option<u64>),
        Small(Vec<u64>, Option<u64>),
        Release(usize),
        ReleaseAgain(usize),
        /// Free ranges are taken at once, as a replayed log does.
        Claim(usize, u64),
        Trim,
        Reload,
    }

    fn step() -> impl Strategy<Value = Step> {
        let limit = || proptest::option::of(0u64..4000);
        prop_oneof![
            3 => (1u64..600, limit()).prop_map(|(units, limit)| Step::Block(units * UNIT, limit)),
            5 => (proptest::collection::vec(1u64..60, 1..40), limit())
                .prop_map(|(units, limit)| Step::Small(units.iter().map(|units| units * UNIT).collect(), limit)),
            60 => any::<usize>().prop_map(Step::Release),
            1 => any::<usize>().prop_map(Step::ReleaseAgain),
            1 => (any::<usize>(), 1u64..100).prop_map(|(i, units)| Step::Claim(i, units * UNIT)),
            1 => Just(Step::Trim),
            1 => Just(Step::Reload),
        ]
    }

    /// What a start has of it: the map's ranges, in their order.
    fn reloaded(allocator: &AreaAllocator) -> AreaAllocator {
        let areas: Vec<(u64, u64)> = allocator.areas().collect();
        let mut ranges: Vec<(u64, u64)> =
            allocator.ranges().map(|(offset, bytes, _)| (offset, bytes)).collect();
        ranges.sort_unstable();
        let mut loaded = AreaAllocator::new(allocator.end(), &areas);
        assert!(ranges.iter().all(|&(offset, bytes)| loaded.release(offset, bytes)));
        loaded
    }

    /// The model is one owner for each unit, and one kind of neighbours for each area.
    fn check(allocator: &AreaAllocator, used: &[(u64, u64, bool)]) -> Result<(), TestCaseError> {
        let mut owners = vec![0u8; (allocator.end() / UNIT) as usize];
        let free: Vec<(u64, u64)> = allocator.ranges().map(|(offset, bytes, _)| (offset, bytes)).collect();
        for (offset, bytes) in
            used.iter().map(|&(offset, bytes, _)| (offset, bytes)).chain(free.iter().copied())
        {
            owners[(offset / UNIT) as usize..((offset + bytes) / UNIT) as usize]
                .iter_mut()
                .for_each(|n| *n += 1);
        }
        prop_assert!(owners.iter().all(|&n| n == 1), "each unit has one owner");
        prop_assert_eq!(free.iter().map(|range| range.1).sum::<u64>(), allocator.free_bytes());
        let areas: Vec<(u64, u64)> = allocator.areas().collect();
        prop_assert!(areas.windows(2).all(|two| two[0].0 + two[0].1 < two[1].0), "{areas:?}");
        let inside = |offset: u64, bytes: u64| {
            areas.iter().any(|&(start, length)| offset >= start && offset + bytes <= start + length)
        };
        let touches = |offset: u64, bytes: u64| {
            areas.iter().any(|&(start, length)| offset < start + length && offset + bytes > start)
        };
        for &(offset, bytes, is_small) in used {
            prop_assert_eq!(is_small, inside(offset, bytes), "{} bytes at {}", bytes, offset);
            prop_assert_eq!(is_small, touches(offset, bytes));
            prop_assert!(allocator.is_taken(offset, bytes));
        }
        for (offset, bytes, in_area) in allocator.ranges() {
            prop_assert_eq!(in_area, inside(offset, bytes));
            prop_assert_eq!(in_area, touches(offset, bytes));
            prop_assert!(
                !in_area
                    || bytes < allocator.area_bytes()
                    || allocator
                        .area_of(offset)
                        .is_some_and(|(start, end)| (start, end) != (offset, offset + bytes)),
                "an area without anything"
            );
        }
        Ok(())
    }

    proptest! {
        #[test]
        fn areas_have_nothing_but_small_extents(steps in proptest::collection::vec(step(), 1..400)) {
            let mut allocator = AreaAllocator::new(UNIT, &[]);
            let mut used: Vec<(u64, u64, bool)> = vec![(0, UNIT, false)];
            for step in steps {
                let placement = |limit: Option<u64>| match limit {
                    None => Placement::Anywhere,
                    Some(limit) if limit % 2 == 0 => Placement::Below(limit * UNIT),
                    Some(least) => Placement::Behind(least * UNIT),
                };
                match step {
                    Step::Block(bytes, limit) => {
                        let offset = allocator.allocate(bytes, placement(limit));
                        used.push((offset, bytes, false));
                    }
                    Step::Small(sizes, limit) => {
                        let mut rest = &sizes[..];
                        while !rest.is_empty() {
                            let (mut offset, count) = allocator.allocate_small(rest, placement(limit));
                            prop_assert!(count > 0);
                            if let Placement::Behind(least) = placement(limit) {
                                prop_assert!(offset >= least);
                            }
                            for &bytes in &rest[..count] {
                                used.push((offset, bytes, true));
                                offset += bytes;
                            }
                            rest = &rest[count..];
                        }
                    }
                    Step::Release(i) if used.len() > 1 => {
                        let (offset, bytes, _) = used.swap_remove(1 + i % (used.len() - 1));
                        prop_assert!(allocator.release(offset, bytes));
                    }
                    Step::ReleaseAgain(i) => {
                        let ranges: Vec<_> = allocator.ranges().collect();
                        if let Some(&(offset, bytes, _)) = ranges.get(i % ranges.len().max(1)) {
                            prop_assert!(!allocator.release(offset, bytes));
                        }
                    }
                    Step::Claim(i, bytes) => {
                        let ranges: Vec<_> = allocator.ranges().filter(|range| range.1 >= bytes).collect();
                        if let Some(&(offset, ..)) = ranges.get(i % ranges.len().max(1)) {
                            prop_assert!(allocator.take(offset, bytes));
                            used.push((offset, bytes, false));
                            // Those that were in the area lie among blocks now.
                            let areas: Vec<_> = allocator.areas().collect();
                            let stays = |at: u64| areas.iter().any(|&(offset, bytes)| (offset..offset + bytes).contains(&at));
                            used.iter_mut().for_each(|(offset, _, is_small)| *is_small &= stays(*offset));
                        }
                    }
                    Step::Release(_) => (),
                    Step::Trim => { allocator.trim(); }
                    Step::Reload => allocator = reloaded(&allocator),
                }
                check(&allocator, &used)?;
            }
            for (offset, bytes, _) in used.drain(1..) {
                prop_assert!(allocator.release(offset, bytes));
            }
            prop_assert_eq!(allocator.trim(), UNIT, "nothing is in use, and all of it one range");
        }
    }
}
