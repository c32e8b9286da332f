//! Tables that are dropped while a backup copies them.

use super::*;
use crate::backup::BackupCopy;
use crate::file::{Directory, File, FileSystem, OpenMode};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

/// The files of an engine, which drops a table when its file is opened for the `n`-th time.
struct Dropping {
    files: SimulatedFileSystem,
    engine: Engine,
    n: usize,
    opened: AtomicUsize,
}

impl FileSystem for Dropping {
    fn open(&self, path: &Path, mode: OpenMode) -> Result<Arc<dyn File>> {
        let is_first = path.ends_with("s1.teak");
        if is_first && self.opened.fetch_add(1, SeqCst) + 1 == self.n {
            self.engine.drop("first", IfPrepared::Refuse).unwrap();
        }
        self.files.open(path, mode)
    }

    fn open_unnamed(&self, path: &Path) -> Result<Arc<dyn File>> {
        self.files.open_unnamed(path)
    }

    fn create_dir(&self, path: &Path) -> Result<()> {
        self.files.create_dir(path)
    }

    fn list(&self, dir: &Path) -> Result<Vec<String>> {
        self.files.list(dir)
    }

    fn exists(&self, path: &Path) -> Result<bool> {
        self.files.exists(path)
    }

    fn rename(&self, from: &Path, to: &Path) -> Result<()> {
        self.files.rename(from, to)
    }

    fn remove(&self, path: &Path) -> Result<()> {
        self.files.remove(path)
    }

    fn open_dir(&self, dir: &Path) -> Result<Arc<dyn Directory>> {
        self.files.open_dir(dir)
    }

    fn lock_exclusive(&self, path: &Path) -> Result<Box<dyn Send + Sync>> {
        self.files.lock_exclusive(path)
    }
}

/// Whether the table was dropped before its file was opened for the `n`-th time.
fn dropped_before(n: usize) -> bool {
    let fs = SimulatedFileSystem::new(n as u64);
    let engine = open(&fs);
    for name in ["first", "second"] {
        engine.create(NewTable::new(name, &specs(1))).unwrap();
        let mut txn = engine.begin(Isolation::ReadCommitted);
        insert(&mut txn, engine.open_table(name).unwrap().tree(0), "key", name);
        txn.commit().unwrap();
    }
    engine.checkpoint().unwrap();
    let (files, opened) = (fs.clone(), AtomicUsize::new(0));
    let from = Arc::new(Dropping { files, engine: engine.clone(), n, opened });
    let target = SimulatedFileSystem::new(100);
    let mut copy = BackupCopy::new(
        (from.clone(), Path::new("/teak")),
        (Arc::new(target.clone()), Path::new("/teak")),
        1,
    );
    copy.round(&|_| Ok(())).unwrap();
    engine.checkpoint().unwrap();
    let _pause = engine.pause_checkpoints();
    copy.settle(&|_| Ok(())).unwrap();
    let is_dropped = from.opened.load(SeqCst) >= n;
    copy.finish(engine.durable_log_end().unwrap(), &|_| Ok(())).unwrap();
    let restored = open(&target.crash());
    assert_eq!(restored.table_names("").unwrap().len(), if is_dropped { 1 } else { 2 }, "open {n}");
    let findings = restored.check_everything(&mut |_| Ok(())).unwrap();
    assert!(findings.is_empty(), "open {n}: {findings}");
    is_dropped
}

#[test]
fn a_table_may_be_dropped_at_any_time_while_a_round_copies_it() {
    assert!(dropped_before(1) && dropped_before(2));
    for n in 3.. {
        if !dropped_before(n) {
            break;
        }
    }
}
