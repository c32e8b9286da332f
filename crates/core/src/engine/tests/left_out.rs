//! Backups of some tables, and what a start makes of them.

use super::*;
use crate::backup::{BackupCopy, Chain, ExtentList, Wanted};
use crate::catalog::space_file_name;
use crate::file::{FileSystem, OpenMode};
use crate::options::Residence;
use crate::ForceRecovery;
use std::path::{Path, PathBuf};

const COPY: &str = "/copy";

/// Two tables of one tree, of which names that begin with `w` are wanted.
fn with_tables(seed: u64) -> (SimulatedFileSystem, Engine) {
    let fs = SimulatedFileSystem::new(seed);
    let engine = open(&fs);
    for name in ["wanted", "other"] {
        engine.create(NewTable { meta: b"meta", ..NewTable::new(name, &specs(1)) }).unwrap();
        fill(&engine, name, "a");
    }
    engine.checkpoint().unwrap();
    (fs, engine)
}

/// A row in several tables, in one transaction.
fn put(engine: &Engine, names: &[&str], key: &str) -> Transaction {
    let mut txn = engine.begin(Isolation::ReadCommitted);
    for name in names {
        insert(&mut txn, engine.open_table(name).unwrap().tree(0), key, name);
    }
    txn
}

/// Some blocks of rows.
fn fill(engine: &Engine, name: &str, prefix: &str) {
    let mut txn = engine.begin(Isolation::ReadCommitted);
    let table = engine.open_table(name).unwrap();
    for i in 0..400 {
        insert(
            &mut txn,
            table.tree(0),
            &format!("{prefix}{i:04}"),
            &format!("{name} {i} {:x}", i * 7919 % 4099),
        );
    }
    txn.commit().unwrap();
}

fn wanted() -> Wanted {
    Arc::new(|name| name.starts_with('w'))
}

/// Copies of one engine, each on top of the one before.
struct Backups<'a> {
    engine: &'a Engine,
    source: SimulatedFileSystem,
    target: SimulatedFileSystem,
    dirs: Vec<PathBuf>,
    list: Option<ExtentList>,
}

