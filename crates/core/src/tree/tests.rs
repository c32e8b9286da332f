//! Trees against a model that a reader believes at sight: every version of every key in a map.

use super::*;
use crate::cache::{Cache, Evictable};
use crate::file::RealFileSystem;
use crate::mvcc::SnapshotGuard;
use crate::mvcc::{Clock, TxnStatus};
use crate::options::SilentObserver;
use crate::options::TreeSpec;
use crate::store::{OpenFiles, Space, SpillFile, TreeRoot};
use crate::types::Timestamp;
use crate::types::WriteOp;
use crate::{Compression, Options, Packing, Seek};
use crate::{Error, Result};
use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;

mod ahead;
mod check;
mod cold_pages;
mod crafted_pages;
mod due;
mod early;
mod estimates;
mod large_values;
mod memory;
mod merges;
mod old_snapshots;
mod packed;
mod packs;
mod pages;
mod patches;
mod refusals;
mod rewrites;
#[cfg(feature = "schedules")]
mod schedules;
mod spilled;
mod windows;

struct Bench {
    _dir: tempdir::Dir,
    context: Arc<TreeContext>,
    space: Arc<Space>,
    tree: Arc<Tree>,
    spec: TreeSpec,
    generation: u64,
}

mod tempdir {
    use std::path::{Path, PathBuf};
    use std::sync::atomic::{AtomicU64, Ordering};

    pub struct Dir(PathBuf);

    impl Dir {
        pub fn new() -> Dir {
            static NEXT: AtomicU64 = AtomicU64::new(0);
            // Relaxed: uniqueness only.
            let number = NEXT.fetch_add(1, Ordering::Relaxed);
            let path = std::env::temp_dir().join(format!("teak-tree-{}-{number}", std::process::id()));
            std::fs::create_dir_all(&path).unwrap();
            Dir(path)
        }

        pub fn path(&self) -> &Path {
            &self.0
        }
    }

    impl Drop for Dir {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }
}

impl Bench {
    fn new(cache_bytes: u64) -> Bench {
        Bench::with_blocks(cache_bytes, 4096)
    }

    fn with_blocks(cache_bytes: u64, block_bytes: u32) -> Bench {
        let dir = tempdir::Dir::new();
        let fs = RealFileSystem;
        let context = Arc::new(TreeContext::new(
            Arc::new(Cache::new(cache_bytes, Arc::new(SilentObserver))),
            Cache::of_tables(0, Arc::new(SilentObserver)),
            Clock::new(0),
            SpillFile::create(&fs, dir.path(), Options::new("x").spill_max_bytes).unwrap(),
            0,
        ));
        let space = Space::create(&OpenFiles::new(Arc::new(fs), 8), &dir.path().join("s.teak"), 1).unwrap();
        let spec = TreeSpec {
            block_bytes,
            packing: Packing { compression: Compression::Lz4, level: 0, similarity: false },
        };
        let tree = Tree::open(7, spec, space.clone(), None, context.clone());
        Bench { _dir: dir, context, space, tree, spec, generation: 0 }
    }

    fn commit(&self, writes: &[(Vec<u8>, Option<Vec<u8>>)]) -> Timestamp {
        let status = TxnStatus::new(1);
        for (i, (key, value)) in writes.iter().enumerate() {
            let op = value.as_ref().map_or(WriteOp::Delete, |value| WriteOp::Insert(value));
            self.tree.write(key, op, &status, i as u32 + 1).unwrap();
        }
        self.context.clock.publish(&status)
    }

    fn checkpoint(&mut self) -> Option<TreeRoot> {
        self.checkpoint_with(&mut || {})
    }

    /// Does `meanwhile` when all is written and not durable yet.
    fn checkpoint_with(&mut self, meanwhile: &mut dyn FnMut()) -> Option<TreeRoot> {
        self.generation += 1;
        self.space.begin(self.generation);
        let at = self.context.clock.snapshot(0);
        let root = self.tree.checkpoint(Moment::at(at.timestamp()), self.generation, 2).unwrap();
        meanwhile();
        self.space.write_map(self.generation).unwrap();
        self.tree.checkpoint_durable();
        self.space.durable(self.generation);
        root
    }

