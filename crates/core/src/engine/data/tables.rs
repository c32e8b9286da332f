//! Open tables.
//!
//! A table is opened at most once, so that all see the same trees, and stays open while memory holds something of it
//! that the disk does not: changes that no checkpoint contains, or versions that an active snapshot may need.
//! [`OpenTables::release_idle`] lets go of the others, and with them of their files.

use super::losses::Losses;
use super::statistics::TreeName;
use crate::checkpoint::PersistedCounter;
use crate::store::{BundleUse, Space};
use crate::sync::RwLock;
use crate::tree::{Reader, Tree, TreeCursor};
use crate::types::{Timestamp, TreeId};
use crate::{Error, Result};
use std::collections::{HashMap, HashSet, VecDeque};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, Weak};

/// Row ids start here if those in use cannot be determined: past any that counting reaches.
const ROW_IDS_AFTER_DAMAGE: u64 = 1 << 62;

/// What an open table takes of memory, with its file and what the server's side knows of it, and each of its trees:
/// measured with 500 tables without, with one, three and six indexes, beside their metadata.
const TABLE_BYTES: usize = 3200;
const TREE_BYTES: usize = 2000;

/// Trees that live and die together, with what the caller wants remembered about them.
pub struct Table {
    name: RwLock<String>,
    meta: Vec<u8>,
    space: Arc<Space>,
    trees: Vec<Arc<Tree>>,
    /// One for all handles that alterations leave, as some go on with the one they have.
    counter: Arc<AtomicU64>,
    persisted: Arc<PersistedCounter>,
    row_ids: Arc<RowIds>,
    current: AtomicBool,
    description: RwLock<Option<Arc<[u8]>>>,
    pub(in crate::engine) losses: Losses,
}

/// Hidden primary keys. Tables that use them have keys of 8 bytes, big-endian, in their first tree. The last is looked
/// up when the first is asked for, so that the opening of a table reads none of its pages.
#[derive(Default)]
struct RowIds {
    next: OnceLock<AtomicU64>,
    /// Those below it are used, or may come to be: known before the look.
    unused: AtomicU64,
}

impl RowIds {
    /// One that was never given out. `rows` has no undecided ones but those of prepared transactions that
    /// [`RowIds::raise`] was told of: whoever inserts asks here first.
    fn next(&self, rows: Option<&Arc<Tree>>) -> u64 {
        let first = || {
            let found = rows.map_or(1, |rows| next_row_id(rows).unwrap_or(ROW_IDS_AFTER_DAMAGE));
            // Relaxed: only numbers, here and below; `raise` comes before the first user of the table.
            AtomicU64::new(found.max(self.unused.load(Ordering::Relaxed)))
        };
        // Relaxed: only uniqueness matters.
        self.next.get_or_init(first).fetch_add(1, Ordering::Relaxed)
    }

    /// Recovery: `used` may come to exist.
    fn raise(&self, used: u64) {
        debug_assert!(self.next.get().is_none(), "{used} may have been given out");
        // Relaxed: as above.
        self.unused.fetch_max(used.saturating_add(1), Ordering::Relaxed);
    }
}

impl Table {
    pub(in crate::engine) fn new(
        name: &str,
        meta: Vec<u8>,
        space: Arc<Space>,
        trees: Vec<Arc<Tree>>,
        persisted: Arc<PersistedCounter>,
    ) -> Table {
        debug_assert!(are_of(&trees, &space), "a tree of another file");
        Table {
            name: RwLock::new(name.to_string()),
            meta,
            space,
            trees,
            counter: Arc::new(AtomicU64::new(persisted.value())),
            persisted,
            row_ids: Arc::default(),
            current: AtomicBool::new(true),
            description: RwLock::default(),
            losses: Losses::default(),
        }
    }

