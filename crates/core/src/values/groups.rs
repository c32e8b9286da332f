//! Which values are to be put together: groups of values that are alike, as far as they were seen in this run.
//!
//! ```text
//!                        ┌── full, or nothing came for a while ──> Batch (the caller makes a bundle of it) ──┐
//! value ── sketch ──> group: waiting values | its bundle, if it has one <─────────── bundled ─────────────────┘
//! ```
//!
//! The newest value stays as it is: a text is mostly read in its newest version, and that one costs what it costs
//! alone. Newer is what was seen first in a later pass over what was written, and of one pass, which comes to leaves in
//! any order, what has the greater key. A group whose bundle has room left takes more: the next batch has the bundle in
//! it. So that a bundle is not written again for each value that comes, as many must wait as a quarter of it has.
//!
//! All of it is in memory of a fixed size, of which the groups that were touched last keep theirs. What is forgotten,
//! or what a restart forgets, is stored as it is.

use super::bundle::{MOST_CONTENT, MOST_MEMBERS};
use super::kin::Kin;
use super::sketch::Sketch;
use std::collections::{BTreeMap, HashMap};

/// A value that waits.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Ungrouped {
    /// Of its row.
    pub key: Vec<u8>,
    /// In which it was seen first; 0: it was seen before, and has not waited since.
    pub pass: u64,
    /// Where in the file it is.
    pub offset: u64,
    /// Bytes that it will have in a bundle, before compression.
    pub content_bytes: usize,
}

/// A bundle of a group that has room left.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Open {
    /// Keys of rows whose values are in it.
    pub keys: Vec<Vec<u8>>,
    /// Where in the file it is.
    pub offset: u64,
    /// Of all its values.
    pub content_bytes: usize,
}

/// Values that are to become a bundle.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Batch {
    /// For [`Groups::bundled`].
    pub group: u64,
    /// Whose values they are: the number of a tree.
    pub owner: u64,
    pub waiting: Vec<Ungrouped>,
    /// To be taken apart for it.
    pub open: Option<Open>,
}

struct Group {
    owner: u64,
    /// The newest last.
    waiting: Vec<Ungrouped>,
    open: Option<Open>,
    /// When something came to it last.
    turn: u64,
}

/// Bounds of what is kept.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// Of the index of sketches.
    pub index_bytes: usize,
    pub groups: usize,
    /// Values that wait, in all groups.
    pub waiting: usize,
}

/// See the module's documentation.
pub(crate) struct Groups {
    limits: Limits,
    kin: Kin,
    groups: HashMap<u64, Group>,
    /// Groups by their turns.
    turns: BTreeMap<u64, u64>,
    /// Groups by owner and offset of their open bundles.
    opens: HashMap<(u64, u64), u64>,
    waiting: usize,
    next_group: u64,
    next_turn: u64,
}

impl Groups {
    pub(crate) fn new(limits: Limits) -> Groups {
        Groups {
            limits,
            kin: Kin::new(limits.index_bytes),
            groups: HashMap::new(),
            turns: BTreeMap::new(),
            opens: HashMap::new(),
            waiting: 0,
            next_group: 1,
            next_turn: 1,
        }
    }

    /// A value of `owner` that nobody has seen; `sketch` is that of its content. What has to become a bundle now: its
    /// group, or those that are given up for want of room.
    pub(crate) fn see(&mut self, owner: u64, sketch: &Sketch, value: Ungrouped) -> Vec<Batch> {
        let sketch = sketch.of_owner(owner);
        let known = self.kin.find(&sketch).map(|(group, _)| group);
        let known = known.filter(|group| self.groups.get(group).is_some_and(|group| group.owner == owner));
        let number = known.unwrap_or_else(|| self.found(owner));
        self.kin.note(&sketch, number);
        let mut batches = Vec::new();
        let Some(group) = self.groups.get_mut(&number) else { return batches };
        if !group.fits() {
            // What waits is enough for a bundle, with the open one or without it.
            batches.extend(self.take(number));
        }
        self.touch(number);
        if let Some(group) = self.groups.get_mut(&number) {
            let before = group.waiting.len();
            group.add(value);
            self.waiting += group.waiting.len() - before;
            if group.is_full() {
                batches.extend(self.take(number));
            }
        }
        while self.groups.len() > self.limits.groups || self.waiting > self.limits.waiting {
            let Some(oldest) = self.turns.first_key_value().map(|(_, group)| *group) else { break };
            batches.extend(self.take(oldest));
            self.forget(oldest);
        }
        batches
    }

