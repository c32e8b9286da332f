//! Rows that do not fit what the target has: what `on_conflict` makes of them, in the transaction that they are of.

use super::{Applier, Received, ELSEWHERE, UNKNOWN};
use crate::configuration::OnConflict;
use crate::events;
use crate::failure::Failure;
use crate::keys;
use crate::tables;
use std::collections::BTreeMap;
use teak_binlog::{Change, Image, Row, Rows, Value};
use teak_client::Error;
use teak_sql::columns::Column;
use teak_sql::quoting::{literal, quoted_name};

/// A row is not there; a key is (two codes); another table has not the row that it refers to, or has rows that refer to
/// it; a CHECK says no.
const CONFLICTS: [u16; 6] = [NOT_THERE, 1022, DUPLICATE, 1451, 1452, 4025];
const NOT_THERE: u16 = 1032;
const DUPLICATE: u16 = 1062;
/// So many of a transaction are told one by one.
const TOLD: u64 = 20;

/// A row of an event, alone.
#[derive(Clone, Copy)]
pub(super) struct OneRow<'r> {
    pub sent: &'r Received<'r, 'r>,
    pub rows: &'r Rows<'r>,
    pub row: &'r Row<'r>,
    /// Its images: before the change and after it, of which one may be empty.
    pub old: &'r [u8],
    pub new: &'r [u8],
}

impl OneRow<'_> {
    /// Whether the image after the change has all columns.
    fn is_whole(&self) -> bool {
        (0..self.rows.table.columns.len()).all(|column| self.rows.has_new(column))
    }
}

/// What happened to a row that did not fit.
enum Overwritten {
    Done,
    /// It cannot be, for this reason.
    Not(String),
}

