//! What is told of ranges: near the truth wherever their leaves are.

use super::*;

#[test]
fn estimates_of_ranges_are_close_whatever_order_the_keys_came_in() {
    const KEYS: u64 = 20_011;
    for (stride, per_commit) in [(1, 1), (7919, 1), (7919, KEYS)] {
        let bench = Bench::new(64 << 20);
        let order: Vec<_> = (0..KEYS).map(|i| (key(i * stride % KEYS), Some(vec![7; 20]))).collect();
        for writes in order.chunks(per_commit as usize) {
            bench.commit(writes);
        }
        bench.tree.add_entries(KEYS as i64);
        for (from, to) in [(0, 10), (100, 300), (5000, 5900), (100, 4000), (100, KEYS), (12_000, KEYS)] {
            let estimate =
                bench.tree.estimate(Bound::Included(&key(from)), Bound::Excluded(&key(to))).unwrap();
            let error = estimate.abs_diff(to - from);
            assert!(
                error <= (to - from) / 10 + 1,
                "{from}..{to} with stride {stride}, {per_commit} a commit: {estimate}, {} leaves",
                bench.tree.leaves()
            );
        }
    }
}

#[test]
fn estimates_of_short_ranges_are_exact_also_where_a_leaf_ends_and_with_changes_pending() {
    const KEYS: u64 = 5000;
    let mut bench = Bench::new(64 << 20);
    let rows: Vec<_> = (0..KEYS).map(|i| (key(2 * i), Some(vec![7; 20]))).collect();
    bench.commit(&rows);
    bench.tree.add_entries(KEYS as i64);
    bench.checkpoint();
    assert!(bench.tree.leaves() > 10);
    // Changes of rows add none; new rows do.
    for i in (0..KEYS).step_by(7) {
        bench.commit(&[(key(2 * i), Some(vec![8; 20]))]);
    }
    for i in (0..KEYS).step_by(50) {
        bench.commit(&[(key(2 * i + 1), Some(vec![9; 20]))]);
    }
    let rows = |n: u64| n.div_ceil(2).min(KEYS) + n.saturating_sub(1).div_ceil(100).min(KEYS / 50);
    for from in (0..2 * KEYS).step_by(3) {
        for width in [0, 1, 2, 5, 20] {
            let expected = rows(from + width) - rows(from);
            let (low, high) = (key(from), key(from + width));
            let estimate = bench.tree.estimate(Bound::Included(&low), Bound::Excluded(&high)).unwrap();
            assert_eq!(estimate, expected, "{from}..{}", from + width);
            if width > 0 {
                let last = key(from + width - 1);
                let estimate = bench.tree.estimate(Bound::Included(&low), Bound::Included(&last)).unwrap();
                assert_eq!(estimate, expected, "{from}..={}", from + width - 1);
            }
        }
    }
    let all = bench.tree.estimate(Bound::Unbounded, Bound::Unbounded).unwrap();
    assert!(all.abs_diff(KEYS) < KEYS / 20, "{all}");
}

#[test]
fn estimates_of_short_ranges_are_exact_of_leaves_that_nobody_has_in_memory() {
    const KEYS: u64 = 5000;
    let mut bench = Bench::new(64 << 20);
    bench.commit(&(0..KEYS).map(|i| (key(i), Some(vec![7; 20]))).collect::<Vec<_>>());
    bench.tree.add_entries(KEYS as i64);
    let root = bench.checkpoint().unwrap();
    let per_leaf = KEYS / bench.tree.leaves();
    for (from, width) in (0..KEYS).step_by(61).flat_map(|from| [(from, 1), (from, 30), (from, per_leaf)]) {
        bench.reopen(root);
        bench.tree.add_entries(KEYS as i64);
        let to = (from + width).min(KEYS);
        let (low, high) = (key(from), key(to));
        let estimate = bench.tree.estimate(Bound::Included(&low), Bound::Excluded(&high)).unwrap();
        assert_eq!(estimate, to - from, "{from}..{to}");
    }
}

#[test]
fn estimates_of_long_ranges_read_no_leaf() {
    const KEYS: u64 = 20_000;
    let mut bench = Bench::new(64 << 20);
    bench.commit(&(0..KEYS).map(|i| (key(i), Some(vec![7; 20]))).collect::<Vec<_>>());
    let root = bench.checkpoint().unwrap();
    bench.reopen(root);
    bench.tree.add_entries(KEYS as i64);
    let half = |bench: &Bench| {
        bench.tree.estimate(Bound::Included(&key(KEYS / 4)), Bound::Excluded(&key(KEYS / 4 * 3))).unwrap()
    };
    assert!(half(&bench).abs_diff(KEYS / 2) < KEYS / 20);
    // The pages are in memory now.
    let used = bench.context.cache.used();
    half(&bench);
    assert_eq!(bench.context.cache.used(), used);
    bench.tree.estimate(Bound::Included(&key(1)), Bound::Included(&key(2))).unwrap();
    assert!(bench.context.cache.used() > used);
}

#[test]
fn an_outline_has_all_parts_and_those_of_a_range_lead_down_to_leaves() {
    let bench = Bench::with_blocks(64 << 20, 4096);
    for n in 0..60u64 {
        let rows: Vec<_> = (0..1000).map(|i| (key(n * 1000 + i), Some(vec![7; 60]))).collect();
        bench.commit(&rows);
    }
    let outline = bench.tree.outline(&[], None).unwrap();
    assert!(
        outline.firsts.len() > 64 && outline.firsts.is_sorted() && outline.firsts[0].is_empty(),
        "{outline:?}"
    );
    let mut keys = Vec::new();
    let ends = outline.firsts[1..].iter().map(|first| Some(first.as_slice())).chain([None]);
    for (low, high) in outline.firsts.iter().zip(ends) {
        let below = bench.tree.outline(low, high).unwrap();
        assert!(below.are_leaves && below.firsts[0] <= *low && below.firsts.is_sorted());
        assert!(
            below.firsts.iter().all(|first| high.is_none_or(|high| first.as_slice() < high)),
            "{below:?}"
        );
        for first in &below.firsts {
            bench
                .tree
                .sample(first, &mut |leaf| {
                    assert!(leaf[0] >= first.as_slice());
                    keys.extend(leaf.iter().map(|key| key.to_vec()));
                })
                .unwrap();
        }
    }
    assert_eq!(keys, (0..60_000).map(key).collect::<Vec<_>>());
    bench.tree.sample(b"\xff\xff", &mut |leaf| assert_eq!(*leaf.last().unwrap(), key(59_999))).unwrap();
}
