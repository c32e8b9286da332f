//! Leaves of which checkpoints write what has changed: against the model, through every state that such a leaf can be
//! in.

use super::*;
use crate::tree::leaf::changes::Changes;
use crate::tree::leaf::{Base, Leaf};
use std::collections::HashMap;

const ROWS: u64 = 2000;

/// What a leaf with a patch was seen as.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Seen {
    /// Neither its block nor its changes are in memory.
    Away,
    /// The same, and something was pushed since.
    AwayAndPushed,
    /// Both are in memory, one beside the other.
    Apart,
    /// The changes are folded into the block.
    Folded,
    /// The same, and there are others.
    FoldedAndChanged,
    /// Packed, with the changes laid over it.
    Packed,
    /// The same, and there are others.
    PackedAndChanged,
    /// The block is not that of the file any more.
    Outgrown,
}

fn seen(leaf: &Leaf) -> Option<Seen> {
    let state = leaf.latch();
    let copy = state.copies.durable().filter(|copy| copy.patch.is_some())?;
    let view = leaf.view();
    let has_more = state.patch_of(&view).is_none();
    Some(match &view.base {
        Base::Packed(packed) if packed.patch().is_some() => match view.has_changes() {
            true => Seen::PackedAndChanged,
            false => Seen::Packed,
        },
        Base::Stored(_) | Base::Packed(_) => match &view.delta {
            Changes::Spilled { .. } if has_more => Seen::AwayAndPushed,
            Changes::Spilled { .. } => Seen::Away,
            Changes::Live(_) => Seen::Apart,
        },
        base if copy.is_patched(base) => match view.has_changes() {
            true => Seen::FoldedAndChanged,
            false => Seen::Folded,
        },
        base if copy.is_of(base) => Seen::Apart,
        _ => Seen::Outgrown,
    })
}

struct History {
    bench: Bench,
    random: Random,
    model: Model,
    old: Vec<(SnapshotGuard, Model)>,
    /// What was written and is not decided.
    open: Vec<(Arc<TxnStatus>, Model, Vec<Vec<u8>>)>,
    met: HashMap<Seen, u64>,
    patched: u64,
}

impl History {
    fn new(seed: u64) -> History {
        // Of every other history the blocks are in frames, and packed by look-ups.
        let bench = if seed.is_multiple_of(2) { Bench::new(256 << 10) } else { packed::framed(4 << 20) };
        let mut bench = bench;
        let rows: Vec<_> = (0..ROWS).map(|n| (key(n), Some(vec![n as u8; 30]))).collect();
        bench.commit(&rows);
        bench.checkpoint();
        let model = rows.into_iter().filter_map(|(key, value)| Some((key, value?))).collect();
        let (random, old, open) = (Random(seed), Vec::new(), Vec::new());
        History { bench, random, model, old, open, met: HashMap::new(), patched: 0 }
    }

    /// Some rows, now and then neighbours.
    fn some_writes(&mut self) -> Vec<(Vec<u8>, Option<Vec<u8>>)> {
        let (start, near) = (self.random.below(ROWS), self.random.below(3) == 0);
        let count = 1 + self.random.below(6);
        let mut writes = BTreeMap::new();
        for i in 0..count {
            let key = key(if near { start + i } else { self.random.below(ROWS + 50) });
            let bytes = self.random.below(50) as usize;
            let value = (self.random.below(4) > 0).then(|| vec![self.random.below(250) as u8; bytes]);
            if !self.open.iter().any(|(_, _, locked)| locked.contains(&key)) {
                writes.insert(key, value);
            }
        }
        writes.into_iter().collect()
    }

    fn write(&mut self) {
        let writes = self.some_writes();
        apply(&writes, &mut self.model);
        self.bench.commit(&writes);
    }

    /// A transaction that is decided later.
    fn write_openly(&mut self) {
        let writes = self.some_writes();
        let status = TxnStatus::new(self.random.below(1 << 40) + 2);
        let mut changes = Model::new();
        for (n, (key, value)) in (1..).zip(&writes) {
            let op = value.as_ref().map_or(WriteOp::Delete, |value| WriteOp::Update(value));
            self.bench.tree.write(key, op, &status, n).unwrap();
            changes.extend(value.clone().map(|value| (key.clone(), value)));
        }
        self.open.push((status, changes, writes.into_iter().map(|(key, _)| key).collect()));
    }

    fn decide(&mut self) {
        let Some((status, changes, keys)) = self.open.pop() else { return };
        if self.random.below(2) == 0 {
            return status.abort();
        }
        self.bench.context.clock.publish(&status);
        for key in keys {
            match changes.get(&key) {
                Some(value) => _ = self.model.insert(key, value.clone()),
                None => _ = self.model.remove(&key),
            }
        }
    }

