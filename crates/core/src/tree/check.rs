//! Whether a tree in memory is as it should be, while others read and write it: [`Tree::check`].
//!
//! Goes from leaf to leaf in key order. Of each it looks, under the structure latch and its own, at the way from the
//! root: the bounds of the children lie within those of their parent and follow each other, marks of vacancy agree.
//! Then, without any latch, at the content: blocks on disk, and, at [`Depth::Structure`], base, delta and history.
//! Memory is bounded by one leaf, and nothing is left in the cache.
//!
//! [`Tree::check_lists`] compares what only stands still when nobody else works: lists and marks, counters, and whether
//! the disk has what memory has wherever no checkpoint would write.

use super::block::{Block, Value};
use super::leaf::care::Care;
use super::leaf::lifecycle::FileCopy;
use super::leaf::node::{InnerView, Node};
use super::leaf::{Base, Image, Leaf, LeafView};
use super::storing::tree::Tree;
use super::versions::delta::Delta;
use super::versions::history::History;
use super::versions::materialise::materialise;
use super::versions::visibility::{seen, visible, Content, Reader, Seen};
use crate::finding::{Finding, Findings};
use crate::mvcc::State;
use crate::sync::Held;
use crate::types::Timestamp;
use crate::Result;
use std::collections::HashSet;
use std::sync::Arc;

/// What is looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Depth {
    /// Each block on disk: checksum, and what the block says of itself.
    Blocks,
    /// All that, and how the parts of the tree fit together.
    Structure,
}

/// What a check has seen.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TreeSummary {
    /// Leaves, damaged ones not counted.
    pub leaves: u64,
    /// Entries that the reader sees; at [`Depth::Structure`] only.
    pub entries: u64,
}

/// Where a key leads.
enum Place {
    Leaf(Found),
    /// Nothing can be said of the keys up to this.
    Damaged(Option<Vec<u8>>),
}

/// A leaf and what is to be looked at without its latch.
struct Found {
    node: Arc<Node>,
    view: Held<LeafView>,
    /// What is on disk of it, newest last.
    images: Vec<Arc<Image>>,
    /// The one of them that equals the base in memory.
    twin: Option<Arc<Image>>,
    high: Option<Vec<u8>>,
}

impl Tree {
    /// Looks at the whole tree, through the eyes of `reader` where it counts entries. `watch` is told, leaf by leaf,
    /// how many were looked at; its error ends the check. O(leaves) reads of blocks, and of large values.
    pub(crate) fn check(
        &self,
        reader: &Reader<'_>,
        depth: Depth,
        findings: &mut Findings,
        watch: &mut dyn FnMut(u64) -> Result<()>,
    ) -> Result<TreeSummary> {
        let mut summary = TreeSummary::default();
        let mut from = Vec::new();
        loop {
            let next = match self.place(&from, findings)? {
                Place::Leaf(found) => {
                    summary.leaves += 1;
                    summary.entries += self.check_leaf(&found, &from, reader, depth, findings)?;
                    found.high
                }
                Place::Damaged(high) => high,
            };
            watch(summary.leaves)?;
            match next {
                Some(next) if next > from => from = next,
                Some(next) => {
                    findings.add(self.finding("a leaf ends before it begins").of_key(&next));
                    return Ok(summary);
                }
                None => return Ok(summary),
            }
        }
    }

    fn finding(&self, detail: impl Into<String>) -> Finding {
        Finding::new(self.shared.space.path(), detail).of_tree(self.shared.id)
    }

