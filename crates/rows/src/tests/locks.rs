//! Locking reads, ranges, conflicts with the snapshot.

use std::cell::Cell;
use std::rc::Rc;
use std::thread;

use teak_core::Error;

use super::*;
use crate::scan::Busy;

pub(super) fn is_timeout<T>(result: Result<T>) -> bool {
    matches!(result, Err(Stop::Core(Error::LockTimeout)))
}

fn is_conflict<T>(result: Result<T>) -> bool {
    matches!(result, Err(Stop::Core(Error::SnapshotConflict)))
}

pub(super) fn three(bench: &Bench) {
    bench.fill(&[row("1", "u1", "p"), row("3", "u3", "p"), row("5", "u5", "p")]);
}

#[test]
fn a_locked_row_is_waited_for_refused_or_skipped() {
    let bench = Bench::new();
    three(&bench);
    let mut holder = bench.repeatable();
    assert_eq!(bench.get(&mut holder, "3", EXCLUSIVE).unwrap(), "3/u3/p");
    let mut other = bench.repeatable();
    assert!(is_timeout(bench.get(&mut other, "3", SHARED)));
    let refusing = Read { busy: Busy::Fail, ..EXCLUSIVE };
    assert!(matches!(bench.get(&mut other, "3", refusing), Err(Stop::Core(Error::WouldBlock))));
    let skipping = Read { busy: Busy::Skip, ..EXCLUSIVE };
    assert!(matches!(bench.get(&mut other, "3", skipping), Err(Stop::NotFound)));
    assert_eq!(bench.keys(&mut other, 0, skipping).unwrap(), ["1", "5"]);
    assert_eq!(bench.get(&mut other, "3", Read::SNAPSHOT).unwrap(), "3/u3/p", "plain reads do not wait");
}

#[test]
fn a_locking_scan_waits_for_uncommitted_inserts() {
    let bench = Bench::new();
    three(&bench);
    let mut writer = bench.repeatable();
    bench.insert(&mut writer, row("4", "u4", "p")).unwrap();
    let mut reader = bench.repeatable();
    assert!(is_timeout(bench.keys(&mut reader, 0, EXCLUSIVE)));
    assert!(is_timeout(bench.get(&mut reader, "4", EXCLUSIVE)));
    writer.commit().unwrap();
    assert_eq!(bench.keys(&mut reader, 0, EXCLUSIVE).unwrap(), ["1", "3", "4", "5"]);
}

#[test]
fn a_rolled_back_insert_is_passed_over() {
    let bench = Bench::new();
    three(&bench);
    let mut writer = bench.repeatable();
    bench.insert(&mut writer, row("4", "u4", "p")).unwrap();
    let (mut reader, connection) = bench.patient();
    thread::scope(|scope| {
        let keys = scope.spawn(|| bench.keys(&mut reader, 0, EXCLUSIVE));
        connection.until_asleep();
        writer.rollback();
        assert_eq!(keys.join().unwrap().unwrap(), ["1", "3", "5"]);
    });
    assert_eq!(connection.sleeps.load(Ordering::SeqCst), 1);
    assert!(!connection.asleep.load(Ordering::SeqCst));
}

#[test]
fn a_waiter_can_be_killed() {
    let bench = Bench::new();
    three(&bench);
    let mut holder = bench.repeatable();
    bench.get(&mut holder, "3", EXCLUSIVE).unwrap();
    let (mut waiter, connection) = bench.patient();
    let txn = waiter.txn_id();
    thread::scope(|scope| {
        let waiting = scope.spawn(|| bench.get(&mut waiter, "3", EXCLUSIVE));
        connection.until_asleep();
        connection.killed.store(true, Ordering::SeqCst);
        bench.engine.core.interrupt(txn);
        assert!(matches!(waiting.join().unwrap(), Err(Stop::Core(Error::Interrupted))));
    });
}

/// A session and its connection.
type Connected = (Session, Arc<Connection>);

/// Who has locked the row 3, and who is not going to wait for it long.
fn holder_and_waiter(bench: &Bench) -> (Connected, Connected) {
    let mut holder = bench.patient();
    bench.get(&mut holder.0, "3", EXCLUSIVE).unwrap();
    let mut waiter = bench.patient();
    waiter.0.set_lock_wait_timeout(Duration::from_millis(10));
    (holder, waiter)
}

