//! Which source has a table of the target: no table is of two of them.

use crate::failure::Failure;
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use teak_console::Status;

/// Tables of the target, and the sources that have them, of one run of the program.
#[derive(Debug, Default)]
pub struct Claims(Mutex<BTreeMap<(String, String), String>>);

impl Claims {
    /// A source has a table, by its names in the target; an error if another one has it.
    pub fn claim(&self, source: &str, database: &str, table: &str) -> Result<(), Failure> {
        let mut owners = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let owner = owners.entry((database.into(), table.into())).or_insert_with(|| source.into());
        match owner == source {
            true => Ok(()),
            false => {
                let why =
                    format!("`{database}`.`{table}` of the target is a table of the source {owner} as well");
                Err(Failure::Final(why, Status::Usage))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_is_of_one_source() {
        let claims = Claims::default();
        for (source, table, is_taken) in
            [("a", "t", true), ("a", "t", true), ("b", "u", true), ("b", "t", false), ("a", "u", false)]
        {
            assert_eq!(claims.claim(source, "d", table).is_ok(), is_taken, "{source} {table}");
        }
    }
}
