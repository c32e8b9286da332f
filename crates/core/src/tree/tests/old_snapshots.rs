//! What old snapshots cost others, and what they read until they give way.

use super::*;
use std::collections::VecDeque;

#[test]
fn a_hot_key_under_an_old_snapshot_keeps_few_versions() {
    let bench = Bench::new(64 << 20);
    bench.commit(&[(key(1), Some(b"first".to_vec()))]);
    let old = bench.context.clock.snapshot(1);
    for i in 0..1_000_000u64 {
        bench.commit(&[(key(1), Some(i.to_be_bytes().to_vec()))]);
    }
    assert!(bench.context.cache.used() < 64 << 10, "{} bytes", bench.context.cache.used());
    let rows = scan(&bench.tree, &Reader::at(old.timestamp()), true);
    assert_eq!(rows, [(key(1), b"first".to_vec())]);
    // What is left when the changes are folded: the old value in history, the newest in the base.
    let Node::Leaf(leaf) = &**bench.tree.root.load() else { panic!("one row, and no leaf") };
    bench.tree.maintain(&bench.tree.root.load_full()).unwrap();
    let view = leaf.view();
    let base = leaf.read_base(&view.base).unwrap();
    assert_eq!((base.len(), view.has_changes()), (1, false));
    assert_eq!(leaf.read_history(&view.history).unwrap().map(|history| history.len()), Some(1));
    let held = bench.context.past.holders();
    assert_eq!((held.len(), held[&old.timestamp()].versions), (1, 1));
    assert!(bench.context.past.bytes() < 100, "{} bytes", bench.context.past.bytes());
}

/// What a look at the first, at the last and at some range costs, in leaves.
fn leaves_looked_at(bench: &Bench, reader: &Reader<'_>, range: u64) -> [usize; 4] {
    let cost = |place: &dyn Fn(&mut TreeCursor) -> bool| {
        let mut cursor = TreeCursor::new(bench.tree.clone());
        place(&mut cursor);
        cursor.pinned
    };
    [
        cost(&|cursor| cursor.first(reader).unwrap()),
        cost(&|cursor| cursor.last(reader).unwrap()),
        cost(&|cursor| cursor.seek(reader, Seek::AtOrAfter, &key(range)).unwrap()),
        cost(&|cursor| cursor.seek(reader, Seek::AtOrBefore, &key(range)).unwrap()),
    ]
}

/// A queue that grows at one end and shrinks at the other, looked at now and then; `down` turns it round.
fn queue(cache_bytes: u64, value_bytes: usize, messages: u64, every: u64, down: bool) {
    const LENGTH: u64 = 50;
    let mut bench = Bench::new(cache_bytes);
    let place = |n: u64| key(if down { 900_000 - n } else { n });
    let filled: Vec<_> = (0..messages / 2).map(|n| (place(n), Some(vec![7; value_bytes]))).collect();
    for rows in filled.chunks(100) {
        bench.commit(rows);
    }
    let old = bench.context.clock.snapshot(1);
    let latest = Reader::at(Timestamp::MAX);
    let mut most = [0; 4];
    for n in 0..messages {
        if n >= messages / 2 {
            bench.commit(&[(place(n), Some(vec![7; value_bytes]))]);
        }
        if n >= LENGTH {
            bench.commit(&[(place(n - LENGTH), None)]);
        }
        if n % every == every - 1 {
            let now = Reader::at(bench.context.clock.last_committed());
            for reader in [&latest, &now] {
                // The first look finds out what has become empty since the last one.
                let place = if down { 900_000 - n } else { n } / 2;
                leaves_looked_at(&bench, reader, place);
                let looked = leaves_looked_at(&bench, reader, place);
                most.iter_mut().zip(looked).for_each(|(most, looked)| *most = looked.max(*most));
            }
        }
        if n % 3000 == 2999 {
            match n % 2000 {
                999 => drop(bench.checkpoint()),
                _ => bench.abandon_checkpoint(),
            }
        }
    }
    assert!(most.iter().all(|&leaves| leaves <= 3), "{most:?}");
    let past = scan(&bench.tree, &Reader::at(old.timestamp()), !down);
    assert_eq!(past.len() as u64, messages / 2);
    drop(old);
    bench.context.attention().collect_history().unwrap();
    assert_eq!(bench.context.past.bytes(), 0);
    let rows = scan(&bench.tree, &latest, true).len() as u64;
    assert_eq!(rows, LENGTH);
    let needed = LENGTH * (value_bytes as u64 + 30) / 4096 * 2 + 3;
    assert!(bench.tree.leaves() <= needed, "{} leaves for {rows} rows", bench.tree.leaves());
    assert!(bench.nodes() <= 2 * needed as usize, "{} nodes for {rows} rows", bench.nodes());
    let root = bench.checkpoint().unwrap();
    bench.reopen(root);
    assert_eq!(scan(&bench.tree, &latest, false).len() as u64, LENGTH);
}

