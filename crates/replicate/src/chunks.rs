//! The rows of a table by ranges of its key, as statements that both servers understand.

use crate::tables::Table;
use teak_client::{Connection, Error};
use teak_sql::columns::{self, Column, Digest};
use teak_sql::quoting::{hex, quoted_name};

/// Values of a key's columns, as [`Column::exactly`] asks for them.
pub type Key = Vec<Vec<u8>>;

/// A session in which values come as they are, whatever a server's settings.
const SESSION: &str = "SET SESSION sql_mode = 'NO_AUTO_VALUE_ON_ZERO,ALLOW_INVALID_DATES', time_zone = '+00:00', \
     character_set_client = utf8mb4, character_set_results = NULL, collation_connection = utf8mb4_general_ci, \
     foreign_key_checks = 0, unique_checks = 1";
/// Longer values of a message are cut.
const LONGEST: usize = 100;

/// Makes the connection's session one for these statements.
pub fn prepare(connection: &mut Connection) -> Result<(), Error> {
    connection.execute(SESSION).map(|_| ())
}

/// How many rows there are, and the sum of their numbers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sum {
    /// Rows.
    pub rows: u64,
    /// As the server says it.
    hashes: String,
}

/// A table's columns and its key.
#[derive(Clone)]
pub struct Shape {
    columns: Vec<Column>,
    key: Vec<Column>,
    /// What makes the server read by the key.
    hint: &'static str,
    digest: Digest,
}

/// Which rows.
#[derive(Clone, Copy)]
pub enum Range<'k> {
    /// All behind a key, or from the first one on, up to another key and with it, or to the last one.
    Of(Option<&'k Key>, Option<&'k Key>),
    /// Those of these keys.
    Keys(&'k [Key]),
}

impl Shape {
    /// Of a table.
    pub fn of(table: &Table) -> Shape {
        let column =
            |name: &String| table.columns.iter().find(|column| column.name == name.as_bytes()).cloned();
        let hint = if table.index == "PRIMARY" { " FORCE INDEX (PRIMARY)" } else { "" };
        Shape {
            columns: table.columns.clone(),
            key: table.key.iter().filter_map(column).collect(),
            hint,
            digest: Digest::Md5,
        }
    }

    /// The same of what is no table that a server could be told an index of.
    pub fn without_hint(self) -> Shape {
        Shape { hint: "", ..self }
    }

    /// The same with numbers of rows by another function.
    pub fn by_digest(self, digest: Digest) -> Shape {
        Shape { digest, ..self }
    }

    /// The same with other names of columns.
    pub fn called(&self, name: &dyn Fn(&[u8]) -> Vec<u8>) -> Shape {
        let called = |columns: &[Column]| {
            let mut columns = columns.to_vec();
            columns.iter_mut().for_each(|column| column.name = name(&column.name));
            columns
        };
        Shape { columns: called(&self.columns), key: called(&self.key), ..*self }
    }

    /// The same with ranges of one of its columns.
    pub fn by(table: &Table, column: &Column) -> Shape {
        let whole = Shape::of(table);
        Shape { key: vec![column.clone()], ..whole }
    }

    /// Whether rows can be told apart.
    pub fn has_key(&self) -> bool {
        !self.key.is_empty()
    }

    /// All columns.
    pub fn columns(&self) -> impl Iterator<Item = &Column> {
        self.columns.iter()
    }

    /// Columns by which rows are compared.
    pub fn compared(&self) -> Vec<&Column> {
        self.columns.iter().filter(|column| column.is_compared()).collect()
    }

    /// Columns that a statement can give values.
    pub fn given(&self) -> Vec<&Column> {
        self.columns.iter().filter(|column| column.is_given()).collect()
    }

    /// Names of key columns, separated by commas.
    fn key_names(&self) -> Vec<u8> {
        self.key.iter().map(|column| quoted_name(&column.name)).collect::<Vec<_>>().join(&b", "[..])
    }

    fn key_values(&self) -> Vec<u8> {
        self.key.iter().map(Column::exactly).collect::<Vec<_>>().join(&b", "[..])
    }

