//! Leaves that have lost most of their rows: they are put together, and nobody who reads or writes notices.

use super::*;
use crate::cache::Evictable;
use crate::tree::leaf::Base;

/// Of so many rows one stays.
const STAYS: u64 = 10;

const LATEST: Reader<'static> = Reader { snapshot: Timestamp::MAX, own: None, pending: false, fate: None };

fn row(n: u64) -> (Vec<u8>, Vec<u8>) {
    (key(n), (0..100).map(|i| (n as u8).wrapping_mul(31) ^ i).collect())
}

fn all(rows: u64) -> Vec<(Vec<u8>, Vec<u8>)> {
    (0..rows).map(row).collect()
}

fn left(rows: u64) -> Vec<(Vec<u8>, Vec<u8>)> {
    (0..rows).step_by(STAYS as usize).map(row).collect()
}

impl Bench {
    fn filled_with(rows: u64) -> Bench {
        let bench = Bench::new(64 << 20);
        for part in all(rows).chunks(200) {
            bench.commit(&part.iter().cloned().map(|(key, value)| (key, Some(value))).collect::<Vec<_>>());
        }
        bench
    }

    /// Deletes all rows but each tenth.
    fn thin_out(&self, rows: u64) {
        let gone: Vec<_> = (0..rows).filter(|n| n % STAYS != 0).map(|n| (key(n), None)).collect();
        self.commit(&gone);
    }

    /// What a reader, or time, does sooner or later to leaves with changes; then the background's part.
    fn fold_and_merge(&self) -> u64 {
        let before = self.merged();
        self.each_leaf(&mut |node, _| self.tree.maintain(node).unwrap());
        self.context.attention().merge_thin().unwrap();
        self.merged() - before
    }

    fn merged(&self) -> u64 {
        self.context.attention().merged_leaves()
    }

    fn assert_sound(&self, root: Option<&TreeRoot>) {
        let findings = self.found_in_memory();
        assert!(findings.is_empty(), "{findings}");
        if let Some(root) = root {
            let findings = self.found_on_disk(root);
            assert!(findings.is_empty(), "{findings}");
        }
    }
}

#[test]
fn scattered_deletions_give_back_leaves_and_bytes_with_the_next_checkpoint() {
    for rows in [50, 4000, 20_000] {
        let mut bench = Bench::filled_with(rows);
        bench.checkpoint();
        let (leaves, bytes, nodes) = (bench.tree.leaves(), bench.used(), bench.nodes());
        bench.thin_out(rows);
        let root = bench.checkpoint().unwrap();
        assert!(bench.tree.leaves() <= leaves / 4 + 1, "{} of {leaves} leaves", bench.tree.leaves());
        assert!(bench.nodes() <= nodes / 4 + 3, "{} of {nodes} nodes", bench.nodes());
        assert!(scan(&bench.tree, &LATEST, true) == left(rows));
        bench.assert_sound(Some(&root));
        bench.checkpoint();
        assert!(bench.used() <= bytes / 3 + 8192, "{} of {bytes} bytes", bench.used());
        bench.reopen(root);
        assert!(scan(&bench.tree, &LATEST, false) == left(rows));
        bench.assert_sound(None);
    }
}

#[test]
fn leaves_that_were_evicted_are_read_to_be_merged_and_dense_ones_are_not() {
    let mut bench = Bench::filled_with(4000);
    bench.checkpoint();
    let leaves = bench.tree.leaves();
    // In the first half each leaf is nearly empty, in the second nothing changes.
    bench.commit(&(0..2000).filter(|n| n % STAYS != 0).map(|n| (key(n), None)).collect::<Vec<_>>());
    bench.each_leaf(&mut |node, _| {
        bench.tree.maintain(node).unwrap();
        node.evict().unwrap();
    });
    let root = bench.checkpoint().unwrap();
    assert!(bench.tree.leaves() < leaves * 3 / 4, "{} of {leaves}", bench.tree.leaves());
    let mut loaded = 0;
    bench.each_leaf(&mut |_, leaf| loaded += u64::from(matches!(leaf.view().base, Base::Loaded(_))));
    assert!(loaded < leaves / 4, "{loaded} leaves are in memory");
    bench.assert_sound(Some(&root));
}

