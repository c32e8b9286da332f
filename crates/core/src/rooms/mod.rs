//! Rooms inside the core that benchmarks measure and tests attack by themselves: the feature `rooms`, which no program
//! needs.

pub mod hostile;

pub use crate::lock::{LockCounters, LockManager, LockOutcome, LockOwner, Wait};
pub use crate::slabs::Buffer;
pub use crate::store::{Dictionary, Training};
