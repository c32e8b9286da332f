//! What an engine must show after a restart: tables with their rows, and prepared transactions.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::subject;
use teak_core::{Error, Isolation, LockMode, View, WaitRequest};

/// One change of one key.
#[derive(Debug, Clone)]
pub struct Change {
    pub table: String,
    pub tree: usize,
    pub key: Vec<u8>,
    pub value: Option<Arc<[u8]>>,
}

pub type Rows = BTreeMap<Vec<u8>, Arc<[u8]>>;

/// A table as it should be.
#[derive(Clone)]
pub struct Table {
    /// It goes with the rows from name to name; what a new table or TRUNCATE brings has another. Unknown (0) of what
    /// was read.
    pub identity: u64,
    pub meta: Vec<u8>,
    pub trees: Vec<Rows>,
    /// The AUTO_INCREMENT counter is at least this.
    pub counter: u64,
    /// Of a table whose import has failed: the trees and the counter that it may have instead once the engine has
    /// restarted. What is imported is in no log, and what the engine shows of it (nothing, or the rows, if the attempt
    /// at a checkpoint came so far) is durable with the next checkpoint only. Such a table is nobody's to use.
    pub instead: Option<(Vec<Rows>, u64)>,
}

/// A state that the disk may be in.
#[derive(Clone, Default)]
pub struct Durable {
    pub tables: BTreeMap<String, Table>,
    pub prepared: BTreeMap<Vec<u8>, Vec<Change>>,
}

impl Durable {
    /// With the changes of a transaction.
    pub fn apply(&mut self, changes: &[Change]) {
        for change in changes {
            let Some(table) = self.tables.get_mut(&change.table) else { continue };
            let rows = &mut table.trees[change.tree];
            match &change.value {
                Some(value) => rows.insert(change.key.clone(), value.clone()),
                None => rows.remove(&change.key),
            };
        }
    }

    /// What a restart may find of this state.
    pub fn after_restart(&self) -> Vec<Durable> {
        let mut states = vec![self.clone().with_imports_settled()];
        for (name, table) in &self.tables {
            let Some((trees, counter)) = &table.instead else { continue };
            for mut state in states.clone() {
                let table = Table { trees: trees.clone(), counter: *counter, instead: None, ..table.clone() };
                state.tables.insert(name.clone(), table);
                states.push(state);
            }
        }
        states
    }

    /// Tables whose import has failed stay as they are.
    pub fn with_imports_settled(mut self) -> Durable {
        self.tables.values_mut().for_each(|table| table.instead = None);
        self
    }

    /// The first difference from what an engine shows; `None` if there is none.
    pub fn difference(&self, found: &Found) -> Option<String> {
        let names: Vec<&String> = self.tables.keys().collect();
        let found_names: Vec<&String> = found.tables.keys().collect();
        if names != found_names {
            return Some(format!("tables {found_names:?} instead of {names:?}"));
        }
        let xids: Vec<&Vec<u8>> = self.prepared.keys().collect();
        if xids != found.prepared.iter().collect::<Vec<_>>() {
            return Some(format!("prepared {:?} instead of {xids:?}", found.prepared));
        }
        for (name, table) in &self.tables {
            let other = &found.tables[name];
            if table.meta != other.meta || table.trees.len() != other.trees.len() {
                return Some(format!("table {name}: other meta data or number of trees"));
            }
            if table.counter > other.counter {
                return Some(format!("table {name}: counter {} is before {}", other.counter, table.counter));
            }
            for (tree, (rows, others)) in table.trees.iter().zip(&other.trees).enumerate() {
                if let Some(difference) = rows_differ(rows, others) {
                    return Some(format!("table {name}, tree {tree}: {difference}"));
                }
            }
        }
        None
    }
}

/// All rows of a tree as `txn` sees them.
pub fn rows_in(txn: &mut subject::Transaction, tree: &Arc<subject::Tree>, view: View) -> Result<Rows, Error> {
    let mut cursor = subject::Cursor::new(tree.clone());
    let mut rows = Rows::new();
    let mut more = cursor.first(txn, view)?;
    while more {
        rows.insert(cursor.key().to_vec(), Arc::from(cursor.value()?));
        more = cursor.next(txn)?;
    }
    Ok(rows)
}

pub fn rows_differ(expected: &Rows, found: &Rows) -> Option<String> {
    if let Some(key) = expected.keys().find(|key| !found.contains_key(*key)) {
        return Some(format!("no key {key:?}; {} keys instead of {}", found.len(), expected.len()));
    }
    for (key, value) in found {
        match expected.get(key) {
            None => {
                return Some(format!(
                    "unexpected {key:?}; {} keys instead of {}",
                    found.len(),
                    expected.len()
                ))
            }
            Some(other) if other != value => {
                return Some(format!("{key:?}: {} bytes instead of {}", value.len(), other.len()))
            }
            Some(_) => {}
        }
    }
    None
}

/// What an engine shows.
pub struct Found {
    pub tables: BTreeMap<String, Table>,
    pub prepared: Vec<Vec<u8>>,
}

impl Found {
    /// Reads everything, upwards and downwards.
    pub fn read(engine: &subject::Engine) -> Result<Found, Error> {
        let mut txn = engine.begin(Isolation::Repeatable);
        let mut tables = BTreeMap::new();
        for name in engine.table_names("")? {
            let table = engine.open_table(&name)?;
            let mut trees = Vec::new();
            for i in 0..table.trees() {
                let mut cursor = subject::Cursor::new(table.tree(i).clone());
                let mut rows = Rows::new();
                let mut more = cursor.first(&mut txn, View::Snapshot)?;
                while more {
                    let value = Arc::from(cursor.value()?);
                    let last = rows.last_key_value().map(|(key, _): (&Vec<u8>, _)| key.as_slice());
                    assert!(last < Some(cursor.key()), "{name}, tree {i}: keys do not ascend");
                    rows.insert(cursor.key().to_vec(), value);
                    more = cursor.next(&mut txn)?;
                }
                let mut keys = rows.keys().rev();
                more = cursor.last(&mut txn, View::Latest)?;
                while more {
                    assert_eq!(
                        keys.next().map(|k| k.as_slice()),
                        Some(cursor.key()),
                        "{name}, tree {i}: downwards"
                    );
                    more = cursor.prev(&mut txn)?;
                }
                assert_eq!(keys.next(), None, "{name}, tree {i}: downwards");
                trees.push(rows);
            }
            let (meta, counter) = (table.meta().to_vec(), table.counter());
            let table = Table { identity: 0, meta, trees, counter, instead: None };
            tables.insert(name, table);
        }
        txn.rollback();
        Ok(Found { tables, prepared: engine.prepared() })
    }
}

/// Prepared transactions hold their locks.
pub fn assert_locked(
    engine: &subject::Engine,
    prepared: &BTreeMap<Vec<u8>, Vec<Change>>,
) -> Result<(), Error> {
    for (xid, changes) in prepared {
        let mut txn = engine.begin(Isolation::Repeatable);
        for change in changes.iter().take(5) {
            let table = engine.open_table(&change.table)?;
            let refused =
                txn.lock(table.tree(change.tree), &change.key, LockMode::Shared, &WaitRequest::no_wait());
            assert!(
                matches!(refused, Err(Error::WouldBlock)),
                "{xid:?} does not hold {:?}: {refused:?}",
                change.key
            );
        }
    }
    Ok(())
}
