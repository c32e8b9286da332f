//! What statistics of an index are made of: where parts of the tree begin, and the keys of single leaves.
//!
//! Who counts how many values there are looks at the outline first. A part that begins and ends with the same value has
//! no other, however large it is, and needs not be read: in a skewed index most values are in few leaves, which a
//! sample of all would find or not, by chance. InnoDB takes the same advantage of its inner pages.

use crate::tree::leaf::node::Node;
use crate::tree::storing::tree::Tree;
use crate::tree::versions::visibility::Reader;
use crate::Result;
use std::sync::Arc;

/// So many nodes of a level are looked into for those below.
const EXPANDED: usize = 64;

/// Parts of a tree side by side.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Outline {
    /// Where each begins: a key, or the beginning of one that is enough to tell it from all before. The first one may
    /// begin before what was asked for.
    pub firsts: Vec<Vec<u8>>,
    /// They are leaves; otherwise each has about as many as any other.
    pub are_leaves: bool,
}

impl Tree {
    /// The parts in which keys from `low` on and before `high` (none: all) may be: the leaves, if they are not many,
    /// otherwise nodes of a higher level. Looks into 64 nodes of a level at most, and reads no leaf.
    pub fn outline(&self, low: &[u8], high: Option<&[u8]>) -> Result<Outline> {
        let mut level: Vec<(Vec<u8>, Arc<Node>)> = vec![(Vec::new(), self.root.load_full())];
        while level.len() <= EXPANDED {
            let mut below: Vec<(Vec<u8>, Arc<Node>)> = Vec::new();
            for (_, node) in &level {
                let Node::Inner(inner) = &**node else {
                    return Ok(Outline { firsts: firsts(level), are_leaves: true });
                };
                // Of a page that has just left memory nothing is known here, and its neighbours stand for it.
                below.extend(inner.view()?.iter().flat_map(|view| view.entries()));
            }
            let from = below.partition_point(|(first, _)| first.as_slice() <= low).saturating_sub(1);
            let to =
                high.map_or(below.len(), |high| below.partition_point(|(first, _)| first.as_slice() < high));
            below.truncate(to.max(from + 1));
            if below.is_empty() {
                break;
            }
            level = below.split_off(from.min(below.len() - 1));
        }
        Ok(Outline {
            are_leaves: level.iter().all(|(_, node)| matches!(&**node, Node::Leaf(_))),
            firsts: firsts(level),
        })
    }

    /// Visits the keys of the leaf in which `key` is or would be. Reads it if need be.
    pub fn sample(&self, key: &[u8], visit: &mut dyn FnMut(&[&[u8]])) -> Result<()> {
        let mut node = self.root.load_full();
        let leaf = loop {
            let child = match &*node {
                Node::Leaf(leaf) => break leaf,
                Node::Inner(inner) => match inner.view()?.as_ref() {
                    Some(view) => view.child(view.child_for(key)).clone(),
                    None => return Ok(()),
                },
            };
            node = child;
        };
        let view = leaf.view();
        let block = leaf.materialise(&node, &view, &Reader::at(u64::MAX))?;
        let key_at = |i| {
            let mut key = Vec::new();
            block.key_into(i, &mut key);
            key
        };
        let keys: Vec<Vec<u8>> = (0..block.len()).map(key_at).collect();
        let keys: Vec<&[u8]> = keys.iter().map(|key| &key[..]).collect();
        visit(&keys);
        Ok(())
    }
}

fn firsts(level: Vec<(Vec<u8>, Arc<Node>)>) -> Vec<Vec<u8>> {
    level.into_iter().map(|(first, _)| first).collect()
}
