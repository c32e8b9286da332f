//! Events with rows.
//!
//! ```text
//! table id: 6 (4 before MySQL 5.1.4) | flags: 2 | of version 2: length: 2 | what else is told of the rows
//! | number of columns: packed | a bit for each: it is in the images | of an update the same for the new images
//! | { image of a row; of an update old and new one }
//! image:  of parts of JSON: options: packed | if 1 is set: a bit for each JSON column: it has only what changed
//!         | a bit for each column that is in it: it is NULL | the values of the others
//! ```
//!
//! In compressed events of MariaDB all images together are compressed.

use crate::bytes::{bytes_of_bits, Bitmap, Bytes};
use crate::compressed;
use crate::error::{Error, Place, Problem};
use crate::header::EventType;
use crate::limits::Limits;
use crate::table::{self, Column, ColumnType, Table};
use crate::values::{self, Extent, Value};
use std::borrow::Cow;
use std::sync::Arc;

/// The length of the fixed part from which on more is told of the rows.
const FIXED_BYTES_V2: usize = 10;
/// Of an image: some of its JSON columns have only what changed.
const PARTIAL_JSON: u64 = 1;

/// What happened to rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// They came.
    Write,
    /// They changed.
    Update,
    /// They went.
    Delete,
}

/// How a type of event has its rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Form {
    pub change: Change,
    pub compressed: bool,
    pub partial_json: bool,
}

impl Form {
    /// None of an event without rows.
    pub fn of(kind: EventType) -> Option<Form> {
        use EventType as Type;
        let change = match kind {
            Type::WriteRowsV1 | Type::WriteRows | Type::WriteRowsCompressedV1 | Type::WriteRowsCompressed => {
                Change::Write
            }
            Type::UpdateRowsV1
            | Type::UpdateRows
            | Type::PartialUpdateRows
            | Type::UpdateRowsCompressedV1
            | Type::UpdateRowsCompressed => Change::Update,
            Type::DeleteRowsV1
            | Type::DeleteRows
            | Type::DeleteRowsCompressedV1
            | Type::DeleteRowsCompressed => Change::Delete,
            _ => return None,
        };
        let compressed = (166..=171).contains(&(kind as u8));
        Some(Form { change, compressed, partial_json: kind == Type::PartialUpdateRows })
    }
}

/// Rows of one table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rows<'a> {
    /// What happened to them.
    pub change: Change,
    /// Their table, as the last table map of the statement has it.
    pub table: Arc<Table>,
    /// See the constants.
    pub flags: u16,
    /// MySQL: the partition that they are in, and of an update the one that they were in.
    pub partition: Option<(u16, Option<u16>)>,
    /// What MySQL's NDB tells of them.
    pub ndb: Option<Cow<'a, [u8]>>,
    /// Whether the log has them compressed.
    pub was_compressed: bool,
    pub(super) partial_json: bool,
    pub(super) old_columns: Cow<'a, [u8]>,
    pub(super) new_columns: Cow<'a, [u8]>,
    pub(super) images: Cow<'a, [u8]>,
    pub(super) place: Place,
    pub(super) limits: Limits,
}

impl<'a> Rows<'a> {
    /// The statement's last: table ids mean nothing behind it.
    pub const STATEMENT_END: u16 = 1;
    /// `foreign_key_checks` was off.
    pub const NO_FOREIGN_KEY_CHECKS: u16 = 2;
    /// `unique_checks` was off.
    pub const RELAXED_UNIQUE_CHECKS: u16 = 4;
    /// Images have all columns.
    pub const COMPLETE_ROWS: u16 = 8;
    /// MySQL: the SQL layer sees to foreign keys, not the engine.
    pub const SQL_FOREIGN_KEYS: u16 = 16;
    /// MariaDB: `check_constraint_checks` was off.
    pub const NO_CHECK_CONSTRAINT_CHECKS: u16 = 128;

