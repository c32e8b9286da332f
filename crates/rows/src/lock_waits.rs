//! Who waits for whom, with the sessions that they are, and at whom each chain of waits ends: for
//! information_schema.TEAK_LOCK_WAITS and SHOW ENGINE TEAK STATUS.

use crate::engine::{EngineHandle, SessionTag};
use crate::host::Person;
use std::collections::{HashMap, HashSet};
use std::sync::atomic::Ordering;
use std::sync::Arc;
use teak_core::server::LockWait;
use teak_core::TxnId;

/// A transaction that waits for another.
#[derive(Debug, Clone)]
pub struct Waiting {
    /// Who, for whom, and for what.
    pub wait: LockWait,
    /// The waiter's number in the process list; 0 if it is gone.
    pub waiter: u64,
    /// Who works for it.
    pub person: Person,
    /// The holder's; 0: none works on the transaction, which is prepared.
    pub holder: u64,
    /// Who waits for nobody, and whom the holder waits for in the end: itself, if it does not wait.
    pub root: TxnId,
    /// The root's number in the process list, as the holder's.
    pub root_session: u64,
    /// So many transactions wait for the root, or for others who do.
    pub behind_root: u64,
}

/// All waits that have lasted for a while (milliseconds), those of one waiter one behind the other.
pub fn lock_waits(engine: &EngineHandle) -> Vec<Waiting> {
    let waits = engine.core.lock_waits();
    let open = |(number, tag): (u64, Arc<SessionTag>)| (tag.txn.load(Ordering::SeqCst), (number, tag.id));
    let sessions: HashMap<TxnId, (u64, u64)> = match waits.is_empty() {
        true => HashMap::new(),
        false => engine.all_sessions().into_iter().map(open).collect(),
    };
    let session = |txn: TxnId| sessions.get(&txn).map_or(0, |(_, id)| *id);
    let person = |txn: TxnId| sessions.get(&txn).and_then(|(number, _)| engine.person(*number));
    let edges: Vec<(TxnId, TxnId)> = waits.iter().map(|wait| (wait.waiter, wait.holder)).collect();
    let roots = roots(&edges);
    let mut behind: HashMap<TxnId, u64> = HashMap::new();
    for root in roots.values() {
        *behind.entry(*root).or_default() += 1;
    }
    let shown = |wait: LockWait| {
        let root = roots.get(&wait.holder).copied().unwrap_or(wait.holder);
        Waiting {
            waiter: session(wait.waiter),
            person: person(wait.waiter).unwrap_or_default(),
            holder: session(wait.holder),
            root,
            root_session: session(root),
            behind_root: behind.get(&root).copied().unwrap_or(0),
            wait,
        }
    };
    waits.into_iter().map(shown).collect()
}

/// Of each waiter where its chain ends, if it goes by the first of those that it waits for.
fn roots(edges: &[(TxnId, TxnId)]) -> HashMap<TxnId, TxnId> {
    let mut next: HashMap<TxnId, TxnId> = HashMap::new();
    for (waiter, holder) in edges {
        next.entry(*waiter).or_insert(*holder);
    }
    let mut roots: HashMap<TxnId, TxnId> = HashMap::new();
    for waiter in next.keys() {
        let (mut at, mut way) = (*waiter, HashSet::new());
        let root = loop {
            match (roots.get(&at), next.get(&at)) {
                (Some(root), _) => break *root,
                (None, None) => break at,
                // A deadlock that is about to be resolved: whoever closes it stands for all.
                (None, Some(_)) if !way.insert(at) => break at,
                (None, Some(holder)) => at = *holder,
            }
        };
        roots.extend(way.into_iter().map(|txn| (txn, root)));
    }
    roots
}

#[cfg(test)]
mod tests {
    use super::*;

    fn root_of(edges: &[(TxnId, TxnId)], waiter: TxnId) -> Option<TxnId> {
        roots(edges).get(&waiter).copied()
    }

    #[test]
    fn a_chain_ends_at_who_does_not_wait() {
        let edges = [(2, 1), (3, 2), (4, 3), (5, 2), (7, 6)];
        for (waiter, root) in [(2, 1), (3, 1), (4, 1), (5, 1), (7, 6)] {
            assert_eq!(root_of(&edges, waiter), Some(root), "of {waiter}");
        }
        assert_eq!(root_of(&edges, 1), None);
    }

    #[test]
    fn who_waits_for_several_goes_by_the_first() {
        assert_eq!(root_of(&[(9, 1), (9, 5)], 9), Some(1));
    }

    #[test]
    fn a_circle_ends_somewhere_in_it() {
        let edges = [(1, 2), (2, 3), (3, 1), (4, 1)];
        let root = root_of(&edges, 4).unwrap();
        assert!((1..=3).contains(&root));
        assert!((1..=4).all(|waiter| root_of(&edges, waiter).is_some_and(|root| root < 4)));
    }

    #[test]
    fn a_long_chain_is_walked_once() {
        let edges: Vec<(TxnId, TxnId)> = (1..100_000).map(|txn| (txn + 1, txn)).collect();
        let roots = roots(&edges);
        assert!(roots.values().all(|root| *root == 1) && roots.len() == edges.len());
    }
}
