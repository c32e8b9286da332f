//! Trees that the thread `teak-history` has to look at: those with history, those with leaves whose rows were all
//! deleted, and others. Its looks cost nothing for the others, however many are open.

use super::trunk::Trunk;
use crate::mvcc::{State, TxnStatus};
use crate::sync::atomic::{AtomicBool, Ordering};
use crate::sync::Mutex;
use crate::tree::leaf::node::Node;
use crate::Result;
use std::sync::{Arc, Weak};

/// Leaves that are to be looked at when a transaction has ended, by transaction: who looks for those that are ready
/// pays nothing for the leaves of one that stays open.
#[derive(Default)]
pub(in crate::tree) struct Awaiting(Vec<(Arc<TxnStatus>, Vec<Arc<Node>>)>);

impl Awaiting {
    /// The leaf waits for this transaction.
    pub(super) fn put(&mut self, status: Arc<TxnStatus>, node: Arc<Node>) {
        match self.0.iter_mut().rev().find(|(of, _)| Arc::ptr_eq(of, &status)) {
            Some((_, nodes)) => nodes.push(node),
            None => self.0.push((status, vec![node])),
        }
    }

    /// Takes the leaves of transactions that have ended.
    pub(super) fn take_decided(&mut self) -> impl Iterator<Item = Arc<Node>> {
        let all = std::mem::take(&mut self.0).into_iter();
        let (open, decided): (Vec<_>, Vec<_>) = all.partition(|(of, _)| of.state() == State::Active);
        self.0 = open;
        decided.into_iter().flat_map(|(_, nodes)| nodes)
    }

    /// All of them.
    pub(super) fn nodes(&self) -> impl Iterator<Item = &Arc<Node>> {
        self.0.iter().flat_map(|(_, nodes)| nodes)
    }
}

/// Trees with one kind of work; some that are gone.
#[derive(Default)]
pub(super) struct Attended(Mutex<Vec<Weak<Trunk>>>);

impl Attended {
    /// The tree, whose mark for this list is `listed`, has got work: what there is to do is noted before.
    pub(super) fn note(&self, tree: &Trunk, listed: &AtomicBool) {
        // The load is for those that find it listed: they do not write to the line.
        if !listed.load(Ordering::SeqCst) && !listed.swap(true, Ordering::SeqCst) {
            self.0.lock().push(tree.me.clone());
        }
    }

    /// Does `work` for each, whatever becomes of the others; the error is the first one. Those that `has_more` then are
    /// looked at again the next time.
    pub(super) fn each(
        &self,
        listed: impl Fn(&Trunk) -> &AtomicBool,
        work: impl Fn(&Trunk) -> Result<()>,
        has_more: impl Fn(&Trunk) -> bool,
    ) -> Result<()> {
        let trees = std::mem::take(&mut *self.0.lock());
        let mut result = Ok(());
        for tree in trees.iter().filter_map(Weak::upgrade) {
            // Before the work: what is noted from here on lists it again.
            listed(&tree).store(false, Ordering::SeqCst);
            result = result.and(work(&tree));
            if has_more(&tree) {
                self.note(&tree, listed(&tree));
            }
        }
        result
    }
}