#[test]
fn the_server_learns_who_waits_for_whom() {
    let bench = Bench::new();
    three(&bench);
    let ((holder, _), (mut waiter, waiting)) = holder_and_waiter(&bench);
    assert!(is_timeout(bench.get(&mut waiter, "3", EXCLUSIVE)));
    assert_eq!(*waiting.waited_for.lock().unwrap(), [holder.tag().thd]);
}

#[test]
fn the_server_acts_on_reports_while_nothing_is_locked() {
    let bench = Bench::new();
    three(&bench);
    let ((holder, holding), (mut waiter, _)) = holder_and_waiter(&bench);
    let (engine, txn) = (bench.engine.clone(), holder.txn_id());
    let acted = Rc::new(Cell::new(false));
    let act = |acted: &Rc<Cell<bool>>| -> Act {
        let (engine, acted) = (engine.clone(), acted.clone());
        Box::new(move || {
            // As a KILL does, and on another thread: with any latch held this would not come back.
            let others = thread::spawn(move || {
                engine.core.interrupt(txn);
                engine.open_transactions().len()
            });
            assert_eq!(others.join().unwrap(), 2);
            acted.set(true);
        })
    };

    REPORTS_MADE.set(Some(act(&acted)));
    assert!(is_timeout(bench.get(&mut waiter, "3", EXCLUSIVE)));
    assert!(!acted.get(), "nobody is to be rolled back");

    holding.victim.store(true, Ordering::SeqCst);
    assert!(is_timeout(bench.get(&mut waiter, "3", EXCLUSIVE)));
    assert!(acted.get());
}

#[test]
fn a_session_does_not_go_on_while_the_server_is_told_of_it() {
    let bench = Bench::new();
    three(&bench);
    let ((mut holder, _), (mut waiter, _)) = holder_and_waiter(&bench);
    let (ended, tag) = (Arc::new(AtomicBool::new(false)), holder.tag().clone());
    let (begun, begins) = std::sync::mpsc::channel();
    let bench = &bench;
    thread::scope(|scope| {
        let seen = ended.clone();
        scope.spawn(move || {
            REPORT_WAIT.set(Some(Box::new(move || {
                begun.send(()).unwrap();
                while tag.txn.load(Ordering::SeqCst) != 0 {
                    thread::yield_now();
                }
                // A session that did not wait here would be gone by now.
                (0..1000).for_each(|_| thread::yield_now());
                assert!(
                    !seen.load(Ordering::SeqCst),
                    "the kill that is asked for would be for another transaction"
                );
            })));
            // The row is free as soon as the transaction has ended.
            waiter.set_lock_wait_timeout(Duration::from_secs(50));
            bench.get(&mut waiter, "3", EXCLUSIVE).unwrap();
        });
        begins.recv().unwrap();
        holder.rollback();
        ended.store(true, Ordering::SeqCst);
    });
}

#[test]
fn nobody_inserts_into_a_scanned_range() {
    let bench = Bench::new();
    three(&bench);
    let mut reader = bench.repeatable();
    let mut cursor = bench.cursor(0);
    cursor.seek(&mut reader, Start::AtOrAfter, b"1", End::Include(b"3"), SHARED).unwrap();
    cursor.next(&mut reader).unwrap();
    assert!(matches!(cursor.next(&mut reader), Err(Stop::End)));
    let mut writer = bench.repeatable();
    assert!(is_timeout(bench.insert(&mut writer, row("2", "u2", "p"))));
    assert!(is_timeout(bench.insert(&mut writer, row("3x", "u2", "p"))), "still begins with the bound");
    bench.insert(&mut writer, row("4", "u4", "p")).unwrap();
    assert_eq!(bench.get(&mut writer, "5", EXCLUSIVE).unwrap(), "5/u5/p", "past the end nothing is locked");
    reader.rollback();
    bench.insert(&mut writer, row("2", "u2", "p")).unwrap();
}

