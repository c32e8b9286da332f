//! Index entries of a statement with many rows: they are gathered, sorted by key, and pushed onto the leaves in runs.
//!
//! Entries that come in the order of the rows go to and fro in the index, and each costs a descent and a search in a
//! delta that is in no processor's cache. What is gathered costs them once for all that go to one leaf.
//!
//! An entry has its number and is in the redo as soon as it is written; only the tree waits. What is gathered is
//! nobody's to see. The transaction's own reads of a tree, and its other writes to it, have it pushed first; so has its
//! end. A rollback to a savepoint drops what came after it, as the numbers ascend. Others do not meet it: who locks a
//! range while an entry in it waits scans without it. Therefore the pusher looks for such ranges when the entries are
//! in the tree, and the transaction waits for their holders before it commits ([`Work::check_deferred`]); the same as
//! appended rows do.
//!
//! An entry of a unique index, and a row, may be a *claim*: the caller has locked its key and not looked whether it is
//! taken. That is done when the entries are pushed, where neighbours meet each other and look-ups find the leaves of
//! those before them.

use super::work::Work;
use crate::cache::Cache;
use crate::engine::shared::Shared;
use crate::lock::{LockOwner, WaitRequest};
use crate::mvcc::TxnStatus;
use crate::numbers::NumberMap;
use crate::tree::block::wide_head;
use crate::tree::{Reader, Tree, TreeCursor, Write, MAX_KEY_BYTES};
use crate::types::{TreeId, WriteOp};
use crate::{Error, Result};
use std::sync::Arc;

/// So many bytes are gathered, at most: entries that meet in one leaf should be many.
const MOST_BYTES: usize = 4 << 20;
/// And not more than this part of the cache.
const PART_OF_CACHE: u64 = 64;
/// Least bytes, however small the cache.
const LEAST_BYTES: usize = 64 << 10;
/// Longer rows do not wait, as they would have the room that many entries need.
const MOST_ROW_BYTES: usize = 1 << 10;
/// Writes that are handed to a tree at a time.
const RUN: usize = 1024;
/// Keys under ranges of others that are remembered one by one; of more, only where they lie.
const MOST_UNCHECKED: usize = 1000;

/// An entry, of which the key and behind it the value are in the arena.
#[derive(Clone, Copy)]
struct Entry {
    /// The first bytes of the key, for comparisons.
    head: u64,
    sequence: u32,
    at: u32,
    key_bytes: u16,
    value_bytes: u16,
    /// Its place among the trees.
    tree: u16,
    kind: Kind,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Insert,
    /// Which nobody may have put in before.
    Claim,
    Update,
    Delete,
}

impl Kind {
    fn op(self, value: &[u8]) -> WriteOp<'_> {
        match self {
            Kind::Insert | Kind::Claim => WriteOp::Insert(value),
            Kind::Update => WriteOp::Update(value),
            Kind::Delete => WriteOp::Delete,
        }
    }

    fn is_new(self) -> bool {
        matches!(self, Kind::Insert | Kind::Claim)
    }
}

/// Keys that lie in ranges which others have locked, or, in `between`, where they lie.
struct Unchecked {
    tree: Arc<Tree>,
    /// With the numbers of the writes.
    keys: Vec<(u32, Vec<u8>)>,
    between: Option<Between>,
}

/// From one key to another.
struct Between {
    /// The number of a write before all that lies there.
    since: u32,
    first: Vec<u8>,
    last: Vec<u8>,
}

/// Those of all trees.
#[derive(Default)]
struct UncheckedKeys {
    trees: NumberMap<TreeId, Unchecked>,
    /// Bytes that they take.
    memory: usize,
}

impl UncheckedKeys {
    fn of(&mut self, tree: &Arc<Tree>) -> &mut Unchecked {
        let unchecked = || Unchecked { tree: tree.clone(), keys: Vec::new(), between: None };
        self.trees.entry(tree.id()).or_insert_with(unchecked)
    }

    /// The key, which was written with this number, lies in a range that another transaction has locked.
    fn note(&mut self, tree: &Arc<Tree>, sequence: u32, key: &[u8]) {
        let of_tree = self.of(tree);
        let before = of_tree.memory();
        of_tree.add(sequence, key);
        self.memory += of_tree.memory().saturating_sub(before) + key.len();
    }

