//! What stands behind a space.

use super::Space;
use crate::store::spill::SpillShare;
use crate::store::twin::Twin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// What its extents lie in, and what is true of that alone.
pub(super) enum SpaceKind {
    /// A file with a name: checkpoints write it, and the log names it.
    File {
        /// Its second copy, if it has one.
        twin: Option<Twin>,
        /// The file system has no holes.
        no_holes: AtomicBool,
    },
    /// A file without a name, of a temporary table, out of the budget of temporary data.
    Unnamed(SpillShare),
    /// Nothing: the table's rows are in memory alone.
    Memory {
        /// What it may take there now; 0: anything.
        limit_bytes: AtomicU64,
    },
}

impl SpaceKind {
    pub fn file(twin: Option<Twin>) -> SpaceKind {
        SpaceKind::File { twin, no_holes: AtomicBool::new(false) }
    }

    pub fn twin(&self) -> Option<&Twin> {
        match self {
            SpaceKind::File { twin, .. } => twin.as_ref(),
            SpaceKind::Unnamed(_) | SpaceKind::Memory { .. } => None,
        }
    }
}

impl Space {
    /// What its table may take of memory, in bytes, if it has no file: see [`Space::in_memory`].
    #[inline]
    pub fn memory_limit(&self) -> Option<u64> {
        match &self.kind {
            // Relaxed: a number; likewise below.
            SpaceKind::Memory { limit_bytes } => Some(limit_bytes.load(Ordering::Relaxed)),
            SpaceKind::File { .. } | SpaceKind::Unnamed(_) => None,
        }
    }

    /// Sets it, if it has no file.
    pub fn set_memory_limit(&self, bytes: u64) {
        if let SpaceKind::Memory { limit_bytes } = &self.kind {
            limit_bytes.store(bytes, Ordering::Relaxed); // Relaxed: as above
        }
    }

    /// Whether it is the file of a table whose rows outlive the engine: checkpoints write it, and the log names it.
    #[inline]
    pub fn is_lasting(&self) -> bool {
        matches!(self.kind, SpaceKind::File { .. })
    }
}
