//! Large values that are alike, put together after they were written: several of them become one extent, a *bundle*
//! ([`crate::values::bundle`]), and leaves name their parts of it.
//!
//! ```text
//! written by a checkpoint, alone ── seen (engine/care/alike.rs) ── bundle written, private ── exchanged, in memory
//!                                                                                           │ next checkpoint
//!                     the extents that they had alone are superseded, the bundle is named <───┘
//! ```
//!
//! No row changes: a leaf's base names the same value elsewhere, as after a move ([`super::relocate`]). So nothing is
//! logged and nobody waits; old snapshots find what they need. What must hold:
//!
//! * Only values are exchanged that the durable image of their leaf names, and only while no checkpoint is under way.
//!   So the next image names all values of a new bundle that it will ever have named: those that it does not, as their
//!   rows have changed, are dead from the beginning ([`Bundles::enter`]).
//! * An image stops naming a part as it stops naming a value alone: when the leaf that had it is written without it,
//!   and no other has it. The books of the space note which parts are dead (`store/bundles.rs`).
//!
//! A crash before that checkpoint leaves nothing: the bundle was private. After it all is as the image says.

use super::exchange::{Exchanged, Other, MOST_TRIES};
use super::tree::Tree;
use crate::options::{Compression, Packing};
use crate::store::{BundleUse, Extent, Lifetime, ThinnedBundle};
use crate::sync::Mutex;
use crate::tree::block::blob::{Blob, BlobAddress, Member};
use crate::tree::block::bound::Bound;
use crate::tree::block::Value;
use crate::tree::leaf::node::LeafRef;
use crate::values::bundle::{self, Content, MOST_CONTENT};
use crate::{Error, Result};
use std::collections::{HashSet, VecDeque};
use std::sync::Arc;

/// Of Zstandard, if the table says none: bundles of gzipped histories are two thirds of what level 3 makes of them, and
/// it takes 3 MiB of memory where level 9 takes 12.
const DEFAULT_LEVEL: u8 = 6;
/// So many leaves wait to be looked at; what is more is found when they are written again, or by OPTIMIZE TABLE.
const MOST_UNSEEN: usize = 1 << 20;

/// One value of a bundle, in the tree's file.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Part {
    offset: u64,
    number: u8,
}

impl Part {
    /// What `blob` is; `None` if it is alone in its extent, or not stored.
    pub fn of(blob: &Blob) -> Option<Part> {
        let BlobAddress { extent, member, .. } = blob.address()?;
        Some(Part { offset: extent.offset, number: member?.number })
    }
}

/// A bundle that no image names yet.
struct NewBundle {
    extent: Arc<Extent>,
    /// Lengths of its values.
    values: Vec<u64>,
}

/// What a tree knows of its bundles, besides what its leaves name.
#[derive(Default)]
pub(super) struct Bundles {
    /// Filled while no checkpoint is under way.
    new: Mutex<Vec<NewBundle>>,
    /// Where leaves begin that have values nobody has looked at.
    unseen: Mutex<VecDeque<Bound>>,
}

impl Bundles {
    /// The image that is being written names these parts, among others of older bundles: new bundles are entered into
    /// the books, and what is not named of them is dead.
    pub fn enter(&self, named: &HashSet<Part>, generation: u64) -> Result<()> {
        for NewBundle { extent, values } in &*self.new.lock() {
            let offset = extent.address().offset;
            let (of, occupied) = (values.len() as u8, extent.occupied_bytes());
            let is_named = |number: u8| named.contains(&Part { offset, number });
            if !(0..of).any(is_named) {
                // It goes with who holds it.
                continue;
            }
            extent.enter_bundle(&BundleUse {
                bundles: 1,
                values: u64::from(of),
                value_bytes: values.iter().sum(),
                stored_bytes: occupied,
                most_values: u64::from(of),
            })?;
            for number in (0..of).filter(|number| !is_named(*number)) {
                extent.bury(number, of, values[usize::from(number)], generation)?;
            }
        }
        Ok(())
    }

    /// What [`Bundles::enter`] entered is durable.
    pub fn checkpoint_durable(&self) {
        self.new.lock().clear();
    }

    /// A leaf that begins at `low` names these in the durable image.
    pub fn note_leaf(&self, blobs: &[Arc<Blob>], low: &Bound) {
        if !blobs.iter().any(|blob| blob.is_alone() && !blob.is_seen()) {
            return;
        }
        let mut unseen = self.unseen.lock();
        if unseen.len() < MOST_UNSEEN && unseen.back().is_none_or(|last| **last != **low) {
            unseen.push_back(low.clone());
        }
    }
}

/// Which values are looked for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Looked {
    /// Those that nobody has looked at in this run.
    Unseen,
    /// All.
    Any,
}

