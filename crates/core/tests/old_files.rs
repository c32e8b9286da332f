//! Directories that each format of before has left, `tests/fixtures/version-<n>.tar.gz`: they open, have what they had,
//! pass every check, and are of today's format afterwards.
//!
//! Each archive has two directories: `closed`, by an engine that ended in order, and `crashed`, with a log to replay
//! (`fixtures/write.rs` says what is in them). Tables' records in the catalog have versions of their own, which came
//! without a new format: `records-<n>.tar.gz` has the same two directories with all kinds of them up to version n
//! (`fixtures/records.rs`). Features came without a new format, too: `feature-<n>.tar.gz` is what `fixtures/write.rs`
//! made when the first build had that of bit n. When any of these changes, keep what the last one wrote: `cargo test -p
//! teak-core --test old_files -- --ignored` writes the archives of today, where there are none.

#[path = "fixtures/records.rs"]
mod records;
#[path = "fixtures/write.rs"]
mod write;

mod scratch;

use scratch::Scratch;
use std::path::{Path, PathBuf};
use std::process::Command;
use teak_core::file::RealFileSystem;
use teak_core::server::{self, Checkpoint};
use teak_core::{Engine, Result};

/// Of superblocks, and with them of all files.
const OLDEST: u32 = 2;
const NEWEST: u32 = 6;
/// Of superblocks' features, of which there are archives.
const FEATURES: std::ops::RangeInclusive<u32> = 8..=10;
/// Of tables' records in the catalog, of which there are archives.
const RECORDS: std::ops::RangeInclusive<u32> = 4..=5;

fn archive(what: &str, version: u32) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/fixtures/{what}-{version}.tar.gz"))
}

fn tar(arguments: &[&str], archive: &Path, dir: &Path) {
    let mut command = Command::new("tar");
    let done = command.args(arguments).arg(archive).arg("-C").arg(dir).args(["closed", "crashed"]).output();
    let done = done.expect("tar runs");
    assert!(done.status.success(), "tar {}: {}", archive.display(), String::from_utf8_lossy(&done.stderr));
}

/// Number of rows, and FNV-1a of all keys and values with their lengths.
type Digest = (u64, u64);

fn digest(engine: &Engine, table: &str, tree: usize) -> Result<Digest> {
    let (table, snapshot) = (engine.open_table(table)?, engine.snapshot());
    let (mut rows, mut hash) = (0, 0xcbf2_9ce4_8422_2325_u64);
    let mut cursor = snapshot.rows(table.tree(tree));
    while cursor.advance()? {
        for part in [cursor.key(), cursor.value()?] {
            for byte in (part.len() as u64).to_le_bytes().iter().chain(part) {
                hash = (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
            }
        }
        rows += 1;
    }
    Ok((rows, hash))
}

/// What is in either directory of every version, before the undecided transaction is decided.
const CONTENT: [(&str, usize, Digest); 6] = [
    ("db/after", 0, (600, 0x3fd0_f22e_cc87_bea3)),
    ("db/empty", 0, (0, 0xcbf2_9ce4_8422_2325)),
    ("db/rows", 0, (202, 0x2262_d9a1_24d8_ac67)),
    ("db/rows", 1, (300, 0xde80_bfb9_f957_bd87)),
    ("db/rows", 2, (300, 0xa1fa_ff73_9ade_9185)),
    ("db/words", 0, (800, 0x0cc8_cac9_bc5f_1b79)),
];

fn check_content(engine: &Engine, what: &str, decided: u64) {
    for (table, tree, (rows, hash)) in CONTENT {
        let found = digest(engine, table, tree).unwrap_or_else(|error| panic!("{what}: {table}: {error}"));
        match (table, tree, decided) {
            ("db/rows", 0, 1..) => assert_eq!(found.0, rows + decided, "{what}: {table} {tree}"),
            _ => assert_eq!(found, (rows, hash), "{what}: {table} {tree}"),
        }
    }
    let rows = engine.open_table("db/rows").expect("a table that was just read");
    assert_eq!((rows.counter(), rows.meta()), (700, &b"rows and two indexes"[..]), "{what}");
    let findings = engine.check().expect("a check");
    assert!(findings.is_empty(), "{what}: {findings}");
}

/// Bits of the features that the newest superblock has.
fn features(dir: &Path) -> Vec<u32> {
    let file = std::fs::read(dir.join("teak.super")).expect("the superblock's file");
    let number = |at: usize| file[at..].first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes));
    let slots = [0, 4096].into_iter().filter(|slot| file[*slot..].starts_with(b"TEAKSUPR"));
    // Its number is at 32, the flags are at 12.
    let newest = slots.max_by_key(|slot| number(slot + 32)).expect("a superblock");
    (8..24).filter(|bit| number(newest + 12) & 1 << bit != 0).collect()
}

