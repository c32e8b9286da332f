//! Prepared transactions that no handle owns: recovered from the log, or left behind by a session that went away; and
//! those who change a table that one of them has written to.

use super::work::{Phase, Work};
use crate::catalog::TableRecord;
use crate::engine::shared::{Engine, Shared};
use crate::lock::{Intention, WaitRequest};
use crate::sync::{Mutex, MutexGuard};
use crate::types::{TreeId, TxnId};
use crate::{Error, Result};
use crossbeam_utils::CachePadded;
use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hasher};

/// So many transactions may be prepared and decided without meeting each other.
const SHARDS: usize = 64;

/// The identifiers of all prepared transactions, and those transactions that wait for their coordinator here. By
/// identifier.
#[derive(Default)]
struct Shard {
    waiting: BTreeMap<Vec<u8>, Box<Work>>,
    /// Of transactions with a handle.
    owned: BTreeSet<Vec<u8>>,
}

/// In shards, by what their identifiers hash to.
pub(crate) struct Prepared([CachePadded<Mutex<Shard>>; SHARDS]);

impl Default for Prepared {
    fn default() -> Prepared {
        Prepared(std::array::from_fn(|_| CachePadded::default()))
    }
}

impl Prepared {
    fn shard(&self, xid: &[u8]) -> MutexGuard<'_, Shard> {
        let mut hasher = DefaultHasher::new();
        hasher.write(xid);
        self.0[hasher.finish() as usize % SHARDS].lock()
    }

    /// A transaction is about to be prepared.
    pub(in crate::engine) fn claim(&self, xid: &[u8]) -> Result<()> {
        let mut shard = self.shard(xid);
        if shard.waiting.contains_key(xid) || !shard.owned.insert(xid.to_vec()) {
            return Err(Error::Xid("a prepared transaction with this identifier exists"));
        }
        Ok(())
    }

    /// It is decided.
    pub(in crate::engine) fn forget(&self, xid: &[u8]) {
        self.shard(xid).owned.remove(xid);
    }

    /// Its handle goes.
    pub(in crate::engine) fn leave(&self, mut work: Box<Work>) {
        debug_assert!(work.phase == Phase::Prepared && work.xid.is_some(), "nobody is going to decide this");
        // It reads no more, and may wait for long.
        work.close_snapshot();
        if let Some(xid) = work.xid.clone() {
            let mut shard = self.shard(&xid);
            shard.owned.remove(&xid);
            let other = shard.waiting.insert(xid, work);
            debug_assert!(other.is_none(), "two transactions wait under one identifier");
        }
    }

    fn take(&self, xid: &[u8]) -> Result<Box<Work>> {
        let taken = self.shard(xid).waiting.remove(xid);
        taken.ok_or(Error::Xid("no prepared transaction with this identifier waits"))
    }

    /// Those that wait, sorted.
    pub(in crate::engine) fn xids(&self) -> Vec<Vec<u8>> {
        let mut xids: Vec<Vec<u8>> = self
            .0
            .iter()
            .flat_map(|shard| shard.lock().waiting.keys().cloned().collect::<Vec<_>>())
            .collect();
        xids.sort_unstable();
        xids
    }

    /// What `look` makes of those that wait.
    pub(in crate::engine) fn look<T>(&self, look: impl Fn(&[u8], &Work) -> T) -> Vec<T> {
        let mut seen = Vec::new();
        for shard in &self.0 {
            seen.extend(shard.lock().waiting.iter().map(|(xid, work)| look(xid, work)));
        }
        seen
    }

    /// How many wait.
    pub(in crate::engine) fn waiting(&self) -> usize {
        self.0.iter().map(|shard| shard.lock().waiting.len()).sum()
    }

    /// Takes all out of memory, undecided: the log has them.
    pub(in crate::engine) fn abandon(&self) -> impl Sized {
        let abandon = |shard: &CachePadded<Mutex<Shard>>| std::mem::take(&mut *shard.lock());
        self.0.iter().map(abandon).collect::<Vec<Shard>>()
    }
}

impl Engine {
    /// To be called before anything that changes what the table is made of, or that reads all its rows for that (a
    /// copy, the build of an index): waits until no prepared transaction has written to it; and, if other rows take the
    /// place of its rows, or none, until no other transaction than `own` counts on what it has found in it
    /// ([`counts_on`](crate::engine::Transaction::counts_on)). `told` is given the XID of a prepared one that is waited
    /// for. New writers and looks are to be kept out.
    ///
    /// Errors: when the time is up [`Error::Undecided`](crate::Error::Undecided) because of a prepared one, else
    /// [`Error::LockTimeout`](crate::Error::LockTimeout); [`Error::Interrupted`](crate::Error::Interrupted).
    pub fn wait_for_holders(
        &self,
        name: &str,
        intentions: &[Intention],
        own: TxnId,
        wait: &WaitRequest<'_>,
        told: &dyn Fn(&[u8]),
    ) -> Result<()> {
        match self.shared.find_record(name)? {
            Some(table) => self.shared.undecided.intents.wait(&trees_of(&table), intentions, own, wait, told),
            None => Ok(()),
        }
    }
    /// Identifiers of prepared transactions that no [`Transaction`](crate::engine::Transaction) handle owns, sorted.
    pub fn prepared(&self) -> Vec<Vec<u8>> {
        self.shared.undecided.prepared.xids()
    }

    /// Commits one of [`Engine::prepared`].
    pub fn commit_prepared(&self, xid: &[u8]) -> Result<()> {
        let shared = &*self.shared;
        shared.health.check()?;
        let work = shared.undecided.prepared.take(xid)?;
        work.commit(shared, shared.settings.commit_flush()).map(drop).map_err(|(error, undecided)| {
            if let Some(work) = undecided {
                shared.undecided.prepared.leave(work);
            }
            error
        })
    }

    /// Rolls one of [`Engine::prepared`] back.
    pub fn rollback_prepared(&self, xid: &[u8]) -> Result<()> {
        let shared = &*self.shared;
        shared.health.check()?;
        let work = shared.undecided.prepared.take(xid)?;
        work.rollback(shared, shared.settings.commit_flush()).map(drop).map_err(|(error, work)| {
            shared.undecided.prepared.leave(work);
            error
        })
    }
}

impl Shared {
    /// [`Error::Undecided`] if a prepared transaction has written to the table.
    pub(in crate::engine) fn check_decided(&self, table: &TableRecord) -> Result<()> {
        self.undecided.intents.check(&trees_of(table))
    }
}

fn trees_of(table: &TableRecord) -> Vec<TreeId> {
    table.trees.iter().map(|(tree, _)| *tree).collect()
}
