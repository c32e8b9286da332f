//! Row locks of consecutive keys as one entry: a *cover* locks all keys of one length between two keys.
//!
//! An owner of many locks makes a cover of a run of keys that follow each other (as numbers of their bytes), and gives
//! back the entries in the table of rows. Keys are ordered by length first, so such a cover is exact: every key in it
//! is locked (*certain*). Where the locks take too much memory, a cover lies over all that the owner has locked in the
//! tree, from the least to the greatest key: then it also locks keys in between.
//!
//! Invariants:
//! - A cover is published before the entries under it are given back, so a request that does not find the entry (which
//!   it looks for under the shard's latch) finds that there are covers. Then it asks here, and holds the covers still
//!   while it queues: what it must wait for becomes an entry of the table of rows again. So waits, queues and deadlocks
//!   are always of rows.
//! - Entries that somebody waits for are not given back, so all holders of a row with a queue are in the table.
//! - A cover that is not certain does not bind what another transaction held before: a holder in the table whose lock
//!   excludes it shows that its owner has not come to that row.

use crate::sync::atomic::{AtomicU64, Ordering};
use std::collections::HashMap;
use std::ops::ControlFlow;
use std::sync::Arc;

use crate::sync::RwLock;
use crossbeam_utils::CachePadded;

use super::account::Account;
use super::granted::Granted;
use super::held::{LockKind, Owners, Spans};
use super::interval::{Cut, Span, SpanRef};
use super::party::Party;
use super::row::Foreign;
use crate::{LockMode, TreeId, TxnId};

const SHARDS: usize = 64;

/// Whether the owner of a cover has locked each key in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Certainty {
    /// Each.
    Certain,
    /// Others may lie between.
    Widened,
}

/// A key after its length: so that they are ordered by length first.
fn by_length(key: &[u8]) -> Vec<u8> {
    let mut ordered = Vec::with_capacity(4 + key.len());
    ordered.extend_from_slice(&(key.len() as u32).to_be_bytes());
    ordered.extend_from_slice(key);
    ordered
}

/// Adds one to a number, the highest byte first; `false` if it was the greatest of its length.
fn increment(number: &mut [u8]) -> bool {
    for byte in number.iter_mut().rev() {
        *byte = byte.wrapping_add(1);
        if *byte != 0 {
            return true;
        }
    }
    false
}

/// Whether `next` is the key after `key` among those of its length.
pub(super) fn follows(key: &[u8], next: &[u8]) -> bool {
    if key.len() != next.len() {
        return false;
    }
    let (Some((a, key)), Some((b, next))) = (key.split_last(), next.split_last()) else { return false };
    match a.checked_add(1) {
        Some(sum) => sum == *b && key == next,
        None => *b == 0 && follows(key, next),
    }
}

/// From a key to another, as [`by_length`] orders them. The end is the next key, so that neighbours touch.
fn span(low: &[u8], high: &[u8]) -> Span {
    let mut end = by_length(high);
    let to = match increment(&mut end[4..]) {
        true => Cut::At(Arc::from(end), false),
        false => Cut::At(Arc::from(by_length(high)), true),
    };
    Span { from: Cut::At(Arc::from(by_length(low)), false), to }
}

/// All keys of `length` bytes from one key on, of any length, and below another.
pub(super) fn span_of_length(length: usize, from: &[u8], below: &[u8]) -> Span {
    let at = |key: &[u8]| {
        let mut ordered = (length as u32).to_be_bytes().to_vec();
        ordered.extend_from_slice(key);
        Cut::At(Arc::from(ordered), false)
    };
    Span { from: at(from), to: at(below) }
}

/// A key of `length` bytes: no key of that length lies between it and `key`.
pub(super) fn fit(key: &[u8], length: usize) -> Vec<u8> {
    let mut fitted = key[..key.len().min(length)].to_vec();
    fitted.resize(length, 0);
    fitted
}

/// The covers of a tree.
#[derive(Default)]
struct Covers {
    /// Certain: shared, exclusive; widened: shared, exclusive.
    sets: [Granted; 4],
    parties: HashMap<TxnId, Arc<Party>>,
}

fn set(mode: LockMode, certainty: Certainty) -> usize {
    usize::from(mode == LockMode::Exclusive) + 2 * usize::from(certainty == Certainty::Widened)
}

impl Covers {
    #[cfg(test)]
    fn len(&self) -> usize {
        self.sets.iter().map(Granted::len).sum()
    }

    fn bytes(&self) -> usize {
        self.sets.iter().map(Granted::bytes).sum()
    }