    /// A checkpoint that fails before its superblock is written.
    fn abandon_checkpoint(&mut self) {
        let generation = self.generation + 1;
        self.space.begin(generation);
        let at = self.context.clock.snapshot(0);
        self.tree.checkpoint(Moment::at(at.timestamp()), generation, 1).unwrap();
        self.tree.checkpoint_abandoned();
        self.space.abandon(generation);
    }

    /// Writes images of leaves, as if appends had just filled them.
    fn write_early(&self, wanted: &mut dyn FnMut() -> bool) {
        self.each_leaf(&mut |node, _| {
            if wanted() {
                self.tree.note(node, Care::WriteAhead);
            }
        });
        self.tree.write_finished(0, &|| false).unwrap();
    }

    /// All nodes, those above others first, leaves in the order of their keys.
    fn each_node(&self, visit: &mut dyn FnMut(&Arc<Node>)) {
        let mut nodes = vec![self.tree.root.load_full()];
        while let Some(node) = nodes.pop() {
            visit(&node);
            if let Node::Inner(inner) = &*node {
                let children =
                    inner.view().unwrap().as_ref().unwrap().children().cloned().collect::<Vec<_>>();
                nodes.extend(children.into_iter().rev());
            }
        }
    }

    fn each_leaf(&self, visit: &mut dyn FnMut(&Arc<Node>, &leaf::Leaf)) {
        self.each_node(&mut |node| {
            if let Some(leaf) = node.leaf() {
                visit(node, leaf);
            }
        });
    }

    /// Has all leaves give their memory back, as far as they can.
    fn evict_all(&self) {
        cold_pages::evict_nodes(&self.tree);
    }

    /// Bytes of the file that are in use.
    fn used(&self) -> u64 {
        self.space.file_bytes() - self.space.free_bytes()
    }

    fn reopen(&mut self, root: TreeRoot) {
        self.tree = Tree::open(7, self.spec, self.space.clone(), Some(root), self.context.clone());
    }
}

fn scan(tree: &Arc<Tree>, reader: &Reader<'_>, forward: bool) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut cursor = TreeCursor::new(tree.clone());
    let mut rows = Vec::new();
    let mut more = if forward { cursor.first(reader) } else { cursor.last(reader) }.unwrap();
    while more {
        rows.push((cursor.key().to_vec(), cursor.value().unwrap().to_vec()));
        // Every other time, what a window has up to the first large value.
        let window = cursor.window(reader).filter(|_| rows.len() % 2 == 0);
        let mut met = window.map_or_else(Vec::new, |window| window.rows());
        if !forward {
            met.reverse();
        }
        let met: Vec<_> = met.into_iter().map_while(|(at, key, value)| Some((at, key, value?))).collect();
        if let Some((at, ..)) = met.last() {
            cursor.arrive(*at, met.len());
            assert_eq!(
                (cursor.key(), cursor.value().unwrap()),
                (&met[met.len() - 1].1[..], &met[met.len() - 1].2[..])
            );
            rows.extend(met.into_iter().map(|(_, key, value)| (key, value)));
        }
        more = if forward { cursor.next(reader) } else { cursor.prev(reader) }.unwrap();
    }
    if !forward {
        rows.reverse();
    }
    rows
}

/// Splitmix64: deterministic by its seed.
struct Random(u64);

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % n
    }
}

fn key(n: u64) -> Vec<u8> {
    format!("key{n:06}").into_bytes()
}

type Model = BTreeMap<Vec<u8>, Vec<u8>>;

/// Compares row by row, so that a failure names the first difference and not all rows.
fn same(rows: &[(Vec<u8>, Vec<u8>)], model: &Model, seed: u64, step: usize) {
    for (row, expected) in rows.iter().zip(model) {
        let key = String::from_utf8_lossy(&row.0);
        assert_eq!(row.0, *expected.0, "seed {seed} step {step} at {key}");
        assert!(row.1 == *expected.1, "seed {seed} step {step}: value of {key}");
    }
    assert_eq!(rows.len(), model.len(), "seed {seed} step {step}");
}

