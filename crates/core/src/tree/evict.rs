//! How a leaf gives its memory back: a clean base is dropped, a dirty one and undecided changes go to the spill file.

use super::leaf::{Base, Changes, LeafView, SpilledBase};
use super::node::Node;
use super::spill::SpilledDelta;
use crate::cache::Evictable;
use crate::Result;
use std::sync::Arc;

/// Deltas below this many bytes stay: reading them back would cost more than they take.
const SMALL_DELTA_BYTES: usize = 2 << 10;

impl Evictable for Node {
    fn touched(&self) -> bool {
        self.leaf().is_some_and(|leaf| leaf.take_touched())
    }

    fn resident(&self) -> u64 {
        self.leaf().and_then(|leaf| leaf.try_latch().map(|state| leaf.charged(&state))).unwrap_or(0)
    }

    fn evict(&self) -> Result<u64> {
        let Node::Leaf(leaf) = self else { return Ok(0) };
        let Some(mut state) = leaf.try_latch() else { return Ok(0) };
        let view = leaf.view().clone();
        let before = leaf.charged(&state);
        if view.dead || before == 0 {
            return Ok(0);
        }
        let context = &leaf.shared.context;
        let base = match &view.base {
            Base::Loaded(block) => {
                let clean =
                    state.clean.as_ref().is_some_and(|c| std::ptr::eq(c.as_ptr(), Arc::as_ptr(block)));
                match &state.image {
                    Some(image) if clean => Base::Stored(image.clone()),
                    _ if block.is_empty() => view.base.clone(),
                    _ => {
                        let extent = context.spill.write(block.bytes())?;
                        Base::Spilled(Arc::new(SpilledBase { extent, blobs: block.blobs().to_vec() }))
                    }
                }
            }
            elsewhere => elsewhere.clone(),
        };
        if let Base::Loaded(block) = &view.base {
            block.blobs().iter().filter(|blob| blob.extent().is_some()).for_each(|blob| {
                blob.forget_bytes();
            });
        }
        let delta = match &view.delta {
            Changes::Live(delta) if delta.is_empty() => Changes::Live(leaf.shared.no_delta.clone()),
            Changes::Live(delta) if delta.memory() > SMALL_DELTA_BYTES => {
                Changes::Spilled(Arc::new(SpilledDelta::write(delta, context)?))
            }
            other => other.clone(),
        };
        leaf.publish(&mut state, LeafView { base, delta, ..(*view).clone() });
        Ok(before.saturating_sub(leaf.charged(&state)))
    }
}
