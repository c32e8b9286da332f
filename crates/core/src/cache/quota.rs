//! Budgets of what cannot leave memory: tables without a file.
//!
//! There is one for all such tables together, and within it one for each, which may be without bound. Who is about to
//! take more than is left has garbage collected (an entry of such a budget gives up what nobody needs any more), and is
//! refused if that is not enough.

use super::{Cache, State};
use crate::sync::Mutex;
use crate::{Error, Observer, Result};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};

/// What makes a cache such a budget.
pub(super) struct Quota(Of);

enum Of {
    /// Of all tables, which are these; some are gone.
    Whole(Mutex<Vec<Weak<State>>>),
    /// Of one.
    Part(Arc<Cache>),
}

impl Cache {
    /// The budget of all tables without a file; failures to collect their garbage go to `observer`.
    pub fn of_tables(budget_bytes: u64, observer: Arc<dyn Observer>) -> Arc<Cache> {
        let mut cache = Cache::new(budget_bytes, observer);
        cache.quota = Some(Quota(Of::Whole(Mutex::default())));
        Arc::new(cache)
    }

    /// That of one table, a part of `whole`; 0: without bound of its own.
    pub fn of_table(whole: &Arc<Cache>, limit_bytes: u64) -> Arc<Cache> {
        let mut cache = Cache::new(0, whole.state.observer.clone());
        cache.set_limit(limit_bytes);
        if let Some(Quota(Of::Whole(parts))) = &whole.quota {
            let mut parts = parts.lock();
            if parts.len() == parts.capacity() {
                parts.retain(|part| part.strong_count() > 0);
            }
            parts.push(Arc::downgrade(&cache.state));
        }
        cache.quota = Some(Quota(Of::Part(whole.clone())));
        Arc::new(cache)
    }

    /// What the table may take from now on, in bytes; 0: without bound of its own. Nothing goes when it is less than it
    /// takes.
    pub fn set_limit(&self, bytes: u64) {
        self.state.set_budget(if bytes == 0 { u64::MAX } else { bytes });
        // Whoever takes something has to look at the whole as well.
        self.state.threshold.store(0, Ordering::Relaxed); // Relaxed: as all that is told of the budget
    }
}

impl Quota {
    /// What a part takes, the whole takes.
    #[inline]
    pub(super) fn count(&self, bytes: i64) {
        if let Of::Part(whole) = &self.0 {
            whole.state.usage.add(bytes);
        }
    }

    /// [`Cache::make_room`] of the budget whose state is `own`.
    pub(super) fn make_room(&self, own: &State) -> Result<()> {
        match &self.0 {
            Of::Whole(parts) => {
                own.collect_in(parts);
                own.check("all tables in memory", "teak_memory_max_size")
            }
            Of::Part(whole) => {
                if own.is_over() {
                    own.reduce_to(own.budget());
                    own.check("the table", "its option MEMORY_LIMIT")?;
                }
                match whole.state.is_over() {
                    true => whole.make_room(),
                    false => Ok(()),
                }
            }
        }
    }
}

impl State {
    fn is_over(&self) -> bool {
        self.usage.approximate() > self.budget()
    }

    fn check(&self, what: &'static str, setting: &'static str) -> Result<()> {
        match self.is_over() {
            true => Err(Error::MemoryFull { what, maximum: self.budget(), setting }),
            false => Ok(()),
        }
    }

    /// Has the garbage of tables collected until they take what they may.
    fn collect_in(&self, parts: &Mutex<Vec<Weak<State>>>) {
        let parts = parts.lock().clone();
        for part in parts.iter().filter_map(Weak::upgrade) {
            if !self.is_over() {
                return;
            }
            part.reduce_to(0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cache::{Evictable, Purpose};
    use crate::SilentObserver;
    use std::sync::atomic::AtomicUsize;

    /// Garbage of so many bytes, once.
    struct Garbage(Arc<Cache>, AtomicUsize);

    impl Evictable for Garbage {
        fn touched(&self) -> bool {
            false
        }

        fn evict(&self) -> Result<u64> {
            let bytes = self.1.swap(0, Ordering::SeqCst);
            self.0.discharge(Purpose::Values, bytes);
            Ok(bytes as u64)
        }

        fn resident(&self) -> u64 {
            self.1.load(Ordering::SeqCst) as u64
        }
    }

    fn garbage(cache: &Arc<Cache>, bytes: usize) -> Arc<Garbage> {
        cache.charge(Purpose::Values, bytes);
        let garbage = Arc::new(Garbage(cache.clone(), AtomicUsize::new(bytes)));
        let entry: Arc<dyn Evictable> = garbage.clone();
        cache.register(Arc::downgrade(&entry));
        garbage
    }

    #[test]
    fn who_asks_for_more_than_the_table_or_all_tables_may_have_is_refused_until_something_goes() {
        let whole = Cache::of_tables(10 << 20, Arc::new(SilentObserver));
        let (a, b) = (Cache::of_table(&whole, 4 << 20), Cache::of_table(&whole, 0));
        a.charge(Purpose::Values, 5 << 20);
        assert!(
            matches!(a.make_room(), Err(Error::MemoryFull { what: "the table", maximum, .. }) if maximum == 4 << 20)
        );
        b.make_room().unwrap();
        b.charge(Purpose::Values, 6 << 20);
        assert!(matches!(b.make_room(), Err(Error::MemoryFull { what: "all tables in memory", .. })));
        assert_eq!((a.used(), whole.used()), (5 << 20, 11 << 20));
        a.discharge(Purpose::Values, 2 << 20);
        a.make_room().unwrap();
        b.make_room().unwrap();
        whole.set_budget(8 << 20);
        assert!(a.make_room().is_err());
        whole.set_budget(20 << 20);
        a.set_limit(2 << 20);
        assert!(matches!(a.make_room(), Err(Error::MemoryFull { maximum, .. }) if maximum == 2 << 20));
        a.set_limit(0);
        a.make_room().unwrap();
        drop(b);
    }

    #[test]
    fn garbage_is_collected_before_anybody_is_refused_in_whatever_table_it_is() {
        let whole = Cache::of_tables(10 << 20, Arc::new(SilentObserver));
        let (a, b) = (Cache::of_table(&whole, 0), Cache::of_table(&whole, 0));
        let garbage = garbage(&a, 6 << 20);
        b.charge(Purpose::Values, 6 << 20);
        b.make_room().unwrap();
        assert_eq!((garbage.resident(), a.used(), whole.used()), (0, 0, 6 << 20));
        b.charge(Purpose::Values, 6 << 20);
        assert!(b.make_room().is_err());
    }
}
