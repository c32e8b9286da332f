//! Rows that were loaded without the parents that foreign keys want.
//!
//! Teak's CHECK TABLE looks for the parents of all rows, by a merge of indexes; what it says is a warning that names
//! the constraint, the key and the row. InnoDB's does not look, so its tables are not asked.

use super::super::task::Table;
use teak_client::{Connection, Error};
use teak_sql::quoting::literal;

/// What CHECK TABLE says first against a table of Teak with foreign keys; `None`: nothing, or it is no such table.
pub fn complaint(connection: &mut Connection, table: &Table) -> Result<Option<String>, Error> {
    let of_table =
        format!("TABLE_SCHEMA = {} AND TABLE_NAME = {}", literal(&table.database), literal(&table.name));
    let engine = format!("SELECT 1 FROM information_schema.TABLES WHERE {of_table} AND ENGINE = 'Teak'");
    if connection.value(engine)?.is_none() {
        return Ok(None);
    }
    let keys = format!(
        "SELECT 1 FROM information_schema.KEY_COLUMN_USAGE WHERE {of_table} AND REFERENCED_TABLE_NAME IS NOT NULL LIMIT 1"
    );
    if connection.value(keys)?.is_none() {
        return Ok(None);
    }
    let told = connection.query([b"CHECK TABLE ", &table.quoted()[..]].concat())?;
    let complaints: Vec<String> = told.into_iter().filter_map(complaint_of).collect();
    let more = match complaints.len() {
        0 | 1 => String::new(),
        number => format!(" (and {} more of this kind)", number - 1),
    };
    Ok(complaints.into_iter().next().map(|first| first + &more))
}

/// The text of a line that says more than that all is well.
fn complaint_of(row: Vec<Option<Vec<u8>>>) -> Option<String> {
    let mut texts =
        row.into_iter().map(|value| String::from_utf8_lossy(&value.unwrap_or_default()).into_owned());
    let (kind, text) = (texts.nth(2)?, texts.next()?);
    let is_well = kind.eq_ignore_ascii_case("note") || kind == "status" && text == "OK";
    (!is_well).then_some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_that_is_well_and_notes_are_no_complaints() {
        let row = |kind: &str, text: &str| ["t", "check", kind, text].map(|s| Some(s.into())).to_vec();
        assert_eq!(complaint_of(row("status", "OK")), None);
        assert_eq!(complaint_of(row("Note", "an index is disabled")), None);
        assert_eq!(complaint_of(row("Warning", "no parent")), Some("no parent".to_string()));
        assert_eq!(complaint_of(row("status", "Operation failed")), Some("Operation failed".to_string()));
        assert_eq!(complaint_of(vec![]), None);
    }
}
