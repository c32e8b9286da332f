//! Which table of which source a table of the target is: none is two of them.

use crate::failure::Failure;
use crate::part::PartOf;
use crate::routes::Name;
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use teak_console::Status;

/// A table of a source.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Owner {
    source: String,
    table: Name,
    /// What tells its rows from those of others; None: nothing does.
    part: Option<PartOf>,
}

/// Tables of the target, with those that they are, of one run of the program.
#[derive(Debug, Default)]
pub struct Claims(Mutex<BTreeMap<Name, Vec<Owner>>>);

impl Claims {
    /// A table of a source is one of the target's, by its names there; an error if another one is, from which a column
    /// does not tell it.
    pub fn claim(
        &self,
        source: &str,
        there: &Name,
        here: &Name,
        part: Option<&PartOf>,
    ) -> Result<(), Failure> {
        let mut owners = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let owners = owners.entry(here.clone()).or_default();
        let owner = Owner { source: source.into(), table: there.clone(), part: part.cloned() };
        no_other(owners, &owner, here)?;
        if !owners.contains(&owner) {
            owners.push(owner);
        }
        Ok(())
    }

    /// The same of a whole table, and it is not claimed, as it may be about to go.
    pub fn is_free(&self, source: &str, there: &Name, here: &Name) -> Result<(), Failure> {
        let owners = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let owner = Owner { source: source.into(), table: there.clone(), part: None };
        owners.get(here).map_or(Ok(()), |owners| no_other(owners, &owner, here))
    }

    /// Another source that has tables in a database of the target.
    pub fn other_in(&self, source: &str, database: &str) -> Option<String> {
        let owners = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let inside = owners.iter().filter(|((one, _), _)| one == database);
        let mut owners = inside.flat_map(|(_, owners)| owners);
        owners.find(|owner| owner.source != source).map(|owner| owner.source.clone())
    }
}

fn no_other(owners: &[Owner], new: &Owner, here: &Name) -> Result<(), Failure> {
    let is_apart = |owner: &Owner| PartOf::are_apart(owner.part.as_ref(), new.part.as_ref());
    let Some(owner) = owners.iter().find(|owner| *owner != new && !is_apart(owner)) else { return Ok(()) };
    let shown = |(database, table): &Name| format!("`{database}`.`{table}`");
    let why = match owner.source == new.source {
        true => format!("is the source's {} and its {}", shown(&owner.table), shown(&new.table)),
        false => format!("is a table of the source {} as well", owner.source),
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
            assert_eq!(claims.claim(source, &there, &here, None).is_ok(), is_taken, "{source} {here:?}");
        }
        assert_eq!(claims.other_in("a", "d"), Some("b".into()));
        assert_eq!(claims.other_in("a", "e"), None);
    }

    #[test]
    fn tables_are_one_if_a_column_tells_them_apart() {
        let claims = Claims::default();
        let name = |table: &str| ("d".to_string(), table.to_string());
        let here = name("all");
        for (source, value, is_taken) in [
            ("a", Some("1"), true),
            ("b", Some("2"), true),
            ("c", Some("1"), false),
            ("c", None, false),
            ("b", Some("2"), true),
        ] {
            let part = value.map(|value| PartOf { column: "x".into(), value: value.into() });
            let claimed = claims.claim(source, &name("t"), &here, part.as_ref());
            assert_eq!(claimed.is_ok(), is_taken, "{source} {value:?}");
        }
        assert!(claims.is_free("a", &name("t"), &here).is_err());
    }
}