    fn step(&mut self) {
        match self.random.below(33) {
            0..=12 => self.write(),
            13 => self.write_openly(),
            14 | 15 => self.decide(),
            16..=18 => self.bench.evict_all(),
            19 | 20 => self.fold_some(),
            21 if self.old.len() < 3 => {
                self.old.push((self.bench.context.clock.snapshot(0), self.model.clone()));
            }
            22 | 23 if !self.old.is_empty() => drop(self.old.remove(0)),
            24 => self.bench.abandon_checkpoint(),
            25 => self.reopen(),
            26 => self.look(),
            27 | 28 => self.look_up(),
            _ => drop(self.checkpoint()),
        }
        let met = &mut self.met;
        self.bench.each_leaf(&mut |_, leaf| {
            if let Some(seen) = seen(leaf) {
                *met.entry(seen).or_default() += 1;
            }
        });
    }

    fn fold_some(&mut self) {
        let random = &mut self.random;
        let tree = &self.bench.tree;
        self.bench.each_leaf(&mut |node, _| {
            if random.below(3) == 0 {
                tree.consolidate_changed(node).unwrap();
            }
        });
    }

    fn checkpoint(&mut self) -> Option<TreeRoot> {
        let busy = self.random.below(2) == 0;
        let (mut writes, mut value) = (Vec::new(), 0);
        if busy {
            writes = self.some_writes();
            value = self.random.below(3);
        }
        apply(&writes, &mut self.model);
        // While it is written and not durable yet.
        let (tree, context) = (self.bench.tree.clone(), self.bench.context.clone());
        let root = self.bench.checkpoint_with(&mut || {
            let status = TxnStatus::new(1);
            for (n, (key, value)) in (1..).zip(&writes) {
                let op = value.as_ref().map_or(WriteOp::Delete, |value| WriteOp::Update(value));
                tree.write(key, op, &status, n).unwrap();
            }
            context.clock.publish(&status);
            let mut nodes = Vec::new();
            collect_leaves(&tree.root.load_full(), &mut nodes);
            for node in nodes {
                match value {
                    1 => _ = node.evict().unwrap(),
                    2 => tree.consolidate_changed(&node).unwrap(),
                    _ => {}
                }
            }
        });
        let patched = &mut self.patched;
        self.bench.each_leaf(&mut |_, leaf| {
            let state = leaf.latch();
            *patched += u64::from(state.copies.durable().is_some_and(|copy| copy.patch.is_some()));
        });
        let mut findings = self.bench.found_in_memory();
        if let Some(root) = &root {
            findings.append(self.bench.found_on_disk(root));
        }
        assert!(findings.is_empty(), "{findings}");
        root
    }

    /// As after a restart, without what is not decided, and without old snapshots.
    fn reopen(&mut self) {
        while !self.open.is_empty() {
            self.decide();
        }
        self.old.clear();
        while let Some(root) = self.checkpoint() {
            if !self.bench.tree.is_dirty() {
                self.bench.reopen(root);
                return;
            }
        }
    }

    fn look_up(&mut self) {
        for _ in 0..60 {
            let key = key(self.random.below(ROWS + 50));
            let mut cursor = TreeCursor::new(self.bench.tree.clone());
            let now = Reader::at(self.bench.context.clock.last_committed());
            let found = cursor.get(&now, &key).unwrap().then(|| cursor.value().unwrap().to_vec());
            assert_eq!(found.as_ref(), self.model.get(&key));
            // Now and then it moves on from where it is.
            if self.random.below(8) == 0 {
                let next = cursor.next(&now).unwrap().then(|| cursor.key().to_vec());
                let after = (std::ops::Bound::Excluded(key), std::ops::Bound::Unbounded);
                assert_eq!(next.as_ref(), self.model.range(after).next().map(|row| row.0));
            }
        }
    }

    fn look(&mut self) {
        let forward = self.random.below(2) == 0;
        let now = Reader::at(self.bench.context.clock.last_committed());
        same(&scan(&self.bench.tree, &now, forward), &self.model, 0, 0);
        for (snapshot, model) in &self.old {
            same(&scan(&self.bench.tree, &Reader::at(snapshot.timestamp()), forward), model, 0, 1);
        }
        look_around(&self.bench, &mut self.random, &self.model, "patches");
    }
}

fn collect_leaves(node: &Arc<Node>, leaves: &mut Vec<Arc<Node>>) {
    match &**node {
        Node::Leaf(_) => leaves.push(node.clone()),
        Node::Inner(inner) => {
            inner.loaded().unwrap().children().for_each(|child| collect_leaves(child, leaves));
        }
    }
}

