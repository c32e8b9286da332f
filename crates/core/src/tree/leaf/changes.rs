//! What was changed in a leaf since its base was made: a delta in memory, or in the spill file with one in memory on
//! top.
//!
//! A delta that was read back keeps its place in the spill file as its [`Backing`]: the next eviction has only to write
//! what was pushed since.

use super::patch::Patch;
use super::shared::Resources;
use super::spill::{DeltaSize, SpilledDelta};
use crate::mvcc::{State, TxnStatus};
use crate::tree::versions::delta::Delta;
use crate::Result;
use std::sync::{Arc, Weak};

#[derive(Clone)]
pub(crate) enum Changes {
    Live(Arc<Delta>),
    /// `fresh` has what was pushed since the eviction. Who reads needs both, see [`crate::tree::leaf::Leaf::delta`];
    /// who only pushes does not have to read.
    Spilled {
        older: Arc<SpilledDelta>,
        fresh: Arc<Delta>,
    },
}

impl Changes {
    /// The delta that writers push onto.
    #[inline]
    pub(in crate::tree) fn newest(&self) -> &Arc<Delta> {
        match self {
            Changes::Live(delta) | Changes::Spilled { fresh: delta, .. } => delta,
        }
    }

    /// Likewise, but with `newest` for writers to push onto.
    pub(in crate::tree) fn with_newest(&self, newest: Arc<Delta>) -> Changes {
        match self {
            Changes::Live(_) => Changes::Live(newest),
            Changes::Spilled { older, .. } => Changes::Spilled { older: older.clone(), fresh: newest },
        }
    }

    /// What it holds, wherever it is.
    #[inline]
    pub(in crate::tree) fn size(&self) -> DeltaSize {
        match self {
            Changes::Live(delta) => DeltaSize::of(delta),
            Changes::Spilled { older, fresh } => older.size().plus(DeltaSize::of(fresh)),
        }
    }

    /// What is in `patch`, and what came since.
    pub(in crate::tree) fn in_patch(patch: &Arc<Patch>, fresh: &Arc<Delta>) -> Changes {
        Changes::Spilled { older: Arc::new(SpilledDelta::of_patch(patch.clone())), fresh: fresh.clone() }
    }

    /// The patch of the leaf, if that is the oldest part of them.
    pub(in crate::tree) fn patch(&self) -> Option<&Arc<Patch>> {
        match self {
            Changes::Live(_) => None,
            Changes::Spilled { older, .. } => older.patch(),
        }
    }

    /// All but what is in `patch`, if that is the oldest part of them.
    pub(in crate::tree) fn since_patch(&self, patch: &Arc<Patch>) -> Option<Changes> {
        let Changes::Spilled { older, fresh } = self else { return None };
        older.patch().filter(|own| Arc::ptr_eq(own, patch))?;
        let fresh = fresh.clone();
        Some(match older.without_patch() {
            None => Changes::Live(fresh),
            Some(older) => Changes::Spilled { older: Arc::new(older), fresh },
        })
    }

    /// All of it in memory. The latch is held.
    pub(in crate::tree) fn read(&self, context: &Resources) -> Result<Arc<Delta>> {
        match self {
            Changes::Live(delta) => Ok(delta.clone()),
            Changes::Spilled { older, fresh } => Ok(Arc::new(older.read_with(fresh, context)?)),
        }
    }

    /// Bytes of memory that go with it, about.
    pub(in crate::tree) fn charge(&self) -> usize {
        match self {
            Changes::Live(delta) => delta.charge(),
            Changes::Spilled { older, fresh } => older.memory() + fresh.charge(),
        }
    }

    /// Bytes that it takes, or would in memory.
    pub(in crate::tree) fn bytes(&self) -> usize {
        match self {
            Changes::Live(delta) => delta.charge(),
            Changes::Spilled { older, fresh } => older.size().memory + fresh.charge(),
        }
    }

    /// Whether some of it is neither committed nor rolled back.
    pub(in crate::tree) fn is_undecided(&self) -> bool {
        self.undecided_by().is_some()
    }

    /// A transaction that has written some of it, and is neither committed nor rolled back.
    pub(in crate::tree) fn undecided_by(&self) -> Option<Arc<TxnStatus>> {
        let undecided = |delta: &Delta| {
            let newest = delta.iter().filter_map(|entry| entry.newest());
            newest.map(|version| &version.status).find(|status| status.state() == State::Active).cloned()
        };
        match self {
            Changes::Live(delta) => undecided(delta),
            Changes::Spilled { older, fresh } => older.undecided_by().or_else(|| undecided(fresh)),
        }
    }
}

/// A delta in memory is `older`, which is in the spill file, and what came since.
pub(crate) struct Backing {
    /// The delta in memory.
    live: Weak<Delta>,
    pub older: Arc<SpilledDelta>,
    /// What came since, a second time; pushed onto like the delta itself.
    pub fresh: Arc<Delta>,
}

impl Backing {
    /// Of `live`, which was read from `older`, with `fresh` on top.
    pub(crate) fn new(live: &Arc<Delta>, older: Arc<SpilledDelta>, fresh: Arc<Delta>) -> Backing {
        Backing { live: Arc::downgrade(live), older, fresh }
    }

    /// Whether it is about these changes.
    pub(crate) fn is_of(&self, changes: &Changes) -> bool {
        matches!(changes, Changes::Live(delta) if std::ptr::eq(self.live.as_ptr(), Arc::as_ptr(delta)))
    }

    /// Whether another run costs less than to write all of `live` anew, which leaves one run.
    pub(crate) fn takes_another_run(&self, live: &Delta) -> bool {
        !self.older.is_full() && self.fresh.memory() < live.memory() / 2
    }

    pub(crate) fn charge(&self) -> usize {
        self.older.memory() + self.fresh.charge()
    }
}
