//! Building indexes, or a whole table, while others write the rows.
//!
//! ```text
//! begin    the rows are followed (followed.rs), a snapshot is taken          nobody writes for this moment
//! build    TreeBuild fills the trees with the entries of that snapshot       writers go on
//! catch up what was written between a snapshot and the next is put into      writers go on, but for the last time
//!          the trees; again, until little is left
//! finish   no key is there twice
//! ```
//!
//! A turn of catching up has the keys of rows that were written since the snapshot before it. Of each it reads the row
//! as of that snapshot and as of its own, has both taken apart into entries, and keeps those in which the two differ.
//! These are sorted by tree and key, and written by transactions as any other. So it does not matter how often a row
//! was written, by whom, or whether that was undone: whoever writes only tells which keys to look at, and only the
//! build knows what an index is made of.
//!
//! Uniqueness is judged by what snapshots see, not by what happens between two. A key that two rows have as of a turn
//! goes to one of them; the entry of the other waits for the next turn, and is an error only if it waits when the build
//! is finished.
//!
//! Nobody reads the trees before the build is finished, and nobody else writes to them. After a crash before the caller
//! has said that they count they are to be dropped.
//!
//! The trees may be those of another table, its rows among them: an entry of the row tree is a row under its new key.
//! That table takes the first one's place when it is finished ([`crate::engine::Engine::change`]).

use super::build::TreeBuild;
use super::feed::{Feed, Kept, Sink};
use crate::engine::data::followed::{FollowedKeys, Turn};
use crate::engine::data::tables::Table;
use crate::engine::data::view::FixedView;
use crate::engine::data::watch::Watch;
use crate::engine::shared::{Engine, Shared};
use crate::engine::txn::cursor::Cursor;
use crate::engine::txn::transaction::Transaction;
use crate::sort::Sorter;
use crate::tree::{Reader, Tree, TreeCursor};
use crate::types::{Isolation, TxnId, View, WriteOp};
use crate::{Error, Result};
use std::collections::BTreeSet;
use std::sync::Arc;

/// Entries that may wait because another row has their key; with more than these the keys are not unique.
const MOST_WAITING: usize = if cfg!(test) { 10 } else { 1000 };
/// Writes that are committed at a time.
const WRITES: usize = if cfg!(test) { 10 } else { 10_000 };
/// The part of the memory for sorting in which keys are noted while trees are built.
const PART_FOR_KEYS: u64 = 8;
/// Memory for keys, at least, in bytes.
const LEAST_BYTES: u64 = 256 << 10;

/// Entries that are not in the trees: part, key, value.
type Waiting = BTreeSet<(usize, Vec<u8>, Vec<u8>)>;

/// A build of indexes beside writers. Dropped unfinished it leaves what it has written in the trees.
pub struct OnlineBuild {
    shared: Arc<Shared>,
    /// Whose rows are read, and whose trees are filled: kept open.
    table: Arc<Table>,
    into: Arc<Table>,
    trees: Vec<Arc<Tree>>,
    sort_bytes: u64,
    label: u64,
    keys: Arc<FollowedKeys>,
    /// What the trees have the entries of.
    view: Arc<FixedView>,
    /// Entries of the rows of that view which are not in the trees, as other rows have their keys.
    waiting: Waiting,
}

