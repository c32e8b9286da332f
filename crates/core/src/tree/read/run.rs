//! Which way a cursor goes, and what it has read ahead there.
//!
//! A scan that finds one leaf after another out of memory has the following ones read by the engine's threads (see
//! [`crate::tree::leaf::ahead`]) while it delivers: from the third in a row on, first two, then twice as many each
//! time, up to the engine's limit; never past the end of its range, which the caller knows. A cursor that jumps from
//! key to key has none, unless it was told the keys that come: see [`TreeCursor::expect`].

use super::cursor::TreeCursor;
use crate::tree::block::bound::Bound;
use crate::tree::change::trunk::Trunk;
use crate::tree::change::vacancy::{children_towards, Towards};
use crate::tree::leaf::ahead::{list_page, Ticket};
use crate::tree::leaf::node::Node;
use crate::tree::leaf::LeafView;
use std::ops::Bound as End;
use std::sync::{Arc, Weak};

/// A leaf that was not in memory counts so much, one that was takes one off.
const COLD: u32 = 2;
/// So much is a run: the third leaf of a scan.
const RUN: u32 = 3 * COLD;
/// After some leaves that were in memory the next that is not goes on with the run.
const MOST_HEAT: u32 = RUN + 6;

/// What a cursor knows of its way.
#[derive(Default)]
pub(super) struct Run {
    cold: u32,
    way: Option<Towards>,
    /// Leaves that were looked at ahead of the cursor, the last time; how many of these are left.
    window: u32,
    left: u32,
    /// Where those end. None: where the pinned leaf does.
    reach: Option<Bound>,
    /// There is nothing beyond.
    ended: bool,
    due: bool,
    ticket: Option<Arc<Ticket>>,
    /// The inner page that was listed last.
    page: Option<Weak<Node>>,
}

impl Drop for Run {
    fn drop(&mut self) {
        self.stop();
    }
}

impl Run {
    /// The cursor goes elsewhere, or nowhere: what is listed and not begun is not read.
    pub(super) fn stop(&mut self) {
        if let Some(ticket) = self.ticket.take() {
            ticket.cancel();
        }
        (self.cold, self.way, self.window, self.left) = (0, None, 0, 0);
        (self.reach, self.ended, self.due, self.page) = (None, false, false, None);
    }

    /// The cursor was put on a leaf.
    #[inline]
    pub(super) fn jump(&mut self, was_cold: bool) {
        if self.way.is_some() {
            self.stop();
        }
        self.cold = if was_cold { COLD } else { 0 };
    }

    /// The cursor has come to the next leaf.
    pub(super) fn step(&mut self, way: Towards, was_cold: bool, most_blocks: u32) {
        if self.way != Some(way) {
            let cold = if self.way.is_none() { self.cold } else { 0 };
            self.stop();
            (self.way, self.cold) = (Some(way), cold);
        }
        self.left = self.left.saturating_sub(1);
        self.cold = match was_cold {
            true => (self.cold + COLD).min(MOST_HEAT),
            false => self.cold.saturating_sub(1),
        };
        self.due = self.cold >= RUN && !self.ended && self.left <= self.window / 2 && most_blocks > 0;
    }
}

impl TreeCursor {
    /// Whether [`TreeCursor::read_ahead`] is to be called.
    #[inline]
    pub fn wants_ahead(&self) -> bool {
        self.run.due
    }

    /// Has leaves read that the scan will come to if it goes on, up to `end`.
    #[cold]
    pub fn read_ahead(&mut self, end: End<&[u8]>) {
        self.run.due = false;
        let (Some(way), Some(pin)) = (self.run.way, &self.pin) else { return };
        let run = &mut self.run;
        let from = match (&run.reach, way) {
            (Some(reach), _) if run.left > 0 => reach.clone(),
            (_, Towards::Greater) => match &pin.view.high {
                Some(high) => high.clone(),
                None => return,
            },
            (_, Towards::Lesser) => pin.view.low.clone(),
        };
        let most = self.tree.shared.context.ahead.most_blocks();
        run.window = (run.window * 2).clamp(2, most.max(2)).min(most);
        let ticket = run.ticket.get_or_insert_with(Arc::default).clone();
        self.tree.clone().each_ahead(way, &from, &mut |node| match &**node {
            Node::Inner(_) => {
                if run.page.as_ref().is_none_or(|page| page.as_ptr() != Arc::as_ptr(node)) {
                    run.page = Some(Arc::downgrade(node));
                    list_page(node, &self.tree.shared, &ticket);
                }
                false
            }
            Node::Leaf(leaf) => {
                let view = leaf.view();
                if is_beyond(&view, way, end) {
                    run.ended = true;
                    return false;
                }
                if !leaf.list_ahead(node, &ticket) {
                    return false;
                }
                run.left += 1;
                run.reach = match way {
                    Towards::Greater => view.high.clone(),
                    Towards::Lesser => Some(view.low.clone()).filter(|low| !low.is_empty()),
                };
                run.ended = run.reach.is_none();
                !run.ended && run.left < run.window
            }
        });
    }
}

/// Whether the scan ends before the leaf.
fn is_beyond(view: &LeafView, way: Towards, end: End<&[u8]>) -> bool {
    match (way, end, &view.high) {
        (_, End::Unbounded, _) | (Towards::Lesser, _, None) => false,
        (Towards::Greater, End::Included(key), _) => *view.low > *key,
        (Towards::Greater, End::Excluded(key), _) => *view.low >= *key,
        (Towards::Lesser, End::Included(key) | End::Excluded(key), Some(high)) => **high <= *key,
    }
}

impl Trunk {
    /// The leaf that is responsible for `key`, or the first page on the way there that is not in memory.
    pub(super) fn known_node(&self, key: &[u8]) -> Arc<Node> {
        let mut node = self.root.load_full();
        while let Node::Inner(inner) = &*node {
            let Some(view) = inner.loaded() else { break };
            let child = view.child(view.child_for(key)).clone();
            node = child;
        }
        node
    }

    /// Shows `visit` the leaves beyond `bound` as far as the pages above them are in memory, and the first page that is
    /// not, until it has enough (`false`). The structure may change meanwhile: some may be missing, or be gone.
    pub(in crate::tree) fn each_ahead(
        &self,
        way: Towards,
        bound: &[u8],
        visit: &mut dyn FnMut(&Arc<Node>) -> bool,
    ) {
        show(&self.root.load(), way, Some(bound), visit);
    }
}

fn show(
    node: &Arc<Node>,
    way: Towards,
    bound: Option<&[u8]>,
    visit: &mut dyn FnMut(&Arc<Node>) -> bool,
) -> bool {
    let Node::Inner(inner) = &**node else { return visit(node) };
    let Some(view) = inner.loaded() else { return visit(node) };
    let mut children = children_towards(&view, way, bound);
    children.all(|(child, bound)| !child.vacancy().is_occupied() || show(child, way, bound, visit))
}
