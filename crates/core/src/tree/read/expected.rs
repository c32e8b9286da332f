//! Keys that a cursor is going to be asked for: whoever sorts what he will look up knows them.
//!
//! Nothing is done about them until one of them is in a leaf that is not in memory. From then on the leaves of the next
//! ones are read by the engine's threads (see [`crate::tree::leaf::ahead`]), first four, then twice as many each time,
//! up to the engine's limit.

use super::cursor::TreeCursor;
use crate::tree::change::trunk::Trunk;
use crate::tree::leaf::ahead::{list_page, Ticket};
use crate::tree::leaf::node::Node;
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

/// So many leaves are listed at first.
const FIRST: u32 = 4;
/// For each leaf that is to be listed so many may be looked at.
const LOOKS: u32 = 4;

/// The keys, and how far the cursor and what it has listed have come.
pub(super) struct Expected {
    bytes: Vec<u8>,
    /// In the order of the keys.
    keys: Vec<Range<u32>>,
    /// The first that nothing was done about.
    next: usize,
    /// The first keys of the leaves that are listed and that the cursor has not come to.
    listed: VecDeque<usize>,
    window: u32,
    ticket: Arc<Ticket>,
}

impl Drop for Expected {
    fn drop(&mut self) {
        self.ticket.cancel();
    }
}

impl Expected {
    fn new(bytes: Vec<u8>) -> Expected {
        let mut keys = Vec::new();
        let mut at = 0;
        while let Some(length) = bytes.get(at..).and_then(|rest| rest.first_chunk::<2>()) {
            let end = at + 2 + usize::from(u16::from_le_bytes(*length));
            let (Ok(from), Ok(to)) = (u32::try_from(at + 2), u32::try_from(end)) else { break };
            if end > bytes.len() {
                break;
            }
            keys.push(from..to);
            at = end;
        }
        let ticket = Arc::default();
        Expected { bytes, keys, next: 0, listed: VecDeque::new(), window: 0, ticket }
    }

    fn key(&self, at: usize) -> &[u8] {
        let Range { start, end } = self.keys[at];
        &self.bytes[start as usize..end as usize]
    }

    /// The cursor has come to the leaf of `key`, which was not in memory, or was read ahead.
    #[cold]
    fn arrive(&mut self, tree: &Trunk, key: &[u8]) {
        if self.window == 0 {
            let bytes = &self.bytes;
            self.keys.sort_unstable_by_key(|range| &bytes[range.start as usize..range.end as usize]);
        }
        while self.listed.front().is_some_and(|&at| self.key(at) <= key) {
            self.listed.pop_front();
        }
        while self.next < self.keys.len() && self.key(self.next) <= key {
            self.next += 1;
        }
        let most = tree.shared.context.ahead.most_blocks();
        if self.listed.len() as u32 <= self.window / 2 && most > 0 {
            self.window = (self.window * 2).max(FIRST).min(most);
            self.list(tree);
        }
    }

    fn list(&mut self, tree: &Trunk) {
        let mut looks = LOOKS * self.window;
        while (self.listed.len() as u32) < self.window && self.next < self.keys.len() && looks > 0 {
            looks -= 1;
            let node = tree.known_node(self.key(self.next));
            let Node::Leaf(leaf) = &*node else {
                return list_page(&node, &tree.shared, &self.ticket);
            };
            let view = leaf.view();
            if !leaf.is_in_memory() {
                if !leaf.list_ahead(&node, &self.ticket) {
                    return;
                }
                self.listed.push_back(self.next);
            }
            self.next += 1;
            while self.next < self.keys.len() && view.holds(self.key(self.next)) {
                self.next += 1;
            }
        }
    }
}

impl TreeCursor {
    /// The cursor is going to be asked for these keys, or what begins with them, in ascending order: of `keys` each is
    /// behind its length, two bytes, little-endian, in any order. Those of before are forgotten.
    pub fn expect(&mut self, keys: Vec<u8>) {
        self.expected = Some(Box::new(Expected::new(keys)));
    }

    /// The cursor was put on the leaf of `key`.
    #[inline]
    pub(super) fn came_to(&mut self, key: &[u8]) {
        if let (true, Some(expected)) = (self.was_cold, &mut self.expected) {
            expected.arrive(&self.tree, key);
        }
    }
}
