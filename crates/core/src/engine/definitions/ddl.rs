//! Creating, dropping, renaming and truncating tables.
//!
//! Each is one synced transaction on the catalog: after a crash there is the old state or the new one. Files are
//! created before that transaction and removed after it. A file without a record is either younger than the last
//! checkpoint or belongs to a record whose removal the log has; both are found at the next start without a look at all
//! tables, because a checkpoint never captures its state in the middle of DDL (`Definitions::ddl`).
//!
//! DDL on different names goes on at the same time, syncs included, and so does the opening of tables: each has its
//! names to itself (`Definitions::names`), and nothing else. See `docs/design/scale.md`.

use super::links::{check_links, Relink, Renaming};
use super::names::Turn;
use crate::catalog::{link_key, name_key, referrer_key, tree_key, Link, TableRecord, MAX_NAME_BYTES};
use crate::checkpoint::{Dropped, PersistedCounter};
use crate::engine::data::tables::Table;
use crate::engine::shared::Shared;
use crate::engine::txn::work::Work;
use crate::file::DiskReserve;
use crate::log::CounterChange;
use crate::mvcc::{SnapshotInfo, TxnStatus};
use crate::options::{CommitFlush, Packing, Residence, TreeSpec};
use crate::store::{Space, TreeRoot};
use crate::tree::Tree;
use crate::types::{Timestamp, TreeId, WriteOp};
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

/// What becomes of one table: see [`crate::engine::Engine::alter_tables`].
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

/// Rows of the catalog to be changed together, and counters; or temporary tables.
#[derive(Default)]
pub(in crate::engine) struct CatalogChanges {
    rows: Vec<(Vec<u8>, Option<Vec<u8>>, bool)>,
    counters: Vec<(Arc<Table>, u64)>,
    temporary: Vec<(String, Option<TableRecord>)>,
}

impl CatalogChanges {
    pub(in crate::engine) fn remove(&mut self, name: &str, record: &TableRecord) {
        if record.residence.is_temporary() {
            return self.temporary.push((name.to_string(), None));
        }
        self.rows.push((name_key(name), None, false));
        for (tree, _) in &record.trees {
            self.remove_tree(*tree);
        }
        self.unlink(name, record);
    }

    pub(in crate::engine) fn add(&mut self, name: &str, record: &TableRecord) {
        if record.residence.is_temporary() {
            return self.temporary.push((name.to_string(), Some(record.clone())));
        }
        self.rows.push((name_key(name), Some(record.encode()), true));
        for (tree, _) in &record.trees {
            self.add_tree(*tree, name);
        }
        self.link(name, record);
    }

    fn add_tree(&mut self, tree: TreeId, name: &str) {
        self.rows.push((tree_key(tree).to_vec(), Some(name.as_bytes().to_vec()), true));
    }

    fn remove_tree(&mut self, tree: TreeId) {
        self.rows.push((tree_key(tree).to_vec(), None, false));
    }

    /// The table of that record has the same trees and links as before but for these. The record says the rest.
    fn exchange_trees(&mut self, name: &str, old: &TableRecord, new: &TableRecord) {
        if old.residence.is_temporary() {
            return;
        }
        let has = |record: &TableRecord, id| record.trees.iter().any(|(tree, _)| *tree == id);
        new.trees.iter().filter(|(id, _)| !has(old, *id)).for_each(|(id, _)| self.add_tree(*id, name));
        old.trees.iter().filter(|(id, _)| !has(new, *id)).for_each(|(id, _)| self.remove_tree(*id));
    }

    /// The table has other links than before, and the same trees.
    pub(in crate::engine) fn relink(&mut self, name: &str, old: &TableRecord, new: &TableRecord) {
        self.unlink(name, old);
        self.link(name, new);
        self.update(name, new);
    }

    fn unlink(&mut self, name: &str, record: &TableRecord) {
        let targets = record.targets().into_iter();
        self.rows.extend(targets.map(|target| (referrer_key(target, name), None, false)));
        self.rows.extend(record.link_names().map(|link| (link_key(link), None, false)));
    }

    fn link(&mut self, name: &str, record: &TableRecord) {
        let targets = record.targets().into_iter();
        self.rows.extend(targets.map(|target| (referrer_key(target, name), Some(Vec::new()), true)));
        let name = name.as_bytes();
        self.rows.extend(record.link_names().map(|link| (link_key(link), Some(name.to_vec()), true)));
    }

    /// The table has the same trees and links as before.
    pub(in crate::engine) fn update(&mut self, name: &str, record: &TableRecord) {
        if record.residence.is_temporary() {
            return self.temporary.push((name.to_string(), Some(record.clone())));
        }
        self.rows.push((name_key(name), Some(record.encode()), false));
    }

