//! How many entries a range has, from inner nodes and the leaves that are in memory; and samples of leaves for statistics.

use super::leaf::{Base, Changes};
use super::node::{InnerView, Node};
use super::Tree;
use crate::Result;
use std::ops::Bound;
use std::sync::Arc;

/// Nodes between the two ends of a range that are looked at: with them the estimate is about exact where it decides
/// between an index and a scan.
const VISITED: usize = 16;
/// Changes of such a leaf that are looked up in its base.
const TESTED_CHANGES: usize = 8;

/// Where an end of a range lies.
struct Place {
    /// Between 0 and 1, as the inner nodes tell.
    position: f64,
    leaf: Arc<Node>,
    /// The inner node above the leaf, and which child the leaf is; then the same of that inner node.
    parent: Option<(Arc<InnerView>, usize)>,
    grandparent: Option<(Arc<InnerView>, usize)>,
}

impl Tree {
    /// About how many entries lie in the range: O(height), reads no leaf from disk. Exact within one leaf that is in
    /// memory and has no changes pending.
    pub fn estimate(&self, from: Bound<&[u8]>, to: Bound<&[u8]>) -> Result<u64> {
        let low_key = match from {
            Bound::Included(key) | Bound::Excluded(key) => key,
            Bound::Unbounded => &[],
        };
        let high_key = match to {
            Bound::Included(key) | Bound::Excluded(key) => Some(key),
            Bound::Unbounded => None,
        };
        let low = self.place(Some(low_key))?;
        let high = self.place(high_key)?;
        if Arc::ptr_eq(&low.leaf, &high.leaf) {
            if let Some(count) = within_leaf(&low.leaf, from, to) {
                return Ok(count);
            }
        }
        let entries = self.entries() as f64;
        let per_leaf = entries / self.leaves().max(1) as f64;
        let count = between(&low, low_key, &high, high_key, per_leaf)
            .unwrap_or_else(|| (high.position - low.position).max(0.0) * entries);
        Ok(count.min(entries).round() as u64)
    }

    /// Where `key` (None: the end) lies.
    fn place(&self, key: Option<&[u8]>) -> Result<Place> {
        let (mut position, mut share) = (0.0, 1.0);
        let (mut parent, mut grandparent) = (None, None);
        let mut node = self.root.load_full();
        loop {
            let next = match &*node {
                Node::Leaf(_) => None,
                Node::Inner(inner) => {
                    let view = inner.view(&self.shared)?;
                    view.as_ref().map(|view| {
                        let at = key.map_or(view.children.len() - 1, |key| view.child_for(key));
                        share /= view.children.len() as f64;
                        position += share * at as f64;
                        let child = view.children[at].clone();
                        grandparent = parent.replace((view.clone(), at));
                        child
                    })
                }
            };
            match next {
                Some(child) => node = child,
                None => break,
            }
        }
        let fraction = match position_within(&node, key) {
            Some((before, all)) if all > 0 => before as f64 / all as f64,
            _ if key.is_none() => 1.0,
            _ => 0.5,
        };
        position += share * fraction;
        Ok(Place { position, leaf: node, parent, grandparent })
    }

    /// Visits the keys of about `leaves` leaves, spread evenly. Reads them from disk if need be.
    pub fn sample(&self, leaves: usize, visit: &mut dyn FnMut(&[&[u8]])) -> Result<()> {
        let mut previous: Option<Arc<Node>> = None;
        for i in 0..leaves.max(1) {
            let node = self.leaf_at((i as f64 + 0.5) / leaves.max(1) as f64)?;
            if previous.as_ref().is_some_and(|p| Arc::ptr_eq(p, &node)) {
                continue;
            }
            let Node::Leaf(leaf) = &*node else { continue };
            let view = leaf.view().clone();
            let block = self.materialise(&node, &view, &super::Reader::at(u64::MAX))?;
            let keys: Vec<Vec<u8>> = (0..block.len())
                .map(|i| {
                    let mut key = Vec::new();
                    block.key_into(i, &mut key);
                    key
                })
                .collect();
            let keys: Vec<&[u8]> = keys.iter().map(|key| &key[..]).collect();
            visit(&keys);
            previous = Some(node);
        }
        Ok(())
    }

    fn leaf_at(&self, mut position: f64) -> Result<Arc<Node>> {
        let mut node = self.root.load_full();
        loop {
            let child = match &*node {
                Node::Leaf(_) => return Ok(node),
                Node::Inner(inner) => {
                    let view = inner.view(&self.shared)?;
                    let Some(view) = view.as_ref() else { return Ok(node.clone()) };
                    let scaled = position * view.children.len() as f64;
                    let at = (scaled as usize).min(view.children.len() - 1);
                    position = scaled - at as f64;
                    view.children[at].clone()
                }
            };
            node = child;
        }
    }
}

