//! Which transactions and locks are listed.

use super::*;
use crate::locks::{held_locks, Locked};
use crate::transactions::{open_transactions, OpenTransaction, Phase};
use std::ops::ControlFlow;

fn of(bench: &Bench, txn: u64) -> Option<OpenTransaction> {
    open_transactions(&bench.engine).into_iter().find(|open| open.txn == txn)
}

#[test]
fn a_transaction_is_listed_with_what_it_has_done_until_it_ends() {
    let bench = Bench::new();
    bench.fill(&[row("1", "u1", "p")]);
    let mut session = Session::new(bench.engine.clone(), NOBODY, 7);
    session.note_time(42);
    session.begin(Level::RepeatableRead).unwrap();
    let begun = of(&bench, session.txn_id()).unwrap();
    assert_eq!((begun.session, begun.phase, begun.started), (7, Phase::Running, Some(42)));
    assert_eq!((begun.level, begun.snapshot, begun.rows), (Some(Level::RepeatableRead), None, Some(0)));
    assert_eq!(begun.figures, Default::default());
    let snapshot = session.open_snapshot().unwrap();
    session.note_time(43);
    session.begin(Level::Serializable).unwrap();
    bench.insert(&mut session, row("2", "u2", "p")).unwrap();
    bench.delete(&mut session, row("1", "u1", "p")).unwrap();
    session.statement_commit().unwrap();
    let open = of(&bench, session.txn_id()).unwrap();
    assert_eq!((open.started, open.level, open.rows), (Some(42), Some(Level::Serializable), Some(2)));
    assert_eq!(open.snapshot.map(|(timestamp, _)| timestamp), Some(snapshot));
    assert!(open.figures.locks >= 4 && open.figures.redo_bytes > 0 && open.xid.is_none());
    let before = session.txn_id();
    session.commit().unwrap();
    assert!(of(&bench, before).is_none());
    session.begin(Level::ReadCommitted).unwrap();
    let next = of(&bench, session.txn_id()).unwrap();
    assert_eq!((next.rows, next.figures, next.phase), (Some(0), Default::default(), Phase::Running));
}

#[test]
fn a_transaction_within_another_is_listed_in_its_place() {
    let bench = Bench::new();
    let mut session = bench.repeatable();
    bench.insert(&mut session, row("1", "u1", "p")).unwrap();
    session.statement_commit().unwrap();
    let outer = of(&bench, session.txn_id()).unwrap();
    session
        .apart(|session| {
            let own = of(&bench, session.txn_id()).unwrap();
            assert_eq!((own.rows, own.level), (Some(0), Some(Level::ReadCommitted)));
            assert!(of(&bench, outer.txn).is_none());
            Ok(())
        })
        .unwrap();
    let again = of(&bench, outer.txn).unwrap();
    assert_eq!((again.rows, again.figures, again.level), (outer.rows, outer.figures, outer.level));
    session.rollback();
}

#[test]
fn a_prepared_transaction_is_listed_with_and_without_its_session() {
    let bench = Bench::new();
    let mut session = bench.repeatable();
    bench.insert(&mut session, row("1", "u1", "p")).unwrap();
    session.prepare(b"\x01\0\0\0\x01\0x", true).unwrap();
    let owned = of(&bench, session.txn_id()).unwrap();
    assert_eq!((owned.session, owned.phase, owned.xid.as_deref()), (1, Phase::Prepared, Some("'x'")));
    assert!(owned.pinned_bytes > 0);
    drop(session);
    let alone = of(&bench, owned.txn).unwrap();
    assert_eq!((alone.session, alone.phase, alone.xid.as_deref()), (0, Phase::Prepared, Some("'x'")));
    assert_eq!((alone.rows, alone.started, alone.figures.locks), (None, None, owned.figures.locks));
    bench.engine.core.rollback_prepared(b"\x01\0\0\0\x01\0x").unwrap();
    assert!(of(&bench, owned.txn).is_none());
}

#[test]
fn rows_that_nobody_waits_for_are_counted() {
    let bench = Bench::new();
    bench.fill(&[row("1", "u1", "p"), row("2", "u2", "p")]);
    let mut session = bench.session(Level::ReadCommitted);
    for pk in ["1", "2"] {
        bench.get(&mut session, pk, EXCLUSIVE).unwrap();
    }
    session.statement_commit().unwrap();
    let mut found = Vec::new();
    held_locks(&bench.engine, &mut |lock| {
        found.push((lock.txn, lock.locked));
        ControlFlow::Continue(())
    });
    assert!(matches!(found[..], [(txn, Locked::Rows(2))] if txn == session.txn_id()), "{found:?}");
    session.rollback();
}