fn value(random: &mut Random) -> Vec<u8> {
    let length = match random.below(40) {
        0 => 1500 + random.below(20_000),
        _ => random.below(120),
    };
    let seed = random.below(256) as u8;
    (0..length).map(|i| seed.wrapping_add((i / 7) as u8)).collect()
}

/// Keys that random histories are about.
const KEYS: u64 = 1500;

/// Writes some keys, which are then undone or in the model.
fn random_writes(bench: &mut Bench, random: &mut Random, model: &mut Model) {
    let mut writes = BTreeMap::new();
    let ascending = random.below(4) == 0;
    let start = random.below(KEYS);
    for i in 0..random.below(30) {
        let key = key(if ascending { start + i } else { random.below(KEYS) });
        let value = (random.below(3) > 0).then(|| value(random));
        writes.insert(key, value);
    }
    let rolled_back = random.below(6) == 0;
    if rolled_back {
        let status = TxnStatus::new(9);
        for (i, (key, _)) in writes.iter().enumerate() {
            bench.tree.write(key, WriteOp::Update(b"never"), &status, i as u32 + 1).unwrap();
        }
        status.abort();
    } else {
        bench.commit(&writes.clone().into_iter().collect::<Vec<_>>());
        for (key, value) in writes {
            match value {
                Some(value) => model.insert(key, value),
                None => model.remove(&key),
            };
        }
    }
}

/// Some keys and their neighbours are as the model has them.
fn look_around(bench: &Bench, random: &mut Random, model: &Model, when: &str) {
    let reader = Reader::at(Timestamp::MAX);
    let mut cursor = TreeCursor::new(bench.tree.clone());
    for _ in 0..5 {
        let key = key(random.below(KEYS));
        let found = cursor.get(&reader, &key).unwrap().then(|| cursor.value().unwrap().to_vec());
        assert_eq!(found.as_ref(), model.get(&key), "{when}");
        let next = cursor.next(&reader).unwrap().then(|| cursor.key().to_vec());
        let after = (std::ops::Bound::Excluded(key.clone()), std::ops::Bound::Unbounded);
        assert_eq!(next.as_ref(), model.range(after).next().map(|e| e.0), "{when}");
        let before = cursor.seek(&reader, Seek::Before, &key).unwrap().then(|| cursor.key().to_vec());
        assert_eq!(before.as_ref(), model.range(..key).next_back().map(|e| e.0), "{when}");
    }
}

/// Deletes most rows of a stretch.
fn thin_out(bench: &Bench, random: &mut Random, model: &mut Model) {
    let start = random.below(KEYS);
    let gone: Vec<_> =
        (start..start + 300).filter(|n| n % 8 != 0 && model.remove(&key(*n)).is_some()).collect();
    bench.commit(&gone.into_iter().map(|n| (key(n), None)).collect::<Vec<_>>());
}

/// What sees the bench at each step of a history, and what it should have.
type Look<'a> = &'a mut dyn FnMut(&Bench, &Model);