    /// The leaf that has `from`, and whether the way there is as it should be.
    fn place(&self, from: &[u8], findings: &mut Findings) -> Result<Place> {
        let _structure = self.structure.lock();
        let mut node = self.root.load_full();
        let (mut low, mut high, mut level) = (Vec::new(), None, None);
        let mut all_occupied = true;
        while let Node::Inner(inner) = &*node {
            let expected = level.map_or(inner.level, |above: u32| above - 1);
            if inner.level != expected || inner.level == 0 {
                let detail = format!("an inner node of level {} where {expected} is due", inner.level);
                findings.add(self.finding(detail).of_key(&low));
                return Ok(Place::Damaged(high));
            }
            level = Some(inner.level);
            let view = inner.view().map(|view| view.clone());
            let Some(Some(view)) = findings.absorb(Some(self.shared.id), view)? else {
                return Ok(Place::Damaged(high));
            };
            let at = view.child_for(from);
            if at == 0 {
                self.check_page(&view, &low, high.as_deref(), inner.vacancy.is_occupied(), findings);
            }
            all_occupied &= inner.vacancy.is_occupied();
            low.clear();
            view.keys.key_into(at, &mut low);
            if at + 1 < view.len() {
                view.keys.key_into(at + 1, high.get_or_insert_default());
            }
            node = view.child(at).clone();
        }
        let Some(leaf) = node.leaf() else { return Ok(Place::Damaged(high)) };
        findings.expect(level.is_none_or(|above| above == 1), || {
            self.finding(format!("a leaf below a node of level {}", level.unwrap_or(0))).of_key(&low)
        });
        let state = leaf.latch();
        let view = leaf.view();
        let fits = !view.dead && *view.low == *low && view.high.as_deref() == high.as_deref();
        findings.expect(fits, || self.finding("a leaf's bounds are not those of its place").of_key(&low));
        let occupied = leaf.vacancy.is_occupied();
        findings.expect(occupied || view.is_vacant(), || {
            self.finding("a leaf that readers pass by has content").of_key(&low)
        });
        findings.expect(all_occupied || !occupied, || {
            self.finding("a leaf has content, and readers pass by a node above it").of_key(&low)
        });
        let images = state.copies.images().cloned().collect();
        let twin = state.copies.copy_of(&view.base).cloned();
        drop(state);
        Ok(Place::Leaf(Found { node: node.clone(), view, images, twin, high }))
    }

    /// Whether the children of an inner node, responsible for the keys from `low` to `high`, follow each other.
    fn check_page(
        &self,
        view: &InnerView,
        low: &[u8],
        high: Option<&[u8]>,
        occupied: bool,
        findings: &mut Findings,
    ) {
        let fault = |detail| self.finding(detail).of_key(low);
        let (count, children) = (view.keys.len(), view.len());
        if count != children || count == 0 {
            return findings.add(fault("an inner node with another number of keys than of children"));
        }
        let (mut first, mut last) = (Vec::new(), Vec::new());
        view.keys.key_into(0, &mut first);
        view.keys.key_into(count - 1, &mut last);
        findings.expect(first == low, || fault("an inner node begins elsewhere than its parent says"));
        findings.expect(high.is_none_or(|high| *last < *high), || fault("a child begins behind its parent"));
        let ascends = (1..count).all(|i| {
            let mut key = Vec::new();
            view.keys.key_into(i, &mut key);
            view.keys.compare(i - 1, &key).is_lt()
        });
        findings.expect(ascends, || fault("children of an inner node do not ascend"));
        let has_occupied = view.made().any(|child| child.is_none_or(|child| child.vacancy().is_occupied()));
        findings.expect(occupied || !has_occupied, || {
            fault("readers pass by an inner node that has something below it")
        });
    }

    /// The content of a leaf; how many of its entries from `from` on `reader` sees.
    fn check_leaf(
        &self,
        found: &Found,
        from: &[u8],
        reader: &Reader<'_>,
        depth: Depth,
        findings: &mut Findings,
    ) -> Result<u64> {
        let id = Some(self.shared.id);
        let Node::Leaf(leaf) = &*found.node else { return Ok(0) };
        let mut stored: Vec<(Arc<Image>, Arc<Block>)> = Vec::new();
        for image in &found.images {
            let place = Base::Stored(image.clone());
            let Some(block) = findings.absorb(id, leaf.read_base(&place))? else { continue };
            for blob in block.blobs() {
                // Of an image they are all stored; a copy in memory does not say that the disk has it.
                let read = blob.extent().map_or(Ok(()), |extent| extent.read().map(drop));
                findings.absorb(id, read)?;
            }
            stored.push((image.clone(), block));
        }
        if depth == Depth::Blocks {
            return Ok(0);
        }
        let view = &found.view;
        let block_of = |image: &Arc<Image>| stored.iter().find(|(of, _)| Arc::ptr_eq(of, image));
        let base = match &view.base {
            Base::Stored(image) => match block_of(image) {
                Some((_, block)) => Some(block.clone()),
                None if found.images.iter().any(|known| Arc::ptr_eq(known, image)) => None,
                None => findings.absorb(id, leaf.read_base(&view.base))?,
            },
            place => findings.absorb(id, leaf.read_base(place))?,
        };
        let Some(base) = base else { return Ok(0) };
        if let Some((_, block)) = found.twin.as_ref().and_then(block_of) {
            findings.expect(same_entries(&base, block), || {
                self.finding("the disk has another content of a leaf than memory").of_key(&view.low)
            });
        }
        let delta = {
            // Nobody pushes onto what is put together.
            let _state = leaf.latch();
            view.delta.read(&self.shared.context)
        };
        let delta = findings.absorb(id, delta)?;
        let history = findings.absorb(id, leaf.read_history(&view.history))?;
        let (Some(delta), Some(history)) = (delta, history) else { return Ok(0) };
        let mut fault = |detail: &str, key: &[u8]| findings.add(self.finding(detail).of_key(key));
        check_base(view, &base, &mut fault);
        check_delta(view, &delta, &mut fault);
        if let Some(history) = &history {
            check_history(view, history, &mut fault);
        }
        reader.check()?;
        let no_rows = self.shared.no_rows.clone();
        let base = if view.shows_base(reader) { base } else { no_rows };
        let content =
            Content { horizon: view.horizon, base: &base, delta: &delta, history: history.as_deref() };
        Ok(count_visible(&content, from, reader))
    }