impl Applier<'_> {
    /// Applies a row. One that does not fit is dealt with as the configuration says.
    pub(super) fn one(&mut self, one: OneRow<'_>) -> Result<(), Failure> {
        let images = [one.old, one.new].concat();
        let Some(statement) = self.event_of(&one, one.rows.change, &images) else { return Ok(()) };
        let Err(error) = self.target.carry_out(&statement) else { return Ok(()) };
        let is_conflict = error.code().is_some_and(|code| CONFLICTS.contains(&code));
        if !is_conflict || self.source.on_conflict == OnConflict::Stop {
            return Err(self.row_failure(&error, one.row, one.rows));
        }
        let here = self.here(one.rows);
        let columns = keys::columns(self.target.connection(), &here)?;
        let key = keys::shown(one.row, &columns);
        match self.source.on_conflict {
            OnConflict::Overwrite => {
                if let Overwritten::Not(why) = self.overwrite(&one, &statement, &columns, &error)? {
                    let failure = self.row_failure(&error, one.row, one.rows);
                    return Err(match failure {
                        Failure::Final(text, status) => {
                            Failure::Final(format!("{text}; it is not overwritten: {why}"), status)
                        }
                        other => other,
                    });
                }
            }
            OnConflict::Skip | OnConflict::Stop => {
                let names = (&here.database[..], &here.name[..]);
                self.target.add(noting(&self.source.name, &self.gtid(), names, &key, &error, &statement))?;
            }
        }
        self.since_conflict = 0;
        self.conflicts += 1;
        self.progress.conflicts.add(1);
        if self.conflicts <= TOLD {
            let what = self.source.on_conflict.done();
            let table = one.rows.table.quoted_name();
            self.say(&format!("{}, table {table}, {key}: {what}: target: {error}", self.gtid()));
        }
        Ok(())
    }

    /// At the end of a transaction: how many conflicts it had that were not told.
    pub(super) fn tell_conflicts(&mut self) {
        let untold = self.conflicts.saturating_sub(TOLD);
        if untold > 0 {
            self.say(&format!("{}: {untold} more rows: {}", self.gtid(), self.source.on_conflict.done()));
        }
        self.conflicts = 0;
    }

    /// Why a row stops the source: an error that names it.
    pub(super) fn row_failure(&mut self, error: &Error, row: &Row<'_>, rows: &Rows<'_>) -> Failure {
        if error.code() == Some(UNKNOWN) {
            let table = rows.table.quoted_name();
            return self.stop(format!("table {table}: target: {error}: {ELSEWHERE}"));
        }
        let here = self.here(rows);
        let columns = match keys::columns(self.target.connection(), &here) {
            Ok(columns) => columns,
            Err(failure) => return failure,
        };
        let row = keys::shown(row, &columns);
        let what = format!("{}, table {}, {row}", self.gtid(), rows.table.quoted_name());
        Failure::of_target(error, || what)
    }

    fn here(&self, rows: &Rows<'_>) -> teak_binlog::Table {
        self.source.routes.here(&rows.table)
    }

    fn event_of(&mut self, one: &OneRow<'_>, change: Change, images: &[u8]) -> Option<Vec<u8>> {
        self.gathered.row(&one.sent.event.header, one.rows, change, images)
    }

    /// Makes the row of the target the one after the change, or sees to it that there is none.
    fn overwrite(
        &mut self,
        one: &OneRow<'_>,
        statement: &[u8],
        key: &[(usize, String)],
        error: &Error,
    ) -> Result<Overwritten, Failure> {
        if key.is_empty() {
            return Ok(Overwritten::Not("the table has no key".into()));
        }
        match (one.rows.change, error.code()) {
            (Change::Delete, Some(NOT_THERE)) => Ok(Overwritten::Done),
            (Change::Update, Some(NOT_THERE)) | (Change::Write, Some(DUPLICATE)) if !one.is_whole() => {
                Ok(Overwritten::Not("the log has not all of it (binlog_row_image)".into()))
            }
            (Change::Update, Some(NOT_THERE)) | (Change::Write, Some(DUPLICATE)) => self.put(one, key),
            (Change::Update, Some(DUPLICATE)) => self.push_aside(one, statement, key, one.row.old.as_ref()),
            _ => Ok(Overwritten::Not("that would need another table's rows".into())),
        }
    }

    /// Adds the row after the change, or makes the one with its key it.
    fn put(&mut self, one: &OneRow<'_>, key: &[(usize, String)]) -> Result<Overwritten, Failure> {
        // The server looks for it by its key alone.
        let twice = [one.new, one.new].concat();
        for (change, images) in [(Change::Update, &twice[..]), (Change::Write, one.new)] {
            let Some(statement) = self.event_of(one, change, images) else { continue };
            match self.target.carry_out(&statement) {
                Ok(()) => return Ok(Overwritten::Done),
                Err(error) if change == Change::Update && error.code() == Some(NOT_THERE) => (),
                Err(error) if error.code() == Some(DUPLICATE) => {
                    return self.push_aside(one, &statement, key, one.row.new.as_ref())
                }
                Err(error) => return self.not(one, &error),
            }
        }
        Ok(Overwritten::Not("its key is there and is not".into()))
    }

    /// What the target says against it; what passes is tried again from the position on.
    fn not(&mut self, one: &OneRow<'_>, error: &Error) -> Result<Overwritten, Failure> {
        match self.row_failure(error, one.row, one.rows) {
            Failure::Final(..) => Ok(Overwritten::Not(format!("target: {error}"))),
            other => Err(other),
        }
    }

    /// Deletes the rows that have the new row's values in a unique key, but for the row itself, and tries again.
    fn push_aside(
        &mut self,
        one: &OneRow<'_>,
        statement: &[u8],
        key: &[(usize, String)],
        itself: Option<&Image<'_>>,
    ) -> Result<Overwritten, Failure> {
        let here = self.here(one.rows);
        let ways = match self.ways(&here, key, itself, one.row.new.as_ref()) {
            Ok(Ok(ways)) => ways,
            Ok(Err(why)) => return Ok(Overwritten::Not(why)),
            Err(error) => return self.not(one, &error),
        };
        for way in ways {
            if let Err(error) = self.target.carry_out(&way) {
                return self.not(one, &error);
            }
        }
        match self.target.carry_out(statement) {
            Ok(()) => Ok(Overwritten::Done),
            Err(error) => self.not(one, &error),
        }
    }

    /// Statements that delete them; an inner error says why there are none.
    fn ways(
        &mut self,
        here: &teak_binlog::Table,
        key: &[(usize, String)],
        itself: Option<&Image<'_>>,
        new: Option<&Image<'_>>,
    ) -> Result<Result<Vec<Vec<u8>>, String>, Error> {
        let connection = self.target.connection();
        let [schema, name] = [&here.database, &here.name].map(|text| literal(text.as_bytes()));
        let triggers = format!(
            "SELECT 1 FROM information_schema.TRIGGERS
            WHERE EVENT_OBJECT_SCHEMA = {schema} AND EVENT_OBJECT_TABLE = {name} AND EVENT_MANIPULATION = 'DELETE'"
        );
        if connection.value(triggers)?.is_some() {
            return Ok(Err("the target's table has triggers, which would act".into()));
        }
        let Some(table) = tables::one(connection, &here.database, &here.name)? else {
            return Ok(Err("the account does not see the table".into()));
        };
        let indexes = connection.query(format!(
            "SELECT INDEX_NAME, IFNULL(COLUMN_NAME, ''), SUB_PART IS NULL FROM information_schema.STATISTICS
            WHERE TABLE_SCHEMA = {schema} AND TABLE_NAME = {name} AND NON_UNIQUE = 0 ORDER BY INDEX_NAME, SEQ_IN_INDEX"
        ))?;
        let mut unique: BTreeMap<String, Vec<(String, bool)>> = BTreeMap::new();
        for row in tables::texts(indexes) {
            let [index, column, is_whole] = row.try_into().unwrap_or_default();
            unique.entry(index).or_default().push((column, is_whole == "1"));
        }
        let of_itself = key.iter().map(|(_, name)| (name.clone(), true)).collect::<Vec<_>>();
        let Some(Same::As(itself)) = same(&table.columns, &of_itself, itself) else {
            return Ok(Err("the log has not its key, or one of a type that is not built yet".into()));
        };
        let mut ways = Vec::new();
        for (index, columns) in unique {
            match same(&table.columns, &columns, new) {
                Some(Same::As(condition)) => {
                    let table = [quoted_name(here.database.as_bytes()), quoted_name(here.name.as_bytes())];
                    let table = table.join(&b"."[..]);
                    ways.push(
                        [b"DELETE FROM ", &table[..], b" WHERE ", &condition, b" AND NOT (", &itself, b")"]
                            .concat(),
                    );
                }
                Some(Same::Never) => (),
                None => {
                    let why = "has columns that the log has not, or of a type that is not built yet";
                    return Ok(Err(format!("the unique key {index} {why}")));
                }
            }
        }
        Ok(Ok(ways))
    }
}

