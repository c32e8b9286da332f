//! Row operations: all trees or none.

use super::*;
use crate::bounds::Direction;

#[test]
fn an_insert_reaches_all_trees() {
    let bench = Bench::new();
    bench.fill(&[row("1", "u1", "p"), row("2", "u2", "p")]);
    assert_eq!(bench.committed(0), ["1", "2"]);
    assert_eq!(bench.committed(1), ["u1", "u2"]);
    assert_eq!(bench.committed(2), ["p\x001", "p\x002"]);
    assert_eq!(bench.get(&mut bench.repeatable(), "2", Read::SNAPSHOT).unwrap(), "2/u2/p");
}

#[test]
#[cfg(debug_assertions)]
#[should_panic(expected = "which is to be deleted")]
fn an_entry_that_is_not_there_is_not_deleted_without_a_word() {
    let bench = Bench::new();
    bench.fill(&[row("1", "u1", "p")]);
    let _ = bench.delete(&mut bench.repeatable(), row("1", "u1", "other"));
}

#[test]
fn a_duplicate_primary_key_names_the_row() {
    let bench = Bench::new();
    bench.fill(&[row("1", "u1", "p")]);
    let mut session = bench.repeatable();
    let refused = bench.insert_with(&mut session, row("1", "u9", "q"), Promise::default());
    assert!(matches!(refused, Err((Stop::Duplicate, 0))), "{refused:?}");
    assert_eq!(session.collision.pk, b"1");
    assert!(!session.has_writes());
}

#[test]
fn a_duplicate_unique_key_names_the_row_and_leaves_nothing_behind() {
    let bench = Bench::new();
    bench.fill(&[row("1", "u1", "p")]);
    let mut session = bench.repeatable();
    let refused = bench.insert_with(&mut session, row("2", "u1", "q"), Promise::default());
    assert!(matches!(refused, Err((Stop::Duplicate, 1))), "{refused:?}");
    assert_eq!(session.collision.pk, b"1");
    session.commit().unwrap();
    assert_eq!(bench.committed(0), ["1"]);
    assert_eq!(bench.committed(2), ["p\x001"]);
}

#[test]
fn a_transaction_collides_with_its_own_rows() {
    let bench = Bench::new();
    let mut session = bench.repeatable();
    bench.insert(&mut session, row("1", "u1", "p")).unwrap();
    assert!(matches!(bench.insert(&mut session, row("1", "u2", "p")), Err(Stop::Duplicate)));
    bench.delete(&mut session, row("1", "u1", "p")).unwrap();
    bench.insert(&mut session, row("1", "u1", "q")).unwrap();
    session.commit().unwrap();
    assert_eq!(bench.committed(2), ["q\x001"]);
}

#[test]
fn an_update_moves_the_entries_that_changed() {
    let bench = Bench::new();
    let (old, new) = (row("1", "u1", "p"), row("1", "u1", "q"));
    bench.fill(&[old]);
    let mut session = bench.repeatable();
    bench.update(&mut session, old, new).unwrap();
    session.commit().unwrap();
    assert_eq!(bench.committed(1), ["u1"]);
    assert_eq!(bench.committed(2), ["q\x001"]);
    assert_eq!(bench.get(&mut bench.repeatable(), "1", Read::SNAPSHOT).unwrap(), "1/u1/q");
}

#[test]
fn an_update_of_the_primary_key_moves_everything() {
    let bench = Bench::new();
    let (old, new) = (row("1", "u1", "p"), row("7", "u1", "p"));
    bench.fill(&[old]);
    let mut session = bench.repeatable();
    bench.update(&mut session, old, new).unwrap();
    session.commit().unwrap();
    assert_eq!(bench.committed(0), ["7"]);
    assert_eq!(bench.committed(2), ["p\x007"]);
    let mut session = bench.repeatable();
    let refused = bench.insert(&mut session, row("8", "u1", "p"));
    assert!(matches!(refused, Err(Stop::Duplicate)));
    assert_eq!(session.collision.pk, b"7", "the entry refers to the moved row");
}

