//! What is said of the memory of leaves: sums that are kept by the way are what a count of all leaves gives.

use super::*;

/// Bytes of the deltas of all leaves that no checkpoint has written.
fn changes(bench: &Bench) -> u64 {
    let mut bytes = 0;
    bench.each_leaf(&mut |_, leaf| bytes += leaf.latch().unwritten_bytes(&leaf.view().delta) as u64);
    bytes
}

fn assert_sum(bench: &Bench) {
    assert_eq!(bench.context.changes.exact(), changes(bench));
}

#[test]
fn the_sum_of_changes_follows_writes_evictions_and_checkpoints() {
    // So little that deltas are evicted and read back, and leaves split.
    let mut bench = Bench::new(64 << 10);
    let mut random = 7u64;
    for round in 0..40u64 {
        let writes: Vec<_> = (0..150)
            .map(|_| {
                random = random.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                let n = (random >> 33) % 3000;
                let value = (random >> 20 & 7 > 0).then(|| vec![round as u8; 60]);
                (key(n), value)
            })
            .collect();
        bench.commit(&writes);
        assert_sum(&bench);
        bench.context.cache.make_room().unwrap();
        assert_sum(&bench);
        if round % 8 == 3 {
            bench.checkpoint();
            assert_eq!((bench.context.changes.exact(), changes(&bench)), (0, 0));
        }
        if round % 8 == 5 {
            bench.abandon_checkpoint();
            assert_sum(&bench);
        }
        let at = bench.context.clock.snapshot(0).timestamp();
        scan(&bench.tree, &Reader::at(at), round % 2 == 0);
        assert_sum(&bench);
    }
    let Bench { tree, context, .. } = bench;
    drop(tree);
    assert_eq!((context.changes.exact(), context.leaves.exact()), (0, 0));
}

/// A tree on disk, of which nothing is in memory.
fn stored(cache_bytes: u64, rows: u64) -> Bench {
    let mut bench = Bench::new(cache_bytes);
    bench.commit(&(0..rows).map(|n| (key(n), Some(vec![n as u8; 100]))).collect::<Vec<_>>());
    let root = bench.checkpoint().unwrap();
    bench.reopen(root);
    bench
}

/// Looks a row up, and has the cache make room.
fn look_up(bench: &Bench, n: u64) {
    let mut cursor = TreeCursor::new(bench.tree.clone());
    let reader = Reader::at(bench.context.clock.snapshot(0).timestamp());
    assert!(cursor.seek(&reader, Seek::AtOrAfter, &key(n)).unwrap());
    bench.context.cache.make_room().unwrap();
}

/// Leaves: all, those in memory, those that the clock knows.
fn leaves(bench: &Bench) -> [usize; 3] {
    let (mut all, mut loaded) = (0, 0);
    bench.each_leaf(&mut |_, leaf| {
        all += 1;
        loaded += usize::from(leaf.is_in_memory());
    });
    [all, loaded, bench.context.cache.known()]
}

#[test]
fn the_clock_has_leaves_that_are_in_memory() {
    let bench = stored(256 << 10, 20_000);
    let reader = Reader::at(bench.context.clock.snapshot(0).timestamp());
    let mut random = 1u64;
    for _ in 0..6000 {
        random = random.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        let mut cursor = TreeCursor::new(bench.tree.clone());
        assert!(cursor.seek(&reader, Seek::AtOrAfter, &key((random >> 33) % 20_000)).unwrap());
    }
    let [all, loaded, known] = leaves(&bench);
    assert!(loaded <= known && known < all / 3, "{known} of {all} leaves, {loaded} in memory");
    // One that the clock has forgotten is known again when it is written to: its delta can be evicted.
    bench.commit(&(0..20_000).map(|n| (key(n), Some(vec![7; 100]))).collect::<Vec<_>>());
    bench.context.cache.make_room().unwrap();
    assert!(bench.context.cache.used() < 300 << 10, "{}", bench.context.cache.used());
    // So is one whose delta was in the spill file, once that is read: now all of them are, one after the other.
    for _ in 0..2 {
        for n in (0..20_000).step_by(50) {
            look_up(&bench, n);
        }
        assert!(bench.context.cache.used() < 300 << 10, "{}", bench.context.cache.used());
    }
}

#[test]
fn the_clock_forgets_leaves_of_which_a_few_changes_are_in_memory() {
    let bench = stored(1 << 20, 40_000);
    // A change in each leaf, and then the rows of some, in turns.
    bench.commit(&(0..40_000).step_by(200).map(|n| (key(n), Some(vec![7; 100]))).collect::<Vec<_>>());
    for n in (0..40_000).step_by(100) {
        look_up(&bench, n);
    }
    let [all, loaded, known] = leaves(&bench);
    assert!(loaded <= known && known < all * 2 / 3, "{known} of {all} leaves, {loaded} in memory");
}
