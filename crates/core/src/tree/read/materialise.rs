//! A leaf as one block, in the eyes of one reader: for scans of old snapshots, and for images.

use crate::tree::block::Block;
use crate::tree::leaf::node::Node;
use crate::tree::leaf::LeafView;
use crate::tree::versions::visibility::{seen, visible, Content, Reader, Seen};
use crate::tree::Tree;
use crate::Result;
use std::sync::Arc;

impl Tree {
    /// The leaf's content as `reader` sees it, as one block.
    pub(crate) fn materialise(
        &self,
        node: &Arc<Node>,
        view: &Arc<LeafView>,
        reader: &Reader<'_>,
    ) -> Result<Block> {
        let Node::Leaf(leaf) = &**node else { return Ok(Block::empty()) };
        let base = leaf.base_for(node, view, reader)?;
        let delta = leaf.delta(view)?;
        let history = if reader.snapshot < view.horizon { leaf.history(view)? } else { None };
        Ok(materialise(
            &Content { horizon: view.horizon, base: &base, delta: &delta, history: history.as_deref() },
            reader,
        ))
    }
}

/// Base, delta and history of one leaf as one reader sees them.
pub(crate) fn materialise(content: &Content<'_>, reader: &Reader<'_>) -> Block {
    let Content { horizon, base, delta, history } = *content;
    let past = history.iter().flat_map(|h| h.entries()).filter(|_| reader.snapshot < horizon);
    let mut keys: Vec<&[u8]> =
        past.map(|entry| entry.key).chain(delta.iter().map(|entry| entry.key())).collect();
    keys.sort_unstable();
    keys.dedup();
    let mut builder = crate::tree::block::builder::BlockBuilder::reused();
    let mut at = 0;
    for key in keys {
        let found = base.search(key);
        let to = match found {
            Ok(to) | Err(to) => to,
        };
        builder.push_range(base, at..to);
        at = to + usize::from(found.is_ok());
        let version = delta.find(key).and_then(|entry| visible(entry.newest(), reader));
        let value = match seen(version) {
            Seen::Value(value) => Some(value),
            Seen::Gone => None,
            Seen::Nothing => content.below_delta(found.ok(), key, reader),
        };
        if let Some(value) = value {
            builder.push(key, value);
        }
    }
    builder.push_range(base, at..base.len());
    let block = builder.finish();
    builder.give_back();
    block
}
