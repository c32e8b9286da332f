//! Leaves whose delta is in the spill file and that are written to all the same.

use super::*;
use crate::cache::Evictable;

fn write(bench: &Bench, key: &[u8], op: WriteOp<'_>, status: &Arc<TxnStatus>, sequence: &mut u32) {
    *sequence += 1;
    bench.tree.write(key, op, status, *sequence).unwrap();
}

/// In no order, each once.
fn scattered(n: u64, of: u64) -> Vec<u8> {
    key(n * 7919 % of)
}

#[test]
fn entries_in_no_order_are_not_read_back_to_be_written() {
    const ENTRIES: u64 = 60_000;
    let bench = Bench::new(1 << 20);
    let status = TxnStatus::new(1);
    let mut sequence = 0;
    for n in 0..ENTRIES {
        write(&bench, &scattered(n, ENTRIES), WriteOp::Insert(b""), &status, &mut sequence);
    }
    let (written, read) = bench.context.spill.moved_bytes();
    // A key has nine bytes; splits of undecided leaves are most of it.
    assert!(written < ENTRIES * 60 && read < ENTRIES * 60, "{written} bytes written, {read} read");
    assert!(bench.context.cache.used() < 2 << 20, "{}", bench.context.cache.used());
    let own = Reader { own: Some(&status), ..Reader::at(0) };
    assert_eq!(scan(&bench.tree, &own, true).len() as u64, ENTRIES);
    assert!(scan(&bench.tree, &Reader::at(0), true).is_empty());
    let timestamp = bench.context.clock.publish(&status);
    assert_eq!(scan(&bench.tree, &Reader::at(timestamp), false).len() as u64, ENTRIES);
}

/// The leaf that is all of a small tree, evicted.
fn evicted(bench: &Bench) -> Arc<Node> {
    let root = bench.tree.root.load_full();
    root.evict().unwrap();
    assert!(matches!(root.leaf().unwrap().view().delta, leaf::changes::Changes::Spilled { .. }));
    root
}

#[test]
fn a_spilled_delta_keeps_no_transaction_that_has_committed() {
    const TRANSACTIONS: u64 = 60;
    let mut bench = Bench::new(64 << 20);
    // A leaf that is not due to be folded.
    let spec = TreeSpec { block_bytes: 32 << 10, ..bench.spec };
    bench.tree = Tree::open(8, spec, bench.space.clone(), None, bench.context.clone());
    let statuses: Vec<_> = (0..TRANSACTIONS).map(|n| TxnStatus::new(n + 1)).collect();
    // Snapshots keep the versions apart.
    let (mut commits, mut held) = (Vec::new(), Vec::new());
    for (n, status) in (0..).zip(&statuses) {
        let mut sequence = 0;
        write(&bench, &key(n), WriteOp::Insert(b"stays"), status, &mut sequence);
        write(&bench, &key(n + TRANSACTIONS), WriteOp::Insert(b"is taken back"), status, &mut sequence);
        status.void(1, 2);
        if n % 3 > 0 {
            commits.push((bench.context.clock.publish(status), n));
            held.push(bench.context.clock.snapshot(1));
        }
    }
    // In memory each transaction is charged with the first of its versions.
    let charged = |least: u64| {
        let used = bench.context.cache.used();
        assert!(used >= least * TxnStatus::BYTES as u64, "{used} bytes are charged");
        used
    };
    let before = charged(TRANSACTIONS);
    for round in 0..3 {
        evicted(&bench);
        for (n, status) in (0..).zip(&statuses) {
            let is_open = n % 3 == 0 && round == 0;
            assert_eq!(Arc::strong_count(status) > 1, is_open, "transaction {n}, round {round}");
        }
        assert!(bench.context.cache.used() < before / 3, "{}", bench.context.cache.used());
        // Not so often that the readers' costs have the leaf folded.
        for (at, n) in [commits[0], commits[commits.len() / 2]] {
            let seen = scan(&bench.tree, &Reader::at(at), false);
            assert_eq!(seen.len(), commits.iter().filter(|(other, _)| *other <= at).count());
            assert!(seen.iter().any(|row| row.0 == key(n)));
        }
        // Read back, by statuses of its own.
        charged(commits.len() as u64);
        if round == 0 {
            // Those that were open are pushed onto and decided after they were put away.
            for (n, status) in (0..).zip(&statuses).filter(|(n, _)| n % 3 == 0) {
                write(&bench, &key(n + 2 * TRANSACTIONS), WriteOp::Insert(b"more"), status, &mut 2);
                commits.extend([n, n + 2 * TRANSACTIONS].map(|n| (0, n)));
                let at = bench.context.clock.publish(status);
                commits.iter_mut().rev().take(2).for_each(|commit| commit.0 = at);
            }
        }
    }
}

