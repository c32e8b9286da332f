//! Tables that come, go, and are changed as a whole.

use std::collections::BTreeSet;

use super::{Session, Step, NAMES};
use crate::durable::{Durable, Table};
use teak_core::{Compression, Error, Packing, Result, TreeSpec};

impl Session<'_> {
    pub(super) fn create_table(&mut self) -> Step {
        let free: Vec<&str> =
            NAMES.into_iter().filter(|n| !self.expected.current.tables.contains_key(*n)).collect();
        if free.is_empty() {
            return Step::Done;
        }
        let name = self.random.pick(&free);
        self.create(name, None)
    }

    fn create(&mut self, name: &str, replace: Option<&str>) -> Step {
        let compressions = [Compression::None, Compression::Lz4, Compression::Zstd, Compression::Recompress];
        let compression = self.random.pick(&compressions);
        let packing = Packing { similarity: self.random.percent(50), ..compression.into() };
        let spec = TreeSpec { block_bytes: 4096, packing };
        let specs = vec![spec; 1 + self.random.below(3)];
        let meta = self.random.next().to_be_bytes().to_vec();
        let mut next = self.expected.current.clone();
        if let Some(old) = replace {
            next.tables.remove(old);
        }
        let trees = vec![Default::default(); specs.len()];
        let identity = self.random.next();
        let table = Table { identity, meta: meta.clone(), trees, counter: 0, instead: None };
        next.tables.insert(name.to_string(), table);
        let created = self.engine.create_table(name, &specs, &meta, replace);
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
        match self.random.below(6) {
            0 => {
                let dropped = self.engine.drop_table(&name);
                self.ddl(dropped, next)
            }
            1 | 2 => {
                let trees = vec![Default::default(); table.trees.len()];
                let identity = self.random.next();
                let table = Table { identity, trees, counter: 0, instead: None, ..table };
                next.tables.insert(name.clone(), table);
                let truncated = self.engine.truncate_table(&name);
                self.ddl(truncated, next)
            }
            3 => {
                let Some(to) = NAMES.into_iter().find(|n| !current.tables.contains_key(*n)) else {
                    return self.create(&name, Some(&name));
                };
                next.tables.insert(to.to_string(), table);
                let renamed = self.engine.rename_table(&name, to);
                self.ddl(renamed, next)
            }
            4 => {
                let to = NAMES.into_iter().find(|n| !current.tables.contains_key(*n)).unwrap_or(&name);
                self.create(to, Some(&name))
            }
            _ => {
                let to = &idle[self.random.below(idle.len())];
                let is_decided = current.prepared.values().flatten().all(|change| change.table != *to);
                self.move_table(&name, if is_decided { to } else { &name })
            }
        }
    }

    /// A table that a prepared transaction has written to, which no session may own, is neither dropped nor emptied nor
    /// gets an index.
    fn change_undecided(&mut self, name: &str) -> Step {
        let refused = match self.random.below(4) {
            0 => self.engine.drop_table(name),
            1 => self.engine.truncate_table(name),
            2 => self.engine.create_table(name, &[TreeSpec::default()], b"", Some(name)),
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
