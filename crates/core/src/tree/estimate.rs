//! How many entries a range has, from inner nodes only; and samples of leaves for statistics.

use super::leaf::{Base, Changes};
use super::node::Node;
use super::Tree;
use crate::Result;
use std::ops::Bound;
use std::sync::Arc;

impl Tree {
    /// About how many entries lie in the range: O(height), reads no leaf from disk. Exact within one leaf that is in
    /// memory and has no changes pending.
    pub fn estimate(&self, from: Bound<&[u8]>, to: Bound<&[u8]>) -> Result<u64> {
        let low = match from {
            Bound::Included(key) | Bound::Excluded(key) => key,
            Bound::Unbounded => &[],
        };
        let (start, first) = self.position(Some(low))?;
        let (end, last) = match to {
            Bound::Included(key) | Bound::Excluded(key) => self.position(Some(key))?,
            Bound::Unbounded => self.position(None)?,
        };
        if Arc::ptr_eq(&first, &last) {
            if let Some(count) = within_leaf(&first, from, to) {
                return Ok(count);
            }
        }
        let entries = self.entries() as f64;
        Ok(((end - start).max(0.0) * entries).round() as u64)
    }

    /// Where `key` (None: the end) lies between 0 and 1, as the inner nodes tell; and its leaf.
    fn position(&self, key: Option<&[u8]>) -> Result<(f64, Arc<Node>)> {
        let (mut position, mut share) = (0.0, 1.0);
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
                        view.children[at].clone()
                    })
                }
            };
            match next {
                Some(child) => node = child,
                None => break,
            }
        }
        position += share * fraction_within(&node, key);
        Ok((position, node))
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

/// Share of the leaf's keys that lie before `key`; what the delta adds counts, since a young leaf has nothing else.
fn fraction_within(node: &Node, key: Option<&[u8]>) -> f64 {
    let (Some(key), Some(leaf)) = (key, node.leaf()) else { return 1.0 };
    let view = leaf.view();
    let Base::Loaded(block) = &view.base else { return 0.5 };
    let (mut before, mut all) = (block.lower_bound(key), block.len());
    if let Changes::Live(delta) = &view.delta {
        for entry in delta.iter().filter(|entry| block.search(entry.key()).is_err()) {
            before += usize::from(entry.key() < key);
            all += 1;
        }
    }
    if all == 0 {
        return 0.5;
    }
    before as f64 / all as f64
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
