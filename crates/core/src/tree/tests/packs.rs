//! Trees that are packed: leaves are full afterwards, and nobody who reads or writes notices.

use super::*;
use crate::tree::leaf::Base;
use crate::tree::{Moved, Packing as Walk};

const LATEST: Reader<'static> = Reader { snapshot: Timestamp::MAX, own: None, pending: false, fate: None };

fn row(n: u64) -> (Vec<u8>, Vec<u8>) {
    (key(n), (0..100).map(|i| (n as u8).wrapping_mul(31) ^ i).collect())
}

fn rows(numbers: impl Iterator<Item = u64>) -> Vec<(Vec<u8>, Vec<u8>)> {
    numbers.map(row).collect()
}

impl Bench {
    /// Nodes of the tree.
    pub(super) fn nodes(&self) -> usize {
        let mut count = 0;
        self.each_node(&mut |_| count += 1);
        count
    }

    fn with_rows(rows: u64) -> Bench {
        let bench = Bench::new(64 << 20);
        let all: Vec<_> = (0..rows).map(|n| (key(n), Some(row(n).1))).collect();
        for part in all.chunks(200) {
            bench.commit(part);
        }
        bench
    }

    /// The whole walk; nobody else writes checkpoints.
    pub(super) fn pack(&self) {
        let mut at = Vec::new();
        loop {
            match self.tree.pack_at(&at).unwrap() {
                Walk::At(next) => at = next,
                Walk::Done => return,
                Walk::Later => panic!("a checkpoint is under way"),
            }
        }
    }

    fn relocate(&self, limit: u64, moved: Moved) {
        let mut at = Vec::new();
        while let Some(next) = self.tree.relocate_at(&at, limit, moved).unwrap() {
            at = next;
        }
    }

    /// Bytes of the leaves' blocks, of how many leaves.
    fn filled(&self) -> (usize, usize) {
        let (mut bytes, mut leaves) = (0, 0);
        self.each_leaf(&mut |node, leaf| {
            bytes += leaf.base(node, &leaf.view()).unwrap().bytes().len();
            leaves += 1;
        });
        (bytes, leaves)
    }

    fn assert_packed(&self) {
        let (bytes, leaves) = self.filled();
        let most = bytes * 10 / (9 * self.spec.block_bytes as usize) + 1;
        assert!(leaves <= most, "{leaves} leaves have {bytes} bytes");
    }

    pub(super) fn assert_whole(&self, root: Option<&TreeRoot>) {
        let findings = self.found_in_memory();
        assert!(findings.is_empty(), "{findings}");
        if let Some(root) = root {
            let findings = self.found_on_disk(root);
            assert!(findings.is_empty(), "{findings}");
        }
    }
}

#[test]
fn leaves_are_full_whatever_was_deleted() {
    const ROWS: u64 = 40_000;
    type Stays = fn(u64) -> bool;
    let stays: [Stays; 5] =
        [|n| n % 2 == 0, |n| n % 10 == 0, |n| n % 100 == 7, |n| n / 1000 % 2 == 0 || n % 3 == 0, |n| n == 5];
    for stays in stays {
        let mut bench = Bench::with_rows(ROWS);
        bench.checkpoint();
        bench.commit(&(0..ROWS).filter(|n| !stays(*n)).map(|n| (key(n), None)).collect::<Vec<_>>());
        let expected = rows((0..ROWS).filter(|n| stays(*n)));
        bench.pack();
        bench.assert_packed();
        assert!(scan(&bench.tree, &LATEST, true) == expected);
        bench.assert_whole(None);
        let root = bench.checkpoint().unwrap();
        bench.assert_whole(Some(&root));
        // Inner nodes as well.
        let (_, leaves) = bench.filled();
        let inner = bench.nodes() - leaves;
        assert!(inner <= leaves / 200 + 3, "{inner} inner nodes over {leaves} leaves");
        bench.reopen(root);
        assert!(scan(&bench.tree, &LATEST, false) == expected);
        bench.assert_whole(None);
    }
}

/// A walk over a tree that is packed changes nothing and reads little.
#[test]
fn a_tree_that_is_packed_stays_as_it_is() {
    const ROWS: u64 = 20_000;
    let mut random = Random(4);
    let mut bench = Bench::new(64 << 20);
    for _ in 0..ROWS / 100 {
        let writes: BTreeMap<_, _> = (0..100).map(|_| row(random.below(1_000_000))).collect();
        bench.commit(&writes.into_iter().map(|(k, v)| (k, Some(v))).collect::<Vec<_>>());
    }
    bench.checkpoint();
    let before = bench.tree.leaves();
    bench.pack();
    assert!(bench.tree.leaves() < before * 85 / 100, "{} of {before} leaves", bench.tree.leaves());
    bench.assert_packed();
    bench.checkpoint();
    bench.checkpoint();
    bench.evict_all();
    assert!(!bench.tree.is_dirty());
    bench.pack();
    assert!(!bench.tree.is_dirty(), "a packed tree was packed again");
    let (mut loaded, mut leaves) = (0, 0);
    bench.each_leaf(&mut |_, leaf| {
        leaves += 1;
        loaded += u64::from(matches!(leaf.view().base, Base::Loaded(_)));
    });
    assert!(loaded < leaves / 5, "{loaded} of {leaves} leaves were read");
}

