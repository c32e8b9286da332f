//! The trees that the log writes to.

use super::ids::IdMap;
use super::Resolve;
use crate::catalog::{Contained, Counted, CATALOG_TREE};
use crate::sync::{Mutex, RwLock};
use crate::tree::Tree;
use crate::types::TreeId;
use crate::Result;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::Arc;

/// A tree that the log writes to.
pub(super) struct Target {
    /// `None`: gone, or not to be opened.
    pub tree: Option<Arc<Tree>>,
    /// What its image contains, if that differs from the others.
    pub apart: Option<Counted>,
    /// What the log adds to its rows.
    rows: AtomicI64,
}

impl Target {
    /// Adds to the number of rows.
    pub fn add_rows(&self, rows: i64) {
        self.rows.fetch_add(rows, Ordering::Relaxed); // Relaxed: read when all threads have ended
    }
}

/// All of them. Threads share it; each keeps what it needs often.
pub(super) struct Targets<'a> {
    resolve: &'a Resolve<'a>,
    counted: &'a Contained,
    known: RwLock<IdMap<Arc<Target>>>,
    /// Held while one is opened. Before `known`, which is not held meanwhile.
    opening: Mutex<()>,
}

impl<'a> Targets<'a> {
    /// Opens them by `resolve`, one at a time.
    pub fn new(resolve: &'a Resolve<'a>, counted: &'a Contained) -> Targets<'a> {
        Targets { resolve, counted, known: RwLock::default(), opening: Mutex::default() }
    }

    /// The target with this id, opened if need be.
    pub fn get(&self, id: TreeId) -> Result<Arc<Target>> {
        if let Some(target) = self.known(id) {
            return Ok(target);
        }
        let _opening = self.opening.lock();
        if let Some(target) = self.known(id) {
            return Ok(target);
        }
        // Catalog rows were applied before: opening the tables depends on them.
        let tree = if id == CATALOG_TREE { None } else { (self.resolve)(id)? };
        // Large values that have to leave memory go to its file.
        tree.iter().for_each(|tree| tree.space().begin_replay());
        let apart = tree.as_ref().and_then(|tree| self.counted.apart.get(&tree.space().id()).cloned());
        let target = Arc::new(Target { tree, apart, rows: AtomicI64::new(0) });
        self.known.write().insert(id, target.clone());
        Ok(target)
    }

    fn known(&self, id: TreeId) -> Option<Arc<Target>> {
        self.known.read().get(&id).cloned()
    }

    /// The tree of a target that is known.
    pub fn tree(&self, id: TreeId) -> Option<Arc<Tree>> {
        self.known.read().get(&id)?.tree.clone()
    }

    /// All is replayed: the trees, with their rows counted.
    pub fn finish(self) -> Vec<Arc<Tree>> {
        let mut trees = Vec::new();
        for target in self.known.into_inner().into_values() {
            if let Some(tree) = &target.tree {
                tree.space().end_replay();
                tree.add_entries(target.rows.load(Ordering::Relaxed)); // Relaxed: all threads have ended
                trees.push(tree.clone());
            }
        }
        trees
    }
}