    /// Forgets what came after the write with this number.
    fn drop_after(&mut self, sequence: u32) {
        self.trees.retain(|_, unchecked| {
            unchecked.keys.retain(|(of, _)| *of <= sequence);
            unchecked.between.take_if(|between| sequence <= between.since);
            !unchecked.keys.is_empty() || unchecked.between.is_some()
        });
        let keys = |unchecked: &Unchecked| unchecked.keys.iter().map(|(_, key)| key.len()).sum::<usize>();
        self.memory = self.trees.values().map(|unchecked| unchecked.memory() + keys(unchecked)).sum();
    }
}

impl Unchecked {
    /// Without what the keys take.
    fn memory(&self) -> usize {
        self.keys.capacity() * size_of::<(u32, Vec<u8>)>()
    }

    fn add(&mut self, sequence: u32, key: &[u8]) {
        if self.keys.len() < MOST_UNCHECKED {
            return self.keys.push((sequence, key.to_vec()));
        }
        self.widen(sequence - 1, key, key);
    }

    /// Keys from `first` to `last`, all written after the write `since`, lie there, too.
    fn widen(&mut self, since: u32, first: &[u8], last: &[u8]) {
        let between =
            self.between.get_or_insert_with(|| Between { since, first: first.to_vec(), last: last.to_vec() });
        between.since = between.since.min(since);
        if first < between.first.as_slice() {
            between.first = first.to_vec();
        }
        if last > between.last.as_slice() {
            between.last = last.to_vec();
        }
    }
}

/// What a transaction has gathered.
#[derive(Default)]
pub(in crate::engine) struct Deferred {
    trees: Vec<Arc<Tree>>,
    /// Where each of them is.
    places: NumberMap<TreeId, u16>,
    /// By number, until they are sorted.
    entries: Vec<Entry>,
    bytes: Vec<u8>,
    /// What is gathered at most; 0 until the first entry.
    limit: usize,
    unchecked: UncheckedKeys,
}

impl Deferred {
    /// As it was before its transaction.
    pub(in crate::engine) fn start_anew(&mut self) {
        if self.limit != 0 || !self.unchecked.trees.is_empty() {
            *self = Deferred::default();
        }
    }

    fn prepare(&mut self, cache: &Cache) {
        if self.limit == 0 {
            let part = usize::try_from(cache.budget() / PART_OF_CACHE).unwrap_or(MOST_BYTES);
            self.limit = part.clamp(LEAST_BYTES, MOST_BYTES);
        }
    }

    /// Bytes that are gathered.
    fn gathered(&self) -> usize {
        self.bytes.len() + self.entries.len() * size_of::<Entry>()
    }

    /// Bytes of memory that it has.
    #[inline]
    pub(in crate::engine) fn memory(&self) -> usize {
        self.bytes.capacity() + self.entries.capacity() * size_of::<Entry>() + self.unchecked.memory
    }

    /// Whether entries were pushed into ranges that others have locked.
    pub(in crate::engine) fn is_unchecked(&self) -> bool {
        !self.unchecked.trees.is_empty()
    }

    /// Whether something waits for `tree`.
    fn has(&self, tree: &Arc<Tree>) -> bool {
        !self.entries.is_empty() && self.places.contains_key(&tree.id())
    }

    /// The place of `tree`, if there can be one more. Asked for each entry, and a statement may go to ten thousand
    /// trees: indexes of partitions.
    fn place(&mut self, tree: &Arc<Tree>) -> Option<u16> {
        if let Some(place) = self.places.get(&tree.id()) {
            return Some(*place);
        }
        let place = u16::try_from(self.trees.len()).ok()?;
        debug_assert_eq!(self.trees.len(), self.places.len(), "a tree has two places");
        self.trees.push(tree.clone());
        self.places.insert(tree.id(), place);
        Some(place)
    }

    /// `false`: the entry cannot wait.
    fn add(&mut self, tree: &Arc<Tree>, key: &[u8], (kind, value): (Kind, &[u8]), sequence: u32) -> bool {
        let (Ok(key_bytes), Ok(value_bytes), Ok(at), Some(tree)) = (
            u16::try_from(key.len()),
            u16::try_from(value.len()),
            u32::try_from(self.bytes.len()),
            self.place(tree),
        ) else {
            return false;
        };
        debug_assert!(
            self.entries.last().is_none_or(|last| last.sequence < sequence),
            "entries are gathered by number"
        );
        self.bytes.extend_from_slice(key);
        self.bytes.extend_from_slice(value);
        self.entries.push(Entry { head: wide_head(key), sequence, at, key_bytes, value_bytes, tree, kind });
        true
    }