/// Returns how many leaves were merged.
fn random_history(mut bench: Bench, seed: u64, steps: usize, look: Look<'_>) -> u64 {
    let mut random = Random(seed);
    let mut model = Model::new();
    let mut old: Vec<(SnapshotGuard, Model)> = Vec::new();
    let mut staying = TreeCursor::new(bench.tree.clone());
    for step in 0..steps {
        random_writes(&mut bench, &mut random, &mut model);
        match random.below(20) {
            0 => old.push((bench.context.clock.snapshot(step as u64), model.clone())),
            1 if !old.is_empty() => drop(old.swap_remove(random.below(old.len() as u64) as usize)),
            2 => {
                if let (Some(root), true) = (bench.checkpoint(), old.is_empty()) {
                    staying.reset();
                    bench.reopen(root);
                    staying = TreeCursor::new(bench.tree.clone());
                }
            }
            3 => bench.write_early(&mut || random.below(3) > 0),
            4 => bench.abandon_checkpoint(),
            6 => bench.context.attention().merge_thin().unwrap(),
            8 => bench.pack(),
            9 => bench.context.attention().fold_due().unwrap(),
            7 => thin_out(&bench, &mut random, &mut model),
            5 => {
                for (snapshot, model) in &old {
                    let reader = Reader::at(snapshot.timestamp());
                    same(&scan(&bench.tree, &reader, true), model, seed, step);
                    same(&scan(&bench.tree, &reader, false), model, seed, step);
                }
            }
            _ => {}
        }
        // Neighbours, so that it need not leave the leaf that it has; now and then through the eyes of another reader.
        let near = random.below(KEYS);
        for i in 0..6 {
            let key = key(near + random.below(8));
            let past = old.get(random.below(4) as usize).filter(|_| i % 2 == 1);
            let (at, model) =
                past.map_or((Timestamp::MAX, &model), |(guard, past)| (guard.timestamp(), past));
            let reader = Reader::at(at);
            let found = staying.get(&reader, &key).unwrap().then(|| staying.value().unwrap().to_vec());
            assert_eq!(found.as_ref(), model.get(&key), "seed {seed} step {step}, read at {at}");
            if i == 4 {
                staying.next(&reader).unwrap();
            }
        }
        look_around(&bench, &mut random, &model, &format!("seed {seed} step {step}"));
        look(&bench, &model);
        if step % 16 == 0 {
            let reader = Reader::at(Timestamp::MAX);
            same(&scan(&bench.tree, &reader, true), &model, seed, step);
            same(&scan(&bench.tree, &reader, false), &model, seed, step);
        }
    }
    let root = bench.checkpoint();
    if let Some(root) = root {
        bench.reopen(root);
    }
    same(&scan(&bench.tree, &Reader::at(Timestamp::MAX), true), &model, seed, steps);
    bench.context.attention().merged_leaves()
}

#[test]
fn random_histories_read_as_the_model_says() {
    let merged: u64 =
        (0..12).map(|seed| random_history(Bench::new(64 << 20), seed, 300, &mut |_, _| {})).sum();
    assert!(merged > 20, "{merged} leaves were merged");
}

#[test]
fn a_cache_far_too_small_changes_nothing() {
    let merged: u64 =
        (100..108).map(|seed| random_history(Bench::new(512 << 10), seed, 300, &mut |_, _| {})).sum();
    assert!(merged > 20, "{merged} leaves were merged");
}

#[test]
fn early_images_are_what_a_checkpoint_would_write_and_leave_nothing_behind() {
    let rows = |byte: u8, step: usize| {
        (0..3000).step_by(step).map(move |n| (key(n), Some(vec![byte; 100]))).collect::<Vec<_>>()
    };
    let used = |early: bool| {
        let mut bench = Bench::new(64 << 20);
        let write_early = |bench: &Bench| bench.write_early(&mut || early);
        bench.commit(&rows(1, 1));
        bench.tree.write_finished(0, &|| !early).unwrap();
        bench.abandon_checkpoint();
        bench.checkpoint();
        bench.commit(&rows(2, 50));
        write_early(&bench);
        bench.commit(&rows(3, 70));
        bench.abandon_checkpoint();
        write_early(&bench);
        bench.checkpoint();
        bench.commit(&rows(4, 1));
        let root = (bench.checkpoint(), bench.checkpoint()).0.unwrap();
        bench.reopen(root);
        bench.checkpoint();
        assert_eq!(scan(&bench.tree, &Reader::at(Timestamp::MAX), true).len(), 3000);
        bench.used()
    };
    assert_eq!(used(true), used(false));
}

#[test]
fn a_queue_does_not_grow_behind_its_reader() {
    let mut bench = Bench::new(64 << 20);
    let old = bench.context.clock.snapshot(1);
    for i in 0..30_000u64 {
        bench.commit(&[(key(i), Some(vec![7; 40]))]);
        if i >= 100 {
            bench.commit(&[(key(i - 100), None)]);
        }
    }
    let reader = Reader::at(Timestamp::MAX);
    let mut cursor = TreeCursor::new(bench.tree.clone());
    assert!(cursor.first(&reader).unwrap());
    assert_eq!(cursor.key(), key(29_900));
    drop(old);
    bench.checkpoint();
    assert!(cursor.first(&reader).unwrap());
    assert_eq!(scan(&bench.tree, &reader, true).len(), 100);
    assert!(bench.tree.leaves() < 20, "{} leaves", bench.tree.leaves());
}

