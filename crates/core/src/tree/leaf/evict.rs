//! How a leaf gives its memory back: large values go to extents of their own, a clean base is dropped, a dirty one,
//! undecided changes and history go to the spill file. The base of a temporary tree's leaf goes to the tree's own file.

use super::changes::{Backing, Changes};
use super::node::Node;
use super::spill::{SpilledDelta, SpilledHistory};
use crate::cache::Evictable;
use crate::store::Lifetime;
use crate::tree::block::blob::Blob;
use crate::tree::leaf::{Archive, Base, Leaf, LeafState, LeafView, SpilledBase};
use crate::tree::versions::delta::{Delta, Version};
use crate::{Error, Result};
use std::sync::Arc;

/// Deltas below this many bytes stay: reading them back would cost more than they take.
const SMALL_DELTA_BYTES: usize = 2 << 10;

/// Histories likewise.
const SMALL_HISTORY_BYTES: usize = 1 << 10;

impl Evictable for Node {
    fn touched(&self) -> bool {
        match self {
            Node::Leaf(leaf) => {
                let touched = leaf.take_touched();
                if touched {
                    leaf.cool();
                }
                touched
            }
            Node::Inner(page) => page.take_touched(),
        }
    }

    fn resident(&self) -> u64 {
        match self {
            Node::Leaf(leaf) => leaf.try_latch().map_or(0, |state| leaf.charged(&state)),
            Node::Inner(page) => page.loaded().map_or(0, |view| view.memory() as u64),
        }
    }

    fn leaves(&self) -> bool {
        match self {
            Node::Leaf(leaf) => leaf.leaves_clock(),
            Node::Inner(page) => page.leaves_clock(),
        }
    }

    fn evict(&self) -> Result<u64> {
        let leaf = match self {
            Node::Leaf(leaf) => leaf,
            Node::Inner(page) => return Ok(page.evict()),
        };
        // Compressing and writing them takes time: no latch is held.
        let values = evict_blobs(leaf)? as u64;
        write_base(leaf)?;
        let Some(mut state) = leaf.try_latch() else { return Ok(values) };
        let view = leaf.view();
        if view.dead {
            return Ok(values);
        }
        let values = values + state.forget_bytes() as u64 + void_bytes(&view.delta) as u64;
        let (base, delta) = match unfolded(leaf, &state, &view) {
            Some((base, delta)) => (Some(base), Some(delta)),
            None => (evicted_base(leaf, &mut state, &view)?, evicted_delta(leaf, &state, &view)?),
        };
        let history = evicted_history(leaf, &view)?;
        if base.is_none() && delta.is_none() && history.is_none() {
            state.forget_blobs(&view.base);
            return Ok(values);
        }
        let before = leaf.charged(&state);
        if base.is_some() {
            leaf.end_guess();
        }
        let evicted = LeafView {
            base: base.unwrap_or_else(|| view.base.clone()),
            delta: delta.unwrap_or_else(|| view.delta.clone()),
            history: history.unwrap_or_else(|| view.history.clone()),
            ..(*view).clone()
        };
        // Until nobody has the block, the values in it are in use.
        drop(view);
        leaf.publish(&mut state, evicted);
        state.forget_blobs(&leaf.view().base);
        Ok(values + before.saturating_sub(leaf.charged(&state)))
    }
}

impl Leaf {
    /// Whether nothing is in memory of the leaf but what stands for its durable copy: read anew it would be the same.
    pub(in crate::tree) fn is_at_rest(&self, state: &LeafState) -> bool {
        let view = self.view();
        let Some(copy) = state.copies.only(&view.base) else { return false };
        let has_only_patch = match (&view.delta, &copy.patch) {
            (Changes::Live(delta), None) => delta.is_empty(),
            (Changes::Spilled { older, fresh }, Some(patch)) => {
                let is_it = older.only_patch().is_some_and(|only| Arc::ptr_eq(only, patch));
                is_it && fresh.is_empty() && !self.is_needed_before(patch.newest())
            }
            _ => false,
        };
        has_only_patch
            && self.seems_at_rest()
            && copy.image.has_no_objects()
            && state.has_nothing_else()
            && self.is_nobodys_guess()
    }

    /// Whether it is worth the latch to ask for it.
    pub(in crate::tree) fn seems_at_rest(&self) -> bool {
        // Most of those that are not have a mark.
        if !self.marks.are_none() || !self.vacancy.is_occupied() {
            return false;
        }
        let view = self.view();
        let is_whole = !view.dead && view.birth.is_none() && view.history.is_empty();
        is_whole && matches!(view.base, Base::Stored(_)) && view.delta.newest().is_empty()
    }

