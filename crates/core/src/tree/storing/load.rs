//! Filling an empty tree with sorted entries: finished blocks go to the file at once, in no delta and in no log.
//!
//! The leaves' extents are private until a checkpoint writes the pages above them (see `store/lifecycle.rs`): a tree
//! that is dropped before, or lost in a crash, leaves nothing behind. What was loaded is thus durable with the next
//! checkpoint of the tree and not before; the caller makes it, and keeps the tree from being used until then where that
//! matters.

use super::tree::Tree;
use crate::store::Lifetime;
use crate::sync::atomic::Ordering;
use crate::tree::block::blob::Blob;
use crate::tree::block::bound::Bound;
use crate::tree::block::builder::BlockBuilder;
use crate::tree::block::{Block, Value};
use crate::tree::change::consolidate::shortest_separator;
use crate::tree::change::structure::Structure;
use crate::tree::change::write::MAX_KEY_BYTES;
use crate::tree::leaf::changes::Changes;
use crate::tree::leaf::lifecycle::FileCopy;
use crate::tree::leaf::node::{Inner, InnerView, Node};
use crate::tree::leaf::{Archive, Base, Image, Leaf, LeafView};
use crate::tree::versions::delta::Delta;
use crate::tree::versions::history::History;
use crate::types::Timestamp;
use crate::{Error, Result};
use std::sync::Arc;
use std::time::Duration;

/// How often a load looks whether a checkpoint has let go of the empty tree.
const WAIT: Duration = Duration::from_millis(1);

/// Fills one tree.
pub struct TreeLoader {
    tree: Arc<Tree>,
    builder: BlockBuilder,
    /// First key of the leaf that `builder` is going to be.
    low: Vec<u8>,
    last_key: Vec<u8>,
    written: Vec<(Vec<u8>, Arc<Image>)>,
    entries: u64,
}

impl TreeLoader {
    /// For a tree that nobody else writes to and that is empty.
    pub fn new(tree: &Arc<Tree>) -> TreeLoader {
        let (tree, builder) = (tree.clone(), BlockBuilder::new());
        TreeLoader { tree, builder, low: Vec::new(), last_key: Vec::new(), written: Vec::new(), entries: 0 }
    }

    /// Adds the entry with the next key. Writes a block when it is full.
    pub fn push(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        if key.len() > MAX_KEY_BYTES {
            let (bytes, maximum) = (key.len() as u64, MAX_KEY_BYTES as u64);
            return Err(Error::TooLarge { what: "key", bytes, maximum });
        }
        if self.entries > 0 && key <= &self.last_key[..] {
            let path = self.tree.space().path();
            return Err(Error::corrupt(path, 0, "entries of a load do not ascend, or two have one key"));
        }
        let block_bytes = self.tree.shared.spec.block_bytes as usize;
        if self.builder.estimated_bytes() + key.len() + value.len() > block_bytes && !self.builder.is_empty()
        {
            let next = shortest_separator(&self.last_key, key);
            self.write_block(next)?;
        }
        match self.tree.is_large(value) {
            true => {
                let blob = Arc::new(Blob::charged(value, &self.tree.shared.context.cache));
                self.builder.push(key, Value::Blob(&blob));
            }
            false => self.builder.push(key, Value::Inline(value)),
        }
        self.last_key.clear();
        self.last_key.extend_from_slice(key);
        self.entries += 1;
        Ok(())
    }

    /// Writes what the builder has; the leaf after it begins with `next`.
    fn write_block(&mut self, next: Vec<u8>) -> Result<()> {
        let block = Arc::new(self.builder.finish());
        let (copy, prepared) = self.tree.shared.prepare(Lifetime::Private, &block)?;
        self.tree.shared.space.write(&prepared)?;
        block.blobs().iter().for_each(|blob| {
            blob.forget_bytes();
        });
        self.written.push((std::mem::replace(&mut self.low, next), copy.image));
        Ok(())
    }

    /// Makes the entries the tree's content, and returns their number. They are visible to all snapshots from now on:
    /// [`Tree::visible_from`] says since when that is right.
    pub fn finish(mut self) -> Result<u64> {
        let tree = self.tree.clone();
        if self.written.is_empty() {
            let block = self.builder.finish();
            let node = Arc::new(Node::Leaf(Leaf::new(tree.shared.clone(), loaded(block))));
            tree.install(&node, 1, Vec::new())?;
            if let Some(leaf) = node.leaf() {
                let mut state = leaf.latch();
                tree.list_dirty(&state, &node);
                leaf.register(&mut state, &node);
            }
            return Ok(self.entries);
        }
        self.write_block(Vec::new())?;
        let images = self.written.iter().map(|(_, image)| image.clone()).collect();
        let leaves = self.written.len() as u64;
        let root = self.pages();
        tree.install(&root, leaves, images)?;
        Ok(self.entries)
    }

