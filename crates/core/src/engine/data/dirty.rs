//! Trees with commits that no checkpoint has captured.
//!
//! A commit enters its trees before it is published. Each tree has a mark that says whether it is in the list, so that
//! of all the commits between two checkpoints only a tree's first one takes the mutex; the others load a line that
//! nobody writes to.

use crate::sync::Mutex;
use crate::tree::Tree;
use crate::types::TreeId;
use std::collections::HashMap;
use std::sync::Arc;

/// A tree is in the list if and only if it has its mark, whenever the mutex is free.
#[derive(Default)]
pub(crate) struct DirtyTrees(Mutex<HashMap<TreeId, Arc<Tree>>>);

impl DirtyTrees {
    /// The next checkpoint must write these. Before the commit is published: whoever finds the mark of a tree that a
    /// capture is just taking is as one who entered it before. The capture has it, and what is published after its T
    /// keeps the tree dirty beyond that checkpoint.
    pub(in crate::engine) fn enter<'a>(&self, trees: impl Iterator<Item = &'a Arc<Tree>>) {
        for tree in trees.filter(|tree| !tree.is_entered()) {
            debug_assert!(tree.is_logged(), "a tree that no checkpoint has");
            let mut list = self.0.lock();
            // Under the mutex: one that is dropped now is removed after this.
            if tree.is_dropped() {
                continue;
            }
            debug_assert_eq!(list.contains_key(&tree.id()), tree.is_entered(), "a mark that says otherwise");
            tree.set_entered(true);
            list.entry(tree.id()).or_insert_with(|| tree.clone());
        }
    }

    /// Takes all of them, for a checkpoint.
    pub(in crate::engine) fn take(&self) -> Vec<Arc<Tree>> {
        let mut list = self.0.lock();
        let taken = std::mem::take(&mut *list);
        taken.into_values().inspect(|tree| unmark(tree)).collect()
    }

    /// No checkpoint is to write these any more. The caller drops the result without holding a mutex.
    pub(in crate::engine) fn remove(&self, trees: impl Iterator<Item = TreeId>) -> Vec<Arc<Tree>> {
        let mut list = self.0.lock();
        let removed = trees.filter_map(|tree| list.remove(&tree));
        removed.inspect(|tree| unmark(tree)).collect()
    }

    /// Those that are in the list now.
    pub(in crate::engine) fn all(&self) -> Vec<Arc<Tree>> {
        self.0.lock().values().cloned().collect()
    }

    pub(in crate::engine) fn any(&self, is_it: impl Fn(&Tree) -> bool) -> bool {
        self.0.lock().values().any(|tree| is_it(tree))
    }

    pub(in crate::engine) fn len(&self) -> usize {
        self.0.lock().len()
    }
}

/// It has left the list, and the mutex is still held.
fn unmark(tree: &Tree) {
    debug_assert!(tree.is_entered(), "a tree of the list without its mark");
    tree.set_entered(false);
}
