//! What a cursor owns of a leaf between two calls, and how it comes by it.

use super::kept::Kept;
use super::{Item, Ready, TreeCursor, MOST_MERGED};
use crate::counts::Count;
use crate::mvcc::{SnapshotGuard, TxnStatus};
use crate::sync::Held;
use crate::tree::block::Block;
use crate::tree::change::trunk::changed_in;
use crate::tree::change::vacancy::{is_spent, Towards};
use crate::tree::leaf::changes::Changes;
use crate::tree::leaf::node::Node;
use crate::tree::leaf::packed::PackedBase;
use crate::tree::leaf::{Base, Leaf, LeafView};
use crate::tree::storing::lost::Lost;
use crate::tree::storing::tree::Tree;
use crate::tree::versions::delta::Delta;
use crate::tree::versions::history::History;
use crate::tree::versions::visibility::Reader;
use crate::{Error, Result};
use std::sync::Arc;

/// A leaf's content, kept alive for the cursor.
pub(in crate::tree) struct Pin {
    pub(super) node: Arc<Node>,
    pub(in crate::tree) view: Held<LeafView>,
    pub(in crate::tree) base: Kept<Block>,
    pub(in crate::tree) delta: Kept<Delta>,
    /// Read when a reader older than the view's horizon comes.
    pub(super) history: Option<Arc<History>>,
    pub(super) changes: u64,
    /// In the life of the tree's structure.
    pub(super) moment: u64,
    /// `base` was made for one old snapshot and contains everything; `delta` is empty.
    pub(in crate::tree) ephemeral: Option<Ephemeral>,
    /// Whether `base` has the rows of the leaf's base: not if the reader did not see them.
    pub(super) shown: bool,
    /// `base` has the keys alone, and this the values: for look-ups of single keys. See [`TreeCursor::unpack`].
    pub(super) packed: Option<Arc<PackedBase>>,
}

impl Pin {
    /// Whether it has no rows but that which was looked up.
    pub(in crate::tree) fn is_packed(&self) -> bool {
        self.packed.is_some()
    }
}

/// A leaf's view, and how far tree and leaf had changed before it was taken.
struct Seen {
    view: Held<LeafView>,
    /// As [`Pin::changes`].
    changes: u64,
    /// As [`Pin::moment`].
    moment: u64,
}

impl Seen {
    /// The numbers are read first: a view published in between makes a pin look stale, never fresh.
    #[inline]
    fn now(tree: &Tree, leaf: &Leaf) -> Seen {
        let (moment, changes) = (tree.changes.now(), leaf.changes());
        Seen { view: leaf.view(), changes, moment }
    }
}

/// What a pin has of a leaf, as in [`Pin`].
struct Content {
    base: Kept<Block>,
    delta: Kept<Delta>,
    packed: Option<Arc<PackedBase>>,
}

/// What somebody wants to read of a leaf.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Asked {
    /// One row, or a few.
    Row,
    Rows,
}

/// What a block for an old snapshot was made of, besides what others have committed.
pub(in crate::tree) struct Ephemeral {
    delta: Kept<Delta>,
    /// Versions in `delta`, from before the block was made.
    versions: usize,
    /// How often the reader's own transaction had taken something back.
    voided: u32,
}

impl Ephemeral {
    /// Whether the block would be the same if it were made now: the reader's own writes are what might differ.
    fn is_as_of_now(&self, reader: &Reader<'_>) -> bool {
        reader.own.is_none_or(|own| {
            own.voided() == self.voided && (self.delta.versions() == self.versions || !self.delta.has_of(own))
        })
    }
}

impl TreeCursor {
    /// Tells the pinned leaf what its delta cost; has it consolidated when that has become the cheaper way.
    #[inline]
    pub(super) fn settle(&mut self) {
        if self.merged != 0 {
            let merged = std::mem::take(&mut self.merged);
            if let Some(pin) = &self.pin {
                if pin.node.leaf().is_some_and(|leaf| leaf.charge_merge(merged)) {
                    // A failure shows again to whoever needs the leaf's content.
                    let _ = self.tree.tidy(&pin.node);
                }
            }
        }
    }