    /// What stands still only while nobody else uses the engine, and no checkpoint is under way: whether lists, marks
    /// and counters agree with the leaves, and the disk has the newest committed content of each leaf that no
    /// checkpoint would write.
    pub(crate) fn check_lists(&self, findings: &mut Findings) -> Result<()> {
        let members = |care| self.waiting(care).iter().map(|leaf| Arc::as_ptr(leaf.node())).collect();
        let lists: [HashSet<*const Node>; Care::COUNT] = Care::ALL.map(members);
        let (mut leaves, mut stored_bytes, mut raw_bytes) = (0u64, 0, 0);
        let mut from = Vec::new();
        while let Place::Leaf(Found { node, view, high, .. }) = self.place(&from, findings)? {
            let Some(leaf) = node.leaf() else { break };
            leaves += 1;
            let state = leaf.latch();
            let newest = state.copies.newest();
            let sizes = newest.map_or((0, 0), FileCopy::sizes);
            let copy = state.copies.durable().cloned();
            drop(state);
            stored_bytes += sizes.0;
            raw_bytes += sizes.1;
            let mut expect = |holds: bool, detail: &str| {
                findings.expect(holds, || self.finding(detail).of_key(&view.low));
            };
            for care in Care::ALL {
                let is_listed = lists[care as usize].contains(&Arc::as_ptr(&node));
                if leaf.marks.has(care) != is_listed {
                    expect(false, &format!("the list of {} disagrees", care.leaves()));
                }
            }
            expect(
                leaf.marks.has(Care::Collect) || view.history.is_empty(),
                "a leaf's history is in no list",
            );
            expect(leaf.marks.has(Care::Remove) || leaf.vacancy.is_occupied(), "a vacant leaf is in no list");
            let is_stored = self.is_logged();
            if is_stored && !leaf.marks.has(Care::Write) && high.as_ref().is_none_or(|high| *high > from) {
                let agrees = self.disk_agrees(&node, leaf, &view, copy)?;
                expect(agrees, "no checkpoint would write a leaf of which the disk has another content");
            }
            match high {
                Some(next) if next > from => from = next,
                _ => break,
            }
        }
        let counted = [
            ("leaves", self.leaves(), leaves),
            ("bytes on disk", self.disk_bytes(), stored_bytes.max(0) as u64),
            ("bytes before compression", self.raw_bytes(), raw_bytes.max(0) as u64),
        ];
        for (what, told, found) in counted {
            findings
                .expect(told == found, || self.finding(format!("{told} {what} were counted, not {found}")));
        }
        findings.expect(!self.waits(Care::Write) || self.is_dirty(), || {
            self.finding("a tree with dirty leaves is not dirty")
        });
        Ok(())
    }

    /// Whether `copy` has what is committed of the leaf.
    fn disk_agrees(
        &self,
        node: &Arc<Node>,
        leaf: &Leaf,
        view: &Held<LeafView>,
        copy: Option<FileCopy>,
    ) -> Result<bool> {
        let reader = Reader::at(Timestamp::MAX);
        let base = leaf.base_for(node, view, &reader)?;
        let delta = leaf.delta(node, view)?;
        let now = materialise(
            &Content { horizon: view.horizon, base: &base, delta: &delta, history: None },
            &reader,
        );
        let Some(copy) = copy else { return Ok(now.is_empty()) };
        let block = leaf.read_base(&Base::Stored(copy.image))?;
        Ok(match copy.patch {
            Some(patch) => same_entries(&now, &patch.read()?.applied_to(&block)),
            None => same_entries(&now, &block),
        })
    }
}

/// Whether two blocks have the same keys with the same values.
fn same_entries(a: &Block, b: &Block) -> bool {
    let (mut key, mut other) = (Vec::new(), Vec::new());
    a.len() == b.len()
        && (0..a.len()).all(|i| {
            a.key_into(i, &mut key);
            b.key_into(i, &mut other);
            key == other
                && match (a.value(i), b.value(i)) {
                    (Value::Inline(a), Value::Inline(b)) => a == b,
                    (Value::Blob(a), Value::Blob(b)) => Arc::ptr_eq(a, b) || a.address() == b.address(),
                    _ => false,
                }
        })
}

