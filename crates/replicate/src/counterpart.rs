//! What a table of a source is in the target, as statements name it: a table whose columns may have other names, or a part
//! of one that has rows of others, too.

use crate::configuration::SourcePlan;
use crate::copying;
use crate::part::PartOf;
use crate::renamed_columns::ColumnNames;
use crate::routes::Name;
use teak_sql::columns::Column;
use teak_sql::quoting::quoted_name;

/// A table of the target that has the rows of one of a source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Counterpart {
    /// Its database and name.
    pub name: Name,
    names: ColumnNames,
    part: Option<PartOf>,
}

impl Counterpart {
    /// Of a table of the source.
    pub fn of(plan: &SourcePlan, database: &str, table: &str) -> Counterpart {
        Counterpart {
            name: plan.routes.names_of(database, table),
            names: plan.renamed_columns.of(database, table),
            part: plan.routes.part(database, table).cloned(),
        }
    }

    /// Its name, with quotes.
    pub fn table(&self) -> Vec<u8> {
        copying::quoted(&self.name)
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
        self.added().map(|(column, value)| [&column[..], b" = ", &value].concat())
    }

    /// The column that the source's table has not, with quotes, and its value as a literal.
    pub fn added(&self) -> Option<(Vec<u8>, Vec<u8>)> {
        let part = self.part.as_ref()?;
        Some((quoted_name(part.column.as_bytes()), format!("'{}'", part.value).into_bytes()))
    }
}