/// A condition that columns are as in an image.
pub(super) enum Same {
    As(Vec<u8>),
    /// One is NULL, which is the same as nothing.
    Never,
}

/// The condition for columns of a key, each with whether the key has all of it. None: it cannot be told.
pub(super) fn same(columns: &[Column], key: &[(String, bool)], image: Option<&Image<'_>>) -> Option<Same> {
    let mut parts = Vec::new();
    for (name, is_whole) in key {
        let at = columns.iter().position(|column| column.name == name.as_bytes())?;
        let (column, value) = (&columns[at], image?.0.get(at)?.as_ref()?);
        match value {
            Value::Null => return Some(Same::Never),
            _ if !is_whole => return None,
            value => {
                let value = column.literal(Some(&text(column, value)?));
                parts.push([&quoted_name(&column.name)[..], b" = ", &value].concat());
            }
        }
    }
    Some(Same::As(parts.join(&b" AND "[..])))
}

/// A value as [`Column::literal`] takes it; None of those that are not equal to what they are written as.
fn text(column: &Column, value: &Value<'_>) -> Option<Vec<u8>> {
    let text = match value {
        Value::Integer(number) => match column.integer()? {
            true => number.unsigned().to_string(),
            false => number.signed().to_string(),
        },
        Value::Decimal(number) => number.to_string(),
        Value::Bit(number) | Value::Set(number) => number.to_string(),
        Value::Year(number) | Value::Enum(number) => number.to_string(),
        Value::Date(date) => date.to_string(),
        Value::Time(time) => time.to_string(),
        Value::DateTime(moment) => moment.to_string(),
        Value::Timestamp(moment) => moment.to_string(),
        Value::Bytes(bytes) => {
            let kind = column.type_of_values();
            let is_as_it_is = ["character set", "varbinary", "blob"].iter().any(|word| kind.contains(word));
            return is_as_it_is.then(|| bytes.to_vec());
        }
        _ => return None,
    };
    Some(text.into_bytes())
}

