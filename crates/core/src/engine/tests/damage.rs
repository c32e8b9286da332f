//! Damaged files: what a start says of them, what it closes, and what comes back when they can be read again.

use super::*;
use crate::file::{FileSystem, OpenMode};
use crate::sync::Mutex;
use crate::{ForceRecovery, Observer};
use std::path::{Path, PathBuf};

const SUPERBLOCK: &str = "/teak/teak.super";

/// Keeps what it is told.
#[derive(Default)]
pub(super) struct Told(pub Mutex<Vec<String>>);

impl Observer for Told {
    fn message(&self, _level: LogLevel, text: &str) {
        self.0.lock().push(text.to_string());
    }
}

impl Told {
    pub fn has(&self, part: &str) -> bool {
        self.0.lock().iter().any(|text| text.contains(part))
    }
}

fn try_open(fs: &SimulatedFileSystem) -> (Result<Engine>, Arc<Told>) {
    let told = Arc::new(Told::default());
    let engine = Engine::open(Arc::new(fs.clone()), Options { observer: told.clone(), ..options() });
    (engine, told)
}

pub(super) fn contents(fs: &SimulatedFileSystem, path: &str) -> Vec<u8> {
    let file = fs.open(Path::new(path), OpenMode::ReadOnly).unwrap();
    let mut bytes = vec![0; file.len().unwrap() as usize];
    file.read_exact_at(0, &mut bytes).unwrap();
    bytes
}

pub(super) fn put_back(fs: &SimulatedFileSystem, path: &str, bytes: &[u8]) {
    let file = fs.open(Path::new(path), OpenMode::Existing).unwrap();
    file.set_len(bytes.len() as u64).unwrap();
    file.write_at(0, bytes).unwrap();
    file.sync().unwrap();
}

fn flip(fs: &SimulatedFileSystem, path: &str, at: usize) {
    let mut bytes = contents(fs, path);
    bytes[at] ^= 4;
    put_back(fs, path, &bytes);
}

/// Where the newest superblock is, in both copies.
fn newest_slot(fs: &SimulatedFileSystem) -> [usize; 2] {
    let bytes = contents(fs, SUPERBLOCK);
    let number = |at: usize| u64::from_le_bytes(*bytes[at + 32..].first_chunk().unwrap());
    let slot = if number(0) > number(4096) { 0 } else { 4096 };
    [slot, slot + 8192]
}

pub(super) fn number(i: u64) -> Vec<u8> {
    format!("{i:06}").into_bytes()
}

/// Fills the second tree of `t` by a build, and says so in the catalog.
fn build(engine: &Engine, entries: u64) {
    let table = engine.open_table("t").unwrap();
    let mut build = engine.build_trees(&table, &[1], 0).unwrap();
    (0..entries).for_each(|i| build.add(0, &number(i), b"entry").unwrap());
    build.finish(|_| Ok(())).unwrap();
    engine
        .change(&[Alteration::new("t", &[TreeSource::Keep(0), TreeSource::Keep(1)], b"enabled").into()], &[])
        .unwrap();
}

/// A killed engine with an index that was built after the last checkpoint but one; and its superblocks of before.
fn with_built_index() -> (SimulatedFileSystem, Vec<u8>) {
    let (fs, engine, table) = with_table(1);
    drop(table);
    engine.checkpoint().unwrap();
    let before = contents(&fs, SUPERBLOCK);
    build(&engine, 500);
    put(&engine, engine.open_table("t").unwrap().tree(0), &[("k", "v")]);
    drop(engine);
    (fs.kill(), before)
}

#[test]
fn one_damaged_copy_of_the_newest_superblock_is_told_and_costs_nothing() {
    for copy in 0..2 {
        let (fs, _) = with_built_index();
        flip(&fs, SUPERBLOCK, newest_slot(&fs)[copy] + 40);
        let (engine, told) = try_open(&fs);
        let engine = engine.unwrap();
        assert!(told.has("is damaged, the other is used"), "{:?}", told.0);
        let table = engine.open_table("t").unwrap();
        assert_eq!(all(&engine, table.tree(1)).len(), 500);
        drop((table, engine));
        let (engine, told) = try_open(&fs.kill());
        engine.unwrap();
        assert!(!told.has("superblock"), "{:?}", told.0);
    }
}

#[test]
fn an_older_image_is_refused_when_the_newest_superblock_is_lost() {
    let (fs, _) = with_built_index();
    newest_slot(&fs).into_iter().for_each(|at| flip(&fs, SUPERBLOCK, at + 40));
    let error = try_open(&fs).0.err().unwrap();
    assert!(error.to_string().contains("both copies"), "{error}");
}