    /// The table's counter from then on.
    pub(in crate::engine) fn set_counter(&mut self, table: Arc<Table>, value: u64) {
        self.counters.push((table, value));
    }

    /// One transaction, durable when it returns; of temporary tables nothing is logged.
    pub(in crate::engine) fn commit(&self, shared: &Shared) -> Result<()> {
        let catalog = &shared.system.catalog;
        let mut work = Box::new(Work::new(shared.ids.next_txn()));
        shared.counted.active.add(1);
        for (key, value, is_new) in &self.rows {
            let op = match value {
                Some(value) if *is_new => WriteOp::Insert(value),
                Some(value) => WriteOp::Update(value),
                None => WriteOp::Delete,
            };
            if let Err(error) = work.write(shared, catalog, key, op) {
                // Not prepared: there is nothing to fail.
                let _ = work.rollback(shared, CommitFlush::Lazy);
                return Err(error);
            }
        }
        for (table, value) in &self.counters {
            work.note_counter(table, *value, CounterChange::Set);
        }
        work.commit(shared, CommitFlush::Sync).map_err(|(error, _)| error)?;
        for (table, value) in &self.counters {
            table.counter_cell().store(*value, Ordering::SeqCst);
        }
        shared.definitions.temporary.change(&self.temporary);
        Ok(())
    }

    /// Changes what an engine shows that is only read. Nobody has read the catalog before.
    pub(in crate::engine) fn show(&self, shared: &Shared) -> Result<()> {
        let status = TxnStatus::new(0);
        shared.clock.publish(&status);
        for (key, value, _) in &self.rows {
            let op = value.as_deref().map_or(WriteOp::Delete, WriteOp::Update);
            shared.system.catalog.write(key, op, &status, 1)?;
        }
        Ok(())
    }
}

impl Shared {
    pub(in crate::engine) fn record(&self, name: &str) -> Result<TableRecord> {
        self.find_record(name)?.ok_or_else(|| Error::NoSuchTable(name.to_string()))
    }

    pub(in crate::engine) fn table_meta(&self, name: &str) -> Result<Vec<u8>> {
        Ok(self.record(name)?.meta)
    }

    /// A record with new identifiers, and its empty file, if it has one.
    fn new_record(
        &self,
        specs: &[TreeSpec],
        residence: Residence,
        links: &[Link],
        meta: &[u8],
    ) -> Result<TableRecord> {
        // Relaxed: only uniqueness matters; a capture, which wants to know what was never used, has `ddl` alone.
        let space = self.ids.space.fetch_add(1, Ordering::Relaxed);
        // Relaxed: as above.
        let trees = specs.iter().map(|spec| (self.ids.tree.fetch_add(1, Ordering::Relaxed), *spec));
        let trees = trees.map(|(id, spec)| (id, residence.spec(spec))).collect();
        let (links, meta) = (links.to_vec(), meta.to_vec());
        let record = TableRecord { space, residence, trees, links, meta, guarded: false };
        if !record.has_file() {
            return Ok(record);
        }
        let create = || Space::create(&self.files, &self.space_path(space), space);
        let created = create().or_else(|error| match error {
            // TRUNCATE gives back more.
            Error::DiskFull { .. } if self.log.make_space(DiskReserve::spend_for_log) => create(),
            error => Err(error),
        });
        if let Err(error) = created {
            self.remove_file(space, None);
            return Err(error);
        }
        Ok(record)
    }

    /// The commit of `changes` that make `record` known failed or not: a file without record goes.
    fn commit_new(&self, changes: &CatalogChanges, record: &TableRecord) -> Result<()> {
        changes.commit(self).inspect_err(|error| {
            // After a failed sync only the next start knows whether the record is in the log.
            if !matches!(error, Error::ReadOnly(_)) && record.has_file() {
                self.remove_file(record.space, None);
            }
        })
    }

    /// The record of `name` is gone from the catalog: so are the table's memory and its file.
    pub(in crate::engine) fn discard(&self, name: &str, record: &TableRecord) {
        let table = self.data.tables.lock().retire(name);
        let trees: Vec<TreeId> = record.trees.iter().map(|(tree, _)| *tree).collect();
        self.forget_dirty(table.iter().flat_map(|table| table.all_trees()));
        {
            let mut counters = self.data.counters.lock();
            trees.iter().for_each(|tree| drop(counters.remove(tree)));
        }
        self.care.forget_damage(record);
        trees.iter().for_each(|tree| self.data.digests.forget(*tree));
        // No checkpoint has anything of the others.
        if !record.has_file() {
            return;
        }
        {
            let mut dropped = self.definitions.dropped.lock();
            // With the file go those that were retired before: nothing of them is to be written any more.
            dropped.iter_mut().for_each(|d| d.retired.retain(|tree| tree.space().id() != record.space));
            dropped.push(Dropped { space: Some(record.space), trees, retired: Vec::new() });
        }
        self.remove_file(record.space, table.as_deref());
    }

