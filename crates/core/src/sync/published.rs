//! A value that is read without a latch, and replaced in a time that does not depend on how many threads there are.
//!
//! Readers get owners of what is published. Between reading a pointer and counting an owner, what it points to may be
//! freed; so the pointer and a count of loans are one word, and one atomic addition does both. Whoever replaces the
//! value finds in the word how many loans there were, and counts them as owners of what he has taken out. (Split
//! reference counts: A. Williams, C++ Concurrency in Action, 7.2.4; `folly::AtomicSharedPtr`.) An owner gives back to
//! the value's own count, which until then has a share of the publisher that is larger than all loans.
//!
//! Readers of one value write to its word, so what is read by all threads and hardly ever replaced (inner nodes, roots)
//! is better kept by arc-swap, whose readers write to memory of their own, and whose writers look through that of each
//! thread: 80 ns a thread, at each read that misses and each eviction, if leaves were kept so.

use std::ops::Deref;
use std::ptr::NonNull;

use super::atomic::{AtomicU64, Ordering};

/// In the word: the address, below the number of loans. User space ends here on x86-64 and ARM64, but for mappings that
/// ask for more.
const ADDRESS_BITS: u32 = 48;
const ADDRESS: u64 = LOAN - 1;
const LOAN: u64 = 1 << ADDRESS_BITS;
/// With so many, whoever takes one counts them as owners. There is room for sixteen times as many: threads that have
/// taken one, and not come to that yet.
const MANY_LOANS: u64 = 1 << 12;
/// The publisher's share in the count of owners.
const PUBLISHED: u64 = 1 << 32;

struct Content<T> {
    /// Less the loans that are in a word; with [`PUBLISHED`] if it is in one.
    owners: AtomicU64,
    value: T,
}

/// An owner of a value that is published, or was.
pub struct Held<T>(NonNull<Content<T>>);

// SAFETY: as of an Arc: owners on several threads share the value, and the last one drops it.
unsafe impl<T: Send + Sync> Send for Held<T> {}
// SAFETY: as above.
unsafe impl<T: Send + Sync> Sync for Held<T> {}

impl<T> Held<T> {
    fn content(&self) -> &Content<T> {
        // SAFETY: this owner is counted, or its loan is, so the content was not freed.
        unsafe { self.0.as_ref() }
    }

    /// Adds to the count of owners, wrapping; frees the content if there is none left.
    ///
    /// # Safety
    ///
    /// The caller gives up as many owners as he takes away, and does not use the content after that if he was one.
    unsafe fn count(content: NonNull<Content<T>>, owners: u64) {
        // SAFETY: what the caller gives up is counted until here.
        let counted = unsafe { content.as_ref() };
        // AcqRel: what an owner did with the value comes before it is dropped, by whoever does that.
        if counted.owners.fetch_add(owners, Ordering::AcqRel).wrapping_add(owners) == 0 {
            // SAFETY: it came from a Box, and nobody else knows of it.
            drop(unsafe { Box::from_raw(content.as_ptr()) });
        }
    }
}

impl<T> Clone for Held<T> {
    fn clone(&self) -> Held<T> {
        // Relaxed: this owner keeps the content for the new one.
        self.content().owners.fetch_add(1, Ordering::Relaxed);
        Held(self.0)
    }
}

impl<T> Deref for Held<T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        &self.content().value
    }
}

impl<T> Drop for Held<T> {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: this owner goes.
        unsafe { Held::count(self.0, 1u64.wrapping_neg()) };
    }
}

/// Where a value is published.
pub struct Published<T> {
    word: AtomicU64,
    /// It owns values.
    value: std::marker::PhantomData<Held<T>>,
}

impl<T> Published<T> {
    pub fn new(value: T) -> Published<T> {
        Published { word: AtomicU64::new(Published::word_of(value)), value: std::marker::PhantomData }
    }

    fn word_of(value: T) -> u64 {
        let content = Box::new(Content { owners: AtomicU64::new(PUBLISHED), value });
        let address = Box::into_raw(content) as u64;
        assert!(address <= ADDRESS, "memory at {address:#x}, past the addresses that programs have");
        address
    }

    fn content_at(word: u64) -> NonNull<Content<T>> {
        // SAFETY: a word has the address of a box.
        unsafe { NonNull::new_unchecked((word & ADDRESS) as *mut Content<T>) }
    }

    /// What is published now.
    #[inline]
    pub fn load(&self) -> Held<T> {
        // Acquire: pairs with the Release of `store`; additions of other readers in between keep it.
        let word = self.word.fetch_add(LOAN, Ordering::Acquire);
        let owner = Held(Published::content_at(word));
        if word >> ADDRESS_BITS >= MANY_LOANS {
            self.count_loans(&owner, word >> ADDRESS_BITS);
        }
        owner
    }

    /// Makes owners of so many loans of the value, if that is still published and has them.
    #[cold]
    fn count_loans(&self, owner: &Held<T>, loans: u64) {
        // Relaxed: `owner` keeps the content, and the exchange below publishes this.
        owner.content().owners.fetch_add(loans, Ordering::Relaxed);
        // Release: who finds fewer loans in the word finds them among the owners. Relaxed, otherwise: nothing is read.
        let counted = self.word.fetch_update(Ordering::Release, Ordering::Relaxed, |word| {
            let has_them = Published::content_at(word) == owner.0 && word >> ADDRESS_BITS >= loans;
            has_them.then(|| word - loans * LOAN)
        });
        if counted.is_err() {
            // Relaxed: as above.
            owner.content().owners.fetch_sub(loans, Ordering::Relaxed);
        }
    }

