//! A set of key ranges of many owners that answers "whose ranges meet this one?" in O(log n + answers).
//!
//! A treap ordered by where ranges begin; each node knows the farthest end below it, so that a search leaves out what
//! ends too early.

use std::cmp::Ordering;
use std::ops::{Bound, ControlFlow};
use std::sync::Arc;

use crate::TxnId;

/// A place between keys: before or after one, or beyond all.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Cut<K = Arc<[u8]>> {
    /// Before all keys.
    Lowest,
    /// At a key; `true`: after it.
    At(K, bool),
    /// After all keys.
    Highest,
}

impl Cut {
    fn borrow(&self) -> Cut<&[u8]> {
        match self {
            Cut::Lowest => Cut::Lowest,
            Cut::At(key, after) => Cut::At(key, *after),
            Cut::Highest => Cut::Highest,
        }
    }
}

/// An end of a range of keys.
pub type KeyBound = Bound<Arc<[u8]>>;

/// The keys between two places.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Span {
    pub from: Cut,
    pub to: Cut,
}

impl Span {
    /// The keys within bounds; a key that both name is kept once.
    pub(super) fn new(from: Bound<&[u8]>, to: Bound<&[u8]>) -> Span {
        let first: Cut = match from {
            Bound::Included(key) => Cut::At(Arc::from(key), false),
            Bound::Excluded(key) => Cut::At(Arc::from(key), true),
            Bound::Unbounded => Cut::Lowest,
        };
        let own = |key: &[u8]| match &first {
            Cut::At(same, _) if **same == *key => same.clone(),
            _ => Arc::from(key),
        };
        let last: Cut = match to {
            Bound::Included(key) => Cut::At(own(key), true),
            Bound::Excluded(key) => Cut::At(own(key), false),
            Bound::Unbounded => Cut::Highest,
        };
        Span { from: first, to: last }
    }

    /// What [`Span::new`] was given.
    pub(super) fn bounds(&self) -> (KeyBound, KeyBound) {
        let from = match &self.from {
            Cut::At(key, false) => Bound::Included(key.clone()),
            Cut::At(key, true) => Bound::Excluded(key.clone()),
            Cut::Lowest | Cut::Highest => Bound::Unbounded,
        };
        let to = match &self.to {
            Cut::At(key, true) => Bound::Included(key.clone()),
            Cut::At(key, false) => Bound::Excluded(key.clone()),
            Cut::Lowest | Cut::Highest => Bound::Unbounded,
        };
        (from, to)
    }

    /// Whether no key lies in it.
    pub(super) fn is_empty(&self) -> bool {
        self.from >= self.to
    }

    /// It, without owning its keys.
    pub(super) fn borrow(&self) -> SpanRef<'_> {
        SpanRef { from: self.from.borrow(), to: self.to.borrow() }
    }

    /// Bytes of its keys; one that both ends name is one.
    pub(super) fn key_bytes(&self) -> usize {
        // Two counts and the alignment beside the key.
        let bytes = |key: &Arc<[u8]>| key.len() + 24;
        match (&self.from, &self.to) {
            (Cut::At(a, _), Cut::At(b, _)) if Arc::ptr_eq(a, b) => bytes(a),
            (from, to) => {
                [from, to].iter().map(|cut| if let Cut::At(key, _) = cut { bytes(key) } else { 0 }).sum()
            }
        }
    }

    /// Whether a key lies in both.
    pub(super) fn meets(&self, other: &Span) -> bool {
        self.from < other.to && other.from < self.to
    }
}

/// A [`Span`] that points to its keys.
#[derive(Debug, Clone, Copy)]
pub(super) struct SpanRef<'a> {
    pub from: Cut<&'a [u8]>,
    pub to: Cut<&'a [u8]>,
}

impl<'a> SpanRef<'a> {
    /// The keys from `first` to `last`.
    pub(super) fn keys(first: &'a [u8], last: &'a [u8]) -> SpanRef<'a> {
        SpanRef { from: Cut::At(first, false), to: Cut::At(last, true) }
    }
}

struct Node {
    span: Span,
    owner: TxnId,
    priority: u64,
    /// The farthest end of the node and all below it.
    far: Cut,
    left: Link,
    right: Link,
}

type Link = Option<Box<Node>>;

impl Node {
    fn cmp_to(&self, from: &Cut, owner: TxnId) -> Ordering {
        self.span.from.cmp(from).then(self.owner.cmp(&owner))
    }

    fn renew(&mut self) {
        let mut far = &self.span.to;
        for below in [&self.left, &self.right].into_iter().flatten() {
            far = far.max(&below.far);
        }
        self.far = far.clone();
    }
}

/// See the module's documentation. The ranges of one owner are disjoint.
#[derive(Default)]
pub(super) struct IntervalSet {
    root: Link,
    random: u64,
}

impl IntervalSet {
    /// Bytes of a range without its keys.
    pub(super) const ENTRY_BYTES: usize = std::mem::size_of::<Node>();

    pub(super) fn is_empty(&self) -> bool {
        self.root.is_none()
    }