#[test]
fn an_older_image_is_refused_by_the_log_that_knows_a_newer_one() {
    let (fs, before) = with_built_index();
    put_back(&fs, SUPERBLOCK, &before);
    let error = try_open(&fs).0.err().unwrap();
    assert!(error.to_string().contains("the log knows that checkpoint"), "{error}");
}

fn append(engine: &Engine, table: &Table, rows: std::ops::Range<u64>) {
    let mut txn = engine.begin(Isolation::ReadCommitted);
    for i in rows {
        txn.append(table.tree(0), &number(i), &[i as u8; 60]).unwrap();
    }
    txn.commit().unwrap();
}

#[test]
fn a_damaged_table_that_can_be_read_again_has_all_its_rows() {
    let (fs, engine, table) = with_table(3);
    engine.create(NewTable::new("other", &specs(1))).unwrap();
    append(&engine, &table, 0..3000);
    put(&engine, table.tree(1), &[("a", "1")]);
    let path = table.space().path().to_str().unwrap().to_string();
    drop((table, engine));
    let mut fs = fs.kill();
    let whole = contents(&fs, &path);
    let damaged: Vec<u8> = whole.iter().enumerate().map(|(at, byte)| byte ^ u8::from(at >= 4096)).collect();
    put_back(&fs, &path, &damaged);
    // Each start makes checkpoints that have the commits of the other table, and more of them than before.
    for round in 0..3u64 {
        let (engine, told) = try_open(&fs);
        let engine = engine.unwrap();
        assert!(told.has("stays closed; its log is kept"), "{:?}", told.0);
        assert!(engine.open_table("t").is_err());
        let other = engine.open_table("other").unwrap();
        append(&engine, &other, round * 1000..(round + 1) * 1000);
        engine.checkpoint().unwrap();
        drop(other);
        if round % 2 == 0 {
            engine.close().unwrap();
        }
        drop(engine);
        fs = fs.kill();
    }
    put_back(&fs, &path, &whole);
    for _ in 0..2 {
        let (engine, told) = try_open(&fs);
        let engine = engine.unwrap();
        assert!(!told.has("stays closed"), "{:?}", told.0);
        for (name, rows) in [("t", 3000), ("other", 3000)] {
            let table = engine.open_table(name).unwrap();
            assert_eq!(all(&engine, table.tree(0)).len(), rows, "{name}");
            assert_eq!(table.tree(0).entries(), rows as u64, "{name}");
        }
        assert_eq!(all(&engine, engine.open_table("t").unwrap().tree(1)).len(), 1);
        engine.checkpoint().unwrap();
        assert!(engine.shared.system.counted_apart().unwrap().is_empty());
        drop(engine);
        fs = fs.kill();
    }
}

#[test]
fn a_sector_that_cannot_be_read_during_recovery_closes_its_table_only() {
    for load in [true, false] {
        let (fs, engine, table) = with_table(4);
        engine.create(NewTable::new("other", &specs(1))).unwrap();
        put(&engine, engine.open_table("other").unwrap().tree(0), &[("k", "v")]);
        match load {
            // Blocks that the log names.
            true => append(&engine, &table, 0..3000),
            // Leaves that the log changes.
            false => {
                let rows: Vec<(String, String)> =
                    (0..500).map(|i| (format!("{i:05}"), "x".repeat(90))).collect();
                put(&engine, table.tree(0), &rows.iter().map(|(k, v)| (&**k, &**v)).collect::<Vec<_>>());
                engine.checkpoint().unwrap();
                let mut txn = engine.begin(Isolation::Repeatable);
                for (key, _) in &rows {
                    txn.write(table.tree(0), key.as_bytes(), WriteOp::Delete).unwrap();
                }
                txn.commit().unwrap();
            }
        }
        let path = PathBuf::from(table.space().path());
        drop((table, engine));
        let fs = fs.kill();
        fs.break_sectors(&path, 4096..u64::MAX);
        let (engine, told) = try_open(&fs);
        let engine = engine.unwrap();
        assert!(told.has("table 't' cannot be recovered") && told.has("I/O error"), "{:?}", told.0);
        assert!(engine.open_table("t").is_err());
        expect(&engine, "other", 0, &[("k", "v")]);
        engine.checkpoint().unwrap();
    }
}

fn newest_segment(fs: &SimulatedFileSystem) -> String {
    let names = fs.list(Path::new("/teak/log")).unwrap();
    format!("/teak/log/{}", names.iter().rfind(|name| !name.starts_with("spare")).unwrap())
}

