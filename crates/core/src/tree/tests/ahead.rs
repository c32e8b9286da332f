//! Blocks that are read ahead of scans. The tests do the work of the threads themselves.

use super::*;
use crate::cache::Evictable;
use crate::tree::change::vacancy::Towards;
use crate::tree::leaf::Base;
use std::ops::Bound as End;

const ROWS: u64 = 4000;
const MOST: u32 = 8;

/// A tree of many leaves, none of which is in memory.
fn cold() -> Bench {
    let mut bench = Bench::new(64 << 20);
    bench.context.ahead.set_most_blocks(MOST);
    bench.context.ahead.serve();
    bench.commit(&(0..ROWS).map(|n| (key(n), Some(value(n)))).collect::<Vec<_>>());
    let root = bench.checkpoint().unwrap();
    bench.reopen(root);
    // The page above the leaves.
    bench.tree.find_leaf(&[]).unwrap();
    bench
}

fn value(n: u64) -> Vec<u8> {
    (0..100u32).map(|i| (n.wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(i) % 251) as u8).collect()
}

impl Bench {
    fn reader(&self) -> Reader<'static> {
        Reader::at(self.context.clock.snapshot(0).timestamp())
    }

    /// Does what is listed; how many pieces.
    fn work_ahead(&self) -> usize {
        std::iter::from_fn(|| self.context.ahead.step().then_some(())).count()
    }

    fn leaves(&self) -> Vec<Arc<Node>> {
        let mut leaves = Vec::new();
        self.tree.each_ahead(Towards::Greater, &[], &mut |node| {
            leaves.push(node.clone());
            true
        });
        leaves
    }

    /// How many leaves have their base in memory.
    fn loaded(&self) -> usize {
        let is_loaded = |node: &&Arc<Node>| matches!(node.leaf().unwrap().view().base, Base::Loaded(_));
        self.leaves().iter().filter(is_loaded).count()
    }
}

/// Goes on for `rows` rows; reads ahead when the cursor wants it, and has that done at once.
fn scan(bench: &Bench, cursor: &mut TreeCursor, rows: u64, up: bool, end: End<&[u8]>) -> Vec<Vec<u8>> {
    let reader = bench.reader();
    let mut found = Vec::new();
    for _ in 0..rows {
        let more = if up { cursor.next(&reader) } else { cursor.prev(&reader) };
        if !more.unwrap() {
            break;
        }
        found.push(cursor.key().to_vec());
        if cursor.wants_ahead() {
            cursor.read_ahead(end);
            bench.work_ahead();
        }
    }
    found
}

#[test]
fn a_scan_over_cold_leaves_is_served_by_what_was_read_ahead() {
    for up in [true, false] {
        let bench = cold();
        let mut cursor = TreeCursor::new(bench.tree.clone());
        match up {
            true => assert!(cursor.first(&bench.reader()).unwrap()),
            false => assert!(cursor.last(&bench.reader()).unwrap()),
        }
        let found = scan(&bench, &mut cursor, ROWS, up, End::Unbounded);
        assert_eq!(found.len() as u64, ROWS - 1);
        let leaves = bench.leaves().len() as u64;
        assert!(leaves > 50);
        // But for the first three, each.
        assert_eq!(bench.context.ahead.counts(), (leaves - 3, leaves - 3));
        assert_eq!(bench.context.ahead.guessed_bytes(), 0);
    }
}

#[test]
fn two_leaves_look_ups_and_a_change_of_direction_read_nothing_ahead() {
    let bench = cold();
    let reader = bench.reader();
    let mut cursor = TreeCursor::new(bench.tree.clone());
    assert!(cursor.first(&reader).unwrap());
    let first = bench.leaves()[0].clone();
    let rows = first.leaf().unwrap().base(&first, &first.leaf().unwrap().view()).unwrap().len() as u64;
    scan(&bench, &mut cursor, rows + 2, true, End::Unbounded);
    assert_eq!(bench.loaded(), 2);
    for n in (0..ROWS).step_by(97).chain((0..ROWS).rev().step_by(89)) {
        assert!(cursor.get(&reader, &key(n)).unwrap());
        assert!(!cursor.wants_ahead());
        assert!(cursor.next(&reader).unwrap() || n + 1 == ROWS);
        assert!(!cursor.wants_ahead());
    }
    assert_eq!(bench.context.ahead.counts(), (0, 0));
}

