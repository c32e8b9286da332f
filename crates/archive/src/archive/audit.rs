//! Who has changed what: a row in the transaction of the change. Puts have none, as their records say when; what takes
//! something away or protects it has one.

use super::{read_timed_key, timed_key, Archive};
use crate::{Error, Result};
use serde::{Deserialize, Serialize};
use std::sync::atomic::Ordering;
use teak_core::Transaction;

/// What was done.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Entry {
    /// When, in microseconds since 1970.
    #[serde(skip)]
    pub time: i64,
    /// By whom, as [`crate::Options::actor`] had it.
    pub actor: String,
    /// What: `remove`, `update`, `hold`, `release`, `retain`, `collect`, `schema`, `rules`, `view`.
    pub action: String,
    /// To which object, or view.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub object: String,
    /// What else there is to say.
    #[serde(default, skip_serializing_if = "serde_json::Value::is_null")]
    pub details: serde_json::Value,
}

impl Archive {
    /// Writes an entry.
    pub(super) fn note(
        &self,
        txn: &mut Transaction,
        action: &str,
        object: &str,
        details: serde_json::Value,
    ) -> Result<()> {
        let time = self.now();
        let entry =
            Entry { time, actor: self.actor.clone(), action: action.into(), object: object.into(), details };
        let number = self.next_entry.fetch_add(1, Ordering::SeqCst);
        // Of two processes, or with a clock that stands still, one may have had the key.
        let mut key = timed_key(time, &number.to_be_bytes());
        key.extend(self.oids.make(time).0);
        let row = serde_json::to_vec(&entry).map_err(|problem| Error::Inconsistent(problem.to_string()))?;
        txn.insert(&self.trees.audit, key, row)?;
        Ok(())
    }

    /// Tells all entries since a time, in microseconds since 1970, the first first, until `tell` says that it is
    /// enough.
    pub fn audit(&self, since: i64, tell: &mut dyn FnMut(&Entry) -> Result<bool>) -> Result<()> {
        let snapshot = self.engine.snapshot();
        let mut rows = snapshot.range(&self.trees.audit, timed_key(since, &[])..);
        while rows.advance()? {
            let broken = || Error::row("audit", rows.key());
            let (time, _) = read_timed_key(rows.key()).ok_or_else(broken)?;
            let entry: Entry = serde_json::from_slice(rows.value()?).map_err(|_| broken())?;
            if !tell(&Entry { time, ..entry })? {
                break;
            }
        }
        Ok(())
    }
}
