//! What the log has made of each key, until it is applied.
//!
//! A log of an hour holds the same hot keys again and again, and index entries that came and went. A worker therefore
//! keeps the last operation on each key, in memory it is given, and writes to the tree once per key, in key order.
//!
//! An entry that the log both inserts and deletes is forgotten altogether, if the insert is *fresh*: the image cannot
//! contain it.

use crate::log::OpKind;
use crate::tree::block::wide_head;
use crate::types::TreeId;
use hashbrown::hash_table::{Entry as Slot, HashTable};

/// A committed operation on its way to its tree.
#[derive(Clone, Copy)]
pub(super) struct Operation<'a> {
    pub tree: TreeId,
    pub key: &'a [u8],
    pub kind: OpKind,
    pub value: &'a [u8],
    /// Of tree and key.
    pub hash: u64,
    /// Its number within its transaction.
    pub sequence: u32,
    /// No image has the operation; so if it is an insert, the key is in none.
    pub fresh: bool,
}

/// The last operation on one key. The key lies at `start`, the value behind it.
struct Entry {
    tree: TreeId,
    hash: u64,
    start: usize,
    key_bytes: u32,
    value_bytes: u32,
    /// Room for a value.
    room: u32,
    sequence: u32,
    kind: OpKind,
    /// The key is not in the tree.
    fresh: bool,
}

impl Entry {
    fn bytes(&self) -> usize {
        self.key_bytes as usize + self.room as usize
    }
}

/// Bytes of memory that an entry takes besides key and value.
const ENTRY_BYTES: usize = std::mem::size_of::<Entry>() + 8;
/// Less garbage than this is not worth collecting.
const LEAST_GARBAGE_BYTES: usize = 1 << 20;

/// The last operation on each of many keys.
#[derive(Default)]
pub(super) struct Latest {
    entries: Vec<Entry>,
    /// Indexes of `entries`.
    table: HashTable<u32>,
    /// Keys and values, and what is left of replaced ones.
    bytes: Vec<u8>,
    garbage: usize,
}

impl Latest {
    /// Brings what [`Latest::add`] looks at for these hashes into the processor's caches. The look-ups do not depend on
    /// each other, so that their cache misses, which are most of what an operation costs, overlap.
    pub fn fetch(&self, hashes: impl Iterator<Item = u64>) {
        let mut touched = 0;
        for hash in hashes {
            if let Some(&at) = self.table.find(hash, |&at| self.entries[at as usize].hash == hash) {
                let entry = &self.entries[at as usize];
                touched ^= self.bytes.get(entry.start).copied().unwrap_or(0);
            }
        }
        // Otherwise the compiler could leave all this out.
        std::hint::black_box(touched);
    }

    /// Takes an operation that comes after all before.
    pub fn add(&mut self, operation: &Operation<'_>) {
        let Latest { entries, table, bytes, garbage } = self;
        let same = |&at: &u32| {
            let entry = &entries[at as usize];
            entry.hash == operation.hash && entry.tree == operation.tree && key(bytes, entry) == operation.key
        };
        match table.entry(operation.hash, same, |&at| entries[at as usize].hash) {
            Slot::Vacant(slot) => {
                slot.insert(entries.len() as u32);
                let fresh = operation.fresh && operation.kind == OpKind::Insert;
                entries.push(place(bytes, operation, fresh));
            }
            Slot::Occupied(slot) => {
                let at = *slot.get() as usize;
                let entry = &mut entries[at];
                if entry.fresh && operation.kind == OpKind::Delete {
                    slot.remove();
                    self.forget(at);
                } else if operation.value.len() <= entry.room as usize {
                    let start = entry.start + entry.key_bytes as usize;
                    bytes[start..start + operation.value.len()].copy_from_slice(operation.value);
                    entry.value_bytes = operation.value.len() as u32;
                    entry.sequence = operation.sequence;
                    entry.kind = operation.kind;
                } else {
                    *garbage += entry.bytes();
                    *entry = place(bytes, operation, entry.fresh);
                }
            }
        }
        if self.garbage > LEAST_GARBAGE_BYTES.max(self.bytes.len() / 2) {
            self.collect_garbage();
        }
    }

    /// Removes the entry at `at`, which the table does not know any more.
    fn forget(&mut self, at: usize) {
        let gone = self.entries.swap_remove(at);
        self.garbage += gone.bytes();
        if let Some(moved) = self.entries.get(at) {
            let was = self.entries.len() as u32;
            if let Some(index) = self.table.find_mut(moved.hash, |&index| index == was) {
                *index = at as u32;
            }
        }
    }

    fn collect_garbage(&mut self) {
        let mut kept = Vec::with_capacity(self.bytes.len() - self.garbage);
        for entry in &mut self.entries {
            let from = entry.start;
            entry.start = kept.len();
            kept.extend_from_slice(&self.bytes[from..from + entry.bytes()]);
        }
        self.bytes = kept;
        self.garbage = 0;
    }

    /// Bytes of memory in use.
    pub fn memory(&self) -> usize {
        self.bytes.len() + self.entries.len() * ENTRY_BYTES
    }