impl Engine {
    /// Begins to build `trees` of `into`, which are empty, from the rows of `table` (its first tree), and to follow
    /// these. `into` may be the same table, or another that nobody else uses. Until it returns nobody may write to
    /// `table`, or have written to it and be undecided: [`Error::Undecided`] if a prepared transaction has. About
    /// `sort_bytes` of memory are used at a time. `label` names who builds in [`Engine::snapshots`]: while the build is
    /// under way it has a snapshot, which may have to give way as any other.
    ///
    /// # Panics
    /// If there is no such tree.
    pub fn build_online(
        &self,
        table: &Arc<Table>,
        into: &Arc<Table>,
        trees: &[usize],
        sort_bytes: u64,
        label: u64,
    ) -> Result<OnlineBuild> {
        let shared = &self.shared;
        shared.health.check()?;
        let rows = table.tree(0).id();
        shared.undecided.intents.check(&[rows])?;
        let bytes = (sort_bytes / PART_FOR_KEYS).max(LEAST_BYTES) as usize;
        let keys = shared.data.followed.begin(shared, rows, bytes).ok_or(Error::WouldBlock)?;
        Ok(OnlineBuild {
            shared: shared.clone(),
            table: table.clone(),
            into: into.clone(),
            trees: trees.iter().map(|&place| into.tree(place).clone()).collect(),
            sort_bytes: sort_bytes - (sort_bytes / PART_FOR_KEYS),
            label,
            keys,
            view: Arc::new(FixedView::new(shared, label)),
            waiting: BTreeSet::new(),
        })
    }
}

impl Drop for OnlineBuild {
    fn drop(&mut self) {
        self.shared.data.followed.end(self.table.tree(0).id());
    }
}

impl OnlineBuild {
    /// Fills the trees with the entries of the first snapshot. To be finished before [`OnlineBuild::catch_up`].
    pub fn build(&self) -> Result<TreeBuild> {
        let view = Some(self.view.clone());
        TreeBuild::of(self.shared.clone(), &self.into, &self.trees, self.sort_bytes, view)
    }

    /// Keys that the next [`OnlineBuild::catch_up`] has to look at so far, each as often as it was written.
    pub fn noted(&self) -> u64 {
        self.keys.noted()
    }

    /// The row with this key as of the snapshot whose entries the trees have.
    pub fn row(&self, key: &[u8]) -> Result<Option<Vec<u8>>> {
        let rows = self.table.tree(0);
        let mut cursor = TreeCursor::new(rows.clone());
        match cursor.get(&self.view.reader(rows)?, key)? {
            true => Ok(Some(cursor.value()?.to_vec())),
            false => Ok(None),
        }
    }

    /// Brings the trees up to a new snapshot; how many keys of rows were looked at. `make` takes rows apart, as in
    /// [`TreeBuild::feed`]; `watch` is told, now and then, how many keys and entries are done, and its error ends the
    /// build. [`Error::DuplicateEntry`] if far too many rows have one key.
    pub fn catch_up(
        &mut self,
        make: impl FnMut(&[u8], &[u8], &mut Feed) -> Result<()>,
        watch: impl Fn(u64) -> Result<()> + Sync,
    ) -> Result<u64> {
        let Turn { view, keys, again } = self.keys.turn(&self.shared, self.label)?;
        debug_assert!(view.timestamp() >= self.view.timestamp(), "a turn goes back");
        let watch = Watch::new(&watch);
        let rows = self.table.tree(0).clone();
        let mut differences = Differences::new(self, make);
        let mut looked_at = 0;
        {
            let (before, after) = (self.view.reader(&rows)?, view.reader(&rows)?);
            let mut sorted = keys.finish()?;
            let mut last: Option<Vec<u8>> = None;
            let (mut old, mut new) = (TreeCursor::new(rows.clone()), TreeCursor::new(rows.clone()));
            while sorted.advance()? {
                let (key, writer) = sorted.entry();
                if let Some(writer) = writer_of(writer).filter(|writer| again.contains_key(writer)) {
                    self.keys.put_back(key, writer);
                }
                if last.as_deref() == Some(key) {
                    continue;
                }
                debug_assert!(last.as_deref().is_none_or(|last| last < key), "a row is looked at twice");
                let last = last.get_or_insert_default();
                last.clear();
                last.extend_from_slice(key);
                differences.look((&mut old, &before), (&mut new, &after), key)?;
                looked_at += 1;
                watch.goes_on(looked_at)?;
            }
        }
        let differences = differences.found;
        self.view = Arc::new(view);
        self.write(differences, &watch)?;
        Ok(looked_at)
    }

