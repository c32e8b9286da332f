//! Packs of one space: extents that hold several values, each of which goes at its own time ([`crate::values::pack`]).
//!
//! An extent that holds one value is superseded when no image names the value any more. Of a pack the books note which
//! of its values are *dead*: no image of the generation and later ones names them. When all are, it is superseded as
//! any other. What the running checkpoint says is *dying* until that checkpoint is durable, and alive again if it is
//! abandoned; the next one says so anew. Packs of which nothing is dead are in no list: a store that only grows has
//! none, whatever its size.

use super::BlockAddress;
use std::collections::{BTreeMap, BTreeSet};

/// Figures of packs: of one, or of all in a space.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PackUse {
    /// How many there are.
    pub packs: u64,
    /// Values in them that are named.
    pub values: u64,
    /// Bytes of these values.
    pub value_bytes: u64,
    /// Bytes that the packs take in the file.
    pub stored_bytes: u64,
    /// The largest number of values that one has, or had.
    pub most_values: u64,
}

/// A pack with dead values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ThinnedPack {
    /// Where it is.
    pub address: BlockAddress,
    /// How many values it has, dead ones as well.
    pub of: u8,
    /// Bit by bit those that are dead.
    pub dead: u64,
}

impl ThinnedPack {
    /// The bits of all its values.
    pub fn all(of: u8) -> u64 {
        u64::MAX.checked_shr(u64::BITS - u32::from(of)).unwrap_or(0)
    }

    /// Whether more than half of it is dead, and not all.
    fn is_sparse(&self) -> bool {
        (1..u32::from(self.of).div_ceil(2)).contains(&self.alive())
    }

    /// How many of its values are alive.
    pub fn alive(&self) -> u32 {
        (ThinnedPack::all(self.of) & !self.dead).count_ones()
    }
}

/// What a space's map says of its packs.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct PackMap {
    pub usage: PackUse,
    /// By offset, ascending.
    pub thinned: Vec<ThinnedPack>,
}

#[derive(Debug)]
struct Thinned {
    pack: ThinnedPack,
    dying: u64,
}

/// See the module's documentation.
#[derive(Debug, Default)]
pub(super) struct Packs {
    thinned: BTreeMap<u64, Thinned>,
    /// Offsets of those with dying values.
    touched: Vec<u64>,
    /// Offsets of those of which more than half is dead in the durable image.
    sparse: BTreeSet<u64>,
    durable: PackUse,
    /// As the running checkpoint has it.
    running: Option<PackUse>,
}

impl Packs {
    /// Takes what the map said.
    pub fn load(&mut self, map: PackMap) {
        self.durable = map.usage;
        self.sparse =
            map.thinned.iter().filter(|pack| pack.is_sparse()).map(|pack| pack.address.offset).collect();
        self.thinned =
            map.thinned.into_iter().map(|pack| (pack.address.offset, Thinned { pack, dying: 0 })).collect();
    }

    /// The running checkpoint is the first that names values of a pack.
    pub fn enter(&mut self, pack: &PackUse) {
        let usage = self.running.get_or_insert(self.durable);
        usage.packs += pack.packs;
        usage.values += pack.values;
        usage.value_bytes += pack.value_bytes;
        usage.stored_bytes += pack.stored_bytes;
        usage.most_values = usage.most_values.max(pack.most_values);
    }

    /// The running checkpoint does not name value `number` any more, which has so many bytes. Whether none is left.
    pub fn bury(
        &mut self,
        address: &BlockAddress,
        (number, of): (u8, u8),
        value_bytes: u64,
        occupied_bytes: u64,
    ) -> bool {
        let entry = self
            .thinned
            .entry(address.offset)
            .or_insert_with(|| Thinned { pack: ThinnedPack { address: *address, of, dead: 0 }, dying: 0 });
        debug_assert!(entry.pack.address == *address, "another pack at {}", address.offset);
        let bit = 1u64 << (number % 64);
        if (entry.pack.dead | entry.dying) & bit != 0 {
            return false;
        }
        if entry.dying == 0 {
            self.touched.push(address.offset);
        }
        entry.dying |= bit;
        let is_last = entry.pack.dead | entry.dying == ThinnedPack::all(of);
        let usage = self.running.get_or_insert(self.durable);
        // What was damaged may have told otherwise.
        usage.values = usage.values.saturating_sub(1);
        usage.value_bytes = usage.value_bytes.saturating_sub(value_bytes);
        if is_last {
            usage.packs = usage.packs.saturating_sub(1);
            usage.stored_bytes = usage.stored_bytes.saturating_sub(occupied_bytes);
        }
        is_last
    }