    /// The nodes above the blocks that were written.
    fn pages(&mut self) -> Arc<Node> {
        let lows: Vec<Bound> = self.written.iter().map(|(low, _)| Bound::from(&low[..])).collect();
        let leaf = |(i, (low, image)): (usize, (Vec<u8>, Arc<Image>))| {
            let high = lows.get(i + 1).cloned();
            let copy = FileCopy::stored(image, None);
            let leaf = Leaf::stored(self.tree.shared.clone(), lows[i].clone(), high, copy);
            (low, Arc::new(Node::Leaf(leaf)))
        };
        let mut nodes: Vec<(Vec<u8>, Arc<Node>)> = self.written.drain(..).enumerate().map(leaf).collect();
        for level in 1.. {
            let page = |part: &[(Vec<u8>, Arc<Node>)]| {
                (part[0].0.clone(), Inner::node(&self.tree.shared, level, InnerView::new(part)))
            };
            nodes = nodes.chunks(self.tree.shared.filled_children()).map(page).collect();
            if nodes.len() == 1 {
                break;
            }
        }
        nodes.swap_remove(0).1
    }
}

/// The whole content of a tree in one block.
fn loaded(block: Block) -> LeafView {
    LeafView {
        low: Bound::from(&[][..]),
        high: None,
        base: Base::Loaded(Arc::new(block)),
        delta: Changes::Live(Arc::new(Delta::new())),
        history: Archive::of(None::<Arc<History>>),
        horizon: 0,
        birth: None,
        dead: false,
    }
}

impl Tree {
    /// What is in the tree from now on is not for snapshots from before: see [`Tree::visible_from`].
    pub(crate) fn hide_from_older_snapshots(&self) {
        self.hide_before(self.shared.context.clock.last_committed());
    }

    /// Sets [`Tree::visible_from`].
    pub(crate) fn hide_before(&self, timestamp: Timestamp) {
        self.visible_from.store(timestamp, Ordering::SeqCst);
    }

    /// Whether the tree was never written to, or has nothing left; nobody else writes to it.
    pub(crate) fn is_empty(&self) -> Result<bool> {
        let root = self.root.load_full();
        root.leaf().map_or(Ok(false), |leaf| self.is_empty_leaf(&root, leaf))
    }

    /// Puts `root` in place of the empty leaf that is the tree so far.
    fn install(&self, root: &Arc<Node>, leaves: u64, images: Vec<Arc<Image>>) -> Result<()> {
        loop {
            let mut structure = self.structure.lock();
            let old = self.root.load_full();
            let leaf = old.leaf().filter(|leaf| matches!(self.is_empty_leaf(&old, leaf), Ok(true)));
            let Some(leaf) = leaf else {
                return Err(Error::corrupt(self.space().path(), 0, "a load into a tree that is not empty"));
            };
            let mut state = leaf.latch();
            if structure.checkpointing || state.copies.pending().is_some() {
                // A checkpoint is writing the empty tree: its image has to be settled first.
                drop((state, structure));
                std::thread::sleep(WAIT);
                continue;
            }
            let view = leaf.view();
            leaf.publish(&mut state, LeafView { dead: true, ..(*view).clone() });
            structure.loose.retire(state.copies.retire());
            self.take_over(&mut structure, root, leaves, images);
            return Ok(());
        }
    }

    /// Whether the leaf has nothing; nobody else writes to it.
    fn is_empty_leaf(&self, node: &Arc<Node>, leaf: &Leaf) -> Result<bool> {
        let view = leaf.view();
        Ok(leaf.base(node, &view)?.is_empty()
            && leaf.delta(node, &view)?.is_empty()
            && view.history.is_empty())
    }

    fn take_over(&self, structure: &mut Structure, root: &Arc<Node>, leaves: u64, images: Vec<Arc<Image>>) {
        self.shared.size.become_images(leaves, &images);
        self.hide_from_older_snapshots();
        structure.loose.load(images);
        self.root.store(root.clone());
        self.note_dirty();
    }
}