#[test]
fn a_scan_that_stops_early_leaves_the_rest_of_the_table_alone() {
    let bench = Bench::new();
    three(&bench);
    for (start, free, blocked) in [(Start::First, "4", "0"), (Start::Last, "2", "6")] {
        let mut reader = bench.repeatable();
        let mut cursor = bench.cursor(0);
        cursor.seek(&mut reader, start, b"", End::Open, EXCLUSIVE).unwrap();
        let mut writer = bench.repeatable();
        bench.insert(&mut writer, row(free, free, "p")).unwrap();
        assert!(is_timeout(bench.insert(&mut writer, row(blocked, blocked, "p"))));
    }
}

#[test]
fn a_scan_locks_ahead_in_proportion() {
    let bench = Bench::new();
    let names: Vec<String> = (1000..1600).map(|n| n.to_string()).collect();
    bench.fill(&names.iter().map(|n| row(n, n, "p")).collect::<Vec<_>>());
    let mut reader = bench.repeatable();
    let mut cursor = bench.cursor(0);
    cursor.seek(&mut reader, Start::First, b"", End::Open, SHARED).unwrap();
    for _ in 0..200 {
        cursor.next(&mut reader).unwrap();
    }
    assert_eq!(cursor.key(), b"1200");
    let mut writer = bench.repeatable();
    for key in ["0", "1100x", "1199x"] {
        assert!(is_timeout(bench.insert(&mut writer, row(key, key, "p"))), "{key}");
    }
    bench.insert(&mut writer, row("1226x", "1226x", "p")).unwrap();
}

#[test]
fn a_scan_that_turns_around_locks_where_it_goes() {
    let bench = Bench::new();
    three(&bench);
    let mut reader = bench.repeatable();
    let mut cursor = bench.cursor(0);
    cursor.get(&mut reader, b"3", SHARED).unwrap();
    let mut writer = bench.repeatable();
    bench.insert(&mut writer, row("40", "40", "p")).unwrap();
    writer.commit().unwrap();
    cursor.next(&mut reader).unwrap();
    assert_eq!(cursor.key(), b"40");
    let mut writer = bench.repeatable();
    assert!(is_timeout(bench.insert(&mut writer, row("4", "4", "p"))));
    bench.insert(&mut writer, row("2", "2", "p")).unwrap();
    writer.rollback();
    cursor.prev(&mut reader).unwrap();
    cursor.prev(&mut reader).unwrap();
    assert_eq!(cursor.key(), b"1");
    assert!(is_timeout(bench.insert(&mut bench.repeatable(), row("2", "2", "p"))));
}

#[test]
fn a_long_scan_locks_its_whole_range() {
    let bench = Bench::new();
    let names: Vec<String> = (100..160).map(|n| n.to_string()).collect();
    bench.fill(&names.iter().map(|n| row(n, n, "p")).collect::<Vec<_>>());
    let mut reader = bench.repeatable();
    assert_eq!(bench.keys(&mut reader, 0, SHARED).unwrap().len(), 60);
    let mut writer = bench.repeatable();
    for key in ["0", "1000", "1305", "999"] {
        assert!(is_timeout(bench.insert(&mut writer, row(key, key, "p"))), "{key}");
    }
}

#[test]
fn a_missing_key_stays_missing() {
    let bench = Bench::new();
    three(&bench);
    let (mut one, mut two) = (bench.repeatable(), bench.repeatable());
    assert!(matches!(bench.get(&mut one, "2", EXCLUSIVE), Err(Stop::NotFound)));
    assert!(
        matches!(bench.get(&mut two, "2", EXCLUSIVE), Err(Stop::NotFound)),
        "gaps do not exclude each other"
    );
    let mut writer = bench.repeatable();
    assert!(is_timeout(bench.insert(&mut writer, row("2", "u2", "p"))));
    bench.insert(&mut writer, row("4", "u4", "p")).unwrap();
}

#[test]
fn read_committed_locks_no_ranges_and_gives_rows_back() {
    let bench = Bench::new();
    three(&bench);
    let mut reader = bench.session(Level::ReadCommitted);
    let mut cursor = bench.cursor(0);
    cursor.seek(&mut reader, Start::First, b"", End::Open, EXCLUSIVE).unwrap();
    cursor.unlock_row(&mut reader);
    cursor.next(&mut reader).unwrap();
    let mut writer = bench.repeatable();
    bench.insert(&mut writer, row("2", "u2", "p")).unwrap();
    bench.delete(&mut writer, row("1", "u1", "p")).unwrap();
    assert!(is_timeout(bench.delete(&mut writer, row("3", "u3", "p"))));
}