    /// The running checkpoint is durable.
    pub fn durable(&mut self) {
        self.durable = self.running.take().unwrap_or(self.durable);
        for offset in std::mem::take(&mut self.touched) {
            let Some(thinned) = self.thinned.get_mut(&offset) else { continue };
            thinned.pack.dead |= std::mem::take(&mut thinned.dying);
            if thinned.pack.is_sparse() {
                self.sparse.insert(offset);
            }
        }
    }

    /// It never will be.
    pub fn abandon(&mut self) {
        self.running = None;
        for offset in std::mem::take(&mut self.touched) {
            let Some(thinned) = self.thinned.get_mut(&offset) else { continue };
            thinned.dying = 0;
            if thinned.pack.dead == 0 {
                self.thinned.remove(&offset);
            }
        }
    }

    /// The extent at `offset` is free.
    pub fn freed(&mut self, offset: u64) {
        self.thinned.remove(&offset);
        self.sparse.remove(&offset);
    }

    /// As the image of the running checkpoint has it.
    pub fn map(&self) -> PackMap {
        let as_written = |thinned: &Thinned| {
            let pack = ThinnedPack { dead: thinned.pack.dead | thinned.dying, ..thinned.pack };
            // One that has nothing is free in the same image.
            (pack.alive() > 0).then_some(pack)
        };
        PackMap {
            usage: self.running.unwrap_or(self.durable),
            thinned: self.thinned.values().filter_map(as_written).collect(),
        }
    }

    /// As the durable image has it.
    pub fn usage(&self) -> PackUse {
        self.durable
    }

    /// Up to `most` packs behind the one at `after` of which more than half is dead in the durable image, and not all.
    pub fn sparse(&self, after: u64, most: usize) -> Vec<ThinnedPack> {
        let packs = self.sparse.range(after + 1..).filter_map(|offset| self.thinned.get(offset));
        packs.map(|thinned| thinned.pack).filter(ThinnedPack::is_sparse).take(most).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Compression;

    fn at(offset: u64) -> BlockAddress {
        BlockAddress {
            offset,
            stored_bytes: 1000,
            raw_bytes: 9000,
            checksum: offset,
            compression: Compression::Zstd,
            dictionary: 0,
        }
    }

    #[test]
    fn values_die_one_by_one_and_live_again_if_the_checkpoint_does_not_come() {
        let mut packs = Packs::default();
        let pack = PackUse { packs: 1, values: 3, value_bytes: 300, stored_bytes: 1024, most_values: 3 };
        packs.enter(&pack);
        assert_eq!((packs.usage(), packs.map().usage), (PackUse::default(), pack));
        packs.abandon();
        assert_eq!(packs.map(), PackMap::default());
        packs.enter(&pack);
        packs.durable();
        assert!(!packs.bury(&at(4096), (1, 3), 100, 1024) && !packs.bury(&at(4096), (1, 3), 100, 1024));
        assert_eq!(packs.map().thinned, [ThinnedPack { address: at(4096), of: 3, dead: 0b010 }]);
        assert_eq!((packs.usage().values, packs.map().usage.values), (3, 2));
        packs.abandon();
        assert_eq!(packs.map(), PackMap { usage: pack, thinned: vec![] });
        assert!(!packs.bury(&at(4096), (1, 3), 100, 1024));
        packs.durable();
        assert!(packs.sparse(0, 9).is_empty(), "two of three are alive");
        assert!(!packs.bury(&at(4096), (0, 3), 100, 1024));
        packs.durable();
        assert_eq!(packs.sparse(0, 9), [ThinnedPack { address: at(4096), of: 3, dead: 0b011 }]);
        let mut again = Packs::default();
        again.load(packs.map());
        for packs in [&mut packs, &mut again] {
            assert!(packs.bury(&at(4096), (2, 3), 100, 1024));
            assert_eq!(
                packs.map(),
                PackMap { usage: PackUse { most_values: 3, ..PackUse::default() }, thinned: vec![] }
            );
            packs.durable();
            assert!(packs.sparse(0, 9).is_empty());
            packs.freed(4096);
        }
        assert_eq!(ThinnedPack::all(64), u64::MAX);
        assert_eq!(ThinnedPack::all(1), 1);
    }
}
