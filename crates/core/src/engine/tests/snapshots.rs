//! Old snapshots: what they hold, when they give way, and who waits for them.

use super::*;
use crate::file::RealFileSystem;
use crate::options::Observer;
use crate::sync::Mutex;
use crate::{HistoryFull, LogLevel, WaitRequest};
use std::time::Duration;

/// Keeps what it is told.
#[derive(Default)]
struct Told(Mutex<Vec<String>>);

impl Observer for Told {
    fn message(&self, _level: LogLevel, text: &str) {
        self.0.lock().push(text.to_string());
    }
}

/// An engine that allows little history, with a table of a thousand rows.
fn with_little_history(full: HistoryFull) -> (Engine, Arc<Table>, Arc<Told>) {
    let told = Arc::new(Told::default());
    let limits = Options { history_max_bytes: 40 << 10, history_full: full, ..options() };
    let options = Options { observer: told.clone(), ..limits };
    let engine = Engine::open(Arc::new(SimulatedFileSystem::new(5)), options).unwrap();
    engine.create(NewTable::new("t", &specs(1))).unwrap();
    let table = engine.open_table("t").unwrap();
    write_all(&engine, &table, 0);
    (engine, table, told)
}

fn write_all(engine: &Engine, table: &Table, round: usize) {
    for from in (0..1000).step_by(50) {
        let mut txn = engine.begin(Isolation::Repeatable);
        for n in from..from + 50 {
            insert(&mut txn, table.tree(0), &format!("{n:05}"), &format!("{round:050}"));
        }
        txn.commit().unwrap();
    }
}

fn first(txn: &mut Transaction, table: &Table) -> Result<bool> {
    Cursor::new(table.tree(0).clone()).first(txn, View::Snapshot)
}

fn with_snapshot(engine: &Engine, session: u64) -> Transaction {
    let mut txn = engine.begin(Isolation::Repeatable);
    txn.set_label(session);
    txn.open_snapshot();
    txn
}

#[test]
fn when_there_is_too_much_history_the_oldest_snapshot_gives_way_and_only_that() {
    let (engine, table, told) = with_little_history(HistoryFull::FailOldest);
    let mut old = with_snapshot(&engine, 7);
    write_all(&engine, &table, 1);
    let mut younger = with_snapshot(&engine, 8);
    let seen = read(&mut younger, table.tree(0), View::Snapshot);
    insert(&mut old, table.tree(0), "own", "1");
    for round in 2..6 {
        write_all(&engine, &table, round);
        engine.checkpoint().unwrap();
        if first(&mut old, &table).is_err() {
            break;
        }
    }
    let Err(Error::SnapshotTooOld { maximum, .. }) = first(&mut old, &table) else { panic!("it goes on") };
    assert_eq!(maximum, 40 << 10);
    assert!(matches!(old.changed_since_snapshot(table.tree(0), b"00001"), Err(Error::SnapshotTooOld { .. })));
    assert!(told.0.lock().iter().any(|text| text.contains("session 7 gives way")), "{:?}", told.0.lock());
    let listed = engine.snapshots();
    assert!(listed[0].too_old && listed[0].session == 7 && listed[0].held.versions == 0);
    // Its own writes are its own still, and new snapshots are not affected.
    assert!(Cursor::new(table.tree(0).clone()).get(&mut old, View::Latest, b"own").unwrap());
    old.commit().unwrap();
    assert_eq!(all(&engine, table.tree(0)).len(), 1001);
    match first(&mut younger, &table) {
        Ok(_) => assert_eq!(read(&mut younger, table.tree(0), View::Snapshot), seen),
        Err(error) => assert!(matches!(error, Error::SnapshotTooOld { .. })),
    }
    younger.rollback();
    let numbers = engine.statistics();
    assert!(numbers.snapshots_too_old >= 1);
    assert_eq!(engine.snapshots(), []);
}