fn open(dir: &Path) -> server::Engine {
    write::open(dir).unwrap_or_else(|error| panic!("{}: {error}", dir.display()))
}

#[test]
fn files_of_every_version_open_and_have_what_they_had() {
    let versions = (OLDEST..=NEWEST).map(|version| ("version", version, version));
    for (of, number, version) in versions.chain(FEATURES.map(|bit| ("feature", bit, NEWEST))) {
        let unpacked = Scratch::new(&format!("old-files-{of}-{number}"));
        tar(&["-xzf"], &archive(of, number), &unpacked.0);
        for name in ["closed", "crashed"] {
            let (dir, what) = (unpacked.0.join(name), format!("{of} {number}, {name}"));
            let newest = Checkpoint::newest(&RealFileSystem, &dir).expect("a superblock").expect("an engine");
            assert_eq!(newest.version, version, "{what}");
            let known = FEATURES.filter(|bit| of == "feature" && *bit <= number).collect::<Vec<_>>();
            assert_eq!(features(&dir), known, "{what}");

            let opened = open(&dir);
            let engine = Engine::from(opened.clone());
            assert_eq!(engine.table_names("").unwrap(), ["db/after", "db/empty", "db/rows", "db/words"]);
            check_content(&engine, &what, 0);
            assert_eq!(opened.prepared(), [b"an xid".to_vec()], "{what}");
            opened.commit_prepared(b"an xid").unwrap();
            check_content(&engine, &what, 1);
            engine.close().unwrap();
            drop((engine, opened));

            let newest = Checkpoint::newest(&RealFileSystem, &dir).unwrap().unwrap();
            assert_eq!((newest.version, newest.clean), (NEWEST, true), "{what}");
            assert_eq!(features(&dir), FEATURES.collect::<Vec<_>>(), "{what}");
            let again = Engine::from(open(&dir));
            check_content(&again, &format!("{what}, again"), 1);
            again.close().unwrap();
        }
    }
}

#[test]
fn records_of_every_version_are_read_and_written_again() {
    for version in RECORDS {
        let unpacked = Scratch::new(&format!("old-records-version-{version}"));
        tar(&["-xzf"], &archive("records", version), &unpacked.0);
        for name in ["closed", "crashed"] {
            let (dir, what) = (unpacked.0.join(name), format!("records {version}, {name}"));
            // As they came, then as this build leaves them.
            for change in [false, true] {
                let engine = open(&dir);
                records::check(&engine, version, &what);
                if change {
                    records::rewrite(&engine).unwrap();
                    records::check(&engine, version, &what);
                }
                let engine = Engine::from(engine);
                let findings = engine.check().expect("a check");
                assert!(findings.is_empty(), "{what}: {findings}");
                engine.close().unwrap();
            }
            let again = open(&dir);
            records::check(&again, version, &format!("{what}, again"));
            again.close().unwrap();
        }
    }
}

/// Writes an archive of what `write` makes, unless it is there.
fn keep(archive: &Path, write: fn(&Path, bool) -> Result<()>) {
    if archive.exists() {
        return;
    }
    let made = Scratch::new("old-files-made");
    write(&made.0.join("closed"), true).unwrap();
    write(&made.0.join("crashed"), false).unwrap();
    let newest = Checkpoint::newest(&RealFileSystem, &made.0.join("closed")).unwrap().unwrap();
    assert_eq!(newest.version, NEWEST);
    // A process that died has left the lock's file, and no temporary data.
    tar(&["--sort=name", "--owner=0", "--group=0", "--mtime=@0", "-czf"], archive, &made.0);
}

#[test]
#[ignore = "writes the archives of today"]
fn write_the_archives_of_today() {
    keep(&archive("version", NEWEST), write::write);
    keep(&archive("feature", *FEATURES.end()), write::write);
    keep(&archive("records", *RECORDS.end()), records::write);
}
