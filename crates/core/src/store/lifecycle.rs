//! Which bytes of a space may be reused when: the generation protocol, without I/O.
//!
//! A *generation* is the number of a checkpoint, its *image* what its superblock leads to. The durable image must stay
//! intact whatever happens, and a reader must find what its extent named for as long as it holds the extent. An extent
//! is therefore reusable exactly when no image that is or may become durable names it, and nobody holds it:
//!
//! * `born` is the first generation whose image can name the extent: the first not yet ended when it was allocated.
//! * `superseded by s` means that the images of `s` and later do not name it.
//! * So it can only be in the images `born .. s`. If that range is empty it was never named; once `s` is durable, no
//!   image in the range counts any more. Otherwise one of them is durable, or may still become so.
//!
//! ```text
//!              write ok                    supersede(s)                        s <= born or durable(s), and unheld
//!  Unwritten ───────────> (not tracked) ──────────────────────> Superseded(s) ──────────────────────────────────> free
//!      │  │                    ^   ^            abandon(s), s > born │
//!      │  │                    │   └───── if the checkpoint said so ────┘
//!      │  ├──> Checkpoint(g) ──┤ durable(g)      abandon(g): free once unheld
//!      │  │         ^ │ join(g)
//!      │  └──> Private ────────┘ publish         dropped: free
//!      └──> dropped: free
//! ```
//!
//! An extent that is not tracked is in use for good: in memory nothing is known of it but the holes around it.

use std::collections::{BTreeMap, HashMap};

use super::areas::{AreaAllocator, Placement};
use super::bundles::{BundleUse, Bundles, ThinnedBundle};
use super::extent::Lifetime;
use super::free_map::FreeMap;
use super::holes::Holes;
use super::space::HEADER_BYTES;
use super::{BlockAddress, Unit, SECTOR_BYTES};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Allocated; the bytes are not in the file yet.
    Unwritten(Lifetime),
    /// Named by nothing durable; free when dropped.
    Private,
    /// Belongs to the image of that checkpoint, which is not durable yet.
    Checkpoint(u64),
    /// The images of that generation and later do not name it.
    Superseded {
        by: u64,
        /// It was the running checkpoint that said so, about its own image: void if that is abandoned. What memory no
        /// longer refers to stays superseded.
        by_checkpoint: bool,
    },
}

#[derive(Debug, Clone, Copy)]
struct Tracked {
    bytes: u64,
    born: u64,
    state: State,
}

/// Where the free-space map of an image is.
#[derive(Debug, Clone, Copy)]
struct MapExtent {
    offset: u64,
    bytes: u64,
    born: u64,
}

/// The books of one space.
#[derive(Debug)]
pub(super) struct Books {
    /// Of the file.
    unit: Unit,
    /// `None` until the map has been read.
    allocator: Option<AreaAllocator>,
    /// Ranges that became free before the map was read.
    freed_early: Vec<(u64, u64)>,
    tracked: BTreeMap<u64, Tracked>,
    /// How many `Extent`s in memory stand for the extent at an offset.
    holders: HashMap<u64, u32>,
    /// The newest durable generation known here.
    durable: u64,
    /// The first generation whose image can name an extent that is allocated now.
    next: u64,
    /// The checkpoint between `begin` and `durable` or `abandon`.
    running: Option<u64>,
    durable_map: Option<MapExtent>,
    /// Map written for the running checkpoint.
    new_map: Option<(u64, MapExtent)>,
    outdated: bool,
    bundles: Bundles,
    holes: Holes,
    /// Until the log is replayed: new extents lie behind this.
    new_behind: Option<u64>,
    /// New extents lie before this, or near to it, where they can.
    preferred_below: Option<u64>,
}

impl Books {
    /// Books of a space whose map (offset, occupied bytes) is still to be read; without a map nothing past the header
    /// is in use.
    pub fn new(unit: Unit, map: Option<(u64, u64)>) -> Books {
        Books {
            unit,
            allocator: map.is_none().then(|| AreaAllocator::new(HEADER_BYTES, &[])),
            freed_early: Vec::new(),
            tracked: BTreeMap::new(),
            holders: HashMap::new(),
            durable: 0,
            next: 1,
            running: None,
            durable_map: map.map(|(offset, bytes)| MapExtent { offset, bytes, born: 0 }),
            new_map: None,
            outdated: map.is_none(),
            bundles: Bundles::default(),
            holes: Holes::default(),
            new_behind: None,
            preferred_below: None,
        }
    }

    /// Whether the map has been read.
    pub fn loaded(&self) -> bool {
        self.allocator.is_some()
    }