    /// What `key` of `tree` is going to be, if that waits.
    fn find(&self, tree: &Arc<Tree>, key: &[u8]) -> Option<&[u8]> {
        let place = *self.places.get(&tree.id())?;
        let mut entries = self.entries.iter().rev();
        let entry = entries.find(|entry| entry.tree == place && self.key(entry) == key)?;
        entry.kind.is_new().then(|| self.value(entry))
    }

    fn key(&self, entry: &Entry) -> &[u8] {
        &self.bytes[entry.at as usize..][..usize::from(entry.key_bytes)]
    }

    fn value(&self, entry: &Entry) -> &[u8] {
        &self.bytes[entry.at as usize + usize::from(entry.key_bytes)..][..usize::from(entry.value_bytes)]
    }

    /// Tree after tree by key; of one key, in the order in which they came.
    fn sort(&mut self) {
        let mut entries = std::mem::take(&mut self.entries);
        entries.sort_unstable_by(|a, b| {
            (a.tree, a.head)
                .cmp(&(b.tree, b.head))
                .then_with(|| self.key(a).cmp(self.key(b)))
                .then(a.sequence.cmp(&b.sequence))
        });
        self.entries = entries;
    }

    /// Forgets what came after the write with this number.
    pub(in crate::engine) fn drop_after(&mut self, sequence: u32) {
        while self.entries.last().is_some_and(|entry| entry.sequence > sequence) {
            self.entries.pop();
        }
        self.unchecked.drop_after(sequence);
        match self.entries.is_empty() {
            // Its transaction may be idle for long.
            true => self.give_back(),
            false => self.cut(),
        }
    }

    /// Nothing is gathered any more: the memory goes.
    fn give_back(&mut self) {
        debug_assert!(self.entries.is_empty(), "{} entries are dropped", self.entries.len());
        *self = Deferred { unchecked: std::mem::take(&mut self.unchecked), ..Deferred::default() };
    }

    /// Pushes sorted entries until all are in their trees, or one fails; how many were.
    fn push(&self, status: &Arc<TxnStatus>) -> (usize, Result<()>) {
        let mut done = 0;
        let mut writes = Vec::with_capacity(RUN.min(self.entries.len()));
        while let Some(first) = self.entries.get(done) {
            let same_tree = |entry: &&Entry| entry.tree == first.tree;
            let run = self.entries[done..].iter().take(RUN).take_while(same_tree).count();
            if let Err(error) = self.check_claims(done..done + run, status) {
                return (done, Err(error));
            }
            writes.clear();
            writes.extend(self.entries[done..done + run].iter().map(|entry| Write {
                key: self.key(entry),
                op: entry.kind.op(self.value(entry)),
                status,
                sequence: entry.sequence,
            }));
            let mut left = writes.as_slice();
            while !left.is_empty() {
                match self.trees[usize::from(first.tree)].write_some(left) {
                    Ok(written) => {
                        left = &left[written..];
                        done += written;
                    }
                    Err(error) => return (done, Err(error)),
                }
            }
        }
        (done, Ok(()))
    }

    /// Of `entries`, which are sorted, the claim of a key that is taken, by another of them or whatever its tree has.
    /// Of several it is the one that was gathered first.
    fn first_taken(&self, entries: &[Entry], status: &Arc<TxnStatus>) -> Result<Option<Entry>> {
        let mut first: Option<Entry> = None;
        for run in entries.chunk_by(|a, b| a.tree == b.tree) {
            let mut cursor = TreeCursor::new(self.trees[usize::from(run[0].tree)].clone());
            for (at, entry) in run.iter().enumerate().filter(|(_, entry)| entry.kind == Kind::Claim) {
                let before = at.checked_sub(1).map(|before| &run[before]);
                let taken = match before.filter(|before| self.key(before) == self.key(entry)) {
                    Some(before) => before.kind != Kind::Delete,
                    None => cursor.get(&Reader::latest(Some(status)), self.key(entry))?,
                };
                if taken && first.is_none_or(|first| entry.sequence < first.sequence) {
                    first = Some(*entry);
                }
            }
        }
        Ok(first)
    }

