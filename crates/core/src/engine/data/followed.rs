//! Keys of what is written to a tree while somebody follows it: an index that is built beside writers looks at these
//! rows again ([`crate::engine::bulk::online`]).
//!
//! ```text
//! write ──> the transaction's own list ──(full, or before it is published)──> sorter: memory, then the spill file
//!                                                                               └──> a turn of the follower takes it
//! ```
//!
//! Only keys are noted, whatever becomes of the writes: what of them counts is for the follower to find out, by a look
//! at the rows. A turn is a snapshot, and all keys that were written since the one before. Each key is handed over
//! before its transaction is published, so whatever the snapshot sees has its keys in this turn or an earlier one. A
//! key of a transaction that the snapshot does not see comes again with the next turn.
//!
//! Who begins to follow keeps writers out for that moment: nobody has written to the tree and is undecided. From then
//! on each write of each transaction asks whether anybody follows anything, which is one load.

use super::view::FixedView;
use crate::engine::shared::Shared;
use crate::mvcc::{State, TxnStatus};
use crate::numbers::NumberMap;
use crate::sort::Sorter;
use crate::sync::atomic::{AtomicU64, Ordering};
use crate::sync::Mutex;
use crate::types::{Timestamp, TreeId, TxnId};
use crate::{Error, Result};
use std::sync::Arc;

/// A transaction hands its keys over when it has so many bytes of them.
const LIST_BYTES: usize = if cfg!(test) { 64 } else { 64 << 10 };
/// Transactions that are remembered before the decided among them are forgotten.
const LEAST_WRITERS: usize = 1024;

/// The trees that somebody follows.
#[derive(Default)]
pub(crate) struct Followed {
    lists: Mutex<NumberMap<TreeId, Arc<FollowedKeys>>>,
    /// How many there are, and how often that has changed.
    count: AtomicU64,
    changes: AtomicU64,
}

impl Followed {
    /// Whether there are any.
    #[inline]
    pub(in crate::engine) fn any(&self) -> bool {
        // Relaxed, here and below: who begins has kept writers out, and what lets them in again orders this.
        self.count.load(Ordering::Relaxed) > 0
    }

    /// Whether somebody follows this one.
    pub(in crate::engine) fn has(&self, tree: TreeId) -> bool {
        self.any() && self.lists.lock().contains_key(&tree)
    }

    fn list(&self, tree: TreeId) -> Option<Arc<FollowedKeys>> {
        self.lists.lock().get(&tree).cloned()
    }

    /// From now on what is written to the tree is noted, with about `sort_bytes` of memory. `None`: somebody follows it
    /// already.
    pub(in crate::engine) fn begin(
        &self,
        shared: &Shared,
        tree: TreeId,
        sort_bytes: usize,
    ) -> Option<Arc<FollowedKeys>> {
        let mut lists = self.lists.lock();
        if lists.contains_key(&tree) {
            return None;
        }
        let keys = Arc::new(FollowedKeys { sort_bytes, noted: Mutex::new(Noted::new(shared, sort_bytes)) });
        lists.insert(tree, keys.clone());
        self.changed(lists.len());
        Some(keys)
    }

    /// Nobody follows the tree any more.
    pub(in crate::engine) fn end(&self, tree: TreeId) {
        let mut lists = self.lists.lock();
        let ended = lists.remove(&tree);
        self.changed(lists.len());
        drop(lists);
        debug_assert!(ended.is_some(), "nobody follows tree {tree}");
        if let Some(keys) = ended {
            keys.noted.lock().end(Error::Interrupted);
        }
    }

    fn changed(&self, count: usize) {
        // Relaxed: see `any`.
        self.count.store(count as u64, Ordering::Relaxed);
        // Relaxed: likewise.
        self.changes.fetch_add(1, Ordering::Relaxed);
    }
}

/// Keys of one tree that were written since the last turn.
pub(in crate::engine) struct FollowedKeys {
    sort_bytes: usize,
    noted: Mutex<Noted>,
}

struct Noted {
    /// Keys, each with the number of its transaction. The error: some were lost, or nobody wants them any more.
    keys: Result<Sorter>,
    /// Those of these transactions that may be undecided.
    writers: NumberMap<TxnId, Arc<TxnStatus>>,
    /// Their number when they are looked through again.
    most_writers: usize,
}

impl Noted {
    fn new(shared: &Shared, sort_bytes: usize) -> Noted {
        let keys = Ok(shared.sorter(sort_bytes, shared.background));
        Noted { keys, writers: NumberMap::default(), most_writers: LEAST_WRITERS }
    }

    fn add(&mut self, key: &[u8], writer: TxnId) {
        let Ok(keys) = &mut self.keys else { return };
        if let Err(error) = keys.push(key, &writer.to_le_bytes()) {
            // Not the writer's trouble: the follower is told.
            self.end(error);
        }
    }