    const FLAGS: [(u16, &'static str); 6] = [
        (Self::STATEMENT_END, "statement_end"),
        (Self::NO_FOREIGN_KEY_CHECKS, "no_foreign_key_checks"),
        (Self::RELAXED_UNIQUE_CHECKS, "relaxed_unique_checks"),
        (Self::COMPLETE_ROWS, "complete_rows"),
        (Self::SQL_FOREIGN_KEYS, "sql_foreign_keys"),
        (Self::NO_CHECK_CONSTRAINT_CHECKS, "no_check_constraint_checks"),
    ];

    /// The names of the flags that are set.
    pub fn flag_names(&self) -> Vec<&'static str> {
        Self::FLAGS.iter().filter(|(flag, _)| self.flags & flag != 0).map(|(_, name)| *name).collect()
    }

    /// Whether images before the change have a column; of a write those after it count.
    pub fn has_old(&self, column: usize) -> bool {
        self.change != Change::Write && Bitmap(&self.old_columns).has(column)
    }

    /// Whether images after the change have a column.
    pub fn has_new(&self, column: usize) -> bool {
        self.change != Change::Delete && Bitmap(&self.new_columns).has(column)
    }

    /// A bit for each column, the lowest of the first byte first: images before the change have it.
    pub fn old_columns(&self) -> &[u8] {
        &self.old_columns
    }

    /// The same of images after the change.
    pub fn new_columns(&self) -> &[u8] {
        &self.new_columns
    }

    /// The images as the log has them, not compressed.
    pub fn images(&self) -> &[u8] {
        &self.images
    }

    /// Whether images may have only what changed of JSON documents.
    pub fn has_partial_json(&self) -> bool {
        self.partial_json
    }

    /// What is wrong with a value of one of the columns, which are counted from 0 on, and where.
    pub fn error(&self, column: usize, problem: Problem) -> Error {
        self.table_error(problem).with_column(self.table.column_name(column))
    }

    pub(super) fn table_error(&self, problem: Problem) -> Error {
        Error::new(self.place.clone(), problem).with_table(self.table.quoted_name())
    }

    /// The rows, one after the other.
    pub fn iter(&self) -> RowIterator<'_> {
        let of = |columns: &[u8]| {
            let has = |&column: &usize| Bitmap(columns).has(column);
            (0..self.table.columns.len()).filter(has).count()
        };
        RowIterator {
            rows: self,
            left: Bytes(&self.images),
            between: &self.images,
            old: of(&self.old_columns),
            new: of(&self.new_columns),
            ended: false,
            // Images without columns have no bytes: servers take them for one row.
            bare: self.images.is_empty() && self.change == Change::Write && of(&self.new_columns) == 0,
        }
    }
}

impl<'r> IntoIterator for &'r Rows<'_> {
    type Item = Result<Row<'r>, Error>;
    type IntoIter = RowIterator<'r>;

    fn into_iter(self) -> RowIterator<'r> {
        self.iter()
    }
}

/// A row, before and after its change.
#[derive(Debug, Clone, PartialEq)]
pub struct Row<'a> {
    /// Before: of a write there is none.
    pub old: Option<Image<'a>>,
    /// After: of a delete there is none.
    pub new: Option<Image<'a>>,
}

/// Values of a row, in the order of the table's columns. None: the column is not in the image.
#[derive(Debug, Clone, PartialEq)]
pub struct Image<'a>(pub Vec<Option<Value<'a>>>);

/// The head of an event with rows, which names its table.
pub(crate) struct Head<'a> {
    pub table_id: u64,
    pub flags: u16,
    partition: Option<(u16, Option<u16>)>,
    ndb: Option<&'a [u8]>,
}