#[test]
fn a_row_that_was_locked_before_is_not_given_back() {
    let bench = Bench::new();
    three(&bench);
    let mut reader = bench.session(Level::ReadCommitted);
    bench.get(&mut reader, "1", EXCLUSIVE).unwrap();
    let mut cursor = bench.cursor(0);
    cursor.get(&mut reader, b"1", EXCLUSIVE).unwrap();
    cursor.unlock_row(&mut reader);
    assert!(is_timeout(bench.get(&mut bench.repeatable(), "1", SHARED)));
}

#[test]
fn a_fetch_locks_the_row_of_an_entry() {
    let bench = Bench::new();
    three(&bench);
    let mut reader = bench.repeatable();
    let (mut index, mut rows) = (bench.cursor(2), bench.cursor(0));
    index.seek(&mut reader, Start::AtOrAfter, b"p\x003", End::Open, EXCLUSIVE).unwrap();
    let mut other = bench.repeatable();
    bench.get(&mut other, "3", SHARED).unwrap();
    other.rollback();
    rows.fetch(&mut reader, &mut index, b"3", EXCLUSIVE).unwrap();
    assert_eq!(text(&rows).unwrap(), "3/u3/p");
    let mut other = bench.repeatable();
    assert!(is_timeout(bench.get(&mut other, "3", SHARED)));
    // Reading through the snapshot needs no lock.
    index.seek(&mut other, Start::AtOrAfter, b"p\x003", End::Open, Read::SNAPSHOT).unwrap();
    rows.fetch(&mut other, &mut index, b"3", Read::SNAPSHOT).unwrap();
}

#[test]
fn a_stale_entry_is_no_row() {
    let bench = Bench::new();
    three(&bench);
    let mut reader = bench.session(Level::ReadCommitted);
    let (mut plain, mut unique, mut rows) = (bench.cursor(2), bench.cursor(1), bench.cursor(0));
    plain.seek(&mut reader, Start::AtOrAfter, b"p\x003", End::Open, EXCLUSIVE).unwrap();
    unique.get(&mut reader, b"u3", EXCLUSIVE).unwrap();
    let mut writer = bench.repeatable();
    bench.update(&mut writer, row("3", "u3", "p"), row("3", "u4", "q")).unwrap();
    bench.update(&mut writer, row("5", "u5", "p"), row("5", "u3", "p")).unwrap();
    writer.commit().unwrap();
    assert!(matches!(rows.fetch(&mut reader, &mut plain, b"3", EXCLUSIVE), Err(Stop::NotFound)));
    rows.fetch(&mut reader, &mut unique, b"3", EXCLUSIVE).unwrap();
    assert_eq!(rows.key(), b"5", "u3 is now an entry of row 5");
    assert!(is_timeout(bench.get(&mut bench.repeatable(), "5", EXCLUSIVE)), "which is locked");
    plain.next(&mut reader).unwrap();
    assert_eq!(plain.key(), b"p\x005", "the scan goes on behind a stale entry");
    // Neither left a lock behind on the row that it did not return.
    bench.get(&mut bench.repeatable(), "3", EXCLUSIVE).unwrap();
}

#[test]
fn an_index_scan_waits_for_uncommitted_rows_when_it_fetches_them() {
    let bench = Bench::new();
    let mut writer = bench.repeatable();
    bench.insert(&mut writer, row("1", "u1", "p")).unwrap();
    let mut reader = bench.repeatable();
    let (mut index, mut rows) = (bench.cursor(2), bench.cursor(0));
    index.seek(&mut reader, Start::First, b"", End::Open, EXCLUSIVE).unwrap();
    assert!(is_timeout(rows.fetch(&mut reader, &mut index, b"1", EXCLUSIVE)));
    writer.rollback();
    assert!(matches!(rows.fetch(&mut reader, &mut index, b"1", EXCLUSIVE), Err(Stop::NotFound)));
}

