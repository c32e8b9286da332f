//! Rows of MySQL's own types as a server has them that has not these: JSON as its text, VECTOR as its bytes.

use super::rows::{Image, Row, RowIterator, Rows};
use crate::bytes::{bytes_of_bits, Bitmap};
use crate::error::{Error, Problem};
use crate::table::{Column, ColumnType};
use crate::values::{self, changed, Extent, Value};
use std::borrow::Cow;
use std::sync::Arc;

/// What a column becomes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Conversion {
    /// JSON: LONGTEXT.
    Text,
    /// VECTOR: VARBINARY of so many bytes at most.
    Varbinary(u16),
    /// VECTOR: BLOB whose lengths have so many bytes.
    Blob(u8),
    /// JSON: LONGTEXT without anything in it, for who leaves the column out.
    Nothing,
}

impl Conversion {
    fn kind(self) -> ColumnType {
        match self {
            Conversion::Text | Conversion::Nothing => ColumnType::Blob { length_bytes: 4, compressed: false },
            Conversion::Varbinary(bytes) => ColumnType::Varchar { bytes, compressed: false },
            Conversion::Blob(length_bytes) => ColumnType::Blob { length_bytes, compressed: false },
        }
    }

    /// Appends a value, with its length before it.
    fn write(self, value: &[u8], images: &mut Vec<u8>) -> Result<(), Problem> {
        let (length_bytes, most) = match self {
            Conversion::Text | Conversion::Nothing => (4, u64::from(u32::MAX)),
            Conversion::Varbinary(bytes) => (if bytes < 256 { 1 } else { 2 }, u64::from(bytes)),
            Conversion::Blob(length_bytes) => (length_bytes.min(4), (1 << (8 * length_bytes.min(4))) - 1),
        };
        if value.len() as u64 > most {
            return Err(Problem::TooLarge { what: "a value", bytes: value.len() as u64, limit: most });
        }
        images.extend_from_slice(&(value.len() as u64).to_le_bytes()[..usize::from(length_bytes)]);
        images.extend_from_slice(value);
        Ok(())
    }
}

/// What knows a document that the log has not: of the row, and the column's place, its text.
pub type Known<'k> = &'k mut dyn FnMut(&Row<'_>, usize) -> Option<String>;

impl Rows<'_> {
    /// The same with other types of some columns, which are counted from 0 on. Where the log has only what changed of a
    /// document, `known` is asked for what it was if the image before the change has it not.
    pub fn converted(
        &self,
        conversions: &[(usize, Conversion)],
        known: Known<'_>,
    ) -> Result<Rows<'static>, Error> {
        let mut table = (*self.table).clone();
        for &(at, conversion) in conversions {
            if let Some(column) = table.columns.get_mut(at) {
                *column = Column::new(conversion.kind(), column.is_nullable);
            }
        }
        let (mut images, mut each) = (Vec::new(), self.iter());
        for row in self.iter() {
            let row = row?;
            if row.old.is_some() {
                each.convert(false, conversions, &row, known, &mut images)?;
            }
            if row.new.is_some() {
                each.convert(true, conversions, &row, known, &mut images)?;
            }
        }
        Ok(self.with_images(Arc::new(table), (self.old_columns.to_vec(), self.new_columns.to_vec()), images))
    }
}

impl RowIterator<'_> {
    /// Appends the next image, of this row, with other types of some columns.
    fn convert(
        &mut self,
        is_new: bool,
        conversions: &[(usize, Conversion)],
        row: &Row<'_>,
        known: Known<'_>,
        images: &mut Vec<u8>,
    ) -> Result<(), Error> {
        let rows = self.rows;
        let (columns, present) = self.columns(is_new);
        let partial =
            if is_new && rows.partial_json { self.partial_columns() } else { Ok(Bitmap::default()) };
        let partial = partial.map_err(|problem| rows.table_error(problem))?;
        let nulls = self.left.take(bytes_of_bits(present), "the NULLs of a row");
        let nulls = nulls.map_err(|problem| rows.table_error(problem))?;
        images.extend_from_slice(nulls);
        let (mut in_image, mut documents) = (0, 0);
        for (at, column) in rows.table.columns.iter().enumerate() {
            let is_document = matches!(column.kind, ColumnType::Json { .. });
            let extent = if is_document && partial.has(documents) { Extent::Changes } else { Extent::Whole };
            documents += usize::from(is_document);
            if !columns.has(at) {
                continue;
            }
            in_image += 1;
            if Bitmap(nulls).has(in_image - 1) {
                continue;
            }
            let before = self.left.0;
            let of_column = |problem| rows.error(at, problem);
            let value = values::read(&mut self.left, column, extent, &rows.limits).map_err(of_column)?;
            match conversions.iter().find(|(place, _)| *place == at) {
                Some((_, Conversion::Nothing)) => {
                    Conversion::Nothing.write(&[], images).map_err(of_column)?;
                }
                None => images.extend_from_slice(&before[..before.len() - self.left.len()]),
                Some((_, conversion)) => {
                    let value = bytes_of(&value, row, at, known).map_err(of_column)?;
                    conversion.write(&value, images).map_err(of_column)?;
                }
            }
        }
        Ok(())
    }
}

/// What a value of MySQL's own types is elsewhere.
fn bytes_of<'v>(
    value: &Value<'v>,
    row: &Row<'_>,
    at: usize,
    known: Known<'_>,
) -> Result<Cow<'v, [u8]>, Problem> {
    Ok(match value {
        Value::Json(document) => document.text()?.into_bytes().into(),
        Value::Vector(vector) => Cow::Borrowed(*vector),
        Value::JsonChanges(changes) => {
            let before = row.old.as_ref().and_then(|Image(values)| values.get(at)?.as_ref());
            let document = match before {
                Some(Value::Json(document)) => Some(document.text()?),
                Some(_) => None,
                None => known(row, at),
            };
            let document = document
                .ok_or_else(|| Problem::invalid("a change of parts of a document that is not known"))?;
            changed(&document, changes)?.into_bytes().into()
        }
        _ => return Err(Problem::invalid("a value of a type that stays as it is")),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_have_their_lengths_before_them() {
        let written = |conversion: Conversion, length: usize| {
            let mut images = Vec::new();
            conversion.write(&vec![7; length], &mut images).map(|()| images.len())
        };
        assert_eq!(written(Conversion::Text, 3), Ok(7));
        assert_eq!(written(Conversion::Varbinary(12), 12), Ok(13));
        assert_eq!(written(Conversion::Varbinary(300), 12), Ok(14));
        assert_eq!(written(Conversion::Blob(3), 300), Ok(303));
        assert!(
            written(Conversion::Varbinary(12), 13).is_err() && written(Conversion::Blob(1), 256).is_err()
        );
    }
}