#[test]
fn a_snapshot_from_before_reads_all_rows_whatever_is_merged() {
    const ROWS: u64 = 3000;
    let mut bench = Bench::filled_with(ROWS);
    bench.checkpoint();
    let old = bench.context.clock.snapshot(1);
    bench.thin_out(ROWS);
    assert!(bench.fold_and_merge() > 0);
    for round in 0..3 {
        let reader = Reader::at(old.timestamp());
        assert!(scan(&bench.tree, &reader, true) == all(ROWS), "round {round}");
        assert!(scan(&bench.tree, &reader, false) == all(ROWS), "round {round}");
        let mut cursor = TreeCursor::new(bench.tree.clone());
        for n in (0..ROWS).step_by(7) {
            assert!(cursor.get(&reader, &key(n)).unwrap() && cursor.value().unwrap() == row(n).1);
        }
        assert!(scan(&bench.tree, &LATEST, round == 1) == left(ROWS), "round {round}");
        bench.assert_sound(None);
        bench.checkpoint();
    }
    let leaves = bench.tree.leaves();
    drop(old);
    bench.context.attention().collect_history().unwrap();
    assert_eq!(bench.context.past.bytes(), 0);
    // What the history was in the way of is made up for.
    bench.commit(&[(key(1), None)]);
    bench.context.attention().merge_thin().unwrap();
    assert!(bench.tree.leaves() < leaves, "{} of {leaves}", bench.tree.leaves());
    let root = bench.checkpoint().unwrap();
    bench.assert_sound(Some(&root));
}

/// Cursors that stand somewhere, each in its way, while all around them is deleted and merged.
#[test]
fn cursors_go_on_across_merges_in_both_directions() {
    const ROWS: u64 = 1500;
    for forward in [true, false] {
        for start in (0..ROWS).step_by(97) {
            let bench = Bench::filled_with(ROWS);
            let snapshot = bench.context.clock.snapshot(1);
            let readers = [Reader::at(snapshot.timestamp()), LATEST];
            let step = |cursor: &mut TreeCursor, reader: &Reader<'_>| match forward {
                true => cursor.next(reader).unwrap(),
                false => cursor.prev(reader).unwrap(),
            };
            let mut cursors = readers.map(|reader| {
                let mut cursor = TreeCursor::new(bench.tree.clone());
                assert!(cursor.get(&reader, &key(start)).unwrap());
                step(&mut cursor, &reader);
                cursor
            });
            bench.thin_out(ROWS);
            assert!(bench.fold_and_merge() > 20);
            for (cursor, reader) in cursors.iter_mut().zip(&readers) {
                let rows = if reader.snapshot == Timestamp::MAX { left(ROWS) } else { all(ROWS) };
                let from = cursor.key().to_vec();
                let mut met = Vec::new();
                while step(cursor, reader) {
                    met.push((cursor.key().to_vec(), cursor.value().unwrap().to_vec()));
                }
                let mut expected: Vec<_> = rows
                    .into_iter()
                    .filter(|(key, _)| if forward { *key > from } else { *key < from })
                    .collect();
                if !forward {
                    expected.reverse();
                }
                assert!(met == expected, "from {start}, forward: {forward}");
            }
        }
    }
}

#[test]
fn undecided_changes_go_along_and_are_decided_where_they_are() {
    for commits in [true, false] {
        let mut bench = Bench::filled_with(1000);
        bench.checkpoint();
        bench.thin_out(1000);
        let status = TxnStatus::new(9);
        let mut expected: Model = left(1000).into_iter().collect();
        for (i, n) in (5..1000).step_by(100).enumerate() {
            bench.tree.write(&key(n), WriteOp::Insert(b"new"), &status, 2 * i as u32 + 1).unwrap();
            bench.tree.write(&key(n + 5), WriteOp::Delete, &status, 2 * i as u32 + 2).unwrap();
            if commits {
                expected.insert(key(n), b"new".to_vec());
                expected.remove(&key(n + 5));
            }
        }
        assert!(bench.fold_and_merge() > 0);
        assert!(scan(&bench.tree, &LATEST, true) == left(1000));
        let own = Reader { snapshot: 0, own: Some(&status), pending: false, fate: None };
        let mut cursor = TreeCursor::new(bench.tree.clone());
        assert!(cursor.get(&own, &key(105)).unwrap() && !cursor.get(&own, &key(110)).unwrap());
        bench.checkpoint();
        match commits {
            true => drop(bench.context.clock.publish(&status)),
            false => status.abort(),
        }
        assert!(scan(&bench.tree, &LATEST, true).into_iter().collect::<Model>() == expected);
        bench.assert_sound(None);
        let root = bench.checkpoint().unwrap();
        bench.assert_sound(Some(&root));
        bench.reopen(root);
        assert!(scan(&bench.tree, &LATEST, false).into_iter().collect::<Model>() == expected);
    }
}

/// Large values move with their rows, and their extents neither go nor stay behind.
#[test]
fn large_values_move_along() {
    let text = |n: u64| vec![n as u8; 3000 + n as usize];
    let mut bench = Bench::filled_with(2000);
    for n in (0..2000).step_by(40) {
        bench.commit(&[(key(n), Some(text(n)))]);
    }
    bench.checkpoint();
    bench.thin_out(2000);
    bench.abandon_checkpoint();
    let root = bench.checkpoint().unwrap();
    assert!(bench.merged() > 0);
    let expected: Vec<_> =
        (0..2000).step_by(10).map(|n| if n % 40 == 0 { (key(n), text(n)) } else { row(n) }).collect();
    assert!(scan(&bench.tree, &LATEST, true) == expected);
    bench.assert_sound(Some(&root));
    bench.checkpoint();
    bench.reopen(root);
    assert!(scan(&bench.tree, &LATEST, false) == expected);
    bench.commit(&(0..2000).step_by(10).map(|n| (key(n), None)).collect::<Vec<_>>());
    bench.checkpoint();
    bench.commit(&[(key(1), None)]);
    bench.checkpoint();
    assert!(bench.used() < 10_000, "{} bytes are left of nothing", bench.used());
}

