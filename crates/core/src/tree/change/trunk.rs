//! A tree in memory: its root, the way from there to leaves, and the lists of leaves that somebody has to look at.

use super::structure::Structure;
use super::vacancy::StructureCount;
use super::waiting::{Attention, Waiting};
use crate::counts::Count;
use crate::mvcc::{SnapshotGuard, TxnStatus};
use crate::options::TreeSpec;
use crate::store::Space;
use crate::sync::{ArcSwap, Held};
use crate::tree::leaf::care::{Care, Marks};
use crate::tree::leaf::node::{InnerView, LeafRef, Node, Pages};
use crate::tree::leaf::shared::TreeShared;
use crate::tree::leaf::watched::Watched;
use crate::tree::leaf::{Latched, LeafView};
use crate::tree::versions::visibility;
use crate::types::TreeId;
use crate::{Error, Result};
use std::sync::{Arc, OnceLock, Weak};

/// The nodes of one tree.
pub struct Trunk {
    pub(in crate::tree) shared: Arc<TreeShared>,
    pub(in crate::tree) root: ArcSwap<Node>,
    /// The structure latch, and what a checkpoint in progress must know of structure changes.
    pub(in crate::tree) structure: Watched<Structure>,
    /// Of the structure.
    pub(in crate::tree) changes: StructureCount,
    pub(super) me: Weak<Trunk>,
    pub(super) attention: Arc<Attention>,
    /// Leaves that wait for something, by what that is.
    pub(super) waiting: Waiting,
    /// For what there are some, as the lists of [`Attention`] have it.
    pub(super) marks: Marks,
    /// Why nobody writes to it any more.
    closed: OnceLock<Error>,
}

impl Trunk {
    pub(in crate::tree) fn new(
        shared: Arc<TreeShared>,
        root: Arc<Node>,
        attention: Arc<Attention>,
    ) -> Arc<Trunk> {
        let trunk = Arc::new_cyclic(|me| Trunk {
            shared,
            root: ArcSwap::new(root),
            structure: Watched::default(),
            changes: StructureCount::default(),
            me: me.clone(),
            attention,
            waiting: Waiting::default(),
            marks: Marks::default(),
            closed: OnceLock::new(),
        });
        let pages: Weak<dyn Pages> = trunk.me.clone();
        debug_assert!(trunk.shared.pages.get().is_none(), "two trees of one file");
        let _ = trunk.shared.pages.set(pages);
        trunk.enter_budget();
        trunk
    }

    /// Its file cannot be read and no image is made of it any more: writes are refused from now on.
    pub(crate) fn close(&self, error: &Error) {
        // The first error stays.
        let _ = self.closed.set(error.clone());
    }

    /// Whether it can be written to.
    #[inline]
    pub(super) fn check_open(&self) -> Result<()> {
        self.closed.get().map_or(Ok(()), |error| Err(error.clone()))
    }

    /// The leaf has something that no image has; or, of a tree that has none, that was not settled.
    #[inline]
    pub(in crate::tree) fn list_dirty(&self, state: &Latched<'_>, node: &Arc<Node>) {
        self.note_latched(state, node, Care::Write);
    }

    /// The tree has something to write besides its leaves.
    pub(in crate::tree) fn note_dirty(&self) {
        self.attention.note(self, Care::Write);
    }

    /// Appends have filled the leaf: it may be written ahead of a checkpoint.
    pub(in crate::tree) fn note_finished(&self, node: &Arc<Node>) {
        if self.is_logged() {
            self.note(node, Care::WriteAhead);
        }
    }

    /// Whether it has no file: no leaf of it ever leaves memory.
    #[inline]
    pub(crate) fn is_in_memory(&self) -> bool {
        self.shared.is_in_memory()
    }

    /// Whether log and checkpoints have what is written to it. Of what they have not, [`Trunk::settle`] takes care.
    #[inline]
    pub(crate) fn is_logged(&self) -> bool {
        self.shared.is_logged()
    }

    /// Identity, never reused.
    pub fn id(&self) -> TreeId {
        self.shared.id
    }

    /// Physical properties.
    pub fn spec(&self) -> TreeSpec {
        TreeSpec { packing: self.shared.encoding.packing(), ..self.shared.spec }
    }

    /// The file it lives in.
    pub(crate) fn space(&self) -> &Arc<Space> {
        &self.shared.space
    }

    /// Number of committed entries, counted at commits; may drift by a crash.
    pub fn entries(&self) -> u64 {
        self.shared.size.entries()
    }

    /// Adjusts the number of entries, by what no transaction did.
    pub(crate) fn add_entries(&self, change: i64) {
        self.shared.size.add_entries(change);
    }

    /// Keys that transactions which are committed have put in since it was opened; who removes one and puts it in again
    /// has put in two.
    pub fn inserts(&self) -> u64 {
        self.shared.size.inserts()
    }

    /// When the last transaction that changed it was committed, in seconds since 1970; 0: none since it was opened.
    pub fn changed_at(&self) -> u64 {
        self.shared.size.changed_at()
    }

    /// A transaction that has changed it is committed: so many entries more, so many put in.
    pub(crate) fn note_commit(&self, entries: i64, inserts: u64, second: u64) {
        let size = &self.shared.size;
        size.add_entries(entries);
        size.add_inserts(inserts);
        size.note_change(second);
    }

    /// Number of leaves.
    pub fn leaves(&self) -> u64 {
        self.shared.size.leaves()
    }