    /// After the last time of catching up, since which nobody has written: [`Error::DuplicateEntry`] if two rows have
    /// one key. Otherwise the trees are as if they had been kept up all the time, for snapshots from now on.
    pub fn finish(&mut self) -> Result<()> {
        if let Some((part, key, value)) = self.waiting.first().cloned() {
            return Err(Error::DuplicateEntry { part, key, value });
        }
        self.trees.iter().for_each(|tree| tree.hide_from_older_snapshots());
        Ok(())
    }

    /// Writes the differences, and those that have waited.
    fn write(&mut self, mut differences: Sorter, watch: &Watch<'_>) -> Result<()> {
        for (part, key, value) in std::mem::take(&mut self.waiting) {
            push(&mut differences, part, Change::Waits, &key, &value)?;
        }
        let mut sorted = differences.finish()?;
        let mut writer = Writer::new(self);
        let mut group = Group::default();
        let mut done = 0;
        while sorted.advance()? {
            let (place, change) = sorted.entry();
            debug_assert!(&*group.place <= place, "a key is changed in two groups");
            if group.place != place {
                writer.settle(&mut group)?;
                group.place.extend_from_slice(place);
            }
            group.add(change)?;
            done += 1;
            watch.goes_on(done)?;
        }
        writer.settle(&mut group)?;
        self.waiting = writer.finish()?;
        Ok(())
    }
}

fn writer_of(bytes: &[u8]) -> Option<TxnId> {
    bytes.try_into().ok().map(TxnId::from_le_bytes)
}

/// What becomes of an entry.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Change {
    /// The row has it no more.
    Goes = 0,
    /// The row has it now.
    Comes = 1,
    /// The row had it before, and it is not in the tree.
    Waits = 2,
}

/// Sorted by part and key: the entries of one key are changed together.
fn push(to: &mut Sorter, part: usize, change: Change, key: &[u8], value: &[u8]) -> Result<()> {
    let place = [&(part as u32).to_be_bytes(), key].concat();
    to.push(&place, &[&[change as u8], value].concat())
}

/// Entries in which rows as of two snapshots differ.
struct Differences<M> {
    make: M,
    old: Feed,
    new: Feed,
    found: Sorter,
}

impl<M: FnMut(&[u8], &[u8], &mut Feed) -> Result<()>> Differences<M> {
    fn new(build: &OnlineBuild, make: M) -> Differences<M> {
        let feed = || Feed::new(build.trees.iter().map(|_| Sink::Keep(Kept::default())).collect());
        let bytes = (build.sort_bytes / 2).max(LEAST_BYTES) as usize;
        let found = build.shared.sorter(bytes, build.shared.background);
        Differences { make, old: feed(), new: feed(), found }
    }

