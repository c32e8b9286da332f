//! Pushing versions onto the deltas of leaves, one or many at a time.

use super::trunk::Trunk;
use crate::counts::Count;
use crate::mvcc::{State, TxnStatus};
use crate::store::{is_dense, Extent};
use crate::tree::block::blob::Blob;
use crate::tree::leaf::care::Care;
use crate::tree::leaf::changes::Changes;
use crate::tree::leaf::node::Node;
use crate::tree::leaf::{Base, Latched, Leaf, LeafState, LeafView};
use crate::tree::versions::delta::VersionOp;
use crate::types::WriteOp;
use crate::{Error, Result};
use std::sync::Arc;

/// Longest key, in bytes.
pub const MAX_KEY_BYTES: usize = 16 << 10;
/// Longest value, in bytes.
pub const MAX_VALUE_BYTES: u64 = u32::MAX as u64 - 64;

/// One write of one transaction.
#[derive(Clone, Copy)]
pub struct Write<'a> {
    /// What is written to.
    pub key: &'a [u8],
    /// What it becomes.
    pub op: WriteOp<'a>,
    /// The transaction.
    pub status: &'a Arc<TxnStatus>,
    /// The number of the write within its transaction.
    pub sequence: u32,
}

impl Write<'_> {
    fn value(&self) -> &[u8] {
        match self.op {
            WriteOp::Insert(value) | WriteOp::Update(value) => value,
            WriteOp::Delete => &[],
        }
    }
}

/// A block or a large value in its file.
#[derive(Clone)]
pub struct Written {
    /// Where it is.
    pub extent: Arc<Extent>,
    /// Where the dictionary is that it needs, if only memory knows.
    pub dictionary: Option<Arc<Extent>>,
}

/// What came of pushing a run of writes.
struct Pushed {
    /// How many went to the leaf; none: it does not hold the first key any more.
    writes: usize,
    /// The leaf is due for consolidation.
    due: bool,
    /// The leaf is passed by as vacant: see [`Trunk::occupy`].
    vacant: bool,
}

impl Trunk {
    /// Pushes a version of `key`. The caller holds whatever row lock is due; until `status` is published, only its own
    /// transaction sees the version. Latches one leaf; may wait before that for memory (back-pressure).
    #[inline]
    pub(crate) fn write(
        &self,
        key: &[u8],
        op: WriteOp<'_>,
        status: &Arc<TxnStatus>,
        sequence: u32,
    ) -> Result<()> {
        self.write_near(&Write { key, op, status, sequence }, &mut None)
    }

    /// Like [`Trunk::write`]; `near` is a leaf that may be the one, as somebody has just found or written it, and
    /// becomes the one: then there is no descent.
    #[inline]
    pub(crate) fn write_near(&self, write: &Write<'_>, near: &mut Option<Arc<Node>>) -> Result<()> {
        let blob = self.prepare_write(write)?;
        self.push_some(std::slice::from_ref(write), blob.as_ref(), near).map(drop)
    }

