//! Spaces that recovery finds in use, replaced or left over.

use crate::catalog::{log_dir, name_of_key, space_of_file_name, TableRecord, SYSTEM_SPACE};
use crate::checkpoint::recovery::CatalogChange;
use crate::checkpoint::Dropped;
use crate::engine::shared::Shared;
use crate::mvcc::TxnStatus;
use crate::options::TreeSpec;
use crate::types::{TreeId, WriteOp};
use crate::{Error, Result};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// Spaces that the log's DDL mentions, and whether they are still in use.
pub(super) struct Spaces {
    /// With their trees, and the names whose records named them.
    mentioned: HashMap<u32, (Vec<TreeId>, HashSet<String>)>,
    /// Trees that an ALTER replaced, with their space and the first tree of their table.
    retired: Vec<(u32, TreeId, TreeId, TreeSpec)>,
}

impl Spaces {
    /// Applies the log's changes to the catalog.
    pub(super) fn replay(
        shared: &mut Shared,
        changes: &[CatalogChange],
        committed: &Arc<TxnStatus>,
    ) -> Result<Spaces> {
        let mut spaces = Spaces { mentioned: HashMap::new(), retired: Vec::new() };
        let catalog = shared.system.catalog.clone();
        for (i, change) in changes.iter().enumerate() {
            let op = change.kind.write(&change.value);
            if let Some(name) = name_of_key(&change.key) {
                let old = shared.system.table(name)?;
                if let Some(old) = &old {
                    spaces.mention(name, old);
                }
                if !matches!(op, WriteOp::Delete) {
                    let record = TableRecord::decode(&change.value)
                        .map_err(|detail| Error::corrupt(log_dir(&shared.dir), 0, detail))?;
                    spaces.mention(name, &record);
                    spaces.note_retired(old.as_ref(), &record);
                    shared.ids.skip(&record);
                }
            }
            catalog.write(&change.key, op, committed, i as u32 + 1)?;
        }
        if !changes.is_empty() {
            shared.mark_dirty([&catalog].into_iter());
        }
        Ok(spaces)
    }

    fn mention(&mut self, name: &str, record: &TableRecord) {
        let (trees, names) = self.mentioned.entry(record.space).or_default();
        for (tree, _) in &record.trees {
            if !trees.contains(tree) {
                trees.push(*tree);
            }
        }
        names.insert(name.to_string());
    }

    fn note_retired(&mut self, old: Option<&TableRecord>, new: &TableRecord) {
        let Some(old) = old.filter(|old| old.space == new.space) else { return };
        let Some((first, _)) = new.trees.first() else { return };
        let gone = old.trees.iter().filter(|(id, _)| new.trees.iter().all(|(kept, _)| kept != id));
        self.retired.extend(gone.map(|(id, spec)| (new.space, *first, *id, *spec)));
    }

    /// Has the next checkpoint give back what replaced trees left in spaces that go on.
    pub(super) fn retire_trees(&self, shared: &Shared) -> Result<()> {
        for &(space, first, tree, spec) in &self.retired {
            let Some(name) = shared.system.table_of(first)? else { continue };
            let table = match shared.system.table(&name)? {
                // The log may begin before the image, with records that have not yet what later ones have again.
                Some(record) if record.trees.iter().any(|(id, _)| *id == tree) => continue,
                Some(record) if record.space == space => shared.open_table(&name),
                _ => continue,
            };
            let mut dropped = Dropped { space: None, trees: vec![tree], retired: Vec::new() };
            // Of a table that cannot be opened only the rows of the directory go.
            if let (Ok(table), Some(root)) = (table, shared.system.root(tree)?) {
                let space = table.space().clone();
                dropped.retired.push(shared.open_tree(tree, spec, &space, Some(root))?);
            }
            shared.definitions.dropped.lock().push(dropped);
        }
        Ok(())
    }

    /// Removes the files of DDL that was not finished before the crash: those of dropped tables, and those younger than
    /// the checkpoint (with a number from `young` on) that no record names. And what could not be removed earlier.
    pub(super) fn remove_orphans(&self, shared: &Shared, young: u32) -> Result<()> {
        if shared.fs.is_read_only() {
            return Ok(());
        }
        let mut live = HashSet::new();
        let mut orphans = HashSet::new();
        for (&space, (trees, names)) in &self.mentioned {
            let mut used = false;
            for name in names {
                used |= shared.system.table(name)?.is_some_and(|record| record.space == space);
            }
            if used {
                live.insert(space);
            } else {
                orphans.insert(space);
                shared.definitions.dropped.lock().push(Dropped {
                    space: Some(space),
                    trees: trees.clone(),
                    retired: Vec::new(),
                });
            }
        }
        let files = shared.fs.list(&shared.dir)?;
        let present: HashSet<u32> = files.iter().filter_map(|name| space_of_file_name(name)).collect();
        let is_young = |space: &&u32| **space >= young && !live.contains(*space);
        orphans.extend(present.iter().filter(is_young));
        orphans.extend(shared.system.orphans()?.difference(&live));
        orphans.retain(|space| present.contains(space));
        assert!(!orphans.contains(&SYSTEM_SPACE), "the catalog is removed");
        for space in &orphans {
            shared
                .fs
                .remove(&shared.space_path(*space))
                .unwrap_or_else(|error| shared.leave(*space, None, &error));
        }
        if !orphans.is_empty() {
            shared.fs.sync_dir(&shared.dir)?;
        }
        Ok(())
    }
}