/// A value that has an extent for itself.
pub(crate) struct LoneValue {
    pub key: Vec<u8>,
    pub blob: Arc<Blob>,
    /// Nobody has looked at it in this run.
    pub is_new: bool,
}

/// A row's value is to be named elsewhere.
pub(crate) struct Exchange {
    pub key: Vec<u8>,
    pub old: BlobAddress,
    pub new: Arc<Blob>,
}

/// A bundle in the file, which nothing names.
pub(crate) struct WrittenBundle {
    extent: Arc<Extent>,
    values: Vec<u64>,
}

impl WrittenBundle {
    /// Where it is.
    pub(crate) fn offset(&self) -> u64 {
        self.extent.address().offset
    }

    /// Bytes that it takes in the file.
    pub(crate) fn occupied_bytes(&self) -> u64 {
        self.extent.occupied_bytes()
    }

    /// Its values, in their order, for rows that are to name them.
    pub(crate) fn blobs(&self) -> Vec<Arc<Blob>> {
        let of = self.values.len() as u8;
        let blob = |(number, &length): (u8, &u64)| {
            Arc::new(Blob::part_of(self.extent.clone(), length, Some(Member { number, of })))
        };
        (0..of).zip(&self.values).map(blob).collect()
    }
}

impl Tree {
    /// Whether large values that are alike are to be put together.
    pub(crate) fn is_for_bundles(&self) -> bool {
        self.shared.space.is_lasting() && self.shared.encoding.packing().similarity
    }

    /// Whether values that are deflate streams are put together as what is in them.
    pub(crate) fn inflates(&self) -> bool {
        self.shared.encoding.packing().compression == Compression::Recompress
    }

    /// Whether leaves were written with values that nobody has looked at.
    pub(crate) fn has_unseen(&self) -> bool {
        !self.bundles.unseen.lock().is_empty()
    }

    /// Where the next leaf with such values begins; it leaves the list.
    pub(crate) fn next_unseen(&self) -> Option<Vec<u8>> {
        self.bundles.unseen.lock().pop_front().map(|low| low.to_vec())
    }

    /// Values of up to so many bytes that have extents for themselves, of the leaf that holds `key`; and where the walk
    /// goes on, `None` if that was the last leaf.
    pub(crate) fn lone_values(
        &self,
        key: &[u8],
        looked: Looked,
        most_bytes: u64,
    ) -> Result<(Vec<LoneValue>, Option<Vec<u8>>)> {
        self.shared.context.cache.make_room()?;
        let (leaf, view) = self.leaf_of(key)?;
        let base = leaf.base(leaf.node(), &view)?;
        let mut found = Vec::new();
        for at in 0..base.len() {
            let Value::Blob(blob) = base.value(at) else { continue };
            if !blob.is_alone() {
                continue;
            }
            let is_new = blob.is_first_look();
            if (is_new || looked == Looked::Any) && blob.len() <= most_bytes {
                let mut key = Vec::new();
                base.key_into(at, &mut key);
                found.push(LoneValue { key, blob: blob.clone(), is_new });
            }
        }
        Ok((found, view.next_key()))
    }

    /// The large value of the row with this key, as the base of its leaf has it, if it is in the extent at `offset`.
    pub(crate) fn value_in(&self, key: &[u8], offset: u64) -> Result<Option<Arc<Blob>>> {
        let node = self.find_leaf(key)?;
        let Some(leaf) = node.leaf() else { return Ok(None) };
        let base = leaf.base(&node, &leaf.view())?;
        let Ok(at) = base.search(key) else { return Ok(None) };
        let Value::Blob(blob) = base.value(at) else { return Ok(None) };
        let is_there = blob.extent().is_some_and(|extent| extent.address().offset == offset);
        Ok(is_there.then(|| blob.clone()))
    }

    /// Bundles behind `limit` that the leaf with `key` names, as if nothing of them were dead.
    pub(crate) fn bundles_behind(&self, key: &[u8], limit: u64) -> Result<Vec<ThinnedBundle>> {
        let (leaf, view) = self.leaf_of(key)?;
        let base = leaf.base(leaf.node(), &view)?;
        let bundle = |at: BlobAddress| {
            let of = at.member.filter(|_| at.extent.offset >= limit)?.of;
            Some(ThinnedBundle { address: at.extent, of, dead: 0 })
        };
        let mut bundles: Vec<_> =
            base.blobs().iter().filter_map(|blob| blob.address().and_then(bundle)).collect();
        bundles.sort_unstable_by_key(|bundle| bundle.address.offset);
        bundles.dedup();
        Ok(bundles)
    }

