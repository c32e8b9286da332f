//! Consolidation in place, and splits. How empty leaves go is in [`super::vacancy`], how small ones are
//! put together in [`super::merge`], and how half-full ones are filled in [`super::pack`].

use super::consolidate::{fold, Folded, Piece, Pieces};
use super::trunk::Trunk;
use crate::sync::atomic::Ordering;
use crate::tree::block::bound::Bound;
use crate::tree::block::Block;
use crate::tree::leaf::changes::Changes;
use crate::tree::leaf::lifecycle::LooseImages;
use crate::tree::leaf::node::{Inner, InnerView, LeafRef, Node};
use crate::tree::leaf::{Archive, Base, Latched, Leaf, LeafView};
use crate::tree::versions::birth::Fate;
use crate::tree::versions::visibility::Content;
use crate::Result;
use std::sync::Arc;

/// Protected by the structure latch.
#[derive(Default)]
pub(crate) struct Structure {
    /// A checkpoint is writing this tree: leaves that a structure change touches must be written again.
    pub checkpointing: bool,
    pub reimage: Vec<LeafRef>,
    /// Images that no leaf has any more, or that no checkpoint has named yet.
    pub loose: LooseImages,
}

/// Inner nodes from the root to the parent of a leaf, with the child taken in each.
pub(in crate::tree) type Path = Vec<(Arc<Node>, usize)>;

impl Trunk {
    /// Consolidates a leaf; splits it if it has grown, removes it if it is empty. Call without any latch.
    pub(crate) fn maintain(&self, node: &Arc<Node>) -> Result<()> {
        let Node::Leaf(leaf) = &**node else { return Ok(()) };
        let view = leaf.view();
        if view.dead || self.settle_birth(leaf) {
            return Ok(());
        }
        let base = leaf.base(node, &view)?;
        let delta = leaf.delta(node, &view)?;
        leaf.history(&view)?;
        let grown = base.bytes().len() + delta.memory() > self.shared.spec.block_bytes as usize;
        let emptied = delta.versions() >= base.len() || view.birth.is_some();
        drop((view, base));
        if grown || emptied {
            let mut structure = self.structure.lock();
            let mut state = leaf.latch();
            self.restructure(&mut structure, node, leaf, &mut state, Pieces::Many)?;
        } else {
            let mut state = leaf.latch();
            self.fold_in_place(leaf, &mut state)?;
        }
        self.note_past(node);
        self.note_thin(node);
        Ok(())
    }

    /// Forgets the birth of a leaf that has no other changes and whose rows everybody sees. `true`: there is nothing
    /// else to do.
    fn settle_birth(&self, leaf: &Leaf) -> bool {
        if leaf.view().birth.is_none() || leaf.view().has_changes() {
            return false;
        }
        let active = self.shared.context.clock.active_snapshots();
        let mut state = leaf.latch();
        let view = leaf.view();
        match view.birth.as_ref().map(|birth| (birth.fate(&active), birth.timestamp())) {
            Some((Fate::Settled, timestamp)) if !view.has_changes() => {
                let horizon = view.horizon.max(timestamp);
                leaf.publish(&mut state, LeafView { birth: None, horizon, ..(*view).clone() });
                true
            }
            Some((Fate::Open, _)) => !view.has_changes(),
            _ => false,
        }
    }

    /// Consolidates a leaf in which a reader found nothing but garbage, unless it is known to be undecided.
    pub(crate) fn tidy(&self, node: &Arc<Node>) -> Result<()> {
        let Node::Leaf(leaf) = &**node else { return Ok(()) };
        let known = leaf.try_latch().map_or(usize::MAX, |state| state.deletions_again_at);
        let versions = match &leaf.view().delta {
            Changes::Live(delta) => delta.versions(),
            Changes::Spilled { .. } => 0,
        };
        if versions <= known {
            return Ok(());
        }
        self.maintain(node)
    }