#[test]
fn what_a_snapshot_holds_is_counted_for_the_oldest_that_sees_it() {
    let fs = SimulatedFileSystem::new(6);
    let engine = open(&fs);
    engine.create(NewTable::new("t", &specs(1))).unwrap();
    let table = engine.open_table("t").unwrap();
    write_all(&engine, &table, 0);
    let old = with_snapshot(&engine, 1);
    write_all(&engine, &table, 1);
    let younger = with_snapshot(&engine, 2);
    write_all(&engine, &table, 2);
    engine.checkpoint().unwrap();
    let held = |engine: &Engine| -> Vec<(u64, u64)> {
        // The engine's own trees have some as well.
        engine.snapshots().iter().map(|s| (s.session, s.held.versions / 100 * 100)).collect()
    };
    assert_eq!(held(&engine), [(1, 1000), (2, 1000)]);
    old.rollback();
    engine.shared.look_after_history();
    assert_eq!(held(&engine), [(2, 1000)]);
    younger.rollback();
    engine.shared.look_after_history();
    assert_eq!(engine.statistics().history, Held::default());
}

#[test]
fn writers_that_are_told_to_wait_go_on_when_the_snapshot_ends_or_give_up() {
    let dir = std::env::temp_dir().join(format!("teak-history-wait-{}", std::process::id()));
    let options = Options {
        history_max_bytes: 40 << 10,
        history_full: HistoryFull::Wait,
        background: true,
        cache_bytes: 8 << 20,
        ..Options::new(&dir)
    };
    let engine = Engine::open(Arc::new(RealFileSystem), options).unwrap();
    engine.create(NewTable::new("t", &specs(1))).unwrap();
    let table = engine.open_table("t").unwrap();
    write_all(&engine, &table, 0);
    let mut old = with_snapshot(&engine, 1);
    let seen = read(&mut old, table.tree(0), View::Snapshot);
    write_all(&engine, &table, 1);
    engine.checkpoint().unwrap();
    let mut writer = engine.begin(Isolation::Repeatable);
    let soon = WaitRequest::waiting(Duration::from_millis(200));
    assert!(matches!(writer.wait_for_history(&soon), Err(Error::HistoryFull { maximum: 40960 })));
    let killed = WaitRequest { interrupted: &|| true, ..WaitRequest::waiting(Duration::from_secs(3600)) };
    assert!(matches!(writer.wait_for_history(&killed), Err(Error::Interrupted)));
    assert_eq!(read(&mut old, table.tree(0), View::Snapshot), seen, "nobody had to give way");
    std::thread::scope(|scope| {
        let waits = scope.spawn(|| {
            let patient = WaitRequest::waiting(Duration::from_secs(3600));
            writer.wait_for_history(&patient).unwrap();
            insert(&mut writer, table.tree(0), "later", "1");
            writer.commit().unwrap();
        });
        old.rollback();
        waits.join().unwrap();
    });
    assert_eq!(all(&engine, table.tree(0)).len(), 1001);
    engine.close().unwrap();
    drop((table, engine));
    std::fs::remove_dir_all(dir).unwrap();
}

#[test]
fn an_old_snapshot_is_reported_once() {
    let (engine, table, told) = with_little_history(HistoryFull::FailOldest);
    let old = with_snapshot(&engine, 42);
    engine.settings().set_snapshot_warn_age(Duration::ZERO);
    engine.shared.look_after_history();
    assert!(told.0.lock().is_empty(), "zero means never");
    engine.settings().set_snapshot_warn_age(Duration::from_millis(1));
    while engine.snapshots()[0].age < Duration::from_millis(1) {
        std::hint::spin_loop();
    }
    engine.shared.look_after_history();
    engine.shared.look_after_history();
    let texts = told.0.lock().clone();
    assert!(matches!(&texts[..], [text] if text.contains("session 42")), "{texts:?}");
    old.rollback();
    drop(table);
}
