//! The root of a tree as a cursor knows it that looks one key up after the other.
//!
//! A descent loads the root and what each inner node has at the moment. Between two changes of the structure these
//! stay the same, and who holds the root's content need not load it again.

use crate::tree::change::trunk::Trunk;
use crate::tree::leaf::node::{InnerView, Node};
use crate::Result;
use std::sync::Arc;

/// So many descents before the root is kept: of single look-ups by many threads none should write to its count.
const WORTH_IT: u32 = 4;

/// What a cursor knows of the root.
#[derive(Default)]
pub(super) struct Top {
    descents: u32,
    /// Since when it holds in the life of the structure.
    known: Option<(u64, Arc<InnerView>)>,
}

impl Top {
    /// The leaf that is responsible for `key`, or was a moment ago.
    #[inline]
    pub(super) fn find_leaf(&mut self, tree: &Trunk, key: &[u8]) -> Result<Arc<Node>> {
        if let Some((moment, view)) = &self.known {
            if tree.changes.is_still(*moment) {
                return tree.find_leaf_below(view.child(view.child_for(key)), key);
            }
            self.known = None;
        }
        self.descents = self.descents.saturating_add(1);
        if self.descents > WORTH_IT {
            self.learn(tree)?;
        }
        tree.find_leaf(key)
    }

    fn learn(&mut self, tree: &Trunk) -> Result<()> {
        let moment = tree.changes.now();
        if let Node::Inner(inner) = &**tree.root.load() {
            let view = crate::sync::Guard::into_inner(inner.view()?);
            self.known = view.filter(|_| tree.changes.is_still(moment)).map(|view| (moment, view));
        }
        Ok(())
    }

    /// Lets go of it.
    pub(super) fn forget(&mut self) {
        *self = Top::default();
    }
}
