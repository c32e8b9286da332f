//! Filling empty trees from entries in any order: external sort, then [`TreeLoader`], then a checkpoint.
//!
//! Nothing of it goes to the log. When [`TreeBuild::finish`] returns, a checkpoint has made the trees durable; after a
//! crash before that they are empty. A few entries are not worth a checkpoint, which writes whatever else is dirty:
//! they are written by a transaction. Whoever uses trees that were built tells so durably *afterwards* (see
//! [`crate::engine::Engine::change`]), or drops the table if the build did not come to its end.

use crate::engine::care::checkpoints::Urgency;
use crate::engine::data::tables::Table;
use crate::engine::data::view::FixedView;
use crate::engine::data::watch::Watch;
use crate::engine::shared::Shared;
use crate::engine::txn::transaction::Transaction;
use crate::sort::Sorter;
use crate::sync::Mutex;
use crate::tree::{Tree, TreeLoader};
use crate::types::{Isolation, TreeId, WriteOp};
use crate::{Error, Result};
use std::sync::Arc;

/// Less memory than this for one tree makes runs that are not worth their overhead, in bytes.
const LEAST_SORT_BYTES: u64 = 256 << 10;

/// Builds of fewer entries are logged.
const LOGGED_ENTRIES: u64 = if cfg!(test) { 100 } else { 10_000 };

/// Entries of a part after which it looks whether it is still wanted.
const BETWEEN_LOOKS: u64 = 1024;

struct Part {
    number: usize,
    tree: Arc<Tree>,
    sorter: Sorter,
}

/// A build under way. Dropped unfinished it leaves the trees empty.
pub struct TreeBuild {
    shared: Arc<Shared>,
    /// Keeps the table open.
    table: Arc<Table>,
    parts: Vec<Part>,
    /// Memory for sorting the entries of one tree.
    sort_bytes: usize,
    /// How many work for it at a time.
    pub(in crate::engine) threads: usize,
    /// Of an online build: what the rows are read as of.
    pub(in crate::engine) view: Option<Arc<FixedView>>,
}

impl TreeBuild {
    pub(in crate::engine) fn new(
        shared: Arc<Shared>,
        table: &Arc<Table>,
        trees: &[usize],
        sort_bytes: u64,
    ) -> Result<TreeBuild> {
        let written: Vec<TreeId> = table.all_trees().iter().map(|tree| tree.id()).collect();
        shared.undecided.intents.check(&written)?;
        let trees: Vec<Arc<Tree>> = trees.iter().map(|&place| table.tree(place).clone()).collect();
        TreeBuild::of(shared, table, &trees, sort_bytes, None)
    }

    /// Of rows as they are, or as `view` has them.
    pub(in crate::engine) fn of(
        shared: Arc<Shared>,
        table: &Arc<Table>,
        trees: &[Arc<Tree>],
        sort_bytes: u64,
        view: Option<Arc<FixedView>>,
    ) -> Result<TreeBuild> {
        shared.health.check()?;
        let is_its = |tree: &Arc<Tree>| table.all_trees().iter().any(|its| Arc::ptr_eq(its, tree));
        debug_assert!(trees.iter().all(is_its), "a tree of another table is built");
        let each = (sort_bytes / trees.len().max(1) as u64).max(LEAST_SORT_BYTES) as usize;
        let part = |(number, tree): (usize, &Arc<Tree>)| Part {
            number,
            tree: tree.clone(),
            sorter: shared.sorter(each, shared.background),
        };
        let parts = trees.iter().enumerate().map(part).collect();
        let threads = shared.hurried_writers();
        Ok(TreeBuild { table: table.clone(), parts, sort_bytes: each, threads, view, shared })
    }

    /// Rows are taken apart on the thread that feeds the build, and on no other.
    pub fn use_one_thread(&mut self) {
        self.threads = 1;
    }