    fn fold(&self, leaf: &Leaf, view: &LeafView, pieces: Pieces) -> Result<Option<Folded>> {
        let delta = view.delta.read(&self.shared.context)?;
        let active = self.shared.context.clock.active_snapshots();
        let fate = view.birth.as_ref().map(|birth| birth.fate(&active));
        let nothing = delta.is_empty() && view.history.is_empty() && fate != Some(Fate::Void);
        if view.dead || (nothing && pieces != Pieces::Full) {
            return Ok(None);
        }
        let (mut base, mut delta) = (leaf.read_base(&view.base)?, delta);
        match (&view.birth, fate) {
            (_, Some(Fate::Void)) => base = self.shared.no_rows.clone(),
            (Some(birth), Some(Fate::Open)) => {
                delta = Arc::new(birth.as_versions(&base, &delta));
                base = self.shared.no_rows.clone();
            }
            _ => {}
        }
        let history = leaf.read_history(&view.history)?;
        let content =
            Content { horizon: view.horizon, base: &base, delta: &delta, history: history.as_deref() };
        let mut folded = fold(&content, &active, self.shared.spec.block_bytes as usize, pieces);
        if matches!(fate, Some(Fate::Void | Fate::Open)) {
            // It is not the leaf's base that stays as it is.
            for piece in &mut folded.pieces {
                piece.base.get_or_insert_with(Block::empty);
            }
        }
        Ok(Some(folded))
    }

    /// Folds into one base, whatever its size. The latch is held.
    pub(crate) fn fold_in_place(&self, leaf: &Leaf, state: &mut Latched<'_>) -> Result<()> {
        let view = leaf.view();
        if let Some(Folded { mut pieces, horizon, .. }) = self.fold(leaf, &view, Pieces::One)? {
            if let Some(piece) = pieces.pop() {
                publish_piece(leaf, state, &view, piece, view.high.clone(), horizon);
            }
        }
        Ok(())
    }

    /// Folds into one base, or several leaves. Both latches are held.
    pub(super) fn restructure(
        &self,
        structure: &mut Structure,
        node: &Arc<Node>,
        leaf: &Leaf,
        state: &mut Latched<'_>,
        pieces: Pieces,
    ) -> Result<()> {
        let view = leaf.view();
        let folded = self.fold(leaf, &view, pieces)?;
        let Some(Folded { pieces, horizon, full }) = folded else { return Ok(()) };
        let mut pieces = pieces.into_iter();
        let Some(first) = pieces.next() else { return Ok(()) };
        let rest: Vec<Piece> = pieces.collect();
        // One object a bound, whichever leaves have it: there are as many as leaves.
        let bounds: Vec<Bound> = rest.iter().map(|piece| Bound::from(&piece.low[..])).collect();
        let high = bounds.first().or(view.high.as_ref()).cloned();
        if rest.is_empty() {
            publish_piece(leaf, state, &view, first, high, horizon);
            return self.vacate(structure, node, leaf, state);
        }
        let right = self.new_leaves(&view, rest, &bounds, horizon);
        let path = self.path_to(&view.low)?;
        let _change = self.changes.begin();
        // Parents first, then the narrowed leaf: see the module's documentation.
        self.insert_children(path, node, &right);
        publish_piece(leaf, state, &view, first, high, horizon);
        // It may have had nothing that no image has, but that one goes further than its keys now.
        self.list_dirty(state, node);
        self.shared.size.add_leaves(right.len());
        if full {
            self.note_finished(node);
            right[..right.len() - 1].iter().for_each(|(_, child)| self.note_finished(child));
        }
        if structure.checkpointing {
            structure.reimage.extend(LeafRef::of(node.clone()));
            structure.reimage.extend(right.into_iter().filter_map(|(_, child)| LeafRef::of(child)));
        }
        Ok(())
    }

    /// Leaves for `pieces`, which begin at `bounds`.
    fn new_leaves(
        &self,
        old: &LeafView,
        pieces: Vec<Piece>,
        bounds: &[Bound],
        horizon: u64,
    ) -> Vec<(Vec<u8>, Arc<Node>)> {
        let mut leaves = Vec::with_capacity(pieces.len());
        for (i, (piece, bound)) in pieces.into_iter().zip(bounds).enumerate() {
            let high = bounds.get(i + 1).or(old.high.as_ref()).cloned();
            let low = piece.low.clone();
            let view = view_of(piece, old, bound.clone(), high, horizon);
            let node = Arc::new(Node::Leaf(Leaf::new(self.shared.clone(), view)));
            self.list_new(&node);
            self.note_past(&node);
            leaves.push((low, node));
        }
        leaves
    }

    /// A new leaf, which no image has: the next checkpoint is to write it, and the cache may evict it.
    pub(in crate::tree) fn list_new(&self, node: &Arc<Node>) {
        if let Node::Leaf(leaf) = &**node {
            let mut state = leaf.latch();
            self.list_dirty(&state, node);
            leaf.register(&mut state, node);
            leaf.touch();
        }
    }