    pub(super) fn insert(&mut self, span: Span, owner: TxnId) {
        // A Weyl sequence, mixed (splitmix64): balance must not depend on the order of the keys.
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut priority = self.random;
        priority = (priority ^ (priority >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        priority = (priority ^ (priority >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        let far = span.to.clone();
        insert(&mut self.root, Box::new(Node { span, owner, priority, far, left: None, right: None }));
    }

    /// Takes out the owner's range that begins at `from`; `false` if there is none.
    pub(super) fn remove(&mut self, from: &Cut, owner: TxnId) -> bool {
        remove(&mut self.root, from, owner)
    }

    /// Calls `visit` with the owner of each range that has a key in `span`.
    pub(super) fn meeting<B>(
        &self,
        span: SpanRef<'_>,
        visit: &mut impl FnMut(TxnId) -> ControlFlow<B>,
    ) -> ControlFlow<B> {
        meeting(&self.root, span, visit)
    }
}

fn insert(link: &mut Link, mut new: Box<Node>) {
    match link {
        Some(node) if node.priority >= new.priority => {
            match node.cmp_to(&new.span.from, new.owner) {
                Ordering::Greater => insert(&mut node.left, new),
                Ordering::Less | Ordering::Equal => insert(&mut node.right, new),
            }
            node.renew();
        }
        _ => {
            (new.left, new.right) = split(link.take(), &new.span.from, new.owner);
            new.renew();
            *link = Some(new);
        }
    }
}

fn remove(link: &mut Link, from: &Cut, owner: TxnId) -> bool {
    let Some(node) = link else { return false };
    let found = match node.cmp_to(from, owner) {
        Ordering::Greater => remove(&mut node.left, from, owner),
        Ordering::Less => remove(&mut node.right, from, owner),
        Ordering::Equal => {
            let (left, right) = (node.left.take(), node.right.take());
            *link = join(left, right);
            return true;
        }
    };
    node.renew();
    found
}

/// What comes before (`from`, `owner`), and the rest.
fn split(link: Link, from: &Cut, owner: TxnId) -> (Link, Link) {
    let Some(mut node) = link else { return (None, None) };
    if node.cmp_to(from, owner) == Ordering::Less {
        let (before, after) = split(node.right.take(), from, owner);
        node.right = before;
        node.renew();
        (Some(node), after)
    } else {
        let (before, after) = split(node.left.take(), from, owner);
        node.left = after;
        node.renew();
        (before, Some(node))
    }
}

/// All of `left` comes before all of `right`.
fn join(left: Link, right: Link) -> Link {
    match (left, right) {
        (None, other) | (other, None) => other,
        (Some(mut left), Some(right)) if left.priority >= right.priority => {
            left.right = join(left.right.take(), Some(right));
            left.renew();
            Some(left)
        }
        (left, Some(mut right)) => {
            right.left = join(left, right.left.take());
            right.renew();
            Some(right)
        }
    }
}

fn meeting<B>(
    link: &Link,
    span: SpanRef<'_>,
    visit: &mut impl FnMut(TxnId) -> ControlFlow<B>,
) -> ControlFlow<B> {
    let Some(node) = link else { return ControlFlow::Continue(()) };
    if node.far.borrow() <= span.from {
        return ControlFlow::Continue(());
    }
    meeting(&node.left, span, visit)?;
    if node.span.from.borrow() >= span.to {
        return ControlFlow::Continue(());
    }
    if span.from < node.span.to.borrow() {
        visit(node.owner)?;
    }
    meeting(&node.right, span, visit)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn owned(n: u8) -> Cut {
        Cut::At(Arc::from([n].as_slice()), false)
    }

    proptest! {
        #[test]
        fn it_finds_what_a_walk_over_all_finds(
            steps in prop::collection::vec((any::<bool>(), 0u64..5, 0u8..200, 1u8..20), 1..300),
        ) {
            let mut set = IntervalSet::default();
            let mut model: Vec<(u64, u8, u8)> = Vec::new();
            for (add, owner, from, length) in steps {
                let to = from + length;
                let known = model.iter().position(|(o, f, _)| (*o, *f) == (owner, from));
                match (add, known) {
                    (true, None) => {
                        set.insert(Span { from: owned(from), to: owned(to) }, owner);
                        model.push((owner, from, to));
                    }
                    (false, Some(at)) => {
                        prop_assert!(set.remove(&owned(from), owner));
                        model.swap_remove(at);
                    }
                    (false, None) => prop_assert!(!set.remove(&owned(from), owner)),
                    (true, Some(_)) => {}
                }
                let mut found = Vec::new();
                let _ = set.meeting(Span { from: owned(from), to: owned(to) }.borrow(), &mut |owner| {
                    found.push(owner);
                    ControlFlow::<()>::Continue(())
                });
                let met = model.iter().filter(|(_, f, t)| *f < to && from < *t);
                let mut expected: Vec<u64> = met.map(|(owner, _, _)| *owner).collect();
                found.sort_unstable();
                expected.sort_unstable();
                prop_assert_eq!(found, expected);
                prop_assert_eq!(set.is_empty(), model.is_empty());
            }
        }
    }
}