#[test]
fn old_snapshots_and_undecided_transactions_see_what_they_saw() {
    const ROWS: u64 = 4000;
    for commits in [true, false] {
        let mut bench = Bench::with_rows(ROWS);
        bench.checkpoint();
        let old = bench.context.clock.snapshot(1);
        bench.commit(&(0..ROWS).filter(|n| n % 2 == 1).map(|n| (key(n), None)).collect::<Vec<_>>());
        let status = TxnStatus::new(5);
        for (i, n) in (0..ROWS).step_by(40).enumerate() {
            bench.tree.write(&key(n), WriteOp::Delete, &status, i as u32 + 1).unwrap();
        }
        let reader = Reader::at(old.timestamp());
        for round in 0..3 {
            bench.pack();
            assert!(scan(&bench.tree, &reader, round == 1) == rows(0..ROWS), "round {round}");
            assert!(scan(&bench.tree, &LATEST, round != 1) == rows((0..ROWS).step_by(2)), "round {round}");
            let own = Reader { snapshot: 0, own: Some(&status), pending: false, fate: None };
            let mut cursor = TreeCursor::new(bench.tree.clone());
            assert!(!cursor.get(&own, &key(80)).unwrap());
            bench.assert_whole(None);
            bench.checkpoint();
        }
        match commits {
            true => drop(bench.context.clock.publish(&status)),
            false => status.abort(),
        }
        assert!(scan(&bench.tree, &reader, true) == rows(0..ROWS));
        drop(old);
        bench.pack();
        assert_eq!(bench.context.past.bytes(), 0, "history that nobody needs");
        bench.assert_packed();
        let expected = rows((0..ROWS).step_by(2).filter(|n| !commits || n % 40 != 0));
        let root = bench.checkpoint().unwrap();
        bench.assert_whole(Some(&root));
        bench.reopen(root);
        assert!(scan(&bench.tree, &LATEST, true) == expected);
    }
}

#[test]
fn cursors_go_on_in_both_directions_while_the_tree_is_packed_around_them() {
    const ROWS: u64 = 30_000;
    for forward in [true, false] {
        let bench = Bench::with_rows(ROWS);
        bench.commit(&(0..ROWS).filter(|n| n % 5 != 0).map(|n| (key(n), None)).collect::<Vec<_>>());
        let step = |cursor: &mut TreeCursor| match forward {
            true => cursor.next(&LATEST).unwrap(),
            false => cursor.prev(&LATEST).unwrap(),
        };
        let starts: Vec<u64> = (0..ROWS).step_by(2995).collect();
        let mut cursors: Vec<TreeCursor> = Vec::new();
        for &start in &starts {
            let mut cursor = TreeCursor::new(bench.tree.clone());
            assert!(cursor.get(&LATEST, &key(start)).unwrap());
            cursors.push(cursor);
        }
        // A few steps of the cursors between any two of the walk.
        let mut met: Vec<Vec<Vec<u8>>> = vec![Vec::new(); starts.len()];
        let (mut at, mut ended) = (Walk::At(Vec::new()), 0);
        while ended < starts.len() || at != Walk::Done {
            if let Walk::At(key) = &at {
                at = bench.tree.pack_at(key).unwrap();
            }
            ended = 0;
            for (cursor, met) in cursors.iter_mut().zip(&mut met) {
                match step(cursor) {
                    true => met.push(cursor.key().to_vec()),
                    false => ended += 1,
                }
            }
            assert_ne!(at, Walk::Later);
        }
        for (start, met) in starts.iter().zip(met) {
            let expected: Vec<_> = match forward {
                true => (start + 5..ROWS).step_by(5).map(key).collect(),
                false => (0..*start).rev().filter(|n| n % 5 == 0).map(key).collect(),
            };
            assert!(met == expected, "from {start}: {} of {} rows", met.len(), expected.len());
        }
        bench.assert_whole(None);
    }
}

/// Whether the checkpoint that the walk meets becomes durable or not.
#[test]
fn a_walk_waits_for_a_checkpoint_and_goes_on_where_it_was() {
    const ROWS: u64 = 4000;
    for durable in [true, false] {
        let mut bench = Bench::with_rows(ROWS);
        bench.checkpoint();
        bench.commit(&(0..ROWS).filter(|n| n % 2 == 1).map(|n| (key(n), None)).collect::<Vec<_>>());
        let Walk::At(at) = bench.tree.pack_at(&key(ROWS / 2)).unwrap() else { panic!("no walk") };
        let generation = bench.generation + 1;
        bench.space.begin(generation);
        let snapshot = bench.context.clock.snapshot(0);
        bench.tree.checkpoint(Moment::at(snapshot.timestamp()), generation, 1).unwrap();
        drop(snapshot);
        // All that changed has an image that is not durable yet.
        assert_eq!(bench.tree.pack_at(&at).unwrap(), Walk::Later);
        match durable {
            true => {
                bench.space.write_map(generation).unwrap();
                bench.tree.checkpoint_durable();
                bench.space.durable(generation);
                bench.generation = generation;
            }
            false => {
                bench.tree.checkpoint_abandoned();
                bench.space.abandon(generation);
            }
        }
        bench.pack();
        bench.assert_packed();
        let root = bench.checkpoint().unwrap();
        bench.assert_whole(Some(&root));
        bench.reopen(root);
        assert!(scan(&bench.tree, &LATEST, true) == rows((0..ROWS).step_by(2)));
    }
}

