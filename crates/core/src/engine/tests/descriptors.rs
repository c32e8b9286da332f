//! A process that has no descriptor left.

use super::*;
use crate::file::Fault;

/// Small segments, and one open table file, so that whatever happens opens something.
fn open_sparsely(fs: &SimulatedFileSystem) -> Result<Engine> {
    let options = Options { log_segment_bytes: 64 << 10, open_files: 1, ..options() };
    Engine::open(Arc::new(fs.clone()), options)
}

/// DDL, commits that fill several segments, and checkpoints; what was acknowledged goes to `rows`.
fn work(engine: &Engine, round: usize, rows: &mut Rows) -> Result<()> {
    for name in ["t", "u"] {
        if engine.table_meta(name).is_err() {
            engine.create(NewTable::new(name, &specs(1)))?;
        }
    }
    let (t, u) = (engine.open_table("t")?, engine.open_table("u")?);
    for i in 0..6 {
        let (key, value) = (format!("{round} {i}").into_bytes(), vec![i; 30_000]);
        let mut txn = engine.begin(Isolation::Repeatable);
        txn.write(t.tree(0), &key, WriteOp::Insert(&value))?;
        txn.write(u.tree(0), &key, WriteOp::Insert(&value))?;
        txn.commit()?;
        rows.insert(key, value);
    }
    engine.checkpoint()
}

fn check(engine: &Engine, rows: &Rows) {
    for name in ["t", "u"] {
        assert!(all(engine, engine.open_table(name).unwrap().tree(0)) == *rows, "{name}");
    }
}

#[test]
fn wherever_an_opening_fails_work_goes_on_when_there_are_descriptors_again() {
    for sticky in [false, true] {
        let mut struck = 0;
        for opening in 0..60 {
            let fs = SimulatedFileSystem::new(opening);
            let engine = open_sparsely(&fs).unwrap();
            let mut rows = Rows::new();
            work(&engine, 0, &mut rows).unwrap();
            match sticky {
                true => fs.fail_from(opening, Fault::Emfile),
                false => fs.fail_after(opening, Fault::Emfile),
            }
            for round in 1..=3 {
                match work(&engine, round, &mut rows) {
                    Ok(()) | Err(Error::NoDescriptor { .. }) => {}
                    Err(error) => panic!("opening {opening}: {error}"),
                }
            }
            struck += u64::from(fs.has_struck());
            fs.heal();
            work(&engine, 4, &mut rows).unwrap_or_else(|error| panic!("opening {opening}: {error}"));
            check(&engine, &rows);
            let (_fs, engine) = crash(&fs, engine);
            check(&engine, &rows);
        }
        assert!(struck > 30, "{struck}");
    }
}

#[test]
fn a_checkpoint_opens_nothing_when_all_is_written() {
    let fs = SimulatedFileSystem::new(1);
    let engine = open(&fs);
    engine.create(NewTable::new("t", &specs(1))).unwrap();
    let tree = engine.open_table("t").unwrap().tree(0).clone();
    put(&engine, &tree, &[("a", "1")]);
    fs.fail_from(0, Fault::Emfile);
    engine.checkpoint().unwrap();
    let (_fs, engine) = crash(&fs, engine);
    expect(&engine, "t", 0, &[("a", "1")]);
}

#[test]
fn a_start_without_descriptors_is_refused_and_changes_nothing() {
    let fs = SimulatedFileSystem::new(1);
    let mut rows = Rows::new();
    work(&open_sparsely(&fs).unwrap(), 0, &mut rows).unwrap();
    let mut fs = fs.kill();
    for opening in 0.. {
        fs.fail_after(opening, Fault::Emfile);
        match open_sparsely(&fs) {
            Ok(engine) => {
                check(&engine, &rows);
                if !fs.has_struck() {
                    return assert!(opening > 5, "{opening}");
                }
            }
            Err(error) => assert!(matches!(error, Error::NoDescriptor { .. }), "opening {opening}: {error}"),
        }
        fs = fs.kill();
    }
}
