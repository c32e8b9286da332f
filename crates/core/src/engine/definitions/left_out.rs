//! Tables that the copy has not which a directory was made of ([`crate::Options::partial`]).
//!
//! They are dropped when it is known which names the log ends with, by a transaction behind that end, before the log is
//! replayed: what it has for them is passed over, as for all tables that are gone. From then on the directory is like
//! any other; without that transaction a later start, whose log may still begin before it, would find them again.

use super::catalog_changes::CatalogChanges;
use crate::catalog::{decode_memory_list, space_of_file_name, MEMORY_LIST};
use crate::checkpoint::Dropped;
use crate::engine::shared::Shared;
use crate::file::OpenMode;
use crate::options::LogLevel;
use crate::{Error, Result};
use std::collections::{BTreeSet, HashSet};

impl Shared {
    /// Drops all tables whose files are not there, and those in memory that are not on the copy's list. The catalog is
    /// that of the log's end; no table is open.
    pub(in crate::engine) fn drop_left_out(&self) -> Result<()> {
        debug_assert_eq!(self.data.tables.lock().len(), 0, "a table is open before it is known to be there");
        let files = self.fs.list(&self.dir)?;
        let present: HashSet<u32> = files.iter().filter_map(|name| space_of_file_name(name)).collect();
        let listed = self.memory_list()?;
        let mut changes = CatalogChanges::default();
        let (mut count, mut dropped) = (0, Vec::new());
        for name in self.system.names("")? {
            let record = self.record(&name)?;
            let is_there = match record.has_file() {
                true => present.contains(&record.space),
                false => listed.as_ref().is_none_or(|listed| listed.contains(&record.space)),
            };
            if is_there {
                continue;
            }
            count += 1;
            changes.remove(&name, &record);
            // No checkpoint has anything of a table in memory.
            if record.has_file() {
                let trees = record.trees.iter().map(|(tree, _)| *tree).collect();
                dropped.push(Dropped { space: Some(record.space), trees, retired: Vec::new() });
            }
        }
        if count > 0 {
            match self.fs.is_read_only() {
                true => changes.show(self)?,
                false => changes.commit(self)?,
            }
            let text = format!("{count} tables are not in the backup that this was made of, and are dropped");
            self.observer.message(LogLevel::Note, &text);
            self.definitions.dropped.lock().extend(dropped);
        }
        // It says nothing of tables that are made from here on.
        match listed.is_some() && !self.fs.is_read_only() {
            // After a loss of power it would drop them.
            true => self.fs.remove(&self.dir.join(MEMORY_LIST)).and_then(|()| self.fs.sync_dir(&self.dir)),
            false => Ok(()),
        }
    }

    /// The spaces of the tables in memory that the copy has; `None`: all.
    fn memory_list(&self) -> Result<Option<BTreeSet<u32>>> {
        let path = self.dir.join(MEMORY_LIST);
        if !self.fs.exists(&path)? {
            return Ok(None);
        }
        let file = self.fs.open(&path, OpenMode::ReadOnly)?;
        let mut bytes = vec![0; file.len()? as usize];
        file.read_exact_at(0, &mut bytes)?;
        decode_memory_list(&bytes).map(Some).map_err(|detail| Error::corrupt(path, 0, detail))
    }
}
