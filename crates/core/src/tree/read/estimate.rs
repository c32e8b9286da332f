//! How many entries a range has, from inner nodes and the leaves in which it begins and ends.

use crate::tree::block::Block;
use crate::tree::leaf::changes::Changes;
use crate::tree::leaf::node::{InnerView, Node};
use crate::tree::leaf::Base;
use crate::tree::storing::tree::Tree;
use crate::tree::versions::delta::{Delta, EntryRef};
use crate::Result;
use std::ops::{Bound, Range};
use std::sync::Arc;

/// Nodes between the two ends of a range that are looked at: with them the estimate is about exact where it decides
/// between an index and a scan.
const VISITED: usize = 16;
/// With so many leaves between the two ends these are not read for it: half a leaf for each is close enough.
const FAR: f64 = 8.0;
/// So many changes of a leaf are looked up in its base; the others are taken to be like them.
const TESTED_CHANGES: usize = 16;
/// The same of the ends of a range with whole leaves between them: a few more or less than their hundreds decide
/// nothing.
const TESTED_OF_LONG: usize = 4;
/// Of a leaf that lies in the range whole, changes are left out of account that are fewer than this part of its base.
const PART_THAT_COUNTS: usize = 16;

/// An end of a range as a key, which leads to its leaf.
#[derive(Clone, Copy)]
enum End<'a> {
    Key(&'a [u8]),
    /// Behind the last.
    Last,
}

/// Where an end of a range lies.
#[derive(Clone)]
struct Place {
    /// Where the leaf begins, and which share of the tree it has: between 0 and 1, as the inner nodes tell.
    position: f64,
    share: f64,
    node: Arc<Node>,
    /// The inner node above, and which child `node` is; then the same of that inner node.
    parent: Option<(Arc<InnerView>, usize)>,
    grandparent: Option<(Arc<InnerView>, usize)>,
}

impl Tree {
    /// About how many entries lie in the range: O(height). Exact within one leaf that has few changes pending in the
    /// range, none of which deletes. Reads the leaves of the two ends of a short range if need be, as who asks would
    /// otherwise take ranges for short that nobody has in memory, and choose the index by what is cold.
    pub fn estimate(&self, from: Bound<&[u8]>, to: Bound<&[u8]>) -> Result<u64> {
        let low_key = match from {
            Bound::Included(key) | Bound::Excluded(key) => key,
            Bound::Unbounded => &[],
        };
        let high_key = match to {
            Bound::Included(key) | Bound::Excluded(key) => End::Key(key),
            Bound::Unbounded => End::Last,
        };
        let root =
            Place { position: 0.0, share: 1.0, node: self.root.load_full(), parent: None, grandparent: None };
        let (low, high) = self.places(root, low_key, high_key)?;
        let entries = self.entries() as f64;
        let per_leaf = entries / self.leaves().max(1) as f64;
        let Some(high) = high else {
            // The range is short, and its leaf cannot be read: who reads the range is told so.
            let count = entries_read(&low.node, from, to, TESTED_CHANGES).unwrap_or(per_leaf / 3.0);
            return Ok(count.round() as u64);
        };
        let apart = (high.position - low.position - low.share).max(0.0);
        let leaves_apart = apart * self.leaves() as f64;
        // Neighbours lie no leaf apart, but for rounding.
        let tested = if leaves_apart < 0.25 { TESTED_CHANGES } else { TESTED_OF_LONG };
        let within = |node, from, to| match leaves_apart < FAR {
            true => entries_read(node, from, to, tested),
            false => entries_between(node, from, to, tested),
        };
        let at_start = within(&low.node, from, Bound::Unbounded).unwrap_or(per_leaf / 2.0);
        let at_end = within(&high.node, Bound::Unbounded, to).unwrap_or(per_leaf / 2.0);
        let middle = between(&low, &high, per_leaf).unwrap_or(apart * entries);
        Ok((at_start + middle + at_end).min(entries).round() as u64)
    }