    /// For one of `threads` that sort entries of all parts at a time.
    pub(in crate::engine) fn sorters(&self, threads: usize) -> Vec<Sorter> {
        let each = (self.sort_bytes / threads.max(1)).max(LEAST_SORT_BYTES as usize);
        // They are busy all the time: a thread beside each would gain nothing.
        let sorter = |_| self.shared.sorter(each, false);
        self.parts.iter().map(sorter).collect()
    }

    /// Takes over the entries of sorters that [`TreeBuild::sorters`] made.
    pub(in crate::engine) fn take(&mut self, sorters: Vec<Sorter>) -> Result<()> {
        debug_assert_eq!(sorters.len(), self.parts.len(), "entries of a tree would be left out");
        self.parts.iter_mut().zip(sorters).try_for_each(|(part, sorter)| part.sorter.absorb(sorter))
    }

    /// Adds an entry to the `part`-th of the trees.
    ///
    /// # Panics
    /// If there is no such part.
    pub fn add(&mut self, part: usize, key: &[u8], value: &[u8]) -> Result<()> {
        self.parts[part].sorter.push(key, value)
    }

    /// Entries of all trees so far.
    pub fn entries(&self) -> u64 {
        self.parts.iter().map(|part| part.sorter.entries()).sum()
    }

    /// Sorts and loads, several trees at a time, and makes a checkpoint unless the build is online. `watch` is told,
    /// now and then, how many entries are loaded; its error ends the build. After any error, [`Error::DuplicateEntry`]
    /// if two entries of a tree have one key, the trees are not to be used.
    pub fn finish(self, watch: impl Fn(u64) -> Result<()> + Sync) -> Result<()> {
        match self.entries() < LOGGED_ENTRIES {
            true => self.write(),
            false => self.load(&Watch::new(&watch)),
        }
    }

    /// By a transaction, as any other write.
    fn write(self) -> Result<()> {
        let trees: Vec<Arc<Tree>> = self.parts.iter().map(|part| part.tree.clone()).collect();
        let mut txn = Transaction::new(self.shared.clone(), Isolation::ReadCommitted);
        for part in self.parts {
            let tree = part.tree.clone();
            if !tree.is_empty()? {
                return Err(Error::corrupt(tree.space().path(), 0, "a build of a tree that is not empty"));
            }
            part.sorted(|key, value| txn.write(&tree, key, WriteOp::Insert(value)))?;
        }
        txn.commit()?;
        trees.iter().for_each(|tree| tree.hide_from_older_snapshots());
        Ok(())
    }

    fn load(self, watch: &Watch<'_>) -> Result<()> {
        let TreeBuild { shared, table, parts, threads, view, .. } = self;
        let trees: Vec<Arc<Tree>> = parts.iter().map(|part| part.tree.clone()).collect();
        let by_transaction = view.is_some() || !table.is_logged();
        let loaders = threads.min(parts.len());
        // The largest first, so that no thread is left with it at the end.
        let mut queue = parts;
        queue.sort_by_key(|part| part.sorter.entries());
        let queue = Mutex::new(queue);
        let duplicates = Duplicates::default();
        let work = || -> Result<()> {
            loop {
                let Some(part) = queue.lock().pop() else { return Ok(()) };
                let number = part.number;
                let outcome = match by_transaction {
                    true => append(&shared, part, &duplicates, watch),
                    false => load(part, &duplicates, watch),
                };
                duplicates.note(number, outcome)?;
            }
        };
        crate::threads::share(loaders, "teak-build", || watch.outcome(work()))?;
        duplicates.outcome()?;
        if view.is_some() {
            return Ok(());
        }
        if by_transaction {
            trees.iter().for_each(|tree| tree.hide_from_older_snapshots());
            return Ok(());
        }
        shared.mark_dirty(trees.iter());
        let durable = shared.checkpoint(false, Urgency::Awaited);
        drop(table);
        durable
    }
}

