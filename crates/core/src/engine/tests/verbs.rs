//! One verb for a row.

use super::*;
use crate::tree::DESCENTS;
use crate::{LockMode, WaitRequest};
use std::ops::Bound;
use std::time::Duration;

const LEVELS: [Isolation; 5] = [
    Isolation::ReadCommitted,
    Isolation::Repeatable,
    Isolation::RepeatableLenient,
    Isolation::Serializable,
    Isolation::SerializableLenient,
];

fn now() -> WaitRequest<'static> {
    WaitRequest::no_wait()
}

fn latest(engine: &Engine, tree: &Arc<Tree>, key: &[u8]) -> Option<Vec<u8>> {
    let mut txn = engine.begin(Isolation::ReadCommitted);
    let mut cursor = Cursor::new(tree.clone());
    cursor.get(&mut txn, View::Snapshot, key).unwrap().then(|| cursor.value().unwrap().to_vec())
}

/// Commits one change in a transaction of its own.
fn alone(engine: &Engine, change: impl FnOnce(&mut Transaction)) {
    let mut txn = engine.begin(Isolation::ReadCommitted);
    change(&mut txn);
    txn.commit().unwrap();
}

#[test]
fn each_verb_says_whether_the_row_was_there() {
    let (_fs, engine, table) = with_table(1);
    let tree = table.tree(0);
    for level in LEVELS {
        let mut txn = engine.begin(level);
        assert!(!txn.update(tree, b"k", b"v", &now()).unwrap());
        assert!(!txn.delete(tree, b"k", &now()).unwrap());
        assert_eq!(txn.get_for_update(tree, b"k", &now()).unwrap(), None);
        txn.insert(tree, b"k", b"1", &now()).unwrap();
        assert_eq!(txn.get_for_update(tree, b"k", &now()).unwrap(), Some(b"1".to_vec()));
        assert!(txn.update(tree, b"k", b"2", &now()).unwrap());
        assert!(txn.put(tree, b"k", b"3", &now()).unwrap());
        assert!(!txn.put(tree, b"l", b"4", &now()).unwrap());
        txn.commit().unwrap();
        assert_eq!(latest(&engine, tree, b"k"), Some(b"3".to_vec()));
        alone(&engine, |txn| {
            assert!(txn.delete(tree, b"k", &now()).unwrap() && txn.delete(tree, b"l", &now()).unwrap());
            assert!(!txn.delete(tree, b"k", &now()).unwrap());
        });
        assert_eq!((latest(&engine, tree, b"k"), table.tree(0).entries()), (None, 0));
    }
}

#[test]
fn a_row_that_is_visible_newer_or_its_own_is_a_duplicate_and_stays() {
    let (_fs, engine, table) = with_table(2);
    let tree = table.tree(0);
    alone(&engine, |txn| txn.insert(tree, b"old", b"1", &now()).unwrap());
    for (level, newer) in LEVELS.into_iter().zip([b"a", b"b", b"c", b"d", b"e"]) {
        let mut txn = engine.begin(level);
        txn.open_snapshot();
        alone(&engine, |txn| txn.insert(tree, newer, b"2", &now()).unwrap());
        txn.insert(tree, b"own", b"3", &now()).unwrap();
        for key in [&b"old"[..], newer, b"own"] {
            let refused = txn.insert(tree, key, b"x", &now());
            assert!(matches!(refused, Err(Error::DuplicateRow { key: of }) if of == key));
        }
        assert!(txn.delete(tree, b"own", &now()).unwrap());
        txn.insert(tree, b"own", b"4", &now()).unwrap();
        assert!(txn.delete(tree, b"own", &now()).unwrap());
        txn.commit().unwrap();
        assert_eq!(latest(&engine, tree, b"old"), Some(b"1".to_vec()));
        assert_eq!(latest(&engine, tree, newer), Some(b"2".to_vec()));
    }
}

#[test]
fn what_changed_since_the_snapshot_is_an_error_where_the_level_says_so() {
    let (_fs, engine, table) = with_table(3);
    let tree = table.tree(0);
    for level in LEVELS {
        let strict = matches!(level, Isolation::Repeatable | Isolation::Serializable);
        for verb in 0..5 {
            alone(&engine, |txn| {
                txn.put(tree, b"k", b"old", &now()).unwrap();
                txn.put(tree, b"gone", b"old", &now()).unwrap();
            });
            let mut txn = engine.begin(level);
            txn.open_snapshot();
            alone(&engine, |txn| {
                assert!(txn.update(tree, b"k", b"new", &now()).unwrap());
                assert!(txn.delete(tree, b"gone", &now()).unwrap());
            });
            let result = match verb {
                0 => txn.update(tree, b"k", b"x", &now()),
                1 => txn.delete(tree, b"k", &now()),
                2 => txn.put(tree, b"k", b"x", &now()),
                3 => txn.get_for_update(tree, b"k", &now()).map(|value| value == Some(b"new".to_vec())),
                // It is in the snapshot, and another row's place is free.
                _ => txn.insert(tree, b"gone", b"x", &now()).map(|()| true),
            };
            match strict {
                true => assert!(matches!(result, Err(Error::SnapshotConflict)), "{level:?} {verb}"),
                false => assert!(result.unwrap(), "{level:?} {verb}"),
            }
            let wrote = txn.has_writes();
            txn.commit().unwrap();
            assert_eq!(wrote, !strict && verb != 3, "{level:?} {verb}");
        }
    }
}