    /// Takes what the map said.
    pub fn load(&mut self, map: FreeMap) -> Result<(), &'static str> {
        let mut allocator = AreaAllocator::new(map.end, &map.areas);
        for (offset, bytes) in map.ranges.into_iter().chain(self.freed_early.iter().copied()) {
            if offset < HEADER_BYTES || !allocator.release(offset, bytes) {
                return Err("free-space map contradicts the extents in use");
            }
        }
        self.durable = self.durable.max(map.generation);
        self.next = self.next.max(map.generation + 1);
        self.freed_early = Vec::new();
        self.bundles.load(map.bundles);
        self.allocator = Some(allocator);
        Ok(())
    }

    /// Highest position in use, and the bytes free below it.
    pub fn usage(&self) -> Option<(u64, u64)> {
        self.allocator.as_ref().map(|allocator| (allocator.end(), allocator.free_bytes()))
    }

    /// Bytes below the highest position in use that hold what somebody needs now: not what no image to come names,
    /// which waits for a checkpoint or for its readers, nor what is not written, among it what
    /// [`Books::begin_punching`] has taken. Looks at all that is tracked.
    pub fn needed_bytes(&self) -> Option<u64> {
        let idle = self
            .tracked
            .values()
            .filter(|tracked| matches!(tracked.state, State::Unwritten(_) | State::Superseded { .. }));
        let idle: u64 = idle.map(|tracked| tracked.bytes).sum();
        self.usage().map(|(end, free)| (end - free).saturating_sub(idle + HEADER_BYTES))
    }

    /// While the log is replayed, what it names may lie wherever the map has nothing: new extents come to lie behind
    /// `end`. `None`: it is over.
    pub fn put_new_behind(&mut self, end: Option<u64>) {
        // What is there may take up to a sector behind its last byte.
        self.new_behind = end.map(|end| (end + SECTOR_BYTES).next_multiple_of(SECTOR_BYTES));
    }

    /// From now on new extents come to lie before `limit` where there is room for them, else as near to it as may be;
    /// `None`: wherever they fit best.
    pub fn prefer_below(&mut self, limit: Option<u64>) {
        self.preferred_below = limit;
    }

    /// Gives the extent at `offset`, which is in the file and which the map has as free, to one holder, as a private
    /// one.
    pub fn claim(&mut self, offset: u64, bytes: u64) -> Option<u64> {
        let allocator = self.allocator.as_mut()?;
        if offset < HEADER_BYTES || !allocator.take(offset, bytes) {
            return None;
        }
        self.holes.filled(offset, bytes);
        self.tracked.insert(offset, Tracked { bytes, born: self.next, state: State::Private });
        self.hold(offset);
        Some(self.next)
    }

    /// Gives an extent of `bytes` to one holder: its offset and birth. `None` until the map has been read.
    pub fn allocate(&mut self, bytes: u64, lifetime: Lifetime) -> Option<(u64, u64)> {
        let placement = self.placement();
        let offset = self.allocator.as_mut()?.allocate(bytes, placement);
        Some((offset, self.enter(offset, bytes, lifetime)))
    }

    /// Gives small extents of so many bytes each to one holder each, side by side as far as there is room for it:
    /// offset and birth of each. `None` until the map has been read.
    pub fn allocate_together(&mut self, mut sizes: &[u64], lifetime: Lifetime) -> Option<Vec<(u64, u64)>> {
        let mut extents = Vec::with_capacity(sizes.len());
        while !sizes.is_empty() {
            let placement = self.placement();
            let (mut next, count) = self.allocator.as_mut()?.allocate_small(sizes, placement);
            for &bytes in &sizes[..count] {
                extents.push((next, self.enter(next, bytes, lifetime)));
                next += bytes;
            }
            sizes = &sizes[count..];
        }
        Some(extents)
    }

    /// Gives the extent at `offset`, which was free, to one holder; its birth.
    fn enter(&mut self, offset: u64, bytes: u64, lifetime: Lifetime) -> u64 {
        debug_assert!(offset >= HEADER_BYTES && bytes > 0, "{bytes} bytes at {offset}");
        debug_assert!(!self.holders.contains_key(&offset), "the new extent at {offset} has a holder already");
        self.holes.filled(offset, bytes);
        let tracked = Tracked { bytes, born: self.next, state: State::Unwritten(lifetime) };
        let before = self.tracked.insert(offset, tracked);
        debug_assert!(before.is_none(), "the new extent at {offset} was {before:?}");
        self.hold(offset);
        self.next
    }

    fn placement(&self) -> Placement {
        match (self.new_behind, self.preferred_below) {
            (Some(least), _) => Placement::Behind(least),
            (None, Some(limit)) => Placement::Below(limit),
            (None, None) => Placement::Anywhere,
        }
    }

    /// The bytes are in the file: from now on the extent lives as its lifetime says.
    pub fn written(&mut self, offset: u64) {
        let Some(tracked) = self.tracked.get_mut(&offset) else { return };
        match tracked.state {
            State::Unwritten(Lifetime::Kept) => {
                self.tracked.remove(&offset);
                self.outdated = true;
            }
            State::Unwritten(Lifetime::Checkpoint(generation)) => {
                tracked.state = State::Checkpoint(generation);
                self.outdated = true;
            }
            State::Unwritten(Lifetime::Private) => tracked.state = State::Private,
            State::Private | State::Checkpoint(_) | State::Superseded { .. } => (),
        }
    }

    /// A private extent is going to be named by durable structures.
    pub fn publish(&mut self, offset: u64) {
        let Some(tracked) = self.tracked.get_mut(&offset) else { return };
        match tracked.state {
            State::Unwritten(Lifetime::Private) => tracked.state = State::Unwritten(Lifetime::Kept),
            State::Private => {
                self.tracked.remove(&offset);
                self.outdated = true;
            }
            _ => (),
        }
    }

    /// A private extent that is in the file becomes part of the image of `generation`, which is not durable yet.
    pub fn join(&mut self, offset: u64, generation: u64) {
        if let Some(Tracked { state: state @ State::Private, born, .. }) = self.tracked.get_mut(&offset) {
            *state = State::Checkpoint(generation);
            *born = generation.max(*born);
            self.outdated = true;
        }
    }

    /// Whether the extent stays as it is if nobody holds it: no checkpoint has to become durable for that, and none
    /// has superseded it.
    pub fn is_settled(&self, offset: u64) -> bool {
        !self.tracked.contains_key(&offset)
    }

    /// One more holder of an extent.
    pub fn hold(&mut self, offset: u64) {
        *self.holders.entry(offset).or_insert(0) += 1;
    }

    /// The image of `generation` and later ones do not name the extent.
    pub fn supersede(&mut self, offset: u64, bytes: u64, born: u64, generation: u64) {
        // An image that is durable already cannot stop naming anything: a late caller means the next one.
        let by = generation.max(self.durable + 1);
        let superseded = State::Superseded { by, by_checkpoint: self.running == Some(generation) };
        let Some(tracked) = self.tracked.get_mut(&offset) else {
            self.outdated = true;
            self.tracked.insert(offset, Tracked { bytes, born, state: superseded });
            return;
        };
        match tracked.state {
            State::Unwritten(_) => tracked.state = State::Unwritten(Lifetime::Private),
            State::Private => (),
            State::Superseded { by: earlier, .. } if earlier <= by => (),
            State::Superseded { .. } => tracked.state = superseded,
            State::Checkpoint(_) => {
                self.outdated = true;
                tracked.state = superseded;
            }
        }
    }

    /// The image that is being written is the first to name values of a bundle.
    pub fn enter_bundle(&mut self, bundle: &BundleUse) {
        self.outdated = true;
        self.bundles.enter(bundle);
    }

    /// The image of `generation`, which is being written, and later ones do not name value `number` of the bundle at
    /// `at`; see [`super::Extent::bury`]. The map has been read.
    pub fn bury(
        &mut self,
        at: &BlockAddress,
        born: u64,
        (number, of): (u8, u8),
        value_bytes: u64,
        generation: u64,
    ) {
        self.outdated = true;
        let bytes = at.occupied_bytes(self.unit);
        if self.bundles.bury(at, (number, of), value_bytes, bytes) {
            self.supersede(at.offset, bytes, born, generation);
        }
    }

    /// Of the durable image.
    pub fn bundle_usage(&self) -> BundleUse {
        self.bundles.usage()
    }

    /// See [`Bundles::sparse`].
    pub fn sparse_bundles(&self, after: u64, most: usize) -> Vec<ThinnedBundle> {
        self.bundles.sparse(after, most)
    }

    /// A holder is gone.
    pub fn dropped(&mut self, offset: u64) {
        if let Some(holders) = self.holders.get_mut(&offset) {
            *holders -= 1;
            if *holders == 0 {
                self.holders.remove(&offset);
                self.free_if_reusable(offset);
            }
        } else {
            debug_assert!(false, "the extent at {offset} has no holder to drop");
        }
    }

    /// Checkpoint `generation` starts, or starts again: extents allocated from now on can be named by its image at the
    /// earliest, and those superseded until now are not in it, whatever an attempt that failed would have named.
    pub fn begin(&mut self, generation: u64) {
        debug_assert!(
            generation > self.durable,
            "checkpoint {generation} begins, {} is durable",
            self.durable
        );
        debug_assert!(
            self.running.is_none_or(|running| running == generation),
            "another checkpoint is running"
        );
        self.next = self.next.max(generation);
        self.running = Some(generation);
        for tracked in self.tracked.values_mut() {
            match &mut tracked.state {
                State::Superseded { by, .. } if *by > generation => *by = generation.max(self.durable + 1),
                _ => (),
            }
        }
        self.free_all_reusable();
    }

    /// The image of `generation` is durable.
    pub fn durable(&mut self, generation: u64) {
        if generation <= self.durable {
            return;
        }
        self.durable = generation;
        self.running = self.running.filter(|&running| running > generation);
        self.next = self.next.max(generation + 1);
        if let Some((of, map)) = self.new_map.take() {
            match of <= generation {
                true => self.durable_map = Some(map),
                false => self.new_map = Some((of, map)),
            }
        }
        self.tracked.retain(|_, tracked| !matches!(tracked.state, State::Checkpoint(of) if of <= generation));
        self.bundles.durable();
        self.free_all_reusable();
    }

    /// The image of `generation` will never be durable.
    pub fn abandon(&mut self, generation: u64) {
        debug_assert!(
            generation > self.durable,
            "checkpoint {generation} is durable and cannot be abandoned"
        );
        self.running = self.running.filter(|&running| running != generation);
        self.new_map = self.new_map.take().filter(|&(of, _)| of != generation);
        self.tracked.retain(|_, tracked| match tracked.state {
            // Named by the durable image: in use again.
            State::Superseded { by, by_checkpoint } => {
                !by_checkpoint || by != generation || by <= tracked.born
            }
            _ => true,
        });
        for tracked in self.tracked.values_mut() {
            match tracked.state {
                State::Checkpoint(of) if of == generation => tracked.state = State::Private,
                State::Unwritten(Lifetime::Checkpoint(of)) if of == generation => {
                    tracked.state = State::Unwritten(Lifetime::Private);
                }
                _ => (),
            }
        }
        self.outdated = true;
        self.bundles.abandon();
        self.free_all_reusable();
    }

    /// Allocates an extent for the map of `generation` and returns its offset, birth and content (padded to whole
    /// units).
    ///
    /// The content is the space as it is if that checkpoint becomes durable and the process then ends: what readers
    /// still hold is free, and so is what nothing durable names. The caller writes it and calls `map_written` or
    /// `map_failed`.
    pub fn build_map(&mut self, space: u32, generation: u64) -> Option<(u64, Vec<u8>)> {
        if let Some((_, unused)) = self.new_map.take() {
            self.supersede_map(unused, generation);
        }
        if let Some(current) = self.durable_map {
            self.supersede_map(current, generation);
        }
        // Taking an extent splits one range: a few varints may grow. Should that not fit, the next round has more room.
        let mut slack = 64;
        loop {
            let before = super::free_map::encode(space, self.unit, &self.map(generation)?);
            let bytes = (before.len() as u64 + slack).next_multiple_of(SECTOR_BYTES);
            let (offset, _) = self.allocate(bytes, Lifetime::Checkpoint(generation))?;
            if let Some(tracked) = self.tracked.get_mut(&offset) {
                tracked.state = State::Checkpoint(generation);
            }
            let mut content = super::free_map::encode(space, self.unit, &self.map(generation)?);
            if content.len() as u64 <= bytes {
                content.resize(bytes as usize, 0);
                self.outdated = false;
                return Some((offset, content));
            }
            self.map_failed(offset);
            slack *= 2;
        }
    }

    /// The map at `offset` is in the file.
    pub fn map_written(&mut self, offset: u64, generation: u64) {
        if let Some(tracked) = self.tracked.get_mut(&offset) {
            self.new_map = Some((generation, MapExtent { offset, bytes: tracked.bytes, born: tracked.born }));
        }
        self.dropped(offset);
    }

    /// The map at `offset` could not be written.
    pub fn map_failed(&mut self, offset: u64) {
        if let Some(tracked) = self.tracked.get_mut(&offset) {
            tracked.state = State::Private;
        }
        self.outdated = true;
        self.dropped(offset);
    }

    /// Drops the free tail; the new end.
    pub fn trim(&mut self) -> Option<u64> {
        let end = self.allocator.as_mut()?.trim();
        self.holes.cut(end);
        Some(end)
    }

    /// Bytes that are free and that the file system has back.
    pub fn hole_bytes(&self) -> u64 {
        self.holes.bytes()
    }

    /// See [`Holes::missing`].
    pub fn worth_punching(&self, smallest: u64, maximum: usize) -> Vec<(u64, u64)> {
        let missing = |free: &AreaAllocator| self.holes.missing(free.blocks(), smallest, maximum);
        self.allocator.as_ref().map_or_else(Vec::new, missing)
    }

    /// Takes a free range away from everybody until [`Books::punched`]. `false`: it is not free any more.
    pub fn begin_punching(&mut self, offset: u64, bytes: u64) -> bool {
        let Some(allocator) = &mut self.allocator else { return false };
        if offset + bytes > allocator.end() || !allocator.take(offset, bytes) {
            return false;
        }
        // As an extent that somebody allocates and drops unwritten: all that is known of those holds for it.
        let state = State::Unwritten(Lifetime::Private);
        self.tracked.insert(offset, Tracked { bytes, born: self.next, state });
        self.hold(offset);
        true
    }

    /// The range is free again; `hole`: and the file system has it.
    pub fn punched(&mut self, offset: u64, bytes: u64, hole: bool) {
        if hole {
            self.holes.punched(offset, bytes);
        }
        self.dropped(offset);
    }

    fn supersede_map(&mut self, map: MapExtent, generation: u64) {
        self.supersede(map.offset, map.bytes, map.born, generation);
        self.free_if_reusable(map.offset);
    }

    /// What is free in the image of `generation`.
    fn map(&self, generation: u64) -> Option<FreeMap> {
        let allocator = self.allocator.as_ref()?;
        let mut after = AreaAllocator::clone(allocator);
        for (&offset, tracked) in &self.tracked {
            let unnamed = match tracked.state {
                State::Unwritten(_) | State::Private => true,
                State::Checkpoint(_) => false,
                State::Superseded { by, .. } => by <= generation || by <= tracked.born,
            };
            if unnamed {
                // A range that contradicts the books stays in use, as in `free`.
                let _ = after.release(offset, tracked.bytes);
            }
        }
        let bundles = self.bundles.map();
        let mut ranges: Vec<(u64, u64)> = after.ranges().map(|(offset, bytes, _)| (offset, bytes)).collect();
        ranges.sort_unstable();
        Some(FreeMap { generation, end: after.end(), ranges, bundles, areas: after.areas().collect() })
    }

    /// What the allocator may give away: (offset, bytes, whether in an area of small extents).
    pub(super) fn free_ranges(&self) -> impl Iterator<Item = (u64, u64, bool)> + '_ {
        self.allocator.iter().flat_map(|allocator| allocator.ranges())
    }

    /// The extents that are tracked: (offset, bytes), ascending.
    pub(super) fn tracked_ranges(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.tracked.iter().map(|(&offset, tracked)| (offset, tracked.bytes))
    }

    /// Tracked extents that should have become free: nothing durable names them, and nobody holds them.
    pub(super) fn forgotten(&self) -> impl Iterator<Item = u64> + '_ {
        let free = |(&offset, tracked): (&u64, &Tracked)| {
            (self.is_unnamed(tracked) && !self.holders.contains_key(&offset)).then_some(offset)
        };
        self.tracked.iter().filter_map(free)
    }

    /// Whether no byte of the range is free.
    pub(super) fn is_in_use(&self, offset: u64, bytes: u64) -> bool {
        let Some(allocator) = &self.allocator else { return true };
        offset + bytes <= allocator.end() && allocator.is_taken(offset, bytes)
    }

    fn free_all_reusable(&mut self) {
        let offsets: Vec<u64> = self.tracked.keys().copied().collect();
        for offset in offsets {
            self.free_if_reusable(offset);
        }
    }

    /// Whether no image that is or may become durable names the extent.
    fn is_unnamed(&self, tracked: &Tracked) -> bool {
        match tracked.state {
            State::Unwritten(_) | State::Private => true,
            State::Checkpoint(_) => false,
            State::Superseded { by, .. } => by <= tracked.born || by <= self.durable,
        }
    }

    fn free_if_reusable(&mut self, offset: u64) {
        let Some(tracked) = self.tracked.get(&offset).copied() else { return };
        if self.is_unnamed(&tracked) && !self.holders.contains_key(&offset) {
            self.tracked.remove(&offset);
            self.bundles.freed(offset);
            match &mut self.allocator {
                // A range that is free already came from an address that is not ours: it stays as the books have it.
                Some(allocator) => _ = offset >= HEADER_BYTES && allocator.release(offset, tracked.bytes),
                None => self.freed_early.push((offset, tracked.bytes)),
            }
        }
    }
}