#[test]
fn what_comes_back_while_a_scan_passes_its_place_is_not_passed_over() {
    for down in [false, true] {
        let bench = Bench::new();
        let (kept, behind) = if down { ("u9", "u6") } else { ("u5", "u8") };
        bench.fill(&[row("1", kept, "p")]);
        let mut early = bench.repeatable();
        bench.insert(&mut early, row("2", "u7", "p")).unwrap();
        let mut reader = bench.session(Level::ReadCommitted);
        let (mut index, mut rows) = (bench.cursor(1), bench.cursor(0));
        let start = if down { Start::AtOrBefore } else { Start::AtOrAfter };
        let to: fn(&mut TableCursor, &mut Session) -> Result<()> =
            if down { TableCursor::prev } else { TableCursor::next };
        index.seek(&mut reader, start, b"u7", End::Open, EXCLUSIVE).unwrap();
        early.rollback();
        assert!(matches!(rows.fetch(&mut reader, &mut index, b"2", EXCLUSIVE), Err(Stop::NotFound)));
        // One after the other, as from transactions the second of which has seen the first.
        bench.fill(&[row("3", "u7", "p")]);
        bench.fill(&[row("4", behind, "p")]);
        to(&mut index, &mut reader).unwrap();
        assert_eq!(index.key(), b"u7");
        rows.fetch(&mut reader, &mut index, b"3", EXCLUSIVE).unwrap();
        to(&mut index, &mut reader).unwrap();
        assert_eq!(index.key(), behind.as_bytes());
    }
}

#[test]
fn first_committer_wins_at_strict_repeatable_read() {
    let bench = Bench::new();
    three(&bench);
    let mut late = bench.repeatable();
    bench.get(&mut late, "1", Read::SNAPSHOT).unwrap();
    let mut early = bench.repeatable();
    bench.update(&mut early, row("3", "u3", "p"), row("3", "u3", "q")).unwrap();
    bench.delete(&mut early, row("5", "u5", "p")).unwrap();
    early.commit().unwrap();
    assert!(is_conflict(bench.get(&mut late, "3", SHARED)));
    assert!(is_conflict(bench.update(&mut late, row("3", "u3", "p"), row("3", "u3", "r"))));
    assert!(is_conflict(bench.get(&mut late, "5", EXCLUSIVE)), "a deleted row has changed as well");
    assert!(is_conflict(bench.insert(&mut late, row("5", "u5", "p"))));
    assert_eq!(bench.get(&mut late, "3", Read::SNAPSHOT).unwrap(), "3/u3/p");
    assert_eq!(bench.get(&mut late, "1", EXCLUSIVE).unwrap(), "1/u1/p");
}

#[test]
fn without_a_snapshot_or_strictness_there_is_no_conflict() {
    let bench = Bench::new();
    three(&bench);
    let mut no_snapshot = bench.repeatable();
    let mut lenient = bench.repeatable();
    lenient.set_strict(false);
    lenient.set_level(Level::RepeatableRead).unwrap();
    let mut committed = bench.session(Level::ReadCommitted);
    for session in [&mut lenient, &mut committed] {
        bench.get(session, "1", Read::SNAPSHOT).unwrap();
    }
    let mut early = bench.repeatable();
    bench.update(&mut early, row("3", "u3", "p"), row("3", "u3", "q")).unwrap();
    bench.delete(&mut early, row("5", "u5", "p")).unwrap();
    early.commit().unwrap();
    for session in [&mut no_snapshot, &mut lenient, &mut committed] {
        assert_eq!(bench.get(session, "3", EXCLUSIVE).unwrap(), "3/u3/q");
        let mut cursor = bench.cursor(0);
        let behind = cursor.seek(session, Start::After, b"3", End::Open, EXCLUSIVE);
        assert!(matches!(behind, Err(Stop::NotFound)));
        session.rollback();
    }
}