    /// The condition that rows are in a range.
    pub fn condition(&self, range: Range<'_>) -> Vec<u8> {
        match range {
            Range::Of(above, upto) => {
                let above = above.map(|key| self.beyond(key, b">", b">"));
                let upto = upto.map(|key| self.beyond(key, b"<", b"<="));
                let both: Vec<Vec<u8>> = above.into_iter().chain(upto).collect();
                if both.is_empty() {
                    b"TRUE".to_vec()
                } else {
                    both.join(&b" AND "[..])
                }
            }
            Range::Keys(keys) => {
                let each = keys.iter().map(|key| {
                    let same =
                        self.key.iter().zip(key).map(|(column, value)| compared_to(column, b"=", value));
                    [b"(", &same.collect::<Vec<_>>().join(&b" AND "[..])[..], b")"].concat()
                });
                let each: Vec<Vec<u8>> = each.collect();
                [b"(", &each.join(&b" OR "[..])[..], b")"].concat()
            }
        }
    }

    /// `(a > x OR a = x AND (b > y))`, with what lets a server see at once where the range begins.
    fn beyond(&self, key: &Key, strictly: &[u8], last: &[u8]) -> Vec<u8> {
        let mut condition = Vec::new();
        for (at, (column, value)) in self.key.iter().zip(key).enumerate().rev() {
            let is_last = at + 1 == self.key.len();
            let own = compared_to(column, if is_last { last } else { strictly }, value);
            condition = match is_last {
                true => own,
                false => {
                    let same = compared_to(column, b"=", value);
                    [b"(", &own[..], b" OR (", &same, b" AND ", &condition, b"))"].concat()
                }
            };
        }
        if self.key.len() > 1 {
            let first = compared_to(&self.key[0], &[strictly, b"="].concat(), &key[0]);
            return [&first[..], b" AND ", &condition].concat();
        }
        condition
    }

    /// The key so many rows behind another one; None if there are not so many.
    pub fn bound(
        &self,
        connection: &mut Connection,
        table: &[u8],
        above: Option<&Key>,
        rows: u64,
    ) -> Result<Option<Key>, Error> {
        let (condition, names) = (self.condition(Range::Of(above, None)), self.key_names());
        let limit = format!(" LIMIT {}, 1", rows.saturating_sub(1));
        let values = self.key_values();
        let query = [
            b"SELECT ",
            &values[..],
            b" FROM ",
            table,
            self.hint.as_bytes(),
            b" WHERE ",
            &condition,
            b" ORDER BY ",
            &names,
            limit.as_bytes(),
        ];
        Ok(connection.query(query.concat())?.into_iter().next().map(plain))
    }

    /// Counts rows, and adds up their numbers.
    pub fn sum(&self, connection: &mut Connection, table: &[u8], range: Range<'_>) -> Result<Sum, Error> {
        let table = [table, self.hint.as_bytes()].concat();
        let query =
            [&columns::sum(&table, &self.columns, self.digest)[..], b" WHERE ", &self.condition(range)]
                .concat();
        let row = connection.query(query)?.into_iter().next().unwrap_or_default();
        let mut texts =
            row.into_iter().map(|value| String::from_utf8_lossy(&value.unwrap_or_default()).into_owned());
        let rows = texts.next().and_then(|text| text.parse().ok());
        let rows = rows.ok_or_else(|| Error::Protocol("a count that is no number".into()))?;
        Ok(Sum { rows, hashes: texts.next().unwrap_or_default() })
    }

    /// Keys and numbers of rows.
    pub fn numbers(
        &self,
        connection: &mut Connection,
        table: &[u8],
        range: Range<'_>,
    ) -> Result<Vec<(Key, Vec<u8>)>, Error> {
        let number = columns::number(&self.columns, self.digest);
        let rows = self.select(connection, table, &[self.key_values(), number], range)?;
        let split = |row: Vec<Option<Vec<u8>>>| {
            let mut key = plain(row);
            let number = key.pop().unwrap_or_default();
            (key, number)
        };
        Ok(rows.into_iter().map(split).collect())
    }

    /// The statement that asks for exact values of all compared columns, of the rows of a range.
    pub fn exactly(&self, table: &[u8], range: Range<'_>) -> Vec<u8> {
        let mut values: Vec<Vec<u8>> = self.compared().iter().map(|column| column.exactly()).collect();
        if values.is_empty() {
            values.push(b"''".to_vec());
        }
        self.selection(table, &values, range)
    }

