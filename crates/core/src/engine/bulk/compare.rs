//! Whether indexes have exactly the entries that the rows of their table make, at one snapshot, while others write.
//!
//! What entry a row makes is for the caller to say ([`IndexCheck::feed`], or [`IndexCheck::add`] row by row). Two
//! passes:
//!
//! 1. *Sums*: of the entries that the rows make, and of those that are there, their number and the sum of a keyed hash
//!    of each: the same for the same entries in whatever order. Everything is read once, in the order of its keys, by
//!    several threads; memory does not grow. Two different sets of entries have the same sum once in 2^64 times.
//! 2. *Differences*, for who wants to name them: the entries that the rows make are sorted, as for a build, and
//!    compared one by one.

use super::feed::{feed_rows, Feed, Sink};
use crate::engine::data::tables::Table;
use crate::engine::data::watch::Watch;
use crate::engine::shared::{Engine, Shared};
use crate::engine::txn::transaction::Transaction;
use crate::sort::Sorter;
use crate::sync::Mutex;
use crate::tree::{Reader, Tree, TreeCursor};
use crate::types::View;
use crate::{Error, Result};
use std::hash::{BuildHasher, Hasher};
use std::sync::Arc;
use twox_hash::XxHash3_64;

/// Less memory than this for one tree makes runs that are not worth their overhead, in bytes.
const LEAST_SORT_BYTES: u64 = 256 << 10;

/// Entries as a set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::engine) struct Sum {
    seed: u64,
    entries: u64,
    hash: u64,
}

impl Sum {
    fn new(seed: u64) -> Sum {
        Sum { seed, entries: 0, hash: 0 }
    }

    pub(in crate::engine) fn add(&mut self, key: &[u8], value: &[u8]) {
        let mut hasher = XxHash3_64::with_seed(self.seed);
        hasher.write(&(key.len() as u64).to_le_bytes());
        hasher.write(key);
        hasher.write(value);
        self.hash = self.hash.wrapping_add(hasher.finish());
        self.entries += 1;
    }

    fn join(&mut self, other: &Sum) {
        debug_assert_eq!(self.seed, other.seed, "sums that cannot be added");
        self.hash = self.hash.wrapping_add(other.hash);
        self.entries += other.entries;
    }
}

/// How an index compares with the rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IndexCount {
    /// Entries that the rows make.
    pub wanted: u64,
    /// Entries that are there.
    pub found: u64,
    /// They are the same.
    pub equal: bool,
}

/// An entry in which an index and the rows differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Difference<'a> {
    /// A row has no entry.
    Missing {
        /// Of the entry that it should have.
        key: &'a [u8],
        /// Likewise.
        value: &'a [u8],
    },
    /// No row makes this entry.
    Unexpected {
        /// Of the entry.
        key: &'a [u8],
        /// Likewise.
        value: &'a [u8],
    },
    /// The entry of a row says something else than the row.
    Other {
        /// Of the entry.
        key: &'a [u8],
        /// What the row makes.
        wanted: &'a [u8],
        /// What is there.
        found: &'a [u8],
    },
}

/// A comparison of some trees of a table with its rows.
pub struct IndexCheck {
    shared: Arc<Shared>,
    table: Arc<Table>,
    trees: Vec<Arc<Tree>>,
    wanted: Vec<Sink>,
    seed: u64,
    /// For the entries of one tree; `None`: they are summed up.
    sort_bytes: Option<u64>,
    threads: usize,
}

impl Engine {
    /// Begins to compare `trees` of the table with its rows. `sort_bytes`: of memory for naming differences; `None`:
    /// only whether there are any.
    ///
    /// # Panics
    /// If there is no such tree.
    pub fn compare_trees(&self, table: &Arc<Table>, trees: &[usize], sort_bytes: Option<u64>) -> IndexCheck {
        let shared = self.shared.clone();
        let sort_bytes = sort_bytes.map(|bytes| (bytes / trees.len().max(1) as u64).max(LEAST_SORT_BYTES));
        let trees: Vec<Arc<Tree>> = trees.iter().map(|&place| table.tree(place).clone()).collect();
        let threads = shared.hurried_writers();
        let seed = std::collections::hash_map::RandomState::new().hash_one(table.name());
        let mut check =
            IndexCheck { shared, table: table.clone(), trees, wanted: Vec::new(), seed, sort_bytes, threads };
        check.wanted = check.sinks(1);
        check
    }
}

impl IndexCheck {
    /// For one of `threads`.
    fn sinks(&self, threads: usize) -> Vec<Sink> {
        let sink = |_: &Arc<Tree>| match self.sort_bytes {
            None => Sink::Sum(Sum::new(self.seed)),
            Some(bytes) => {
                let each = (bytes / threads.max(1) as u64).max(LEAST_SORT_BYTES) as usize;
                Sink::Sort(self.shared.sorter(each, false))
            }
        };
        self.trees.iter().map(sink).collect()
    }

    /// An entry that a row makes in the `part`-th of the trees.
    ///
    /// # Panics
    /// If there is no such part.
    pub fn add(&mut self, part: usize, key: &[u8], value: &[u8]) -> Result<()> {
        self.wanted[part].add(key, value)
    }