#[test]
fn a_lenient_write_over_what_its_snapshot_does_not_see_is_told() {
    let bench = Bench::new();
    three(&bench);
    let mut lenient = bench.repeatable();
    lenient.set_strict(false);
    lenient.set_level(Level::RepeatableRead).unwrap();
    let mut early = bench.repeatable();
    bench.update(&mut early, row("1", "u1", "p"), row("1", "u1", "q")).unwrap();
    early.commit().unwrap();
    assert!(!lenient.overtakes(&bench.table, b"1").unwrap(), "there is no snapshot");
    bench.get(&mut lenient, "1", Read::SNAPSHOT).unwrap();
    let mut early = bench.repeatable();
    bench.update(&mut early, row("3", "u3", "p"), row("3", "u3", "q")).unwrap();
    bench.delete(&mut early, row("5", "u5", "p")).unwrap();
    early.commit().unwrap();
    assert!(!lenient.overtakes(&bench.table, b"1").unwrap());
    assert!(lenient.overtakes(&bench.table, b"3").unwrap());
    bench.insert(&mut lenient, row("5", "u5", "r")).unwrap();
    assert!(lenient.overtakes(&bench.table, b"5").unwrap(), "also below its own version");
    // With the entries that stay written, too, its snapshot's reads of an index show them.
    let (old, new) = (row("3", "u3", "q").image(), row("3", "u3", "q").image());
    let (before, after) = (old.entries(), new.entries());
    let pairs = before.iter().zip(after.iter()).map(|(old, new)| (Some(*old), Some(*new)));
    let promise = Promise { rewrites: true, ..Promise::default() };
    assert!(!bench.keys(&mut lenient, 2, Read::SNAPSHOT).unwrap().contains(&"q\x003".to_string()));
    lenient.update(&bench.table, &old.pk, &new.pk, &new.row, pairs, promise).unwrap();
    assert!(bench.keys(&mut lenient, 2, Read::SNAPSHOT).unwrap().contains(&"q\x003".to_string()));
    // Of a row that it has taken out only the snapshot's entry is left, which leads to nothing.
    bench.delete(&mut lenient, row("5", "u5", "r")).unwrap();
    let (mut index, mut rows) = (bench.cursor(2), bench.cursor(0));
    index.get(&mut lenient, b"p\x005", Read::SNAPSHOT).unwrap();
    assert!(matches!(rows.fetch(&mut lenient, &mut index, b"5", Read::SNAPSHOT), Err(Stop::NotFound)));
}

#[test]
fn a_duplicate_is_locked_as_strongly_as_asked() {
    let bench = Bench::new();
    three(&bench);
    let mut session = bench.repeatable();
    assert!(bench.insert(&mut session, row("1", "u9", "p")).is_err());
    let mut other = bench.repeatable();
    bench.get(&mut other, "1", SHARED).unwrap();
    assert!(is_timeout(bench.get(&mut other, "1", EXCLUSIVE)), "shared by both");
    session.rollback();
    other.rollback();

    let (mut session, mut other) = (bench.repeatable(), bench.repeatable());
    let strongly = Promise { duplicate: LockMode::Exclusive, ..Promise::default() };
    assert!(bench.insert_with(&mut session, row("1", "u9", "p"), strongly).is_err());
    assert!(is_timeout(bench.get(&mut other, "1", SHARED)));
}

#[test]
fn an_insert_waits_to_know_whether_a_deleted_key_stays_deleted() {
    for commits in [true, false] {
        let bench = Bench::new();
        three(&bench);
        let mut deleter = bench.repeatable();
        bench.delete(&mut deleter, row("3", "u3", "p")).unwrap();
        let mut inserter = bench.repeatable();
        assert!(is_timeout(bench.insert(&mut inserter, row("7", "u3", "p"))));
        if commits {
            deleter.commit().unwrap();
            bench.insert(&mut inserter, row("7", "u3", "p")).unwrap();
            inserter.commit().unwrap();
            assert_eq!(bench.committed(0), ["1", "5", "7"]);
        } else {
            deleter.rollback();
            assert!(matches!(bench.insert(&mut inserter, row("7", "u3", "p")), Err(Stop::Duplicate)));
        }
    }
}

#[test]
fn a_deadlock_has_a_victim() {
    let bench = Bench::new();
    three(&bench);
    let (mut one, mut two) = (bench.repeatable(), bench.repeatable());
    for session in [&mut one, &mut two] {
        session.set_lock_wait_timeout(Duration::from_secs(20));
    }
    bench.get(&mut one, "1", EXCLUSIVE).unwrap();
    bench.get(&mut two, "3", EXCLUSIVE).unwrap();
    thread::scope(|scope| {
        let crossing = scope.spawn(|| {
            let result = bench.get(&mut one, "3", EXCLUSIVE);
            one.rollback();
            result
        });
        let other = bench.get(&mut two, "1", EXCLUSIVE);
        two.rollback();
        let deadlocks = [crossing.join().unwrap(), other]
            .iter()
            .filter(|r| matches!(r, Err(Stop::Core(Error::Deadlock))))
            .count();
        assert_eq!(deadlocks, 1);
    });
}

