//! By what the target finds rows: of those that a transaction changes or deletes it needs no more than the primary key.

use super::{without_counter, Target};
use crate::failure::Failure;
use crate::routes::Name;
use crate::tables;
use teak_client::Error;
use teak_sql::quoting::{literal, quoted_name};

/// A transaction with so many bytes of statements looks for keys: in shorter ones there is less to leave out than it
/// takes to look.
const SOME: usize = 512 << 10;

impl Target<'_> {
    /// The places of the columns by which the server finds a row of a table of the target, whatever else an image has:
    /// those of the primary key, counted from 0. None if it goes by others as well, or the transaction is not long.
    ///
    /// The transaction has the table open from here on, so nobody gives it another key before the end.
    pub fn key_of_rows(&mut self, here: &Name) -> Result<Option<Vec<usize>>, Failure> {
        if !self.is_open || self.open_bytes < SOME {
            return Ok(None);
        }
        if let Some(key) = self.held.get(here) {
            return Ok(key.clone());
        }
        let waiting = std::mem::take(&mut self.waiting);
        self.waiting_bytes = 0;
        let sent = self.connection.execute_all(self.rows.requests(&waiting));
        sent.map_err(|error| Failure::of_several(&error))?;
        let key = self.read_key(here);
        let key =
            key.map_err(|error| Failure::of_target(&error, || format!("key of `{}`.`{}`", here.0, here.1)))?;
        self.held.insert(here.clone(), key.clone());
        Ok(key)
    }

    /// The transaction may have given up what it held.
    pub fn holds_nothing(&mut self) {
        self.held.clear();
    }

    fn read_key(&mut self, here: &Name) -> Result<Option<Vec<usize>>, Error> {
        let (database, table) = here;
        let quoted = [&quoted_name(database.as_bytes())[..], b".", &quoted_name(table.as_bytes())].concat();
        self.connection.query([b"SELECT 1 FROM ", &quoted[..], b" LIMIT 0"].concat())?;
        // To ask information_schema takes the server some milliseconds.
        let shown = self.connection.query([b"SHOW CREATE TABLE ", &quoted[..]].concat())?;
        let definition = shown.into_iter().next().and_then(|row| row.into_iter().nth(1)).flatten();
        let definition = without_counter(definition.unwrap_or_default());
        if let Some((_, key)) = self.keys.get(here).filter(|(before, _)| *before == definition) {
            return Ok(key.clone());
        }
        let key = self.ask_for_key(here)?;
        self.keys.insert(here.clone(), (definition, key.clone()));
        Ok(key)
    }

    fn ask_for_key(&mut self, (database, table): &Name) -> Result<Option<Vec<usize>>, Error> {
        let (schema, name) = (literal(database.as_bytes()), literal(table.as_bytes()));
        let of_table = format!("TABLE_SCHEMA = {schema} AND TABLE_NAME = {name}");
        // What is computed, and keys of other kinds, may need columns that are not there.
        let query = format!(
            "SELECT c.ORDINAL_POSITION, s.SUB_PART IS NULL AND t.TABLE_TYPE = 'BASE TABLE'
                AND NOT EXISTS (SELECT 1 FROM information_schema.COLUMNS WHERE {of_table} AND IS_GENERATED <> 'NEVER')
                AND NOT EXISTS (SELECT 1 FROM information_schema.STATISTICS WHERE {of_table} AND INDEX_TYPE <> 'BTREE')
            FROM information_schema.STATISTICS s
            JOIN information_schema.COLUMNS c USING (TABLE_SCHEMA, TABLE_NAME, COLUMN_NAME)
            JOIN information_schema.TABLES t USING (TABLE_SCHEMA, TABLE_NAME)
            WHERE s.TABLE_SCHEMA = {schema} AND s.TABLE_NAME = {name} AND s.INDEX_NAME = 'PRIMARY'"
        );
        let rows = tables::texts(self.connection.query(query)?);
        let places: Option<Vec<usize>> = rows
            .map(|row| match &row[..] {
                [place, is_enough] if is_enough == "1" => place.parse::<usize>().ok()?.checked_sub(1),
                _ => None,
            })
            .collect();
        Ok(places.filter(|places| !places.is_empty()))
    }
}