impl<'a> Head<'a> {
    pub fn read(bytes: &mut Bytes<'a>, fixed_bytes: usize, change: Change) -> Result<Head<'a>, Problem> {
        let what = "the fixed part of an event with rows";
        let mut fixed = Bytes(bytes.take(fixed_bytes, what)?);
        let table_id = table::table_id(&mut fixed, fixed_bytes)?;
        let flags = fixed.u16(what)?;
        let mut head = Head { table_id, flags, partition: None, ndb: None };
        if fixed_bytes >= FIXED_BYTES_V2 {
            let length = fixed.u16(what)?;
            // It counts its own two bytes.
            let length = length
                .checked_sub(2)
                .ok_or_else(|| Problem::invalid("rows with less than nothing told of them"))?;
            head.read_extra(Bytes(bytes.take(length.into(), "what is told of rows")?), change)?;
        }
        Ok(head)
    }

    fn read_extra(&mut self, mut extra: Bytes<'a>, change: Change) -> Result<(), Problem> {
        let what = "what is told of rows";
        while !extra.is_empty() {
            match extra.u8(what)? {
                0 => {
                    // Its length counts itself, and what comes behind.
                    let mut whole = extra;
                    let length = extra.u8(what)?;
                    self.ndb = Some(whole.take(length.max(1).into(), what)?);
                    extra = whole;
                }
                1 => {
                    let partition = extra.u16(what)?;
                    let from = if change == Change::Update { Some(extra.u16(what)?) } else { None };
                    self.partition = Some((partition, from));
                }
                // What it is, and so where the next begins, cannot be told.
                _ => break,
            }
        }
        Ok(())
    }

    /// The rows behind it.
    pub fn rows(
        self,
        mut bytes: Bytes<'a>,
        form: Form,
        table: Arc<Table>,
        place: Place,
        limits: Limits,
    ) -> Result<Rows<'a>, Problem> {
        let what = "the columns of rows";
        let number = bytes.packed(what)?;
        if number != table.columns.len() as u64 {
            let named = table.columns.len();
            return Err(Problem::invalid(format!("rows of {number} columns in a table of {named}")));
        }
        let bitmap_bytes = bytes_of_bits(table.columns.len());
        let first = bytes.take(bitmap_bytes, what)?;
        let second = if form.change == Change::Update { bytes.take(bitmap_bytes, what)? } else { first };
        let images = match form.compressed {
            true => Cow::Owned(compressed::of_event(bytes.rest(), &limits)?),
            false => Cow::Borrowed(bytes.rest()),
        };
        Ok(Rows {
            change: form.change,
            table,
            flags: self.flags,
            partition: self.partition,
            ndb: self.ndb.map(Cow::Borrowed),
            was_compressed: form.compressed,
            partial_json: form.partial_json,
            old_columns: first.into(),
            new_columns: second.into(),
            images,
            place,
            limits,
        })
    }
}