#[test]
fn after_a_clean_shutdown_the_log_may_be_damaged_and_after_a_start_no_longer() {
    let rows = [("a", "1"), ("b", "2")];
    // Header of the segment, its first frame, a byte of a payload.
    for at in [0, 4096, 4096 + 60] {
        let (fs, engine, table) = with_table(5);
        put(&engine, table.tree(0), &rows[..1]);
        drop(table);
        engine.close().unwrap();
        drop(engine);
        let fs = fs.crash();
        flip(&fs, &newest_segment(&fs), at);
        let (engine, told) = try_open(&fs);
        let engine = engine.unwrap();
        // What lies before the end is not even read.
        assert_eq!(told.has("it starts anew"), at == 0, "{:?}", told.0);
        expect(&engine, "t", 0, &rows[..1]);
        put(&engine, engine.open_table("t").unwrap().tree(0), &rows[1..]);
        drop(engine);
        let fs = fs.crash();
        let (engine, _) = try_open(&fs);
        let engine = engine.unwrap();
        expect(&engine, "t", 0, &rows);
        drop(engine);
        let fs = fs.crash();
        flip(&fs, &newest_segment(&fs), 0);
        assert!(matches!(try_open(&fs).0, Err(Error::Corrupt { .. })));
    }
}

#[test]
fn the_system_space_survives_damage_of_either_copy() {
    for path in ["/teak/s0.teak", "/teak/s0.copy"] {
        let (fs, engine, table) = with_table(6);
        put(&engine, table.tree(0), &[("a", "1")]);
        drop(table);
        engine.close().unwrap();
        drop(engine);
        let fs = fs.crash();
        let bytes: Vec<u8> = contents(&fs, path).iter().map(|byte| byte ^ 1).collect();
        put_back(&fs, path, &bytes);
        let (engine, told) = try_open(&fs);
        let engine = engine.unwrap();
        assert!(told.has("the header of"), "{:?}", told.0);
        assert_eq!(told.has("a block was read from"), path.ends_with("teak"), "{:?}", told.0);
        expect(&engine, "t", 0, &[("a", "1")]);
        engine.create(NewTable::new("u", &specs(1))).unwrap();
        engine.close().unwrap();
        drop(engine);
        let fs = fs.crash();
        fs.remove(Path::new(path)).unwrap();
        let (engine, _) = try_open(&fs);
        let engine = engine.unwrap();
        expect(&engine, "t", 0, &[("a", "1")]);
        assert_eq!(engine.table_names("").unwrap(), ["t", "u"]);
        drop(engine);
    }
}

#[test]
fn a_table_stays_open_while_the_log_names_blocks_that_no_image_is_known_to_have() {
    let (_, engine, table) = with_table(7);
    let before = engine.shared.clock.last_committed();
    append(&engine, &table, 0..3000);
    // As if the commit were published between the look at the counts and the snapshot.
    let capture = || Some(crate::checkpoint::Capture { counted_at: before, ..engine.shared.capture(false) });
    let pace = crate::checkpoint::Pace { writers: &|| 1, files: 1 };
    let leave =
        |capture: &mut crate::checkpoint::Capture, outcome| engine.shared.leave_to_the_next(capture, outcome);
    let (capture, _) = engine.shared.care.checkpointer.run(&pace, capture, leave).unwrap().unwrap();
    assert!(!table.tree(0).is_dirty() && table.tree(0).awaits_checkpoint());
    engine.shared.checkpoint_done(capture);
    engine.checkpoint().unwrap();
    assert!(!table.tree(0).awaits_checkpoint(), "the next checkpoint has it");
}

pub(super) fn force(fs: &SimulatedFileSystem, force_recovery: ForceRecovery) -> (Result<Engine>, Arc<Told>) {
    let told = Arc::new(Told::default());
    // Nothing that tests simulate lasts in the system's own directory.
    let temp_dir = PathBuf::from("/tmp-of-the-test");
    let options = Options { observer: told.clone(), force_recovery, temp_dir, ..options() };
    (Engine::open(Arc::new(fs.clone()), options), told)
}

/// All files of the engine.
fn image(fs: &SimulatedFileSystem) -> Vec<(String, Vec<u8>)> {
    let mut names: Vec<String> = Vec::new();
    for dir in ["/teak", "/teak/log"] {
        names.extend(fs.list(Path::new(dir)).unwrap().iter().map(|name| format!("{dir}/{name}")));
    }
    names.retain(|name| name.ends_with(".log") || name.contains(".teak") || name.ends_with(".super"));
    names.into_iter().map(|name| (name.clone(), contents(fs, &name))).collect()
}

