//! Links between tables, which the caller gives a meaning (a server's foreign keys).
//!
//! A link is a part of the record of the table that has it, and leads to another table by name. So it is created,
//! renamed and dropped with its table, in the same transaction; and a table of the target's name may come and go. For
//! each table that has links to another the catalog has a row besides, by the target's name, and for each link that has
//! a name one by that: no two links have one name.
//!
//! Whoever keeps what he found out about links asks [`Engine::link_changes`] whether it still holds: the number grows
//! after each change, so who reads it first and the links then never takes old ones for new.

use super::catalog_changes::CatalogChanges;
use super::ddl::check_limit;
use crate::catalog::{Link, TableRecord, MAX_NAME_BYTES};
use crate::engine::shared::{Engine, Shared};
use crate::{Error, Result};
use std::sync::atomic::Ordering;

/// What becomes of a table's links: see [`Engine::change`].
#[derive(Debug, Clone, Copy)]
pub struct Relink<'a> {
    /// The table's name.
    pub table: &'a str,
    /// Its links from now on.
    pub links: &'a [Link],
}

impl<'a> Relink<'a> {
    /// Whose turn it must be for this: the table's name and those of its links to come.
    pub(super) fn names(&self) -> impl Iterator<Item = &'a str> {
        self.links.iter().map(|link| link.name.as_str()).chain([self.table])
    }
}

/// Another name for a table, and what that means for links: see [`Engine::rename`].
#[derive(Debug, Clone, Copy, Default)]
pub struct Renaming<'a> {
    /// The table's name so far.
    pub from: &'a str,
    /// Its name from now on.
    pub to: &'a str,
    /// The links of all tables that lead to it follow.
    pub carries: bool,
    /// What its own links are called from now on, in their order (a link beyond these has no name); if there are none
    /// here, as before.
    pub link_names: Option<&'a [&'a str]>,
    /// A table that is about to go: links of it that have one of the names lose it.
    pub successor_of: Option<&'a str>,
}

impl<'a> Renaming<'a> {
    /// Links of other tables stay with the old name, and its own are called as before.
    pub fn new(from: &'a str, to: &'a str) -> Renaming<'a> {
        Renaming { from, to, ..Renaming::default() }
    }

    /// Whose turn it must be for this.
    pub(super) fn names(&self) -> impl Iterator<Item = &'a str> {
        let of_links = self.link_names.unwrap_or_default().iter().copied();
        of_links.chain(self.successor_of).chain([self.from, self.to])
    }
}

impl Engine {
    /// The name of the table that has the link of this name.
    pub fn table_with_link(&self, name: &str) -> Result<Option<String>> {
        self.shared.system.table_with_link(name)
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

    /// Names of all tables that have links, sorted. Takes time for these and no others.
    pub fn linked_tables(&self) -> Result<Vec<String>> {
        Ok(self.shared.system.linked_tables()?.into_iter().collect())
    }

    /// How often a table that has links, or that links lead to, was created, altered, emptied, renamed or dropped.
    pub fn link_changes(&self) -> u64 {
        self.shared.definitions.link_changes.load(Ordering::SeqCst)
    }
}

impl Shared {
    /// Whether the table `name`, or the one of that name that is to come, has links or is the target of some.
    pub(in crate::engine) fn is_linked(&self, name: &str) -> Result<bool> {
        let has_links = self.system.table(name)?.is_some_and(|record| !record.links.is_empty());
        Ok(has_links || !self.system.referrers(name)?.is_empty())
    }

    /// Whether nobody else has links of these names; `own`: who may have them, since they lose them in the same step.
    /// The caller has the names.
    pub(super) fn check_link_names(&self, links: &[Link], own: &[&str]) -> Result<()> {
        for (i, link) in links.iter().enumerate().filter(|(_, link)| !link.name.is_empty()) {
            let holder =
                self.system.table_with_link(&link.name)?.filter(|table| !own.contains(&table.as_str()));
            let twice = links[..i].iter().any(|other| other.name == link.name);
            if let Some(table) = holder.or_else(|| twice.then(String::new)) {
                return Err(Error::LinkExists { table, name: link.name.clone() });
            }
        }
        Ok(())
    }

    /// The table that goes loses the names that its successor's links are to have.
    pub(super) fn give_names(&self, renaming: &Renaming<'_>, changes: &mut CatalogChanges) -> Result<()> {
        let Some(name) = renaming.successor_of else { return Ok(()) };
        let old = self.record(name)?;
        let mut new = old.clone();
        let names = renaming.link_names.unwrap_or_default();
        let given = new.links.iter_mut().filter(|link| names.contains(&link.name.as_str()));
        given.for_each(|link| link.name.clear());
        changes.relink(name, &old, &new);
        Ok(())
    }

    /// The record with the links that it is to have. The caller has the names.
    pub(super) fn relinked(&self, record: TableRecord, relink: &Relink<'_>) -> Result<TableRecord> {
        check_links(relink.links)?;
        self.check_link_names(relink.links, &[relink.table])?;
        Ok(TableRecord { links: relink.links.to_vec(), ..record })
    }

    /// A change of a table was committed; `linked`: of one that [`Shared::is_linked`] before or after it.
    pub(in crate::engine) fn note_links(&self, linked: bool) {
        if linked {
            self.definitions.link_changes.fetch_add(1, Ordering::SeqCst);
        }
    }
}

pub(super) fn check_links(links: &[Link]) -> Result<()> {
    check_limit("number of links", links.len(), usize::from(u16::MAX))?;
    for link in links {
        check_limit("name of a link", link.name.len(), usize::from(u16::MAX))?;
        check_limit("table name", link.target.len(), MAX_NAME_BYTES)?;
        check_limit("link", link.body.len(), usize::from(u16::MAX))?;
    }
    Ok(())
}
