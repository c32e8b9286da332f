//! Columns that tables of the target have of their own, behind those of the source: the log has nothing of them, so a
//! row has in them a constant DEFAULT, NULL, 0 or an empty text, and whatever somebody else writes there.

use crate::exclusions::{are_for_nobody, of_tables, said_of, ByPattern, OfTables};
use crate::failure::Failure;
use crate::routes::Name;
use crate::tables::{self, Table};
use teak_client::{Connection, Error};
use teak_console::Status;

/// Which tables have such columns.
#[derive(Debug, Clone, Default)]
pub struct OwnColumns {
    all: OfTables<String>,
}

impl OwnColumns {
    /// By patterns of the source's tables; the pattern that is none is the error.
    pub fn new(all: &ByPattern<String>) -> Result<OwnColumns, String> {
        Ok(OwnColumns { all: of_tables(all)? })
    }

    /// Those of a table of the source, in their order.
    pub fn of(&self, database: &str, table: &str) -> &[String] {
        said_of(&self.all, database, table).next().unwrap_or_default()
    }

    /// Whether a pattern fits none of a source's tables.
    pub fn has_none_of(&self, tables: &[&Name]) -> bool {
        are_for_nobody(&self.all, tables)
    }
}

/// The table of the target without such columns; None: they are not its last ones.
pub fn without(names: &[String], table: &Table) -> Option<Table> {
    let mut table = table.clone();
    let rest = table.columns.len().checked_sub(names.len())?;
    let last = table.columns.split_off(rest);
    let are_these = last.iter().zip(names).all(|(column, name)| column.name == name.as_bytes());
    are_these.then_some(table)
}

/// Fails unless they are the last ones of a table of the target.
pub fn must_be_last(target: &mut Connection, names: &[String], here: &Name) -> Result<(), Failure> {
    let shown = format!("`{}`.`{}`", here.0, here.1);
    let of_target = |error: Error| Failure::of_target(&error, || format!("columns of {shown}"));
    let table = tables::one(target, &here.0, &here.1).map_err(of_target)?;
    match table.is_some_and(|table| without(names, &table).is_some()) {
        true => Ok(()),
        false => {
            let why = format!("{shown}: its last columns must be its own: {}", names.join(", "));
            Err(Failure::Final(why, Status::Damage))
        }
    }
}