impl<'a> Backups<'a> {
    fn of(engine: &'a Engine, source: &SimulatedFileSystem) -> Backups<'a> {
        let target = SimulatedFileSystem::new(9);
        Backups { engine, source: source.clone(), target, dirs: Vec::new(), list: None }
    }

    /// The next; `meanwhile` happens between its image and its end.
    fn make(&mut self, meanwhile: impl FnOnce()) -> Result<()> {
        let dir = PathBuf::from(format!("{COPY}{}", self.dirs.len()));
        let (from, to): (Arc<dyn FileSystem>, Arc<dyn FileSystem>) =
            (Arc::new(self.source.clone()), Arc::new(self.target.clone()));
        let copy = BackupCopy::new((from, Path::new("/teak")), (to, &dir), 1).only(wanted());
        let mut copy = self.list.iter().fold(copy, |copy, list| copy.on_top_of(list));
        copy.round(&|_| Ok(()))?;
        let _pause = self.engine.pause_checkpoints();
        copy.settle(&|_| Ok(()))?;
        meanwhile();
        let (list, _) = copy.finish(self.engine.durable_log_end()?, &|_| Ok(()))?;
        self.dirs.push(dir);
        self.list = Some(list);
        Ok(())
    }

    /// What is restored of the last of them.
    fn restored(&self) -> SimulatedFileSystem {
        let to = SimulatedFileSystem::new(10);
        let chain =
            Chain::new(Arc::new(self.target.clone()), self.dirs.clone(), self.list.clone().unwrap()).unwrap();
        chain.verify(1, &|_| Ok(())).unwrap();
        let target: Arc<dyn FileSystem> = Arc::new(to.clone());
        chain.restore(&target, Path::new("/teak"), 1, &|_| Ok(())).unwrap();
        to
    }
}

fn partial() -> Options {
    Options { partial: true, ..options() }
}

/// The tables of what a backup was restored to, which is sound, and the same after a loss of power.
fn tables(fs: &mut SimulatedFileSystem) -> BTreeMap<String, usize> {
    let look = |engine: &Engine| {
        let mut txn = engine.begin(Isolation::Repeatable);
        let mut count = |name: &String| {
            let table = engine.open_table(name).unwrap();
            let mut cursor = Cursor::new(table.tree(0).clone());
            let (mut rows, mut more) = (0, cursor.first(&mut txn, View::Snapshot).unwrap());
            while more {
                rows += 1;
                more = cursor.next(&mut txn).unwrap();
            }
            rows
        };
        let tables: BTreeMap<_, _> =
            engine.table_names("").unwrap().into_iter().map(|name| (name.clone(), count(&name))).collect();
        txn.rollback();
        tables
    };
    let engine = Engine::open(Arc::new(fs.clone()), partial()).unwrap();
    let found = look(&engine);
    let findings = engine.check_everything(&mut |_| Ok(())).unwrap();
    assert!(findings.is_empty(), "{findings}");
    drop(engine);
    // Whatever happens next: it is an engine like any other.
    *fs = fs.crash();
    let engine = open(fs);
    assert_eq!(look(&engine), found);
    engine.close().unwrap();
    found
}

fn counted<const N: usize>(tables: [(&str, usize); N]) -> BTreeMap<String, usize> {
    tables.into_iter().map(|(name, rows)| (name.to_string(), rows)).collect()
}

#[test]
fn what_is_left_out_is_neither_copied_nor_found_again() {
    let (fs, engine) = with_tables(1);
    let mut backups = Backups::of(&engine, &fs);
    backups.make(|| put(&engine, &["wanted", "other"], "b").commit().unwrap()).unwrap();
    let mut restored = backups.restored();
    assert!(!restored.exists(Path::new("/teak/s2.teak")).unwrap());
    assert_eq!(tables(&mut restored), counted([("wanted", 401)]));
}

#[test]
fn tables_in_memory_that_were_not_chosen_are_left_out_with_their_records() {
    let (fs, engine) = with_tables(8);
    let memory = Residence::Memory { limit_bytes: 0 };
    for name in ["wanted in memory", "other in memory", "w", "x"] {
        engine.create(NewTable { residence: memory, ..NewTable::new(name, &specs(1)) }).unwrap();
        fill(&engine, name, "a");
    }
    engine.checkpoint().unwrap();
    let mut backups = Backups::of(&engine, &fs);
    let chosen = counted([("wanted", 400), ("wanted in memory", 0), ("wx", 0), ("wy", 0)]);
    backups
        .make(|| {
            engine.rename(Renaming::new("w", "out")).unwrap();
            engine.rename(Renaming::new("x", "wx")).unwrap();
            engine.create(NewTable { residence: memory, ..NewTable::new("wy", &specs(1)) }).unwrap();
            engine.create(NewTable { residence: memory, ..NewTable::new("z", &specs(1)) }).unwrap();
        })
        .unwrap();
    let mut restored = backups.restored();
    // Who only reads has no other tables, either; whoever has changed it has no list any more.
    let options = Options { force_recovery: ForceRecovery::ReadOnly, ..partial() };
    let reader = Engine::open(Arc::new(restored.clone()), options).unwrap();
    assert_eq!(reader.table_names("").unwrap(), chosen.keys().cloned().collect::<Vec<_>>());
    drop(reader);
    assert_eq!(tables(&mut restored), chosen);
    assert!(!restored.exists(Path::new("/teak/teak.memory")).unwrap());
    let engine = Engine::open(Arc::new(restored.clone()), partial()).unwrap();
    engine.create(NewTable { residence: memory, ..NewTable::new("later", &specs(1)) }).unwrap();
    engine.close().unwrap();
    assert!(tables(&mut restored).contains_key("later"));
}

#[test]
fn the_names_at_the_end_count() {
    let (fs, engine) = with_tables(2);
    for name in ["wanted2", "wanted3"] {
        engine.create(NewTable::new(name, &specs(1))).unwrap();
        fill(&engine, name, "a");
    }
    engine.checkpoint().unwrap();
    let mut backups = Backups::of(&engine, &fs);
    backups
        .make(|| {
            // Into the choice, out of it, both in turn; made, emptied and dropped.
            engine.rename(Renaming::new("wanted", "out")).unwrap();
            engine.rename(Renaming::new("other", "wanted")).unwrap();
            engine.rename(Renaming::new("wanted3", "here")).unwrap();
            engine.rename(Renaming::new("here", "wanted4")).unwrap();
            engine.create(NewTable::new("wanted5", &specs(2))).unwrap();
            fill(&engine, "wanted5", "b");
            engine.create(NewTable::new("more", &specs(1))).unwrap();
            fill(&engine, "more", "b");
            engine.empty("wanted2", None).unwrap();
            put(&engine, &["out", "wanted", "wanted2", "wanted4", "more"], "c").commit().unwrap();
            engine.create(NewTable::new("wanted6", &specs(1))).unwrap();
            engine.drop("wanted6", IfPrepared::Refuse).unwrap();
        })
        .unwrap();
    let expected = counted([("wanted", 401), ("wanted2", 1), ("wanted4", 401), ("wanted5", 400)]);
    assert_eq!(tables(&mut backups.restored()), expected);
    // One on top of it has what has changed, and what has come into the choice.
    engine.rename(Renaming::new("wanted2", "w")).unwrap();
    engine.rename(Renaming::new("out", "wanted2")).unwrap();
    engine.rename(Renaming::new("wanted4", "out")).unwrap();
    engine.checkpoint().unwrap();
    backups.make(|| put(&engine, &["wanted", "wanted2", "out"], "d").commit().unwrap()).unwrap();
    let expected = counted([("wanted", 402), ("wanted2", 402), ("w", 1), ("wanted5", 400)]);
    assert_eq!(tables(&mut backups.restored()), expected);
}

#[test]
fn a_prepared_transaction_stays_so_without_what_it_has_written_elsewhere() {
    let (fs, engine) = with_tables(3);
    put(&engine, &["wanted", "other"], "b").prepare(b"both").unwrap();
    put(&engine, &["other"], "c").prepare(b"elsewhere").unwrap();
    let undecided = put(&engine, &["wanted", "other"], "d");
    engine.checkpoint().unwrap();
    let mut backups = Backups::of(&engine, &fs);
    backups.make(|| put(&engine, &["wanted", "other"], "e").commit().unwrap()).unwrap();
    undecided.rollback();
    let mut restored = backups.restored();
    assert_eq!(tables(&mut restored), counted([("wanted", 401)]));
    // They pin a log that names the table which is left out, and it is not found again by any start.
    for start in 0..3 {
        let engine = open(&restored);
        assert_eq!(engine.prepared(), [b"both".to_vec(), b"elsewhere".to_vec()], "start {start}");
        assert_eq!(engine.table_names("").unwrap(), ["wanted"]);
        engine.close().unwrap();
    }
    let engine = open(&restored);
    engine.commit_prepared(b"both").unwrap();
    engine.commit_prepared(b"elsewhere").unwrap();
    engine.close().unwrap();
    assert_eq!(tables(&mut restored), counted([("wanted", 402)]));
}

#[test]
fn an_index_that_came_while_the_backup_was_made_leaves_nothing_of_what_is_left_out() {
    let (fs, engine) = with_tables(4);
    let mut backups = Backups::of(&engine, &fs);
    let alter = |name: &str| {
        let layout = [TreeSource::Keep(0), TreeSource::New(specs(1)[0])];
        engine.change(&[Alteration::new(name, &layout, b"").into()], &[]).unwrap();
        let back = [TreeSource::Keep(0)];
        engine.change(&[Alteration::new(name, &back, b"").into()], &[]).unwrap();
    };
    backups.make(|| ["wanted", "other"].into_iter().for_each(alter)).unwrap();
    assert_eq!(tables(&mut backups.restored()), counted([("wanted", 400)]));
}

#[test]
fn who_only_reads_sees_the_same_and_changes_nothing() {
    let (fs, engine) = with_tables(5);
    let mut backups = Backups::of(&engine, &fs);
    backups.make(|| put(&engine, &["wanted", "other"], "b").commit().unwrap()).unwrap();
    let mut restored = backups.restored();
    for _ in 0..2 {
        let options = Options { force_recovery: ForceRecovery::ReadOnly, ..partial() };
        let engine = Engine::open(Arc::new(restored.clone()), options).unwrap();
        assert_eq!(engine.table_names("").unwrap(), ["wanted"]);
        let findings = engine.check_files(&mut |_| Ok(())).unwrap();
        assert!(findings.is_empty(), "{findings}");
    }
    assert_eq!(tables(&mut restored), counted([("wanted", 401)]));
}

#[test]
fn damage_of_what_is_left_out_is_no_reason_to_fail_and_a_missing_file_of_the_choice_is() {
    let (fs, engine) = with_tables(6);
    let path = |name: &str| {
        let space = engine.shared.record(name).unwrap().space;
        Path::new("/teak").join(space_file_name(space))
    };
    let other = fs.open(&path("other"), OpenMode::Existing).unwrap();
    other.write_at(4096, &vec![7; other.len().unwrap() as usize - 4096]).unwrap();
    let mut backups = Backups::of(&engine, &fs);
    backups.make(|| {}).unwrap();
    assert_eq!(tables(&mut backups.restored()), counted([("wanted", 400)]));
    // Renamed into the choice it is.
    let wanted = path("wanted");
    let named =
        Backups::of(&engine, &fs).make(|| engine.rename(Renaming::new("other", "w")).unwrap()).unwrap_err();
    assert!(named.to_string().contains("s2.teak"), "{named}");
    engine.rename(Renaming::new("w", "other")).unwrap();
    engine.checkpoint().unwrap();
    fs.remove(&wanted).unwrap();
    let missing = Backups::of(&engine, &fs).make(|| {}).unwrap_err();
    assert!(missing.to_string().contains("missing"), "{missing}");
}

#[test]
fn of_the_blocks_that_the_log_names_those_of_the_choice_have_to_be_there() {
    let (fs, engine) = with_tables(7);
    let load = |name: &str| {
        let record = engine.shared.record(name).unwrap();
        let file =
            fs.open(&Path::new("/teak").join(space_file_name(record.space)), OpenMode::Existing).unwrap();
        let before = file.len().unwrap();
        let mut txn = engine.begin(Isolation::ReadCommitted);
        for i in 0u64..20_000 {
            let value = i.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes();
            txn.append(engine.open_table(name).unwrap().tree(0), format!("b{i:06}").as_bytes(), &value)
                .unwrap();
        }
        txn.commit().unwrap();
        let loaded = file.len().unwrap() - before;
        assert!(loaded > 100_000, "{loaded} bytes of blocks");
        move || file.write_at(before, &vec![7; loaded as usize]).unwrap()
    };
    let mut backups = Backups::of(&engine, &fs);
    backups
        .make(|| {
            drop(load("wanted"));
            load("other")();
        })
        .unwrap();
    assert_eq!(tables(&mut backups.restored()), counted([("wanted", 20_400)]));
    let damaged =
        Backups::of(&engine, &fs).make(|| engine.rename(Renaming::new("other", "w")).unwrap()).unwrap_err();
    assert!(damaged.to_string().contains("corrupt"), "{damaged}");
}
