//! Which tables of a source are not copied yet, and which of their rows are in the target: those up to a number in the
//! first column of their key. What the log has of other rows is left out, as a copy that is still to come has it.
//!
//! `teak_replicate.copy` has a row for each table that is not whole. It changes in the transaction that adds rows, so a
//! restart knows what is there.

use crate::failure::Failure;
use crate::prepared::Prepared;
use crate::target::Target;
use std::collections::BTreeMap;
use teak_binlog::{Change, Error, Image, Row, Rows, Value};
use teak_console::Status;
use teak_sql::quoting::{literal, quoted_name};

/// A table's database and name in the target.
pub type TableName = (String, String);

/// What stands for the views, triggers and routines of a source: [`Part::None`] until somebody begins to make them, and
/// [`Part::Rows`] from then on.
pub fn others() -> TableName {
    (String::new(), String::new())
}

/// What is there of a table that is not whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// Nothing.
    None,
    /// All rows; keys are to be built.
    Rows,
    /// Rows with at most this number in a column.
    UpTo {
        /// The number.
        last: i128,
        /// Which column, from 0.
        column: usize,
        /// The column has no sign.
        is_unsigned: bool,
    },
}

/// A row of the log as far as it is of rows that are there: what happens to it, and its images.
pub type Kept<'r> = (Change, &'r [u8]);

/// The tables of a source that are not whole.
#[derive(Debug, Default)]
pub struct Copying {
    tables: BTreeMap<TableName, Part>,
    /// That of [`others`].
    others: Option<Part>,
    /// XA transactions of the log.
    pub prepared: Prepared,
    /// Counts changes by statements, after which what was read is not to be used.
    pub changes: u64,
}

impl Copying {
    /// What the target has noted.
    pub fn read(target: &mut Target<'_>) -> Result<Copying, Failure> {
        let query = format!(
            "SELECT table_schema, table_name, last, key_column, is_unsigned FROM teak_replicate.copy WHERE source = '{}'",
            target.source()
        );
        let rows = target.connection().query(query);
        let rows = rows.map_err(|error| Failure::of_target(&error, || "teak_replicate.copy".into()))?;
        let part = |row: Vec<String>| {
            let [database, table, last, column, is_unsigned] = row.try_into().unwrap_or_default();
            let part = match (last.parse(), column.parse()) {
                (Ok(last), Ok(column)) => Part::UpTo { last, column, is_unsigned: is_unsigned == "1" },
                (Ok(_), Err(_)) => Part::Rows,
                (Err(_), _) => Part::None,
            };
            ((database, table), part)
        };
        let mut copying = Copying { prepared: Prepared::read(target)?, ..Copying::default() };
        for (name, part) in crate::tables::texts(rows).map(part) {
            copying.set(&name, Some(part));
        }
        Ok(copying)
    }

    /// Whether all tables are whole, and what else there is is made.
    pub fn is_done(&self) -> bool {
        self.tables.is_empty() && self.others.is_none()
    }

    /// If all tables are whole, and what else there is is not made: whether nobody has begun to.
    pub fn awaits_others(&self) -> Option<bool> {
        self.others.filter(|_| self.tables.is_empty()).map(|part| part == Part::None)
    }

    /// How many are left to be copied; what else there is counts as one.
    pub fn tables(&self) -> usize {
        self.tables.len() + usize::from(self.others.is_some())
    }

    /// What is there of a table; None: it is whole.
    pub fn part(&self, database: &str, table: &str) -> Option<Part> {
        if self.tables.is_empty() {
            return None;
        }
        self.tables.get(&(database.to_string(), table.to_string())).copied()
    }

    /// The tables that are not whole.
    pub fn names(&self) -> Vec<TableName> {
        self.tables.keys().cloned().collect()
    }

    /// So much of a table is there; None: all of it.
    pub fn set(&mut self, name: &TableName, part: Option<Part>) {
        match part {
            _ if *name == others() => self.others = part,
            None => drop(self.tables.remove(name)),
            Some(part) => drop(self.tables.insert(name.clone(), part)),
        }
    }
}

/// The statement that notes that all of a table is there, if only its keys were missing.
pub fn noting_keys(source: &str, name: &TableName) -> String {
    let of_table = of_table(source, name);
    format!("DELETE FROM teak_replicate.copy WHERE {of_table} AND last IS NOT NULL AND key_column IS NULL")
}