impl Rows<'_> {
    /// The same with one more column behind the others, a VARCHAR of so many bytes at most that has this value in each
    /// image.
    pub fn with_column(&self, bytes: u16, value: &[u8]) -> Result<Rows<'static>, Error> {
        if self.partial_json {
            return Err(self.table_error(Problem::invalid("a column more, beside partial JSON")));
        }
        let before = self.table.columns.len();
        let mut table = (*self.table).clone();
        table.columns.push(Column::new(ColumnType::Varchar { bytes, compressed: false }, false));
        let widened = |columns: &[u8]| {
            let mut columns = columns.to_vec();
            columns.resize(bytes_of_bits(before + 1), 0);
            columns[before / 8] |= 1 << (before % 8);
            columns
        };
        let length = value.len().min(bytes.into());
        let length_bytes = if bytes < 256 { 1 } else { 2 };
        let (mut images, mut from, mut each) = (Vec::new(), 0, self.iter());
        let mut add = |image: &[u8], present: usize| {
            let (nulls, values) = image.split_at(bytes_of_bits(present).min(image.len()));
            let nulls_at = images.len();
            images.extend_from_slice(nulls);
            images.resize(nulls_at + bytes_of_bits(present + 1), 0);
            images[nulls_at + present / 8] &= !(1 << (present % 8));
            images.extend_from_slice(values);
            images.extend_from_slice(&(length as u16).to_le_bytes()[..length_bytes]);
            images.extend_from_slice(&value[..length]);
        };
        while let Some(row) = each.next() {
            let row = row?;
            let between = match self.change {
                Change::Write => from,
                _ => self.images.len() - each.images_between().len(),
            };
            let to = self.images.len() - each.images_left().len();
            if row.old.is_some() {
                add(&self.images[from..between], each.old);
            }
            if row.new.is_some() {
                add(&self.images[between..to], each.new);
            }
            from = to;
        }
        Ok(self.with_images(
            Arc::new(table),
            (widened(&self.old_columns), widened(&self.new_columns)),
            images,
        ))
    }

    /// The same changes, of a table with these columns in the images before and behind, and these images.
    pub(super) fn with_images(
        &self,
        table: Arc<Table>,
        (old_columns, new_columns): (Vec<u8>, Vec<u8>),
        images: Vec<u8>,
    ) -> Rows<'static> {
        Rows {
            change: self.change,
            table,
            flags: self.flags,
            partition: self.partition,
            ndb: None,
            was_compressed: self.was_compressed,
            partial_json: false,
            old_columns: Cow::Owned(old_columns),
            new_columns: Cow::Owned(new_columns),
            images: Cow::Owned(images),
            place: self.place.clone(),
            limits: self.limits,
        }
    }

    /// The same without what images have of some columns, which are counted from 0 on.
    pub fn without_columns(&self, left_out: &[usize]) -> Result<Rows<'static>, Error> {
        self.narrowed(left_out, left_out)
    }

    /// The same with no more of what rows were before the change than these columns, which are counted from 0 on.
    pub fn with_old_columns(&self, kept: &[usize]) -> Result<Rows<'static>, Error> {
        let left_out: Vec<usize> = (0..self.table.columns.len()).filter(|at| !kept.contains(at)).collect();
        self.narrowed(&left_out, &[])
    }

    fn narrowed(&self, of_old: &[usize], of_new: &[usize]) -> Result<Rows<'static>, Error> {
        if self.partial_json {
            return Err(self.table_error(Problem::invalid("columns left out, beside partial JSON")));
        }
        let narrowed = |columns: &[u8], left_out: &[usize]| {
            let mut columns = columns.to_vec();
            for &at in left_out {
                if let Some(byte) = columns.get_mut(at / 8) {
                    *byte &= !(1 << (at % 8));
                }
            }
            columns
        };
        let (mut images, mut each) = (Vec::new(), self.iter());
        while !each.left.is_empty() {
            let before = each.left.len();
            if self.change != Change::Write {
                each.keep(false, of_old, &mut images)?;
            }
            if self.change != Change::Delete {
                each.keep(true, of_new, &mut images)?;
            }
            if each.left.len() == before {
                return Err(self.table_error(Problem::invalid("rows of no bytes, and bytes behind them")));
            }
        }
        let rows = self.with_images(
            Arc::clone(&self.table),
            (narrowed(&self.old_columns, of_old), narrowed(&self.new_columns, of_new)),
            images,
        );
        Ok(Rows { flags: self.flags & !Self::COMPLETE_ROWS, ..rows })
    }

    /// The same on its own, for who keeps it longer than the event's bytes.
    pub fn into_owned(self) -> Rows<'static> {
        Rows {
            change: self.change,
            table: self.table,
            flags: self.flags,
            partition: self.partition,
            ndb: self.ndb.map(|ndb| Cow::Owned(ndb.into_owned())),
            was_compressed: self.was_compressed,
            partial_json: self.partial_json,
            old_columns: Cow::Owned(self.old_columns.into_owned()),
            new_columns: Cow::Owned(self.new_columns.into_owned()),
            images: Cow::Owned(self.images.into_owned()),
            place: self.place,
            limits: self.limits,
        }
    }
}

/// The rows of an event. After an error there are no more.
#[derive(Debug)]
pub struct RowIterator<'r> {
    pub(super) rows: &'r Rows<'r>,
    pub(super) left: Bytes<'r>,
    between: &'r [u8],
    /// How many columns images before and after the change have.
    old: usize,
    new: usize,
    ended: bool,
    bare: bool,
}

impl<'r> Iterator for RowIterator<'r> {
    type Item = Result<Row<'r>, Error>;

    fn next(&mut self) -> Option<Result<Row<'r>, Error>> {
        if self.ended || self.left.is_empty() && !self.bare {
            return None;
        }
        self.bare = false;
        let before = self.left.len();
        let row = self.row();
        let stuck = self.left.len() == before && before > 0;
        self.ended = row.is_err() || stuck;
        Some(match row {
            Ok(_) if stuck => {
                Err(self.rows.table_error(Problem::invalid("rows of no bytes, and bytes behind them")))
            }
            row => row,
        })
    }
}