    /// Like [`Trunk::write`] for many, in this order. Neighbours that go to one leaf cost one descent and one latch:
    /// sort them by key.
    pub(crate) fn write_run(&self, mut writes: &[Write<'_>]) -> Result<()> {
        while !writes.is_empty() {
            writes = &writes[self.write_some(writes)?..];
        }
        Ok(())
    }

    /// The first step of [`Trunk::write_run`]: pushes the first of `writes`, and those behind it that go to the same
    /// leaf; how many they were.
    pub(crate) fn write_some(&self, writes: &[Write<'_>]) -> Result<usize> {
        let Some(first) = writes.first() else { return Ok(0) };
        let blob = self.prepare_write(first)?;
        self.push_some(writes, blob.as_ref(), &mut None)
    }

    /// Sees to size and memory; the value, if it is large.
    #[inline]
    fn prepare_write(&self, write: &Write<'_>) -> Result<Option<Arc<Blob>>> {
        self.check(write)?;
        let cache = &self.shared.context.cache;
        match write.op {
            // What memory has no room for can be deleted still.
            WriteOp::Delete if self.is_in_memory() => cache.make_room_if_possible(),
            _ => cache.make_room()?,
        }
        Ok(self.is_large(write.value()).then(|| Arc::new(Blob::charged(write.value(), cache))))
    }

    /// Like [`Trunk::write`] of a large value that [`Trunk::store_value`] has put into `extent`.
    pub(crate) fn write_stored(&self, write: &Write<'_>, extent: &Arc<Extent>) -> Result<()> {
        self.check(write)?;
        self.shared.context.cache.make_room()?;
        let blob = Arc::new(Blob::stored(extent.clone(), write.value().len() as u64));
        self.push_some(std::slice::from_ref(write), Some(&blob), &mut None).map(drop)
    }

    /// Writes a large value to a private extent of the tree's file, for [`Trunk::write_stored`]. Does not sync.
    pub(crate) fn store_value(&self, value: &[u8]) -> Result<Written> {
        let prepared = self.shared.space.prepare_value(value, &self.shared.encoding.value_packer()?)?;
        self.shared.space.write(&prepared)?;
        let extent = prepared.extent().clone();
        let dictionary = self.shared.encoding.unsaved_dictionary(extent.address().dictionary);
        Ok(Written { extent, dictionary })
    }

    /// Pushes the first of `writes`, whose large value is `blob`, and what goes along with it; how many they were.
    fn push_some(
        &self,
        writes: &[Write<'_>],
        blob: Option<&Arc<Blob>>,
        near: &mut Option<Arc<Node>>,
    ) -> Result<usize> {
        let mut known = near.take();
        loop {
            let moment = self.changes.now();
            let is_known = known.is_some();
            let node = known.take().map_or_else(|| self.find_leaf(writes[0].key), Ok)?;
            let pushed = self.push(&node, writes, blob)?;
            if pushed.due {
                if !self.waits_for_decision(&node) {
                    self.maintain(&node)?;
                }
                self.note_due(&node);
            }
            if pushed.vacant {
                self.occupy(&node)?;
            }
            if pushed.writes > 0 {
                *near = Some(node);
                return Ok(pushed.writes);
            }
            if !is_known && !node.leaf().is_some_and(|leaf| leaf.view().holds(writes[0].key)) {
                self.check_way(moment)?;
            }
        }
    }

    /// Whether a value lives in an extent of its own. One that cannot be compressed does so earlier: a block gains
    /// nothing by it, and who reads one value would read all of its neighbours.
    pub(crate) fn is_large(&self, value: &[u8]) -> bool {
        let limit = self.shared.spec.block_bytes as usize / 4;
        value.len() > limit || (value.len() > limit / 4 && is_dense(value))
    }

    /// Whether it can be written.
    fn check(&self, write: &Write<'_>) -> Result<()> {
        self.check_open()?;
        let limits =
            [("key", write.key.len(), MAX_KEY_BYTES as u64), ("value", write.value().len(), MAX_VALUE_BYTES)];
        for (what, bytes, maximum) in limits {
            let bytes = bytes as u64;
            if bytes > maximum {
                return Err(Error::TooLarge { what, bytes, maximum });
            }
        }
        Ok(())
    }

    /// Pushes the first of `writes`, whose large value is `blob`, and those behind it that go to the same leaf as they
    /// are.
    fn push(&self, node: &Arc<Node>, writes: &[Write<'_>], blob: Option<&Arc<Blob>>) -> Result<Pushed> {
        let none = Pushed { writes: 0, due: false, vacant: false };
        let Node::Leaf(leaf) = &**node else { return Ok(none) };
        let mut state = leaf.latch();
        let mut view = leaf.view();
        if !view.holds(writes[0].key) {
            return Ok(none);
        }
        if !leaf.vacancy.is_occupied() {
            return Ok(Pushed { vacant: true, ..none });
        }
        if !leaf.has_own_delta(&view) {
            leaf.make_delta(&mut state);
            view = leaf.view();
        }
        let count = self.push_run(leaf, &mut state, &view, writes, blob);
        Count::PagesUpdated.add(1);
        self.note_written(node, leaf, &mut state, &view, &writes[..count]);
        Ok(Pushed { writes: count, due: self.is_due(&state, &view), vacant: false })
    }

    /// What [`Trunk::push`] does to a latched leaf with the `view`, which has a delta of its own; how many writes it
    /// took.
    #[inline]
    fn push_run(
        &self,
        leaf: &Leaf,
        state: &mut LeafState,
        view: &LeafView,
        writes: &[Write<'_>],
        blob: Option<&Arc<Blob>>,
    ) -> usize {
        let delta = view.delta.newest();
        let backing = leaf.backing_delta(state);
        let memory = || delta.charge() + backing.as_ref().map_or(0, |backing| backing.charge());
        let (before, changes_before) = (memory(), delta.charge());
        let push = |write: &Write<'_>, op: VersionOp<'_>| {
            debug_assert!(view.holds(write.key), "a key outside of the leaf");
            debug_assert!(
                !matches!(write.status.state(), State::Aborted),
                "a write of a transaction rolled back"
            );
            // SAFETY: the leaf's latch is held, and `delta` is what writers push onto in its current view.
            unsafe { delta.push(write.key, write.status.clone(), write.sequence, op) };
            if let Some(backing) = &backing {
                // SAFETY: as above; it is pushed onto here only.
                unsafe { backing.push(write.key, write.status.clone(), write.sequence, op) };
            }
        };
        let first = &writes[0];
        push(first, blob.map_or(VersionOp::of(&first.op), VersionOp::Blob));
        // So much that a run makes no leaf of many times the size of a block.
        let enough = before + 2 * self.shared.spec.block_bytes as usize;
        let more = writes[1..].iter().take_while(|write| {
            let fits = memory() < enough && view.holds(write.key);
            fits && write.key.len() <= MAX_KEY_BYTES && !self.is_large(write.value())
        });
        let mut count = 1;
        for write in more {
            push(write, VersionOp::of(&write.op));
            count += 1;
        }
        leaf.grew(state, (memory() - before) as u64, (delta.charge() - changes_before) as u64);
        count
    }

    /// Has those know of `writes` to a latched leaf who look for leaves: the clock, checkpoints, and who takes leaves
    /// without rows away.
    #[inline]
    fn note_written(
        &self,
        node: &Arc<Node>,
        leaf: &Leaf,
        state: &mut Latched<'_>,
        view: &LeafView,
        writes: &[Write<'_>],
    ) {
        if matches!(view.delta, Changes::Spilled { .. }) {
            leaf.pushed_unseen();
        }
        let deletions = writes.iter().filter(|write| matches!(write.op, WriteOp::Delete)).count();
        state.deletions += deletions;
        // It may have been the last of the leaf's rows: somebody should look when that is decided.
        if deletions > 0 && matches!(&view.base, Base::Loaded(block) if block.len() <= view.delta.size().keys)
        {
            self.note_latched(state, node, Care::Retire);
        }
        self.list_dirty(state, node);
        leaf.register(state, node);
        leaf.touch();
    }

    /// Whether consolidation pays: the delta is large, or most of the base is deleted.
    fn is_due(&self, state: &LeafState, view: &LeafView) -> bool {
        let size = view.delta.size();
        let limit = self.shared.spec.block_bytes as usize / 2;
        let (limit, base_entries) = match &view.base {
            Base::Loaded(block) => (limit, block.len()),
            _ => (limit * 2, usize::MAX),
        };
        size.memory > limit.max(state.fold_again_at)
            || (state.deletions >= 16
                && state.deletions > base_entries / 2
                && size.versions > state.deletions_again_at)
    }
}
