//! Transactions of the model.

use std::ops::Bound;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;
use std::time::Instant;

use super::{ModelShared, Status, Table, Tree, Version};
use crate::lock::{LockOutcome, LockOwner};
use crate::{Error, Isolation, LockMode, Result, Timestamp, TreeId, TxnId, WaitRequest, WriteOp};

/// A point within a transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Savepoint(pub(crate) u32);

/// What is needed to end a transaction; a prepared one outlives its handle as this.
pub(crate) struct Ending {
    shared: Arc<ModelShared>,
    status: Arc<Status>,
    writes: Vec<(TreeId, Vec<u8>)>,
    locks: LockOwner,
    xid: Option<Vec<u8>>,
    done: bool,
}

impl Ending {
    fn finish(&mut self, commit: bool) {
        if std::mem::replace(&mut self.done, true) {
            return;
        }
        let mut state = self.shared.state.lock();
        if commit {
            if !self.writes.is_empty() {
                state.clock += 1;
                self.status.committed.store(state.clock, Ordering::SeqCst);
            }
            state.commits += 1;
        } else {
            for (tree, key) in self.writes.drain(..) {
                if let Some(chain) = state.trees.get_mut(&tree).and_then(|rows| rows.get_mut(&key)) {
                    chain.retain(|v| v.status.id != self.status.id);
                }
            }
            state.rollbacks += 1;
        }
        state.active = state.active.saturating_sub(1);
        state.snapshots.remove(&self.status.id);
        if let Some(xid) = self.xid.take() {
            state.xids.remove(&xid);
        }
        drop(state);
        self.locks.release_all();
    }

    pub(super) fn commit(&mut self) {
        self.finish(true);
    }

    pub(super) fn rollback(&mut self) {
        self.finish(false);
    }
}

/// A transaction; dropped without commit it is rolled back, unless it is prepared: then it stays prepared.
pub struct Transaction {
    ending: Option<Ending>,
    shared: Arc<ModelShared>,
    id: TxnId,
    isolation: Isolation,
    snapshot: Option<Timestamp>,
    sequence: u32,
    weight: u64,
    label: u64,
}

impl Transaction {
    pub(super) fn new(shared: Arc<ModelShared>, id: TxnId, isolation: Isolation) -> Transaction {
        let ending = Ending {
            locks: shared.locks.open(id, 0),
            shared: shared.clone(),
            status: Arc::new(Status { id, committed: AtomicU64::new(0) }),
            writes: Vec::new(),
            xid: None,
            done: false,
        };
        Transaction {
            ending: Some(ending),
            shared,
            id,
            isolation,
            snapshot: None,
            sequence: 0,
            weight: 0,
            label: 0,
        }
    }

    /// Its identifier.
    pub fn id(&self) -> TxnId {
        self.id
    }

    /// Its isolation level.
    pub fn isolation(&self) -> Isolation {
        self.isolation
    }

    /// Changes the level; a snapshot already taken stays.
    pub fn set_isolation(&mut self, isolation: Isolation) {
        self.isolation = isolation;
    }

    /// Takes the snapshot, if there is none, and returns its timestamp.
    pub fn open_snapshot(&mut self) -> Timestamp {
        match self.snapshot {
            Some(timestamp) => timestamp,
            None => {
                let mut state = self.shared.state.lock();
                let timestamp = state.clock;
                state.snapshots.insert(self.id, (timestamp, self.label, Instant::now()));
                self.snapshot = Some(timestamp);
                timestamp
            }
        }
    }

    /// Gives the snapshot back; the next read takes another.
    pub fn close_snapshot(&mut self) {
        if self.snapshot.take().is_some() {
            self.shared.state.lock().snapshots.remove(&self.id);
        }
    }

    /// Names the session in [`super::Engine::snapshots`].
    pub fn set_label(&mut self, session: u64) {
        self.label = session;
        if let Some(entry) = self.shared.state.lock().snapshots.get_mut(&self.id) {
            entry.1 = session;
        }
    }

    fn ending(&mut self) -> Result<&mut Ending> {
        match &mut self.ending {
            Some(ending) if !ending.done => Ok(ending),
            _ => Err(Error::Xid("the transaction has ended")),
        }
    }

    /// Writes; the caller holds the exclusive row lock where one is due. Conflicts with the snapshot are for
    /// [`Transaction::changed_since_snapshot`] to find.
    pub fn write(&mut self, tree: &Arc<Tree>, key: &[u8], op: WriteOp<'_>) -> Result<()> {
        let sequence = self.sequence + 1;
        let ending = self.ending()?;
        if ending.xid.is_some() {
            return Err(Error::Xid("the transaction is prepared"));
        }
        let value = match op {
            WriteOp::Insert(value) | WriteOp::Update(value) => Some(Arc::from(value)),
            WriteOp::Delete => None,
        };
        let mut state = ending.shared.state.lock();
        state.check_writable()?;
        let rows = state.trees.entry(tree.id()).or_default();
        let version = Version { status: ending.status.clone(), sequence, value };
        rows.entry(key.to_vec()).or_default().push(version);
        ending.writes.push((tree.id(), key.to_vec()));
        drop(state);
        self.sequence = sequence;
        self.weight += 1;
        self.tell_weight()
    }

