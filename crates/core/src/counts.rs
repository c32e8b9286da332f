//! What threads have done: pages they came by, blocks they read, how long they waited.
//!
//! A thread counts for itself, in numbers that nobody else writes to: counting costs a load, an addition and a store,
//! whatever others do. Who wants to know what one call cost takes the difference of what its thread has counted
//! ([`Counts::of_this_thread`]), and so pays for that alone; threads of the background have numbers of their own. What
//! all have done is the sum over all threads there are, and of what those left that have ended ([`Counts::of_all`]).
//! Engines of one process are counted together.

use std::cell::Cell;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// What is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Count {
    /// Pages of trees that somebody came by: inner ones, and leaves.
    PagesAccessed,
    /// Leaves that were written to, in memory.
    PagesUpdated,
    /// Of those that somebody came by, the ones that were not in memory.
    PagesMissed,
    /// Reads of files that somebody waited for, also where another thread did the reading.
    ReadsAwaited,
    /// How long, in nanoseconds.
    ReadNanoseconds,
    /// Blocks that other threads were asked to read ahead.
    Prefetched,
    /// Versions that were passed, as the reader's snapshot is older.
    OldVersions,
    /// Blocks and pages of table files that were read.
    BlocksRead,
    /// As they are stored.
    BlockBytesRead,
    /// Large values that were read from table files.
    ValuesRead,
    /// As they are stored.
    ValueBytesRead,
    /// Of blocks and values, when they were decompressed.
    RawBytesRead,
    /// Writes to table files: blocks, values, or several side by side.
    FileWrites,
    /// What they wrote.
    FileBytesWritten,
    /// Of blocks and large values that were written, before they were compressed.
    RawBytesPacked,
    /// The same behind it.
    StoredBytesPacked,
    /// Table files that were synced.
    FileSyncs,
    /// How often the spill file was read.
    SpillReads,
    /// How often it was written to.
    SpillWrites,
    /// Groups of records that were written to the log.
    LogWrites,
    /// What gave memory back when others needed it.
    Evictions,
    /// Bytes of it.
    EvictedBytes,
    /// Calls that waited since there was no memory.
    MemoryWaits,
    /// Runs of entries that were sorted and did not fit into memory.
    SortRunsSpilled,
}

const COUNTS: usize = Count::SortRunsSpilled as usize + 1;

/// What takes its time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Timed {
    /// Commits of what was written, to when they are acknowledged.
    Commit,
    /// Syncs of the log.
    LogSync,
    /// Reads of files that somebody waits for.
    Read,
    /// Waits for locks.
    LockWait,
}

const TIMED: usize = Timed::LockWait as usize + 1;
/// One a power of two of microseconds, up to a minute, and one for what is longer.
const BUCKETS: usize = 28;

/// Of one thread. What the way to a leaf counts is on one line.
#[repr(C, align(64))]
struct Numbers {
    /// Others know of them; or will not any more.
    is_known: AtomicBool,
    counts: [AtomicU64; COUNTS],
    times: [Times; TIMED],
}

struct Times {
    buckets: [AtomicU64; BUCKETS],
    nanoseconds: AtomicU64,
}

impl Numbers {
    const fn new() -> Numbers {
        Numbers {
            is_known: AtomicBool::new(false),
            counts: [const { AtomicU64::new(0) }; COUNTS],
            times: [const { Times::new() }; TIMED],
        }
    }

    /// Adds what `other` has.
    fn take_in(&self, other: &Numbers) {
        self.counts.iter().zip(&other.counts).for_each(|(to, from)| add(to, read(from)));
        for (to, from) in self.times.iter().zip(&other.times) {
            to.buckets.iter().zip(&from.buckets).for_each(|(to, from)| add(to, read(from)));
            add(&to.nanoseconds, read(&from.nanoseconds));
        }
    }
}

impl Times {
    const fn new() -> Times {
        Times { buckets: [const { AtomicU64::new(0) }; BUCKETS], nanoseconds: AtomicU64::new(0) }
    }
}

/// What all threads count.
struct All {
    threads: Vec<OfThread>,
    /// By threads that have ended.
    ended: Numbers,
}

/// Numbers of a thread that has not ended.
struct OfThread(NonNull<Numbers>);

// SAFETY: they consist of atomics.
unsafe impl Send for OfThread {}

static ALL: Mutex<All> = Mutex::new(All { threads: Vec::new(), ended: Numbers::new() });

thread_local! {
    static MINE: Numbers = const { Numbers::new() };
    static LEASE: Cell<Option<Lease>> = const { Cell::new(None) };
}

/// Others know of the thread's numbers until it ends.
struct Lease;

impl Drop for Lease {
    fn drop(&mut self) {
        let mut all = all();
        MINE.with(|mine| {
            all.threads.retain(|thread| !std::ptr::eq(thread.0.as_ptr(), mine));
            all.ended.take_in(mine);
        });
    }
}

fn all() -> MutexGuard<'static, All> {
    // Nothing panics while it is held that could leave it half changed.
    ALL.lock().unwrap_or_else(PoisonError::into_inner)
}

impl All {
    /// Calls `visit` with the numbers of each thread, and with those that threads have left.
    fn each(&self, mut visit: impl FnMut(&Numbers)) {
        visit(&self.ended);
        for thread in &self.threads {
            // SAFETY: a thread takes its numbers off the list before they go, and whoever calls this has the list.
            visit(unsafe { thread.0.as_ref() });
        }
    }
}

/// Nobody else writes to it, so this need not be one step.
#[inline]
fn add(number: &AtomicU64, n: u64) {
    // Relaxed: a statistic.
    number.store(number.load(Ordering::Relaxed).wrapping_add(n), Ordering::Relaxed);
}