    /// The row `key` as each of the two readers has it.
    fn look(
        &mut self,
        (old, before): (&mut TreeCursor, &Reader<'_>),
        (new, after): (&mut TreeCursor, &Reader<'_>),
        key: &[u8],
    ) -> Result<()> {
        let (was, is) = (old.get(before, key)?, new.get(after, key)?);
        if was && is && old.value()? == new.value()? {
            return Ok(());
        }
        for (feed, cursor, there) in [(&mut self.old, old, was), (&mut self.new, new, is)] {
            kept(feed).for_each(|kept| kept.there = false);
            if there {
                (self.make)(key, cursor.value()?, feed)?;
            }
        }
        for (part, (old, new)) in kept(&mut self.old).zip(kept(&mut self.new)).enumerate() {
            if old.there == new.there && (!old.there || (old.key == new.key && old.value == new.value)) {
                continue;
            }
            for (entry, change) in [(old, Change::Goes), (new, Change::Comes)] {
                if entry.there {
                    push(&mut self.found, part, change, &entry.key, &entry.value)?;
                }
            }
        }
        Ok(())
    }
}

/// The entries of a row, by part.
fn kept(feed: &mut Feed) -> impl Iterator<Item = &mut Kept> {
    feed.parts_mut().iter_mut().filter_map(|sink| match sink {
        Sink::Keep(kept) => Some(kept),
        Sink::Sort(_) | Sink::Sum(_) => None,
    })
}

/// All changes of one key of one tree.
#[derive(Default)]
struct Group {
    /// Part and key.
    place: Vec<u8>,
    gone: Vec<Vec<u8>>,
    waited: Vec<Vec<u8>>,
    come: Vec<Vec<u8>>,
}

impl Group {
    fn add(&mut self, change: &[u8]) -> Result<()> {
        let Some((&kind, value)) = change.split_first() else { return Ok(()) };
        if kind == Change::Goes as u8 {
            self.gone.push(value.to_vec());
        } else if kind == Change::Waits as u8 {
            self.waited.push(value.to_vec());
        } else {
            debug_assert_eq!(kind, Change::Comes as u8, "no change of an entry");
            self.come.push(value.to_vec());
        }
        match (self.waited.len() + self.come.len() > MOST_WAITING, self.place.split_first_chunk::<4>()) {
            (true, Some((part, key))) => {
                let part = u32::from_be_bytes(*part) as usize;
                Err(Error::DuplicateEntry { part, key: key.to_vec(), value: value.to_vec() })
            }
            _ => Ok(()),
        }
    }
}

/// Changes the trees, by transactions.
struct Writer<'a> {
    build: &'a OnlineBuild,
    txn: Transaction,
    writes: usize,
    cursors: Vec<Cursor>,
    waiting: Waiting,
}

impl<'a> Writer<'a> {
    fn new(build: &'a OnlineBuild) -> Writer<'a> {
        let cursors = build.trees.iter().map(|tree| Cursor::new(tree.clone())).collect();
        Writer { build, txn: transaction(build), writes: 0, cursors, waiting: BTreeSet::new() }
    }

    /// Makes the changes of a group, which is empty then.
    fn settle(&mut self, group: &mut Group) -> Result<()> {
        let Group { place, gone, mut waited, come } = std::mem::take(group);
        let Some((part, key)) = place.split_first_chunk::<4>() else { return Ok(()) };
        let part = u32::from_be_bytes(*part) as usize;
        let tree = &self.build.trees[part];
        let cursor = &mut self.cursors[part];
        let there = cursor.get(&mut self.txn, View::Latest, key)?;
        let before = there.then(|| cursor.value().map(<[u8]>::to_vec)).transpose()?;
        let mut now = before.clone();
        for value in gone {
            if now.as_ref() == Some(&value) {
                now = None;
            } else if let Some(at) = waited.iter().position(|other| *other == value) {
                waited.remove(at);
            } else {
                let what = "what is being built lacks the entry of a row";
                return Err(Error::corrupt(tree.space().path(), 0, what));
            }
        }
        for value in waited.into_iter().rev().chain(come) {
            match now {
                None => now = Some(value),
                Some(_) if self.waiting.len() >= MOST_WAITING => {
                    return Err(Error::DuplicateEntry { part, key: key.to_vec(), value })
                }
                Some(_) => drop(self.waiting.insert((part, key.to_vec(), value))),
            }
        }
        let op = match (&before, &now) {
            (None, Some(value)) => WriteOp::Insert(value),
            (Some(_), None) => WriteOp::Delete,
            (Some(before), Some(value)) if before != value => WriteOp::Update(value),
            _ => return Ok(()),
        };
        self.txn.aim(cursor);
        self.txn.write(tree, key, op)?;
        self.writes += 1;
        if self.writes.is_multiple_of(WRITES) {
            std::mem::replace(&mut self.txn, transaction(self.build)).commit()?;
        }
        Ok(())
    }

    /// Entries that wait.
    fn finish(self) -> Result<Waiting> {
        self.txn.commit()?;
        Ok(self.waiting)
    }
}

fn transaction(build: &OnlineBuild) -> Transaction {
    Transaction::new(build.shared.clone(), Isolation::ReadCommitted)
}