    /// Locks a row.
    pub fn lock(
        &mut self,
        tree: &Arc<Tree>,
        key: &[u8],
        mode: LockMode,
        wait: &WaitRequest<'_>,
    ) -> Result<LockOutcome> {
        self.ending()?.locks.lock(tree.id(), key, mode, wait)
    }

    /// Locks a range of keys.
    pub fn lock_range(
        &mut self,
        tree: &Arc<Tree>,
        from: Bound<&[u8]>,
        to: Bound<&[u8]>,
        mode: LockMode,
        wait: &WaitRequest<'_>,
    ) -> Result<()> {
        self.ending()?.locks.lock_range(tree.id(), from, to, mode, wait)
    }

    /// Waits while another transaction's range lock covers `key`.
    pub fn check_insert(&mut self, tree: &Arc<Tree>, key: &[u8], wait: &WaitRequest<'_>) -> Result<()> {
        self.ending()?.locks.check_insert(tree.id(), key, wait)
    }

    /// Undoes what the last lock of this row did.
    pub fn give_back(&mut self, tree: &Arc<Tree>, key: &[u8], outcome: LockOutcome) {
        if let Ok(ending) = self.ending() {
            ending.locks.give_back(tree.id(), key, outcome);
        }
    }

    /// Whether another transaction committed a version of `key` after this one's snapshot; `false` without one.
    pub fn changed_since_snapshot(&mut self, tree: &Arc<Tree>, key: &[u8]) -> Result<bool> {
        let Some(snapshot) = self.snapshot else { return Ok(false) };
        let state = self.shared.state.lock();
        let chain = state.trees.get(&tree.id()).and_then(|rows| rows.get(key));
        Ok(chain.is_some_and(|c| c.iter().any(|v| v.status.committed.load(Ordering::SeqCst) > snapshot)))
    }

    /// A point to go back to.
    pub fn savepoint(&mut self) -> Savepoint {
        Savepoint(self.sequence)
    }

    /// Undoes the writes since; locks are kept.
    pub fn rollback_to(&mut self, savepoint: Savepoint) -> Result<()> {
        let id = self.id;
        let ending = self.ending()?;
        let mut state = ending.shared.state.lock();
        let mut left = 0;
        ending.writes.retain(|(tree, key)| {
            let Some(chain) = state.trees.get_mut(tree).and_then(|rows| rows.get_mut(key)) else {
                return false;
            };
            chain.retain(|v| v.status.id != id || v.sequence <= savepoint.0);
            let kept = chain.iter().any(|v| v.status.id == id);
            left += u64::from(kept);
            kept
        });
        drop(state);
        self.weight = left;
        self.tell_weight()
    }

    fn tell_weight(&mut self) -> Result<()> {
        let weight = self.weight;
        self.ending()?.locks.set_weight(weight);
        Ok(())
    }

    /// Raises the counter to at least `value`, also if the transaction is rolled back.
    pub fn note_counter(&mut self, table: &Table, value: u64) {
        table.counter_cell().fetch_max(value, Ordering::SeqCst);
    }

    /// Sets the counter, also downwards.
    pub fn set_counter(&mut self, table: &Table, value: u64) {
        table.counter_cell().store(value, Ordering::SeqCst);
    }

    /// Whether it has written anything that is not undone.
    pub fn has_writes(&self) -> bool {
        self.ending.as_ref().is_some_and(|e| !e.writes.is_empty())
    }

    /// First phase of a two-phase commit: from here on only commit or rollback.
    pub fn prepare(&mut self, xid: &[u8]) -> Result<()> {
        let id = self.id;
        let ending = self.ending()?;
        let mut state = ending.shared.state.lock();
        state.check_writable()?;
        if ending.xid.is_some() || state.xids.contains_key(xid) {
            return Err(Error::Xid("already prepared"));
        }
        state.xids.insert(xid.to_vec(), id);
        ending.xid = Some(xid.to_vec());
        Ok(())
    }

    /// Publishes a prepared transaction.
    pub fn commit_ordered(&mut self) {
        if let Ok(ending) = self.ending() {
            ending.commit();
        }
    }

    /// Commits.
    pub fn commit(mut self) -> Result<()> {
        if let Some(ending) = self.ending.as_mut() {
            if ending.xid.is_none() && !ending.writes.is_empty() {
                ending.shared.state.lock().check_writable()?;
            }
            ending.commit();
        }
        Ok(())
    }

    /// Lets a prepared transaction wait for its coordinator (as dropping it does); any other is rolled back.
    pub fn detach(self) {}

    /// Undoes everything.
    pub fn rollback(mut self) {
        if let Some(ending) = self.ending.as_mut() {
            ending.rollback();
        }
    }
}

impl Drop for Transaction {
    fn drop(&mut self) {
        let Some(mut ending) = self.ending.take() else { return };
        match ending.xid.clone() {
            Some(xid) if !ending.done => {
                let shared = self.shared.clone();
                let mut state = shared.state.lock();
                state.snapshots.remove(&self.id);
                state.prepared.insert(xid, ending);
            }
            _ => ending.rollback(),
        }
    }
}