/// Of all keys that two entries have, which one is told: of the first of the parts, however fast each is.
#[derive(Default)]
struct Duplicates(Mutex<Option<(usize, Error)>>);

impl Duplicates {
    /// Whether a part before this one has some: then it is given up.
    fn precede(&self, number: usize) -> bool {
        self.0.lock().as_ref().is_some_and(|(first, _)| *first < number)
    }

    /// The other parts go on after a duplicate.
    fn note(&self, number: usize, outcome: Result<()>) -> Result<()> {
        match outcome {
            Err(Error::Interrupted) if self.precede(number) => Ok(()),
            Err(error @ Error::DuplicateEntry { .. }) => {
                if !self.precede(number) {
                    *self.0.lock() = Some((number, error));
                }
                Ok(())
            }
            outcome => outcome,
        }
    }

    fn outcome(self) -> Result<()> {
        self.0.into_inner().map_or(Ok(()), |(_, error)| Err(error))
    }
}

/// By a transaction whose blocks the log names: a checkpoint would write what others have changed meanwhile as well, in
/// all tables.
fn append(shared: &Arc<Shared>, part: Part, duplicates: &Duplicates, watch: &Watch<'_>) -> Result<()> {
    let tree = part.tree.clone();
    let mut txn = Transaction::new(shared.clone(), Isolation::ReadCommitted);
    match part.watched(duplicates, watch, |key, value| txn.append(&tree, key, value))? {
        Some(_) => txn.commit(),
        None => Ok(()),
    }
}

fn load(part: Part, duplicates: &Duplicates, watch: &Watch<'_>) -> Result<()> {
    let tree = part.tree.clone();
    let mut loader = TreeLoader::new(&tree);
    if let Some(taken) = part.watched(duplicates, watch, |key, value| loader.push(key, value))? {
        let entries = loader.finish()?;
        debug_assert_eq!(entries, taken, "not all entries are in the tree");
        tree.add_entries(entries as i64);
    }
    Ok(())
}

impl Part {
    /// Like [`Part::sorted`], and tells `watch`; how many there were. `None`: what counts is why another thread has
    /// failed.
    fn watched(
        self,
        duplicates: &Duplicates,
        watch: &Watch<'_>,
        mut take: impl FnMut(&[u8], &[u8]) -> Result<()>,
    ) -> Result<Option<u64>> {
        let (mut taken, mut stopped) = (0u64, false);
        let number = self.number;
        let outcome = self.sorted(|key, value| {
            taken += 1;
            if taken % BETWEEN_LOOKS == 0 && duplicates.precede(number) {
                return Err(Error::Interrupted);
            }
            stopped = !watch.goes_on(taken)?;
            match stopped {
                false => take(key, value),
                true => Err(Error::Interrupted),
            }
        });
        match stopped {
            true => Ok(None),
            false => outcome.map(|()| Some(taken)),
        }
    }

    /// Gives the entries to `take` in the order of their keys, of which no two are alike.
    fn sorted(self, mut take: impl FnMut(&[u8], &[u8]) -> Result<()>) -> Result<()> {
        let mut sorted = self.sorter.finish()?;
        let mut last: Option<(Vec<u8>, Vec<u8>)> = None;
        while sorted.advance()? {
            let (key, value) = sorted.entry();
            if let Some((_, before)) = last.as_ref().filter(|(last, _)| *last == key) {
                // The sort leaves open which comes first; the error does not.
                let (key, value) = (key.to_vec(), value.min(&before[..]).to_vec());
                return Err(Error::DuplicateEntry { part: self.number, key, value });
            }
            debug_assert!(last.as_ref().is_none_or(|(last, _)| last[..] < *key), "entries are not sorted");
            take(key, value)?;
            let (last_key, last_value) = last.get_or_insert_default();
            last_key.clear();
            last_key.extend_from_slice(key);
            last_value.clear();
            last_value.extend_from_slice(value);
        }
        Ok(())
    }
}