    /// The turn that comes next, for [`Groups::due`].
    pub(crate) fn turn(&self) -> u64 {
        self.next_turn
    }

    /// Batches of all groups to which nothing came since `turn`, and of which one of `owner` only, if that is given.
    pub(crate) fn due(&mut self, turn: u64, owner: Option<u64>) -> Vec<Batch> {
        let is_due = |group: &&u64| {
            self.groups.get(*group).is_some_and(|group| {
                !group.waiting.is_empty() && owner.is_none_or(|owner| owner == group.owner)
            })
        };
        let due: Vec<u64> =
            self.turns.range(..turn).map(|(_, group)| group).filter(is_due).copied().collect();
        due.into_iter().filter_map(|group| self.take(group)).collect()
    }

    /// The batch has become a bundle.
    pub(crate) fn bundled(&mut self, number: u64, bundle: Open) {
        self.close(number);
        let is_full = bundle.keys.len() >= MOST_MEMBERS || bundle.content_bytes >= MOST_CONTENT / 8 * 7;
        if let Some(group) = self.groups.get_mut(&number).filter(|_| !is_full) {
            self.opens.insert((group.owner, bundle.offset), number);
            group.open = Some(bundle);
        }
    }

    /// What was left of the bundle at `offset` is another one now.
    pub(crate) fn moved(&mut self, owner: u64, offset: u64, bundle: Open) {
        if let Some(group) = self.opens.get(&(owner, offset)) {
            self.bundled(*group, bundle);
        }
    }

    /// The group's bundle takes nothing more.
    fn close(&mut self, number: u64) -> Option<Open> {
        let group = self.groups.get_mut(&number)?;
        let open = group.open.take()?;
        self.opens.remove(&(group.owner, open.offset));
        Some(open)
    }

    /// How many values wait.
    #[cfg(test)]
    fn waiting(&self) -> usize {
        self.waiting
    }

    fn found(&mut self, owner: u64) -> u64 {
        let number = self.next_group;
        self.next_group += 1;
        self.groups.insert(number, Group { owner, waiting: Vec::new(), open: None, turn: 0 });
        number
    }

    fn touch(&mut self, number: u64) {
        if let Some(group) = self.groups.get_mut(&number) {
            self.turns.remove(&group.turn);
            group.turn = self.next_turn;
            self.turns.insert(group.turn, number);
            self.next_turn += 1;
        }
    }

    /// The group's batch, if it is worth a bundle; otherwise its values go on waiting.
    fn take(&mut self, number: u64) -> Option<Batch> {
        let group = self.groups.get_mut(&number).filter(|group| group.is_worth_a_bundle())?;
        let newest = group.waiting.pop()?;
        let waiting = std::mem::replace(&mut group.waiting, vec![newest]);
        self.waiting -= waiting.len();
        let owner = group.owner;
        let bytes: usize = waiting.iter().map(|value| value.content_bytes).sum();
        let open = self.close(number).filter(|open| {
            open.keys.len() + waiting.len() <= MOST_MEMBERS && open.content_bytes + bytes <= MOST_CONTENT
        });
        Some(Batch { group: number, owner, waiting, open })
    }

    fn forget(&mut self, number: u64) {
        self.close(number);
        if let Some(group) = self.groups.remove(&number) {
            self.turns.remove(&group.turn);
            self.waiting -= group.waiting.len();
            self.kin.forget(number);
        }
    }
}

