//! Results that the server keeps, and to whom it may give them.

use super::*;
use crate::results::{fate_in, fate_now, version_read, Fate};
use teak_core::server::{IfPrepared, Renaming};

const NAME: &str = "db/t";

/// What becomes of a result of this version for a session in a transaction.
fn fate(session: &mut Session, version: u64, repeats: bool) -> Fate {
    fate_in(session, NAME, version, repeats).unwrap()
}

#[test]
fn a_result_is_taken_by_who_would_read_the_same() {
    let bench = Bench::new();
    bench.fill(&[row("1", "u1", "p")]);
    let mut old = bench.repeatable();
    old.open_snapshot().unwrap();
    bench.fill(&[row("2", "u2", "p")]);
    let mut reader = bench.repeatable();
    let version = version_read(&mut reader, &bench.table).unwrap().expect("the newest");
    assert_eq!(fate_now(&bench.engine, NAME, version), Fate::Taken);
    assert_eq!(fate(&mut bench.repeatable(), version, true), Fate::Taken);
    // It is right, but not for who has an older snapshot, and he leaves none.
    assert_eq!(fate(&mut old, version, true), Fate::Passed);
    assert_eq!(version_read(&mut old, &bench.table).unwrap(), None);
    // One that repeats nothing reads what is newest.
    assert_eq!(fate(&mut bench.session(Level::ReadCommitted), version, false), Fate::Taken);

    bench.fill(&[row("3", "u3", "p")]);
    assert_eq!(fate_now(&bench.engine, NAME, version), Fate::Stale);
    assert_eq!(fate(&mut reader, version, true), Fate::Stale, "others would get it");
    assert_eq!(version_read(&mut reader, &bench.table).unwrap(), None, "it reads what was before");
}

#[test]
fn who_has_written_to_the_table_neither_leaves_a_result_nor_takes_one() {
    let bench = Bench::new();
    bench.fill(&[row("1", "u1", "p")]);
    let version = version_read(&mut bench.repeatable(), &bench.table).unwrap().expect("the newest");
    let mut writer = bench.repeatable();
    assert_eq!(fate(&mut writer, version, true), Fate::Taken);
    let before = writer.savepoint().unwrap();
    bench.insert(&mut writer, row("2", "u2", "p")).unwrap();
    for repeats in [true, false] {
        assert_eq!(fate(&mut writer, version, repeats), Fate::Passed);
    }
    assert_eq!(version_read(&mut writer, &bench.table).unwrap(), None);
    assert_eq!(fate(&mut bench.repeatable(), version, true), Fate::Taken, "it is not committed");
    writer.savepoint_rollback(before).unwrap();
    assert_eq!(fate(&mut writer, version, true), Fate::Passed);
    writer.rollback();
    assert_eq!(fate_now(&bench.engine, NAME, version), Fate::Taken);
}

#[test]
fn a_name_that_means_another_table_has_no_results() {
    let bench = Bench::new();
    let core = &bench.engine.core;
    core.create(NewTable { meta: b"meta", ..NewTable::new("db/u", &[TreeSpec::default(); 3]) }).unwrap();
    let other = core.open_table("db/u").unwrap();
    let versions = || {
        let mut session = bench.repeatable();
        let table = core.open_table(NAME).unwrap();
        [&table, &other].map(|table| version_read(&mut session, table).unwrap().expect("the newest"))
    };
    let [version, of_other] = versions();
    core.rename(Renaming::new(NAME, "db/v")).unwrap();
    assert_eq!(fate_now(&bench.engine, NAME, version), Fate::Stale, "there is none");
    core.rename(Renaming::new("db/u", NAME)).unwrap();
    assert_eq!(fate_now(&bench.engine, NAME, version), Fate::Stale);
    assert_eq!(fate_now(&bench.engine, NAME, of_other), Fate::Stale);
    let [version, _] = versions();
    assert_eq!(fate_now(&bench.engine, NAME, version), Fate::Taken);
    core.empty(NAME, None).unwrap();
    assert_eq!(fate_now(&bench.engine, NAME, version), Fate::Stale);
    core.drop(NAME, IfPrepared::Refuse).unwrap();
    assert_eq!(fate_now(&bench.engine, NAME, version), Fate::Stale);
}

#[test]
fn a_prepared_transaction_makes_results_stale_when_it_is_committed_also_after_a_restart() {
    let bench = Bench::new();
    let mut session = bench.repeatable();
    bench.insert(&mut session, row("1", "u1", "p")).unwrap();
    session.prepare(b"x", true).unwrap();
    drop(session);
    let bench = bench.reopen();
    let version = version_read(&mut bench.repeatable(), &bench.table).unwrap().expect("the newest");
    assert_eq!(fate_now(&bench.engine, NAME, version), Fate::Taken);
    bench.engine.core.commit_prepared(b"x").unwrap();
    assert_eq!(fate_now(&bench.engine, NAME, version), Fate::Stale);
}