    pub(in crate::engine) fn create_table(
        &self,
        name: &str,
        specs: &[TreeSpec],
        residence: Residence,
        links: &[Link],
        meta: &[u8],
        replace: Option<&str>,
    ) -> Result<()> {
        check_limit("table name", name.len(), MAX_NAME_BYTES)?;
        check_limit("number of trees", specs.len(), usize::from(u16::MAX))?;
        check_links(links)?;
        let names = links.iter().map(|link| link.name.as_str()).chain([name, replace.unwrap_or(name)]);
        let _turn = self.definitions.names.take(&names.collect::<Vec<_>>());
        let _ddl = self.definitions.ddl.read();
        self.health.check()?;
        let replaced = replace.map(|old| self.record(old).map(|record| (old, record))).transpose()?;
        if let Some((_, record)) = &replaced {
            self.check_decided(record)?;
        }
        if replace != Some(name) && self.find_record(name)?.is_some() {
            return Err(Error::TableExists(name.to_string()));
        }
        self.check_link_names(links, replace.as_slice())?;
        let linked = !links.is_empty() || self.is_linked(name)?;
        let record = self.new_record(specs, residence, links, meta)?;
        let mut changes = CatalogChanges::default();
        if let Some((old, record)) = &replaced {
            changes.remove(old, record);
        }
        changes.add(name, &record);
        self.commit_new(&changes, &record)?;
        self.note_links(linked);
        if let Some((old, record)) = &replaced {
            self.discard(old, record);
        }
        Ok(())
    }

    pub(in crate::engine) fn drop_table(&self, name: &str, minds_prepared: bool) -> Result<()> {
        let _turn = self.definitions.names.take(&[name]);
        let _ddl = self.definitions.ddl.read();
        self.health.check()?;
        let record = self.record(name)?;
        if minds_prepared {
            self.check_decided(&record)?;
        }
        let linked = self.is_linked(name)?;
        let mut changes = CatalogChanges::default();
        changes.remove(name, &record);
        changes.commit(self)?;
        self.note_links(linked);
        self.discard(name, &record);
        Ok(())
    }

    pub(in crate::engine) fn rename_table(
        &self,
        from: &str,
        to: &str,
        renaming: &Renaming<'_>,
    ) -> Result<()> {
        check_limit("table name", to.len(), MAX_NAME_BYTES)?;
        let (_turn, followers) = self.take_with_referrers(from, to, renaming)?;
        let _ddl = self.definitions.ddl.read();
        self.health.check()?;
        let record = self.record(from)?;
        if self.find_record(to)?.is_some() {
            return Err(Error::TableExists(to.to_string()));
        }
        let mut new = if renaming.carries { record.retargeted(from, to) } else { record.clone() };
        let mut changes = CatalogChanges::default();
        changes.remove(from, &record);
        if let Some(names) = renaming.link_names {
            new.rename_links(names);
            check_links(&new.links)?;
            self.check_link_names(&new.links, &[from, renaming.successor_of.unwrap_or(from)])?;
            self.give_names(renaming, &mut changes)?;
        }
        let linked = self.is_linked(from)? || self.is_linked(to)?;
        changes.add(to, &new);
        for follower in followers.iter().filter(|follower| *follower != from) {
            let old = self.record(follower)?;
            changes.relink(follower, &old, &old.retargeted(from, to));
        }
        changes.commit(self)?;
        self.note_links(linked);
        self.data.tables.lock().rename(from, to);
        Ok(())
    }

    /// All names that a renaming is about, and with `carries` those of the tables that have links to `from`, which are
    /// the second.
    fn take_with_referrers(
        &self,
        from: &str,
        to: &str,
        renaming: &Renaming<'_>,
    ) -> Result<(Turn<'_>, Vec<String>)> {
        loop {
            let referrers = || if renaming.carries { self.system.referrers(from) } else { Ok(Vec::new()) };
            let followers = referrers()?;
            let others = followers.iter().map(String::as_str).chain(renaming.names());
            let names: Vec<&str> = others.chain([from, to]).collect();
            let turn = self.definitions.names.take(&names);
            // Whoever has a table's name alone changes its links.
            if referrers()? == followers {
                return Ok((turn, followers));
            }
        }
    }

    /// The metadata stays as it is if none is given.
    pub(in crate::engine) fn truncate_table(&self, name: &str, meta: Option<&[u8]>) -> Result<()> {
        let _turn = self.definitions.names.take(&[name]);
        let old = self.record(name)?;
        let specs: Vec<TreeSpec> = old.trees.iter().map(|(_, spec)| *spec).collect();
        self.replace_trees(name, &specs, meta.unwrap_or(&old.meta))?;
        // Who has truncated it goes on with it. If it cannot be opened he will be told.
        if let Ok(table) = self.open_in_turn(name) {
            table.all_trees().iter().take(1).for_each(|rows| rows.note_change(self.time.calendar_seconds()));
        }
        Ok(())
    }

