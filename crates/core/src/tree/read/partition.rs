//! Cutting a tree into ranges of about as many leaves each, for scans by several threads.

use crate::tree::leaf::node::Node;
use crate::tree::storing::tree::Tree;
use crate::Result;
use std::sync::Arc;

impl Tree {
    /// At most `parts - 1` keys, ascending, between which lie about as many leaves each. Reads inner pages from the
    /// root down until there are enough children to choose from: O(parts). Leaves that split meanwhile make the ranges
    /// less even, not wrong.
    pub(crate) fn cuts(&self, parts: usize) -> Result<Vec<Vec<u8>>> {
        let mut level: Vec<(Vec<u8>, Arc<Node>)> = vec![(Vec::new(), self.root.load_full())];
        while level.len() < 2 * parts {
            let mut below = Vec::new();
            for (_, node) in &level {
                let Node::Inner(inner) = &**node else { return Ok(chosen(level, parts)) };
                let view = inner.view()?;
                below.extend(view.iter().flat_map(|view| view.entries()));
            }
            level = below;
        }
        Ok(chosen(level, parts))
    }
}

/// The first keys of evenly spread nodes; not that of the first one, before which there is nothing.
fn chosen(level: Vec<(Vec<u8>, Arc<Node>)>, parts: usize) -> Vec<Vec<u8>> {
    let every = level.len().div_ceil(parts.max(1)).max(1);
    level.into_iter().step_by(every).skip(1).map(|(low, _)| low).collect()
}
