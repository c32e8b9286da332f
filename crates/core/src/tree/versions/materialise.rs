//! A leaf as one block, in the eyes of one reader: for scans of old snapshots, and for images.

use super::visibility::{seen, visible, Content, Reader, Seen};
use crate::tree::block::builder::BlockBuilder;
use crate::tree::block::Block;

/// Base, delta and history of one leaf as one reader sees them.
pub(crate) fn materialise(content: &Content<'_>, reader: &Reader<'_>) -> Block {
    let Content { horizon, base, delta, history } = *content;
    let past = history.iter().flat_map(|h| h.entries()).filter(|_| reader.snapshot < horizon);
    let mut keys: Vec<&[u8]> =
        past.map(|entry| entry.key).chain(delta.iter().map(|entry| entry.key())).collect();
    keys.sort_unstable();
    keys.dedup();
    let mut builder = BlockBuilder::reused();
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
