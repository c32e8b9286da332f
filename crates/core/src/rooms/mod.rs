//! Rooms inside the core that benchmarks measure by themselves: the feature `rooms`, which no program
//! needs.

pub use crate::lock::{LockCounters, LockManager, LockOutcome, LockOwner};
pub use crate::store::{Dictionary, Training};