#[test]
fn a_start_for_reading_reads_what_was_committed_and_changes_nothing() {
    let (fs, engine, table) = with_table(8);
    append(&engine, &table, 0..2000);
    engine.checkpoint().unwrap();
    put(&engine, table.tree(1), &[("a", "1")]);
    engine.create(NewTable::new("u", &specs(1))).unwrap();
    drop((table, engine));
    let fs = fs.kill();
    let before = image(&fs);
    for level in [ForceRecovery::ReadOnly, ForceRecovery::WithoutLog] {
        let engine = force(&fs, level).0.unwrap();
        expect(&engine, "t", 1, &[("a", "1")]);
        assert_eq!(all(&engine, engine.open_table("t").unwrap().tree(0)).len(), 2000);
        assert_eq!(engine.table_names("").unwrap(), ["t", "u"]);
        let table = engine.open_table("t").unwrap();
        let mut txn = engine.begin(Isolation::Repeatable);
        let written = txn.write(table.tree(1), b"b", WriteOp::Insert(b"2")).and_then(|()| txn.commit());
        assert!(matches!(written, Err(Error::ReadOnly(_))), "{written:?}");
        assert!(matches!(engine.drop("u", IfPrepared::Refuse), Err(Error::ReadOnly(_))));
        assert!(engine.checkpoint().is_err());
        drop(table);
        engine.close().unwrap();
        drop(engine);
        assert!(image(&fs) == before, "{level:?}");
    }
}

#[test]
fn without_the_log_an_older_image_is_whole() {
    let (fs, _) = with_built_index();
    newest_slot(&fs).into_iter().for_each(|at| flip(&fs, SUPERBLOCK, at + 40));
    assert!(force(&fs, ForceRecovery::ReadOnly).0.is_err());
    let (engine, told) = force(&fs, ForceRecovery::WithoutLog);
    let engine = engine.unwrap();
    assert!(told.has("both copies"), "{:?}", told.0);
    // The index is not there, and nobody says that it is.
    let table = engine.open_table("t").unwrap();
    assert_eq!((table.meta(), all(&engine, table.tree(1)).len()), (&b"meta"[..], 0));
}

#[test]
fn without_the_log_means_without_what_lies_behind_the_damage() {
    let (fs, engine, table) = with_table(9);
    put(&engine, table.tree(0), &[("a", "1")]);
    let damaged = engine.shared.log.end();
    put(&engine, table.tree(0), &[("b", "2")]);
    put(&engine, table.tree(0), &[("c", "3")]);
    drop((table, engine));
    let fs = fs.kill();
    flip(&fs, &newest_segment(&fs), 4096 + damaged as usize + 30);
    for level in [ForceRecovery::Off, ForceRecovery::PassOver, ForceRecovery::ReadOnly] {
        assert!(matches!(force(&fs, level).0, Err(Error::Corrupt { .. })), "{level:?}");
    }
    let (engine, told) = force(&fs, ForceRecovery::WithoutLog);
    let engine = engine.unwrap();
    expect(&engine, "t", 0, &[("a", "1")]);
    assert!(told.has("of the log, only what lies before"), "{:?}", told.0);
    assert_eq!(engine.statistics().lost_ranges, 1, "two rows are missing");
}

#[test]
fn without_any_superblock_what_is_readable_is_saved_from_the_spare_one() {
    type Damage = fn(&SimulatedFileSystem);
    let damages: [Damage; 3] = [
        |fs| put_back(fs, SUPERBLOCK, &[0; 16384]),
        |fs| put_back(fs, SUPERBLOCK, &contents(fs, SUPERBLOCK)[..3000]),
        |fs| fs.remove(Path::new(SUPERBLOCK)).unwrap(),
    ];
    for (seed, damage) in damages.into_iter().enumerate() {
        for closed in [false, true] {
            let (fs, engine, table) = with_table(60 + seed as u64);
            append(&engine, &table, 0..2000);
            engine.checkpoint().unwrap();
            put(&engine, table.tree(1), &[("a", "1")]);
            drop(table);
            if closed {
                engine.close().unwrap();
            }
            drop(engine);
            let fs = fs.kill();
            damage(&fs);
            for level in [ForceRecovery::Off, ForceRecovery::PassOver, ForceRecovery::ReadOnly] {
                let error = force(&fs, level).0.err().unwrap().to_string();
                assert!(error.contains("teak_force_recovery=3"), "{level:?}: {error}");
            }
            let (engine, told) = force(&fs, ForceRecovery::WithoutLog);
            let engine = engine.unwrap();
            assert!(told.has("teak.copy is used"), "{:?}", told.0);
            assert_eq!(all(&engine, engine.open_table("t").unwrap().tree(0)).len(), 2000);
            expect(&engine, "t", 1, &[("a", "1")]);
            assert_eq!(engine.statistics().lost_ranges, 0);
        }
    }
}