#[test]
fn an_update_to_a_taken_key_changes_nothing() {
    let bench = Bench::new();
    bench.fill(&[row("1", "u1", "p"), row("2", "u2", "p")]);
    let mut session = bench.repeatable();
    let refused = bench.update(&mut session, row("2", "u2", "p"), row("2", "u1", "q"));
    assert!(matches!(refused, Err(Stop::Duplicate)));
    let refused = bench.update(&mut session, row("2", "u2", "p"), row("1", "u2", "q"));
    assert!(matches!(refused, Err(Stop::Duplicate)));
    session.commit().unwrap();
    assert_eq!(bench.committed(0), ["1", "2"]);
    assert_eq!(bench.committed(2), ["p\x001", "p\x002"]);
}

#[test]
fn a_delete_takes_all_entries_and_only_once() {
    let bench = Bench::new();
    bench.fill(&[row("1", "u1", "p"), row("2", "u2", "p")]);
    let mut session = bench.repeatable();
    bench.delete(&mut session, row("1", "u1", "p")).unwrap();
    session.commit().unwrap();
    for (tree, left) in [(0, "2"), (1, "u2"), (2, "p\x002")] {
        assert_eq!(bench.committed(tree), [left]);
    }
    let mut session = bench.repeatable();
    assert!(matches!(bench.delete(&mut session, row("1", "u1", "p")), Err(Stop::NotFound)));
}

#[test]
fn without_locks_uniqueness_still_holds() {
    let bench = Bench::new();
    let promise = Promise { private: true, ..Promise::default() };
    let mut session = bench.repeatable();
    bench.insert_with(&mut session, row("1", "u1", "p"), promise).unwrap();
    let refused = bench.insert_with(&mut session, row("2", "u1", "p"), promise);
    assert!(matches!(refused, Err((Stop::Duplicate, 1))));
    let fresh = Promise { private: true, fresh_key: true, ..promise };
    bench.insert_with(&mut session, row("2", "u2", "p"), fresh).unwrap();
    session.commit().unwrap();
    assert_eq!(bench.committed(0), ["1", "2"]);
}

#[test]
fn a_tree_that_the_table_does_not_have_is_refused() {
    let bench = Bench::new();
    let mut session = bench.repeatable();
    let stray = Entry { tree: 3, unique: false, key: b"k", value: b"" };
    let result = session.insert(&bench.table, b"1", b"r", std::iter::once(stray), Promise::default());
    assert!(matches!(result, Err(Stop::Misuse(_))));
    assert!(TableCursor::new(bench.table.clone(), 3, false).is_err());
}

#[test]
fn a_scan_comes_back_to_the_entry_behind_which_it_ended() {
    let bench = Bench::new();
    bench.fill(&[row("14", "14", "p"), row("15", "15", "p"), row("16", "16", "p")]);
    for read in [Read::SNAPSHOT, SHARED] {
        let mut session = bench.repeatable();
        let mut cursor = bench.cursor(0);
        let ends = |result: Result<()>| matches!(result, Err(Stop::NotFound | Stop::End));
        cursor.seek(&mut session, Start::AtOrAfter, b"14", End::Open, read).unwrap();
        assert!(ends(cursor.prev(&mut session)) && ends(cursor.prev(&mut session)));
        cursor.next(&mut session).unwrap();
        assert_eq!(cursor.key(), b"14");

        cursor.seek(&mut session, Start::Last, b"", End::Open, read).unwrap();
        assert!(ends(cursor.next(&mut session)) && ends(cursor.next(&mut session)));
        cursor.prev(&mut session).unwrap();
        assert_eq!(cursor.key(), b"16");

        // What these look for is before all there is or behind it, the last behind all there can be.
        for (start, key, back) in [
            (Start::AtOrAfter, &b"99"[..], b"16"),
            (Start::After, b"16", b"16"),
            (Start::AtOrBefore, b"0", b"14"),
            (Start::Before, b"14", b"14"),
            (Start::After, b"\xff", b"16"),
        ] {
            assert!(ends(cursor.seek(&mut session, start, key, End::Open, read)));
            match start.direction() {
                Direction::Up => cursor.prev(&mut session).unwrap(),
                Direction::Down => cursor.next(&mut session).unwrap(),
            }
            assert_eq!(cursor.key(), back, "{start:?} {key:?}");
        }
        session.commit().unwrap();
    }
}