/// Whatever the checkpoint comes to that goes on when leaves are to be merged, they are later.
#[test]
fn merges_wait_for_a_checkpoint_and_are_made_up_for() {
    for durable in [true, false] {
        let mut bench = Bench::filled_with(2000);
        bench.checkpoint();
        let leaves = bench.tree.leaves();
        let generation = bench.generation + 1;
        bench.space.begin(generation);
        let at = bench.context.clock.snapshot(0);
        bench.commit(&(0..2000).step_by(40).map(|n| (key(n), Some(b"x".to_vec()))).collect::<Vec<_>>());
        bench.tree.checkpoint(Moment::at(at.timestamp()), generation, 1).unwrap();
        drop(at);
        bench.thin_out(2000);
        // All leaves have an image that is not durable yet.
        assert_eq!(bench.fold_and_merge(), 0);
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
        bench.context.attention().merge_thin().unwrap();
        assert!(bench.tree.leaves() < leaves / 3, "{} of {leaves}", bench.tree.leaves());
        bench.assert_sound(None);
        let root = bench.checkpoint().unwrap();
        bench.assert_sound(Some(&root));
        bench.reopen(root);
        assert_eq!(scan(&bench.tree, &LATEST, true).len(), 200);
    }
}

/// Rows come and go where a leaf is as large as it may be, and as small.
#[test]
fn a_leaf_that_grows_and_shrinks_is_not_split_and_merged_all_the_time() {
    let mut bench = Bench::filled_with(200);
    bench.checkpoint();
    for step in 0..400u64 {
        let writes: Vec<_> =
            (0..200).filter(|n| n % 3 == 0).map(|n| (key(n), (step % 2 == 1).then(|| row(n).1))).collect();
        bench.commit(&writes);
        bench.fold_and_merge();
    }
    assert!(bench.merged() <= 4, "{} merges", bench.merged());
}

#[test]
fn rows_that_come_and_go_on_threads_are_where_a_look_up_finds_them_while_leaves_are_merged() {
    const ROWS: u64 = 2000;
    let bench = Bench::filled_with(ROWS);
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let (bench, stop) = (&bench, &stop);
        for forward in [true, false] {
            scope.spawn(move || {
                while !stop.load(Ordering::SeqCst) {
                    let snapshot = bench.context.clock.snapshot(1);
                    let rows = scan(&bench.tree, &Reader::at(snapshot.timestamp()), forward);
                    // Each transaction takes all rows of a stretch away but each tenth, or puts them back.
                    let of = |stretch: u64| {
                        rows.iter()
                            .filter(|(k, _)| *k >= key(stretch * 200) && *k < key(stretch * 200 + 200))
                            .count()
                    };
                    assert!((0..ROWS / 200).all(|stretch| [20, 200].contains(&of(stretch))));
                }
            });
        }
        scope.spawn(move || {
            let mut generation = 0;
            while !stop.load(Ordering::SeqCst) {
                bench.context.attention().retire_spent().unwrap();
                bench.context.attention().collect_history().unwrap();
                bench.context.attention().merge_thin().unwrap();
                generation += 1;
                bench.space.begin(generation);
                let at = bench.context.clock.snapshot(0);
                bench.tree.checkpoint(Moment::at(at.timestamp()), generation, 1).unwrap();
                bench.tree.checkpoint_abandoned();
                bench.space.abandon(generation);
            }
        });
        let mut random = Random(3);
        let mut gone = [false; (ROWS / 200) as usize];
        let mut cursor = TreeCursor::new(bench.tree.clone());
        for _ in 0..1500 {
            let stretch = random.below(ROWS / 200);
            let is_gone = gone[stretch as usize];
            gone[stretch as usize] = !is_gone;
            let keys = (stretch * 200..stretch * 200 + 200).filter(|n| n % STAYS != 0);
            bench.commit(&keys.map(|n| (key(n), is_gone.then(|| row(n).1))).collect::<Vec<_>>());
            for _ in 0..20 {
                let n = random.below(ROWS);
                let is_there = n.is_multiple_of(STAYS) || !gone[(n / 200) as usize];
                assert_eq!(cursor.get(&LATEST, &key(n)).unwrap(), is_there);
            }
        }
        stop.store(true, Ordering::SeqCst);
    });
    assert!(bench.merged() > 0);
    bench.assert_sound(None);
}
