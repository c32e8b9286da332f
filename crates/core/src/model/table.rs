//! Tables and trees of the model.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;

use parking_lot::Mutex;

use super::{visible, Chain, ModelShared};
use crate::engine::Outline;
use crate::{Result, Timestamp, TreeId};

/// Keys a pretended leaf has.
const LEAF_KEYS: usize = 64;

/// Trees that live and die together, with what the caller wants remembered about them.
pub struct Table {
    name: Mutex<String>,
    meta: Vec<u8>,
    trees: Vec<Arc<Tree>>,
    counter: AtomicU64,
    next_row: AtomicU64,
}

impl Table {
    pub(super) fn new(name: &str, meta: &[u8], trees: Vec<Arc<Tree>>) -> Table {
        Table {
            name: Mutex::new(name.to_string()),
            meta: meta.to_vec(),
            trees,
            counter: AtomicU64::new(0),
            next_row: AtomicU64::new(1),
        }
    }

    pub(super) fn set_name(&self, name: &str) {
        *self.name.lock() = name.to_string();
    }

    /// Its present name.
    pub fn name(&self) -> String {
        self.name.lock().clone()
    }

    /// What the creator wanted remembered.
    pub fn meta(&self) -> &[u8] {
        &self.meta
    }

    /// Its `i`-th tree.
    ///
    /// # Panics
    /// If there is none.
    pub fn tree(&self, i: usize) -> &Arc<Tree> {
        &self.trees[i]
    }

    /// Number of trees.
    pub fn trees(&self) -> usize {
        self.trees.len()
    }

    /// Next AUTO_INCREMENT value; 0 if none was set.
    pub fn counter(&self) -> u64 {
        self.counter.load(Ordering::SeqCst)
    }

    /// The counter itself, for reserving values.
    pub fn counter_cell(&self) -> &AtomicU64 {
        &self.counter
    }

    /// A hidden primary key that was never given out.
    pub fn next_row_id(&self) -> u64 {
        self.next_row.fetch_add(1, Ordering::SeqCst)
    }

    /// Bytes on disk: none.
    pub fn disk_bytes(&self) -> u64 {
        0
    }

    /// Free bytes in the file: none.
    pub fn free_bytes(&self) -> u64 {
        0
    }
}

/// An ordered map from keys to values.
pub struct Tree {
    id: TreeId,
    shared: Arc<ModelShared>,
}

fn newest(chain: &Chain) -> bool {
    visible(chain, 0, Timestamp::MAX).is_some()
}

impl Tree {
    pub(super) fn new(id: TreeId, shared: Arc<ModelShared>) -> Tree {
        Tree { id, shared }
    }

    pub(super) fn shared(&self) -> &Arc<ModelShared> {
        &self.shared
    }

    /// Its identifier.
    pub fn id(&self) -> TreeId {
        self.id
    }

    fn with_rows<T>(&self, read: impl FnOnce(&BTreeMap<Vec<u8>, Chain>) -> T) -> Option<T> {
        self.shared.state.lock().trees.get(&self.id).map(read)
    }

    /// Committed keys.
    pub fn entries(&self) -> u64 {
        self.with_rows(|rows| rows.values().filter(|chain| newest(chain)).count() as u64).unwrap_or(0)
    }

    /// Bytes on disk: none.
    pub fn disk_bytes(&self) -> u64 {
        0
    }

    /// Leaves it would have.
    pub fn leaves(&self) -> u64 {
        (self.entries() / LEAF_KEYS as u64).max(1)
    }

    /// Committed keys between two bounds.
    pub fn estimate(&self, from: Bound<&[u8]>, to: Bound<&[u8]>) -> Result<u64> {
        if super::cursor::is_empty(&from, &to) {
            return Ok(0);
        }
        let count = |rows: &BTreeMap<Vec<u8>, Chain>| {
            rows.range::<[u8], _>((from, to)).filter(|(_, chain)| newest(chain)).count() as u64
        };
        Ok(self.with_rows(count).unwrap_or(0))
    }

    /// Where leaves begin that have keys from `low` on and before `high`.
    pub fn outline(&self, low: &[u8], high: Option<&[u8]>) -> Result<Outline> {
        let mut firsts: Vec<Vec<u8>> = self.keys().chunks(LEAF_KEYS).map(|leaf| leaf[0].clone()).collect();
        let from = firsts.partition_point(|first| first.as_slice() <= low).saturating_sub(1);
        let to = high.map_or(firsts.len(), |high| firsts.partition_point(|first| first.as_slice() < high));
        firsts.truncate(to.max(from));
        Ok(Outline { firsts: firsts.split_off(from), are_leaves: true })
    }

    /// Visits the keys of the leaf in which `key` is or would be.
    pub fn sample(&self, key: &[u8], visit: &mut dyn FnMut(&[&[u8]])) -> Result<()> {
        let keys = self.keys();
        let before = keys.partition_point(|other| other.as_slice() <= key).saturating_sub(1);
        let leaf = keys.chunks(LEAF_KEYS).nth(before / LEAF_KEYS).unwrap_or_default();
        visit(&leaf.iter().map(|key| key.as_slice()).collect::<Vec<_>>());
        Ok(())
    }

    fn keys(&self) -> Vec<Vec<u8>> {
        self.with_rows(|rows| rows.iter().filter(|(_, c)| newest(c)).map(|(k, _)| k.clone()).collect())
            .unwrap_or_default()
    }
}