    /// Owners of a set's covers that meet `span`, but for `txn`; and whether it has one itself.
    fn owners(&self, set: usize, span: SpanRef<'_>, txn: TxnId) -> (bool, Vec<TxnId>) {
        let (mut own, mut others) = (false, Vec::new());
        let _ = self.sets[set].meeting(span, &mut |owner| {
            if owner == txn {
                own = true;
            } else {
                others.push(owner);
            }
            ControlFlow::<()>::Continue(())
        });
        (own, others)
    }
}

/// What covers say of a key that a transaction wants.
#[derive(Default)]
pub(super) struct Findings {
    /// A cover of its own locks the key as strongly as it wants.
    pub held: bool,
    /// Covers that lock the key against it; one of its own that is weaker than what it wants.
    pub foreign: Vec<Foreign>,
}

/// In place of the one owner of all covers of a shard: there are several. No transaction has the number.
const SEVERAL: TxnId = TxnId::MAX;

#[derive(Default)]
struct Shard {
    /// Who has all covers of the shard; 0 if there are none.
    owner: AtomicU64,
    trees: RwLock<HashMap<TreeId, Covers>>,
}

impl Shard {
    /// After a change of `trees`, which are still held.
    fn note_owner(&self, trees: &HashMap<TreeId, Covers>) {
        let mut owners = trees.values().flat_map(|covers| covers.parties.keys().copied());
        let first = owners.next().unwrap_or(0);
        let owner = if owners.all(|owner| owner == first) { first } else { SEVERAL };
        self.owner.store(owner, Ordering::SeqCst);
    }
}

/// All covers.
pub(super) struct CoverTable {
    shards: Box<[CachePadded<Shard>]>,
    account: Arc<Account>,
}

impl CoverTable {
    pub(super) fn new(account: Arc<Account>) -> CoverTable {
        CoverTable { shards: (0..SHARDS).map(|_| CachePadded::default()).collect(), account }
    }

    fn shard(&self, tree: TreeId) -> &Shard {
        &self.shards[tree as usize % SHARDS]
    }

    /// Whether others may have covers over keys of the tree. To be asked under the latch of the row's shard.
    pub(super) fn any_but(&self, tree: TreeId, txn: TxnId) -> bool {
        // SeqCst, as who publishes a cover without a look at the rows stores it and then counts who has entered the
        // tree: one of the two sees the other. Whoever gave an entry of the shard back has published the cover before.
        let owner = self.shard(tree).owner.load(Ordering::SeqCst);
        owner != 0 && owner != txn
    }

    /// Calls `request` with what the covers say of the key; they do not change before it returns.
    pub(super) fn consult<T>(
        &self,
        tree: TreeId,
        key: &[u8],
        mode: LockMode,
        party: &Arc<Party>,
        request: impl FnOnce(Findings) -> T,
    ) -> T {
        let trees = self.shard(tree).trees.read();
        let Some(covers) = trees.get(&tree) else { return request(Findings::default()) };
        let key = by_length(key);
        let (span, txn) = (SpanRef::keys(&key, &key), party.txn());
        let mut findings = Findings::default();
        for of in [LockMode::Exclusive, LockMode::Shared] {
            for certainty in [Certainty::Certain, Certainty::Widened] {
                let conflicts = of.max(mode) == LockMode::Exclusive;
                if !conflicts && certainty == Certainty::Widened {
                    continue;
                }
                let (own, others) = covers.owners(set(of, certainty), span, txn);
                if own && certainty == Certainty::Certain {
                    findings.held |= of >= mode;
                    findings.foreign.push(Foreign { party: party.clone(), mode: of });
                }
                if conflicts {
                    let parties = others.iter().filter_map(|other| covers.parties.get(other));
                    findings.foreign.extend(parties.map(|party| Foreign { party: party.clone(), mode: of }));
                }
            }
        }
        request(findings)
    }

    /// Whether a cover of the owner lies over the key.
    pub(super) fn covers(&self, tree: TreeId, key: &[u8], txn: TxnId) -> bool {
        let trees = self.shard(tree).trees.read();
        let key = by_length(key);
        let own = |covers: &Covers| (0..4).any(|set| covers.owners(set, SpanRef::keys(&key, &key), txn).0);
        trees.get(&tree).is_some_and(own)
    }