    /// Exact values of columns, of the rows of a range.
    pub fn values(
        &self,
        connection: &mut Connection,
        table: &[u8],
        columns: &[&Column],
        range: Range<'_>,
    ) -> Result<Vec<Vec<Option<Vec<u8>>>>, Error> {
        let values: Vec<Vec<u8>> = columns.iter().map(|column| column.exactly()).collect();
        self.select(connection, table, &values, range)
    }

    fn select(
        &self,
        connection: &mut Connection,
        table: &[u8],
        values: &[Vec<u8>],
        range: Range<'_>,
    ) -> Result<Vec<Vec<Option<Vec<u8>>>>, Error> {
        connection.query(self.selection(table, values, range))
    }

    fn selection(&self, table: &[u8], values: &[Vec<u8>], range: Range<'_>) -> Vec<u8> {
        let (values, hint, condition) =
            (values.join(&b", "[..]), self.hint.as_bytes(), self.condition(range));
        [b"SELECT ", &values[..], b" FROM ", table, hint, b" WHERE ", &condition].concat()
    }

    /// A key as messages have it.
    pub fn shown(&self, key: &Key) -> String {
        let each = self.key.iter().zip(key).map(|(column, value)| {
            format!("{} = {}", String::from_utf8_lossy(&column.name), shown(Some(value)))
        });
        each.collect::<Vec<_>>().join(", ")
    }
}

fn compared_to(column: &Column, how: &[u8], value: &[u8]) -> Vec<u8> {
    [&quoted_name(&column.name)[..], b" ", how, b" ", &column.literal(Some(value))].concat()
}

fn plain(row: Vec<Option<Vec<u8>>>) -> Key {
    row.into_iter().map(Option::unwrap_or_default).collect()
}

/// A value as messages have it.
pub fn shown(value: Option<&[u8]>) -> String {
    let Some(value) = value else { return "NULL".into() };
    match std::str::from_utf8(value) {
        Ok(text)
            if !text.is_empty()
                && text.bytes().all(|byte| byte.is_ascii_digit() || b"-.:e ".contains(&byte)) =>
        {
            text.into()
        }
        Ok(text) if !text.chars().any(char::is_control) => {
            format!("'{}'", text.chars().take(LONGEST).collect::<String>())
        }
        _ => format!("x'{}'", hex(&value[..value.len().min(LONGEST)])),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape(names: &[&str]) -> Shape {
        let column = |name: &&str| Column::read(vec![Some(name.as_bytes().to_vec())], true);
        let key: Vec<Column> = names.iter().map(column).collect();
        Shape { columns: key.clone(), key, hint: "", digest: Digest::Md5 }
    }

    fn condition(names: &[&str], range: Range<'_>) -> String {
        String::from_utf8(shape(names).condition(range)).unwrap()
    }

    #[test]
    fn ranges_are_conditions_of_the_columns_one_by_one() {
        let (one, other) = (vec![b"1".to_vec(), b"2".to_vec()], vec![b"3".to_vec(), b"4".to_vec()]);
        let single = vec![b"1".to_vec()];
        assert_eq!(condition(&["a"], Range::Of(None, None)), "TRUE");
        assert_eq!(condition(&["a"], Range::Of(Some(&single), None)), "`a` > x'31'");
        assert_eq!(
            condition(&["a", "b"], Range::Of(Some(&one), Some(&other))),
            "`a` >= x'31' AND (`a` > x'31' OR (`a` = x'31' AND `b` > x'32')) AND \
             `a` <= x'33' AND (`a` < x'33' OR (`a` = x'33' AND `b` <= x'34'))"
        );
        assert_eq!(
            condition(&["a", "b"], Range::Keys(&[one, other])),
            "((`a` = x'31' AND `b` = x'32') OR (`a` = x'33' AND `b` = x'34'))"
        );
    }

    #[test]
    fn values_are_shown_as_text_or_digits() {
        for (value, wanted) in [(&b"17"[..], "17"), (b"it", "'it'"), (b"\xff", "x'ff'"), (b"", "''")] {
            assert_eq!(shown(Some(value)), wanted);
        }
        assert_eq!(shown(None), "NULL");
    }
}