    /// The leaves in which a range begins and ends; one if they are the same, which most ranges find out in one
    /// descent.
    fn places(&self, from: Place, low: &[u8], high: End<'_>) -> Result<(Place, Option<Place>)> {
        let mut both = from;
        loop {
            let Some(view) = self.inner(&both.node)? else { return Ok((both, None)) };
            let first = view.child_for(low);
            let last = high.child(&view, first);
            if first != last {
                let (mut low_place, mut high_place) = (both.clone(), both);
                low_place.enter(&view, first);
                high_place.enter(&view, last);
                self.descend(&mut low_place, End::Key(low))?;
                self.descend(&mut high_place, high)?;
                return Ok((low_place, Some(high_place)));
            }
            both.enter(&view, first);
        }
    }

    fn descend(&self, place: &mut Place, end: End<'_>) -> Result<()> {
        while let Some(view) = self.inner(&place.node)? {
            let at = end.child(&view, 0);
            place.enter(&view, at);
        }
        Ok(())
    }

    /// What an inner node has; None of a leaf.
    fn inner(&self, node: &Node) -> Result<Option<Arc<InnerView>>> {
        match node {
            Node::Leaf(_) => Ok(None),
            Node::Inner(inner) => Ok(inner.view()?.clone()),
        }
    }
}

impl End<'_> {
    /// The child that it lies in, which is not before `least`.
    fn child(&self, view: &InnerView, least: usize) -> usize {
        match self {
            End::Last => view.len() - 1,
            // Most ranges are short: one comparison with the next child's first key instead of a search.
            End::Key(_) if least + 1 == view.len() => least,
            End::Key(key) if view.keys.compare(least + 1, key).is_gt() => least,
            End::Key(key) => view.child_for(key).max(least),
        }
    }
}

impl Place {
    /// Goes down to child `at`.
    fn enter(&mut self, view: &Arc<InnerView>, at: usize) {
        self.share /= view.len() as f64;
        self.position += self.share * at as f64;
        self.node = view.child(at).clone();
        self.grandparent = self.parent.replace((view.clone(), at));
    }
}

/// Entries of the leaves between two under one inner node, or under two that have one above them; `per_leaf` stands for
/// leaves that are not in memory. None for leaves further apart: the positions tell enough of them.
fn between(low: &Place, high: &Place, per_leaf: f64) -> Option<f64> {
    let ((low_view, first), (high_view, last)) = (low.parent.as_ref()?, high.parent.as_ref()?);
    if Arc::ptr_eq(low_view, high_view) {
        return entries_of(low_view, first + 1..*last, per_leaf);
    }
    let ((low_top, from), (high_top, to)) = (low.grandparent.as_ref()?, high.grandparent.as_ref()?);
    if !Arc::ptr_eq(low_top, high_top) {
        return None;
    }
    let leaves = leaves_under(low_top, from + 1..*to, low_view.len())?;
    let before = entries_of(low_view, first + 1..low_view.len(), per_leaf)?;
    Some(before + leaves * per_leaf + entries_of(high_view, 0..*last, per_leaf)?)
}

/// Entries of neighbouring leaves, unless the range is none: of a few their own, of many what the tree's average says,
/// since a sample of them would be further off.
fn entries_of(page: &InnerView, range: Range<usize>, per_leaf: f64) -> Option<f64> {
    let count = range.end.checked_sub(range.start)?;
    if count > VISITED {
        return Some(count as f64 * per_leaf);
    }
    let entries = |leaf: Option<&Arc<Node>>| leaf.and_then(about_all).unwrap_or(per_leaf);
    Some(page.made().skip(range.start).take(count).map(entries).sum())
}

/// Leaves under neighbouring inner nodes; those not in memory are taken to be as large as `like`.
fn leaves_under(page: &InnerView, range: Range<usize>, like: usize) -> Option<f64> {
    let count = range.end.checked_sub(range.start)?;
    let visited = count.min(VISITED);
    let children = |node: Option<&Arc<Node>>| node.and_then(|node| children_of(node)).unwrap_or(like);
    let seen: usize = page.made().skip(range.start).take(visited).map(children).sum();
    Some(seen as f64 / visited.max(1) as f64 * count as f64)
}

