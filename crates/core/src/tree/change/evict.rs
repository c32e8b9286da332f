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
use crate::cache::Evictable;
use crate::sync::atomic::Ordering;
use crate::tree::leaf::node::{InnerView, Node};
use crate::tree::leaf::{Leaf, LEAF_BYTES};
use std::sync::{Arc, Weak};

/// A visit of the clock looks at no more pages of level 1 than these, and a few,
const MOST_PAGES: usize = 4096;
/// nor frees more than this, and a page.
const ENOUGH_BYTES: u64 = 1 << 20;

impl Trunk {
    /// Has the clock know the tree, if it has pages that may leave memory.
    pub(in crate::tree) fn enter_clock(&self) {
        let is_high = matches!(&**self.root.load(), Node::Inner(inner) if inner.level > 1);
        // A tree that no checkpoint writes has no page in its file.
        if is_high && self.is_logged() && !self.is_in_clock.swap(true, Ordering::SeqCst) {
            let entry: Weak<dyn Evictable> = self.me.clone();
            self.shared.context.cache.register(entry);
        }
    }

    /// Has pages leave memory that nobody has used since the last visit: bytes that are free now.
    pub(super) fn evict_pages(&self) -> u64 {
        let (mut freed, mut looks) = (0, 0);
        let Some(mut hand) = self.hand.try_lock() else { return 0 };
        while looks < MOST_PAGES && freed < ENOUGH_BYTES {
            let (above, next) = self.above_pages(&hand);
            for page in above.iter().flat_map(|above| &above.children) {
                looks += 1;
                freed += self.evict_page(page);
            }
            let is_last = next.is_none();
            *hand = next.unwrap_or_default();
            if is_last {
                break;
            }
        }
        freed
    }

    /// The page of level 2 that holds `key`, if it is in memory, and where the next one begins.
    fn above_pages(&self, key: &[u8]) -> (Option<Arc<InnerView>>, Option<Vec<u8>>) {
        let (mut node, mut next) = (self.root.load_full(), None);
        loop {
            let Node::Inner(inner) = &*node else { return (None, None) };
            let Some(view) = inner.loaded().filter(|_| inner.level > 1) else { return (None, next) };
            if inner.level == 2 {
                return (Some(view), next);
            }
            let at = view.child_for(key);
            if at + 1 < view.children.len() {
                let mut bound = Vec::new();
                view.keys.key_into(at + 1, &mut bound);
                next = Some(bound);
            }
            node = view.children[at].clone();
        }
    }

    /// Bytes that are free now; 0: the page stays.
    fn evict_page(&self, page: &Arc<Node>) -> u64 {
        let Node::Inner(inner) = &**page else { return 0 };
        if inner.take_touched() {
            return 0;
        }
        // Most pages have a leaf that somebody uses: this one is found without latches.
        let seems_at_rest = |child: &Arc<Node>| child.leaf().is_some_and(Leaf::seems_at_rest);
        if !inner.loaded().is_some_and(|view| view.children.iter().all(seems_at_rest)) {
            return 0;
        }
        let Some(structure) = self.structure.try_lock() else { return 0 };
        let Some(view) = inner.loaded() else { return 0 };
        if structure.checkpointing || !inner.is_as_stored() {
            return 0;
        }
        let mut leaves = Vec::with_capacity(view.children.len());
        for child in &view.children {
            // Only tried: two leaf latches at once, and one may be held by who waits for the structure latch.
            let latched = child.leaf().and_then(|leaf| leaf.try_latch().map(|state| (leaf, state)));
            let Some((leaf, state)) = latched else { return 0 };
            // Whoever has it may keep it for long, and would come to it in vain.
            if Arc::strong_count(child) > 1 || !leaf.is_at_rest(&state) {
                return 0;
            }
            leaves.push((leaf, state));
        }
        let high = leaves.last().and_then(|(leaf, _)| leaf.view().next_key());
        let _change = self.changes.begin();
        leaves.iter_mut().for_each(|(leaf, state)| leaf.leave(state));
        inner.unload(high);
        (leaves.len() * LEAF_BYTES + view.keys.memory()) as u64
    }
}
