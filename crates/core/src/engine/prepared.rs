//! Prepared transactions that no handle owns: recovered from the log, or left behind by a session that went away; and those who change a table
//! that one of them has written to.

use super::shared::Shared;
use super::work::Work;
use crate::catalog::TableRecord;
use crate::types::{TreeId, WaitRequest};
use crate::{Error, Result};
use std::collections::{BTreeMap, BTreeSet};

/// The identifiers of all prepared transactions, and those transactions that wait for their coordinator here.
#[derive(Default)]
pub(crate) struct Prepared {
    waiting: BTreeMap<Vec<u8>, Box<Work>>,
    /// Of transactions with a handle.
    owned: BTreeSet<Vec<u8>>,
}

impl Prepared {
    /// A transaction is about to be prepared.
    pub(super) fn claim(&mut self, xid: &[u8]) -> Result<()> {
        if self.waiting.contains_key(xid) || !self.owned.insert(xid.to_vec()) {
            return Err(Error::Xid("a prepared transaction with this identifier exists"));
        }
        Ok(())
    }

    /// It is decided.
    pub(super) fn forget(&mut self, xid: &[u8]) {
        self.owned.remove(xid);
    }

    /// Its handle goes.
    pub(super) fn leave(&mut self, work: Box<Work>) {
        if let Some(xid) = work.xid.clone() {
            self.owned.remove(&xid);
            self.waiting.insert(xid, work);
        }
    }

    fn take(&mut self, xid: &[u8]) -> Result<Box<Work>> {
        self.waiting.remove(xid).ok_or(Error::Xid("no prepared transaction with this identifier waits"))
    }

    /// Those that wait, sorted.
    pub(super) fn xids(&self) -> Vec<Vec<u8>> {
        self.waiting.keys().cloned().collect()
    }

    /// How many wait.
    pub(super) fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// Takes all out of memory, undecided: the log has them.
    pub(super) fn abandon(&mut self) -> impl Sized {
        self.owned.clear();
        std::mem::take(&mut self.waiting)
    }
}

impl Shared {
    /// [`Error::Undecided`] if a prepared transaction has written to the table.
    pub(super) fn check_decided(&self, table: &TableRecord) -> Result<()> {
        self.intents.check(&trees_of(table))
    }

    pub(super) fn wait_for_prepared(
        &self,
        name: &str,
        wait: &WaitRequest<'_>,
        told: &dyn Fn(&[u8]),
    ) -> Result<()> {
        match self.system.table(name)? {
            Some(table) => self.intents.wait(&trees_of(&table), wait, told),
            None => Ok(()),
        }
    }

    pub(super) fn commit_prepared(&self, xid: &[u8]) -> Result<()> {
        self.health.check()?;
        let work = self.prepared.lock().take(xid)?;
        match work.commit(self, self.settings.commit_flush()) {
            Ok(()) => Ok(()),
            Err((error, undecided)) => {
                if let Some(work) = undecided {
                    self.prepared.lock().leave(work);
                }
                Err(error)
            }
        }
    }

    pub(super) fn rollback_prepared(&self, xid: &[u8]) -> Result<()> {
        self.health.check()?;
        let work = self.prepared.lock().take(xid)?;
        work.rollback(self, self.settings.commit_flush()).map_err(|(error, work)| {
            self.prepared.lock().leave(work);
            error
        })
    }
}

fn trees_of(table: &TableRecord) -> Vec<TreeId> {
    table.trees.iter().map(|(tree, _)| *tree).collect()
}