    /// The same table with other metadata and trees; `self` is about to be retired.
    pub(in crate::engine) fn with_trees(&self, meta: Vec<u8>, trees: Vec<Arc<Tree>>) -> Table {
        debug_assert!(are_of(&trees, &self.space), "an altered table with a tree of another file");
        Table {
            name: RwLock::new(self.name()),
            meta,
            space: self.space.clone(),
            trees,
            counter: self.counter.clone(),
            persisted: self.persisted.clone(),
            row_ids: self.row_ids.clone(),
            current: AtomicBool::new(true),
            description: RwLock::default(),
            losses: self.losses.passed_on(),
        }
    }

    /// Its present name.
    pub fn name(&self) -> String {
        self.name.read().clone()
    }

    pub(in crate::engine) fn set_name(&self, name: &str) {
        *self.name.write() = name.to_string();
        self.forget_last_change();
    }

    /// Bytes that it takes with its trees, about, without what these hold.
    fn memory(&self) -> usize {
        TABLE_BYTES + self.meta.len() + self.trees.len() * TREE_BYTES
    }

    /// What the creator wanted remembered.
    pub fn meta(&self) -> &[u8] {
        &self.meta
    }

    /// How people are told of its keys, in the form of who opens tables: given by whoever knows, for all who list locks
    /// and cannot. As long as the table is open, and not altered.
    pub fn describe(&self, description: &[u8]) {
        *self.description.write() = Some(Arc::from(description));
    }

    /// What [`Table::describe`] was told last.
    pub fn description(&self) -> Option<Arc<[u8]>> {
        self.description.read().clone()
    }

    /// Its `i`-th tree.
    ///
    /// # Panics
    /// If there is none.
    pub fn tree(&self, i: usize) -> &Arc<Tree> {
        &self.trees[i]
    }

    /// Number of trees.
    pub fn trees(&self) -> usize {
        self.trees.len()
    }

    pub(in crate::engine) fn all_trees(&self) -> &[Arc<Tree>] {
        &self.trees
    }

    pub(in crate::engine) fn space(&self) -> &Arc<Space> {
        &self.space
    }

    /// By what counters are known in the log and in the directory; `None` for a table without trees.
    pub(in crate::engine) fn counter_id(&self) -> Option<TreeId> {
        self.trees.first().map(|tree| tree.id())
    }

    /// Next AUTO_INCREMENT value; 0 if none was set.
    pub fn counter(&self) -> u64 {
        // Relaxed: a number; values are given out by atomic changes of it alone. Likewise below.
        self.counter.load(Ordering::Relaxed)
    }

    /// The counter itself, for reserving values. [`crate::engine::Transaction::note_counter`] persists what was
    /// reserved.
    pub fn counter_cell(&self) -> &AtomicU64 {
        &self.counter
    }

    /// Whether the log has the counter's value, and no transaction is going to tell it of another. Otherwise the table
    /// must stay open: the value would be lost, or there would be two cells for one counter.
    pub(in crate::engine) fn counter_is_settled(&self) -> bool {
        Arc::strong_count(&self.persisted) == 1 && self.counter() == self.persisted.value()
    }

    pub(in crate::engine) fn persisted_counter(&self) -> &Arc<PersistedCounter> {
        &self.persisted
    }

    /// A hidden primary key that was never given out. Tables that use it have keys of 8 bytes, big-endian, in their
    /// first tree: the counting goes on after the last. The first call reads that.
    pub fn next_row_id(&self) -> u64 {
        self.row_ids.next(self.trees.first())
    }

    /// A row with this id may come to exist: that of a prepared transaction, told before anybody else has the table.
    pub(in crate::engine) fn raise_row_id(&self, used: u64) {
        self.row_ids.raise(used);
    }

    /// Shows it to snapshots from before it was made, too: for a table that only one transaction at a time uses, and
    /// that goes with its session.
    pub fn show_to_older_snapshots(&self) {
        self.trees.iter().for_each(|tree| tree.hide_before(0));
    }

    /// Its file, as errors name it.
    pub fn path(&self) -> &Path {
        self.space.path()
    }

