//! Tables that the copy has not which a directory was made of ([`crate::Options::partial`]).
//!
//! They are dropped when it is known which names the log ends with, by a transaction behind that end, before the log is
//! replayed: what it has for them is passed over, as for all tables that are gone. From then on the directory is like
//! any other; without that transaction a later start, whose log may still begin before it, would find them again.

use super::ddl::Changes;
use super::shared::Shared;
use crate::catalog::space_of_file_name;
use crate::checkpoint::Dropped;
use crate::options::LogLevel;
use crate::Result;
use std::collections::HashSet;

impl Shared {
    /// Drops all tables whose files are not there. The catalog is that of the log's end; no table is open.
    pub(super) fn drop_left_out(&self) -> Result<()> {
        let files = self.fs.list(&self.dir)?;
        let present: HashSet<u32> = files.iter().filter_map(|name| space_of_file_name(name)).collect();
        let mut changes = Changes::default();
        let mut dropped = Vec::new();
        for name in self.system.names("")? {
            let record = self.record(&name)?;
            if record.has_file() && !present.contains(&record.space) {
                changes.remove(&name, &record);
                let trees = record.trees.iter().map(|(tree, _)| *tree).collect();
                dropped.push(Dropped { space: Some(record.space), trees, retired: Vec::new() });
            }
        }
        if dropped.is_empty() {
            return Ok(());
        }
        match self.fs.is_read_only() {
            true => changes.show(self)?,
            false => changes.commit(self)?,
        }
        let text =
            format!("{} tables are not in the backup that this was made of, and are dropped", dropped.len());
        self.observer.message(LogLevel::Note, &text);
        self.dropped.lock().extend(dropped);
        Ok(())
    }
}