    /// The leaf is dead: it leaves the tree, or memory, where another object will stand for it.
    pub(in crate::tree) fn leave(&self, state: &mut LeafState) {
        let nothing = LeafView {
            base: Base::Loaded(self.shared.no_rows.clone()),
            delta: Changes::Live(self.shared.no_delta.clone()),
            history: Archive::Empty,
            dead: true,
            ..(*self.view()).clone()
        };
        self.publish(state, nothing);
    }
}

/// Writes the base of a leaf of a temporary tree, which no checkpoint writes, to the file of the tree, unless it is
/// there already: what was read and not changed is evicted again without I/O.
fn write_base(leaf: &Leaf) -> Result<()> {
    let shared = &leaf.shared;
    let view = leaf.view();
    let Base::Loaded(block) = &view.base else { return Ok(()) };
    if shared.is_logged() || view.dead || block.is_empty() {
        return Ok(());
    }
    match leaf.try_latch() {
        Some(state) if state.copies.copy_of(&view.base).is_none() => {}
        _ => return Ok(()),
    }
    shared.space.check_room(block.bytes().len() as u64)?;
    let (copy, prepared) = shared.prepare(Lifetime::Private, block)?;
    shared.space.write(&prepared)?;
    // Otherwise nobody needs what was written, and the extent goes.
    if let Some(mut state) = leaf.try_latch().filter(|_| leaf.view().base.is_block(block)) {
        state.copies.written_ahead(copy);
    }
    Ok(())
}

/// Has the large values of the leaf leave memory; how many bytes they were.
fn evict_blobs(leaf: &Leaf) -> Result<usize> {
    let shared = &leaf.shared;
    let view = leaf.view();
    let mut packer = None;
    let mut freed = 0;
    let mut evict = |blob: &Arc<Blob>| -> Result<()> {
        if blob.memory() > 0 {
            let packer = match &packer {
                Some(packer) => packer,
                None => packer.insert(shared.encoding.value_packer()?),
            };
            freed += blob.evict(&shared.space, packer)?;
        }
        Ok(())
    };
    if let Base::Loaded(block) = &view.base {
        block.blobs().iter().try_for_each(&mut evict)?;
    }
    let undone = |(version, _): &(&Version, &Arc<Blob>)| version.is_void();
    let mut changed = view.delta.newest().blobs().filter(|value| !undone(value));
    changed.try_for_each(|(_, blob)| evict(blob))?;
    if let Archive::Live(history) = &view.history {
        history.blobs().iter().try_for_each(&mut evict)?;
    }
    Ok(freed)
}

/// Bytes of large values that were rolled back: they go with the delta in memory, which alone has them.
fn void_bytes(delta: &Changes) -> usize {
    let void = delta.newest().blobs().filter(|(version, _)| version.is_void());
    void.map(|(_, blob)| blob.memory()).sum()
}

impl LeafState {
    /// Large values that only images name leave memory; how many bytes they were.
    fn forget_bytes(&self) -> usize {
        self.copies.images().map(|image| image.forget_bytes()).sum()
    }

    /// The objects that `base`, which the leaf has, stands for on disk leave memory; of a leaf that the running
    /// checkpoint has written they stay until that is durable.
    pub(in crate::tree) fn forget_blobs(&self, base: &Base) {
        if let (Base::Stored(image), None) = (base, self.copies.pending()) {
            image.forget_blobs();
        }
    }
}

/// A base in memory that has what was the leaf's patch folded in: the file has it as block and patch, unless a snapshot
/// is older than the patch.
fn unfolded(leaf: &Leaf, state: &LeafState, view: &LeafView) -> Option<(Base, Changes)> {
    let own = || match &view.base {
        Base::Packed(packed) => packed.patch().map(|patch| (&packed.image, patch)),
        Base::Loaded(_) | Base::Stored(_) | Base::Spilled(_) => None,
    };
    let newest = state.copies.patched_as(&view.base);
    let (image, patch) = newest.filter(|(_, patch)| !leaf.is_needed_before(patch.newest())).or_else(own)?;
    let delta = match &view.delta {
        Changes::Live(delta) if delta.is_empty() || state.covers(&view.delta, patch) => {
            Changes::in_patch(patch, &leaf.shared.no_delta)
        }
        Changes::Live(delta) => Changes::in_patch(patch, delta),
        Changes::Spilled { older, .. } if older.patch().is_some() => view.delta.clone(),
        Changes::Spilled { older, fresh } => {
            Changes::Spilled { older: Arc::new(older.on_top_of(patch.clone())), fresh: fresh.clone() }
        }
    };
    Some((Base::Stored(image.clone()), delta))
}

