//! The pages of a tree's image, above leaves that are written.
//!
//! Under the structure latch it is only noted what the image consists of: the pages that must be written, the content
//! that they have at that moment, and the content of the last leaves that were split meanwhile. That takes some
//! hundred nanoseconds a page. Everything is built, compressed and written without the latch, by the checkpoint's
//! threads, and a page is out of memory once it is written. Leaves that are split from then on, and what they were
//! split into, are the next image's: what this one has of them is what they were when it was noted.
//!
//! Which pages must be written is marked leaf by leaf, when a leaf is written: without the latch, see
//! [`Tree::mark_way`].

use super::tree::Tree;
use crate::cache::{Charge, Purpose};
use crate::store::{ChildAddress, Lifetime, TreeRoot};
use crate::sync::atomic::Ordering;
use crate::sync::Held;
use crate::tree::change::structure::{mark_changed, mark_dirty, Structure};
use crate::tree::leaf::node::{InnerView, LeafRef, Node};
use crate::tree::leaf::{watched, LeafView};
use crate::types::Timestamp;
use crate::{Error, Result};
use std::sync::Arc;

/// A page that must be written.
struct Page {
    node: Arc<Node>,
    level: u32,
    view: Arc<InnerView>,
    /// Where its keys end.
    high: Option<Box<[u8]>>,
}

impl Page {
    fn bytes(&self) -> usize {
        size_of::<Page>() + self.high.as_ref().map_or(0, |high| high.len())
    }
}

/// What an image consists of beside the leaves that are written already.
pub(in crate::tree) struct Cut {
    root: Arc<Node>,
    /// Leaves to be written as they were.
    split: Vec<(LeafRef, Held<LeafView>)>,
    /// Those above others first, each before its neighbours to the right.
    pages: Vec<Page>,
    entries: u64,
    leaves: u64,
    _charge: Charge,
}

impl Tree {
    /// Marks the pages above `node`, a leaf whose keys begin at `low`, to be written. Without the structure latch,
    /// while a checkpoint writes the tree: leaves and pages only move to new pages then, and those are marked from
    /// the beginning, as those above them are. So if the way ends at the leaf, all that was above it then is marked,
    /// and all that comes between.
    pub(super) fn mark_way(&self, node: &Arc<Node>, low: &[u8]) -> Result<()> {
        let (path, end) = self.way_to(low)?;
        if Arc::ptr_eq(&end, node) {
            mark_dirty(&path);
            return Ok(());
        }
        // It was split on the way.
        let _structure = self.structure.lock();
        mark_dirty(&self.path_to(low)?);
        Ok(())
    }

    /// Notes what the image consists of, and unmarks its pages.
    pub(in crate::tree) fn cut(&self) -> Result<Cut> {
        let mut structure = self.structure.lock();
        let mut split = Vec::new();
        for leaf in std::mem::take(&mut structure.reimage) {
            let view = leaf.view();
            if !view.dead {
                mark_dirty(&self.path_to(&view.low)?);
                split.push((leaf, view));
            }
        }
        structure.loose.publish_loaded();
        let root = self.root.load_full();
        let mut pages = Vec::new();
        self.note_pages(&root, None, &mut pages).inspect_err(|_| mark_again(&pages))?;
        let (entries, leaves) = (self.entries(), self.leaves());
        drop(structure);
        let bytes = pages.iter().map(Page::bytes).sum();
        let charge = Charge::new(&self.shared.context.cache, Purpose::Checkpoints, bytes);
        Ok(Cut { root, split, pages, entries, leaves, _charge: charge })
    }

    /// O(changed pages and their children that are pages).
    fn note_pages(&self, node: &Arc<Node>, high: Option<&[u8]>, pages: &mut Vec<Page>) -> Result<()> {
        let Node::Inner(inner) = &**node else { return Ok(()) };
        if !inner.dirty.load(Ordering::SeqCst) {
            return Ok(());
        }
        let Some(view) = inner.loaded() else { return Err(self.no_image()) };
        inner.dirty.store(false, Ordering::SeqCst);
        let (node, level) = (node.clone(), inner.level);
        pages.push(Page { node, level, view: view.clone(), high: high.map(Box::from) });
        if level == 1 {
            return Ok(());
        }
        let mut bound = Vec::new();
        for (i, child) in view.made().enumerate() {
            // One that is not there is as it is stored.
            let Some(child) = child else { continue };
            let high = if i + 1 < view.len() {
                view.keys.key_into(i + 1, &mut bound);
                Some(&bound[..])
            } else {
                high
            };
            self.note_pages(child, high, pages)?;
        }
        Ok(())
    }

