//! Leaves that appends have filled, oldest first: nothing changes them soon, so they may be written ahead of the next
//! checkpoint.

use super::waiting::Attention;
use crate::sync::atomic::Ordering;
use crate::sync::Mutex;
use crate::tree::leaf::node::Node;
use std::collections::VecDeque;
use std::sync::Arc;

/// More leaves than these do not wait: who is so far behind leaves them to the checkpoint.
const MOST_WAITING: usize = 4096;

/// A leaf that an append has filled.
pub(in crate::tree) struct Finished {
    pub node: Arc<Node>,
    /// How often it was looked at while its rows were undecided.
    pub looks: u8,
}

/// Those of one tree.
pub(in crate::tree) struct FinishedLeaves {
    waiting: Mutex<VecDeque<Finished>>,
    attention: Arc<Attention>,
}

impl FinishedLeaves {
    pub(super) fn new(attention: Arc<Attention>) -> FinishedLeaves {
        FinishedLeaves { waiting: Mutex::default(), attention }
    }

    /// An append has filled the leaf.
    pub(in crate::tree) fn note(&self, node: Arc<Node>) {
        self.enqueue(Finished { node, looks: 0 });
    }

    pub(in crate::tree) fn enqueue(&self, leaf: Finished) {
        let mut waiting = self.waiting.lock();
        if waiting.len() >= MOST_WAITING && waiting.pop_front().is_some() {
            // Relaxed: says how much work there is; the list has its mutex.
            self.attention.finished.fetch_sub(1, Ordering::Relaxed);
        }
        waiting.push_back(leaf);
        // Relaxed: see above.
        self.attention.finished.fetch_add(1, Ordering::Relaxed);
    }

    pub(in crate::tree) fn dequeue(&self) -> Option<Finished> {
        let leaf = self.waiting.lock().pop_front()?;
        // Relaxed: see `enqueue`.
        self.attention.finished.fetch_sub(1, Ordering::Relaxed);
        Some(leaf)
    }

    pub(in crate::tree) fn len(&self) -> usize {
        self.waiting.lock().len()
    }
}

impl Drop for FinishedLeaves {
    fn drop(&mut self) {
        // Relaxed: see `enqueue`.
        self.attention.finished.fetch_sub(self.waiting.get_mut().len(), Ordering::Relaxed);
    }
}