/// The file ends where its content could, also if large values lie at its end.
#[test]
fn what_lies_at_the_end_of_the_file_is_moved_to_its_beginning() {
    let text = |n: u64| (0..3000 + n % 500).map(|i| (i * n % 251) as u8).collect::<Vec<_>>();
    const ROWS: u64 = 8000;
    let mut bench = Bench::with_rows(ROWS);
    for n in (0..ROWS).step_by(20) {
        bench.commit(&[(key(n), Some(text(n)))]);
    }
    bench.checkpoint();
    // What stays lies at the end.
    let stays = |n: u64| n > ROWS * 9 / 10;
    bench.commit(&(0..ROWS).filter(|n| !stays(*n)).map(|n| (key(n), None)).collect::<Vec<_>>());
    let before = bench.space.file_bytes();
    bench.pack();
    bench.checkpoint();
    for moved in [Moved::Blocks, Moved::Values, Moved::Blocks] {
        let (_, used) = bench.space.extent_usage().unwrap();
        let limit = used + used / 16;
        bench.space.prefer_below(Some(limit));
        bench.relocate(limit, moved);
        bench.checkpoint();
        bench.assert_whole(None);
    }
    bench.space.trim().unwrap();
    let (end, used) = bench.space.extent_usage().unwrap();
    assert!(end <= used + used / 8, "{used} bytes in a file of {end}, which was of {before}");
    bench.space.prefer_below(None);
    let expected: Vec<_> = (0..ROWS)
        .filter(|n| stays(*n))
        .map(|n| if n % 20 == 0 { (key(n), text(n)) } else { row(n) })
        .collect();
    assert!(scan(&bench.tree, &LATEST, true) == expected);
    bench.commit(&[(key(1), Some(b"x".to_vec()))]);
    let root = bench.checkpoint().unwrap();
    bench.assert_whole(Some(&root));
    bench.reopen(root);
    assert_eq!(scan(&bench.tree, &LATEST, true).len(), expected.len() + 1);
}

#[test]
fn threads_find_what_they_wrote_while_the_tree_is_packed() {
    const ROWS: u64 = 6000;
    let bench = Bench::with_rows(ROWS);
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let (bench, stop) = (&bench, &stop);
        for forward in [true, false] {
            scope.spawn(move || {
                while !stop.load(Ordering::SeqCst) {
                    let snapshot = bench.context.clock.snapshot(1);
                    let rows = scan(&bench.tree, &Reader::at(snapshot.timestamp()), forward);
                    // Each transaction takes every second row of a stretch away, or puts them back.
                    let of = |stretch: u64| {
                        let (from, to) = (key(stretch * 200), key(stretch * 200 + 200));
                        rows.iter().filter(|(k, _)| *k >= from && *k < to).count()
                    };
                    assert!((0..ROWS / 200).all(|stretch| [100, 200].contains(&of(stretch))));
                }
            });
        }
        scope.spawn(move || {
            let mut at = Vec::new();
            while !stop.load(Ordering::SeqCst) {
                match bench.tree.pack_at(&at).unwrap() {
                    Walk::At(next) => at = next,
                    _ => at.clear(),
                }
            }
        });
        scope.spawn(move || {
            let mut generation = 0;
            while !stop.load(Ordering::SeqCst) {
                generation += 1;
                bench.space.begin(generation);
                let at = bench.context.clock.snapshot(0);
                bench.tree.checkpoint(Moment::at(at.timestamp()), generation, 1).unwrap();
                bench.tree.checkpoint_abandoned();
                bench.space.abandon(generation);
                bench.tree.write_finished(0, &|| false).unwrap();
            }
        });
        let mut random = Random(3);
        let mut gone = [false; (ROWS / 200) as usize];
        let mut cursor = TreeCursor::new(bench.tree.clone());
        for _ in 0..1500 {
            let stretch = random.below(ROWS / 200);
            let is_gone = gone[stretch as usize];
            gone[stretch as usize] = !is_gone;
            let keys = (stretch * 200..stretch * 200 + 200).filter(|n| n % 2 == 1);
            bench.commit(&keys.map(|n| (key(n), is_gone.then(|| row(n).1))).collect::<Vec<_>>());
            for _ in 0..20 {
                let n = random.below(ROWS);
                let is_there = n.is_multiple_of(2) || !gone[(n / 200) as usize];
                assert_eq!(cursor.get(&LATEST, &key(n)).unwrap(), is_there);
            }
        }
        stop.store(true, Ordering::SeqCst);
    });
    bench.pack();
    bench.assert_packed();
    bench.assert_whole(None);
}
