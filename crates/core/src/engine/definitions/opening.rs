//! Opening tables: their records, files and trees as of the last checkpoint, and which snapshots see them.

use crate::catalog::TableRecord;
use crate::checkpoint::PersistedCounter;
use crate::engine::data::tables::Table;
use crate::engine::shared::Shared;
use crate::mvcc::SnapshotInfo;
use crate::options::TreeSpec;
use crate::store::{Space, TreeRoot};
use crate::tree::Tree;
use crate::types::{Timestamp, TreeId};
use crate::Error;
use crate::Result;
use std::sync::Arc;

impl Shared {
    pub(in crate::engine) fn open_table(&self, name: &str) -> Result<Arc<Table>> {
        if let Some(table) = self.data.tables.lock().get(name) {
            return Ok(table.clone());
        }
        let _turn = self.definitions.names.take(&[name]);
        self.open_in_turn(name)
    }

    /// [`Shared::open_table`] for one who has the name.
    pub(in crate::engine) fn open_in_turn(&self, name: &str) -> Result<Arc<Table>> {
        {
            let tables = self.data.tables.lock();
            if let Some(table) = tables.get(name) {
                return Ok(table.clone());
            }
            if let Some(error) = tables.unusable.get(name) {
                return Err(error.clone());
            }
        }
        let table = self.load_table(name)?;
        self.data.tables.lock().insert(table.clone());
        Ok(table)
    }

    /// Opens a table that is not open. The caller has its name, or is the only thread. A checkpoint may be under way:
    /// it has nothing of a table that is not open, so what the directory says of it stays.
    pub(in crate::engine) fn load_table(&self, name: &str) -> Result<Arc<Table>> {
        let record = self.record(name)?;
        if record.residence.is_temporary() {
            return Ok(self.make_temporary(name, record));
        }
        let space = self.space_of(name, &record)?;
        // Whatever is taken while the list is made is not older than the table.
        let snapshots = self.clock.snapshots();
        let mut trees = Vec::with_capacity(record.trees.len());
        for (id, spec) in &record.trees {
            let root = self.system.root(*id)?;
            let tree = self.open_tree(*id, *spec, &space, root)?;
            tree.hide_before(self.first_to_see(*id, &snapshots)?);
            trees.push(tree);
        }
        let counter = match record.trees.first() {
            Some((first, _)) => self.counter(*first)?,
            None => Arc::new(PersistedCounter::new(0)),
        };
        let is_emptied = !record.has_file() && self.ids.is_from_before(&record);
        let table = Table::new(name, record.meta, space, trees, counter);
        if is_emptied {
            table.note_emptied();
        }
        Ok(Arc::new(table))
    }

    fn space_of(&self, name: &str, record: &TableRecord) -> Result<Arc<Space>> {
        let path = self.space_path(record.space);
        if !record.has_file() {
            return Ok(Space::in_memory(&self.files, &path, record.space, record.residence));
        }
        if !self.fs.exists(&path)? {
            return Err(Error::corrupt(path, 0, format!("the file of table '{name}' is missing")));
        }
        Space::open(&self.files, &path, record.space, self.system.map(record.space)?)
    }

    /// The first timestamp of an open snapshot that sees the tree; 0 if all do. The catalog knows: its rows have
    /// versions, as all others, which are kept as long as a snapshot lies between them.
    fn first_to_see(&self, tree: TreeId, snapshots: &[SnapshotInfo]) -> Result<Timestamp> {
        debug_assert!(snapshots.is_sorted_by_key(|open| open.timestamp), "the oldest comes first");
        let Some(oldest) = snapshots.first() else { return Ok(0) };
        if self.system.has_tree(tree, oldest.timestamp)? {
            return Ok(0);
        }
        let (mut blind, mut seeing) = (0, snapshots.len());
        while seeing - blind > 1 {
            let middle = (blind + seeing) / 2;
            match self.system.has_tree(tree, snapshots[middle].timestamp)? {
                true => seeing = middle,
                false => blind = middle,
            }
        }
        // If none does, it is younger than all of them.
        let after_all = || snapshots.last().map_or(0, |newest| newest.timestamp + 1);
        Ok(snapshots.get(seeing).map_or_else(after_all, |first| first.timestamp))
    }

    /// A tree as of the last checkpoint, whose root is `root`.
    pub(in crate::engine) fn open_tree(
        &self,
        id: TreeId,
        spec: TreeSpec,
        space: &Arc<Space>,
        root: Option<TreeRoot>,
    ) -> Result<Arc<Tree>> {
        let tree = Tree::open(id, spec, space.clone(), root, self.context.clone());
        if let Some((number, address)) = self.system.dictionary(id)? {
            tree.adopt_dictionary(number, address);
        }
        Ok(tree)
    }

    fn counter(&self, first: TreeId) -> Result<Arc<PersistedCounter>> {
        if let Some(counter) = self.data.counters.lock().get(&first) {
            return Ok(counter.clone());
        }
        Ok(Arc::new(PersistedCounter::new(self.system.counter(first)?.unwrap_or(0))))
    }
}
