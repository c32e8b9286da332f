//! Transactions that are prepared, and decided by their session or by others.

use super::{Session, Step};
use crate::seeds::tell;

impl Session<'_> {
    pub(super) fn prepare(&mut self, chosen: usize) -> Step {
        let mut open = self.open.swap_remove(chosen);
        self.ended_met_full_disk = open.met_full_disk;
        if open.changes.is_empty() {
            return Step::Done;
        }
        tell(open.number, || "prepare".into());
        let xid = self.random.next().to_be_bytes().to_vec();
        let before = self.expected.current.clone();
        let mut prepared = before.clone();
        prepared.prepared.insert(xid.clone(), open.changes.clone());
        let committed = self.with(&open);
        if let Err(error) = open.txn.prepare(&xid) {
            open.txn.rollback();
            self.expected.undecided(prepared);
            return Step::Failed(error);
        }
        self.expected.acknowledged(prepared, self.flush);
        let decision = self.random.below(5);
        tell(open.number, || ["commit", "commit", "commit", "rollback", "stays"][decision].into());
        match decision {
            // As with a binlog, which would bring the decision after a restart.
            0 | 1 => {
                open.txn.commit_ordered();
                self.expected.promised_nothing(committed);
                attempt!(open.txn.commit());
            }
            2 => {
                if let Err(error) = open.txn.commit() {
                    self.expected.undecided(committed);
                    return Step::Failed(error);
                }
                self.expected.acknowledged(committed, self.flush);
            }
            3 => {
                if let Err(error) = open.txn.try_rollback() {
                    self.expected.undecided(before);
                    return Step::Failed(error);
                }
                self.expected.acknowledged(before, self.flush);
            }
            _ => {}
        }
        Step::Done
    }

    pub(super) fn decide_prepared(&mut self) -> Step {
        let xids = self.engine.prepared();
        if xids.is_empty() {
            return Step::Done;
        }
        let xid = &xids[self.random.below(xids.len())];
        let mut next = self.expected.current.clone();
        let changes = next.prepared.remove(xid).expect("the engine knows no other");
        let commit = self.random.percent(60);
        tell(0, || format!("{} one that was prepared", if commit { "commit" } else { "roll back" }));
        let decided = if commit {
            next.apply(&changes);
            self.engine.commit_prepared(xid)
        } else {
            self.engine.rollback_prepared(xid)
        };
        match decided {
            Ok(()) => self.expected.acknowledged(next, self.flush),
            Err(error) => {
                self.expected.undecided(next);
                return Step::Failed(error);
            }
        }
        Step::Done
    }
}