    /// [`Error::DuplicateKey`] if one of `run`, the next for their tree, claims a key that is taken: then it is about
    /// the first of all such that are not pushed yet.
    fn check_claims(&self, run: std::ops::Range<usize>, status: &Arc<TxnStatus>) -> Result<()> {
        let from = run.start;
        if self.first_taken(&self.entries[run], status)?.is_none() {
            return Ok(());
        }
        match self.first_taken(&self.entries[from..], status)? {
            Some(entry) => Err(Error::DuplicateKey {
                tree: self.trees[usize::from(entry.tree)].id(),
                key: self.key(&entry).to_vec(),
                value: self.value(&entry).to_vec(),
            }),
            None => Ok(()),
        }
    }

    /// Drops the first `done`, which are in their trees; the others are by number again.
    fn forget(&mut self, done: usize) {
        self.entries.drain(..done);
        self.entries.sort_unstable_by_key(|entry| entry.sequence);
        self.cut();
    }

    /// The arena ends with the last entry.
    fn cut(&mut self) {
        let end =
            |entry: &Entry| entry.at as usize + usize::from(entry.key_bytes) + usize::from(entry.value_bytes);
        let end = self.entries.last().map_or(0, end);
        debug_assert!(end <= self.bytes.len(), "an entry that the arena has not");
        self.bytes.truncate(end);
        if self.entries.is_empty() {
            self.trees.clear();
            self.places.clear();
        }
    }

    /// Of the first `done` entries, which are in their trees now, those that lie in ranges of others are noted.
    fn check_ranges(&mut self, done: usize, locks: &mut LockOwner) {
        for entry in self.entries[..done].iter().filter(|entry| entry.kind.is_new()) {
            let tree = &self.trees[usize::from(entry.tree)];
            let key = &self.bytes[entry.at as usize..][..usize::from(entry.key_bytes)];
            if locks.check_insert(tree.id(), key, &WaitRequest::no_wait()).is_err() {
                self.unchecked.note(tree, entry.sequence, key);
            }
        }
    }
}

impl Work {
    /// Like [`Work::write`], of an entry that may wait for others.
    pub(in crate::engine) fn write_later(
        &mut self,
        shared: &Shared,
        tree: &Arc<Tree>,
        key: &[u8],
        op: WriteOp<'_>,
    ) -> Result<()> {
        let what = match op {
            WriteOp::Insert(value) => (Kind::Insert, value),
            WriteOp::Update(value) => (Kind::Update, value),
            WriteOp::Delete => (Kind::Delete, &[][..]),
        };
        match self.defer(shared, tree, key, what)? {
            true => Ok(()),
            false => self.write(shared, tree, key, op),
        }
    }

    /// Like [`Work::write_later`] of an insert; whether the key is taken, which the caller has locked, is told when the
    /// entry is written. One that cannot wait does not have the others written: if one of them has its key, that one
    /// will find it taken.
    pub(in crate::engine) fn claim_later(
        &mut self,
        shared: &Shared,
        tree: &Arc<Tree>,
        key: &[u8],
        value: &[u8],
    ) -> Result<()> {
        if value.len() <= MOST_ROW_BYTES && self.defer(shared, tree, key, (Kind::Claim, value))? {
            return Ok(());
        }
        self.finish_append_to(shared, tree)?;
        if self.find_in_tree(tree, key)? {
            return Err(Error::DuplicateKey { tree: tree.id(), key: key.to_vec(), value: value.to_vec() });
        }
        self.write_row(shared, tree, key, WriteOp::Insert(value))?;
        self.note_if_covered(shared, tree, self.last_number() - 1, key, key);
        Ok(())
    }

    /// Keys from `first` to `last`, which were written after the write `since`, are in the tree now: if another
    /// transaction has locked a range that one may lie in, [`Work::check_deferred`] waits for it.
    pub(super) fn note_if_covered(
        &mut self,
        shared: &Shared,
        tree: &Arc<Tree>,
        since: u32,
        first: &[u8],
        last: &[u8],
    ) {
        debug_assert!(first <= last, "a range that ends before it begins");
        let locks = self.locks(shared);
        if locks.check_inserts(tree.id(), first, last, &WaitRequest::no_wait()).is_ok() {
            return;
        }
        match first == last {
            true => self.deferred.unchecked.note(tree, since + 1, first),
            false => self.deferred.unchecked.of(tree).widen(since, first, last),
        }
    }

