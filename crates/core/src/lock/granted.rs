//! Granted ranges: whose a key lies in, and each owner's own in order.

use std::collections::{BTreeMap, HashMap};
use std::ops::ControlFlow;

use super::held::some;
use super::interval::{Cut, IntervalSet, Span, SpanRef};
use crate::TxnId;

/// Bytes of a range beside its keys: in the interval set, and in the owner's map, which is two thirds full.
const ENTRY_BYTES: usize = IntervalSet::ENTRY_BYTES + std::mem::size_of::<(Cut, Cut)>() * 3 / 2;

/// Ranges of many owners. Those of one owner never overlap nor touch: they become one.
#[derive(Default)]
pub(super) struct Granted {
    all: IntervalSet,
    /// From where to where, by owner.
    own: HashMap<TxnId, BTreeMap<Cut, Cut>>,
    bytes: usize,
    count: usize,
}

impl Granted {
    pub(super) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.count
    }

    /// Memory in use.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Ranges of an owner.
    pub(super) fn len_of(&self, txn: TxnId) -> usize {
        self.own.get(&txn).map_or(0, BTreeMap::len)
    }

    /// Who has ranges.
    pub(super) fn owners(&self) -> impl Iterator<Item = TxnId> + '_ {
        self.own.keys().copied()
    }

    /// Some of an owner's, behind the one that begins at `after`.
    pub(super) fn some_of(&self, txn: TxnId, after: Option<&Cut>) -> Vec<(Cut, Cut)> {
        self.own.get(&txn).map_or_else(Vec::new, |own| some(own, after))
    }

    /// Calls `visit` with the owner of each range that has a key in `span`.
    pub(super) fn meeting<B>(
        &self,
        span: SpanRef<'_>,
        visit: &mut impl FnMut(TxnId) -> ControlFlow<B>,
    ) -> ControlFlow<B> {
        self.all.meeting(span, visit)
    }

    /// Whether a range of `txn` has a key in `span`.
    pub(super) fn owner_meets(&self, txn: TxnId, span: &Span) -> bool {
        let last = self.own.get(&txn).and_then(|own| own.range(..&span.to).next_back());
        last.is_some_and(|(_, to)| span.from < *to)
    }

    /// Adds a range to an owner's.
    pub(super) fn hold(&mut self, txn: TxnId, mut span: Span) {
        let own = self.own.entry(txn).or_default();
        // Backwards from the last that begins in it or touches its end, to the one that reaches its begin.
        while let Some((from, to)) = own.range(..=&span.to).next_back() {
            if *to < span.from {
                break;
            }
            if *from <= span.from && *to >= span.to {
                return;
            }
            let from = from.clone();
            let Some(to) = own.remove(&from) else { break };
            self.all.remove(&from, txn);
            let taken = Span { from, to };
            self.bytes -= ENTRY_BYTES + taken.key_bytes();
            self.count -= 1;
            span.to = span.to.max(taken.to);
            span.from = span.from.min(taken.from);
        }
        self.bytes += ENTRY_BYTES + span.key_bytes();
        self.count += 1;
        own.insert(span.from.clone(), span.to.clone());
        self.all.insert(span, txn);
    }

    /// Takes all ranges of an owner.
    pub(super) fn release(&mut self, txn: TxnId) {
        for (from, to) in self.own.remove(&txn).into_iter().flatten() {
            self.all.remove(&from, txn);
            self.bytes -= ENTRY_BYTES + Span { from, to }.key_bytes();
            self.count -= 1;
        }
    }

    /// Makes one range of all of an owner's, with what lies between them.
    pub(super) fn widen(&mut self, txn: TxnId) {
        let Some(own) = self.own.get(&txn) else { return };
        let (Some((from, _)), Some((_, to))) = (own.first_key_value(), own.last_key_value()) else { return };
        let span = Span { from: from.clone(), to: to.clone() };
        self.release(txn);
        self.hold(txn, span);
    }
}

#[cfg(test)]
mod tests {
    use std::ops::Bound;
    use std::sync::Arc;

    use super::*;

    fn at(n: u8) -> Cut {
        Cut::At(Arc::from([n].as_slice()), false)
    }

    #[test]
    fn ranges_that_meet_or_touch_are_one_and_memory_is_given_back() {
        let mut granted = Granted::default();
        granted.hold(1, Span { from: at(10), to: at(20) });
        granted.hold(1, Span { from: at(30), to: at(40) });
        granted.hold(2, Span { from: at(15), to: at(35) });
        assert_eq!(granted.len(), 3);
        granted.hold(1, Span { from: at(20), to: at(30) });
        assert_eq!((granted.len(), granted.len_of(1)), (2, 1));
        granted.hold(1, Span { from: at(12), to: at(13) });
        granted.hold(1, Span { from: at(50), to: at(60) });
        granted.hold(1, Span { from: at(45), to: at(70) });
        assert_eq!(granted.len_of(1), 2);
        granted.widen(1);
        assert_eq!(granted.len_of(1), 1);
        assert!(granted.owner_meets(1, &Span { from: at(41), to: at(42) }));
        assert!(!granted.owner_meets(1, &Span { from: at(70), to: at(80) }));
        granted.release(1);
        granted.release(2);
        assert_eq!((granted.len(), granted.bytes(), granted.is_empty()), (0, 0, true));
    }

    #[test]
    fn a_gap_before_a_key_and_the_gap_after_it_touch() {
        let mut granted = Granted::default();
        granted.hold(1, Span::new(Bound::Unbounded, Bound::Included(b"k")));
        granted.hold(1, Span::new(Bound::Excluded(b"k"), Bound::Included(b"m")));
        granted.hold(1, Span::new(Bound::Excluded(b"m"), Bound::Unbounded));
        assert_eq!(granted.len(), 1);
    }
}
