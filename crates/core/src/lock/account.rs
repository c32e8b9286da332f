//! How much memory the locks take, and how much they may.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;

use crate::cache::{Cache, Purpose};
use crate::{Error, Result};

/// Without a limit of its own the locks may take one part in so many of the cache's budget.
const PART_OF_CACHE: u64 = 4;
/// Owners that cannot make fewer locks of theirs are refused more when all take so many times what they may.
const REFUSED_AT: u64 = 2;

/// What all locks of an engine take; charged to its cache, which makes room by giving up pages. All orderings are
/// Relaxed: these are numbers, nothing is reached through them.
#[derive(Default)]
pub(super) struct Account {
    cache: Option<Arc<Cache>>,
    bytes: AtomicU64,
    /// 0: a part of the cache's budget.
    limit: AtomicU64,
}

impl Account {
    pub(super) fn new(cache: Option<Arc<Cache>>) -> Account {
        Account { cache, ..Account::default() }
    }

    /// Something takes `now` bytes that took `before`.
    pub(super) fn change(&self, before: usize, now: usize) {
        if before == now {
            return;
        }
        // Wrapping: the sum never goes below zero, as each gives back what it took.
        let sum = self.bytes.fetch_add((now as u64).wrapping_sub(before as u64), Ordering::Relaxed);
        debug_assert!(sum.wrapping_add(now as u64) >= before as u64, "{before} bytes given back of {sum}");
        if let Some(cache) = &self.cache {
            cache.discharge(Purpose::Rows, before);
            cache.charge(Purpose::Rows, now);
        }
    }

    pub(super) fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    pub(super) fn set_limit(&self, bytes: u64) {
        // Relaxed: a number that guards nothing.
        self.limit.store(bytes, Ordering::Relaxed);
    }

    /// What all locks may take before owners of many make fewer of them; none without a limit and a cache.
    fn limit(&self) -> Option<u64> {
        match (self.limit.load(Ordering::Relaxed), &self.cache) {
            (0, cache) => cache.as_ref().map(|cache| cache.budget() / PART_OF_CACHE),
            (limit, _) => Some(limit),
        }
    }

    /// Whether owners of many locks are to make fewer of them.
    pub(super) fn is_over(&self) -> bool {
        self.limit().is_some_and(|limit| self.bytes() > limit)
    }

    /// For an owner of many that cannot make fewer of them: [`Error::LockMemory`] if all take too much by far.
    pub(super) fn check(&self) -> Result<()> {
        match (self.bytes(), self.limit()) {
            (bytes, Some(maximum)) if bytes / REFUSED_AT > maximum => {
                Err(Error::LockMemory { bytes, maximum })
            }
            _ => Ok(()),
        }
    }
}
