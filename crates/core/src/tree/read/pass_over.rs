//! Scans that go on behind what cannot be read, when the engine was started to save what is left.
//!
//! What is lost with a block is known from the pages above it: the keys between two separators. Each such range is
//! noted once, told to the operator, and passed over by scans in ascending order, but for rows in it that came from the
//! log. Everything else (look-ups of a key in it, scans in descending order) fails there as ever.
//!
//! Of a leaf whose patch alone cannot be read such scans find the rows as they were before it: the range is noted, as
//! one of older rows.

use super::cursor::TreeCursor;
use crate::tree::leaf::node::Node;
use crate::tree::storing::lost::Lost;
use crate::tree::storing::tree::Tree;
use crate::tree::versions::visibility::Reader;
use crate::{Error, Result};
use std::sync::Arc;

impl Tree {
    /// Whether scans pass over anything.
    #[inline]
    pub(crate) fn is_salvaged(&self) -> bool {
        self.context.lost.get().is_some()
    }

    /// Whether they pass over what this error says.
    pub(in crate::tree) fn passes_over(&self, error: &Error) -> bool {
        self.is_salvaged() && error.is_damage_of(self.shared.space.path())
    }

    /// The entry of `key` has a value that cannot be read.
    pub(in crate::tree) fn note_lost_entry(&self, key: &[u8], error: Error) {
        let (low, high) = (key.to_vec(), Some([key, &[0]].concat()));
        self.note_lost(Lost { tree: self.id(), low, high, is_older: false, error });
    }

    /// A scan met `error` at `key` or behind it. Where it can go on: `None` at the end of the tree; the error, if
    /// everything there can be read.
    pub(in crate::tree) fn note_lost_range(&self, key: &[u8], error: Error) -> Result<Option<Vec<u8>>> {
        let mut at = key.to_vec();
        loop {
            let Probe { low, high, readable } = self.probe(&at);
            if !readable {
                let (tree, low) = (self.id(), low.max(key.to_vec()));
                self.note_lost(Lost { tree, low, high: high.clone(), is_older: false, error });
                return Ok(high);
            }
            at = high.filter(|high| *high > at).ok_or_else(|| error.clone())?;
        }
    }

    pub(in crate::tree) fn note_lost(&self, lost: Lost) {
        if let Some(known) = self.context.lost.get() {
            known.note(lost);
        }
    }

    /// Goes down to the leaf of `key`, as far as pages can be read.
    fn probe(&self, key: &[u8]) -> Probe {
        let mut found = Probe { low: Vec::new(), high: None, readable: true };
        let mut node: Arc<Node> = self.root.load_full();
        loop {
            let inner = match &*node {
                Node::Inner(inner) => inner,
                Node::Leaf(leaf) => {
                    let view = leaf.view();
                    found.low = view.low.to_vec();
                    found.high = view.high.as_ref().map(|high| high.to_vec());
                    found.readable = leaf.base(&node, &view).is_ok() && leaf.delta(&node, &view).is_ok();
                    return found;
                }
            };
            let view = match inner.view() {
                Ok(view) => view.clone(),
                Err(_) => None,
            };
            let Some(view) = view else {
                return Probe { readable: false, ..found };
            };
            let at = view.child_for(key);
            let bound = |at: usize| {
                let mut key = Vec::new();
                view.keys.key_into(at, &mut key);
                key
            };
            found.low = bound(at);
            if at + 1 < view.len() {
                found.high = Some(bound(at + 1));
            }
            node = view.child(at).clone();
        }
    }
}

impl TreeCursor {
    /// Goes on from what a step forward met to the next entry that can be read.
    #[cold]
    pub(in crate::tree) fn pass_over(
        &mut self,
        reader: &Reader<'_>,
        mut found: Result<bool>,
    ) -> Result<bool> {
        let tree = self.tree().clone();
        loop {
            let value = if matches!(found, Ok(true)) { self.value().map(drop) } else { Ok(()) };
            found = match (found, value) {
                (Ok(true), Err(error)) if tree.passes_over(&error) => {
                    tree.note_lost_entry(self.key(), error);
                    self.next_readable(reader)
                }
                (Err(error), _) if tree.passes_over(&error) => {
                    self.lenient = true;
                    let found = self.next_readable(reader);
                    self.lenient = false;
                    match found {
                        Err(error) if tree.passes_over(&error) => self.jump(reader, error),
                        found => found,
                    }
                }
                (found, _) => return found,
            };
        }
    }

    /// A page above the leaves cannot be read: goes to where the next begins.
    fn jump(&mut self, reader: &Reader<'_>, error: Error) -> Result<bool> {
        let Some(next) = self.tree().clone().note_lost_range(self.key(), error)? else {
            return Ok(self.end());
        };
        self.stand_between(&next);
        match self.get(reader, &next)? {
            true => Ok(true),
            false => self.next_readable(reader),
        }
    }
}

/// The keys of the lowest node on the way to a key, and whether it can be read.
struct Probe {
    low: Vec<u8>,
    high: Option<Vec<u8>>,
    readable: bool,
}
