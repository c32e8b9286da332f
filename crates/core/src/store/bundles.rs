//! Bundles of one space: extents that hold several values, each of which goes at its own time
//! ([`crate::values::bundle`]).
//!
//! An extent that holds one value is superseded when no image names the value any more. Of a bundle the books note
//! which of its values are *dead*: no image of the generation and later ones names them. When all are, it is superseded
//! as any other. What the running checkpoint says is *dying* until that checkpoint is durable, and alive again if it is
//! abandoned; the next one says so anew. Bundles of which nothing is dead are in no list: a store that only grows has
//! none, whatever its size.

use super::BlockAddress;
use std::collections::{BTreeMap, BTreeSet};

/// Figures of bundles: of one, or of all in a space.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct BundleUse {
    /// How many there are.
    pub bundles: u64,
    /// Values in them that are named.
    pub values: u64,
    /// Bytes of these values.
    pub value_bytes: u64,
    /// Bytes that the bundles take in the file.
    pub stored_bytes: u64,
    /// The largest number of values that one has, or had.
    pub most_values: u64,
}

/// A bundle with dead values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ThinnedBundle {
    /// Where it is.
    pub address: BlockAddress,
    /// How many values it has, dead ones as well.
    pub of: u8,
    /// Bit by bit those that are dead.
    pub dead: u64,
}

impl ThinnedBundle {
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
        (ThinnedBundle::all(self.of) & !self.dead).count_ones()
    }
}

/// What a space's map says of its bundles.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct BundleMap {
    pub usage: BundleUse,
    /// By offset, ascending.
    pub thinned: Vec<ThinnedBundle>,
}

#[derive(Debug)]
struct Thinned {
    bundle: ThinnedBundle,
    dying: u64,
}

/// See the module's documentation.
#[derive(Debug, Default)]
pub(super) struct Bundles {
    thinned: BTreeMap<u64, Thinned>,
    /// Offsets of those with dying values.
    touched: Vec<u64>,
    /// Offsets of those of which more than half is dead in the durable image.
    sparse: BTreeSet<u64>,
    durable: BundleUse,
    /// As the running checkpoint has it.
    running: Option<BundleUse>,
}

impl Bundles {
    /// Takes what the map said.
    pub fn load(&mut self, map: BundleMap) {
        self.durable = map.usage;
        self.sparse = map
            .thinned
            .iter()
            .filter(|bundle| bundle.is_sparse())
            .map(|bundle| bundle.address.offset)
            .collect();
        self.thinned = map
            .thinned
            .into_iter()
            .map(|bundle| (bundle.address.offset, Thinned { bundle, dying: 0 }))
            .collect();
    }

    /// The running checkpoint is the first that names values of a bundle.
    pub fn enter(&mut self, bundle: &BundleUse) {
        let usage = self.running.get_or_insert(self.durable);
        usage.bundles += bundle.bundles;
        usage.values += bundle.values;
        usage.value_bytes += bundle.value_bytes;
        usage.stored_bytes += bundle.stored_bytes;
        usage.most_values = usage.most_values.max(bundle.most_values);
    }

    /// The running checkpoint does not name value `number` any more, which has so many bytes. Whether none is left.
    pub fn bury(
        &mut self,
        address: &BlockAddress,
        (number, of): (u8, u8),
        value_bytes: u64,
        occupied_bytes: u64,
    ) -> bool {
        let entry = self.thinned.entry(address.offset).or_insert_with(|| Thinned {
            bundle: ThinnedBundle { address: *address, of, dead: 0 },
            dying: 0,
        });
        debug_assert!(entry.bundle.address == *address, "another bundle at {}", address.offset);
        let bit = 1u64 << (number % 64);
        if (entry.bundle.dead | entry.dying) & bit != 0 {
            return false;
        }
        if entry.dying == 0 {
            self.touched.push(address.offset);
        }
        entry.dying |= bit;
        let is_last = entry.bundle.dead | entry.dying == ThinnedBundle::all(of);
        let usage = self.running.get_or_insert(self.durable);
        // What was damaged may have told otherwise.
        usage.values = usage.values.saturating_sub(1);
        usage.value_bytes = usage.value_bytes.saturating_sub(value_bytes);
        if is_last {
            usage.bundles = usage.bundles.saturating_sub(1);
            usage.stored_bytes = usage.stored_bytes.saturating_sub(occupied_bytes);
        }
        is_last
    }

