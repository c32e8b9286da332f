//! Holds and retention: of records and of data. All that removes or changes something asks
//! [`Archive::refuse_protected`] with the row locked, so that no protection comes in between.

use super::Archive;
use crate::rows::Protection;
use crate::{calendar, Error, Name, Result};
use serde_json::json;

/// What is done about a protection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Protecting {
    /// Until this moment, in microseconds since 1970; not before one that it has.
    Retain(i64),
    /// A legal hold with a name, until it is released.
    Hold(String),
    /// Releases it.
    Release(String),
}

/// Of the name of a hold, in bytes.
const MOST_NAME_BYTES: usize = 255;
/// Of one object.
const MOST_HOLDS: usize = 1000;

impl Archive {
    /// Protects a record, or data, or lifts a hold of it. A protected record is neither removed nor changed; of
    /// protected data nothing is removed, nor a record that names it.
    pub fn protect(&self, name: Name, what: &Protecting) -> Result<()> {
        self.transact(|txn| {
            match name {
                Name::Record(oid) => {
                    let mut record = self.lock_record(txn, oid)?;
                    apply(name, what, &mut record.protection)?;
                    txn.put(&self.trees.records, oid.0, record.bytes())?;
                }
                Name::Data(digest) => {
                    let mut content = self.lock_content(txn, digest)?;
                    let data = content.data.as_mut().ok_or(Error::Missing(name))?;
                    apply(name, what, &mut data.protection)?;
                    self.write_content(txn, digest, &content)?;
                }
            }
            let (action, details) = match what {
                Protecting::Retain(until) => {
                    ("retain", json!({ "until": calendar::write_timestamp(*until) }))
                }
                Protecting::Hold(hold) => ("hold", json!({ "hold": hold })),
                Protecting::Release(hold) => ("release", json!({ "hold": hold })),
            };
            self.note(txn, action, &name.to_string(), details)
        })?;
        self.answered()
    }

    pub(super) fn refuse_protected(&self, name: Name, protection: &Protection) -> Result<()> {
        match protection.reason(self.now()) {
            Some(by) => Err(Error::Protected { name, by }),
            None => Ok(()),
        }
    }
}

fn apply(name: Name, what: &Protecting, protection: &mut Protection) -> Result<()> {
    match what {
        Protecting::Retain(until) => match protection.until {
            Some(before) if before > *until => {
                let text = format!(
                    "{name} is retained until {}: that can be made longer, not shorter",
                    calendar::write_timestamp(before)
                );
                return Err(Error::Conflict(text));
            }
            _ => protection.until = Some(*until),
        },
        Protecting::Hold(hold) => {
            check_name(hold)?;
            if protection.holds.len() >= MOST_HOLDS {
                return Err(Error::Conflict(format!(
                    "{name} has {MOST_HOLDS} holds, and there can be no more"
                )));
            }
            if let Err(at) = protection.holds.binary_search(hold) {
                protection.holds.insert(at, hold.clone());
            }
        }
        Protecting::Release(hold) => match protection.holds.binary_search(hold) {
            Ok(at) => drop(protection.holds.remove(at)),
            Err(_) => return Err(Error::Unknown(format!("{name} has no hold '{}'", hold.escape_debug()))),
        },
    }
    Ok(())
}

/// One that comes from elsewhere, in order.
pub(super) fn checked(protection: &Protection) -> Result<Protection> {
    let mut checked = protection.clone();
    checked.holds.sort_unstable();
    checked.holds.dedup();
    checked.holds.iter().try_for_each(|hold| check_name(hold))?;
    match checked.holds.len() > MOST_HOLDS {
        true => Err(Error::Usage(format!("more than {MOST_HOLDS} holds"))),
        false => Ok(checked),
    }
}

fn check_name(hold: &str) -> Result<()> {
    match hold.is_empty() || hold.len() > MOST_NAME_BYTES || hold.chars().any(char::is_control) {
        true => Err(Error::Usage(format!(
            "the name of a hold has 1 to {MOST_NAME_BYTES} bytes, and no control characters"
        ))),
        false => Ok(()),
    }
}
