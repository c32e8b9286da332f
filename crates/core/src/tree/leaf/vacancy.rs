//! The mark of leaves, and of nodes above them, that have nothing for new readers. Who sets it when is in
//! [`crate::tree::change::vacancy`].

use super::changes::Changes;
use super::node::{InnerView, Node};
use super::{Base, LeafView};
use crate::sync::atomic::{AtomicU64, Ordering};
use crate::types::Timestamp;
use std::sync::Arc;

const OCCUPIED: Timestamp = Timestamp::MAX;

/// Since when a node has had nothing for readers of that time and later.
pub(crate) struct Vacancy(AtomicU64);

impl Default for Vacancy {
    fn default() -> Vacancy {
        Vacancy(AtomicU64::new(OCCUPIED))
    }
}

impl Vacancy {
    #[inline]
    pub(crate) fn is_occupied(&self) -> bool {
        self.since() == OCCUPIED
    }

    #[inline]
    fn since(&self) -> Timestamp {
        self.0.load(Ordering::SeqCst)
    }

    /// Whether a reader of `snapshot` finds nothing below.
    #[inline]
    pub(in crate::tree) fn is_vacant_for(&self, snapshot: Timestamp) -> bool {
        let since = self.since();
        since != OCCUPIED && since <= snapshot
    }

    pub(in crate::tree) fn set(&self, since: Timestamp) {
        self.0.store(since, Ordering::SeqCst);
    }

    pub(in crate::tree) fn occupy(&self) {
        self.set(OCCUPIED);
    }

    /// What the children of an inner node come to.
    pub(in crate::tree) fn follow(&self, view: &InnerView) {
        let since = |child: Option<&Arc<Node>>| child.map_or(OCCUPIED, |child| child.vacancy().since());
        // Occupied ones are mostly at the end, where rows are appended.
        let newest = view.made().rev().map(since).try_fold(0, |newest, since| match since {
            OCCUPIED => None,
            since => Some(since.max(newest)),
        });
        self.set(newest.unwrap_or(OCCUPIED));
    }
}

impl Node {
    pub(in crate::tree) fn vacancy(&self) -> &Vacancy {
        match self {
            Node::Inner(inner) => &inner.vacancy,
            Node::Leaf(leaf) => &leaf.vacancy,
        }
    }
}

impl LeafView {
    /// Whether nothing but history is there.
    pub(in crate::tree) fn is_vacant(&self) -> bool {
        matches!(&self.base, Base::Loaded(block) if block.is_empty())
            && matches!(&self.delta, Changes::Live(delta) if delta.is_empty())
    }
}
