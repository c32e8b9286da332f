//! Creating, dropping, renaming and emptying tables; changing them is in `alter.rs`.
//!
//! Each is one synced transaction on the catalog: after a crash there is the old state or the new one. Files are
//! created before that transaction and removed after it. A file without a record is either younger than the last
//! checkpoint or belongs to a record whose removal the log has; both are found at the next start without a look at all
//! tables, because a checkpoint never captures its state in the middle of DDL (`Definitions::ddl`).
//!
//! DDL on different names goes on at the same time, syncs included, and so does the opening of tables: each has its
//! names to itself (`Definitions::names`), and nothing else. See `docs/design/scale.md`.

use super::catalog_changes::CatalogChanges;
use super::links::{check_links, Renaming};
use super::names::Turn;
use crate::catalog::{Link, TableRecord, MAX_NAME_BYTES, SYSTEM_SPACE};
use crate::checkpoint::Dropped;
use crate::engine::shared::{Engine, Shared};
use crate::file::DiskReserve;
use crate::options::{Residence, TreeSpec};
use crate::store::Space;
use crate::types::TreeId;
use crate::{Error, Result};
use std::sync::atomic::Ordering;

/// A table to be created: see [`Engine::create`].
#[derive(Debug, Clone, Copy, Default)]
pub struct NewTable<'a> {
    /// Its name, which must be free.
    pub name: &'a str,
    /// Its trees.
    pub trees: &'a [TreeSpec],
    /// Where its rows are.
    pub residence: Residence,
    /// Its links to other tables, which need not exist.
    pub links: &'a [Link],
    /// What the caller wants remembered.
    pub meta: &'a [u8],
}

impl<'a> NewTable<'a> {
    /// A table with a file, no links and no metadata.
    pub fn new(name: &'a str, trees: &'a [TreeSpec]) -> NewTable<'a> {
        NewTable { name, trees, ..NewTable::default() }
    }
}

/// What it means for a table that is to be dropped that a prepared transaction has written to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IfPrepared {
    /// It stays: [`Error::Undecided`].
    Refuse,
    /// Nothing: for tables that nobody but their session could see.
    Ignore,
}

impl Engine {
    /// Creates a table of empty trees. Durable when it returns, as all DDL; but of a table in memory alone only the
    /// definition is, and of a temporary one nothing, nor is it in [`Engine::table_names`]: see [`Residence`].
    pub fn create(&self, new: NewTable<'_>) -> Result<()> {
        let NewTable { name, trees, links, .. } = new;
        check_limit("table name", name.len(), MAX_NAME_BYTES)?;
        check_limit("number of trees", trees.len(), usize::from(u16::MAX))?;
        check_links(links)?;
        let shared = &self.shared;
        let names = links.iter().map(|link| link.name.as_str()).chain([name]);
        let _turn = shared.definitions.names.take(&names.collect::<Vec<_>>());
        let _ddl = shared.definitions.ddl.read();
        shared.health.check()?;
        if shared.find_record(name)?.is_some() {
            return Err(Error::TableExists(name.to_string()));
        }
        debug_assert!(shared.data.tables.lock().get(name).is_none(), "a table without a record is open");
        shared.check_link_names(links, &[])?;
        let linked = !links.is_empty() || shared.is_linked(name)?;
        let record = shared.new_record(new)?;
        let mut changes = CatalogChanges::default();
        changes.add(name, &record);
        shared.commit_new(&changes, &record)?;
        shared.note_links(linked);
        Ok(())
    }

    /// Removes a table and its rows. Who has it open reads on until the handle is dropped.
    pub fn drop(&self, name: &str, prepared: IfPrepared) -> Result<()> {
        let shared = &self.shared;
        let _turn = shared.definitions.names.take(&[name]);
        let _ddl = shared.definitions.ddl.read();
        shared.health.check()?;
        let record = shared.record(name)?;
        if prepared == IfPrepared::Refuse {
            shared.check_decided(&record)?;
        }
        let linked = shared.is_linked(name)?;
        let mut changes = CatalogChanges::default();
        changes.remove(name, &record);
        changes.commit(shared)?;
        shared.note_links(linked);
        shared.discard(name, &record);
        Ok(())
    }

    /// Gives a table another name, which must be free, with what that means for links. Open handles follow.
    pub fn rename(&self, renaming: Renaming<'_>) -> Result<()> {
        let Renaming { from, to, .. } = renaming;
        check_limit("table name", to.len(), MAX_NAME_BYTES)?;
        let shared = &self.shared;
        let (_turn, followers) = shared.take_with_referrers(&renaming)?;
        let _ddl = shared.definitions.ddl.read();
        shared.health.check()?;
        let record = shared.record(from)?;
        if shared.find_record(to)?.is_some() {
            return Err(Error::TableExists(to.to_string()));
        }
        let mut new = if renaming.carries { record.retargeted(from, to) } else { record.clone() };
        let mut changes = CatalogChanges::default();
        changes.remove(from, &record);
        if let Some(names) = renaming.link_names {
            new.rename_links(names);
            check_links(&new.links)?;
            shared.check_link_names(&new.links, &[from, renaming.successor_of.unwrap_or(from)])?;
            shared.give_names(&renaming, &mut changes)?;
        }
        let linked = shared.is_linked(from)? || shared.is_linked(to)?;
        changes.add(to, &new);
        for follower in followers.iter().filter(|follower| *follower != from) {
            let old = shared.record(follower)?;
            changes.relink(follower, &old, &old.retargeted(from, to));
        }
        changes.commit(shared)?;
        shared.note_links(linked);
        shared.data.tables.lock().rename(from, to);
        Ok(())
    }