/// None: the base takes no memory worth having.
fn evicted_base(leaf: &Leaf, state: &mut LeafState, view: &LeafView) -> Result<Option<Base>> {
    let block = match &view.base {
        Base::Loaded(block) => block,
        Base::Packed(packed) => return Ok(Some(Base::Stored(packed.image.clone()))),
        Base::Stored(_) | Base::Spilled(_) => return Ok(None),
    };
    if block.is_empty() {
        return Ok(None);
    }
    if let Some(place) = state.copies.place_of(&view.base) {
        return Ok(Some(place));
    }
    if !leaf.shared.is_logged() {
        // Somebody has changed it since it was written: the next round comes by.
        return Ok(None);
    }
    let extent = leaf.shared.context.spill.write_compressed(block.bytes())?;
    let blobs = block.blobs().into();
    let place = Arc::new(SpilledBase { extent, bytes: block.bytes().len(), blobs });
    state.copies.spilled(&place, block);
    Ok(Some(Base::Spilled(place)))
}

/// Whether an eviction leaves all of the delta where it is, whoever has pushed to it.
pub(super) fn delta_stays(delta: &Changes) -> bool {
    let newest = delta.newest();
    newest.charge() <= SMALL_DELTA_BYTES && newest.blobs().next().is_none()
}

fn evicted_delta(leaf: &Leaf, state: &LeafState, view: &LeafView) -> Result<Option<Changes>> {
    let write = |older: Option<&SpilledDelta>, newer: &Delta| -> Result<Option<Changes>> {
        let older = Arc::new(SpilledDelta::write(older, newer, &leaf.shared.context)?);
        Ok(Some(Changes::Spilled { older, fresh: leaf.shared.no_delta.clone() }))
    };
    if let Some(in_patch) = covered_delta(leaf, state, &view.delta) {
        return Ok(Some(in_patch));
    }
    // Large values that were rolled back are in memory only, and go with a delta that is written without them.
    let has_void = void_bytes(&view.delta) > 0;
    match &view.delta {
        Changes::Live(delta) if delta.is_empty() && !Arc::ptr_eq(delta, &leaf.shared.no_delta) => {
            Ok(Some(Changes::Live(leaf.shared.no_delta.clone())))
        }
        Changes::Live(delta) if has_void => write(None, delta),
        Changes::Live(delta) if delta.charge() > SMALL_DELTA_BYTES => match state.backing.as_ref() {
            Some(Backing { older, fresh, .. }) if fresh.charge() <= SMALL_DELTA_BYTES => {
                Ok(Some(Changes::Spilled { older: older.clone(), fresh: fresh.clone() }))
            }
            Some(backing) if backing.takes_another_run(delta) => write(Some(&backing.older), &backing.fresh),
            _ => write(None, delta),
        },
        Changes::Spilled { older, fresh } if has_void || fresh.charge() > SMALL_DELTA_BYTES => {
            write(Some(older), fresh)
        }
        _ => Ok(None),
    }
}

/// A delta in memory that is all in the leaf's patch, which is enough unless a snapshot is older than that.
pub(super) fn covered_delta(leaf: &Leaf, state: &LeafState, delta: &Changes) -> Option<Changes> {
    let covered = state.covered.as_ref().filter(|covered| covered.covers(delta))?;
    (!leaf.is_needed_before(covered.patch.newest()))
        .then(|| Changes::in_patch(&covered.patch, &leaf.shared.no_delta))
}

fn evicted_history(leaf: &Leaf, view: &LeafView) -> Result<Option<Archive>> {
    let context = &leaf.shared.context;
    // All its entries ended at or before the horizon: once no snapshot is older than that, nobody looks at it again.
    let needed = || context.clock.active_snapshots().needs(0, view.horizon);
    match &view.history {
        Archive::Empty => Ok(None),
        _ if !needed() => Ok(Some(Archive::Empty)),
        Archive::Live(history) if history.memory() > SMALL_HISTORY_BYTES => {
            match SpilledHistory::write(history, context) {
                Ok(spilled) => Ok(Some(Archive::Spilled(Arc::new(spilled)))),
                // Old snapshots have to give way, not the writers who need the memory.
                Err(Error::DiskFull { .. }) => {
                    context.past.press();
                    Ok(None)
                }
                Err(error) => Err(error),
            }
        }
        _ => Ok(None),
    }
}
