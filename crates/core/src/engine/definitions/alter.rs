//! Changing tables: other trees and metadata, other links, or another table in the place of one. All of a change is one
//! synced transaction of the catalog: after a crash there is all of it, or nothing.
//!
//! What an ALTER that writes all rows anew ends with ([`crate::engine::bulk::online`]) is a replacement: the new table
//! was created and filled under a name of its own; it gets the other's name and links, or those that it is to have, and
//! the other goes, with its file.

use super::catalog_changes::CatalogChanges;
use super::ddl::check_limit;
use super::links::Relink;
use crate::catalog::TableRecord;
use crate::checkpoint::Dropped;
use crate::engine::data::tables::Table;
use crate::engine::shared::{Engine, Shared};
use crate::options::{Packing, Residence, TreeSpec};
use crate::tree::Tree;
use crate::types::TreeId;
use crate::{Error, Result};
use std::sync::atomic::Ordering;
use std::sync::Arc;

/// Where a tree of an altered table comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TreeSource {
    /// It has this place in the table so far. The first tree, with the rows, stays where it is.
    Keep(usize),
    /// It is new and empty.
    New(TreeSpec),
}

/// What becomes of one table: see [`Engine::change`].
#[derive(Debug, Clone, Copy)]
pub struct Alteration<'a> {
    /// The table's name.
    pub table: &'a str,
    /// Its trees from now on.
    pub layout: &'a [TreeSource],
    /// Its metadata from now on.
    pub meta: &'a [u8],
    /// How its blocks are written from now on, if not as they were so far. Those that are there are rewritten by the
    /// next checkpoints, while everything goes on.
    pub packing: Option<Packing>,
    /// Its counter from now on, if not what it is.
    pub counter: Option<u64>,
    /// Of a table in memory: what it may take from now on, in bytes, if not as much as so far; 0: what all of them may.
    pub memory_limit: Option<u64>,
    /// Builds from before there were guards refuse the table from now on: its rows are of a kind that they do not know.
    pub guarded: bool,
}

impl<'a> Alteration<'a> {
    /// Other trees and metadata, and nothing else.
    pub fn new(table: &'a str, layout: &'a [TreeSource], meta: &'a [u8]) -> Alteration<'a> {
        let (packing, counter, memory_limit) = (None, None, None);
        Alteration { table, layout, meta, packing, counter, memory_limit, guarded: false }
    }
}

/// Which table takes the place of which, with the trees and the metadata that it has: see [`Engine::change`].
#[derive(Debug, Clone, Copy)]
pub struct Replacement<'a> {
    /// The table that goes.
    pub table: &'a str,
    /// The one that has its name, and its links, from then on.
    pub by: &'a str,
    /// Its counter from then on.
    pub counter: u64,
}

/// A change of a table.
#[derive(Debug, Clone, Copy)]
pub enum TableChange<'a> {
    /// It is altered.
    Alter(Alteration<'a>),
    /// Another takes its place.
    Replace(Replacement<'a>),
}

impl<'a> From<Alteration<'a>> for TableChange<'a> {
    fn from(alteration: Alteration<'a>) -> TableChange<'a> {
        TableChange::Alter(alteration)
    }
}

impl<'a> From<Replacement<'a>> for TableChange<'a> {
    fn from(replacement: Replacement<'a>) -> TableChange<'a> {
        TableChange::Replace(replacement)
    }
}

impl<'a> TableChange<'a> {
    /// The name of the table that is changed.
    fn table(&self) -> &'a str {
        match self {
            TableChange::Alter(alteration) => alteration.table,
            TableChange::Replace(replacement) => replacement.table,
        }
    }

    /// The name of the table that is there afterwards, as it is before.
    fn stays(&self) -> &'a str {
        match self {
            TableChange::Alter(alteration) => alteration.table,
            TableChange::Replace(replacement) => replacement.by,
        }
    }

    fn counter(&self) -> Option<u64> {
        match self {
            TableChange::Alter(alteration) => alteration.counter,
            TableChange::Replace(replacement) => Some(replacement.counter),
        }
    }
}

impl Engine {
    /// Changes tables, and gives these or others other links, all in one step.
    ///
    /// Nobody may write meanwhile to a table that is altered; handles opened before keep the trees as they were: see
    /// [`Table::is_current`]. Nobody may use one that is replaced, or that takes its place; snapshots from before the
    /// new one was finished ([`crate::engine::OnlineBuild::finish`]) do not see it.
    ///
    /// [`Error::Undecided`] if a prepared transaction has written to a table that goes; [`Error::LinkExists`].
    pub fn change(&self, changes: &[TableChange<'_>], relinks: &[Relink<'_>]) -> Result<()> {
        let shared = &self.shared;
        let changed = changes.iter().flat_map(|change| [change.table(), change.stays()]);
        let names: Vec<&str> = changed.chain(relinks.iter().flat_map(Relink::names)).collect();
        let _turn = shared.definitions.names.take(&names);
        let open = changes.iter().map(|change| shared.open_changed(change)).collect::<Result<Vec<_>>>()?;
        let _ddl = shared.definitions.ddl.read();
        shared.health.check()?;
        let mut rows = CatalogChanges::default();
        let mut records = Vec::with_capacity(changes.len());
        let mut linked = !relinks.is_empty();
        for (change, table) in changes.iter().zip(&open) {
            linked |= shared.is_linked(change.table())?;
            let relink = relinks.iter().find(|relink| relink.table == change.table());
            records.push(match change {
                TableChange::Alter(alteration) => shared.alter(alteration, relink, &mut rows)?,
                TableChange::Replace(replacement) => shared.replace(replacement, relink, &mut rows)?,
            });
            if let Some(value) = change.counter() {
                rows.set_counter(table.clone(), value);
            }
        }
        for relink in relinks.iter().filter(|relink| changes.iter().all(|one| one.table() != relink.table)) {
            let old = shared.record(relink.table)?;
            rows.relink(relink.table, &old, &shared.relinked(old.clone(), relink)?);
        }
        rows.commit(shared)?;
        shared.note_links(linked);
        for ((change, table), record) in changes.iter().zip(&open).zip(&records) {
            match change {
                TableChange::Alter(alteration) => shared.put_in_place(alteration, table, record),
                TableChange::Replace(replacement) => {
                    shared.discard(replacement.table, record);
                    shared.data.tables.lock().rename(replacement.by, replacement.table);
                }
            }
        }
        Ok(())
    }
}