/// Entries from one leaf to another under one inner node, or under two that have one above them; `per_leaf` stands for
/// leaves that are not in memory. None for leaves further apart: the positions tell enough of them.
fn between(low: &Place, low_key: &[u8], high: &Place, high_key: Option<&[u8]>, per_leaf: f64) -> Option<f64> {
    let ((low_view, first), (high_view, last)) = (low.parent.as_ref()?, high.parent.as_ref()?);
    let middle = if Arc::ptr_eq(low_view, high_view) {
        entries_of(low_view.children.get(first + 1..*last)?, per_leaf)
    } else {
        let ((low_top, from), (high_top, to)) = (low.grandparent.as_ref()?, high.grandparent.as_ref()?);
        if !Arc::ptr_eq(low_top, high_top) {
            return None;
        }
        let leaves = leaves_under(low_top.children.get(from + 1..*to)?, low_view.children.len());
        entries_of(&low_view.children[first + 1..], per_leaf)
            + leaves * per_leaf
            + entries_of(&high_view.children[..*last], per_leaf)
    };
    let (before, all) = position_within(&low.leaf, Some(low_key)).unwrap_or((0, 0));
    let at_start = if all > 0 { (all - before) as f64 } else { per_leaf / 2.0 };
    let (before, all) = position_within(&high.leaf, high_key).unwrap_or((0, 0));
    let at_end = if all > 0 { before as f64 } else { per_leaf / 2.0 };
    Some(at_start + middle + at_end)
}

/// Entries of neighbouring leaves: of a few their own, of many what the tree's average says, since a sample of them
/// would be further off.
fn entries_of(leaves: &[Arc<Node>], per_leaf: f64) -> f64 {
    if leaves.len() > VISITED {
        return leaves.len() as f64 * per_leaf;
    }
    leaves.iter().map(|node| about_all(node).unwrap_or(per_leaf)).sum()
}

/// Leaves under neighbouring inner nodes; those not in memory are taken to be as large as `like`.
fn leaves_under(nodes: &[Arc<Node>], like: usize) -> f64 {
    let visited = nodes.len().min(VISITED);
    let seen: usize = nodes[..visited].iter().map(|node| children_of(node).unwrap_or(like)).sum();
    seen as f64 / visited.max(1) as f64 * nodes.len() as f64
}

fn children_of(node: &Node) -> Option<usize> {
    match node {
        Node::Inner(inner) => inner.loaded().map(|view| view.children.len()),
        Node::Leaf(_) => None,
    }
}

/// How many of the leaf's entries lie before `key` (None: the end), and how many it has; None when its base is not in
/// memory. What the delta adds counts, since a young leaf has nothing else.
fn position_within(node: &Node, key: Option<&[u8]>) -> Option<(usize, usize)> {
    let view = node.leaf()?.view();
    let Base::Loaded(block) = &view.base else { return None };
    let mut all = block.len();
    let mut before = key.map_or(all, |key| block.lower_bound(key));
    if let Changes::Live(delta) = &view.delta {
        for entry in delta.iter().filter(|entry| block.search(entry.key()).is_err()) {
            before += usize::from(match key {
                Some(key) => entry.key() < key,
                None => true,
            });
            all += 1;
        }
    }
    Some((before, all))
}

/// About how many entries the leaf has: which share of its delta adds keys is told from the delta's first.
fn about_all(node: &Node) -> Option<f64> {
    let view = node.leaf()?.view();
    let Base::Loaded(block) = &view.base else { return None };
    let Changes::Live(delta) = &view.delta else { return Some(block.len() as f64) };
    let (mut tested, mut new) = (0, 0);
    for entry in delta.iter().take(TESTED_CHANGES) {
        tested += 1;
        new += i32::from(block.search(entry.key()).is_err());
    }
    let added = delta.len() as f64 * f64::from(new) / f64::from(tested.max(1));
    Some(block.len() as f64 + added)
}

fn within_leaf(node: &Node, from: Bound<&[u8]>, to: Bound<&[u8]>) -> Option<u64> {
    let view = node.leaf()?.view();
    let Base::Loaded(block) = &view.base else { return None };
    let start = match from {
        Bound::Included(key) => block.lower_bound(key),
        Bound::Excluded(key) => block.upper_bound(key),
        Bound::Unbounded => 0,
    };
    let end = match to {
        Bound::Included(key) => block.upper_bound(key),
        Bound::Excluded(key) => block.lower_bound(key),
        Bound::Unbounded => block.len(),
    };
    let within = |key: &[u8]| {
        let after = match from {
            Bound::Included(low) => key >= low,
            Bound::Excluded(low) => key > low,
            Bound::Unbounded => true,
        };
        let before = match to {
            Bound::Included(high) => key <= high,
            Bound::Excluded(high) => key < high,
            Bound::Unbounded => true,
        };
        after && before
    };
    let changed = match &view.delta {
        Changes::Live(delta) => {
            delta.iter().filter(|e| within(e.key()) && block.search(e.key()).is_err()).count()
        }
        Changes::Spilled(_) => 0,
    };
    Some((end.saturating_sub(start) + changed) as u64)
}
