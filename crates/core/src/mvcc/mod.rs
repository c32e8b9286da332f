//! Versions over time: commit timestamps, the fate of transactions, snapshots, and which versions are garbage.
//!
//! Knows nothing of trees or of the log. A version points to its transaction's [`TxnStatus`]; committing stores one
//! timestamp there, whatever the transaction wrote. [`Clock`] hands out the timestamps and keeps the registry of active
//! snapshots, from which consolidation learns by [`ActiveSnapshots`] which intervals of the past somebody can still
//! see.

mod clock;
mod last_change;
#[cfg(all(test, feature = "schedules"))]
mod schedules;
mod snapshots;
mod status;

pub use clock::Clock;
pub use last_change::LastChange;
pub use snapshots::{ActiveSnapshots, Fate, SnapshotGuard, SnapshotInfo};
pub use status::{State, TxnStatus};