    fn end(&mut self, why: Error) {
        self.keys = Err(why);
        self.writers.clear();
    }

    /// Forgets transactions that every snapshot sees from now on.
    fn forget_decided(&mut self, last_committed: Timestamp) {
        self.writers.retain(|_, status| !is_seen(status, last_committed));
        self.most_writers = LEAST_WRITERS.max(2 * self.writers.len());
    }
}

/// Whether nothing of the transaction is to come behind a snapshot of `timestamp`.
fn is_seen(status: &TxnStatus, timestamp: Timestamp) -> bool {
    match status.state() {
        State::Active => false,
        State::Committed(at) => at <= timestamp,
        State::Aborted => true,
    }
}

/// What a follower gets at a time.
pub(in crate::engine) struct Turn {
    /// As of now.
    pub view: FixedView,
    /// What was written since the last turn, and may be seen by the view.
    pub keys: Sorter,
    /// Transactions whose keys come again.
    pub again: NumberMap<TxnId, Arc<TxnStatus>>,
}

impl FollowedKeys {
    /// The keys since the last turn. `label`: see [`crate::engine::Engine::snapshots`]. An error if some were lost.
    pub(in crate::engine) fn turn(&self, shared: &Arc<Shared>, label: u64) -> Result<Turn> {
        let mut noted = self.noted.lock();
        // With the latch: who comes after this is published after it.
        let view = FixedView::new(shared, label);
        let next = noted
            .keys
            .as_ref()
            .map(|_| shared.sorter(self.sort_bytes, shared.background))
            .map_err(Clone::clone)?;
        let keys = std::mem::replace(&mut noted.keys, Ok(next))?;
        noted.forget_decided(view.timestamp());
        Ok(Turn { view, keys, again: noted.writers.clone() })
    }

    /// Keys since the last turn, each as often as it was written.
    pub(in crate::engine) fn noted(&self) -> u64 {
        self.noted.lock().keys.as_ref().map_or(0, Sorter::entries)
    }

    /// A key that comes again with the next turn, of a transaction that the turn has named.
    pub(in crate::engine) fn put_back(&self, key: &[u8], writer: TxnId) {
        self.noted.lock().add(key, writer);
    }

    /// Takes the keys of a list.
    fn take(&self, shared: &Shared, status: &Arc<TxnStatus>, keys: &[u8]) {
        debug_assert_eq!(status.state(), State::Active, "a turn may be without these keys");
        let mut noted = self.noted.lock();
        if noted.writers.len() >= noted.most_writers {
            noted.forget_decided(shared.clock.last_committed());
        }
        if noted.keys.is_ok() {
            noted.writers.insert(status.id(), status.clone());
        }
        let mut rest = keys;
        while let Some((length, behind)) = rest.split_first_chunk::<2>() {
            let (key, others) = behind.split_at(usize::from(u16::from_le_bytes(*length)));
            noted.add(key, status.id());
            rest = others;
        }
        debug_assert!(rest.is_empty(), "a part of a key is left");
    }
}

/// Keys that one transaction has written to one tree and not handed over.
#[derive(Default)]
pub(in crate::engine) struct NotedKeys {
    /// Who follows the tree, as of so many changes.
    list: Option<Arc<FollowedKeys>>,
    changes: u64,
    /// Each behind its length, two bytes, little-endian.
    keys: Vec<u8>,
}

impl NotedKeys {
    /// A write, if somebody follows the tree.
    pub(in crate::engine) fn note(
        &mut self,
        shared: &Shared,
        tree: TreeId,
        key: &[u8],
        status: &Arc<TxnStatus>,
    ) {
        // Relaxed: see `Followed::any`.
        let changes = shared.data.followed.changes.load(Ordering::Relaxed);
        if changes != self.changes {
            self.hand_over(shared, status);
            (self.list, self.changes) = (shared.data.followed.list(tree), changes);
        }
        if self.list.is_none() {
            return;
        }
        // A tree takes no keys that do not fit.
        debug_assert!(u16::try_from(key.len()).is_ok(), "another key is noted");
        let length = u16::try_from(key.len()).unwrap_or(u16::MAX);
        self.keys.extend_from_slice(&length.to_le_bytes());
        self.keys.extend_from_slice(&key[..usize::from(length)]);
        if self.keys.len() >= LIST_BYTES {
            self.hand_over(shared, status);
        }
    }

    /// Before the transaction is published.
    pub(in crate::engine) fn hand_over(&mut self, shared: &Shared, status: &Arc<TxnStatus>) {
        if let Some(list) = self.list.as_ref().filter(|_| !self.keys.is_empty()) {
            list.take(shared, status, &self.keys);
        }
        self.keys.clear();
    }
}