#[test]
fn who_is_late_waits_and_does_not_lose_the_update_of_the_first() {
    let (_fs, engine, table) = with_table(4);
    let tree = table.tree(0);
    alone(&engine, |txn| txn.insert(tree, b"sum", &0u64.to_le_bytes(), &now()).unwrap());
    let patient = WaitRequest::waiting(Duration::from_secs(60));
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..200 {
                    let mut txn = engine.begin(Isolation::ReadCommitted);
                    let found = txn.get_for_update(tree, b"sum", &patient).unwrap().unwrap();
                    let sum = u64::from_le_bytes(found.try_into().unwrap());
                    assert!(txn.update(tree, b"sum", &(sum + 1).to_le_bytes(), &patient).unwrap());
                    txn.commit().unwrap();
                }
            });
        }
    });
    assert_eq!(latest(&engine, tree, b"sum"), Some(800u64.to_le_bytes().to_vec()));
}

#[test]
fn an_insert_into_a_locked_range_waits_without_the_lock_of_its_key_and_writes_nothing() {
    let (_fs, engine, table) = with_table(5);
    let tree = table.tree(0);
    let mut reader = engine.begin(Isolation::Repeatable);
    reader.lock_range(tree, Bound::Included(b"a"), Bound::Included(b"m"), LockMode::Shared, &now()).unwrap();
    let mut txn = engine.begin(Isolation::ReadCommitted);
    let brief = WaitRequest::waiting(Duration::from_millis(1));
    assert!(matches!(txn.insert(tree, b"k", b"x", &brief), Err(Error::LockTimeout)));
    assert!(matches!(txn.put(tree, b"k", b"x", &now()), Err(Error::WouldBlock)));
    assert!(matches!(txn.load(tree, [(b"b", b"x"), (b"c", b"x")], &now()), Err(Error::WouldBlock)));
    assert!(!txn.has_writes());
    // The key is free for the one with the range.
    reader.insert(tree, b"k", b"1", &now()).unwrap();
    reader.commit().unwrap();
    assert!(matches!(txn.insert(tree, b"k", b"x", &now()), Err(Error::DuplicateRow { .. })));
    txn.insert(tree, b"l", b"2", &now()).unwrap();
    txn.commit().unwrap();
    assert_eq!(latest(&engine, tree, b"l"), Some(b"2".to_vec()));
}

/// A transaction that has the range from `a` to `m`.
fn reader(engine: &Engine, tree: &Arc<Tree>) -> Transaction {
    let mut reader = engine.begin(Isolation::Repeatable);
    let (from, to) = (Bound::Included(&b"a"[..]), Bound::Included(&b"m"[..]));
    reader.lock_range(tree, from, to, LockMode::Shared, &now()).unwrap();
    reader
}

#[test]
fn a_range_that_is_locked_between_the_look_and_the_write_undoes_the_insert() {
    let (_fs, engine, table) = with_table(8);
    let tree = table.tree(0).clone();
    let mut txn = engine.begin(Isolation::ReadCommitted);
    txn.insert(&tree, b"z", b"stays", &now()).unwrap();
    for put in [false, true] {
        let ranges = std::rc::Rc::new(std::cell::RefCell::new(None));
        let (of, over, locked) = (engine.clone(), tree.clone(), ranges.clone());
        crate::stop::on("insert: claimed and not written", move || {
            *locked.borrow_mut() = Some(reader(&of, &over));
        });
        let refused = match put {
            true => txn.put(&tree, b"k", b"x", &now()).map(drop),
            false => txn.insert(&tree, b"k", b"x", &now()),
        };
        assert!(matches!(refused, Err(Error::WouldBlock)));
        // Whoever has the range does not see the row now or later.
        let mut reader = ranges.borrow_mut().take().unwrap();
        let mut cursor = Cursor::new(tree.clone());
        assert!(!cursor.get(&mut reader, View::Pending, b"k").unwrap());
        assert!(!cursor.get(&mut txn, View::Latest, b"k").unwrap());
    }
    txn.commit().unwrap();
    assert_eq!((latest(&engine, &tree, b"k"), latest(&engine, &tree, b"z")), (None, Some(b"stays".to_vec())));
    assert_eq!(tree.entries(), 1);
}