#[test]
fn an_uncommitted_transaction_larger_than_the_cache_is_kept_and_can_go() {
    let bench = Bench::new(128 << 10);
    let big = TxnStatus::new(5);
    for i in 0..20_000u64 {
        bench.tree.write(&key(i), WriteOp::Insert(&[1; 100]), &big, i as u32 + 1).unwrap();
    }
    assert!(bench.context.cache.used() < 2 << 20, "{} bytes", bench.context.cache.used());
    let own = Reader { snapshot: 0, own: Some(&big), pending: false, fate: None };
    assert_eq!(scan(&bench.tree, &own, true).len(), 20_000);
    assert!(scan(&bench.tree, &Reader::at(Timestamp::MAX), true).is_empty());
    big.void(10_000, 20_000);
    assert_eq!(scan(&bench.tree, &own, true).len(), 10_000);
    bench.context.clock.publish(&big);
    assert_eq!(scan(&bench.tree, &Reader::at(Timestamp::MAX), false).len(), 10_000);
}

#[test]
fn an_update_of_every_row_in_one_transaction_splits_no_leaf() {
    for cache_bytes in [64 << 20, 64 << 10] {
        let bench = Bench::new(cache_bytes);
        let rows = |byte: u8| (0..2000).map(move |n| (key(n), Some(vec![byte; 100]))).collect::<Vec<_>>();
        bench.commit(&rows(1));
        bench.commit(&rows(2));
        let before = bench.tree.leaves();
        for byte in 3..6 {
            bench.commit(&rows(byte));
        }
        assert_eq!(bench.tree.leaves(), before);
        let full = 2000 * 118 / 4096;
        assert!((full..full * 3 / 2).contains(&before), "{before} leaves where {full} would be full");
    }
}

#[test]
fn a_cursor_that_stays_descends_once_and_misses_nothing() {
    let bench = Bench::new(64 << 20);
    let row = |n: u64| (key(n), Some(vec![7; 20]));
    bench.commit(&(0..40).map(|n| row(2 * n)).collect::<Vec<_>>());
    let latest = Reader::at(Timestamp::MAX);
    let mut cursor = TreeCursor::new(bench.tree.clone());
    for n in 0..40 {
        assert!(cursor.get(&latest, &key(2 * n)).unwrap());
        assert!(!cursor.get(&latest, &key(2 * n + 1)).unwrap());
        bench.commit(&[row(2 * n + 1)]);
        assert!(cursor.get(&latest, &key(2 * n + 1)).unwrap());
    }
    let pinned = cursor.pinned;
    assert!(pinned <= 5, "{pinned}");
    // The leaf is split many times, so that the cursor has to move.
    for n in 0..5000 {
        assert!(!cursor.get(&latest, &key(100 + n)).unwrap());
        bench.commit(&[row(100 + n)]);
        assert!(cursor.get(&latest, &key(100 + n)).unwrap());
    }
    assert!(cursor.pinned > pinned && cursor.pinned < 2000, "{}", cursor.pinned);
}

