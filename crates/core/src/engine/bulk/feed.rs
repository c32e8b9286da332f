//! Feeding a build, or a check, from the rows of its table, by several threads.
//!
//! ```text
//! ranges of the rows' keys ─┬─> thread: cursor ──> entries of each row ──> its own sorter per tree ─┬─> runs of one sorter per tree
//!                           └─> thread: cursor ──> entries of each row ──> its own sorter per tree ─┘
//! ```
//!
//! Threads take the ranges, of which there are several for each, one by one: none waits for another, and one with dear
//! rows takes fewer.

use super::build::TreeBuild;
use super::compare::Sum;
use crate::engine::data::watch::Watch;
use crate::engine::txn::transaction::Transaction;
use crate::sort::Sorter;
use crate::sync::Mutex;
use crate::tree::{Reader, Tree, TreeCursor};
use crate::types::{Seek, View};
use crate::Result;
use std::ops::Bound;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Arc;

/// Ranges for each thread: those that end first take from the others' share.
const RANGES_PER_THREAD: usize = 8;

/// What is done with the entries of one tree.
pub(in crate::engine) enum Sink {
    Sort(Sorter),
    Sum(Sum),
    /// The entry of one row.
    Keep(Kept),
}

/// An entry, if there is one; its memory is used again.
#[derive(Default)]
pub(in crate::engine) struct Kept {
    pub there: bool,
    pub key: Vec<u8>,
    pub value: Vec<u8>,
}

impl Kept {
    fn set(&mut self, key: &[u8], value: &[u8]) {
        debug_assert!(!self.there, "a row has two entries in one tree");
        self.there = true;
        self.key.clear();
        self.key.extend_from_slice(key);
        self.value.clear();
        self.value.extend_from_slice(value);
    }
}

impl Sink {
    pub(in crate::engine) fn add(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        match self {
            Sink::Sort(sorter) => sorter.push(key, value),
            Sink::Sum(sum) => {
                sum.add(key, value);
                Ok(())
            }
            Sink::Keep(kept) => {
                kept.set(key, value);
                Ok(())
            }
        }
    }
}

/// Where a thread puts the entries of its rows.
pub struct Feed {
    parts: Vec<Sink>,
}

impl Feed {
    pub(in crate::engine) fn new(parts: Vec<Sink>) -> Feed {
        Feed { parts }
    }

    pub(in crate::engine) fn parts_mut(&mut self) -> &mut [Sink] {
        &mut self.parts
    }

    /// Adds an entry to the `part`-th of the trees that are built or compared.
    ///
    /// # Panics
    /// If there is no such part.
    pub fn add(&mut self, part: usize, key: &[u8], value: &[u8]) -> Result<()> {
        self.parts[part].add(key, value)
    }

    pub(in crate::engine) fn into_parts(self) -> Vec<Sink> {
        self.parts
    }

    /// How many trees there are.
    pub fn parts(&self) -> usize {
        self.parts.len()
    }
}

impl TreeBuild {
    /// Has each row of `rows` taken apart into entries: as `txn` sees the latest state or, in an online build, as they
    /// were when that began. `maker` is called on each thread of the scan and gives what does that there, from the
    /// row's key and value. `watch` is told on the calling thread, now and then, how many rows are done; its error ends
    /// the scan, as does any other.
    pub fn feed<M>(
        &mut self,
        txn: &mut Transaction,
        rows: &Arc<Tree>,
        maker: impl Fn() -> Result<M> + Sync,
        watch: impl Fn(u64) -> Result<()> + Sync,
    ) -> Result<()>
    where
        M: FnMut(&[u8], &[u8], &mut Feed) -> Result<()>,
    {
        let sinks = |threads| self.sorters(threads).into_iter().map(Sink::Sort).collect();
        let reader = match &self.view {
            Some(view) => view.reader(rows)?,
            None => {
                txn.show_writes(rows, None)?;
                txn.reader(View::Latest)
            }
        };
        let fed = feed_rows((rows, reader), self.threads, sinks, maker, watch)?;
        fed.into_iter().try_for_each(|feed| {
            let sorter = |sink| match sink {
                Sink::Sort(sorter) => Some(sorter),
                Sink::Sum(_) | Sink::Keep(_) => None,
            };
            self.take(feed.parts.into_iter().filter_map(sorter).collect())
        })
    }
}

/// Has each of the rows, as `reader` sees them, taken apart by what `maker` gives on each of up to `threads` threads,
/// into `sinks` for one of so many. What each thread has.
pub(in crate::engine) fn feed_rows<M>(
    (rows, reader): (&Arc<Tree>, Reader<'_>),
    threads: usize,
    sinks: impl Fn(usize) -> Vec<Sink> + Sync,
    maker: impl Fn() -> Result<M> + Sync,
    watch: impl Fn(u64) -> Result<()> + Sync,
) -> Result<Vec<Feed>>
where
    M: FnMut(&[u8], &[u8], &mut Feed) -> Result<()>,
{
    let watch = Watch::new(&watch);
    let scan = Scan::new(rows, reader, threads, &watch)?;
    let threads = threads.min(scan.ranges());
    let done = Mutex::new(Vec::new());
    let work = || {
        let mut feed = Feed { parts: sinks(threads) };
        let mut make = maker()?;
        scan.run(|key, row| make(key, row, &mut feed))?;
        done.lock().push(feed);
        Ok(())
    };
    crate::threads::share(threads, "teak-scan", || watch.outcome(work()))?;
    Ok(done.into_inner())
}

/// One pass over the rows.
struct Scan<'a> {
    rows: &'a Arc<Tree>,
    reader: Reader<'a>,
    /// Between the ranges.
    cuts: Vec<Vec<u8>>,
    next_range: AtomicUsize,
    watch: &'a Watch<'a>,
}

impl<'a> Scan<'a> {
    fn new(
        rows: &'a Arc<Tree>,
        reader: Reader<'a>,
        threads: usize,
        watch: &'a Watch<'a>,
    ) -> Result<Scan<'a>> {
        let cuts = rows.cuts(threads * RANGES_PER_THREAD)?;
        debug_assert!(cuts.is_sorted_by(|a, b| a < b), "a row would be in two ranges");
        Ok(Scan { rows, reader, cuts, next_range: AtomicUsize::new(0), watch })
    }

    fn ranges(&self) -> usize {
        self.cuts.len() + 1
    }

    /// Gives key and value of the rows of range after range to `take`.
    fn run(&self, mut take: impl FnMut(&[u8], &[u8]) -> Result<()>) -> Result<()> {
        let mut cursor = TreeCursor::new(self.rows.clone());
        let mut rows = 0;
        loop {
            // Relaxed: nothing but the number is shared.
            let range = self.next_range.fetch_add(1, Ordering::Relaxed);
            if range >= self.ranges() {
                return Ok(());
            }
            let low = range.checked_sub(1).map_or(&[][..], |before| &self.cuts[before]);
            let high = self.cuts.get(range);
            let mut found = cursor.seek(&self.reader, Seek::AtOrAfter, low)?;
            while found && high.is_none_or(|high| cursor.key() < &high[..]) {
                take(cursor.key(), cursor.value()?)?;
                rows += 1;
                if !self.watch.goes_on(rows)? {
                    return Ok(());
                }
                found = cursor.next(&self.reader)?;
                if cursor.wants_ahead() {
                    cursor.read_ahead(high.map_or(Bound::Unbounded, |high| Bound::Excluded(&high[..])));
                }
            }
        }
    }
}