#[test]
fn a_range_that_is_locked_while_rows_are_loaded_undoes_the_load() {
    let (_fs, engine, table) = with_table(9);
    let tree = table.tree(0);
    let mut txn = engine.begin(Isolation::ReadCommitted);
    txn.insert(tree, b"z", b"stays", &now()).unwrap();
    let mut ranges = None;
    let rows = (0..2000u32).map(|i| {
        if i == 1999 {
            ranges = Some(reader(&engine, tree));
        }
        (format!("k{i:05}"), [i as u8; 40])
    });
    // The last one waits for the range when it is claimed; the others are told at the end.
    assert!(matches!(txn.load(tree, rows, &now()), Err(Error::WouldBlock)));
    assert!(ranges.take().is_some());
    let rows = (0..2000u32).map(|i| {
        if i == 1999 {
            ranges = Some(reader(&engine, tree));
            return ("n".to_string(), [0; 40]);
        }
        (format!("k{i:05}"), [i as u8; 40])
    });
    assert!(matches!(txn.load(tree, rows, &now()), Err(Error::WouldBlock)));
    assert!(ranges.take().is_some());
    txn.commit().unwrap();
    assert_eq!(tree.entries(), 1);
    assert_eq!((latest(&engine, tree, b"k00001"), latest(&engine, tree, b"n")), (None, None));
}

#[test]
fn a_row_that_is_not_there_stays_away_while_it_is_locked() {
    let (_fs, engine, table) = with_table(6);
    let tree = table.tree(0);
    let mut txn = engine.begin(Isolation::ReadCommitted);
    assert_eq!(txn.get_for_update(tree, b"k", &now()).unwrap(), None);
    let mut other = engine.begin(Isolation::ReadCommitted);
    assert!(matches!(other.insert(tree, b"k", b"x", &now()), Err(Error::WouldBlock)));
    txn.insert(tree, b"k", b"1", &now()).unwrap();
    txn.commit().unwrap();
}

#[test]
fn a_load_is_all_or_nothing_and_its_rows_are_like_others() {
    let (fs, engine, table) = with_table(7);
    let tree = table.tree(0);
    alone(&engine, |txn| txn.insert(tree, b"0500x", b"in the way", &now()).unwrap());
    let rows = |from: u32| (from..from + 3000).map(|i| (format!("{i:05}"), vec![i as u8; 50]));
    let mut txn = engine.begin(Isolation::Repeatable);
    let twice = rows(10_000).chain([("12000".to_string(), vec![0; 50])]);
    let refused = txn.load(tree, twice, &now());
    assert!(matches!(refused, Err(Error::DuplicateRow { key }) if key == b"12000"));
    assert_eq!(txn.load(tree, rows(20_000), &now()).unwrap(), 3000);
    assert_eq!(txn.load(tree, [("30002", "b"), ("30001", "a")], &now()).unwrap(), 2);
    assert!(matches!(txn.insert(tree, b"20001", b"x", &now()), Err(Error::DuplicateRow { .. })));
    assert!(txn.delete(tree, b"20002", &now()).unwrap());
    txn.commit().unwrap();
    drop(table);
    let (_fs, engine) = crash(&fs, engine);
    let table = engine.open_table("t").unwrap();
    let tree = table.tree(0);
    assert_eq!(tree.entries(), 1 + 3000 + 2 - 1);
    assert_eq!(latest(&engine, tree, b"20003"), Some(vec![20_003u32 as u8; 50]));
    assert_eq!(latest(&engine, tree, b"30001"), Some(b"a".to_vec()));
    assert_eq!((latest(&engine, tree, b"10000"), latest(&engine, tree, b"20002")), (None, None));
    let findings = engine.check_everything(&mut |_| Ok(())).unwrap();
    assert!(findings.is_empty(), "{findings}");
}

#[test]
fn a_verb_goes_down_the_tree_once_and_not_at_all_where_the_last_one_was() {
    let (_, engine, table) = with_table(11);
    let tree = table.tree(0);
    alone(&engine, |txn| {
        for i in 0..20_000u32 {
            txn.append(tree, &i.to_be_bytes(), &[7; 60]).unwrap();
        }
    });
    assert!(tree.leaves() > 10);
    let key = |i: u32| i.to_be_bytes();
    let between = |i: u32| [&key(i)[..], b"x"].concat();
    for level in LEVELS {
        let mut txn = engine.begin(level);
        txn.open_snapshot();
        let mut at = 0;
        let descents = |from: usize| DESCENTS.get() - from;
        type Verb<'a> = &'a dyn Fn(&mut Transaction, u32);
        let verbs: [Verb<'_>; 5] = [
            &|txn, i| txn.insert(tree, &between(i), b"new", &now()).unwrap(),
            &|txn, i| assert!(txn.put(tree, &key(i), b"put", &now()).unwrap()),
            &|txn, i| assert!(txn.update(tree, &key(i), b"changed", &now()).unwrap()),
            &|txn, i| assert!(txn.delete(tree, &key(i), &now()).unwrap()),
            &|txn, i| assert!(txn.get_for_update(tree, &key(i), &now()).unwrap().is_some()),
        ];
        for verb in verbs {
            // Far from the last one.
            at = (at + 9_000) % 19_000;
            let before = DESCENTS.get();
            verb(&mut txn, at + 1);
            assert_eq!(descents(before), 1, "{level:?}");
            verb(&mut txn, at + 2);
            assert_eq!(descents(before), 1, "{level:?}: a neighbour");
            assert!(txn.update(tree, &key(at + 3), b"changed", &now()).unwrap());
            assert_eq!(descents(before), 1, "{level:?}: another verb");
        }
        txn.rollback();
    }
}