fn children_of(node: &Node) -> Option<usize> {
    match node {
        Node::Inner(inner) => inner.loaded().map(|view| view.len()),
        Node::Leaf(_) => None,
    }
}

/// About how many entries the leaf has; None when its base or its changes are not in memory.
fn about_all(node: &Arc<Node>) -> Option<f64> {
    in_memory(node, |block, delta| match delta.len() < block.len() / PART_THAT_COUNTS {
        true => block.len() as f64,
        false => entries_of_leaf(block, delta, Bound::Unbounded, Bound::Unbounded, TESTED_OF_LONG),
    })
}

/// About how many of the leaf's entries lie in the range, of whose changes `tested` are looked up; None when its base
/// or its changes are not in memory.
fn entries_between(node: &Arc<Node>, from: Bound<&[u8]>, to: Bound<&[u8]>, tested: usize) -> Option<f64> {
    in_memory(node, |block, delta| entries_of_leaf(block, delta, from, to, tested))
}

fn in_memory(node: &Arc<Node>, count: impl FnOnce(&Block, &Delta) -> f64) -> Option<f64> {
    let view = node.leaf()?.view();
    match (&view.base, &view.delta) {
        (Base::Loaded(block), Changes::Live(delta)) => Some(count(block, delta)),
        // It is keys that are counted.
        (Base::Packed(packed), Changes::Live(delta)) => Some(count(packed.keys(), delta)),
        _ => None,
    }
}

/// [`entries_between`] of a leaf that is read if need be; None when it cannot be read.
fn entries_read(node: &Arc<Node>, from: Bound<&[u8]>, to: Bound<&[u8]>, tested: usize) -> Option<f64> {
    entries_between(node, from, to, tested).or_else(|| {
        let leaf = node.leaf()?;
        let view = leaf.view();
        let block = leaf.base(node, &view).ok()?;
        let delta = leaf.delta(node, &view).ok()?;
        Some(entries_of_leaf(&block, &delta, from, to, tested))
    })
}

/// Positions in the base tell; what the delta adds counts, since a young leaf has nothing else, but only its first
/// changes in the range are looked at one by one.
fn entries_of_leaf(block: &Block, delta: &Delta, from: Bound<&[u8]>, to: Bound<&[u8]>, tested: usize) -> f64 {
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
    let in_base = end.saturating_sub(start);
    let added = match delta.is_empty() {
        true => 0.0,
        false => added(delta, block, start..start + in_base, (from, to), tested),
    };
    in_base as f64 + added
}

/// About how many keys in the range the delta adds to `block`, of whose entries `within` are in it. The first `tested`
/// of its changes are looked up there, each behind the one before.
fn added(
    delta: &Delta,
    block: &Block,
    within: Range<usize>,
    (from, to): (Bound<&[u8]>, Bound<&[u8]>),
    tested: usize,
) -> f64 {
    let first = match from {
        Bound::Included(key) => delta.first_at_or_after(key),
        Bound::Excluded(key) => delta.first_after(key),
        Bound::Unbounded => delta.first(),
    };
    let is_in_range = |entry: &EntryRef<'_>| match to {
        Bound::Included(high) => entry.key() <= high,
        Bound::Excluded(high) => entry.key() < high,
        Bound::Unbounded => true,
    };
    let mut changes = std::iter::successors(first, |entry| entry.next()).take_while(is_in_range);
    let mut behind = within.start;
    let is_new = |entry: EntryRef<'_>| {
        let found = block.search_within(behind..within.end, entry.key());
        behind = found.map_or_else(|at| at, |at| at + 1);
        u32::from(found.is_err())
    };
    let new: u32 = changes.by_ref().take(tested).map(is_new).sum();
    let rest = match changes.next() {
        None => 0.0,
        // A young leaf: its keys are those of the delta, so they are counted.
        Some(_) if block.len() < delta.len() => 1.0 + changes.count() as f64,
        // A delta has no positions: its changes are taken to lie as the entries of the base.
        Some(_) => {
            let share = within.len() as f64 / block.len() as f64;
            (delta.len() as f64 * share - tested as f64).max(1.0)
        }
    };
    f64::from(new) + rest * f64::from(new) / tested as f64
}
