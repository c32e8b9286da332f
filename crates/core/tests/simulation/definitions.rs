//! Tables that come, go, and are changed as a whole.

use std::collections::BTreeSet;

use super::{Session, Step, NAMES};
use crate::durable::{Durable, Table};
use crate::seeds::tell;
use teak_core::server::{IfPrepared, NewTable, Renaming, Replacement};
use teak_core::{Compression, Error, Packing, Result, TreeSpec};

impl Session<'_> {
    pub(super) fn create_table(&mut self) -> Step {
        let free: Vec<&str> =
            NAMES.into_iter().filter(|n| !self.expected.current.tables.contains_key(*n)).collect();
        if free.is_empty() {
            return Step::Done;
        }
        let name = self.random.pick(&free);
        self.create(name)
    }

    fn create(&mut self, name: &str) -> Step {
        let compressions = [Compression::None, Compression::Lz4, Compression::Zstd, Compression::Recompress];
        let compression = self.random.pick(&compressions);
        let packing = Packing { similarity: self.random.percent(50), ..compression.into() };
        // With the smaller ones pages have eight children: trees are high, and pages leave memory.
        let spec = TreeSpec { block_bytes: self.random.pick(&[1024, 4096]), packing };
        let specs = vec![spec; 1 + self.random.below(3)];
        let meta = self.random.next().to_be_bytes().to_vec();
        let mut next = self.expected.current.clone();
        let trees = vec![Default::default(); specs.len()];
        let identity = self.random.next();
        let table = Table { identity, meta: meta.clone(), trees, counter: 0, instead: None };
        next.tables.insert(name.to_string(), table);
        let created = self.engine.create(NewTable { meta: &meta, ..NewTable::new(name, &specs) });
        self.ddl(created, next)
    }

    /// Whether a table was refused because a prepared transaction has written to it, and taken that back: the changes
    /// that are expected of it do not show it.
    pub(super) fn was_taken_back(&self, error: &Error) -> bool {
        matches!(error, Error::Undecided { .. }) && !self.expected.current.prepared.is_empty()
    }

    /// A change of the tables is durable when it returns, whatever the flush setting.
    fn ddl(&mut self, result: Result<()>, next: Durable) -> Step {
        match result {
            Ok(()) => {
                self.expected.durable(next);
                Step::Done
            }
            Err(error) if self.was_taken_back(&error) => Step::Done,
            Err(error) => {
                self.expected.undecided(next);
                Step::Failed(error)
            }
        }
    }

    /// DDL on a table that no transaction has touched (the caller's metadata locks see to that).
    pub(super) fn change_tables(&mut self) -> Step {
        let current = &self.expected.current;
        let busy: BTreeSet<&String> = self.open.iter().flat_map(|open| &open.tables).collect();
        let idle: Vec<String> = current.tables.keys().filter(|name| !busy.contains(name)).cloned().collect();
        if idle.is_empty() || self.random.percent(30) {
            return self.create_table();
        }
        let name = idle[self.random.below(idle.len())].clone();
        if current.prepared.values().flatten().any(|change| change.table == name) {
            return self.change_undecided(&name);
        }
        let mut next = current.clone();
        let table = next.tables.remove(&name).expect("it is there");
        let free = NAMES.into_iter().find(|free| !current.tables.contains_key(*free));
        let kind = self.random.below(6);
        tell(0, || format!("{} {name}", ["drop", "empty", "empty", "rename", "replace", "move"][kind]));
        match kind {
            0 => {
                let dropped = self.engine.drop(&name, IfPrepared::Refuse);
                self.ddl(dropped, next)
            }
            1 => self.empty(&name, None),
            2 => self.empty_with_meta(&name),
            3 => {
                let Some(to) = free else { return self.empty_with_meta(&name) };
                next.tables.insert(to.to_string(), table);
                let renamed = self.engine.rename(Renaming::new(&name, to));
                self.ddl(renamed, next)
            }
            4 => match free {
                Some(by) => self.replace(&name, by),
                None => self.empty_with_meta(&name),
            },
            _ => {
                let to = &idle[self.random.below(idle.len())];
                let is_decided = current.prepared.values().flatten().all(|change| change.table != *to);
                self.move_table(&name, if is_decided { to } else { &name })
            }
        }
    }

    fn empty_with_meta(&mut self, name: &str) -> Step {
        let meta = self.random.next().to_be_bytes();
        self.empty(name, Some(&meta))
    }

    fn empty(&mut self, name: &str, given: Option<&[u8]>) -> Step {
        let mut next = self.expected.current.clone();
        let identity = self.random.next();
        let table = next.tables.get_mut(name).expect("it is there");
        let trees = vec![Default::default(); table.trees.len()];
        let meta = given.map_or_else(|| table.meta.clone(), <[u8]>::to_vec);
        *table = Table { identity, meta, trees, counter: 0, instead: None };
        let emptied = self.engine.empty(name, given);
        self.ddl(emptied, next)
    }

    /// A new table takes the place of this one.
    fn replace(&mut self, name: &str, by: &str) -> Step {
        let created = self.create(by);
        let Some(table) = self.expected.current.tables.get(by).filter(|_| matches!(created, Step::Done))
        else {
            return created;
        };
        let mut next = self.expected.current.clone();
        self.expected.highest_counter += 1 + self.random.below(100) as u64;
        let counter = self.expected.highest_counter;
        next.tables.insert(name.to_string(), Table { counter, ..table.clone() });
        next.tables.remove(by);
        let replaced = self.engine.change(&[Replacement { table: name, by, counter }.into()], &[]);
        self.ddl(replaced, next)
    }

    /// A table that a prepared transaction has written to, which no session may own, is neither dropped nor emptied nor
    /// gets an index.
    fn change_undecided(&mut self, name: &str) -> Step {
        let other = self.expected.current.tables.keys().find(|other| *other != name).cloned();
        let refused = match self.random.below(4) {
            0 => self.engine.drop(name, IfPrepared::Refuse),
            1 => self.engine.empty(name, None),
            2 if other.is_some() => {
                let by = other.unwrap_or_default();
                self.engine.change(&[Replacement { table: name, by: &by, counter: 1 }.into()], &[])
            }
            _ => {
                let table = attempt!(self.engine.open_table(name));
                self.engine.build_trees(&table, &[table.trees() - 1], 0).map(drop)
            }
        };
        match refused {
            Err(Error::Undecided { xid }) => {
                assert!(self.expected.current.prepared.contains_key(&xid), "{xid:?} is decided");
                Step::Done
            }
            Err(error) => Step::Failed(error),
            Ok(()) => panic!("{name} was changed under a prepared transaction"),
        }
    }
}