    /// Pins the leaf that was found, if `holds` says that it is the right one.
    fn pin_leaf(
        &mut self,
        reader: &Reader<'_>,
        node: Arc<Node>,
        asked: Asked,
        holds: impl Fn(&LeafView) -> bool,
    ) -> Result<bool> {
        self.settle();
        self.forget();
        let Node::Leaf(leaf) = &*node else { return Ok(false) };
        let seen = Seen::now(&self.tree, leaf);
        if !holds(&seen.view) {
            return Ok(false);
        }
        reader.check()?;
        let was_guessed = leaf.touch();
        let shown = seen.view.shows_base(reader);
        let is_cold = shown && !matches!(seen.view.base, Base::Loaded(_));
        self.was_cold = (is_cold && !matches!(seen.view.base, Base::Packed(_))) || was_guessed;
        self.yielded = 0;
        let (seen, content) = match (&seen.view.base, &seen.view.delta) {
            (Base::Loaded(block), Changes::Live(changes)) if shown => {
                // SAFETY: the pin has the view, which has both, for as long as it has these.
                let (base, delta) = unsafe { (Kept::by_view(block), Kept::by_view(changes)) };
                (seen, Content { base, delta, packed: None })
            }
            _ if is_cold => {
                let is_current = |view: &LeafView| holds(view) && view.shows_base(reader);
                self.fetch(&node, leaf, seen, asked, is_current)?
            }
            _ => {
                let rows = if shown {
                    leaf.base(&node, &seen.view)
                        .or_else(|error| self.without_base(leaf, &seen.view, error))?
                } else {
                    leaf.shared.no_rows.clone()
                };
                let content = self.with_changes(&node, leaf, &seen.view, rows, None)?;
                (seen, content)
            }
        };
        #[cfg(test)]
        {
            self.pinned += 1;
        }
        let Content { base, delta, packed } = content;
        let Seen { view, changes, moment } = seen;
        self.pin = Some(Pin {
            view,
            base,
            delta,
            history: None,
            changes,
            moment,
            ephemeral: None,
            shown,
            packed,
            node,
        });
        Ok(true)
    }

    /// Reads the leaf's base, or what of it is `asked` for. That publishes another view, as a rule: with it, if it
    /// `is_current`, and not with the one that was `seen`, the leaf need not be looked for again.
    fn fetch(
        &mut self,
        node: &Arc<Node>,
        leaf: &Leaf,
        mut seen: Seen,
        asked: Asked,
        is_current: impl Fn(&LeafView) -> bool,
    ) -> Result<(Seen, Content)> {
        let packed = match asked {
            Asked::Row if !self.tree.is_salvaged() => leaf.packed(node, &seen.view)?,
            _ => None,
        };
        let rows = match &packed {
            Some(packed) => packed.keys().clone(),
            None => {
                leaf.base(node, &seen.view).or_else(|error| self.without_base(leaf, &seen.view, error))?
            }
        };
        let now = Seen::now(&self.tree, leaf);
        let is_read = match &packed {
            Some(packed) => now.view.base.is_packed(packed),
            None => now.view.base.is_block(&rows),
        };
        if is_read && is_current(&now.view) {
            seen = now;
        }
        let content = self.with_changes(node, leaf, &seen.view, rows, packed)?;
        Ok((seen, content))
    }

    /// A base, with the changes of the `view`, which may have to be read.
    fn with_changes(
        &mut self,
        node: &Arc<Node>,
        leaf: &Leaf,
        view: &LeafView,
        base: Arc<Block>,
        packed: Option<Arc<PackedBase>>,
    ) -> Result<Content> {
        let delta = leaf.delta(node, view).or_else(|error| self.without_patch(leaf, view, error))?;
        Ok(Content { base: Kept::from(base), delta: Kept::from(delta), packed })
    }

    pub(super) fn pin_for(&mut self, reader: &Reader<'_>, key: &[u8], asked: Asked) -> Result<()> {
        loop {
            let moment = self.tree.changes.now();
            let node = self.top.find_leaf(&self.tree, key)?;
            if self.pin_leaf(reader, node, asked, |view| view.holds(key))? {
                return Ok(());
            }
            self.tree.check_way(moment)?;
        }
    }

    /// Whether a descent for `key` would lead to the pinned leaf, with the content that is pinned. Who asks after it
    /// has locked the key misses no write of those who had it locked before: they wrote to the leaf that was
    /// responsible then, and nothing has changed in that since the pin.
    pub(super) fn is_at_home(&self, reader: &Reader<'_>, key: &[u8]) -> bool {
        self.pin.as_ref().is_some_and(|pin| {
            pin.view.holds(key) && pin.ephemeral.is_none() && self.tree.changes.is_still(pin.moment)
        }) && self.is_fresh(reader)
    }