fn of_table(source: &str, name: &TableName) -> String {
    let [database, table] = [&name.0, &name.1].map(|text| literal(text.as_bytes()));
    format!("source = '{source}' AND table_schema = {database} AND table_name = {table}")
}

/// The statement that notes how much of a table is there; None: all of it.
pub fn noting(source: &str, name: &TableName, part: Option<Part>) -> Vec<u8> {
    let (last, column, is_unsigned) = match part {
        None => {
            return format!("DELETE FROM teak_replicate.copy WHERE {}", of_table(source, name)).into_bytes()
        }
        Some(Part::None) => ("NULL".into(), "NULL".into(), 0),
        Some(Part::Rows) => ("0".into(), "NULL".into(), 0),
        Some(Part::UpTo { last, column, is_unsigned }) => {
            (last.to_string(), column.to_string(), i32::from(is_unsigned))
        }
    };
    let [database, table] = [&name.0, &name.1].map(|text| literal(text.as_bytes()));
    let replace = format!(
        "REPLACE INTO teak_replicate.copy (source, table_schema, table_name, last, key_column, is_unsigned)
        VALUES ('{source}', {database}, {table}, {last}, {column}, {is_unsigned})"
    );
    replace.into_bytes()
}

impl Part {
    /// What of the rows of an event is of rows that are there, in their order, if a number tells that. Of some columns
    /// no values come.
    pub fn keep<'r>(
        self,
        rows: &'r Rows<'_>,
        left_out: &[usize],
        see: &mut dyn FnMut(&Row<'r>, Kept<'r>) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let Part::UpTo { last, column, is_unsigned } = self else { return Ok(()) };
        let images = rows.images();
        let damaged = |error: Error| Failure::Final(format!("source: {error}"), Status::Damage);
        let (mut from, mut each) = (0, rows.iter());
        while let Some(row) = each.next() {
            let row = row.map_err(damaged)?;
            let between = images.len() - each.images_between().len();
            let to = images.len() - each.images_left().len();
            let is_there = |image: &Option<Image<'_>>| match image {
                None => Ok::<_, Failure>(None),
                Some(image) => Ok(number(image, column, is_unsigned)?.map(|number| number <= last)),
            };
            let (old, new) = (is_there(&row.old)?, is_there(&row.new)?);
            if old.is_none() && new.is_none() {
                let why = format!("table {}: the log has not the key", rows.table.quoted_name());
                return Err(Failure::Final(why, Status::Damage));
            }
            let old = old.unwrap_or(false);
            // A number that an update does not name is the one before.
            let new = new.unwrap_or(old);
            let kept: Option<Kept<'r>> = match (rows.change, old, new) {
                (Change::Update, true, true) => Some((Change::Update, &images[from..to])),
                (Change::Update, true, false) | (Change::Delete, true, _) => Some((
                    Change::Delete,
                    &images[from..if rows.change == Change::Delete { to } else { between }],
                )),
                (Change::Update, false, true) => {
                    let mut columns = 0..rows.table.columns.len();
                    let has_all = columns.all(|column| rows.has_new(column) || left_out.contains(&column));
                    if !has_all {
                        let table = rows.table.quoted_name();
                        let why = format!(
                            "table {table}: a row that is not copied yet becomes one that would be, and the log has not \
                             all of it: binlog_row_image must be FULL while tables are copied"
                        );
                        return Err(Failure::Final(why, Status::Damage));
                    }
                    Some((Change::Write, &images[between..to]))
                }
                (Change::Write, _, true) => Some((Change::Write, &images[from..to])),
                _ => None,
            };
            if let Some(kept) = kept {
                see(&row, kept)?;
            }
            from = to;
        }
        Ok(())
    }
}

/// The number in a column of an image, if it is in it.
fn number(image: &Image<'_>, column: usize, is_unsigned: bool) -> Result<Option<i128>, Failure> {
    match image.0.get(column) {
        Some(Some(Value::Integer(number))) if is_unsigned => Ok(Some(number.unsigned().into())),
        Some(Some(Value::Integer(number))) => Ok(Some(number.signed().into())),
        Some(None) => Ok(None),
        other => {
            let why = format!("a key of a table that is copied is no integer in the log: {other:?}");
            Err(Failure::Final(why, Status::Damage))
        }
    }
}

/// A table's name with quotes.
pub fn quoted((database, table): &TableName) -> Vec<u8> {
    [&quoted_name(database.as_bytes())[..], b".", &quoted_name(table.as_bytes())].concat()
}
