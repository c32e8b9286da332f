//! What the caller has found out about the content of tables and would have to look for again after a restart: of the
//! plugin, how many rows a key has.
//!
//! A digest is not logged. It goes to the directory with the next checkpoint; a crash takes it back to what the last
//! one had. So it is to be taken for a guess, which is all that those who read it need.

use super::tables::Table;
use crate::engine::shared::{Engine, Shared};
use crate::sync::Mutex;
use crate::types::TreeId;
use crate::{Error, Result};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Longest digest: a row of the directory's block that needs no extent of its own.
const MAX_BYTES: usize = 2000;

/// By the first tree of its table.
pub(crate) type ByTree = BTreeMap<TreeId, Arc<[u8]>>;

/// Those that no checkpoint has.
#[derive(Default)]
pub(crate) struct Digests(Mutex<ByTree>);

impl Digests {
    /// What a checkpoint is to store. They stay here until it is durable: who asks meanwhile finds them.
    pub(in crate::engine) fn captured(&self) -> ByTree {
        self.0.lock().clone()
    }

    /// The checkpoint is durable. Those that are newer are for the next one.
    pub(in crate::engine) fn stored(&self, captured: &ByTree) {
        self.0
            .lock()
            .retain(|tree, digest| !captured.get(tree).is_some_and(|stored| Arc::ptr_eq(stored, digest)));
    }

    /// The tree's table is dropped.
    pub(in crate::engine) fn forget(&self, tree: TreeId) {
        self.0.lock().remove(&tree);
    }
}

impl Shared {
    fn keep_digest(&self, table: &Table, digest: &[u8]) {
        // Of rows that go with the process nothing outlives it.
        let Some(tree) = table.counter_id().filter(|_| table.is_logged()) else { return };
        let mut digests = self.data.digests.0.lock();
        // Under the mutex: who drops the table retires it first, and then forgets its digest.
        if table.is_current() {
            digests.insert(tree, digest.into());
        }
    }

    fn digest(&self, table: &Table) -> Result<Option<Vec<u8>>> {
        let Some(tree) = table.counter_id() else { return Ok(None) };
        if let Some(digest) = self.data.digests.0.lock().get(&tree) {
            return Ok(Some(digest.to_vec()));
        }
        self.system.digest(tree)
    }
}

impl Engine {
    /// Remembers what the caller has found out about the table's content, in place of what it said before. It survives
    /// a restart from the next checkpoint on, and goes with the table's rows: with a drop, and with a truncation.
    /// [`Error::TooLarge`] beyond 2000 bytes.
    pub fn keep_digest(&self, table: &Table, digest: &[u8]) -> Result<()> {
        if digest.len() > MAX_BYTES {
            return Err(Error::TooLarge {
                what: "digest",
                bytes: digest.len() as u64,
                maximum: MAX_BYTES as u64,
            });
        }
        self.shared.keep_digest(table, digest);
        Ok(())
    }

    /// What [`Engine::keep_digest`] was told last, as far as it is known.
    pub fn digest(&self, table: &Table) -> Result<Option<Vec<u8>>> {
        self.shared.digest(table)
    }
}
