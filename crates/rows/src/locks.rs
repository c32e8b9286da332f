//! The locks that sessions hold: for information_schema.TEAK_LOCKS.
//!
//! Ranges and runs of consecutive keys are listed one by one, as are rows that somebody waits for. Of all other rows
//! the core has a hash, and no key: they are counted by transaction.

use std::collections::{HashMap, HashSet};
use std::ops::ControlFlow;

use teak_core::server::{HeldLock, LockKind, LockWait, Sought, TreeName};
use teak_core::{TreeId, TxnId};

use crate::engine::EngineHandle;
use crate::transactions::{open_transactions, OpenTransaction};

/// What somebody has locked.
#[derive(Debug, Clone)]
pub enum Locked {
    /// Keys of a tree; of a row it is one key.
    Keys {
        /// Where; `None`: its table is not open any more.
        name: Option<TreeName>,
        /// Which.
        keys: Sought,
        /// `None`: a row.
        kind: Option<LockKind>,
    },
    /// So many rows that nobody waits for.
    Rows(u64),
}

/// A lock, and whose it is.
pub struct ShownLock<'a> {
    /// The transaction.
    pub txn: TxnId,
    /// What is known of it; `None`: it has begun meanwhile.
    pub open: Option<&'a OpenTransaction>,
    /// What it has locked.
    pub locked: Locked,
}

/// Calls `visit` with all of them, until it says that it is enough.
pub fn held_locks(engine: &EngineHandle, visit: &mut dyn FnMut(ShownLock<'_>) -> ControlFlow<()>) {
    let open = open_transactions(engine);
    let by_txn: HashMap<TxnId, &OpenTransaction> = open.iter().map(|open| (open.txn, open)).collect();
    let waits = engine.core.lock_waits();
    let mut trees = engine.core.locked_trees();
    trees.extend(waits.iter().map(|wait| wait.sought.tree));
    let names = engine.core.tree_names(&trees);
    let _ = list(engine, &open, &waits, &names, &mut |txn, locked| {
        visit(ShownLock { txn, open: by_txn.get(&txn).copied(), locked })
    });
}

fn list(
    engine: &EngineHandle,
    open: &[OpenTransaction],
    waits: &[LockWait],
    names: &HashMap<TreeId, TreeName>,
    visit: &mut dyn FnMut(TxnId, Locked) -> ControlFlow<()>,
) -> ControlFlow<()> {
    let mut seen: HashSet<(TxnId, TreeId, &[u8])> = HashSet::new();
    let mut rows: HashMap<TxnId, u64> = HashMap::new();
    for wait in waits.iter().filter(|wait| !wait.sought.is_range) {
        let Some(key) = wait.sought.key() else { continue };
        let (tree, holder) = (wait.sought.tree, wait.holder);
        let Some(mode) = engine.core.row_lock(tree, key, holder) else { continue };
        if seen.insert((holder, tree, key)) {
            *rows.entry(holder).or_default() += 1;
            let (name, keys) = (names.get(&tree).cloned(), Sought { mode, ..(*wait.sought).clone() });
            visit(holder, Locked::Keys { name, keys, kind: None })?;
        }
    }
    engine.core.list_locks(&mut |lock: HeldLock| {
        let (tree, mode) = (lock.tree, lock.mode);
        let is_range = lock.kind == LockKind::Range;
        let keys = Sought { tree, from: lock.from, to: lock.to, mode, is_range };
        visit(lock.txn, Locked::Keys { name: names.get(&tree).cloned(), keys, kind: Some(lock.kind) })
    })?;
    for open in open {
        let others = open.figures.single_locks.saturating_sub(rows.get(&open.txn).copied().unwrap_or(0));
        if others > 0 {
            visit(open.txn, Locked::Rows(others))?;
        }
    }
    ControlFlow::Continue(())
}