#[test]
fn a_cursor_sees_what_is_pushed_onto_a_spilled_leaf() {
    let bench = Bench::new(64 << 20);
    let status = TxnStatus::new(1);
    let mut sequence = 0;
    for n in 0..60 {
        write(&bench, &key(2 * n), WriteOp::Insert(b"old"), &status, &mut sequence);
    }
    let root = evicted(&bench);
    write(&bench, &key(1), WriteOp::Insert(b"new"), &status, &mut sequence);
    write(&bench, &key(2), WriteOp::Update(b"new"), &status, &mut sequence);
    let own = Reader { own: Some(&status), ..Reader::at(0) };
    let mut cursor = TreeCursor::new(bench.tree.clone());
    {
        // Somebody else writes to the leaf: the cursor gets a copy, and the leaf stays as it is.
        let _latch = root.leaf().unwrap().latch();
        assert!(cursor.get(&own, &key(1)).unwrap() && cursor.value().unwrap() == b"new");
        assert!(cursor.next(&own).unwrap() && cursor.key() == key(2) && cursor.value().unwrap() == b"new");
        assert!(cursor.next(&own).unwrap() && cursor.key() == key(4) && cursor.value().unwrap() == b"old");
    }
    assert!(matches!(root.leaf().unwrap().view().delta, leaf::changes::Changes::Spilled { .. }));
    write(&bench, &key(5), WriteOp::Insert(b"newer"), &status, &mut sequence);
    write(&bench, &key(6), WriteOp::Delete, &status, &mut sequence);
    assert!(cursor.next(&own).unwrap() && cursor.key() == key(5));
    assert!(cursor.next(&own).unwrap() && cursor.key() == key(8));
    assert!(!cursor.get(&own, &key(6)).unwrap() && cursor.get(&own, &key(5)).unwrap());
}

#[test]
fn what_was_read_back_is_not_written_again() {
    let bench = Bench::new(64 << 20);
    let status = TxnStatus::new(1);
    let mut sequence = 0;
    for n in 0..60 {
        write(&bench, &key(2 * n), WriteOp::Insert(b"old"), &status, &mut sequence);
    }
    evicted(&bench);
    let own = Reader { own: Some(&status), ..Reader::at(0) };
    let written = || bench.context.spill.moved_bytes().0;
    let all = written();
    for _ in 0..5 {
        assert_eq!(scan(&bench.tree, &own, true).len(), 60);
        evicted(&bench);
    }
    assert_eq!(written(), all);
    // What is pushed onto it meanwhile is not lost, whether it is in memory or not, and is all that is written.
    for n in 0..60 {
        if n % 20 == 10 {
            assert_eq!(scan(&bench.tree, &own, true).len(), 60 + n as usize);
        }
        write(&bench, &key(2 * n + 1), WriteOp::Insert(&[7; 32]), &status, &mut sequence);
        if n % 5 == 0 {
            evicted(&bench);
        }
    }
    assert!(written() < 6 * all, "{} of {all}", written());
    assert_eq!(scan(&bench.tree, &own, false).len(), 120);
    let root = bench.tree.root.load_full();
    let leaf = root.leaf().unwrap();
    let charged = leaf.charged(&leaf.latch());
    assert!(bench.context.cache.used() == charged, "{} charged", bench.context.cache.used());
}

#[test]
fn a_base_that_was_read_back_is_not_written_again() {
    let bench = Bench::new(64 << 20);
    let rows = |n: u64, byte: u8| -> Vec<_> { (0..n).map(|i| (key(i), Some(vec![byte; 64]))).collect() };
    let root = || bench.tree.root.load_full();
    let fold = || {
        let root = root();
        let leaf = root.leaf().unwrap();
        bench.tree.fold_in_place(leaf, &mut leaf.latch()).unwrap();
    };
    let evict = || {
        root().evict().unwrap();
        assert!(matches!(root().leaf().unwrap().view().base, leaf::Base::Spilled(_)));
    };
    let spill = &bench.context.spill;
    let mut now = bench.commit(&rows(20, 1));
    fold();
    evict();
    let (once, used) = (spill.moved_bytes().0, spill.used_bytes());
    for _ in 0..5 {
        assert_eq!(scan(&bench.tree, &Reader::at(now), true).len(), 20);
        evict();
    }
    assert_eq!((spill.moved_bytes().0, spill.used_bytes()), (once, used));
    // What was folded into another base since is, and the place of the one before is free again.
    for round in 2..6u8 {
        assert_eq!(scan(&bench.tree, &Reader::at(now), true).len(), 20);
        now = bench.commit(&rows(20, round));
        fold();
        evict();
        assert!(spill.moved_bytes().0 > once * u64::from(round - 1), "round {round}");
        let rows = scan(&bench.tree, &Reader::at(now), false);
        assert!(rows.len() == 20 && rows.iter().all(|(_, value)| value[..] == [round; 64]), "round {round}");
        assert_eq!(spill.used_bytes(), used, "round {round}");
    }
}