fn apply(writes: &[(Vec<u8>, Option<Vec<u8>>)], model: &mut Model) {
    for (key, value) in writes {
        match value {
            Some(value) => _ = model.insert(key.clone(), value.clone()),
            None => _ = model.remove(key),
        }
    }
}

#[test]
fn leaves_with_patches_are_what_the_model_says_in_every_state() {
    let mut met: HashMap<Seen, u64> = HashMap::new();
    let mut patched = 0;
    for seed in 0..16 {
        let mut history = History::new(seed);
        for _ in 0..150 {
            history.step();
        }
        history.look();
        history.reopen();
        history.look();
        history.met.into_iter().for_each(|(seen, count)| *met.entry(seen).or_default() += count);
        patched += history.patched;
    }
    let all = [
        Seen::Away,
        Seen::AwayAndPushed,
        Seen::Apart,
        Seen::Folded,
        Seen::FoldedAndChanged,
        Seen::Packed,
        Seen::PackedAndChanged,
        Seen::Outgrown,
    ];
    assert!(all.iter().all(|seen| met.contains_key(seen)) && patched > 1000, "{patched} patched: {met:?}");
}

#[test]
fn a_checkpoint_of_few_changes_writes_little_and_reads_no_block() {
    let mut bench = Bench::new(64 << 20);
    bench.commit(&(0..20_000).map(|n| (key(n), Some(vec![n as u8; 60]))).collect::<Vec<_>>());
    let root = bench.checkpoint().unwrap();
    bench.reopen(root);
    let mut leaves = 0;
    bench.each_leaf(&mut |_, leaf| leaves += u64::from(matches!(leaf.view().base, Base::Stored(_))));
    assert!(leaves > 300);
    bench.commit(&(0..20_000).step_by(60).map(|n| (key(n), Some(vec![1; 60]))).collect::<Vec<_>>());
    let before = bench.used();
    bench.checkpoint().unwrap();
    let grown = bench.used() - before;
    assert!(grown < leaves * 600, "{grown} bytes for {leaves} leaves");
    bench.each_leaf(&mut |_, leaf| assert!(matches!(leaf.view().base, Base::Stored(_)), "a block was read"));
    assert_eq!(bench.context.spill.moved_bytes(), (0, 0));
}

#[test]
fn a_leaf_without_unwritten_changes_that_is_split_is_written_again() {
    let mut bench = Bench::new(64 << 20);
    // Leaves that are a little larger than a block, as the last row filled them.
    bench.commit(&(0..2000).map(|n| (key(10 * n), Some(vec![n as u8; 480]))).collect::<Vec<_>>());
    bench.checkpoint();
    let before = bench.nodes();
    let few = (0..2000).step_by(2).map(|n| (key(10 * n + 5), Some(vec![1; 60])));
    bench.commit(&few.collect::<Vec<_>>());
    bench.checkpoint();
    let mut patched = 0;
    bench.each_leaf(&mut |_, leaf| patched += u64::from(seen(leaf).is_some()));
    assert!(patched > 100, "{patched} leaves have patches");
    // As readers do.
    let mut leaves = Vec::new();
    collect_leaves(&bench.tree.root.load_full(), &mut leaves);
    leaves.iter().for_each(|node| bench.tree.consolidate_changed(node).unwrap());
    assert!(bench.nodes() > before + 10, "{} nodes, {before} before", bench.nodes());
    let root = bench.checkpoint().unwrap();
    let mut findings = bench.found_in_memory();
    findings.append(bench.found_on_disk(&root));
    assert!(findings.is_empty(), "{findings}");
}

#[test]
fn what_a_patch_has_is_older_than_all_that_is_above_it() {
    let mut history = History::new(77);
    for _ in 0..40 {
        history.write();
        // Folded with a patch, changed, patched again while something else is changed, and evicted.
        history.checkpoint();
        history.fold_some();
        (0..4).for_each(|_| history.write());
        let (tree, context) = (history.bench.tree.clone(), history.bench.context.clone());
        history.bench.checkpoint_with(&mut || {
            let status = TxnStatus::new(1);
            (0..ROWS).step_by(40).for_each(|n| {
                tree.write(&key(n), WriteOp::Update(b"meanwhile"), &status, n as u32 + 1).unwrap();
            });
            context.clock.publish(&status);
        });
        history.bench.evict_all();
        let findings = history.bench.found_in_memory();
        assert!(findings.is_empty(), "{findings}");
    }
}
