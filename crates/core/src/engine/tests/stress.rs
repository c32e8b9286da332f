//! Everything at once, with threads, on real files and with little memory. What must hold at every moment: both trees
//! of the table have the same keys in every snapshot.

use super::*;
use crate::file::RealFileSystem;
use crate::{CommitFlush, LockMode, WaitRequest};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

struct Directory(std::path::PathBuf);

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

struct Stress<'a> {
    engine: &'a Engine,
    table: &'a Table,
    stop: &'a AtomicBool,
}

impl Stress<'_> {
    fn goes_on(&self) -> bool {
        !self.stop.load(Ordering::SeqCst)
    }

    /// Inserts, changes or deletes `key` in both trees.
    fn change(&self, txn: &mut Transaction, key: &[u8], value: &[u8]) -> Result<()> {
        let wait = WaitRequest::waiting(Duration::from_secs(10));
        txn.lock(self.table.tree(0), key, LockMode::Exclusive, &wait)?;
        let mut cursor = Cursor::new(self.table.tree(0).clone());
        let exists = cursor.get(txn, View::Latest, key)?;
        for tree in [self.table.tree(0), self.table.tree(1)] {
            let op = match exists {
                true if value.len().is_multiple_of(3) => WriteOp::Delete,
                true => WriteOp::Update(value),
                false => WriteOp::Insert(value),
            };
            txn.write(tree, key, op)?;
        }
        Ok(())
    }

    fn small(&self, seed: u64) {
        let mut i = seed;
        while self.goes_on() {
            i = i.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            let mut txn = self.engine.begin(Isolation::Repeatable);
            let keys = [(i >> 40) % 300, (i >> 20) % 300 + 300];
            let changed = keys.iter().try_for_each(|key| {
                self.change(&mut txn, &key.to_be_bytes(), &vec![i as u8; (i >> 50) as usize % 3000])
            });
            changed.unwrap();
            match i >> 60 {
                0..=2 => txn.rollback(),
                3..=8 => {
                    txn.prepare(&i.to_be_bytes()).unwrap();
                    if i & (1 << 30) == 0 {
                        txn.commit_ordered();
                    }
                    txn.commit().unwrap();
                }
                _ => txn.commit().unwrap(),
            }
        }
    }

    /// Transactions whose redo goes to the log early, with savepoints.
    fn large(&self) {
        let mut round = 0u64;
        while self.goes_on() {
            round += 1;
            let mut txn = self.engine.begin(Isolation::Repeatable);
            for part in 0..3u64 {
                let savepoint = txn.savepoint();
                for key in 0..300u64 {
                    let key = 10_000 + part * 1000 + key;
                    self.change(&mut txn, &key.to_be_bytes(), &vec![round as u8; 2000]).unwrap();
                }
                if (round + part).is_multiple_of(3) {
                    txn.rollback_to(savepoint).unwrap();
                }
            }
            match round % 3 {
                0 => txn.rollback(),
                _ => txn.commit().unwrap(),
            }
        }
    }

    fn tables(&self) {
        let (mut round, a, b) = (0u32, "ddl/a", "ddl/b");
        while self.goes_on() {
            round += 1;
            self.engine
                .create(NewTable { meta: &round.to_le_bytes(), ..NewTable::new(a, &specs(1)) })
                .unwrap();
            let fill = |name: &str| {
                let table = self.engine.open_table(name).unwrap();
                let mut txn = self.engine.begin(Isolation::ReadCommitted);
                for key in 0..200u32 {
                    txn.write(table.tree(0), &key.to_be_bytes(), WriteOp::Insert(&[1; 100])).unwrap();
                }
                txn.note_counter(&table, u64::from(round));
                txn.commit().unwrap();
            };
            fill(a);
            self.engine.rename(Renaming::new(a, b)).unwrap();
            let table = self.engine.open_table(b).unwrap();
            assert_eq!(all(self.engine, table.tree(0)).len(), 200);
            assert_eq!((table.counter(), table.meta()), (u64::from(round), &round.to_le_bytes()[..]));
            self.engine.empty(b, None).unwrap();
            let table = self.engine.open_table(b).unwrap();
            assert_eq!((all(self.engine, table.tree(0)).len(), table.counter()), (0, 0));
            fill(b);
            self.engine.drop(b, IfPrepared::Refuse).unwrap();
        }
    }

    fn reader(&self) {
        while self.goes_on() {
            let mut txn = self.engine.begin(Isolation::Repeatable);
            for _ in 0..3 {
                let rows = read(&mut txn, self.table.tree(0), View::Snapshot);
                assert!(rows == read(&mut txn, self.table.tree(1), View::Snapshot), "a torn snapshot");
            }
        }
    }
}

#[test]
fn all_kinds_of_work_at_once_keep_every_snapshot_whole() {
    let dir = Directory(std::env::temp_dir().join(format!("teak-engine-stress-{}", std::process::id())));
    let _ = std::fs::remove_dir_all(&dir.0);
    let options = Options {
        checkpoint_log_bytes: 1 << 20,
        log_segment_bytes: 512 << 10,
        cache_bytes: 4 << 20,
        recovery_threads: 3,
        commit_flush: CommitFlush::Write,
        ..Options::new(&dir.0)
    };
    let mut rows = Rows::new();
    for round in 0..2 {
        let engine = loop {
            match Engine::open(Arc::new(RealFileSystem), options.clone()) {
                // A thread of the engine before is about to let go of it.
                Err(Error::InUse { .. }) => std::thread::yield_now(),
                other => break other.unwrap(),
            }
        };
        if round == 0 {
            engine.create(NewTable::new("t", &specs(2))).unwrap();
        }
        // The record of the last `commit_ordered` may not have left the queue when the engine was dropped: then the
        // transaction is prepared, and its coordinator knows that it committed.
        for xid in engine.prepared() {
            engine.commit_prepared(&xid).unwrap();
        }
        let table = engine.open_table("t").unwrap();
        assert!(all(&engine, table.tree(0)) == rows, "the start brought other rows back");
        assert_eq!(table.tree(0).entries(), rows.len() as u64);
        let stop = AtomicBool::new(false);
        let stress = Stress { engine: &engine, table: &table, stop: &stop };
        std::thread::scope(|scope| {
            let workers = [
                scope.spawn(|| stress.small(1)),
                scope.spawn(|| stress.small(2)),
                scope.spawn(|| stress.large()),
                scope.spawn(|| stress.tables()),
                scope.spawn(|| stress.reader()),
            ];
            let end = std::time::Instant::now() + Duration::from_millis(1500);
            // A worker that panicked has finished early.
            while std::time::Instant::now() < end && !workers.iter().any(|worker| worker.is_finished()) {
                engine.checkpoint().unwrap();
            }
            stop.store(true, Ordering::SeqCst);
        });
        assert_eq!(engine.table_names("ddl/").unwrap(), Vec::<String>::new());
        rows = all(&engine, table.tree(0));
        assert!(rows == all(&engine, table.tree(1)));
        assert_eq!(table.tree(0).entries(), rows.len() as u64);
        assert_eq!(engine.statistics().active_transactions, 0);
        engine.check_table(&table).unwrap();
    }
}