fn read(number: &AtomicU64) -> u64 {
    // Relaxed: a statistic.
    number.load(Ordering::Relaxed)
}

#[inline]
fn with_mine<T>(count: impl FnOnce(&Numbers) -> T) -> T {
    MINE.with(|mine| {
        // Relaxed: nobody else looks at it.
        if !mine.is_known.load(Ordering::Relaxed) {
            begin(mine);
        }
        count(mine)
    })
}

/// Others know of the thread's numbers from now on; what one counts that is about to end is lost.
#[cold]
fn begin(mine: &Numbers) {
    mine.is_known.store(true, Ordering::Relaxed); // Relaxed: see above
    let _ = LEASE.try_with(|lease| {
        all().threads.push(OfThread(NonNull::from(mine)));
        lease.set(Some(Lease));
    });
}

impl Count {
    /// `n` more of it.
    #[inline]
    pub(crate) fn add(self, n: u64) {
        with_mine(|mine| add(&mine.counts[self as usize], n));
    }
}

impl Timed {
    /// It took so long, once more.
    pub(crate) fn add(self, took: Duration) {
        with_mine(|mine| {
            let (times, nanoseconds) = (&mine.times[self as usize], nanoseconds(took));
            add(&times.buckets[bucket_of(nanoseconds)], 1);
            add(&times.nanoseconds, nanoseconds);
        });
    }
}

/// That somebody waited for a read of a file.
pub(crate) fn note_read(took: Duration) {
    Count::ReadsAwaited.add(1);
    Count::ReadNanoseconds.add(nanoseconds(took));
    Timed::Read.add(took);
}

/// Centuries are as good as more of them, and 128 bits are slow to divide.
fn nanoseconds(took: Duration) -> u64 {
    took.as_nanos() as u64
}

/// Bucket `i` has what took at most `1 << i` microseconds, and more than the one before.
fn bucket_of(nanoseconds: u64) -> usize {
    let micros = nanoseconds.div_ceil(1000).max(1);
    (micros.next_power_of_two().trailing_zeros() as usize).min(BUCKETS - 1)
}

/// What was counted so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Counts([u64; COUNTS]);

impl Counts {
    /// By this thread; only differences mean anything.
    pub fn of_this_thread() -> Counts {
        with_mine(|mine| Counts(std::array::from_fn(|i| read(&mine.counts[i]))))
    }

    /// By all threads since the process began.
    pub fn of_all() -> Counts {
        let mut sum = Counts([0; COUNTS]);
        all().each(|numbers| {
            sum.0.iter_mut().zip(&numbers.counts).for_each(|(sum, number)| *sum += read(number));
        });
        sum
    }

    /// How many of it.
    pub fn get(&self, count: Count) -> u64 {
        self.0[count as usize]
    }

    /// How many of it since `before`.
    pub fn since(&self, before: &Counts, count: Count) -> u64 {
        self.get(count).wrapping_sub(before.get(count))
    }
}

/// How often something took how long.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Histogram {
    /// How often at most `1 << i` microseconds, and more than the one before; the last one: longer.
    pub buckets: [u64; BUCKETS],
    /// All of it together.
    pub sum: Duration,
}

impl Histogram {
    /// By all threads since the process began.
    pub fn of(timed: Timed) -> Histogram {
        let (mut buckets, mut nanoseconds) = ([0; BUCKETS], 0);
        all().each(|numbers| {
            let times = &numbers.times[timed as usize];
            for (sum, number) in buckets.iter_mut().zip(&times.buckets) {
                *sum += read(number);
            }
            nanoseconds += read(&times.nanoseconds);
        });
        Histogram { buckets, sum: Duration::from_nanos(nanoseconds) }
    }

    /// How often it took any time at all.
    pub fn count(&self) -> u64 {
        self.buckets.iter().sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread;

    #[test]
    fn what_a_thread_has_counted_stays_when_it_has_ended() {
        let before = Counts::of_all();
        let mine = Counts::of_this_thread();
        for _ in 0..20 {
            thread::spawn(|| {
                let before = Counts::of_this_thread();
                Count::SortRunsSpilled.add(7);
                assert_eq!(Counts::of_this_thread().since(&before, Count::SortRunsSpilled), 7);
            })
            .join()
            .unwrap();
        }
        // Tests of sorting may run beside this one.
        assert!(Counts::of_all().since(&before, Count::SortRunsSpilled) >= 140);
        assert_eq!(Counts::of_this_thread().since(&mine, Count::SortRunsSpilled), 0, "others' are not mine");
    }

    #[test]
    fn threads_that_have_ended_are_not_listed() {
        let threads = || all().threads.len();
        let before = threads();
        for _ in 0..200 {
            thread::spawn(|| Count::PagesAccessed.add(1)).join().unwrap();
        }
        // Of other tests' threads there are fewer than that.
        assert!(threads() < before + 150, "{before} threads became {}", threads());
    }

    #[test]
    fn what_takes_longer_is_in_a_later_bucket() {
        assert_eq!([0, 1, 1000, 1001, 2000, 2001, 4000, 4001].map(bucket_of), [0, 0, 0, 1, 1, 2, 2, 3]);
        assert_eq!(bucket_of(1 << 62), BUCKETS - 1);
        let before = Histogram::of(Timed::LockWait);
        Timed::LockWait.add(Duration::from_millis(3));
        let after = Histogram::of(Timed::LockWait);
        assert!(after.buckets[12] > before.buckets[12] && after.sum >= before.sum + Duration::from_millis(3));
        assert!(after.count() > before.count());
    }
}
