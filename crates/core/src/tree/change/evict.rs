//! How pages of level 1 leave memory, each with the objects that stand for its leaves: without that, a tree that was
//! read once would keep half a KiB for each leaf for ever.
//!
//! A page may go if the file has all that is in it: the page as its durable image has it, and each leaf without
//! anything but its durable copy ([`Leaf::is_at_rest`]). Then the page is what it was before it was read, and the first
//! descent reads it again, with new objects for the leaves.
//!
//! Two objects for one leaf would be two truths. So nobody may be on his way to an old one: its leaves are latched, all
//! of them, and are marked as removed from the tree before the page gives them up. Whoever comes to one by the content
//! of the page as it was starts his descent again, as for a leaf that was removed ([`super::removal`]).
//!
//! Pages further up are a 256th of these, or less, and stay, as the root does.

use super::trunk::Trunk;
use crate::tree::leaf::node::{Inner, Node, Pages};
use crate::tree::leaf::{Leaf, LEAF_BYTES};
use std::sync::Arc;

impl Pages for Trunk {
    fn evict_page(&self, page: &Inner) -> u64 {
        // Most pages have a leaf that somebody uses: this one is found without latches.
        let seems_at_rest = |child: &Arc<Node>| child.leaf().is_some_and(Leaf::seems_at_rest);
        let is_idle = page.loaded().is_some_and(|view| view.made().flatten().all(seems_at_rest));
        if !is_idle || !page.is_as_stored() {
            return 0;
        }
        let Some(structure) = self.structure.try_lock() else { return 0 };
        let Some(view) = page.loaded() else { return 0 };
        let is_root = matches!(&**self.root.load(), Node::Inner(root) if std::ptr::eq(root, page));
        if is_root || structure.checkpointing || !page.is_as_stored() {
            return 0;
        }
        // The leaves that are there now are all that will be.
        let closing = view.closing();
        let mut leaves = Vec::with_capacity(view.len());
        for child in view.made().flatten() {
            // Only tried: two leaf latches at once, and one may be held by who waits for the structure latch.
            let latched = child.leaf().and_then(|leaf| leaf.try_latch().map(|state| (leaf, state)));
            let Some((leaf, state)) = latched else { return 0 };
            // Whoever has it may keep it for long, and would come to it in vain.
            if Arc::strong_count(child) > 1 || !leaf.is_at_rest(&state) {
                return 0;
            }
            leaves.push((leaf, state));
        }
        let high = match view.made().next_back().flatten().and_then(|last| last.leaf()) {
            Some(last) => last.view().next_key(),
            None => view.high().map(|high| high.to_vec()),
        };
        let _change = self.changes.begin();
        leaves.iter_mut().for_each(|(leaf, state)| leaf.leave(state));
        closing.close();
        page.unload(high);
        (leaves.len() * LEAF_BYTES + view.memory()) as u64
    }
}