impl Shared {
    /// The table that is there afterwards. The caller has the names.
    fn open_changed(&self, change: &TableChange<'_>) -> Result<Arc<Table>> {
        match change {
            TableChange::Alter(alteration) => {
                check_limit("number of trees", alteration.layout.len(), usize::from(u16::MAX))?;
                self.open_in_turn(alteration.table)
            }
            TableChange::Replace(replacement) => {
                let comes = self.open_in_turn(replacement.by)?;
                comes.losses.add(&self.open_in_turn(replacement.table)?.losses);
                Ok(comes)
            }
        }
    }

    /// The record that a table is to have; what changes in the catalog by that is added to `rows`.
    fn alter(
        &self,
        alteration: &Alteration<'_>,
        relink: Option<&Relink<'_>>,
        rows: &mut CatalogChanges,
    ) -> Result<TableRecord> {
        let name = alteration.table;
        let old = self.record(name)?;
        let (meta, guarded) = (alteration.meta.to_vec(), alteration.guarded);
        let mut new = TableRecord { meta, guarded, trees: Vec::new(), ..old.clone() };
        if let (Residence::Memory { limit_bytes }, Some(limit)) =
            (&mut new.residence, alteration.memory_limit)
        {
            *limit_bytes = limit;
        }
        for source in alteration.layout {
            let tree = match *source {
                TreeSource::Keep(place) => *old.trees.get(place).ok_or(Error::NoSuchTree(place))?,
                TreeSource::New(spec) => {
                    // Relaxed: as in `new_record`.
                    (self.ids.tree.fetch_add(1, Ordering::Relaxed), spec)
                }
            };
            debug_assert!(new.trees.iter().all(|(id, _)| *id != tree.0), "a tree has two places");
            new.trees.push(tree);
        }
        let first = |record: &TableRecord| record.trees.first().map(|(id, _)| *id);
        debug_assert_eq!(first(&new), first(&old), "the rows stay where they are");
        if let Some(packing) = alteration.packing {
            new.trees.iter_mut().for_each(|(_, spec)| spec.packing = packing);
        }
        rows.exchange_trees(name, &old, &new);
        match relink {
            Some(relink) => {
                new = self.relinked(new, relink)?;
                rows.relink(name, &old, &new);
            }
            None => rows.update(name, &new),
        }
        Ok(new)
    }

    /// The record of the table that goes; what changes in the catalog by that is added to `rows`.
    fn replace(
        &self,
        replacement: &Replacement<'_>,
        relink: Option<&Relink<'_>>,
        rows: &mut CatalogChanges,
    ) -> Result<TableRecord> {
        let (goes, comes) = (self.record(replacement.table)?, self.record(replacement.by)?);
        self.check_decided(&goes)?;
        rows.remove(replacement.table, &goes);
        rows.remove(replacement.by, &comes);
        let mut record = TableRecord { links: goes.links.clone(), ..comes };
        if let Some(relink) = relink {
            record = self.relinked(record, relink)?;
        }
        rows.add(replacement.table, &record);
        Ok(goes)
    }

    /// Makes `new` the open table; trees that it had before are the same objects. If its blocks are to be written in
    /// another way, the next checkpoints rewrite them.
    fn put_in_place(&self, alteration: &Alteration<'_>, open: &Arc<Table>, new: &TableRecord) {
        let known = |id: TreeId| open.all_trees().iter().find(|tree| tree.id() == id).cloned();
        let tree = |(id, spec): &(TreeId, TreeSpec)| {
            known(*id).unwrap_or_else(|| {
                let tree = Tree::open(*id, *spec, open.space().clone(), None, self.context.clone());
                tree.hide_from_older_snapshots();
                tree
            })
        };
        let trees: Vec<Arc<Tree>> = new.trees.iter().map(tree).collect();
        let is_gone = |tree: &&Arc<Tree>| new.trees.iter().all(|(id, _)| *id != tree.id());
        let retired: Vec<Arc<Tree>> = open.all_trees().iter().filter(is_gone).cloned().collect();
        if let (Residence::Memory { limit_bytes }, Some(rows)) = (new.residence, trees.first()) {
            rows.set_memory_limit(limit_bytes);
        }
        let table = Arc::new(open.with_trees(new.meta.clone(), trees));
        {
            let mut tables = self.data.tables.lock();
            let before = tables.retire(alteration.table);
            // It may have been closed.
            debug_assert!(before.is_none_or(|before| Arc::ptr_eq(&before, open)), "another was altered");
            tables.insert(table.clone());
        }
        self.forget_dirty(retired.iter());
        if !retired.is_empty() && new.has_file() {
            let trees = retired.iter().map(|tree| tree.id()).collect();
            self.definitions.dropped.lock().push(Dropped { space: None, trees, retired });
        }
        if let Some(packing) = alteration.packing {
            table.all_trees().iter().for_each(|tree| tree.convert(packing));
            self.mark_dirty(table.all_trees().iter());
            self.care.progress.ask();
        }
    }
}