    /// Values of a bundle whose rows name it still, by their numbers, with their keys.
    pub(crate) fn values_of_bundle(
        &self,
        bundle: &ThinnedBundle,
    ) -> Result<Vec<(Vec<u8>, Content, BlobAddress)>> {
        let extent = self.shared.space.adopt(bundle.address);
        let raw = extent.read()?;
        let corrupt = |detail| Error::corrupt(extent.path(), bundle.address.offset, detail);
        let members = bundle::decode(&raw).map_err(corrupt)?;
        let mut found = Vec::new();
        for (number, member) in members.iter().enumerate().take(usize::from(bundle.of)) {
            if bundle.dead >> number & 1 != 0 {
                continue;
            }
            let Some(blob) = self.value_in(member.key, bundle.address.offset)? else { continue };
            let Some(address) =
                blob.address().filter(|at| at.member.is_some_and(|m| usize::from(m.number) == number))
            else {
                continue;
            };
            found.push((member.key.to_vec(), member.content(), address));
        }
        Ok(found)
    }

    /// Writes a bundle of these to a private extent. Does not sync.
    pub(crate) fn write_bundle(&self, members: &[(Vec<u8>, Content)]) -> Result<WrittenBundle> {
        let level = match self.shared.encoding.packing().level {
            0 => DEFAULT_LEVEL,
            level => level,
        };
        let packing = Packing { compression: Compression::Zstd, level, similarity: false };
        let space = &self.shared.space;
        let prepared = space.prepare_for(Lifetime::Private, &bundle::encode(members), packing)?;
        space.write(&prepared)?;
        let values = members.iter().map(|(_, content)| content.value_bytes()).collect();
        Ok(WrittenBundle { extent: prepared.extent().clone(), values })
    }

    /// A value for itself again.
    pub(crate) fn write_alone(&self, value: &[u8]) -> Result<Arc<Blob>> {
        let blob = self.stored_value(value)?;
        // Whoever looks for values that are alike has had it.
        blob.is_first_look();
        Ok(blob)
    }

    /// Has rows name their values elsewhere, in `bundles` among others, as far as the rows are what they were; how
    /// many. The caller sees to it that no checkpoint is under way. `exchanges` are in the order of their keys.
    pub(crate) fn exchange(&self, exchanges: &[Exchange], bundles: Vec<WrittenBundle>) -> Result<usize> {
        debug_assert!(exchanges.is_sorted_by(|a, b| a.key < b.key), "exchanges out of order");
        // First: also if the rest fails, the next image has to know them.
        let new =
            bundles.into_iter().map(|bundle| NewBundle { extent: bundle.extent, values: bundle.values });
        self.bundles.new.lock().extend(new);
        let (mut rest, mut done) = (exchanges, 0);
        while let Some(first) = rest.first() {
            self.shared.context.cache.make_room()?;
            let (leaf, view) = self.leaf_of(&first.key)?;
            let run = rest.partition_point(|exchange| view.holds(&exchange.key));
            done += self.exchange_in_leaf(&leaf, &rest[..run])?;
            rest = &rest[run..];
        }
        Ok(done)
    }

    fn exchange_in_leaf(&self, leaf: &LeafRef, exchanges: &[Exchange]) -> Result<usize> {
        let mut count = 0;
        let exchanged = self.exchange_base(leaf, MOST_TRIES, |base| {
            count = 0;
            let Some(durable) = leaf.latch().copies.durable().map(|copy| copy.image.clone()) else {
                return Ok(None);
            };
            let named: HashSet<*const Blob> = durable.known_blobs().iter().map(Arc::as_ptr).collect();
            base.with(|key, value, _| {
                let Value::Blob(blob) = value else { return Ok(Other::Keep) };
                let exchange = exchanges.binary_search_by(|exchange| (*exchange.key).cmp(key));
                let exchange = exchange.ok().map(|at| &exchanges[at]);
                let is_same = |exchange: &&Exchange| blob.address() == Some(exchange.old);
                let Some(exchange) = exchange.filter(is_same) else { return Ok(Other::Keep) };
                if !named.contains(&Arc::as_ptr(blob)) {
                    return Ok(Other::Keep);
                }
                count += 1;
                Ok(Other::Large(exchange.new.clone()))
            })
        })?;
        Ok(if exchanged == Exchanged::Done { count } else { 0 })
    }

    /// Up to `most` bundles of the tree's file, behind the one at `after`, of which more than half is dead.
    pub(crate) fn sparse_bundles(&self, after: u64, most: usize) -> Result<Vec<ThinnedBundle>> {
        self.shared.space.sparse_bundles(after, most)
    }
}

/// Values of more bytes are not looked at: two of them would not fit into a bundle.
pub(crate) const MOST_VALUE_BYTES: u64 = MOST_CONTENT as u64 / 2;
