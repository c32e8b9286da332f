//! Leaves in frames, in memory as they are stored.

use super::*;
use crate::cache::Purpose;

const ROWS: u64 = 3000;
/// A leaf of 4 KiB has about eight.
const FRAME_BYTES: usize = 500;

/// Leaves are stored in frames, and the cache is so full that look-ups leave them packed.
pub(super) fn framed(cache_bytes: u64) -> Bench {
    let bench = Bench::new(cache_bytes);
    bench.context.frame_bytes.store(FRAME_BYTES, Ordering::Relaxed);
    bench.context.cache.charge(Purpose::Values, cache_bytes as usize / 16 * 13);
    bench
}

fn row(n: u64, round: u64) -> Vec<u8> {
    format!("row {n:06} of round {round} {}", "abcdefgh".repeat((n % 9) as usize)).into_bytes()
}

/// With all leaves on disk.
fn stored() -> Bench {
    let mut bench = framed(4 << 20);
    bench.commit(&(0..ROWS).map(|n| (key(2 * n), Some(row(n, 1)))).collect::<Vec<_>>());
    bench.checkpoint();
    bench.evict_all();
    bench.each_leaf(&mut |_, leaf| {
        let view = leaf.view();
        let leaf::Base::Stored(image) = &view.base else { panic!("in memory") };
        assert!(
            image.extent.address().in_parts,
            "a leaf from {:?}: {:?}",
            &*view.low,
            image.extent.address()
        );
    });
    bench
}

#[derive(Debug, Default, PartialEq)]
struct Count {
    loaded: usize,
    packed: usize,
    stored: usize,
}

fn count(bench: &Bench) -> Count {
    let mut count = Count::default();
    bench.each_leaf(&mut |_, leaf| match &leaf.view().base {
        leaf::Base::Loaded(_) => count.loaded += 1,
        leaf::Base::Packed(packed) => {
            count.packed += 1;
            assert!(leaf.charged(&leaf.latch()) >= packed.keys().memory() as u64);
        }
        leaf::Base::Stored(_) | leaf::Base::Spilled(_) => count.stored += 1,
    });
    count
}

fn get(cursor: &mut TreeCursor, key: &[u8]) -> Option<Vec<u8>> {
    let reader = Reader::at(Timestamp::MAX);
    cursor.get(&reader, key).unwrap().then(|| cursor.value().unwrap().to_vec())
}

#[test]
fn look_ups_find_each_row_and_leave_leaves_packed() {
    let bench = stored();
    let leaves = count(&bench).stored;
    let before = bench.context.cache.used();
    // A stride that comes to each leaf a few times only.
    for n in (0..ROWS).step_by(17) {
        let mut cursor = TreeCursor::new(bench.tree.clone());
        assert_eq!(get(&mut cursor, &key(2 * n)), Some(row(n, 1)));
        assert_eq!(get(&mut cursor, &key(2 * n + 1)), None);
    }
    assert_eq!(count(&bench), Count { packed: leaves, ..Count::default() });
    let packed = bench.context.cache.used() - before;
    bench.evict_all();
    assert_eq!(count(&bench), Count { stored: leaves, ..Count::default() });
    assert_eq!(bench.context.cache.used(), before);
    assert_eq!(scan(&bench.tree, &Reader::at(Timestamp::MAX), true).len() as u64, ROWS);
    assert_eq!(count(&bench), Count { loaded: leaves, ..Count::default() });
    assert!(packed < (bench.context.cache.used() - before) * 3 / 4);
}

#[test]
fn with_room_in_the_cache_nothing_is_packed() {
    let bench = stored();
    bench.context.cache.discharge(Purpose::Values, 2 << 20);
    let mut cursor = TreeCursor::new(bench.tree.clone());
    assert_eq!(get(&mut cursor, &key(200)), Some(row(100, 1)));
    assert_eq!(count(&bench).packed, 0);
}

#[test]
fn scans_go_on_from_a_look_up_in_both_directions() {
    let bench = stored();
    let reader = Reader::at(Timestamp::MAX);
    for n in (2..ROWS - 2).step_by(31) {
        for forward in [true, false] {
            bench.evict_all();
            let mut cursor = TreeCursor::new(bench.tree.clone());
            // Of a key that is there, and of one between two.
            for at in [2 * n, 2 * n + 1] {
                assert_eq!(get(&mut cursor, &key(at)), (at % 2 == 0).then(|| row(n, 1)));
                assert!(cursor.window_behind(&reader).is_none());
                assert!(if forward { cursor.next(&reader) } else { cursor.prev(&reader) }.unwrap());
                let next = if forward { n + 1 } else { n - 1 + at % 2 };
                assert_eq!((cursor.key(), cursor.value().unwrap()), (&key(2 * next)[..], &row(next, 1)[..]));
                assert!(cursor.refresh(&reader).unwrap() && cursor.value().unwrap() == row(next, 1));
            }
        }
    }
}