impl Group {
    /// What is seen again has moved, or all of its table is looked at: it is as old as it was. Another length says that
    /// its row has a new value.
    fn add(&mut self, value: Ungrouped) {
        let known = self.waiting.iter().position(|other| other.key == value.key);
        if let Some(known) = known {
            if self.waiting[known].content_bytes == value.content_bytes {
                self.waiting[known].offset = value.offset;
                return;
            }
            self.waiting.remove(known);
        }
        let newer = |other: &Ungrouped| (other.pass, &other.key) > (value.pass, &value.key);
        let at = self.waiting.len() - self.waiting.iter().rev().take_while(|other| newer(other)).count();
        self.waiting.insert(at, value);
    }

    /// Those that waited before the newest.
    fn older(&self) -> &[Ungrouped] {
        self.waiting.split_last().map_or(&[], |(_, older)| older)
    }

    /// Whether what waits would still be one bundle if another came.
    fn fits(&self) -> bool {
        self.waiting.len() < 2
            || self.waiting.iter().map(|value| value.content_bytes).sum::<usize>() <= MOST_CONTENT
    }

    fn is_full(&self) -> bool {
        let open = self.open.as_ref().map_or((0, 0), |open| (open.keys.len(), open.content_bytes));
        let bytes: usize = self.older().iter().map(|value| value.content_bytes).sum();
        self.older().len() + open.0 >= MOST_MEMBERS || bytes + open.1 >= MOST_CONTENT
    }

