//! A table takes the place of another: what an ALTER that writes all rows anew ends with ([`super::online`]).
//!
//! The new table was created and filled under a name of its own. In one synced transaction of the catalog it gets the
//! other's name and links, or those that it is to have, and the other goes, with its file: after a crash there is the
//! one or the other.

use crate::catalog::TableRecord;
use crate::engine::definitions::ddl::CatalogChanges;
use crate::engine::definitions::links::Relink;
use crate::engine::shared::{Engine, Shared};
use crate::Result;

/// Which table takes the place of which: see [`Engine::replace_tables`].
#[derive(Debug, Clone, Copy)]
pub struct Replacement<'a> {
    /// The table that goes.
    pub table: &'a str,
    /// The one that has its name from then on.
    pub by: &'a str,
    /// Its counter from then on.
    pub counter: u64,
}

impl Engine {
    /// Tables go, and others have their names and links from then on, with the trees and the metadata that they have:
    /// all in one step. Nobody else uses any of them. Snapshots from before the new tables were finished
    /// ([`crate::engine::OnlineBuild::finish`]) do not see them.
    pub fn replace_tables(&self, replacements: &[Replacement<'_>]) -> Result<()> {
        self.shared.replace_tables(replacements, &[])
    }

    /// As [`Engine::replace_tables`], and gives tables other links in the same step: these ones or others.
    pub fn replace_linked_tables(
        &self,
        replacements: &[Replacement<'_>],
        relinks: &[Relink<'_>],
    ) -> Result<()> {
        self.shared.replace_tables(replacements, relinks)
    }
}

impl Shared {
    fn replace_tables(&self, replacements: &[Replacement<'_>], relinks: &[Relink<'_>]) -> Result<()> {
        let replaced = replacements.iter().flat_map(|one| [one.table, one.by]);
        let names: Vec<&str> = replaced.chain(relinks.iter().flat_map(Relink::names)).collect();
        let _turn = self.definitions.names.take(&names);
        let mut changes = CatalogChanges::default();
        for one in replacements {
            let comes = self.open_in_turn(one.by)?;
            comes.losses.add(&self.open_in_turn(one.table)?.losses);
            changes.set_counter(comes, one.counter);
        }
        let _ddl = self.definitions.ddl.read();
        self.health.check()?;
        let mut old = Vec::with_capacity(replacements.len());
        let mut linked = !relinks.is_empty();
        for one in replacements {
            let (goes, comes) = (self.record(one.table)?, self.record(one.by)?);
            self.check_decided(&goes)?;
            linked |= self.is_linked(one.table)?;
            changes.remove(one.table, &goes);
            changes.remove(one.by, &comes);
            let mut record = TableRecord { links: goes.links.clone(), ..comes };
            if let Some(relink) = relinks.iter().find(|relink| relink.table == one.table) {
                record = self.relinked(record, relink)?;
            }
            changes.add(one.table, &record);
            old.push(goes);
        }
        for relink in relinks.iter().filter(|relink| replacements.iter().all(|one| one.table != relink.table))
        {
            let old = self.record(relink.table)?;
            changes.relink(relink.table, &old, &self.relinked(old.clone(), relink)?);
        }
        changes.commit(self)?;
        self.note_links(linked);
        for (one, old) in replacements.iter().zip(&old) {
            self.discard(one.table, old);
            self.data.tables.lock().rename(one.by, one.table);
        }
        Ok(())
    }
}
