//! Bytes of small allocations: those that the C library serves.
//!
//! Each thread has a counter of its own, which costs a load and a store in a cache line that nobody else writes to: the
//! engine allocates some dozens of times for a statement. A counter stays as it is when its thread ends and goes to
//! another one, since what one thread allocates others free: only the sum says anything.

use std::cell::Cell;
use std::sync::atomic::{AtomicIsize, AtomicU64, AtomicUsize, Ordering};

/// Threads that have a counter; those beyond share the first one.
const COUNTERS: usize = 1024;
const BITS: usize = u64::BITS as usize;
/// The counter of threads without one.
const SHARED: usize = 0;
/// A thread that has not asked for one.
const UNASKED: usize = usize::MAX;

#[repr(align(64))]
struct Counter(AtomicIsize);

// Relaxed: numbers; whose a counter is is decided by `TAKEN`.
static BYTES: [Counter; COUNTERS] = [const { Counter(AtomicIsize::new(0)) }; COUNTERS];
/// A bit for each counter that is a thread's.
static TAKEN: [AtomicU64; COUNTERS / BITS] = [const { AtomicU64::new(0) }; COUNTERS / BITS];
/// No counter from here on was ever a thread's.
static END: AtomicUsize = AtomicUsize::new(SHARED + 1);

thread_local! {
    static MINE: Cell<usize> = const { Cell::new(UNASKED) };
    static RETURNED: Return = const { Return };
}

/// Gives the thread's counter back when that ends.
struct Return;

impl Drop for Return {
    fn drop(&mut self) {
        let mine = MINE.replace(SHARED);
        if mine != SHARED && mine != UNASKED {
            // Release: the next owner goes on from what this one has counted.
            TAKEN[mine / BITS].fetch_and(!(1 << (mine % BITS)), Ordering::Release);
        }
    }
}

/// What the C library takes for an allocation of so many bytes: two words in front, of which it shares one, in steps of
/// two.
pub(super) fn taken_for(bytes: usize) -> isize {
    const WORD: usize = std::mem::size_of::<usize>();
    bytes.saturating_add(WORD).next_multiple_of(2 * WORD).max(4 * WORD) as isize
}

/// So many bytes more; less, if negative. Does not allocate, but for the first call of a thread.
#[inline]
pub(super) fn count(bytes: isize) {
    let mine = MINE.get();
    if mine.wrapping_sub(1) < COUNTERS - 1 {
        let counter = &BYTES[mine].0;
        counter.store(counter.load(Ordering::Relaxed) + bytes, Ordering::Relaxed);
    } else {
        count_slowly(bytes);
    }
}

#[cold]
fn count_slowly(bytes: isize) {
    if MINE.get() == UNASKED {
        // What is allocated for the thread's end is counted by all.
        MINE.set(SHARED);
        if RETURNED.try_with(|_| ()).is_ok() {
            MINE.set(take_counter());
        }
    }
    BYTES[SHARED].0.fetch_add(bytes, Ordering::Relaxed);
}

/// A counter that no thread has, if there is one.
fn take_counter() -> usize {
    for (word, taken) in TAKEN.iter().enumerate() {
        let others = if word == 0 { 1 << SHARED } else { 0 };
        // Acquire: pairs with the Release of who had it.
        let taken = taken.fetch_update(Ordering::Acquire, Ordering::Relaxed, |taken| {
            let free = !(taken | others);
            (free != 0).then(|| taken | 1 << free.trailing_zeros())
        });
        if let Ok(before) = taken {
            let number = word * BITS + (!(before | others)).trailing_zeros() as usize;
            END.fetch_max(number + 1, Ordering::Relaxed);
            return number;
        }
    }
    SHARED
}

/// All that is allocated and not freed, about: nobody stops meanwhile.
pub(super) fn bytes() -> usize {
    let counters = &BYTES[..END.load(Ordering::Relaxed)];
    let sum: isize = counters.iter().map(|counter| counter.0.load(Ordering::Relaxed)).sum();
    sum.max(0) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_taken_is_what_the_c_library_takes() {
        let cases = [(1, 32), (24, 32), (25, 48), (40, 48), (41, 64), (64, 80), (72, 80), (540, 560)];
        cases.iter().for_each(|&(bytes, taken)| assert_eq!(taken_for(bytes), taken, "{bytes}"));
        #[cfg(all(target_os = "linux", target_env = "gnu"))]
        for bytes in 1..4000 {
            // SAFETY: allocated here, freed once.
            let usable = unsafe {
                let start = libc::malloc(bytes);
                let usable = libc::malloc_usable_size(start);
                libc::free(start);
                usable
            };
            // What is left over may be too small to be anything by itself.
            assert!((0..=16).contains(&(usable as isize + 8 - taken_for(bytes))), "{bytes}: {usable}");
        }
    }

    #[test]
    fn threads_count_for_themselves_and_leave_what_they_counted() {
        const THREADS: usize = 8;
        // Other tests allocate beside this one: so much that it cannot be theirs.
        const MUCH: isize = 1 << 40;
        let before = bytes() as isize;
        let numbers: Vec<usize> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..THREADS)
                .map(|_| {
                    scope.spawn(|| {
                        count(MUCH);
                        count(MUCH);
                        MINE.get()
                    })
                })
                .collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        assert!(numbers.iter().all(|&number| number > SHARED && number < COUNTERS), "{numbers:?}");
        let grown = bytes() as isize - before - 2 * THREADS as isize * MUCH;
        assert!(grown.abs() < MUCH, "{grown}");
        count(-2 * THREADS as isize * MUCH);
        // Thousands of threads, one after the other, need few counters.
        for _ in 0..2 * COUNTERS {
            assert_ne!(std::thread::spawn(|| MINE.get()).join().unwrap(), SHARED);
        }
    }
}