    /// The way to the leaf that holds `key`; the structure latch is held, so that it stays true.
    pub(crate) fn path_to(&self, key: &[u8]) -> Result<Path> {
        Ok(self.way_to(key)?.0)
    }

    /// The same, and the node at its end. Without the structure latch that need not be the leaf that holds `key`.
    pub(in crate::tree) fn way_to(&self, key: &[u8]) -> Result<(Path, Arc<Node>)> {
        let mut path = Vec::new();
        let mut node = self.root.load_full();
        loop {
            let Node::Inner(inner) = &*node else { return Ok((path, node)) };
            let view = inner.view()?;
            let Some(view) = view.clone() else { return Ok((path, node)) };
            let at = view.child_for(key);
            let child = view.child(at).clone();
            path.push((node.clone(), at));
            node = child;
        }
    }

    /// Makes `children` known right of `left`, which is the last node of `path`.
    pub(in crate::tree) fn insert_children(
        &self,
        mut path: Path,
        left: &Arc<Node>,
        children: &[(Vec<u8>, Arc<Node>)],
    ) {
        mark_dirty(&path);
        let Some((parent, at)) = path.pop() else {
            self.grow(left, children);
            return;
        };
        let Node::Inner(inner) = &*parent else { return };
        let Some(view) = inner.loaded() else { return };
        if view.len() + children.len() <= self.shared.most_children() {
            inner.publish(view.with_children_behind(at, children));
            return;
        }
        let mut entries = view.entries();
        let at_end = at + 1 == entries.len();
        entries.splice(at + 1..at + 1, children.iter().cloned());
        // An append-only tree leaves full nodes behind.
        let filled = self.shared.filled_children();
        let keep = if at_end { filled } else { entries.len() / 2 };
        let right: Vec<_> = entries[keep..]
            .chunks(filled)
            .map(|part| (part[0].0.clone(), Inner::node(&self.shared, inner.level, InnerView::new(part))))
            .collect();
        self.insert_children(path, &parent, &right);
        entries.truncate(keep);
        inner.publish(InnerView::new(&entries));
    }

    /// A new root above `left`, which was the root, and `children`.
    fn grow(&self, left: &Arc<Node>, children: &[(Vec<u8>, Arc<Node>)]) {
        let level = match &**left {
            Node::Inner(inner) => inner.level + 1,
            Node::Leaf(_) => 1,
        };
        let mut entries = vec![(Vec::new(), left.clone())];
        entries.extend(children.iter().cloned());
        self.root.store(Inner::node(&self.shared, level, InnerView::new(&entries)));
    }
}

fn publish_piece(
    leaf: &Leaf,
    state: &mut Latched<'_>,
    old: &LeafView,
    piece: Piece,
    high: Option<Bound>,
    horizon: u64,
) {
    if let Some(base) = &piece.base {
        let patch = state.patch_of(old).filter(|_| piece.delta.is_empty() && high == old.high);
        state.copies.changed();
        if let Some(patch) = patch {
            state.copies.folded(&patch, base.number());
        }
    }
    state.deletions = 0;
    state.fold_again_at = piece.delta.memory() * 2;
    state.deletions_again_at = piece.delta.versions() * 2;
    leaf.publish(state, view_of(piece, old, old.low.clone(), high, horizon));
}

/// A piece of `old` as the content of a leaf responsible for the keys from `low` to `high`.
fn view_of(piece: Piece, old: &LeafView, low: Bound, high: Option<Bound>, horizon: u64) -> LeafView {
    LeafView {
        low,
        high,
        base: piece.base.map_or_else(|| old.base.clone(), |base| Base::Loaded(Arc::new(base))),
        delta: Changes::Live(Arc::new(piece.delta)),
        history: Archive::of(piece.history),
        horizon,
        birth: None,
        dead: false,
    }
}

/// The next image has to write the pages on this path again.
pub(in crate::tree) fn mark_dirty(path: &[(Arc<Node>, usize)]) {
    path.iter().for_each(|(node, _)| mark_changed(node));
}

/// The next image has to write the page of an inner node again, if its parent's as well.
pub(in crate::tree) fn mark_changed(node: &Node) {
    if let Node::Inner(inner) = node {
        // Those above many leaves are marked as often: their readers share the cache line.
        if !inner.dirty.load(Ordering::SeqCst) {
            inner.dirty.store(true, Ordering::SeqCst);
        }
    }
}