/// The statement that notes a row that is skipped.
fn noting(
    source: &str,
    gtid: &str,
    (database, table): (&str, &str),
    key: &str,
    error: &Error,
    statement: &[u8],
) -> Vec<u8> {
    let error = error.to_string();
    let [database, table, key, error] =
        [database, table, key, &error].map(|text| literal(text.as_bytes())).map(String::into_bytes);
    let head = format!(
        "INSERT INTO teak_replicate.conflict (source, gtid, table_schema, table_name, row_key, error, statement)
        VALUES ('{source}', '{gtid}', "
    );
    let mut insert = head.into_bytes();
    insert.extend_from_slice(&[database, table, key, error].join(&b", "[..]));
    insert.extend_from_slice(b", '");
    // The only quotes in it are those around the events.
    for &byte in &events::alone(statement) {
        insert.push(byte);
        if byte == b'\'' {
            insert.push(byte);
        }
    }
    insert.extend_from_slice(b"')");
    insert
}

#[cfg(test)]
mod tests {
    use super::*;

    fn column(name: &str, kind: &str, full: &str, charset: Option<&str>) -> Column {
        let row = [name, kind, full, charset.unwrap_or_default()];
        let mut row: Vec<Option<Vec<u8>>> = row.iter().map(|text| Some(text.as_bytes().to_vec())).collect();
        if charset.is_none() {
            row[3] = None;
        }
        row.resize(9, None);
        Column::read(row, true)
    }

    #[test]
    fn rows_in_the_way_are_named_by_their_keys() {
        let columns = [
            column("a", "bigint", "bigint(20)", None),
            column("b`", "varchar", "varchar(9)", Some("latin1")),
            column("c", "binary", "binary(9)", None),
            column("d", "float", "float", None),
            column("e", "varbinary", "varbinary(9)", None),
        ];
        let bytes = |text: &'static [u8]| Some(Value::Bytes(text.into()));
        let image = Image(vec![
            Some(Value::Year(5)),
            bytes(b"it's"),
            bytes(b"x"),
            Some(Value::Float(0.1)),
            Some(Value::Null),
        ]);
        let told = |key: &[(&str, bool)]| {
            let key: Vec<_> = key.iter().map(|(name, whole)| (name.to_string(), *whole)).collect();
            match same(&columns, &key, Some(&image)) {
                Some(Same::As(condition)) => String::from_utf8(condition).unwrap(),
                Some(Same::Never) => "never".into(),
                None => "?".into(),
            }
        };
        assert_eq!(told(&[("a", true), ("b`", true)]), "`a` = 5 AND `b``` = _latin1 x'69742773'");
        assert_eq!(told(&[("a", true), ("e", true)]), "never");
        for key in ["c", "d", "f"] {
            assert_eq!(told(&[(key, true)]), "?", "{key}");
        }
        assert_eq!(told(&[("b`", false)]), "?");
    }

    #[test]
    fn a_note_has_the_row_as_a_statement_that_needs_no_other() {
        let error = Error::Protocol("it's".into());
        let note = noting("s", "0-1-5", ("d", "t"), "key a = 1", &error, b"BINLOG 'QUJD'");
        let note = String::from_utf8(note).unwrap();
        let (_, statement) = note.split_once(", 'BINLOG ''").unwrap();
        assert!(
            statement.ends_with("QUJD''')") && !statement.trim_end_matches("''')").contains('='),
            "{note}"
        );
        assert!(note.contains("'s', '0-1-5', _utf8mb4 x'64', _utf8mb4 x'74', _utf8mb4 x'6b6579"), "{note}");
    }
}
