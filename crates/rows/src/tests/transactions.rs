//! Statements, savepoints, two-phase commit.

use super::*;

#[test]
fn a_statement_rollback_undoes_only_the_statement() {
    let bench = Bench::new();
    let mut session = bench.repeatable();
    session.statement_begin().unwrap();
    bench.insert(&mut session, row("1", "u1", "p")).unwrap();
    session.statement_commit().unwrap();
    session.statement_begin().unwrap();
    bench.insert(&mut session, row("2", "u2", "p")).unwrap();
    session.statement_begin().unwrap();
    bench.insert(&mut session, row("3", "u3", "p")).unwrap();
    session.statement_rollback().unwrap();
    session.commit().unwrap();
    assert_eq!(bench.committed(0), ["1"]);
}

#[test]
fn savepoints_nest() {
    let bench = Bench::new();
    let mut session = bench.repeatable();
    let before = session.savepoint().unwrap();
    bench.insert(&mut session, row("1", "u1", "p")).unwrap();
    let between = session.savepoint().unwrap();
    bench.insert(&mut session, row("2", "u2", "p")).unwrap();
    session.savepoint_rollback(between).unwrap();
    bench.insert(&mut session, row("3", "u3", "p")).unwrap();
    session.savepoint_rollback(between).unwrap();
    assert_eq!(bench.keys(&mut session, 0, Read::SNAPSHOT).unwrap(), ["1"]);
    session.savepoint_rollback(before).unwrap();
    assert!(session.savepoint_rollback(between).is_err());
    session.commit().unwrap();
    assert!(bench.committed(0).is_empty());
}

#[test]
fn read_committed_takes_a_snapshot_per_statement() {
    let bench = Bench::new();
    let mut committed = bench.session(Level::ReadCommitted);
    let mut repeatable = bench.repeatable();
    for session in [&mut committed, &mut repeatable] {
        session.statement_begin().unwrap();
        assert!(bench.keys(session, 0, Read::SNAPSHOT).unwrap().is_empty());
    }
    bench.fill(&[row("1", "u1", "p")]);
    for session in [&mut committed, &mut repeatable] {
        assert!(bench.keys(session, 0, Read::SNAPSHOT).unwrap().is_empty(), "within the statement");
        session.statement_commit().unwrap();
        session.statement_begin().unwrap();
    }
    assert_eq!(bench.keys(&mut committed, 0, Read::SNAPSHOT).unwrap(), ["1"]);
    assert!(bench.keys(&mut repeatable, 0, Read::SNAPSHOT).unwrap().is_empty());
}

#[test]
fn a_prepared_transaction_outlives_its_session() {
    for commits in [true, false] {
        let bench = Bench::new();
        let mut session = bench.repeatable();
        bench.insert(&mut session, row("1", "u1", "p")).unwrap();
        session.prepare(b"xid", true).unwrap();
        assert!(bench.insert(&mut session, row("2", "u2", "p")).is_err());
        drop(session);
        assert!(bench.committed(0).is_empty());
        assert_eq!(bench.engine.core.prepared(), [b"xid".to_vec()]);
        if commits {
            bench.engine.core.commit_prepared(b"xid").unwrap();
            assert_eq!(bench.committed(0), ["1"]);
        } else {
            bench.engine.core.rollback_prepared(b"xid").unwrap();
            assert!(bench.committed(0).is_empty());
        }
    }
}

#[test]
fn commit_ordered_publishes_and_commit_ends() {
    let bench = Bench::new();
    let mut session = bench.repeatable();
    bench.insert(&mut session, row("1", "u1", "p")).unwrap();
    assert!(session.commit_ordered().is_err(), "not prepared");
    session.prepare(b"xid", true).unwrap();
    session.commit_ordered().unwrap();
    assert_eq!(bench.committed(0), ["1"]);
    session.commit().unwrap();
    assert!(!session.is_active());
    session.commit().unwrap();
}

#[test]
fn a_sessions_next_transaction_has_nothing_of_its_last() {
    let bench = Bench::new();
    let (mut session, mut other) = (bench.repeatable(), bench.repeatable());
    for number in 0..6 {
        let id = session.txn_id();
        session.statement_begin().unwrap();
        session.open_snapshot().unwrap();
        bench.insert(&mut session, row(&number.to_string(), &format!("u{number}"), "p")).unwrap();
        session.savepoint().unwrap();
        assert!(session.has_writes() && session.has_locks());
        match number % 3 {
            0 => session.commit().unwrap(),
            1 => session.rollback(),
            _ => {
                session.prepare(format!("xid {number}").as_bytes(), true).unwrap();
                session.commit_ordered().unwrap();
                session.commit().unwrap();
            }
        }
        session.begin(Level::RepeatableRead).unwrap();
        assert!(
            session.txn_id() > id && !session.has_writes() && !session.has_locks() && !session.is_prepared()
        );
        assert_eq!(session.rows_added(bench.table.tree(0)), 0);
        assert!(!session.has_written(bench.table.tree(0)) && session.savepoint_rollback(0).is_err());
        // The last one's locks are given back, and its snapshot.
        bench.insert(&mut other, row(&format!("{number}0"), &format!("u{number}0"), "p")).unwrap();
        other.commit().unwrap();
        other.begin(Level::RepeatableRead).unwrap();
        assert_eq!(bench.engine.core.snapshots().len(), 0);
    }
    session.commit().unwrap();
    let mut expected = ["0", "2", "3", "5", "00", "10", "20", "30", "40", "50"];
    expected.sort_unstable();
    assert_eq!(bench.committed(0), expected);
}

#[test]
fn a_session_that_goes_rolls_back_and_leaves() {
    let bench = Bench::new();
    let mut session = bench.repeatable();
    bench.insert(&mut session, row("1", "u1", "p")).unwrap();
    assert_eq!(bench.engine.open_transactions(), [(session.txn_id(), 1)]);
    drop(session);
    assert!(bench.engine.open_transactions().is_empty());
    assert_eq!(bench.engine.session_count(), 0);
    assert!(bench.committed(0).is_empty());
}

#[test]
fn counters_are_reserved_raised_and_set() {
    use crate::counter::{raise, reserve, set};
    let bench = Bench::new();
    let mut session = bench.repeatable();
    assert_eq!(reserve(session.txn().ok(), &bench.table, 1, 1, 3).unwrap(), 1);
    assert_eq!(reserve(session.txn().ok(), &bench.table, 1, 1, 1).unwrap(), 4);
    assert_eq!(reserve(session.txn().ok(), &bench.table, 3, 10, 2).unwrap(), 13);
    assert_eq!(bench.table.counter(), 33);
    raise(session.txn().ok(), &bench.table, 20);
    assert_eq!(bench.table.counter(), 33);
    raise(session.txn().ok(), &bench.table, 40);
    assert_eq!(bench.table.counter(), 41);
    set(session.txn().unwrap(), &bench.table, 7);
    assert_eq!(bench.table.counter(), 7);
    raise(None, &bench.table, u64::MAX);
    assert!(matches!(reserve(None, &bench.table, 1, 1, 1), Err(Stop::CounterExhausted)));
}