    /// Whether log and checkpoints have its rows: not if it lives in memory alone, or is temporary.
    pub fn is_logged(&self) -> bool {
        self.space.is_lasting()
    }

    /// What it takes of memory, in bytes, if it lives there alone.
    pub fn memory_bytes(&self) -> Option<u64> {
        self.trees.first().and_then(|tree| tree.memory_bytes())
    }

    /// What its file takes from the disk, in bytes: holes are not counted.
    pub fn disk_bytes(&self) -> u64 {
        self.space.disk_usage().0
    }

    /// What is in use in its file, in bytes: blocks, large values, and what keeps them; 0 if that cannot be read.
    pub fn used_bytes(&self) -> u64 {
        self.space.needed_bytes().unwrap_or_default()
    }

    /// Whether large values of it were put together.
    pub(in crate::engine) fn has_bundles(&self) -> bool {
        self.space.bundle_usage().is_ok_and(|usage| usage.bundles > 0)
    }

    /// Large values that are stored together with others which they are like, as of the last checkpoint.
    pub fn bundle_usage(&self) -> Result<BundleUse> {
        self.space.bundle_usage()
    }

    /// Bytes of these that wait to be reused, or to be given back.
    pub fn free_bytes(&self) -> u64 {
        self.space.disk_usage().1
    }

    /// Whether this is what [`crate::engine::Engine::open_table`] would return: no longer after the table was dropped,
    /// truncated or altered.
    pub fn is_current(&self) -> bool {
        // Relaxed: the caller's own locking of table definitions orders it.
        self.current.load(Ordering::Relaxed)
    }

    /// Whether a snapshot of `oldest` needs something of it that only memory has: versions that the image has not any
    /// more, or since when its trees have had their rows. A later one reads what the disk has.
    fn is_needed_before(&self, oldest: Timestamp) -> bool {
        self.trees.iter().any(|tree| tree.written_at().max(tree.visible_from()) > oldest)
    }

    pub(in crate::engine) fn retire(&self) {
        // Relaxed: see `is_current`.
        self.current.store(false, Ordering::Relaxed);
        self.forget_last_change();
    }

    /// Its name does not mean it any more, or its rows mean something else.
    fn forget_last_change(&self) {
        self.trees.iter().for_each(|tree| tree.last_change().forget());
    }
}

/// Whether the trees write to the file of this space.
fn are_of(trees: &[Arc<Tree>], space: &Arc<Space>) -> bool {
    trees.iter().all(|tree| Arc::ptr_eq(tree.space(), space))
}

/// The row id in a key, if it can be one.
pub(in crate::engine) fn row_id_of_key(key: &[u8]) -> Option<u64> {
    key.try_into().ok().map(u64::from_be_bytes)
}

fn next_row_id(rows: &Arc<Tree>) -> Result<u64> {
    let mut cursor = TreeCursor::new(rows.clone());
    if !cursor.last(&Reader::at(Timestamp::MAX))? {
        return Ok(1);
    }
    Ok(row_id_of_key(cursor.key()).map_or(1, |last| last.saturating_add(1)))
}

/// Tables that are looked at after each checkpoint, beyond what has happened since the last.
const LOOKS: usize = 1024;
/// Tables that are looked at while the mutex is held once.
pub(in crate::engine) const LOOKS_AT_ONCE: usize = 256;

/// The tables that are open, by name.
#[derive(Default)]
pub(crate) struct OpenTables {
    by_name: HashMap<String, Arc<Table>>,
    /// Tables that are closed because their files cannot be read.
    pub unusable: HashMap<String, Error>,
    /// Each table once, and some that are open no more: who is looked at next, to see whether it is idle.
    round: VecDeque<Weak<Table>>,
    /// Since looks were last counted out.
    opened: usize,
    /// What they take.
    bytes: usize,
}

impl OpenTables {
    pub(in crate::engine) fn get(&self, name: &str) -> Option<&Arc<Table>> {
        self.by_name.get(name)
    }

