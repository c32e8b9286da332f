//! A latch of which a build with assertions knows whether the calling thread has it: what takes long, compressing and
//! I/O, asserts that it does not.

use crate::sync::{Mutex, MutexGuard};
use std::ops::{Deref, DerefMut};

/// Schedules run all their threads on one.
#[cfg(all(debug_assertions, not(all(test, feature = "schedules"))))]
mod held {
    use std::cell::Cell;

    thread_local! {
        static HELD: Cell<usize> = const { Cell::new(0) };
    }

    pub fn count(change: isize) {
        let _ = HELD.try_with(|held| held.set(held.get().wrapping_add_signed(change)));
    }

    pub fn is_none() -> bool {
        HELD.try_with(|held| held.get() == 0).unwrap_or(true)
    }
}

#[cfg(not(all(debug_assertions, not(all(test, feature = "schedules")))))]
mod held {
    #[inline]
    pub fn count(_: isize) {}

    #[inline]
    pub fn is_none() -> bool {
        true
    }
}

/// The latch.
#[derive(Default)]
pub(in crate::tree) struct Watched<T>(Mutex<T>);

impl<T> Watched<T> {
    #[inline]
    pub fn lock(&self) -> WatchedGuard<'_, T> {
        let guard = self.0.lock();
        held::count(1);
        WatchedGuard(guard)
    }

    pub fn try_lock(&self) -> Option<WatchedGuard<'_, T>> {
        let guard = self.0.try_lock()?;
        held::count(1);
        Some(WatchedGuard(guard))
    }
}

/// Whoever has the latch.
pub(in crate::tree) struct WatchedGuard<'a, T>(MutexGuard<'a, T>);

impl<T> Deref for WatchedGuard<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T> DerefMut for WatchedGuard<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        &mut self.0
    }
}

impl<T> Drop for WatchedGuard<'_, T> {
    #[inline]
    fn drop(&mut self) {
        held::count(-1);
    }
}

/// The calling thread has no latch of this kind; always true without assertions.
#[inline]
pub(in crate::tree) fn has_none() -> bool {
    held::is_none()
}