/// Gathered rows are nowhere to be met: whoever locked their range meanwhile has seen none of them, and must not see
/// them later.
#[test]
fn a_load_waits_at_its_end_for_ranges_that_were_locked_before_its_rows_could_be_met() {
    let bench = Bench::new();
    three(&bench);
    let mut loader = bench.repeatable();
    let append = Promise { batch: Batch::Many, ..Promise::default() };
    for pk in ["6", "7", "8"] {
        bench.insert_with(&mut loader, row(pk, pk, "p"), append).map_err(|(stop, _)| stop).unwrap();
    }
    let mut reader = bench.repeatable();
    assert_eq!(bench.keys(&mut reader, 0, EXCLUSIVE).unwrap(), ["1", "3", "5"]);
    assert!(is_timeout(loader.finish_writes()));
    assert_eq!(bench.keys(&mut reader, 0, Read::SNAPSHOT).unwrap(), ["1", "3", "5"]);
    reader.rollback();
    loader.rollback();
    assert_eq!(bench.committed(0), ["1", "3", "5"]);
}

#[test]
fn a_load_meets_duplicates_like_any_other_insert() {
    let bench = Bench::new();
    three(&bench);
    let mut loader = bench.repeatable();
    let append = Promise { batch: Batch::Many, ..Promise::default() };
    let mut load = |pk: &str, unique: &str| bench.insert_with(&mut loader, row(pk, unique, "p"), append);
    load("2", "u2").map_err(|(stop, _)| stop).unwrap();
    load("4", "u4").map_err(|(stop, _)| stop).unwrap();
    assert!(matches!(load("5", "new"), Err((Stop::Duplicate, 0))));
    assert!(matches!(load("4", "new"), Err((Stop::Duplicate, 0))));
    assert!(matches!(load("6", "u2"), Err((Stop::Duplicate, _))));
    load("0", "u0").map_err(|(stop, _)| stop).unwrap();
    loader.finish_writes().unwrap();
    loader.commit().unwrap();
    assert_eq!(bench.committed(0), ["0", "1", "2", "3", "4", "5"]);
}

/// So do the index entries of a statement with many rows.
#[test]
fn a_statement_of_many_rows_waits_at_its_end_for_ranges_of_its_indexes() {
    gathers_entries_of(100..200, Promise::default());
}

#[test]
fn a_statement_of_many_rows_in_no_order_of_their_keys_gathers_their_entries_as_well() {
    let append = Promise { batch: Batch::Many, ..Promise::default() };
    gathers_entries_of((100..200).rev(), append);
    gathers_entries_of((0..100).map(|n| 100 + n * 37 % 100), append);
}

fn gathers_entries_of(keys: impl Iterator<Item = u32>, promise: Promise) {
    let bench = Bench::new();
    three(&bench);
    let keys: Vec<String> = keys.map(|n| n.to_string()).collect();
    let mut writer = bench.repeatable();
    writer.statement_begin().unwrap();
    let before = bench.keys(&mut bench.repeatable(), 2, Read::SNAPSHOT).unwrap();
    for key in &keys {
        bench.insert_with(&mut writer, row(key, key, "p"), promise).map_err(|(stop, _)| stop).unwrap();
    }
    let mut reader = bench.repeatable();
    let seen = bench.keys(&mut reader, 2, EXCLUSIVE).unwrap();
    assert!(seen.len() < before.len() + keys.len() / 2, "most entries were there before the end");
    assert!(is_timeout(writer.statement_commit()));
    writer.statement_rollback().unwrap();
    writer.commit().unwrap();
    reader.rollback();
    assert_eq!(bench.keys(&mut bench.repeatable(), 2, Read::SNAPSHOT).unwrap(), before);
    assert_eq!(bench.committed(0), ["1", "3", "5"]);
}