    /// The running checkpoint is durable.
    pub fn durable(&mut self) {
        self.durable = self.running.take().unwrap_or(self.durable);
        for offset in std::mem::take(&mut self.touched) {
            let Some(thinned) = self.thinned.get_mut(&offset) else { continue };
            thinned.bundle.dead |= std::mem::take(&mut thinned.dying);
            if thinned.bundle.is_sparse() {
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
            if thinned.bundle.dead == 0 {
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
    pub fn map(&self) -> BundleMap {
        let as_written = |thinned: &Thinned| {
            let bundle = ThinnedBundle { dead: thinned.bundle.dead | thinned.dying, ..thinned.bundle };
            // One that has nothing is free in the same image.
            (bundle.alive() > 0).then_some(bundle)
        };
        BundleMap {
            usage: self.running.unwrap_or(self.durable),
            thinned: self.thinned.values().filter_map(as_written).collect(),
        }
    }

    /// As the durable image has it.
    pub fn usage(&self) -> BundleUse {
        self.durable
    }

    /// Up to `most` bundles behind the one at `after` of which more than half is dead in the durable image, and not
    /// all.
    pub fn sparse(&self, after: u64, most: usize) -> Vec<ThinnedBundle> {
        let bundles = self.sparse.range(after + 1..).filter_map(|offset| self.thinned.get(offset));
        bundles.map(|thinned| thinned.bundle).filter(ThinnedBundle::is_sparse).take(most).collect()
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
            in_parts: false,
            is_tight: false,
            dictionary: 0,
        }
    }

    #[test]
    fn values_die_one_by_one_and_live_again_if_the_checkpoint_does_not_come() {
        let mut bundles = Bundles::default();
        let bundle =
            BundleUse { bundles: 1, values: 3, value_bytes: 300, stored_bytes: 1024, most_values: 3 };
        bundles.enter(&bundle);
        assert_eq!((bundles.usage(), bundles.map().usage), (BundleUse::default(), bundle));
        bundles.abandon();
        assert_eq!(bundles.map(), BundleMap::default());
        bundles.enter(&bundle);
        bundles.durable();
        assert!(!bundles.bury(&at(4096), (1, 3), 100, 1024) && !bundles.bury(&at(4096), (1, 3), 100, 1024));
        assert_eq!(bundles.map().thinned, [ThinnedBundle { address: at(4096), of: 3, dead: 0b010 }]);
        assert_eq!((bundles.usage().values, bundles.map().usage.values), (3, 2));
        bundles.abandon();
        assert_eq!(bundles.map(), BundleMap { usage: bundle, thinned: vec![] });
        assert!(!bundles.bury(&at(4096), (1, 3), 100, 1024));
        bundles.durable();
        assert!(bundles.sparse(0, 9).is_empty(), "two of three are alive");
        assert!(!bundles.bury(&at(4096), (0, 3), 100, 1024));
        bundles.durable();
        assert_eq!(bundles.sparse(0, 9), [ThinnedBundle { address: at(4096), of: 3, dead: 0b011 }]);
        let mut again = Bundles::default();
        again.load(bundles.map());
        for bundles in [&mut bundles, &mut again] {
            assert!(bundles.bury(&at(4096), (2, 3), 100, 1024));
            assert_eq!(
                bundles.map(),
                BundleMap { usage: BundleUse { most_values: 3, ..BundleUse::default() }, thinned: vec![] }
            );
            bundles.durable();
            assert!(bundles.sparse(0, 9).is_empty());
            bundles.freed(4096);
        }
        assert_eq!(ThinnedBundle::all(64), u64::MAX);
        assert_eq!(ThinnedBundle::all(1), 1);
    }
}