/// Whoever commits a key leaves its place to the next, as a row lock does: that one's look-up must find it, whatever
/// happens to the leaves.
#[test]
fn cursors_that_stay_on_threads_find_what_was_committed_before() {
    let bench = Bench::new(1 << 20);
    let keys: Vec<crate::sync::Mutex<bool>> = (0..3000).map(|_| crate::sync::Mutex::new(false)).collect();
    let number = std::sync::atomic::AtomicU64::new(0);
    std::thread::scope(|scope| {
        for seed in 0..3u64 {
            let (bench, keys, number) = (&bench, &keys, &number);
            scope.spawn(move || {
                let mut random = Random(seed);
                let mut cursor = TreeCursor::new(bench.tree.clone());
                let latest = Reader::at(Timestamp::MAX);
                while number.fetch_add(1, Ordering::SeqCst) < 30_000 {
                    let near = random.below(keys.len() as u64 - 8);
                    for _ in 0..4 {
                        let n = near + random.below(8);
                        let mut exists = keys[n as usize].lock();
                        assert_eq!(cursor.get(&latest, &key(n)).unwrap(), *exists, "{n}");
                        // More go than come, then the other way round: leaves are removed and split.
                        let keep = *exists == (number.load(Ordering::SeqCst) / 5000 % 2 == 0);
                        if !keep {
                            *exists = !*exists;
                            bench.commit(&[(key(n), exists.then(|| vec![1; 60]))]);
                        }
                    }
                }
            });
        }
        scope.spawn(|| {
            let mut generation = 0;
            while number.load(Ordering::SeqCst) < 30_000 {
                generation += 1;
                bench.space.begin(generation);
                let at = bench.context.clock.snapshot(0);
                bench.tree.checkpoint(Moment::at(at.timestamp()), generation, 1).unwrap();
                bench.tree.checkpoint_abandoned();
                bench.space.abandon(generation);
            }
        });
    });
}

#[test]
fn readers_and_writers_on_threads_agree() {
    let bench = Bench::new(256 << 10);
    let accounts = 400u64;
    let all: Vec<_> = (0..accounts).map(|i| (key(i), Some(100u64.to_be_bytes().to_vec()))).collect();
    bench.commit(&all);
    let balance = |cursor: &TreeCursor| u64::from_be_bytes(cursor.value().unwrap().try_into().unwrap());
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for seed in 0..2u64 {
            let (bench, stop) = (&bench, &stop);
            scope.spawn(move || {
                while !stop.load(Ordering::SeqCst) {
                    let snapshot = bench.context.clock.snapshot(seed + 10);
                    let reader = Reader::at(snapshot.timestamp());
                    let mut cursor = TreeCursor::new(bench.tree.clone());
                    let (mut sum, mut rows) = (0, 0);
                    let mut more =
                        if seed == 0 { cursor.first(&reader) } else { cursor.last(&reader) }.unwrap();
                    while more {
                        sum += balance(&cursor);
                        rows += 1;
                        more = if seed == 0 { cursor.next(&reader) } else { cursor.prev(&reader) }.unwrap();
                    }
                    assert_eq!((rows, sum), (accounts, accounts * 100));
                }
            });
        }
        let mut random = Random(42);
        let mut cursor = TreeCursor::new(bench.tree.clone());
        for _ in 0..30_000 {
            let (from, to) = (random.below(accounts), random.below(accounts));
            let latest = Reader::at(Timestamp::MAX);
            cursor.get(&latest, &key(from)).unwrap();
            let a = balance(&cursor);
            cursor.get(&latest, &key(to)).unwrap();
            let b = balance(&cursor);
            if from != to && a > 0 {
                let row = |n, v: u64| (key(n), Some(v.to_be_bytes().to_vec()));
                bench.commit(&[row(from, a - 1), row(to, b + 1)]);
            }
        }
        stop.store(true, Ordering::SeqCst);
    });
}

#[test]
fn leaves_read_from_disk_share_the_bound_between_them() {
    let mut bench = Bench::new(8 << 20);
    bench.commit(&(0..2000).map(|i| (key(i), Some(vec![i as u8; 100]))).collect::<Vec<_>>());
    let root = bench.checkpoint().unwrap();
    bench.reopen(root);
    let Node::Inner(inner) = &*bench.tree.root.load_full() else { panic!("one leaf only") };
    let page = inner.view().unwrap().as_ref().unwrap().clone();
    let views: Vec<_> = page.children().map(|child| child.leaf().unwrap().view()).collect();
    assert!(views.len() > 5);
    assert!(views.windows(2).all(|pair| pair[0].high.as_ref().unwrap().is_shared_with(&pair[1].low)));
    assert!(views[views.len() - 1].high.is_none());
}