    /// `false`: the entry cannot wait, and is to be written.
    fn defer(
        &mut self,
        shared: &Shared,
        tree: &Arc<Tree>,
        key: &[u8],
        (kind, value): (Kind, &[u8]),
    ) -> Result<bool> {
        if key.len() > MAX_KEY_BYTES || tree.is_large(value) {
            return Ok(false);
        }
        self.finish_append_to(shared, tree)?;
        self.deferred.prepare(&shared.context.cache);
        if self.deferred.gathered() + key.len() + value.len() > self.deferred.limit {
            self.write_deferred(shared)?;
        }
        let (op, sequence) = (kind.op(value), self.next_sequence()?);
        let mark = self.redo.mark();
        match tree.is_logged() {
            true => self.redo.push(tree.id(), sequence, key, op)?,
            false => self.note_unlogged(sequence),
        }
        if !self.deferred.add(tree, key, (kind, value), sequence) {
            let _ = self.redo.truncate_to(mark);
            return Ok(false);
        }
        self.wrote(shared, tree, sequence, key, op)?;
        Ok(true)
    }

    /// Before a read of `tree`, or another write to it.
    pub(in crate::engine) fn show_deferred(&mut self, shared: &Shared, tree: &Arc<Tree>) -> Result<()> {
        match self.deferred.has(tree) {
            true => self.write_deferred(shared),
            false => Ok(()),
        }
    }

    /// What the transaction, or whoever else committed it, has of `key`, which may wait: then the whole of what waits
    /// is searched.
    pub(in crate::engine) fn peek(
        &mut self,
        shared: &Shared,
        tree: &Arc<Tree>,
        key: &[u8],
    ) -> Result<Option<Vec<u8>>> {
        if let Some(value) = self.deferred.find(tree, key) {
            return Ok(Some(value.to_vec()));
        }
        self.show_append(shared, tree, Some(key))?;
        let mut cursor = TreeCursor::new(tree.clone());
        Ok(match cursor.get(&Reader::latest(self.status()), key)? {
            true => Some(cursor.value()?.to_vec()),
            false => None,
        })
    }

    /// Whether the tree has the entry for this transaction, or is going to have it. What is gathered stays gathered.
    pub(in crate::engine) fn has_entry(&self, tree: &Arc<Tree>, key: &[u8]) -> Result<bool> {
        // The tree first: it is searched sooner.
        Ok(TreeCursor::new(tree.clone()).get(&Reader::latest(self.status()), key)?
            || self.deferred.find(tree, key).is_some())
    }

    /// Everything that was gathered is in the trees. After an error what is not is still gathered.
    pub(in crate::engine) fn write_deferred(&mut self, shared: &Shared) -> Result<()> {
        if self.deferred.entries.is_empty() {
            return Ok(());
        }
        let status = self.status_or_new().clone();
        // Apart from the transaction, whose locks are asked meanwhile.
        let mut deferred = std::mem::take(&mut self.deferred);
        deferred.sort();
        let (done, result) = deferred.push(&status);
        deferred.check_ranges(done, self.locks(shared));
        deferred.forget(done);
        self.deferred = deferred;
        result.inspect_err(|error| shared.ask_for_room(error))
    }

    /// Forgets what is gathered, and what could not be written, of a tree that is going to be dropped.
    pub(in crate::engine) fn drop_deferred(&mut self, shared: &Shared) {
        self.deferred = Deferred::default();
        self.direct.forget_failure();
        self.charge_memory(shared);
    }

    /// [`Work::write_deferred`], and the memory is given back.
    pub(in crate::engine) fn finish_deferred(&mut self, shared: &Shared) -> Result<()> {
        if self.deferred.limit == 0 {
            return Ok(());
        }
        self.write_deferred(shared)?;
        self.deferred.give_back();
        self.charge_memory(shared);
        Ok(())
    }

    /// Waits while other transactions have locked ranges in which entries lie that were gathered while these looked.
    pub(in crate::engine) fn check_deferred(
        &mut self,
        shared: &Shared,
        wait: &WaitRequest<'_>,
    ) -> Result<()> {
        for Unchecked { tree, keys, between } in
            std::mem::take(&mut self.deferred.unchecked).trees.into_values()
        {
            let locks = self.locks(shared);
            for (_, key) in &keys {
                locks.check_insert(tree.id(), key, wait)?;
            }
            if let Some(Between { first, last, .. }) = between {
                locks.check_inserts(tree.id(), &first, &last, wait)?;
            }
        }
        Ok(())
    }
}
