//! Trees that the thread `teak-history` has to look at: those with history, those with leaves whose rows were all
//! deleted, and others. Its looks cost nothing for the others, however many are open.

use super::trunk::Trunk;
use crate::sync::atomic::{AtomicBool, Ordering};
use crate::sync::Mutex;
use crate::Result;
use std::sync::Weak;

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
