//! How a leaf leaves the tree: a neighbour takes over its keys, with what it has left, and the inner nodes that had
//! nothing else go with it.
//!
//! Who removes empty leaves is [`super::vacancy`], who merges small ones [`super::merge`]. Either holds the structure
//! latch and the latches of both leaves from the look at them to the end, so nobody pushes meanwhile; and the heir can
//! be found by a descent, with all of it, before the other says that it is gone. So whoever comes to the one that goes
//! reads what it has, or starts again.

use super::structure::{mark_changed, mark_dirty, Path, Structure};
use super::trunk::Trunk;
use super::vacancy::Towards;
use crate::tree::leaf::node::{InnerView, Node};
use crate::tree::leaf::{Latched, Leaf, LeafView};
use crate::Result;
use std::sync::Arc;

/// Where a leaf is that can leave the tree, and who takes over.
pub(super) struct Departure {
    /// From the root to `parent`.
    path: Path,
    /// The lowest node above the leaf that has something else below it, and which of its children goes.
    parent: Arc<Node>,
    at: usize,
    /// Inner nodes between `parent` and the leaf, which go as well.
    chain: Path,
    /// Inner nodes between `parent` and the heir.
    spine: Vec<Arc<Node>>,
    /// The leaf whose keys come before those of the one that goes; behind, if it is the first of its parent.
    pub heir: Arc<Node>,
}

impl Departure {
    /// Whether the heir's keys come before those that it takes over.
    pub fn heir_is_before(&self) -> bool {
        self.at > 0
    }
}

impl Trunk {
    /// How the leaf can leave. `None`: it has to stay, because a checkpoint writes this tree, or it is the only one.
    pub(super) fn departure(
        &self,
        structure: &Structure,
        node: &Arc<Node>,
        leaf: &Leaf,
        state: &Latched<'_>,
    ) -> Result<Option<Departure>> {
        let mut path = self.path_to(&leaf.view().low)?;
        // What the next durable checkpoint names must be settled before anything can go.
        let settled = |(node, _): &(Arc<Node>, usize)| match &**node {
            Node::Inner(inner) => inner.image.lock().pending.is_none(),
            Node::Leaf(_) => false,
        };
        let branches = |(node, _): &(Arc<Node>, usize)| children(node).is_some_and(|view| view.len() > 1);
        let Some(fork) = path.iter().rposition(branches) else { return Ok(None) };
        let chain = path.split_off(fork + 1);
        let Some((parent, at)) = path.pop() else { return Ok(None) };
        let Some(parent_view) = children(&parent) else { return Ok(None) };
        let is_found = match chain.last() {
            Some((last, at)) => children(last).is_some_and(|view| Arc::ptr_eq(view.child(*at), node)),
            None => Arc::ptr_eq(parent_view.child(at), node),
        };
        if !is_found
            || structure.checkpointing
            || state.copies.pending().is_some()
            || !chain.iter().all(settled)
        {
            return Ok(None);
        }
        let sibling = parent_view.child(if at > 0 { at - 1 } else { 1 }).clone();
        let (spine, heir) = self.edge(sibling, if at > 0 { Towards::Greater } else { Towards::Lesser })?;
        Ok(heir.leaf().is_some().then_some(Departure { path, parent, at, chain, spine, heir }))
    }

    /// Takes the leaf out of the tree; its heir gets its keys and is `inherited` from now on. All latches have been
    /// held since [`Trunk::departure`].
    pub(super) fn depart(
        &self,
        structure: &mut Structure,
        departure: &Departure,
        (leaf, state): (&Leaf, &mut Latched<'_>),
        (heir, heir_state): (&Leaf, &mut Latched<'_>),
        inherited: LeafView,
    ) {
        let Departure { path, parent, at, chain, spine, .. } = departure;
        let (Node::Inner(inner), Some(parent_view)) = (&**parent, children(parent)) else { return };
        let view = leaf.view();
        let _change = self.changes.begin();
        let mut entries = parent_view.entries();
        let heir_view = match at {
            0 => {
                entries[1].0 = entries[0].0.clone();
                LeafView { low: view.low.clone(), ..inherited }
            }
            _ => LeafView { high: view.high.clone(), ..inherited },
        };
        heir.publish(heir_state, heir_view);
        match at {
            0 => begin_at(spine, &view.low),
            // Their pages say where they end, and that is now elsewhere.
            _ => spine.iter().for_each(|node| mark_changed(node)),
        }
        entries.remove(*at);
        inner.publish(InnerView::new(&entries));
        mark_dirty(path);
        leaf.leave(state);
        self.shared.size.count_image(state.copies.durable(), None);
        state.copies.forget_ahead();
        structure.loose.retire(state.copies.retire());
        for (node, _) in chain {
            if let Node::Inner(inner) = &**node {
                structure.loose.retire_page(inner.image.lock().durable.take());
            }
        }
        self.shared.size.remove_leaf();
    }

    /// The outermost leaf below `node`, and the inner nodes on the way.
    fn edge(&self, mut node: Arc<Node>, towards: Towards) -> Result<(Vec<Arc<Node>>, Arc<Node>)> {
        let mut spine = Vec::new();
        loop {
            let Node::Inner(inner) = &*node else { return Ok((spine, node)) };
            let view = inner.view()?;
            let Some(view) = view.as_ref() else { return Ok((spine, node)) };
            let outermost = match towards {
                Towards::Greater => view.len() - 1,
                Towards::Lesser => 0,
            };
            let child = view.child(outermost).clone();
            spine.push(std::mem::replace(&mut node, child));
        }
    }
}

pub(super) fn children(node: &Node) -> Option<Arc<InnerView>> {
    match node {
        Node::Inner(inner) => inner.loaded(),
        Node::Leaf(_) => None,
    }
}

/// The first child of each of `spine` now begins at `low`.
fn begin_at(spine: &[Arc<Node>], low: &[u8]) {
    for inner in spine.iter().filter_map(|node| match &**node {
        Node::Inner(inner) => Some(inner),
        Node::Leaf(_) => None,
    }) {
        let Some(view) = inner.loaded() else { continue };
        let mut entries = view.entries();
        entries[0].0 = low.to_vec();
        inner.publish(InnerView::new(&entries));
    }
}
