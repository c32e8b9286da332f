//! What the loader tells the check: which rows it meets, and which statements make it doubtful what a table should
//! hold.

use super::super::error::LoadError;
use super::super::task::{Action, Facts, Table, Task};
use super::super::verify::{Doubt, Verify};
use super::Loader;
use std::sync::Arc;
use teak_sql::columns::Column;
use teak_sql::rows::{self, Rows, Watched};
use teak_sql::splitter::Statement;
use teak_sql::statement::{classify, Insert, Kind};
use teak_sql::tokens::Tokens;

/// First words of statements that change no rows.
const HARMLESS: &[&str] = &[
    "CREATE", "SET", "GRANT", "REVOKE", "FLUSH", "ANALYZE", "SHOW", "USE", "LOCK", "UNLOCK", "BEGIN",
    "START", "COMMIT",
];

impl<'a> Loader<'a> {
    /// `--serial`: on the main connection, and what the check must know of it.
    pub(super) fn serially(&mut self, statement: Statement<'_>, kind: Kind) -> Result<(), LoadError> {
        if self.shared.verify.is_none() {
            return self.on_main(statement, false);
        }
        match kind {
            Kind::Insert(insert) => {
                let table = self.table(&insert.table);
                let facts = self.facts(&table)?;
                self.insert_on_main(statement, insert, &table, &facts)
            }
            // The check's own connections would wait for the lock.
            Kind::Dropped if self.is_lock(statement) => Ok(()),
            _ => self.on_its_own(statement),
        }
    }

    /// A statement that may be about any table.
    pub(super) fn on_its_own(&mut self, statement: Statement<'_>) -> Result<(), LoadError> {
        self.exclusive(statement)?;
        if self.shared.verify.is_none() {
            return Ok(());
        }
        // Foreign keys decide what it waits for, and not what it is about.
        if let Kind::Table(name) | Kind::CreateTable(name) | Kind::DisableKeys(name) =
            classify(statement.text, self.dialect, false)
        {
            let table = self.table(&name);
            self.note_trigger(statement, &table);
            return self.defined_before(statement, &table);
        }
        let mut tokens = Tokens::new(statement.text, self.dialect);
        let harmless = tokens.peek().is_none() || HARMLESS.iter().any(|word| tokens.accept(word));
        if let Some(verify) = self.shared.verify.as_ref().filter(|_| !harmless) {
            verify.doubt_all(&format!("another statement may have changed it: {}", self.place(statement)));
        }
        Ok(())
    }

    fn is_lock(&self, statement: Statement<'_>) -> bool {
        let mut tokens = Tokens::new(statement.text, self.dialect);
        tokens.accept("LOCK") || tokens.accept("UNLOCK")
    }

    /// A statement about a table that is not handed to a worker, since it was carried out already.
    pub(super) fn defined_before(
        &mut self,
        statement: Statement<'_>,
        table: &Arc<Table>,
    ) -> Result<(), LoadError> {
        let Some(verify) = &self.shared.verify else { return Ok(()) };
        self.hand_over(table.lane)?;
        self.shared.queue.wait_for_lane(table.lane)?;
        Ok(verify.defined(&mut self.control, table, (statement.text, self.dialect))?)
    }

    pub(super) fn note_trigger(&mut self, statement: Statement<'_>, table: &Table) {
        if self.shared.verify.is_some() && Tokens::new(statement.text, self.dialect).any_of(&["TRIGGER"]) {
            self.triggered.insert(table.lane);
        }
    }

    /// What the rows of an INSERT are like, if they are plain.
    pub(super) fn scan(&self, statement: Statement<'_>, insert: &Insert, facts: &Facts) -> Option<Rows> {
        let columns = insert.columns.as_ref().unwrap_or(&facts.columns);
        let place = |name: &Vec<u8>| columns.iter().position(|column| column.eq_ignore_ascii_case(name));
        let passing: Vec<(&Column, Option<usize>)> = facts
            .definition
            .iter()
            .filter(|column| column.has_passing_default())
            .map(|column| (column, place(&column.name)))
            .collect();
        let counter = facts.auto_increment.as_ref();
        let watched = Watched {
            auto_increment: counter.and_then(place),
            passing: passing.iter().filter_map(|(_, place)| *place).collect(),
            passing_for_null: passing
                .iter()
                .filter(|(column, _)| column.replaces_null())
                .filter_map(|(_, place)| *place)
                .collect(),
        };
        let mut rows = rows::scan(statement.text, insert.rows_at, self.dialect, &watched)?;
        rows.generates |= (counter.is_some() && watched.auto_increment.is_none()) || facts.draws_numbers;
        rows.passing |= passing.iter().any(|(_, place)| place.is_none());
        Some(rows)
    }

    /// Rows are about to be inserted.
    pub(super) fn expect(&mut self, table: &Arc<Table>, facts: &Facts, rows: Rows) -> Result<(), LoadError> {
        let Some(verify) = &self.shared.verify else { return Ok(()) };
        verify.expect(self.shared, table, facts, rows.count)?;
        if rows.generates && facts.definition.iter().any(Column::is_counter) {
            verify.doubt(table, Doubt::Values("the server gave numbers of AUTO_INCREMENT".into()));
        }
        if rows.passing {
            verify.doubt(
                table,
                Doubt::Values("the server gave defaults that another time would be others".into()),
            );
        }
        Ok(())
    }

    /// An INSERT that waits for all before it; with its rows, if they are plain, for the check.
    pub(super) fn insert_on_main(
        &mut self,
        statement: Statement<'_>,
        insert: Insert,
        table: &Arc<Table>,
        facts: &Arc<Facts>,
    ) -> Result<(), LoadError> {
        if self.shared.verify.is_none() {
            return self.exclusive(statement);
        }
        if facts.engine.is_empty() {
            return self.on_its_own(statement);
        }
        let rows = self.scan(statement, &insert, facts);
        let counted = Rows { count: 0, generates: false, passing: false };
        self.expect(table, facts, rows.unwrap_or(counted))?;
        let before = self.shared.counters.rows();
        self.exclusive(statement)?;
        let affected = self.shared.counters.rows() - before;
        let Some(verify) = &self.shared.verify else { return Ok(()) };
        if self.triggered.contains(&table.lane) {
            verify.doubt_all("a trigger that the dump has made before rows may have changed it");
        }
        match rows {
            None => {
                let why = format!(
                    "a statement changed it whose rows are not plain values: {}",
                    self.place(statement)
                );
                verify.doubt(table, Doubt::Rows(why));
                Ok(())
            }
            Some(rows) => {
                if insert.order_matters && affected != rows.count {
                    verify.doubt(table, Doubt::Rows("REPLACE or IGNORE may have left out rows".into()));
                }
                let units = self.units_of(statement, rows.count)?;
                let task = Task {
                    table: table.clone(),
                    origin: self.origin.clone(),
                    session: self.session.clone(),
                    action: Action::Rows(facts.clone()),
                    barrier: true,
                    maybe_done: false,
                    loaded: true,
                    units,
                };
                Verify::sum_of(self.shared, &mut self.checker, (&task, facts))
            }
        }
    }
}