    fn is_worth_a_bundle(&self) -> bool {
        match &self.open {
            None => self.older().len() >= 2,
            Some(open) => !self.older().is_empty() && self.older().len() >= open.keys.len() / 4,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::values::texts::text;

    const LIMITS: Limits = Limits { index_bytes: 1 << 20, groups: 100, waiting: 1000 };

    /// Version `version` of text `page`: something was added in front of it each time.
    fn sketch(page: u64, version: usize) -> Sketch {
        let mut content = text(1000 + page, version * 20);
        content.extend_from_slice(&text(page, 20_000));
        Sketch::of(&content)
    }

    fn value(page: u64, version: usize) -> Ungrouped {
        Ungrouped {
            key: vec![page as u8, version as u8],
            pass: 1,
            offset: page << 32 | version as u64,
            content_bytes: 20_000,
        }
    }

    fn bundled(groups: &mut Groups, batch: &Batch) -> usize {
        let mut keys = batch.open.clone().map_or(Vec::new(), |open| open.keys);
        keys.extend(batch.waiting.iter().map(|value| value.key.clone()));
        let count = keys.len();
        groups.bundled(batch.group, Open { keys, offset: 0, content_bytes: 20_000 * count });
        count
    }

    #[test]
    fn versions_of_pages_that_come_in_turns_are_put_together_by_page() {
        let mut groups = Groups::new(LIMITS);
        let mut batches = Vec::new();
        for version in 0..70 {
            for page in 0..5 {
                batches.extend(groups.see(7, &sketch(page, version), value(page, version)));
            }
        }
        assert_eq!(batches.len(), 5);
        for batch in &batches {
            assert_eq!((batch.owner, batch.waiting.len(), &batch.open), (7, MOST_MEMBERS, &None));
            assert!(batch.waiting.iter().all(|value| value.key[0] == batch.waiting[0].key[0]));
            bundled(&mut groups, batch);
        }
        assert_eq!(groups.waiting(), 5 * 6);
        let turn = groups.turn();
        let rest = groups.due(turn, Some(7));
        assert_eq!(rest.iter().map(|batch| batch.waiting.len()).collect::<Vec<_>>(), [5; 5]);
        assert!(rest.iter().all(|batch| batch.open.is_none()), "a full bundle stays as it is");
        assert_eq!(groups.waiting(), 5, "the newest of each");
    }

    #[test]
    fn an_open_bundle_is_taken_again_once_enough_has_come() {
        let mut groups = Groups::new(LIMITS);
        let see = |groups: &mut Groups, version| groups.see(7, &sketch(1, version), value(1, version));
        (0..9).for_each(|version| assert!(see(&mut groups, version).is_empty()));
        let turn = groups.turn();
        let batch = groups.due(turn, None).remove(0);
        assert_eq!(bundled(&mut groups, &batch), 8);
        see(&mut groups, 9);
        let turn = groups.turn();
        assert!(groups.due(turn, None).is_empty(), "one more is not worth writing eight again");
        // Seen again, elsewhere in the file.
        groups.see(7, &sketch(1, 9), Ungrouped { offset: 99, ..value(1, 9) });
        see(&mut groups, 10);
        assert!(groups.due(turn - 1, None).is_empty(), "something has come since");
        let turn = groups.turn();
        let batch = groups.due(turn, None).remove(0);
        assert_eq!((batch.waiting.len(), batch.waiting[1].offset), (2, 99));
        assert!(batch.open.is_some() && groups.opens.is_empty());
        assert_eq!(bundled(&mut groups, &batch), 10);
        // Written anew elsewhere, by who moves bundles.
        let open = Open { keys: vec![vec![1, 0]; 9], offset: 4096, content_bytes: 180_000 };
        groups.moved(8, 0, Open { offset: 1, ..open.clone() });
        groups.moved(7, 0, open.clone());
        (11..15).for_each(|version| _ = see(&mut groups, version));
        let turn = groups.turn();
        assert_eq!(groups.due(turn, None).remove(0).open, Some(open));
    }

    #[test]
    fn the_newest_stays_alone_in_whatever_order_values_are_seen() {
        let mut groups = Groups::new(LIMITS);
        let see = |groups: &mut Groups, version, value| _ = groups.see(7, &sketch(1, version), value);
        let due = |groups: &mut Groups| {
            let turn = groups.turn();
            let batch = groups.due(turn, None).remove(0);
            batch.waiting.iter().map(|value| (value.key[1], value.offset & 0xffff)).collect::<Vec<_>>()
        };
        // Of one pass, leaves in any order.
        [3, 0, 5, 1, 4, 2].into_iter().for_each(|version| see(&mut groups, version, value(1, version)));
        // Two have moved, and all that waits is looked at again in the order of keys.
        for (version, offset) in [(2, 77), (0, 78)] {
            see(&mut groups, version, Ungrouped { pass: 2, offset, ..value(1, version) });
        }
        (3..6).for_each(|version| see(&mut groups, version, Ungrouped { pass: 0, ..value(1, version) }));
        assert_eq!(due(&mut groups), [(0, 78), (1, 1), (2, 77), (3, 3), (4, 4)]);
        assert_eq!(groups.waiting(), 1);
        // One that was given up before, as its leaf was being written, is older than the newest, whatever its key.
        see(&mut groups, 9, Ungrouped { pass: 0, ..value(1, 9) });
        // Keys in no order: what comes later is newer.
        [8, 6, 7].into_iter().zip(3..).for_each(|(version, pass)| {
            see(&mut groups, version, Ungrouped { pass, ..value(1, version) });
        });
        assert_eq!(due(&mut groups), [(9, 9), (5, 5), (8, 8), (6, 6)]);
        // A row that gets another value has the newest.
        see(&mut groups, 3, Ungrouped { pass: 6, ..value(1, 3) });
        see(&mut groups, 2, Ungrouped { pass: 6, ..value(1, 2) });
        see(&mut groups, 2, Ungrouped { pass: 7, content_bytes: 20_100, ..value(1, 2) });
        assert_eq!(due(&mut groups), [(7, 7), (3, 3)]);
    }

    #[test]
    fn owners_do_not_meet_and_nothing_grows_without_bound() {
        let mut groups = Groups::new(Limits { groups: 10, waiting: 50, ..LIMITS });
        for owner in [1, 2] {
            groups.see(owner, &sketch(3, 0), value(3, 0));
        }
        assert_eq!((groups.groups.len(), groups.waiting()), (2, 2));
        for page in 0..200 {
            for version in 0..3 {
                groups.see(1, &sketch(page, version), value(page, version));
            }
        }
        assert!(
            groups.groups.len() <= 10 && groups.waiting() <= 50 && groups.turns.len() == groups.groups.len()
        );
        let mut groups = Groups::new(LIMITS);
        // Of values that are larger than bundles are there is one a bundle, which is none.
        let large = |version| Ungrouped { content_bytes: MOST_CONTENT * 2, ..value(1, version) };
        (0..9).for_each(|version| _ = groups.see(1, &sketch(1, version), large(version)));
        assert!(groups.waiting() <= 3);
    }
}