#[test]
fn a_queue_under_an_old_snapshot_costs_no_more_than_its_ends() {
    for down in [false, true] {
        queue(64 << 20, 40, 30_000, 50, down);
        queue(64 << 20, 900, 9000, 30, down);
        queue(64 << 10, 300, 9000, 30, down);
    }
}

#[test]
fn a_queue_of_many_levels_leaves_no_inner_nodes_behind() {
    // About 4 rows a leaf, so that the tree has three levels.
    queue(64 << 20, 900, 40_000, 1000, false);
}

/// What a snapshot reads: all rows, or that it is too old.
fn read(bench: &Bench, snapshot: &SnapshotGuard, forward: bool) -> Result<Model> {
    let reader = Reader { fate: Some(snapshot.fate()), ..Reader::at(snapshot.timestamp()) };
    let mut cursor = TreeCursor::new(bench.tree.clone());
    let mut rows = Model::new();
    let mut more = if forward { cursor.first(&reader) } else { cursor.last(&reader) }?;
    while more {
        assert!(rows.insert(cursor.key().to_vec(), cursor.value()?.to_vec()).is_none());
        more = if forward { cursor.next(&reader) } else { cursor.prev(&reader) }?;
    }
    Ok(rows)
}

/// Snapshots of all ages, some of which give way at any time: those that did not read exactly, those that did fail, and
/// the sums of what is held are those of the leaves.
#[test]
fn snapshots_read_exactly_or_fail_when_others_give_way() {
    for seed in 0..4 {
        let mut bench = Bench::new(if seed % 2 == 0 { 64 << 20 } else { 256 << 10 });
        let (mut random, mut model) = (Random(seed), Model::new());
        let mut open: Vec<(SnapshotGuard, Model)> = Vec::new();
        for step in 0..250 {
            let writes: BTreeMap<_, _> = (0..random.below(40))
                .map(|_| (key(random.below(800)), (random.below(3) > 0).then(|| value(&mut random))))
                .collect();
            bench.commit(&writes.clone().into_iter().collect::<Vec<_>>());
            for (key, value) in writes {
                match value {
                    Some(value) => model.insert(key, value),
                    None => model.remove(&key),
                };
            }
            match random.below(12) {
                0..=2 => open.push((bench.context.clock.snapshot(step), model.clone())),
                3 if !open.is_empty() => drop(open.swap_remove(random.below(open.len() as u64) as usize)),
                4 => {
                    let all = bench.context.clock.snapshots();
                    if let Some(oldest) = all.iter().find(|open| !open.fate.gave_way()) {
                        assert!(bench.context.clock.give_way(oldest, 1));
                    }
                }
                5 => bench.context.attention().collect_history().unwrap(),
                6 => drop(bench.checkpoint()),
                _ => {}
            }
            for (snapshot, model) in open.iter().filter(|_| step % 8 == 0) {
                match read(&bench, snapshot, step % 16 == 0) {
                    Ok(rows) => {
                        assert!(!snapshot.fate().gave_way());
                        assert!(rows == *model, "seed {seed} step {step}");
                    }
                    Err(Error::SnapshotTooOld { .. }) => assert!(snapshot.fate().gave_way()),
                    Err(error) => panic!("{error}"),
                }
            }
        }
        let held: u64 = bench.context.past.holders().values().map(|held| held.bytes()).sum();
        assert_eq!(held, bench.context.past.bytes());
        open.retain(|(snapshot, _)| snapshot.fate().gave_way());
        bench.context.attention().collect_history().unwrap();
        assert_eq!(bench.context.past.bytes(), 0, "those who gave way hold nothing");
        assert_eq!(bench.context.spill.history_bytes(), 0);
    }
}