    /// Bytes of its leaves before they were encoded and compressed, each as of when it was last written; large values,
    /// which have extents of their own, and inner pages not included.
    pub fn raw_bytes(&self) -> u64 {
        self.shared.size.raw_bytes()
    }

    /// What the same takes on disk. Both are as of the last checkpoint, and that may be a while ago.
    pub fn disk_bytes(&self) -> u64 {
        self.shared.size.stored_bytes()
    }

    /// How often single keys of it were looked up since it was opened, and how often ranges were read; of each cursor
    /// that there is the last few may be missing, but not the first.
    pub fn uses(&self) -> (u64, u64) {
        self.shared.uses.get()
    }

    /// Pages on the way from the root to a leaf, both included.
    pub fn height(&self) -> u32 {
        match &**self.root.load() {
            Node::Leaf(_) => 1,
            Node::Inner(root) => root.level + 1,
        }
    }

    /// Whether a checkpoint has something to write.
    pub(crate) fn is_dirty(&self) -> bool {
        self.marks.has(Care::Write)
    }

    /// The leaf that is responsible for `key`, or was a moment ago.
    #[inline]
    pub(crate) fn find_leaf(&self, key: &[u8]) -> Result<Arc<Node>> {
        descend(&self.root.load(), &|view| view.child_for(key))
    }

    /// The leaf that holds `key`, and its view that says so.
    pub(in crate::tree) fn leaf_of(&self, key: &[u8]) -> Result<(LeafRef, Held<LeafView>)> {
        loop {
            let moment = self.changes.now();
            let leaf = LeafRef::of(self.find_leaf(key)?);
            let found = leaf.map(|leaf| (leaf.view(), leaf)).filter(|(view, _)| view.holds(key));
            if let Some((view, leaf)) = found {
                return Ok((leaf, view));
            }
            self.check_way(moment)?;
        }
    }

    /// The same, of which is known that it is below `node`.
    #[inline]
    pub(crate) fn find_leaf_below(&self, node: &Arc<Node>, key: &[u8]) -> Result<Arc<Node>> {
        descend(node, &|view| view.child_for(key))
    }

    /// The leaf that is responsible for the keys just before `key`.
    pub(crate) fn find_leaf_before(&self, key: &[u8]) -> Result<Arc<Node>> {
        descend(&self.root.load(), &|view| view.child_before(key))
    }

    /// A descent led to a leaf that is not the right one: an error if the structure has not changed since `moment`,
    /// before it, as the next would lead there again. Who changes it at the moment is let go on first.
    pub(crate) fn check_way(&self, moment: u64) -> Result<()> {
        if !self.changes.is_still(moment) {
            self.changes.let_go_on();
            return Ok(());
        }
        Err(Error::corrupt(
            self.shared.space.path(),
            0,
            format!("tree {}: pages do not fit each other", self.id()),
        ))
    }

    pub(crate) fn last_leaf(&self) -> Result<Arc<Node>> {
        descend(&self.root.load(), &|view| view.len() - 1)
    }

    /// Whether another transaction committed a change of `key` after `snapshot`.
    pub(crate) fn changed_since(
        &self,
        key: &[u8],
        snapshot: &SnapshotGuard,
        own: &TxnStatus,
    ) -> Result<bool> {
        loop {
            let moment = self.changes.now();
            let node = self.find_leaf(key)?;
            let Some(leaf) = node.leaf() else { continue };
            let view = leaf.view();
            if view.holds(key) {
                return changed_in(&node, &view, key, snapshot, own);
            }
            self.check_way(moment)?;
        }
    }
}

/// Whether another transaction committed a change of `key` after `snapshot`, as `view` of the leaf `node` has it.
pub(in crate::tree) fn changed_in(
    node: &Arc<Node>,
    view: &LeafView,
    key: &[u8],
    snapshot: &SnapshotGuard,
    own: &TxnStatus,
) -> Result<bool> {
    let Node::Leaf(leaf) = &**node else { return Ok(false) };
    // It had not given way when the view was got hold of, if it has not now.
    snapshot.fate().check()?;
    let snapshot = snapshot.timestamp();
    let delta = leaf.delta(node, view)?;
    let born = view.birth.as_ref().filter(|birth| birth.committed_after(snapshot, own));
    if born.is_some() && leaf.base(node, view)?.search(key).is_ok() {
        return Ok(true);
    }
    let history = if snapshot < view.horizon { leaf.history(view)? } else { None };
    Ok(visibility::changed_since(view.horizon, &delta, history.as_deref(), key, snapshot, own))
}

#[cfg(test)]
thread_local! {
    /// Ways from a root to a leaf that this thread has gone.
    pub(crate) static DESCENTS: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

fn descend(node: &Arc<Node>, choose: &impl Fn(&InnerView) -> usize) -> Result<Arc<Node>> {
    descend_from(node, 1, choose)
}

/// `pages`: up to this one.
fn descend_from(node: &Arc<Node>, pages: u64, choose: &impl Fn(&InnerView) -> usize) -> Result<Arc<Node>> {
    match &**node {
        Node::Leaf(_) => {
            Count::PagesAccessed.add(pages);
            #[cfg(test)]
            DESCENTS.set(DESCENTS.get() + 1);
            Ok(node.clone())
        }
        Node::Inner(inner) => {
            let view = inner.view()?;
            let Some(view) = view.as_ref() else { return Err(inner.without_content()) };
            descend_from(view.child(choose(view)), pages + 1, choose)
        }
    }
}