    /// The pinned leaf, if `key` belonged there.
    pub(crate) fn leaf_of(&self, key: &[u8]) -> Option<&Arc<Node>> {
        self.pin.as_ref().filter(|pin| pin.view.holds(key)).map(|pin| &pin.node)
    }

    /// For a scan that goes up: not less than the keys that the pinned leaf has left for it, and the key that they are
    /// below. `None` if it is the last leaf, or if nobody knows.
    pub fn rest_of_leaf(&self) -> Option<(usize, &[u8])> {
        let pin = self.pin.as_ref()?;
        let passed = match (self.ready, self.item) {
            (Ready::Forward, _) => self.base_at,
            // It was placed at a key that is there.
            (Ready::No, Item::Base(at)) => at,
            (Ready::No, Item::Version(_) | Item::Past(_) | Item::Listed(_)) => 0,
            (Ready::No, Item::None) | (Ready::Backward, _) => return None,
        };
        let high = pin.view.high.as_deref()?;
        Some((pin.base.len().saturating_sub(passed) + 1 + pin.delta.len(), high))
    }

    /// Under a lock of `key`: whether another transaction committed a change of it after `snapshot`. The pinned leaf
    /// says so if it has the key, and a descent otherwise.
    pub(crate) fn changed_since(
        &self,
        key: &[u8],
        snapshot: &SnapshotGuard,
        own: &TxnStatus,
    ) -> Result<bool> {
        match &self.pin {
            Some(pin) if self.is_at_home(&Reader::latest(Some(own)), key) => {
                changed_in(&pin.node, &pin.view, key, snapshot, own)
            }
            _ => self.tree.changed_since(key, snapshot, own),
        }
    }

    /// Does what pinning the same leaf again would, without the way there.
    pub(super) fn stay(&mut self, reader: &Reader<'_>) -> Result<()> {
        reader.check()?;
        if self.merged >= MOST_MERGED {
            self.settle();
        }
        self.forget();
        if let Some(leaf) = self.pin.as_ref().and_then(|pin| pin.node.leaf()) {
            leaf.touch();
        }
        Ok(())
    }

    /// Pins the leaf with the greatest keys below `key`.
    pub(super) fn pin_before(&mut self, reader: &Reader<'_>, key: &[u8]) -> Result<()> {
        loop {
            let moment = self.tree.changes.now();
            let node = self.tree.find_leaf_before(key)?;
            let fits = |view: &LeafView| {
                !view.dead
                    && (*view.low < *key || key.is_empty())
                    && view.high.as_ref().is_none_or(|high| *key <= **high)
            };
            if self.pin_leaf(reader, node, Asked::Rows, fits)? {
                return Ok(());
            }
            self.tree.check_way(moment)?;
        }
    }

    /// Pins the next leaf beyond `bound` that has something for the reader; `false`: there is none.
    pub(super) fn pin_next(&mut self, reader: &Reader<'_>, towards: Towards, bound: &[u8]) -> Result<bool> {
        let before = self.tree.changes.now();
        if let Some(found) = self.tree.occupied_leaf(before, towards, bound, reader.snapshot)? {
            let Some(node) = found else { return Ok(false) };
            Count::PagesAccessed.add(1);
            if self.pin_leaf(reader, node, Asked::Rows, |view| !view.dead)?
                && self.tree.changes.now() == before
            {
                self.run.step(towards, self.was_cold, self.tree.shared.context.ahead.most_blocks());
                return Ok(true);
            }
        }
        // Leaves are being split or removed. The neighbour is never wrong.
        match towards {
            Towards::Greater => self.pin_for(reader, bound, Asked::Rows)?,
            Towards::Lesser => self.pin_before(reader, bound)?,
        }
        self.run.step(towards, self.was_cold, self.tree.shared.context.ahead.most_blocks());
        Ok(true)
    }

    pub(super) fn pin_last(&mut self, reader: &Reader<'_>) -> Result<()> {
        loop {
            let moment = self.tree.changes.now();
            let node = self.tree.last_leaf()?;
            if self.pin_leaf(reader, node, Asked::Rows, |view| !view.dead && view.high.is_none())? {
                return Ok(());
            }
            self.tree.check_way(moment)?;
        }
    }

