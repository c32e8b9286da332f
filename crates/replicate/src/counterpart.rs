//! What a table of a source is in the target, as statements name it: a table whose columns may have other names, or a
//! part of one that has rows of others, too.

use crate::configuration::SourcePlan;
use crate::copying;
use crate::own_columns;
use crate::part::PartOf;
use crate::renamed_columns::ColumnNames;
use crate::routes::Name;
use crate::tables::{self, Table};
use teak_client::{Connection, Error};
use teak_sql::columns::Column;
use teak_sql::quoting::quoted_name;

/// A table of the target that has the rows of one of a source.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Counterpart {
    /// Its database and name.
    pub name: Name,
    names: ColumnNames,
    part: Option<PartOf>,
    own_columns: Vec<String>,
}

impl Counterpart {
    /// Of a table of the source.
    pub fn of(plan: &SourcePlan, database: &str, table: &str) -> Counterpart {
        Counterpart {
            name: plan.routes.names_of(database, table),
            names: plan.renamed_columns.of(database, table),
            part: plan.routes.part(database, table).cloned(),
            own_columns: plan.own_columns.of(database, table).to_vec(),
        }
    }

    /// A table that is there as at the source.
    #[cfg(test)]
    pub fn new(database: &str, table: &str) -> Counterpart {
        Counterpart { name: (database.into(), table.into()), ..Counterpart::default() }
    }

    /// Its name, with quotes.
    pub fn table(&self) -> Vec<u8> {
        copying::quoted(&self.name)
    }

    /// It has columns that the source's table has not, so somebody has made it who knows of them.
    pub fn has_more_columns(&self) -> bool {
        self.part.is_some() || !self.own_columns.is_empty()
    }

    /// Whether there are rows of the source in it.
    pub fn has_rows(&self, target: &mut Connection) -> Result<bool, Error> {
        let own = self.own().unwrap_or_else(|| b"TRUE".to_vec());
        let query = [b"SELECT 1 FROM ", &self.table()[..], b" WHERE ", &own, b" LIMIT 1"].concat();
        Ok(target.value(query)?.is_some())
    }

    /// What is said of it if it is not there for a copy.
    pub fn missing(&self) -> String {
        let why = "which start = \"copy\" fills, and does not make, as it has columns of its own";
        format!("is not in the target, as `{}`.`{}`, {why}", self.name.0, self.name.1)
    }

    /// What is said of it if it has rows before a copy.
    pub fn filled(&self) -> String {
        format!("is to be copied, and `{}`.`{}` has rows of it already", self.name.0, self.name.1)
    }

    /// Why rows of the source's table cannot be applied in it, as both are now. `engines` are those with transactions.
    pub fn differences(&self, there: &Table, here: &Table, engines: &[String]) -> Vec<String> {
        let rest = match &self.part {
            None => own_columns::without(&self.own_columns, here).ok_or(self.own_columns.join(", ")),
            Some(part) => part.without(here).ok_or(part.column.clone()),
        };
        match rest {
            Ok(rest) => tables::differences(&self.names.here(there), &rest, engines),
            Err(columns) => vec![format!("has no last column {columns} in the target")],
        }
    }

    /// A statement about the source's table is one about this as soon as it has its name.
    pub fn is_alike(&self) -> bool {
        self.part.is_none() && self.names.is_empty()
    }

    /// Its rows with these columns, as the source has them: what a statement has a table as.
    pub fn rows<'c>(&self, columns: impl Iterator<Item = &'c Column>) -> Vec<u8> {
        let table = self.table();
        if self.is_alike() {
            return table;
        }
        let each = columns.map(|column| {
            let (here, there) = (self.column(&column.name), quoted_name(&column.name));
            if here == there {
                here
            } else {
                [&here[..], b" AS ", &there].concat()
            }
        });
        let columns = each.collect::<Vec<_>>().join(&b", "[..]);
        let mut rows = [b"(SELECT ", &columns[..], b" FROM ", &table].concat();
        if let Some(own) = self.own() {
            rows.extend_from_slice(&[b" WHERE ", &own[..]].concat());
        }
        rows.extend_from_slice(b") AS own_rows");
        rows
    }

    /// What a column of the source is called in it, with quotes.
    pub fn column(&self, name: &[u8]) -> Vec<u8> {
        quoted_name(self.names.name(name))
    }

    /// The same without quotes.
    pub fn name_of(&self, name: &[u8]) -> Vec<u8> {
        self.names.name(name).to_vec()
    }

    /// The condition that a row is the source's; None: all are.
    pub fn own(&self) -> Option<Vec<u8>> {
        self.part.as_ref().map(PartOf::condition)
    }

    /// The column that the source's table has not, with quotes, and its value as a literal.
    pub fn added(&self) -> Option<(Vec<u8>, Vec<u8>)> {
        let part = self.part.as_ref()?;
        Some((quoted_name(part.column.as_bytes()), part.literal()))
    }
}