    /// Writes what is missing of the image; its root.
    pub(in crate::tree) fn write_cut(
        &self,
        mut cut: Cut,
        at: Timestamp,
        generation: u64,
        writers: usize,
    ) -> Result<TreeRoot> {
        self.write_noted(&mut cut, at, generation, writers).inspect_err(|_| mark_again(&cut.pages))?;
        let ChildAddress { block: address, patch, .. } = self.image_of(&cut.root)?;
        if patch.is_some() {
            return Err(self.no_image());
        }
        self.end_image(&mut self.structure.lock());
        let height = match &*cut.root {
            Node::Inner(inner) => inner.level,
            Node::Leaf(_) => 0,
        };
        Ok(TreeRoot {
            address,
            height,
            entries: cut.entries,
            leaves: cut.leaves,
            stored_bytes: self.disk_bytes(),
            raw_bytes: self.raw_bytes(),
        })
    }

    /// Leaves, then the pages of one level after the other.
    fn write_noted(&self, cut: &mut Cut, at: Timestamp, generation: u64, writers: usize) -> Result<()> {
        for (leaf, view) in &cut.split {
            self.write_view(leaf, view, at, generation)?;
        }
        cut.pages.sort_by_key(|page| page.level);
        for level in cut.pages.chunk_by(|a, b| a.level == b.level) {
            let writers = writers.min(Tree::useful_writers(level.len()));
            crate::threads::share_out(level, writers, "teak-write", |page| {
                self.write_page(page, generation)
            })?;
        }
        Ok(())
    }

    fn write_page(&self, page: &Page, generation: u64) -> Result<()> {
        let Node::Inner(inner) = &*page.node else { return Ok(()) };
        debug_assert!(watched::has_none(), "a page is compressed under a tree's structure latch");
        let address = |(at, child): (usize, Option<&Arc<Node>>)| match child {
            Some(child) => self.image_of(child),
            None => page.view.address(at).ok_or_else(|| self.no_image()),
        };
        let addresses: Vec<ChildAddress> =
            page.view.made().enumerate().map(address).collect::<Result<_>>()?;
        let built = page.view.page(&addresses, page.high.as_deref());
        let (lifetime, packing) = (Lifetime::Checkpoint(generation), self.shared.encoding.packing());
        let block = self.shared.space.prepare_for(lifetime, built.bytes(), packing)?;
        self.shared.space.write(&block)?;
        if let Some(replaced) = inner.image.lock().pending.replace(block.extent().clone()) {
            replaced.supersede(generation);
        }
        self.imaged(&page.node);
        Ok(())
    }

    /// Where the image has the node, which is written if it has to be.
    fn image_of(&self, node: &Node) -> Result<ChildAddress> {
        let address = match node {
            Node::Leaf(leaf) => leaf.latch().copies.newest().map(|copy| ChildAddress {
                block: *copy.image.extent.address(),
                has_no_large: copy.image.names_none(),
                patch: copy.patch.as_ref().map(|patch| *patch.extent().address()),
            }),
            Node::Inner(inner) => {
                let image = inner.image.lock();
                let newest = image.pending.as_ref().or(image.durable.as_ref());
                newest.map(|extent| ChildAddress::from(*extent.address()))
            }
        };
        address.ok_or_else(|| self.no_image())
    }

    /// Leaves may be removed again, and who splits one has nothing to note.
    pub(super) fn end_image(&self, structure: &mut Structure) {
        structure.checkpointing = false;
        structure.reimage = Vec::new();
    }

    fn no_image(&self) -> Error {
        Error::corrupt(self.shared.space.path(), 0, "a node of the tree has no image to refer to")
    }
}

/// The image is not going to be complete.
fn mark_again(pages: &[Page]) {
    pages.iter().for_each(|page| mark_changed(&page.node));
}