    /// Publishes a cover from `low` to `high`. One that is not certain is refused if another owner's is in its way. The
    /// entries of the rows may be given back after that, not before.
    pub(super) fn publish(
        &self,
        tree: TreeId,
        party: &Arc<Party>,
        mode: LockMode,
        (low, high): (&[u8], &[u8]),
        certainty: Certainty,
    ) -> bool {
        let shard = self.shard(tree);
        let span = span(low, high);
        let txn = party.txn();
        let mut trees = shard.trees.write();
        let covers = trees.entry(tree).or_default();
        if certainty == Certainty::Widened {
            let against = |of: LockMode| of.max(mode) == LockMode::Exclusive;
            let excluded = |of: LockMode, certainty| {
                against(of) && !covers.owners(set(of, certainty), span.borrow(), txn).1.is_empty()
            };
            let modes = [LockMode::Shared, LockMode::Exclusive];
            let all = modes.into_iter().flat_map(|of| [(of, Certainty::Certain), (of, Certainty::Widened)]);
            if all.into_iter().any(|(of, certainty)| excluded(of, certainty)) {
                return false;
            }
        }
        let bytes = covers.bytes();
        let known = covers.parties.insert(txn, party.clone()).is_some();
        covers.sets[set(mode, certainty)].hold(txn, span);
        self.account.change(bytes, covers.bytes());
        if !known {
            shard.note_owner(&trees);
        }
        true
    }

    /// Publishes a certain cover if `alone` says, once whoever is about to ask for a row can see that there is one,
    /// that nobody else has locked any row of the tree, nor asked for one. Who asks meanwhile waits for this.
    pub(super) fn publish_if(
        &self,
        tree: TreeId,
        party: &Arc<Party>,
        mode: LockMode,
        span: Span,
        alone: impl Fn() -> bool,
    ) -> bool {
        let shard = self.shard(tree);
        let txn = party.txn();
        let mut trees = shard.trees.write();
        // Relaxed: changed under the latch only.
        let known = shard.owner.load(Ordering::Relaxed);
        if known != txn {
            // From here on whoever asks for a row looks for covers, and waits for the latch.
            shard.owner.store(if known == 0 { txn } else { SEVERAL }, Ordering::SeqCst);
        }
        let alone = !span.is_empty() && alone();
        if alone {
            let covers = trees.entry(tree).or_default();
            let bytes = covers.bytes();
            covers.parties.insert(txn, party.clone());
            covers.sets[set(mode, Certainty::Certain)].hold(txn, span);
            self.account.change(bytes, covers.bytes());
        }
        if known != txn {
            shard.note_owner(&trees);
        }
        alone
    }

    /// Takes all covers of an owner over keys of the tree.
    pub(super) fn release(&self, tree: TreeId, txn: TxnId) {
        let shard = self.shard(tree);
        let mut trees = shard.trees.write();
        let Some(covers) = trees.get_mut(&tree) else { return };
        let bytes = covers.bytes();
        covers.sets.iter_mut().for_each(|set| set.release(txn));
        covers.parties.remove(&txn);
        self.account.change(bytes, covers.bytes());
        if covers.parties.is_empty() {
            trees.remove(&tree);
        }
        shard.note_owner(&trees);
    }

    /// How many covers there are, and over how many trees.
    #[cfg(test)]
    pub(super) fn len(&self) -> (usize, usize) {
        let counted =
            self.shards.iter().flat_map(|s| s.trees.read().values().map(Covers::len).collect::<Vec<_>>());
        (counted.sum(), self.shards.iter().map(|s| s.trees.read().len()).sum())
    }
}

/// As [`set`] numbers them.
impl Spans for CoverTable {
    fn shards(&self) -> usize {
        self.shards.len()
    }

    fn owners(&self, shard: usize) -> Owners {
        let trees = self.shards[shard].trees.read();
        let of_tree = |(tree, covers): (&TreeId, &Covers)| {
            let of_set = |(set, granted): (usize, &Granted)| {
                granted.owners().map(|txn| (*tree, set, txn)).collect::<Vec<_>>()
            };
            covers.sets.iter().enumerate().flat_map(of_set).collect::<Vec<_>>()
        };
        trees.iter().flat_map(of_tree).collect()
    }

    fn spans(&self, (tree, set, txn): (TreeId, usize, TxnId), after: Option<&Cut>) -> Vec<(Cut, Cut)> {
        let trees = self.shard(tree).trees.read();
        trees.get(&tree).map_or_else(Vec::new, |covers| covers.sets[set].some_of(txn, after))
    }

    fn what(&self, set: usize) -> (LockMode, LockKind) {
        let mode = if set % 2 == 1 { LockMode::Exclusive } else { LockMode::Shared };
        (mode, if set < 2 { LockKind::Run } else { LockKind::Widened })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_next_key_is_the_next_number_of_the_same_length() {
        assert!(
            follows(&[0, 1], &[0, 2]) && follows(&[0, 255], &[1, 0]) && follows(&[7, 255, 255], &[8, 0, 0])
        );
        assert!(!follows(&[0, 1], &[0, 3]) && !follows(&[1], &[1, 1]) && !follows(&[0, 2], &[0, 1]));
        assert!(!follows(&[255], &[0]) && !follows(&[], &[]) && !follows(&[0, 255], &[0, 0]));
    }
}
