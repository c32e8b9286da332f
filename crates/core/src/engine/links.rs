//! Links between tables, which the caller gives a meaning (a server's foreign keys).
//!
//! A link is a part of the record of the table that has it, and leads to another table by name. So it is created,
//! renamed and dropped with its table, in the same transaction; and a table of the target's name may come and go. For
//! each table that has links to another the catalog has a row besides, by the target's name.
//!
//! Whoever keeps what he found out about links asks [`Engine::link_changes`] whether it still holds: the number grows
//! after each change, so who reads it first and the links then never takes old ones for new.

use super::shared::Shared;
use super::Engine;
use crate::catalog::Link;
use crate::options::TreeSpec;
use crate::Result;
use std::sync::atomic::Ordering;

impl Engine {
    /// Creates a table of empty trees with links to others, which need not exist.
    pub fn create_linked_table(
        &self,
        name: &str,
        trees: &[TreeSpec],
        meta: &[u8],
        links: &[Link],
    ) -> Result<()> {
        self.shared.create_table(name, trees, links, meta, None)
    }

    /// Gives a table another name, and has the links of all tables that lead to it follow, in the same step.
    pub fn rename_table_with_links(&self, from: &str, to: &str) -> Result<()> {
        self.shared.rename_table(from, to, true)
    }

    /// The links that a table has.
    pub fn links(&self, name: &str) -> Result<Vec<Link>> {
        Ok(self.shared.record(name)?.links)
    }

    /// The links that lead to a table of this name, whether there is one or not, each with the table that has it.
    pub fn links_to(&self, target: &str) -> Result<Vec<(String, Link)>> {
        let system = &self.shared.system;
        let mut found = Vec::new();
        for name in system.referrers(target)? {
            // It may have gone since.
            let links = system.table(&name)?.map(|record| record.links).unwrap_or_default();
            let to_target = links.into_iter().filter(|link| link.target == target);
            found.extend(to_target.map(|link| (name.clone(), link)));
        }
        Ok(found)
    }

    /// How often a table that has links, or that links lead to, was created, altered, emptied, renamed or dropped.
    pub fn link_changes(&self) -> u64 {
        self.shared.link_changes.load(Ordering::SeqCst)
    }
}

impl Shared {
    /// Whether the table `name`, or the one of that name that is to come, has links or is the target of some.
    pub(super) fn is_linked(&self, name: &str) -> Result<bool> {
        let has_links = self.system.table(name)?.is_some_and(|record| !record.links.is_empty());
        Ok(has_links || !self.system.referrers(name)?.is_empty())
    }

    /// A change of a table was committed; `linked`: of one that [`Shared::is_linked`] before or after it.
    pub(super) fn note_links(&self, linked: bool) {
        if linked {
            self.link_changes.fetch_add(1, Ordering::SeqCst);
        }
    }
}