    /// Publishes `value`.
    pub fn store(&self, value: T) {
        // Release: who loads it sees what it is. Acquire: who has made owners of loans has counted them before.
        let old = self.word.swap(Published::word_of(value), Ordering::AcqRel);
        Published::<T>::withdraw(old);
    }

    /// Takes the publisher's share out of what was published by `word`, and counts the loans that it had as owners.
    fn withdraw(word: u64) {
        // SAFETY: the share that is given up was counted, and is larger than the loans.
        unsafe {
            Held::count(Published::<T>::content_at(word), (word >> ADDRESS_BITS).wrapping_sub(PUBLISHED))
        };
    }
}

impl<T> Drop for Published<T> {
    fn drop(&mut self) {
        // Relaxed: nobody else has it any more.
        Published::<T>::withdraw(self.word.load(Ordering::Relaxed));
    }
}

#[cfg(all(test, not(feature = "schedules")))]
mod tests {
    use std::sync::atomic::AtomicUsize;
    use std::sync::Arc;

    use super::*;

    /// A value that tells how many of its kind there are.
    struct Numbered {
        number: u64,
        alive: Arc<AtomicUsize>,
    }

    impl Numbered {
        fn new(number: u64, alive: &Arc<AtomicUsize>) -> Numbered {
            alive.fetch_add(1, Ordering::SeqCst);
            Numbered { number, alive: alive.clone() }
        }
    }

    impl Drop for Numbered {
        fn drop(&mut self) {
            self.alive.fetch_sub(1, Ordering::SeqCst);
        }
    }

    #[test]
    fn a_value_lives_as_long_as_it_is_published_or_has_an_owner() {
        let alive = Arc::new(AtomicUsize::new(0));
        let published = Published::new(Numbered::new(1, &alive));
        drop(published.load());
        let first = published.load();
        published.store(Numbered::new(2, &alive));
        assert_eq!((first.number, published.load().number, alive.load(Ordering::SeqCst)), (1, 2, 2));
        let again = first.clone();
        drop(first);
        assert_eq!((again.number, alive.load(Ordering::SeqCst)), (1, 2));
        drop(again);
        assert_eq!(alive.load(Ordering::SeqCst), 1);
        let second = published.load();
        drop(published);
        assert_eq!((second.number, alive.load(Ordering::SeqCst)), (2, 1));
        drop(second);
        assert_eq!(alive.load(Ordering::SeqCst), 0);
    }

    #[test]
    fn there_may_be_more_owners_than_loans() {
        let alive = Arc::new(AtomicUsize::new(0));
        let published = Published::new(Numbered::new(0, &alive));
        // Twice: those that stay, and those that went without the word being told.
        let owners: Vec<_> = (0..40 * MANY_LOANS).map(|_| published.load()).collect();
        (0..40 * MANY_LOANS).for_each(|_| drop(published.load()));
        assert!(published.word.load(Ordering::SeqCst) >> ADDRESS_BITS <= MANY_LOANS);
        published.store(Numbered::new(1, &alive));
        assert_eq!((owners[7].number, alive.load(Ordering::SeqCst)), (0, 2));
        drop(owners);
        assert_eq!(alive.load(Ordering::SeqCst), 1);
    }

    #[test]
    fn readers_beside_a_writer_see_values_in_the_order_in_which_they_were_published() {
        const VALUES: u64 = 20_000;
        let alive = Arc::new(AtomicUsize::new(0));
        let published = Published::new(Numbered::new(0, &alive));
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    let mut last = published.load();
                    while last.number < VALUES {
                        let next = published.load();
                        assert!(next.number >= last.number, "{} after {}", next.number, last.number);
                        last = if next.number.is_multiple_of(3) { next.clone() } else { next };
                    }
                });
            }
            (1..=VALUES).for_each(|number| published.store(Numbered::new(number, &alive)));
        });
        assert_eq!(alive.load(Ordering::SeqCst), 1);
    }
}

#[cfg(all(test, feature = "schedules"))]
mod schedules {
    use crate::sync::atomic::{AtomicUsize, Ordering};
    use crate::sync::{explore, Published};
    use std::sync::Arc;

    /// A value that must not be used once it is dropped.
    struct Mortal {
        deaths: Arc<AtomicUsize>,
    }

    impl Drop for Mortal {
        fn drop(&mut self) {
            assert_eq!(self.deaths.fetch_add(1, Ordering::SeqCst), 0, "dropped twice");
        }
    }

    #[test]
    fn nothing_is_freed_while_somebody_has_it_nor_kept_after_that() {
        explore(|| {
            let deaths: Vec<_> = (0..4).map(|_| Arc::new(AtomicUsize::new(0))).collect();
            let published = Arc::new(Published::new(Mortal { deaths: deaths[0].clone() }));
            let readers: Vec<_> = (0..2)
                .map(|_| {
                    let published = published.clone();
                    shuttle::thread::spawn(move || {
                        let first = published.load();
                        let second = published.load();
                        assert_eq!(first.deaths.load(Ordering::SeqCst), 0);
                        published.count_loans(&second, 1);
                        drop(first);
                        assert_eq!(second.clone().deaths.load(Ordering::SeqCst), 0);
                    })
                })
                .collect();
            for death in &deaths[1..] {
                published.store(Mortal { deaths: death.clone() });
            }
            readers.into_iter().for_each(|reader| reader.join().unwrap());
            drop(published);
            assert!(deaths.iter().all(|death| death.load(Ordering::SeqCst) == 1), "kept for ever");
        });
    }
}