    /// The operations by tree and key.
    pub fn sorted(&self) -> Vec<Operation<'_>> {
        let mut heads: Vec<(TreeId, u64, u32)> = Vec::with_capacity(self.entries.len());
        heads.extend((0u32..).zip(&self.entries).map(|(at, e)| (e.tree, wide_head(key(&self.bytes, e)), at)));
        let key_of = |at: u32| key(&self.bytes, &self.entries[at as usize]);
        heads.sort_unstable_by(|a, b| (a.0, a.1).cmp(&(b.0, b.1)).then_with(|| key_of(a.2).cmp(key_of(b.2))));
        heads.iter().map(|&(_, _, at)| self.operation(&self.entries[at as usize])).collect()
    }

    fn operation(&self, entry: &Entry) -> Operation<'_> {
        let value = entry.start + entry.key_bytes as usize;
        Operation {
            tree: entry.tree,
            key: key(&self.bytes, entry),
            kind: entry.kind,
            value: &self.bytes[value..value + entry.value_bytes as usize],
            hash: entry.hash,
            sequence: entry.sequence,
            fresh: entry.fresh,
        }
    }

    /// Forgets all and keeps the memory for what comes.
    pub fn clear(&mut self) {
        self.entries.clear();
        self.table.clear();
        self.bytes.clear();
        self.garbage = 0;
    }
}

fn key<'a>(bytes: &'a [u8], entry: &Entry) -> &'a [u8] {
    &bytes[entry.start..entry.start + entry.key_bytes as usize]
}

/// Appends key and value.
fn place(bytes: &mut Vec<u8>, operation: &Operation<'_>, fresh: bool) -> Entry {
    let start = bytes.len();
    bytes.extend_from_slice(operation.key);
    bytes.extend_from_slice(operation.value);
    Entry {
        tree: operation.tree,
        hash: operation.hash,
        start,
        key_bytes: operation.key.len() as u32,
        value_bytes: operation.value.len() as u32,
        room: operation.value.len() as u32,
        sequence: operation.sequence,
        kind: operation.kind,
        fresh,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    type Rows = BTreeMap<(TreeId, Vec<u8>), Vec<u8>>;

    fn apply(rows: &mut Rows, operation: &Operation<'_>) {
        let key = (operation.tree, operation.key.to_vec());
        match operation.kind {
            OpKind::Delete => rows.remove(&key),
            _ => rows.insert(key, operation.value.to_vec()),
        };
    }

    struct Step {
        tree: TreeId,
        key: Vec<u8>,
        kind: OpKind,
        value: Vec<u8>,
    }

    /// Steps that are right for the rows there are; `rows` becomes what they make.
    fn steps(choices: &[(u64, u8, u8, usize)], rows: &mut Rows) -> Vec<Step> {
        let mut steps = Vec::new();
        for (at, &(tree, number, action, length)) in choices.iter().enumerate() {
            let key = vec![number; usize::from(number) * 7 % 20 + 1];
            let kind = match (rows.contains_key(&(tree, key.clone())), action) {
                (false, _) => OpKind::Insert,
                (true, 0..3) => OpKind::Delete,
                (true, _) => OpKind::Update,
            };
            let value = vec![at as u8; if kind == OpKind::Delete { 0 } else { length }];
            steps.push(Step { tree, key, kind, value });
            apply(rows, &operation(&steps, at, 0, 0));
        }
        steps
    }

    fn operation(steps: &[Step], at: usize, imaged: usize, hash_bits: u32) -> Operation<'_> {
        let Step { tree, key, kind, value } = &steps[at];
        // Few hashes: different keys meet.
        let hash = (u64::from(key[0]) ^ tree) % (1 << hash_bits);
        Operation { tree: *tree, key, kind: *kind, value, hash, sequence: at as u32, fresh: at >= imaged }
    }

    proptest! {
        #[test]
        fn applied_at_any_moment_it_makes_what_the_operations_one_by_one_make(
            choices in proptest::collection::vec((0u64..3, 0u8..12, 0u8..5, 0usize..40), 0..400),
            imaged in 0usize..400, limit in 100usize..4000, hash_bits in 0u32..4,
        ) {
            // What comes before the image is replayed again, on top of it.
            let imaged = imaged.min(choices.len());
            let (mut rows, mut expected, mut latest) = (Rows::new(), Rows::new(), Latest::default());
            steps(&choices[..imaged], &mut rows);
            let steps = steps(&choices, &mut expected);
            for at in 0..steps.len() {
                latest.add(&operation(&steps, at, imaged, hash_bits));
                if latest.memory() > limit {
                    latest.sorted().iter().for_each(|operation| apply(&mut rows, operation));
                    latest.clear();
                }
            }
            let sorted = latest.sorted();
            prop_assert!(sorted.is_sorted_by(|a, b| (a.tree, a.key) < (b.tree, b.key)));
            sorted.iter().for_each(|operation| apply(&mut rows, operation));
            prop_assert_eq!(rows, expected);
        }
    }

    #[test]
    fn what_came_and_went_takes_no_memory() {
        let mut latest = Latest::default();
        for i in 0u32..100_000 {
            let (key, hash) = (i.to_be_bytes(), u64::from(i).wrapping_mul(0x9e37_79b9_7f4a_7c15));
            for kind in [OpKind::Insert, OpKind::Delete] {
                let value: &[u8] = if kind == OpKind::Insert { &[7; 100] } else { &[] };
                latest.add(&Operation { tree: 5, key: &key, kind, value, hash, sequence: i, fresh: true });
            }
        }
        assert!(latest.sorted().is_empty());
        assert!(latest.memory() < 3 * LEAST_GARBAGE_BYTES);
    }
}