    /// All rows that `txn` sees, taken apart by what `maker` gives on each thread, as in
    /// [`crate::engine::TreeBuild::feed`].
    pub fn feed<M>(
        &mut self,
        txn: &mut Transaction,
        maker: impl Fn() -> Result<M> + Sync,
        watch: impl Fn(u64) -> Result<()> + Sync,
    ) -> Result<()>
    where
        M: FnMut(&[u8], &[u8], &mut Feed) -> Result<()>,
    {
        let rows = self.table.tree(0).clone();
        let sinks = |threads| self.sinks(threads);
        txn.show_writes(&rows, None)?;
        let reader = txn.reader(View::Snapshot);
        let fed = feed_rows((&rows, reader), self.threads, sinks, maker, watch)?;
        for feed in fed {
            debug_assert_eq!(feed.parts(), self.wanted.len(), "entries of a tree would be left out");
            for (all, part) in self.wanted.iter_mut().zip(feed.into_parts()) {
                match (all, part) {
                    (Sink::Sort(all), Sink::Sort(part)) => all.absorb(part)?,
                    (Sink::Sum(all), Sink::Sum(part)) => all.join(&part),
                    _ => {}
                }
            }
        }
        Ok(())
    }

    /// Reads the trees as `txn` sees them, and compares sums. `watch` is told how many entries were read.
    pub fn sums(
        &self,
        txn: &mut Transaction,
        watch: impl Fn(u64) -> Result<()> + Sync,
    ) -> Result<Vec<IndexCount>> {
        self.trees.iter().try_for_each(|tree| check_age(txn, tree))?;
        let reader = txn.reader(View::Snapshot);
        let watch = Watch::new(&watch);
        let left = Mutex::new((0..self.trees.len()).collect::<Vec<_>>());
        let found = Mutex::new(vec![Sum::new(self.seed); self.trees.len()]);
        let work = || loop {
            let Some(part) = left.lock().pop() else { return Ok(()) };
            let mut sum = Sum::new(self.seed);
            each_entry(&self.trees[part], &reader, &watch, |key, value| {
                sum.add(key, value);
                Ok(())
            })?;
            found.lock()[part] = sum;
        };
        crate::threads::share(self.threads.min(self.trees.len()), "teak-compare", || watch.outcome(work()))?;
        let count = |(wanted, found): (&Sink, Sum)| match wanted {
            Sink::Sum(sum) => IndexCount { wanted: sum.entries, found: found.entries, equal: *sum == found },
            Sink::Sort(sorter) => IndexCount { wanted: sorter.entries(), found: found.entries, equal: false },
            Sink::Keep(_) => IndexCount { wanted: 0, found: found.entries, equal: false },
        };
        Ok(self.wanted.iter().zip(found.into_inner()).map(count).collect())
    }

    /// Gives `each` what differs, part by part in the order of keys, until it returns `false`, which ends the part.
    ///
    /// # Panics
    /// If the check has no memory to sort: it has sums only, and would say that nothing differs.
    pub fn differences(
        self,
        txn: &mut Transaction,
        mut each: impl FnMut(usize, Difference<'_>) -> Result<bool>,
        watch: impl Fn(u64) -> Result<()> + Sync,
    ) -> Result<()> {
        assert!(self.sort_bytes.is_some(), "differences of sums");
        let IndexCheck { trees, wanted, .. } = self;
        let watch = Watch::new(&watch);
        for (part, (tree, wanted)) in trees.iter().zip(wanted).enumerate() {
            let Sink::Sort(wanted) = wanted else { continue };
            check_age(txn, tree)?;
            let reader = txn.reader(View::Snapshot);
            compare(wanted, tree, &reader, &watch, &mut |difference| each(part, difference))?;
        }
        Ok(())
    }
}

/// A snapshot that is older than the tree cannot say what is in it.
fn check_age(txn: &mut Transaction, tree: &Arc<Tree>) -> Result<()> {
    txn.show_writes(tree, None)?;
    match txn.reader(View::Snapshot).snapshot < tree.visible_from() {
        true => Err(Error::TableChanged),
        false => Ok(()),
    }
}

fn each_entry(
    tree: &Arc<Tree>,
    reader: &Reader<'_>,
    watch: &Watch<'_>,
    mut take: impl FnMut(&[u8], &[u8]) -> Result<()>,
) -> Result<()> {
    let mut cursor = TreeCursor::new(tree.clone());
    let mut found = cursor.first(reader)?;
    let mut entries = 0;
    while found {
        take(cursor.key(), cursor.value()?)?;
        entries += 1;
        if !watch.goes_on(entries)? {
            return Ok(());
        }
        found = cursor.next(reader)?;
    }
    Ok(())
}

/// Merges what the rows make with what is there.
fn compare(
    wanted: Sorter,
    tree: &Arc<Tree>,
    reader: &Reader<'_>,
    watch: &Watch<'_>,
    each: &mut dyn FnMut(Difference<'_>) -> Result<bool>,
) -> Result<()> {
    use std::cmp::Ordering::{Equal, Greater, Less};
    let mut wanted = wanted.finish()?;
    let mut cursor = TreeCursor::new(tree.clone());
    let mut is_there = cursor.first(reader)?;
    let mut is_wanted = wanted.advance()?;
    let mut steps = 0;
    while is_there || is_wanted {
        steps += 1;
        if !watch.goes_on(steps)? {
            return Ok(());
        }
        let order = match (is_wanted, is_there) {
            (true, true) => wanted.entry().0.cmp(cursor.key()),
            (true, false) => Less,
            (false, _) => Greater,
        };
        let goes_on = match order {
            Less => {
                let (key, value) = wanted.entry();
                each(Difference::Missing { key, value })?
            }
            Greater => each(Difference::Unexpected { key: cursor.key(), value: cursor.value()? })?,
            Equal => {
                let ((key, wanted), found) = (wanted.entry(), cursor.value()?);
                wanted == found || each(Difference::Other { key, wanted, found })?
            }
        };
        if !goes_on {
            return Ok(());
        }
        if order != Greater {
            is_wanted = wanted.advance()?;
        }
        if order != Less {
            is_there = cursor.next(reader)?;
        }
    }
    Ok(())
}