    pub(in crate::engine) fn insert(&mut self, table: Arc<Table>) {
        self.opened += 1;
        self.bytes += table.memory();
        self.round.push_back(Arc::downgrade(&table));
        let other = self.by_name.insert(table.name(), table);
        debug_assert!(other.is_none(), "a table is open twice");
    }

    /// Takes a table out that is no longer what the name means.
    pub(in crate::engine) fn retire(&mut self, name: &str) -> Option<Arc<Table>> {
        self.unusable.remove(name);
        let table = self.by_name.remove(name)?;
        self.bytes -= table.memory();
        debug_assert_eq!(*table.name.read(), name, "a table goes by another name");
        table.retire();
        Some(table)
    }

    /// From now on there is only this error for who opens the table.
    pub(in crate::engine) fn close(&mut self, name: String, error: Error) -> Option<Arc<Table>> {
        let table = self.retire(&name);
        self.unusable.insert(name, error);
        table
    }

    pub(in crate::engine) fn rename(&mut self, from: &str, to: &str) {
        if let Some(error) = self.unusable.remove(from) {
            self.unusable.insert(to.to_string(), error);
        }
        if let Some(table) = self.by_name.remove(from) {
            table.set_name(to);
            let other = self.by_name.insert(to.to_string(), table);
            debug_assert!(other.is_none(), "two tables have one name");
        }
    }

    /// Where these trees are.
    pub(in crate::engine) fn with_trees(&self, trees: &HashSet<TreeId>) -> HashMap<TreeId, TreeName> {
        let mut found = HashMap::new();
        // Mostly there are none, and a few at most.
        for table in self.by_name.values().filter(|_| !trees.is_empty()) {
            let of_table = table.trees.iter().enumerate().filter(|(_, tree)| trees.contains(&tree.id()));
            let place = |tree| TreeName { table: table.name(), tree, description: table.description() };
            found.extend(of_table.map(|(number, tree)| (tree.id(), place(number))));
        }
        found
    }

    pub(in crate::engine) fn all(&self) -> impl Iterator<Item = &Arc<Table>> {
        self.by_name.values()
    }

    pub(in crate::engine) fn len(&self) -> usize {
        self.by_name.len()
    }

    /// Bytes that they take, without what their trees hold.
    pub(in crate::engine) fn memory(&self) -> usize {
        self.bytes
    }

    /// How many are to be looked at after a checkpoint that wrote `written` trees: each opening pays for two looks and
    /// each written tree for one, so that tables are let go as fast as they are opened, and no look goes over all of
    /// them.
    pub(in crate::engine) fn looks(&mut self, written: usize) -> usize {
        let opened = std::mem::take(&mut self.opened);
        (LOOKS + 2 * opened + written).min(self.round.len())
    }

    /// Looks at the next `count` tables and lets go of those that nobody uses and of which the disk has everything.
    /// `is_dirty` says whether memory has changes that the disk has not; `oldest` is the oldest active snapshot. The
    /// caller drops the result without holding a mutex.
    pub(in crate::engine) fn release_idle(
        &mut self,
        count: usize,
        oldest: Timestamp,
        is_dirty: impl Fn(&Table) -> bool,
    ) -> Vec<Arc<Table>> {
        let mut idle = Vec::new();
        for _ in 0..count {
            let Some(next) = self.round.pop_front() else { break };
            let Some(table) = next.upgrade().filter(|table| table.is_current()) else { continue };
            // That of the map, and this one.
            let used = !table.is_logged()
                || Arc::strong_count(&table) > 2
                || table.trees.iter().any(|tree| Arc::strong_count(tree) > 1);
            if used || table.is_needed_before(oldest) || is_dirty(&table) {
                self.round.push_back(next);
                continue;
            }
            let removed = self.by_name.remove(&table.name());
            self.bytes -= table.memory();
            debug_assert!(removed.is_some_and(|other| Arc::ptr_eq(&other, &table)), "its name means another");
            idle.push(table);
        }
        idle
    }
}
