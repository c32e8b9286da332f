//! What threads meet at: locks, condition variables, atomics and published pointers, behind one door.
//!
//! They are parking_lot's, arc-swap's and the standard library's, by their own names: the door costs nothing. In unit
//! tests with the feature `schedules` they are twins that shuttle knows of: each use of one is a place where its
//! scheduler may let another thread go on (`docs/design/checks.md`).
//!
//! What outlives an execution of such a test, as statics do, stays outside of the door, and so do counts that nothing
//! depends on.

mod published;

pub(crate) use published::{Held, Published};

#[cfg(not(all(test, feature = "schedules")))]
mod real {
    pub use arc_swap::{ArcSwap, ArcSwapOption, Guard};
    pub use parking_lot::{Condvar, Mutex, MutexGuard, RwLock};
    pub use std::sync::atomic;
    pub use std::thread::yield_now;
}
#[cfg(not(all(test, feature = "schedules")))]
pub(crate) use real::*;

#[cfg(all(test, feature = "schedules"))]
mod explore;
// They have what the real ones have, whoever uses it.
#[cfg(all(test, feature = "schedules"))]
#[allow(dead_code)]
mod scheduled;
#[cfg(all(test, feature = "schedules"))]
pub(crate) use {explore::explore, scheduled::*};
