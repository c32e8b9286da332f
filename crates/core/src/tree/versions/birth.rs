//! Leaves whose whole base one transaction wrote.
//!
//! A load puts finished blocks into the tree, not versions into deltas (see [`crate::tree::storing::direct`]). Who may
//! see the rows of such a base is said once, for the leaf: a reader who does not sees a leaf without rows, since there
//! were none before. The first consolidation after the transaction's end forgets the birth, or turns it into what it
//! stands for: a version a row.

use super::delta::{Delta, VersionOp};
use super::visibility::{is_committed_after, is_shown, Reader};
use crate::mvcc::{ActiveSnapshots, State, TxnStatus};
use crate::tree::block::{Block, Value};
use crate::types::Timestamp;
use std::sync::Arc;

/// The transaction that wrote a leaf's base, and with which of its writes.
pub(crate) struct Birth {
    pub status: Arc<TxnStatus>,
    pub sequence: u32,
}

/// What a birth comes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fate {
    /// Everybody sees the rows, now and later.
    Settled,
    /// Rolled back: nobody ever does.
    Void,
    /// It depends on who looks.
    Open,
}

impl Birth {
    /// Whether `reader` sees the rows.
    pub(crate) fn shows(&self, reader: &Reader<'_>) -> bool {
        is_shown(&self.status, self.sequence, true, reader)
    }

    pub(crate) fn fate(&self, active: &ActiveSnapshots) -> Fate {
        match self.status.state() {
            State::Aborted => Fate::Void,
            _ if self.status.is_void(self.sequence) => Fate::Void,
            State::Committed(timestamp) if !active.needs(0, timestamp) => Fate::Settled,
            _ => Fate::Open,
        }
    }

    /// When the rows were committed, if they were.
    pub(crate) fn timestamp(&self) -> Timestamp {
        match self.status.state() {
            State::Committed(timestamp) => timestamp,
            _ => 0,
        }
    }

    /// Whether somebody else than `own` committed the rows after `snapshot`.
    pub(crate) fn committed_after(&self, snapshot: Timestamp, own: &TxnStatus) -> bool {
        is_committed_after(&self.status, self.sequence, snapshot, own)
    }

    /// The rows of `base` as versions below those of `delta`.
    pub(crate) fn as_versions(&self, base: &Block, delta: &Delta) -> Delta {
        let mut versions = Delta::new();
        let mut key = Vec::new();
        for at in 0..base.len() {
            base.key_into(at, &mut key);
            let op = match base.value(at) {
                Value::Inline(bytes) => VersionOp::Put(bytes),
                Value::Blob(blob) => VersionOp::Blob(blob),
            };
            versions.add(&key, self.status.clone(), self.sequence, op);
        }
        versions.add_newer(delta);
        versions
    }
}