#[test]
fn nothing_is_read_past_the_end_of_the_range() {
    let bench = cold();
    let middle = bench.leaves()[20].clone();
    let low = middle.leaf().unwrap().view().low.to_vec();
    let mut cursor = TreeCursor::new(bench.tree.clone());
    assert!(cursor.first(&bench.reader()).unwrap());
    assert_eq!(scan(&bench, &mut cursor, ROWS, true, End::Excluded(&low)).len() as u64, ROWS - 1);
    // The scan itself has gone on, but nothing was read for it.
    assert_eq!(bench.context.ahead.counts(), (17, 17));

    let bench = cold();
    let mut cursor = TreeCursor::new(bench.tree.clone());
    assert!(cursor.last(&bench.reader()).unwrap());
    scan(&bench, &mut cursor, ROWS, false, End::Included(&low));
    let leaves = bench.leaves().len() as u64;
    assert_eq!(bench.context.ahead.counts(), (leaves - 20 - 3, leaves - 20 - 3));
}

#[test]
fn what_a_scan_has_listed_is_not_read_once_it_has_gone() {
    for ends in 0..3 {
        let bench = cold();
        let reader = bench.reader();
        let mut cursor = TreeCursor::new(bench.tree.clone());
        assert!(cursor.first(&reader).unwrap());
        while !cursor.wants_ahead() {
            assert!(cursor.next(&reader).unwrap());
        }
        cursor.read_ahead(End::Unbounded);
        assert!(bench.context.ahead.guessed_bytes() > 0);
        match ends {
            0 => drop(cursor),
            1 => cursor.reset(),
            _ => assert!(cursor.get(&reader, &key(ROWS - 1)).unwrap()),
        }
        assert_eq!(bench.work_ahead(), 2);
        assert_eq!(bench.context.ahead.counts(), (0, 0));
        assert_eq!(bench.context.ahead.guessed_bytes(), 0);
    }
}

#[test]
fn a_scan_that_comes_to_a_listed_leaf_reads_it_itself() {
    let bench = cold();
    let reader = bench.reader();
    let mut cursor = TreeCursor::new(bench.tree.clone());
    let mut rows = 0;
    let mut found = cursor.first(&reader).unwrap();
    while found {
        rows += 1;
        if cursor.wants_ahead() {
            cursor.read_ahead(End::Unbounded);
        }
        found = cursor.next(&reader).unwrap();
    }
    assert_eq!(rows, ROWS);
    assert!(bench.work_ahead() > 0);
    assert_eq!(bench.context.ahead.counts(), (0, 0));
    assert_eq!(bench.context.ahead.guessed_bytes(), 0);
}

#[test]
fn damage_ahead_is_an_error_only_for_the_scan_that_comes_to_it() {
    let bench = cold();
    let damaged = bench.leaves()[10].clone();
    let view = damaged.leaf().unwrap().view();
    let Base::Stored(image) = &view.base else { panic!("not on disk") };
    let path = bench._dir.path().join("s.teak");
    let mut file = std::fs::read(&path).unwrap();
    file[image.extent.address().offset as usize + 20] ^= 1;
    std::fs::write(&path, file).unwrap();
    let reader = bench.reader();
    let mut cursor = TreeCursor::new(bench.tree.clone());
    assert!(cursor.first(&reader).unwrap());
    // It is read ahead at the latest when the scan comes to the leaf before.
    let error = loop {
        if cursor.wants_ahead() {
            cursor.read_ahead(End::Unbounded);
            bench.work_ahead();
        }
        match cursor.next(&reader) {
            Ok(found) => assert!(found && *cursor.key() < *view.low),
            Err(error) => break error,
        }
    };
    assert!(matches!(error, Error::Corrupt { .. }), "{error}");
    // Beyond it all is readable.
    let high = view.high.clone().unwrap();
    let mut beyond = TreeCursor::new(bench.tree.clone());
    assert!(beyond.seek(&reader, Seek::AtOrAfter, &high).unwrap());
    drop((cursor, beyond));
    assert!(bench.context.ahead.guessed_bytes() <= MOST as usize * bench.spec.block_bytes as usize);
}