/// Many threads: a snapshot gives way at any moment of a scan, which then ends with the error or is exact.
#[test]
fn a_scan_whose_snapshot_gives_way_meanwhile_returns_no_wrong_row() {
    let bench = Bench::new(128 << 10);
    let rows = |round: u64| {
        (0..500).map(|n| (key(n), Some([&round.to_be_bytes()[..], &[3; 90]].concat()))).collect::<Vec<_>>()
    };
    bench.commit(&rows(0));
    let stop = AtomicBool::new(false);
    let (mut exact, mut failed) = (0, 0);
    std::thread::scope(|scope| {
        let (bench, stop) = (&bench, &stop);
        let readers: Vec<_> = [true, false]
            .map(|forward| {
                scope.spawn(move || {
                    let (mut exact, mut failed) = (0, 0);
                    while !stop.load(Ordering::SeqCst) {
                        let snapshot = bench.context.clock.snapshot(1);
                        for _ in 0..50 {
                            match read(bench, &snapshot, forward) {
                                Ok(rows) => {
                                    assert_eq!(rows.len(), 500);
                                    // All rows are of the same round.
                                    let first = rows.values().next().unwrap()[..8].to_vec();
                                    assert!(rows.values().all(|value| value[..8] == first[..]));
                                    exact += 1;
                                }
                                Err(Error::SnapshotTooOld { .. }) => {
                                    failed += 1;
                                    break;
                                }
                                Err(error) => panic!("{error}"),
                            }
                        }
                    }
                    (exact, failed)
                })
            })
            .into();
        for round in 1..600u64 {
            bench.commit(&rows(round));
            if round % 3 == 0 {
                if let Some(oldest) = bench.context.clock.snapshots().iter().find(|s| !s.fate.gave_way()) {
                    bench.context.clock.give_way(oldest, 1);
                }
                bench.context.attention().collect_history().unwrap();
            }
        }
        stop.store(true, Ordering::SeqCst);
        for reader in readers {
            let (e, f) = reader.join().unwrap();
            (exact, failed) = (exact + e, failed + f);
        }
    });
    assert!(exact > 0 && failed > 0, "{exact} exact, {failed} failed");
}

/// Rows wander over the keys, so that leaves empty, stay for an old snapshot, fill again, split and go, while scans in
/// both directions count the rows: each commit moves some, none adds or removes any.
#[test]
fn scans_miss_no_row_while_leaves_become_vacant_and_occupied_again() {
    const ROWS: u64 = 300;
    let bench = Bench::new(64 << 20);
    let row = |n: u64| (key(n), Some(vec![1; 300]));
    bench.commit(&(0..ROWS).map(row).collect::<Vec<_>>());
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for forward in [true, false] {
            let (bench, stop) = (&bench, &stop);
            scope.spawn(move || {
                let mut scans = 0;
                while !stop.load(Ordering::SeqCst) || scans < 10 {
                    let snapshot = bench.context.clock.snapshot(1);
                    let rows = scan(&bench.tree, &Reader::at(snapshot.timestamp()), forward);
                    assert_eq!(rows.len() as u64, ROWS, "forward: {forward}");
                    scans += 1;
                }
            });
        }
        let mut random = Random(7);
        let mut places: VecDeque<u64> = (0..ROWS).collect();
        let mut taken: std::collections::HashSet<u64> = places.iter().copied().collect();
        let mut old = Vec::new();
        let mut next = ROWS;
        for step in 0..6000u64 {
            let mut writes = Vec::new();
            for _ in 0..=random.below(8) {
                next = if random.below(400) == 0 { random.below(20_000) } else { (next + 1) % 20_000 };
                if !taken.insert(next) {
                    continue;
                }
                if let Some(gone) = places.pop_front() {
                    taken.remove(&gone);
                    writes.push((key(gone), None));
                }
                places.push_back(next);
                writes.push(row(next));
            }
            bench.commit(&writes);
            match step % 1000 {
                0 => old.push(bench.context.clock.snapshot(2)),
                700 => drop(old.pop()),
                _ => {}
            }
        }
        stop.store(true, Ordering::SeqCst);
    });
}
