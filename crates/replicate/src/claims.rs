//! Which table of which source a table of the target is: none is two of them.

use crate::failure::Failure;
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use teak_console::Status;

/// A table, by its database and its own name.
type Name = (String, String);

/// Tables of the target, with source and table that they are of, of one run of the program.
#[derive(Debug, Default)]
pub struct Claims(Mutex<BTreeMap<Name, (String, Name)>>);

impl Claims {
    /// A table of a source is one of the target's, by its names there; an error if another one is.
    pub fn claim(&self, source: &str, there: &Name, here: &Name) -> Result<(), Failure> {
        let mut owners = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let owner = owners.entry(here.clone()).or_insert_with(|| (source.into(), there.clone()));
        no_other(owner, source, there, here)
    }

    /// The same, and it is not claimed, as it may be about to go.
    pub fn is_free(&self, source: &str, there: &Name, here: &Name) -> Result<(), Failure> {
        let owners = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        owners.get(here).map_or(Ok(()), |owner| no_other(owner, source, there, here))
    }

    /// Another source that has tables in a database of the target.
    pub fn other_in(&self, source: &str, database: &str) -> Option<String> {
        let owners = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut inside = owners.iter().filter(|((one, _), _)| one == database);
        inside.find(|(_, (owner, _))| owner != source).map(|(_, (owner, _))| owner.clone())
    }
}

fn no_other((owner, table): &(String, Name), source: &str, there: &Name, here: &Name) -> Result<(), Failure> {
    let shown = |(database, table): &Name| format!("`{database}`.`{table}`");
    let why = match (owner == source, table == there) {
        (true, true) => return Ok(()),
        (true, false) => format!("is the source's {} and its {}", shown(table), shown(there)),
        (false, _) => format!("is a table of the source {owner} as well"),
    };
    Err(Failure::Final(format!("{} of the target {why}", shown(here)), Status::Usage))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_is_one_of_one_source() {
        let claims = Claims::default();
        let name = |table: &str| ("d".to_string(), table.to_string());
        for (source, there, here, is_taken) in [
            ("a", "t", "t", true),
            ("a", "t", "t", true),
            ("b", "u", "u", true),
            ("b", "t", "t", false),
            ("a", "u", "u", false),
            ("a", "v", "t", false),
            ("a", "v", "v", true),
        ] {
            let (there, here) = (name(there), name(here));
            assert_eq!(claims.is_free(source, &there, &here).is_ok(), is_taken, "{source} {here:?}");
            assert_eq!(claims.claim(source, &there, &here).is_ok(), is_taken, "{source} {here:?}");
        }
        assert_eq!(claims.other_in("a", "d"), Some("b".into()));
        assert_eq!(claims.other_in("a", "e"), None);
    }
}