#[test]
fn many_evictions_lose_nothing_and_keep_the_order_of_versions() {
    let bench = Bench::new(64 << 20);
    let (kept, undone) = (TxnStatus::new(1), TxnStatus::new(2));
    let mut sequence = 0;
    for round in 0..40u64 {
        // So few that the leaf does not come to be consolidated, enough that they are not left in memory.
        for n in 0..6 {
            let value = [round as u8; 300];
            write(&bench, &key(n), WriteOp::Update(&value), &kept, &mut sequence);
            write(&bench, &key(100 + n), WriteOp::Insert(&value), &undone, &mut sequence);
        }
        let root = bench.tree.root.load_full();
        if root.leaf().is_some() {
            root.evict().unwrap();
        }
        if round == 30 {
            kept.void(sequence - 6 * 12, sequence);
        }
    }
    undone.abort();
    let timestamp = bench.context.clock.publish(&kept);
    let rows = scan(&bench.tree, &Reader::at(timestamp), true);
    assert_eq!(rows.len(), 6);
    assert!(rows.iter().all(|(_, value)| value[..] == [39; 300]));
}

#[test]
fn undecided_writes_larger_than_the_cache_read_as_the_model_says() {
    for seed in 200..203 {
        let mut bench = Bench::new(96 << 10);
        let mut random = Random(seed);
        let mut model = Model::new();
        for step in 0..20 {
            let status = TxnStatus::new(step);
            let (mut own, mut sequence) = (model.clone(), 0);
            for _ in 0..random.below(3000) {
                let key = key(random.below(8000));
                match random.below(3) {
                    0 => {
                        write(&bench, &key, WriteOp::Delete, &status, &mut sequence);
                        own.remove(&key);
                    }
                    _ => {
                        let value = vec![step as u8; random.below(20) as usize];
                        write(&bench, &key, WriteOp::Insert(&value), &status, &mut sequence);
                        own.insert(key, value);
                    }
                }
                if random.below(400) == 0 {
                    let mut cursor = TreeCursor::new(bench.tree.clone());
                    let reader = Reader { own: Some(&status), ..Reader::at(Timestamp::MAX) };
                    assert_eq!(cursor.first(&reader).unwrap(), !own.is_empty());
                }
            }
            if random.below(3) == 0 {
                let reader = Reader { own: Some(&status), ..Reader::at(Timestamp::MAX) };
                same(&scan(&bench.tree, &reader, random.below(2) == 0), &own, seed, step as usize);
            }
            match random.below(3) {
                0 => status.abort(),
                _ => {
                    bench.context.clock.publish(&status);
                    model = own;
                }
            }
            if random.below(6) == 0 {
                bench.checkpoint();
            }
            same(&scan(&bench.tree, &Reader::at(Timestamp::MAX), true), &model, seed, step as usize);
        }
    }
}

#[test]
fn a_checkpoint_of_more_than_memory_has_room_for_goes_once_through_it() {
    let mut bench = Bench::new(1 << 20);
    let rows = |step: usize, byte: u8| -> Vec<_> {
        (0..40_000).step_by(step).map(|n| (key(n), Some(vec![byte; 200]))).collect()
    };
    bench.commit(&rows(1, 1));
    bench.checkpoint();
    // A row or so of each leaf: nothing of it is large enough to leave memory.
    let now = bench.commit(&rows(100, 2));
    let spill = bench.context.spill.clone();
    let before = spill.moved_bytes();
    let root = bench.checkpoint().unwrap();
    let after = spill.moved_bytes();
    // A thin leaf waits for what becomes of its neighbours.
    let moved = (after.0 - before.0, after.1 - before.1);
    assert!(moved.0 < 2000 && moved.1 < 2000, "{moved:?} bytes to the spill file and back");
    // Nor does anybody read from there what the file has.
    let all = scan(&bench.tree, &Reader::at(now), true);
    assert_eq!(spill.moved_bytes(), after);
    assert_eq!(spill.used_bytes(), 0);
    assert_eq!(all.iter().filter(|(_, value)| value[..] == [2; 200]).count(), 400);
    bench.reopen(root);
    assert!(scan(&bench.tree, &Reader::at(now), true) == all && all.len() == 40_000);
}

#[test]
fn what_a_checkpoint_has_written_is_read_from_the_file() {
    let mut bench = Bench::new(64 << 20);
    let now = bench.commit(&(0..20).map(|n| (key(n), Some(vec![7; 64]))).collect::<Vec<_>>());
    let root = bench.tree.root.load_full();
    let leaf = root.leaf().unwrap();
    bench.tree.fold_in_place(leaf, &mut leaf.latch()).unwrap();
    root.evict().unwrap();
    assert!(matches!(leaf.view().base, leaf::Base::Spilled(_)));
    let (tree, spill) = (bench.tree.clone(), bench.context.spill.clone());
    // The checkpoint reads it; it goes from memory again before that is durable.
    bench.checkpoint_with(&mut || root.evict().map(|_| ()).unwrap());
    assert!(matches!(leaf.view().base, leaf::Base::Stored(_)));
    assert_eq!(spill.used_bytes(), 0);
    assert_eq!(scan(&tree, &Reader::at(now), true).len(), 20);
}
