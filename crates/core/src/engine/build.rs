//! Filling empty trees from entries in any order: external sort, then [`TreeLoader`], then a checkpoint.
//!
//! Nothing of it goes to the log. When [`TreeBuild::finish`] returns, a checkpoint has made the trees durable; after a
//! crash before that they are empty. A few entries are not worth a checkpoint, which writes whatever else is dirty:
//! they are written by a transaction. Whoever uses trees that were built tells so durably *afterwards* (see
//! [`super::Engine::alter_table`]), or drops the table if the build did not come to its end.

use super::checkpoints::Urgency;
use super::shared::Shared;
use super::tables::Table;
use super::transaction::Transaction;
use super::watch::Watch;
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
    pub(super) threads: usize,
}

impl TreeBuild {
    pub(super) fn new(
        shared: Arc<Shared>,
        table: &Arc<Table>,
        trees: &[usize],
        sort_bytes: u64,
    ) -> Result<TreeBuild> {
        shared.health.check()?;
        let written: Vec<TreeId> = table.all_trees().iter().map(|tree| tree.id()).collect();
        shared.intents.check(&written)?;
        let each = (sort_bytes / trees.len().max(1) as u64).max(LEAST_SORT_BYTES) as usize;
        let part = |(number, &place): (usize, &usize)| Part {
            number,
            tree: table.tree(place).clone(),
            sorter: Sorter::new(shared.context.spill.clone(), each, shared.background),
        };
        let parts = trees.iter().enumerate().map(part).collect();
        let threads = shared.hurried_writers();
        Ok(TreeBuild { table: table.clone(), parts, sort_bytes: each, threads, shared })
    }

    /// For one of `threads` that sort entries of all parts at a time.
    pub(super) fn sorters(&self, threads: usize) -> Vec<Sorter> {
        let each = (self.sort_bytes / threads.max(1)).max(LEAST_SORT_BYTES as usize);
        // They are busy all the time: a thread beside each would gain nothing.
        let sorter = |_| Sorter::new(self.shared.context.spill.clone(), each, false);
        self.parts.iter().map(sorter).collect()
    }

    /// Takes over the entries of sorters that [`TreeBuild::sorters`] made.
    pub(super) fn take(&mut self, sorters: Vec<Sorter>) -> Result<()> {
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

    /// Sorts and loads, several trees at a time, and makes a checkpoint. `watch` is told, now and then, how many
    /// entries are loaded; its error ends the build. After any error, [`Error::DuplicateEntry`] if two entries of a
    /// tree have one key, the trees are not to be used.
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
        let TreeBuild { shared, table, parts, threads, .. } = self;
        let trees: Vec<Arc<Tree>> = parts.iter().map(|part| part.tree.clone()).collect();
        let loaders = threads.min(parts.len());
        // The largest first, so that no thread is left with it at the end.
        let mut queue = parts;
        queue.sort_by_key(|part| part.sorter.entries());
        let queue = Mutex::new(queue);
        let work = || -> Result<()> {
            loop {
                let Some(part) = queue.lock().pop() else { return Ok(()) };
                load(part, watch)?;
            }
        };
        crate::threads::share(loaders, "teak-build", || watch.outcome(work()))?;
        shared.mark_dirty(trees.iter());
        let durable = shared.checkpoint(false, Urgency::Awaited);
        drop(table);
        durable
    }
}

fn load(part: Part, watch: &Watch<'_>) -> Result<()> {
    let tree = part.tree.clone();
    let mut loader = TreeLoader::new(&tree);
    let (mut loaded, mut stopped) = (0, false);
    let outcome = part.sorted(|key, value| {
        loaded += 1;
        stopped = !watch.goes_on(loaded)?;
        match stopped {
            false => loader.push(key, value),
            true => Err(Error::Interrupted),
        }
    });
    if stopped {
        // What counts is why another thread has failed.
        return Ok(());
    }
    outcome?;
    let entries = loader.finish()?;
    tree.add_entries(entries as i64);
    Ok(())
}

impl Part {
    /// Gives the entries to `take` in the order of their keys, of which no two are alike.
    fn sorted(self, mut take: impl FnMut(&[u8], &[u8]) -> Result<()>) -> Result<()> {
        let mut sorted = self.sorter.finish()?;
        let mut last: Option<(Vec<u8>, Vec<u8>)> = None;
        while sorted.advance()? {
            let (key, value) = sorted.entry();
            if let Some((_, before)) = last.as_ref().filter(|(last, _)| *last == key) {
                // The sort leaves open which comes first; the error does not.
                let value = value.min(&before[..]).to_vec();
                return Err(Error::DuplicateEntry { part: self.number, value });
            }
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
