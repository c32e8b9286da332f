//! Converts one set of tables after the other, and compares each table with what it was.
//!
//! A set is locked as a whole (LOCK TABLES ... WRITE) from before its first statement until after the comparison, so
//! that nobody sees tables without their constraints, or changes rows between two sums. Without that lock each
//! statement stands for itself.

use super::catalog::Table;
use super::definition::{Definition, ForeignKey};
use super::journal::Journal;
use super::name::Name;
use super::plan::Step;
use super::survey::Set;
use super::watch::Watch;
use super::{catalog, Arguments, ConvertError};
use std::collections::BTreeMap;
use teak_client::{self as client, Connection};
use teak_console::signals;
use teak_load::columns_of;
use teak_sql::columns::{self, Digest};

/// Tables as they are when they are locked.
type Tables = BTreeMap<Name, (Table, Definition)>;

/// What was done.
#[derive(Debug, Default)]
pub struct Done {
    pub tables: usize,
    pub keys: usize,
    pub compared: usize,
    pub bytes: u64,
}

pub struct Worker<'a> {
    pub session: Connection,
    pub journal: Journal,
    pub watch: Watch,
    pub arguments: &'a Arguments,
    pub done: Done,
}

/// A number for all rows of a table.
#[derive(Debug, PartialEq)]
enum Sum {
    /// CHECKSUM TABLE.
    Records(Vec<u8>),
    /// Rows, and a sum of MD5s of their values.
    Values(Vec<Option<Vec<u8>>>),
}

impl Worker<'_> {
    /// Converts a set. After an error, the next run goes on where this one ended.
    pub fn convert(&mut self, set: &Set) -> Result<(), ConvertError> {
        let locks = self.arguments.locks(set);
        if locks {
            let tables: Vec<String> =
                set.tables.keys().map(|name| format!("{} WRITE", name.quoted())).collect();
            self.run("waiting for the lock", &format!("LOCK TABLES {}", tables.join(", ")))?;
        }
        let converted = self.convert_locked(set);
        if locks {
            // After an error the connection may be gone, and the lock with it.
            let unlocked = self.session.execute("UNLOCK TABLES");
            converted?;
            unlocked?;
            return Ok(());
        }
        converted
    }

    fn convert_locked(&mut self, set: &Set) -> Result<(), ConvertError> {
        let before = self.definitions(set)?;
        make_sure_it_is_as_planned(set, &before, self.arguments.to.engine())?;
        if set.has_keys() {
            self.journal.prepare(self.arguments.to.origin())?;
        }
        for step in &set.steps {
            self.step(step, &before)?;
        }
        for (name, (_, before)) in &before {
            let after = catalog::definition(&mut self.session, name)?;
            compare_definitions(name, before, &after, set, self.arguments.locks(set))?;
        }
        Ok(())
    }

    fn definitions(&mut self, set: &Set) -> Result<Tables, ConvertError> {
        let mut found = Tables::new();
        for name in set.tables.keys() {
            let table = catalog::find(&mut self.session, name)?.ok_or_else(|| changed(name))?;
            found.insert(name.clone(), (table, catalog::definition(&mut self.session, name)?));
        }
        Ok(found)
    }

    fn step(&mut self, step: &Step, tables: &Tables) -> Result<(), ConvertError> {
        let statement = step.sql(self.arguments.to.engine());
        let name = step.table();
        match step {
            Step::Drop { keys, .. } => {
                self.journal.note(name, keys)?;
                self.run(&format!("{name}: dropping foreign keys"), &statement)?;
            }
            Step::Convert { keys, .. } => {
                let (table, definition) = tables.get(name).ok_or_else(|| changed(name))?;
                self.convert_table(table, definition, &statement)?;
                self.added(name, keys)?;
            }
            Step::Add { keys, .. } => {
                self.run(&format!("{name}: adding foreign keys"), &statement)?;
                self.added(name, keys)?;
            }
        }
        Ok(())
    }

    fn convert_table(
        &mut self,
        table: &Table,
        definition: &Definition,
        statement: &str,
    ) -> Result<(), ConvertError> {
        let name = &table.name;
        self.watch.progress.bytes_now = 0;
        let before = self.sum(table, definition)?;
        self.watch.progress.bytes_now = table.bytes;
        self.run(&name.to_string(), statement)?;
        self.watch.progress.bytes_now = 0;
        self.watch.progress.bytes_done += table.bytes;
        self.watch.progress.tables_done += 1;
        self.done.tables += 1;
        self.done.bytes += table.bytes;
        if before.is_some() {
            if before != self.sum(table, definition)? {
                let detail = "its rows are not the same".into();
                return Err(ConvertError::Different { table: name.clone(), detail });
            }
            self.done.compared += 1;
        }
        Ok(())
    }

    fn added(&mut self, name: &Name, keys: &[ForeignKey]) -> Result<(), ConvertError> {
        self.done.keys += keys.len();
        Ok(self.journal.forget(name, keys)?)
    }

    /// A statement that may take long.
    fn run(&mut self, what: &str, statement: &str) -> Result<(), ConvertError> {
        self.ask(what, statement.as_bytes(), |session| session.execute(statement).map(drop))
    }

    fn ask<T>(
        &mut self,
        what: &str,
        statement: &[u8],
        ask: impl FnOnce(&mut Connection) -> Result<T, client::Error>,
    ) -> Result<T, ConvertError> {
        if signals::interrupted() {
            return Err(ConvertError::Interrupted);
        }
        let session = &mut self.session;
        self.watch.during(what, || ask(session)).map_err(|error| match signals::interrupted() {
            true => ConvertError::Interrupted,
            false => ConvertError::of(&String::from_utf8_lossy(statement))(error),
        })
    }

    /// What the rows add up to, unless nothing is compared.
    fn sum(&mut self, table: &Table, definition: &Definition) -> Result<Option<Sum>, ConvertError> {
        if self.arguments.no_compare || self.arguments.unlocked {
            return Ok(None);
        }
        let name = &table.name;
        if table.has_same_checksum(definition) {
            let row =
                self.first_row(name, format!("CHECKSUM TABLE {} EXTENDED", name.quoted()).as_bytes())?;
            let detail = "it cannot be read: see CHECK TABLE".into();
            let unreadable = || ConvertError::Different { table: name.clone(), detail };
            return Ok(Some(Sum::Records(row.into_iter().nth(1).flatten().ok_or_else(unreadable)?)));
        }
        let columns = columns_of(&mut self.session, name.database.as_bytes(), name.table.as_bytes())?;
        let mut statement = columns::sum(name.quoted().as_bytes(), &columns, Digest::Md5);
        if table.has_history() {
            statement.extend_from_slice(b" FOR SYSTEM_TIME ALL");
        }
        Ok(Some(Sum::Values(self.first_row(name, &statement)?)))
    }

    fn first_row(&mut self, name: &Name, statement: &[u8]) -> Result<Vec<Option<Vec<u8>>>, ConvertError> {
        let rows = self.ask(&format!("{name}: comparing"), statement, |session| session.query(statement))?;
        Ok(rows.into_iter().next().unwrap_or_default())
    }
}