#[test]
fn what_is_looked_up_often_becomes_whole_and_what_the_clock_has_met_does_so_later() {
    let bench = stored();
    let mut cursor = TreeCursor::new(bench.tree.clone());
    for cooled in [false, true] {
        bench.evict_all();
        for n in 0..9 {
            assert_eq!(count(&bench).loaded, 0, "look-up {n}, {cooled}");
            cursor.reset();
            assert_eq!(get(&mut cursor, &key(2 * n)), Some(row(n, 1)));
            if cooled {
                bench.each_leaf(&mut |node, _| _ = node.touched());
            }
        }
        assert_eq!(count(&bench).loaded, usize::from(!cooled));
        assert_eq!(get(&mut cursor, &key(20)), Some(row(10, 1)));
    }
    // Also where the cursor need not leave the leaf.
    bench.evict_all();
    cursor.reset();
    (0..30).for_each(|n| assert_eq!(get(&mut cursor, &key(2 * n)), Some(row(n, 1))));
    assert!(count(&bench).loaded > 0);
}

#[test]
fn changes_of_packed_leaves_are_seen_folded_and_written() {
    let mut bench = stored();
    let old = bench.context.clock.snapshot(0);
    let mut model: Model = (0..ROWS).map(|n| (key(2 * n), row(n, 1))).collect();
    for round in 2..5 {
        let mut cursor = TreeCursor::new(bench.tree.clone());
        for n in (round..ROWS).step_by(40) {
            // Each leaf is packed when it is written to.
            assert_eq!(get(&mut cursor, &key(2 * n)).as_ref(), model.get(&key(2 * n)));
            let value = (n % 7 > 0).then(|| row(n, round));
            bench.commit(&[(key(2 * n), value.clone()), (key(2 * n + 1), Some(row(n, round)))]);
            assert_eq!(get(&mut cursor, &key(2 * n)), value, "{n} in round {round}");
            match value {
                Some(value) => model.insert(key(2 * n), value),
                None => model.remove(&key(2 * n)),
            };
            model.insert(key(2 * n + 1), row(n, round));
        }
        assert!(count(&bench).packed > 0);
        let root = bench.checkpoint().unwrap();
        same(&scan(&bench.tree, &Reader::at(Timestamp::MAX), round % 2 == 0), &model, round, 0);
        let was = scan(&bench.tree, &Reader::at(old.timestamp()), true);
        assert!(was.len() as u64 == ROWS && was.iter().zip(0..).all(|((_, value), n)| *value == row(n, 1)));
        bench.evict_all();
        if round == 4 {
            bench.reopen(root);
            same(&scan(&bench.tree, &Reader::at(Timestamp::MAX), true), &model, round, 1);
        }
    }
}

#[test]
fn random_histories_of_leaves_in_frames_read_as_the_model_says() {
    let (mut packed, mut merged, mut steps) = (0, 0, 0);
    for seed in 200..208 {
        merged += random_history(framed(2 << 20), seed, 300, &mut |bench, model| {
            steps += 1;
            if steps % 3 == 0 {
                bench.evict_all();
            }
            for n in (steps % 97..KEYS).step_by(97) {
                let found = get(&mut TreeCursor::new(bench.tree.clone()), &key(n));
                assert_eq!(found.as_ref(), model.get(&key(n)), "seed {seed}, key {n}");
            }
            packed += count(bench).packed;
        });
    }
    assert!(packed > 300 && merged > 10, "{packed} packed, {merged} leaves were merged");
}

#[test]
fn a_flipped_byte_of_any_part_is_found_and_named_and_the_other_leaves_are_read() {
    use std::os::unix::fs::FileExt;
    let bench = stored();
    let reader = Reader::at(Timestamp::MAX);
    let node = bench.tree.find_leaf(&key(2000)).unwrap();
    let at = *node.leaf().unwrap().latch().copies.durable().unwrap().image.extent.address();
    let file = std::fs::File::options().read(true).write(true).open(bench.space.path()).unwrap();
    let flip = |byte: u64| {
        let mut bytes = [0];
        file.read_exact_at(&mut bytes, at.offset + byte).unwrap();
        file.write_all_at(&[bytes[0] ^ 0x20], at.offset + byte).unwrap();
    };
    let mut named = std::collections::BTreeSet::new();
    for byte in (0..u64::from(at.stored_bytes)).step_by(37) {
        flip(byte);
        let mut cursor = TreeCursor::new(bench.tree.clone());
        let Err(Error::Corrupt { path, offset, detail }) = cursor.get(&reader, &key(2000)) else {
            panic!("byte {byte} is not missed");
        };
        assert_eq!((&*path, offset), (bench.space.path(), at.offset));
        named.insert(detail.split("; ").nth(1).unwrap().to_string());
        assert!(cursor.seek(&reader, Seek::AtOrAfter, &key(2000)).is_err());
        assert_eq!(get(&mut cursor, &key(20)), Some(row(10, 1)));
        flip(byte);
        assert_eq!(get(&mut TreeCursor::new(bench.tree.clone()), &key(2000)), Some(row(1000, 1)));
        bench.evict_all();
    }
    assert!(named.len() > 3, "{named:?}");
    assert!(named.iter().all(|part| part.contains("of its parts")), "{named:?}");
}