    /// New and empty trees in place of all that the table has, for who has its name.
    pub(in crate::engine) fn replace_trees(
        &self,
        name: &str,
        specs: &[TreeSpec],
        meta: &[u8],
    ) -> Result<TableRecord> {
        let _ddl = self.definitions.ddl.read();
        self.health.check()?;
        let old = self.record(name)?;
        self.check_decided(&old)?;
        let linked = self.is_linked(name)?;
        let mut record = self.new_record(specs, old.residence, &old.links, meta)?;
        record.guarded = old.guarded && old.meta == meta;
        let mut changes = CatalogChanges::default();
        changes.remove(name, &old);
        changes.add(name, &record);
        self.commit_new(&changes, &record)?;
        self.note_links(linked);
        self.discard(name, &old);
        Ok(record)
    }

    /// All of `alterations` and `relinks` in one transaction.
    pub(in crate::engine) fn alter_tables(
        &self,
        alterations: &[Alteration<'_>],
        relinks: &[Relink<'_>],
    ) -> Result<()> {
        let altered = alterations.iter().map(|alteration| alteration.table);
        let names: Vec<&str> = altered.chain(relinks.iter().flat_map(Relink::names)).collect();
        let _turn = self.definitions.names.take(&names);
        let mut open = Vec::with_capacity(alterations.len());
        for alteration in alterations {
            check_limit("number of trees", alteration.layout.len(), usize::from(u16::MAX))?;
            open.push(self.open_in_turn(alteration.table)?);
        }
        let _ddl = self.definitions.ddl.read();
        self.health.check()?;
        let mut changes = CatalogChanges::default();
        let mut records = Vec::with_capacity(alterations.len());
        let mut linked = !relinks.is_empty();
        for (alteration, table) in alterations.iter().zip(&open) {
            linked |= self.is_linked(alteration.table)?;
            let relink = relinks.iter().find(|relink| relink.table == alteration.table);
            records.push(self.altered_record(alteration, relink, &mut changes)?);
            if let Some(value) = alteration.counter {
                changes.set_counter(table.clone(), value);
            }
        }
        for relink in relinks.iter().filter(|relink| alterations.iter().all(|a| a.table != relink.table)) {
            let old = self.record(relink.table)?;
            changes.relink(relink.table, &old, &self.relinked(old.clone(), relink)?);
        }
        changes.commit(self)?;
        self.note_links(linked);
        for ((alteration, open), record) in alterations.iter().zip(&open).zip(&records) {
            self.put_in_place(alteration.table, open, record);
            if let Some(packing) = alteration.packing {
                self.repack(alteration.table, packing);
            }
        }
        Ok(())
    }

    /// The record that a table is to have, and what changes in the catalog by that.
    fn altered_record(
        &self,
        alteration: &Alteration<'_>,
        relink: Option<&Relink<'_>>,
        changes: &mut CatalogChanges,
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
            new.trees.push(tree);
        }
        if let Some(packing) = alteration.packing {
            new.trees.iter_mut().for_each(|(_, spec)| spec.packing = packing);
        }
        changes.exchange_trees(name, &old, &new);
        match relink {
            Some(relink) => {
                new = self.relinked(new, relink)?;
                changes.relink(name, &old, &new);
            }
            None => changes.update(name, &new),
        }
        Ok(new)
    }

    /// Blocks of the table are rewritten by the next checkpoints.
    fn repack(&self, name: &str, packing: Packing) {
        let Some(table) = self.data.tables.lock().get(name).cloned() else { return };
        table.all_trees().iter().for_each(|tree| tree.convert(packing));
        self.mark_dirty(table.all_trees().iter());
        self.care.progress.ask();
    }

    /// Makes `new` the open table; trees that it had before are the same objects.
    fn put_in_place(&self, name: &str, open: &Arc<Table>, new: &TableRecord) {
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
            tables.retire(name);
            tables.insert(table);
        }
        self.forget_dirty(retired.iter());
        if !retired.is_empty() && new.has_file() {
            let trees = retired.iter().map(|tree| tree.id()).collect();
            self.definitions.dropped.lock().push(Dropped { space: None, trees, retired });
        }
    }

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

pub(in crate::engine) fn check_limit(what: &'static str, found: usize, maximum: usize) -> Result<()> {
    if found > maximum {
        return Err(Error::TooLarge { what, bytes: found as u64, maximum: maximum as u64 });
    }
    Ok(())
}