/// Everything but the engine must be as it was, but for what the trial has shown.
fn compare_definitions(
    name: &Name,
    before: &Definition,
    after: &Definition,
    set: &Set,
    locked: bool,
) -> Result<(), ConvertError> {
    let different = |detail| Err(ConvertError::Different { table: name.clone(), detail });
    let mut wanted = before.foreign_keys.iter().chain(&set.members[name].missing);
    if let Some(key) = wanted.find(|key| !after.foreign_keys.contains(key)) {
        return different(format!("the foreign key is not what it was: {}", key.clause()));
    }
    let Some(expected) = &set.lost else { return Ok(()) };
    let expected = expected.get(name).map_or(&[][..], Vec::as_slice);
    // Others may have put rows in.
    let passing = |lost: &str| !locked && lost.starts_with("AUTO_INCREMENT=");
    let lost = before.missing_from(after).into_iter().find(|lost| !expected.contains(lost) && !passing(lost));
    lost.map_or(Ok(()), |lost| different(format!("its definition has no more: {lost}")))
}

/// Somebody may have changed the tables before they were locked.
fn make_sure_it_is_as_planned(set: &Set, found: &Tables, engine: &str) -> Result<(), ConvertError> {
    let same = |(name, (table, definition)): (&Name, &(Table, Definition))| {
        let member = &set.members[name];
        (member.converted == table.has_engine(engine) && member.foreign_keys == definition.foreign_keys)
            .then_some(())
            .ok_or_else(|| changed(name))
    };
    found.iter().try_for_each(same)
}

fn changed(name: &Name) -> ConvertError {
    ConvertError::Usage(format!("{name} was changed meanwhile: give the same command again"))
}