impl<'r> RowIterator<'r> {
    /// The images of the rows that are still to come.
    pub fn images_left(&self) -> &'r [u8] {
        self.left.0
    }

    /// The same as they were between the two images of the last row; of one that has one image, before or behind it.
    pub fn images_between(&self) -> &'r [u8] {
        self.between
    }

    fn row(&mut self) -> Result<Row<'r>, Error> {
        let change = self.rows.change;
        let old = if change == Change::Write { None } else { Some(self.image(false)?) };
        self.between = self.left.0;
        let new = if change == Change::Delete { None } else { Some(self.image(true)?) };
        Ok(Row { old, new })
    }

    /// Which columns images after the change have, or before it, and how many.
    pub(super) fn columns(&self, is_new: bool) -> (Bitmap<'r>, usize) {
        match is_new {
            true => (Bitmap(&self.rows.new_columns), self.new),
            false => (Bitmap(&self.rows.old_columns), self.old),
        }
    }

    fn image(&mut self, is_new: bool) -> Result<Image<'r>, Error> {
        let rows = self.rows;
        let (columns, present) = self.columns(is_new);
        let partial =
            if is_new && rows.partial_json { self.partial_columns() } else { Ok(Bitmap::default()) };
        let partial = partial.map_err(|problem| rows.table_error(problem))?;
        let nulls = self.left.take(bytes_of_bits(present), "the NULLs of a row").map(Bitmap);
        let nulls = nulls.map_err(|problem| rows.table_error(problem))?;
        let (mut in_image, mut documents) = (0, 0);
        let mut image = Vec::with_capacity(rows.table.columns.len());
        for (at, column) in rows.table.columns.iter().enumerate() {
            // Documents are counted whether they are in the image or not.
            let is_document = matches!(column.kind, ColumnType::Json { .. });
            let extent = if is_document && partial.has(documents) { Extent::Changes } else { Extent::Whole };
            documents += usize::from(is_document);
            if !columns.has(at) {
                image.push(None);
                continue;
            }
            let is_null = nulls.has(in_image);
            in_image += 1;
            let value = match is_null {
                true => Ok(Value::Null),
                false => values::read(&mut self.left, column, extent, &rows.limits),
            };
            match value {
                Ok(value) => image.push(Some(value)),
                Err(problem) => return Err(rows.error(at, problem)),
            }
        }
        Ok(Image(image))
    }

    /// Appends the next image without some columns.
    fn keep(&mut self, is_new: bool, left_out: &[usize], images: &mut Vec<u8>) -> Result<(), Error> {
        let rows = self.rows;
        let (columns, present) = self.columns(is_new);
        let nulls = self.left.take(bytes_of_bits(present), "the NULLs of a row").map(Bitmap);
        let nulls = nulls.map_err(|problem| rows.table_error(problem))?;
        let (mut kept_nulls, mut kept_values, mut kept) = (Vec::new(), Vec::new(), 0);
        let here = rows.table.columns.iter().enumerate().filter(|(at, _)| columns.has(*at));
        for (in_image, (at, column)) in here.enumerate() {
            let is_null = nulls.has(in_image);
            let before = self.left.0;
            if !is_null {
                let value = values::read(&mut self.left, column, Extent::Whole, &rows.limits);
                value.map_err(|problem| rows.error(at, problem))?;
            }
            if left_out.contains(&at) {
                continue;
            }
            kept_nulls.resize(bytes_of_bits(kept + 1), 0);
            kept_nulls[kept / 8] |= u8::from(is_null) << (kept % 8);
            kept += 1;
            kept_values.extend_from_slice(&before[..before.len() - self.left.len()]);
        }
        images.extend_from_slice(&kept_nulls);
        images.extend_from_slice(&kept_values);
        Ok(())
    }

    /// Which of the table's JSON columns have only what changed.
    pub(super) fn partial_columns(&mut self) -> Result<Bitmap<'r>, Problem> {
        let what = "what is told of a row";
        match self.left.packed(what)? {
            0 => Ok(Bitmap::default()),
            PARTIAL_JSON => {
                let columns = &self.rows.table.columns;
                let documents =
                    columns.iter().filter(|column| matches!(column.kind, ColumnType::Json { .. }));
                Ok(Bitmap(self.left.take(bytes_of_bits(documents.count()), what)?))
            }
            other => Err(Problem::invalid(format!("{what} has the unknown options {other:#x}"))),
        }
    }
}