    /// Whether the pin still shows the newest view of its leaf, and shows this reader what it sees of the base.
    #[inline]
    pub(in crate::tree) fn is_fresh(&self, reader: &Reader<'_>) -> bool {
        self.pin.as_ref().is_some_and(|pin| {
            let newest = pin.node.leaf().is_some_and(|leaf| leaf.changes() == pin.changes);
            newest
                && (pin.view.birth.is_none() || pin.view.shows_base(reader) == pin.shown)
                && pin.ephemeral.as_ref().is_none_or(|made| made.is_as_of_now(reader))
        })
    }

    /// Replaces the pinned content by a block as of the reader's snapshot, if only history knows that; tells whether.
    /// What follows may move over all rows of the pin.
    pub(super) fn adapt(&mut self, reader: &Reader<'_>) -> Result<bool> {
        self.unpack()?;
        let Some(pin) = &mut self.pin else { return Ok(false) };
        if pin.ephemeral.is_none() && reader.snapshot < pin.view.horizon && !pin.view.history.is_empty() {
            let (versions, voided) = (pin.delta.versions(), reader.own.map_or(0, TxnStatus::voided));
            let Some(leaf) = pin.node.leaf() else { return Ok(false) };
            pin.base = Kept::from(Arc::new(leaf.materialise(&pin.node, &pin.view, reader)?));
            let delta = std::mem::replace(&mut pin.delta, Kept::from(Arc::new(Delta::new())));
            pin.ephemeral = Some(Ephemeral { delta, versions, voided });
            return Ok(true);
        }
        Ok(false)
    }

    /// What stands in for the rows of a base that cannot be read.
    #[cold]
    fn without_base(&mut self, leaf: &Leaf, view: &LeafView, error: Error) -> Result<Arc<Block>> {
        if !self.lenient || !self.tree.passes_over(&error) {
            return Err(error);
        }
        self.tree.note_lost(self.lost_with(view, false, error));
        // It is not empty, and nobody should tidy it away.
        self.yielded = 1;
        Ok(leaf.shared.no_rows.clone())
    }

    /// What stands in for the changes of a leaf whose patch cannot be read: those since it was written.
    #[cold]
    fn without_patch(&mut self, leaf: &Leaf, view: &LeafView, error: Error) -> Result<Arc<Delta>> {
        let patch = view.delta.patch().filter(|_| self.lenient);
        let newer = patch.and_then(|patch| view.delta.since_patch(patch));
        let Some(newer) = newer.filter(|_| self.tree.passes_over(&error)) else { return Err(error) };
        self.tree.note_lost(self.lost_with(view, true, error));
        newer.read(&leaf.shared.context)
    }

    fn lost_with(&self, view: &LeafView, is_older: bool, error: Error) -> Lost {
        let high = view.high.as_ref().map(|high| high.to_vec());
        Lost { tree: self.tree.id(), low: view.low.to_vec(), high, is_older, error }
    }

    /// A leaf that had content but nothing to see wastes everybody's time: have it consolidated.
    pub(super) fn tidy_up(&mut self) {
        let Some(pin) = &self.pin else { return };
        if self.yielded > 0 || pin.ephemeral.is_some() {
            return;
        }
        let is_live = matches!(pin.view.delta, Changes::Live(_));
        // A failure shows again to whoever needs the leaf's content.
        let _ = match pin.delta.is_empty() {
            // The only leaf of a tree stays.
            true if pin.view.low.is_empty() && pin.view.high.is_none() => Ok(()),
            true if pin.base.is_empty() && pin.node.vacancy().is_occupied() => self.tree.retire(&pin.node),
            true => Ok(()),
            false if is_spent(&pin.base, &pin.delta) => self.tree.maintain(&pin.node),
            false if is_live && pin.delta.len() >= 16 => self.tree.tidy(&pin.node),
            false => Ok(()),
        };
    }
}

/// Of a leaf; `None`: it has none.
pub(super) fn greatest_key(base: &Block, delta: &Delta) -> Option<Vec<u8>> {
    let mut key = Vec::new();
    if !base.is_empty() {
        base.key_into(base.len() - 1, &mut key);
    }
    match delta.last() {
        Some(entry) if base.is_empty() || entry.key() > &key[..] => Some(entry.key().to_vec()),
        _ if base.is_empty() => None,
        _ => Some(key),
    }
}