fn check_base(view: &LeafView, base: &Block, fault: &mut dyn FnMut(&str, &[u8])) {
    let Some(last) = base.len().checked_sub(1) else { return };
    let mut key = Vec::new();
    for at in [0, last] {
        base.key_into(at, &mut key);
        if key < view.low.to_vec() || view.high.as_ref().is_some_and(|high| *key >= **high) {
            fault("a block has a key outside of its leaf's bounds", &key);
        }
    }
    for at in 1..base.len() {
        base.key_into(at, &mut key);
        if !base.compare(at - 1, &key).is_lt() {
            return fault("keys of a block do not ascend", &key);
        }
    }
}

/// Keys ascend within the leaf's bounds; of each chain the undecided versions are the newest and of one transaction,
/// and the committed ones follow each other.
fn check_delta(view: &LeafView, delta: &Delta, fault: &mut dyn FnMut(&str, &[u8])) {
    let mut last: Option<&[u8]> = None;
    let mut keys = 0;
    for entry in delta.iter() {
        let key = entry.key();
        keys += 1;
        if last.is_some_and(|last| last >= key) {
            fault("keys of a delta do not ascend", key);
        }
        last = Some(key);
        if *key < *view.low || view.high.as_ref().is_some_and(|high| *key >= **high) {
            fault("a delta has a key outside of its leaf's bounds", key);
        }
        let mut committed = None;
        let mut undecided = None;
        for version in std::iter::successors(entry.newest(), |version| version.older()) {
            if version.status.is_void(version.sequence) {
                continue;
            }
            match version.status.state() {
                State::Aborted => {}
                State::Active => {
                    let status = Arc::as_ptr(&version.status);
                    if committed.is_some() || undecided.is_some_and(|other| other != status) {
                        fault("an undecided version lies below one of another transaction", key);
                    }
                    undecided = Some(status);
                }
                State::Committed(timestamp) => {
                    if committed.is_some_and(|newer| newer < timestamp) {
                        fault("a version lies below an older one", key);
                    }
                    committed = Some(timestamp);
                }
            }
        }
        if entry.newest().is_none() {
            fault("a key of a delta has no version", key);
        }
    }
    // A writer may be pushing: then there are more by now.
    if delta.len() < keys {
        fault("a delta has more keys than it counts", last.unwrap_or_default());
    }
}

/// Entries ascend by key and time, do not overlap, lie within the leaf's bounds, and ended before its horizon.
fn check_history(view: &LeafView, history: &History, fault: &mut dyn FnMut(&str, &[u8])) {
    let mut last: Option<(&[u8], Timestamp)> = None;
    for at in 0..history.len() {
        let entry = history.entry(at);
        if *entry.key < *view.low || view.high.as_ref().is_some_and(|high| *entry.key >= **high) {
            fault("history has a key outside of its leaf's bounds", entry.key);
        }
        if entry.begin >= entry.end || entry.end > view.horizon {
            fault("history that had not ended when its leaf was consolidated", entry.key);
        }
        let follows =
            last.is_none_or(|(key, end)| key < entry.key || (key == entry.key && end <= entry.begin));
        if !follows {
            fault("history is not sorted, or says two things of one time", entry.key);
        }
        last = Some((entry.key, entry.end));
    }
}

/// How many keys from `from` on `reader` sees.
fn count_visible(content: &Content<'_>, from: &[u8], reader: &Reader<'_>) -> u64 {
    let Content { horizon, base, delta, history } = *content;
    let past = history.iter().flat_map(|h| h.entries()).filter(|_| reader.snapshot < horizon);
    let mut keys: Vec<&[u8]> = past.map(|entry| entry.key).collect();
    keys.extend(delta.iter().map(|entry| entry.key()));
    keys.retain(|key| *key >= from);
    keys.sort_unstable();
    keys.dedup();
    let mut count = (base.len() - base.lower_bound(from)) as u64;
    for key in keys {
        let in_base = base.search(key).ok();
        let version = delta.find(key).and_then(|entry| visible(entry.newest(), reader));
        let is_there = match seen(version) {
            Seen::Value(_) => true,
            Seen::Gone => false,
            Seen::Nothing => content.below_delta(in_base, key, reader).is_some(),
        };
        count = count + u64::from(is_there) - u64::from(in_base.is_some());
    }
    count
}