#[test]
fn what_nobody_has_used_is_evicted_first_and_guesses_are_bounded() {
    let bench = cold();
    let reader = bench.reader();
    let mut cursor = TreeCursor::new(bench.tree.clone());
    assert!(cursor.first(&reader).unwrap());
    scan(&bench, &mut cursor, ROWS / 4, true, End::Unbounded);
    let (read, used) = bench.context.ahead.counts();
    assert!(read > used && used > 0);
    let loaded = bench.loaded();
    // The clock's first turn.
    for node in bench.leaves().iter().filter(|node| !node.touched()) {
        node.evict().unwrap();
    }
    assert_eq!(bench.loaded() as u64, loaded as u64 - (read - used));
    assert_eq!(bench.context.ahead.guessed_bytes(), 0);
    // No room at all: nothing is read ahead.
    let counts = bench.context.ahead.counts();
    bench.context.cache.set_budget(bench.context.cache.used() / 2);
    while !cursor.wants_ahead() && cursor.next(&reader).unwrap() {}
    cursor.read_ahead(End::Unbounded);
    bench.context.cache.set_budget(1);
    bench.work_ahead();
    assert_eq!(bench.context.ahead.counts(), counts);
}

#[test]
fn leaves_of_keys_that_are_expected_are_read_ahead_once_one_is_cold() {
    let bench = cold();
    let reader = bench.reader();
    let mut cursor = TreeCursor::new(bench.tree.clone());
    let wanted: Vec<u64> = (0..ROWS).filter(|n| n % 61 < 3).collect();
    let packed = |numbers: &mut dyn Iterator<Item = &u64>| -> Vec<u8> {
        let entry = |n: &u64| [&(key(*n).len() as u16).to_le_bytes()[..], &key(*n)].concat();
        numbers.flat_map(entry).collect()
    };
    cursor.expect(packed(&mut wanted.iter().rev()));
    let homes = |numbers: &[u64]| {
        let mut homes: Vec<_> = numbers.iter().map(|n| bench.tree.find_leaf(&key(*n)).unwrap()).collect();
        homes.dedup_by(|a, b| Arc::ptr_eq(a, b));
        homes.len()
    };
    let leaves = homes(&wanted);
    assert!(leaves > 40);
    for n in &wanted {
        assert!(cursor.get(&reader, &key(*n)).unwrap());
        bench.work_ahead();
    }
    // All but the first, and no others.
    assert_eq!(bench.context.ahead.counts(), (leaves as u64 - 1, leaves as u64 - 1));
    assert_eq!(bench.loaded(), leaves);

    // Nothing is done while all is in memory, and what is left is given up with the cursor.
    let bench = cold();
    let mut cursor = TreeCursor::new(bench.tree.clone());
    assert!(cursor.get(&reader, &key(5)).unwrap());
    cursor.reset();
    cursor.expect(packed(&mut [5, ROWS / 2, ROWS - 1].iter()));
    assert!(cursor.get(&reader, &key(5)).unwrap());
    assert_eq!(bench.work_ahead(), 0);
    assert!(cursor.get(&reader, &key(ROWS / 2)).unwrap());
    cursor.reset();
    assert_eq!((bench.work_ahead(), bench.context.ahead.counts()), (1, (0, 0)));
    // What is not a list of keys is none.
    for bytes in [&b"\x05"[..], b"\xff\xff1234", b"\x01\x00a\x02\x00b"] {
        cursor.expect(bytes.to_vec());
        assert!(cursor.get(&reader, &key(ROWS / 4)).unwrap());
        cursor.reset();
        while bench.work_ahead() > 0 {}
    }
    assert_eq!(bench.context.ahead.guessed_bytes(), 0);
}
