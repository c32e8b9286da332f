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
fn a_read_only_transaction_does_not_write() {
    let bench = Bench::new();
    let mut session = bench.repeatable();
    session.rollback();
    session.begin(Level::RepeatableRead, true).unwrap();
    assert!(bench.insert(&mut session, row("1", "u1", "p")).is_err());
    session.commit().unwrap();
    session.begin(Level::RepeatableRead, false).unwrap();
    bench.insert(&mut session, row("1", "u1", "p")).unwrap();
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