    /// New empty trees under the same record, with other metadata if some are given; the counter starts again. Handles
    /// opened before keep the old trees: see [`Table::is_current`](crate::engine::Table::is_current).
    /// [`Error::Undecided`] if a prepared transaction has written to the table.
    pub fn empty(&self, name: &str, meta: Option<&[u8]>) -> Result<()> {
        let shared = &self.shared;
        let _turn = shared.definitions.names.take(&[name]);
        let old = shared.record(name)?;
        let specs: Vec<TreeSpec> = old.trees.iter().map(|(_, spec)| *spec).collect();
        shared.replace_trees(name, &specs, meta.unwrap_or(&old.meta))?;
        // Who has emptied it goes on with it. If it cannot be opened he will be told.
        if let Ok(table) = shared.open_in_turn(name) {
            table
                .all_trees()
                .iter()
                .take(1)
                .for_each(|rows| rows.note_commit(0, 0, shared.time.calendar_seconds()));
        }
        Ok(())
    }

    /// What the creator of the table, or who altered it, wanted remembered; without opening the table.
    pub fn table_meta(&self, name: &str) -> Result<Vec<u8>> {
        Ok(self.shared.record(name)?.meta)
    }
}

impl Shared {
    pub(in crate::engine) fn record(&self, name: &str) -> Result<TableRecord> {
        self.find_record(name)?.ok_or_else(|| Error::NoSuchTable(name.to_string()))
    }

    /// A record with new identifiers, and its empty file, if it has one.
    fn new_record(&self, new: NewTable<'_>) -> Result<TableRecord> {
        let NewTable { residence, .. } = new;
        // Relaxed: only uniqueness matters; a capture, which wants to know what was never used, has `ddl` alone.
        let space = self.ids.space.fetch_add(1, Ordering::Relaxed);
        debug_assert_ne!(space, SYSTEM_SPACE, "a table in place of the catalog");
        // Relaxed: as above.
        let trees = new.trees.iter().map(|spec| (self.ids.tree.fetch_add(1, Ordering::Relaxed), *spec));
        let trees = trees.map(|(id, spec)| (id, residence.spec(spec))).collect();
        let (links, meta) = (new.links.to_vec(), new.meta.to_vec());
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
    pub(super) fn discard(&self, name: &str, record: &TableRecord) {
        debug_assert!(
            !matches!(self.find_record(name), Ok(Some(now)) if now.space == record.space),
            "a table that is still in the catalog"
        );
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

    /// All names that a renaming is about, and if it carries links those of the tables that have some to the table,
    /// which are the second.
    fn take_with_referrers(&self, renaming: &Renaming<'_>) -> Result<(Turn<'_>, Vec<String>)> {
        loop {
            let referrers =
                || if renaming.carries { self.system.referrers(renaming.from) } else { Ok(Vec::new()) };
            let followers = referrers()?;
            let names: Vec<&str> = followers.iter().map(String::as_str).chain(renaming.names()).collect();
            let turn = self.definitions.names.take(&names);
            // Whoever has a table's name alone changes its links.
            if referrers()? == followers {
                return Ok((turn, followers));
            }
        }
    }

    /// New and empty trees in place of all that the table has, for who has its name.
    pub(in crate::engine) fn replace_trees(
        &self,
        name: &str,
        trees: &[TreeSpec],
        meta: &[u8],
    ) -> Result<TableRecord> {
        let _ddl = self.definitions.ddl.read();
        self.health.check()?;
        let old = self.record(name)?;
        self.check_decided(&old)?;
        let linked = self.is_linked(name)?;
        let new = NewTable { name, trees, residence: old.residence, links: &old.links, meta };
        let mut record = self.new_record(new)?;
        record.guarded = old.guarded && old.meta == meta;
        let mut changes = CatalogChanges::default();
        changes.remove(name, &old);
        changes.add(name, &record);
        self.commit_new(&changes, &record)?;
        self.note_links(linked);
        self.discard(name, &old);
        Ok(record)
    }
}

pub(super) fn check_limit(what: &'static str, found: usize, maximum: usize) -> Result<()> {
    if found > maximum {
        return Err(Error::TooLarge { what, bytes: found as u64, maximum: maximum as u64 });
    }
    Ok(())
}