#[test]
fn the_spare_superblock_is_never_one_of_another_engine_or_of_before_a_backup_was_put_back() {
    let (fs, engine, table) = with_table(70);
    put(&engine, table.tree(0), &[("a", "1")]);
    drop(table);
    let files = |fs: &SimulatedFileSystem| {
        fs.list(Path::new("/teak"))
            .unwrap()
            .into_iter()
            .filter(|name| name.contains(".teak"))
            .collect::<Vec<_>>()
    };
    (0..20).for_each(|_| engine.checkpoint().unwrap());
    engine.close().unwrap();
    drop(engine);
    // Another engine in the same directory.
    let fs = fs.kill();
    files(&fs).iter().for_each(|name| fs.remove(&Path::new("/teak").join(name)).unwrap());
    for name in fs.list(Path::new("/teak/log")).unwrap() {
        fs.remove(&Path::new("/teak/log").join(name)).unwrap();
    }
    fs.remove(Path::new("/teak/s0.copy")).unwrap();
    fs.remove(Path::new(SUPERBLOCK)).unwrap();
    let engine = open(&fs);
    engine.create(NewTable::new("new", &specs(1))).unwrap();
    engine.close().unwrap();
    drop(engine);
    let fs = fs.kill();
    fs.remove(Path::new(SUPERBLOCK)).unwrap();
    let (engine, _) = force(&fs, ForceRecovery::WithoutLog);
    assert_eq!(engine.unwrap().table_names("").unwrap(), ["new"]);
}

#[test]
fn scans_pass_over_what_cannot_be_read_and_tell_which_keys_that_are() {
    let (fs, engine, table) = with_table(10);
    append(&engine, &table, 0..5000);
    let mut txn = engine.begin(Isolation::ReadCommitted);
    (5000..5040).for_each(|i| {
        txn.write(table.tree(0), &number(i), WriteOp::Insert(&(i as u32).to_le_bytes().repeat(1000)))
            .unwrap();
    });
    txn.commit().unwrap();
    let whole = all(&engine, table.tree(0));
    let path = table.space().path().to_str().unwrap().to_string();
    drop(table);
    engine.close().unwrap();
    drop(engine);
    let fs = fs.kill();
    let bytes = contents(&fs, &path);
    let (mut silent, mut some) = (0, 0);
    for seed in 0..40usize {
        let mut damaged = bytes.clone();
        for i in 0..1 + seed % 3 {
            damaged[4096 + (seed * 7919 + i * 104_729) % (bytes.len() - 4096)] ^= 1 << (seed % 8);
        }
        put_back(&fs, &path, &damaged);
        let engine = force(&fs, ForceRecovery::ReadOnly).0.unwrap();
        let found = match engine.open_table("t") {
            Ok(table) => all(&engine, table.tree(0)),
            Err(_) => continue,
        };
        let lost = engine.lost();
        silent += u32::from(lost.is_empty());
        some += u32::from(!lost.is_empty() && found.len() > 4000);
        let is_lost = |key: &[u8]| {
            lost.iter().any(|lost| *lost.low <= *key && lost.high.as_ref().is_none_or(|high| key < &**high))
        };
        for (key, value) in &whole {
            match found.get(key) {
                Some(read) => assert!(read == value, "seed {seed}"),
                None => assert!(is_lost(key), "seed {seed}: {} is gone without a word", key.escape_ascii()),
            }
        }
        assert!(found.keys().all(|key| whole.contains_key(key) && !is_lost(key)), "seed {seed}");
    }
    assert!(silent < 30 && some > 5, "{silent} harmless, {some} with a part of the rows");
}

#[test]
fn a_load_whose_blocks_are_damaged_right_after_its_commit_is_not_taken_for_an_unfinished_one() {
    let (fs, engine, table) = with_table(11);
    append(&engine, &table, 0..3000);
    let path = table.space().path().to_str().unwrap().to_string();
    drop((table, engine));
    let fs = fs.kill();
    let damaged: Vec<u8> = contents(&fs, &path).iter().map(|byte| byte ^ 1).collect();
    put_back(&fs, &path, &[&contents(&fs, &path)[..4096], &damaged[4096..]].concat());
    let (engine, told) = try_open(&fs);
    assert!(engine.unwrap().open_table("t").is_err());
    assert!(told.has("cannot be recovered"), "{:?}", told.0);
}
