use super::newest::decode_copy;
use super::*;
use crate::file::{Fault, RealFileSystem, SimulatedFileSystem};
use crate::store::tests::{flip, TestDir};
use crate::Compression;
use proptest::prelude::*;
use std::path::PathBuf;

const FS: RealFileSystem = RealFileSystem;

fn superblock(checkpoint: u64) -> Superblock {
    let address = BlockAddress {
        offset: 512 * checkpoint,
        stored_bytes: 100,
        raw_bytes: 300,
        checksum: 5,
        compression: Compression::Zstd,
        in_parts: false,
        is_tight: false,
        dictionary: 7,
    };
    Superblock {
        version: Superblock::VERSION,
        engine_id: [3; 16],
        checkpoint,
        timestamp: 1000 + checkpoint,
        replay_from: 77,
        next_tree: 8,
        next_txn: 9,
        next_space: 10,
        directory: (checkpoint > 1).then_some(TreeRoot {
            address,
            height: 2,
            entries: 6,
            leaves: 3,
            stored_bytes: 4,
            raw_bytes: 9,
        }),
        system_map: (checkpoint > 2).then_some(address),
        features: Features::default(),
        read_from: Release::READS_OURS,
        clean: checkpoint % 3 > 1,
    }
}

fn file_with(dir: &TestDir, checkpoints: u64) -> PathBuf {
    let path = dir.0.join("teak.super");
    for checkpoint in 1..=checkpoints {
        superblock(checkpoint).write_next(&FS, &path).unwrap();
    }
    path
}

#[test]
fn the_newest_is_read() {
    let dir = TestDir::new();
    let path = dir.0.join("teak.super");
    assert_eq!(Superblock::read_newest(&FS, &path).unwrap(), None);
    for checkpoint in 1..10 {
        superblock(checkpoint).write_next(&FS, &path).unwrap();
        assert_eq!(Superblock::read_newest(&FS, &path).unwrap(), Some(superblock(checkpoint)));
    }
    assert_ne!(Superblock::new_engine_id(), Superblock::new_engine_id());
}

#[test]
fn only_the_successor_of_the_newest_is_written() {
    let dir = TestDir::new();
    let path = file_with(&dir, 4);
    for checkpoint in [2, 3, 4, 6] {
        assert!(superblock(checkpoint).write_next(&FS, &path).is_err());
    }
    assert_eq!(Superblock::read_newest(&FS, &path).unwrap(), Some(superblock(4)));
}

/// What is found, and how much is said about it.
fn found(path: &Path) -> (u64, usize, bool) {
    let newest = Superblock::read(&FS, path).unwrap().unwrap();
    (newest.superblock.checkpoint, newest.remarks.len(), newest.doubt.is_some())
}

fn put(path: &Path, slot: u64, copy: u64, bytes: &[u8]) {
    let mut file = std::fs::read(path).unwrap();
    file[offset_of(slot, copy) as usize..][..bytes.len()].copy_from_slice(bytes);
    std::fs::write(path, file).unwrap();
}

#[test]
fn each_flipped_byte_is_told_and_the_newest_found() {
    let dir = TestDir::new();
    let path = file_with(&dir, 4);
    assert_eq!(found(&path), (4, 0, false));
    for at in (0..FILE_BYTES).step_by(7) {
        flip(&path, at);
        assert_eq!(found(&path), (4, 1, false), "byte {at}");
        flip(&path, at);
    }
}

#[test]
fn a_start_from_the_one_before_is_refused_when_the_newest_is_gone() {
    for ruin in [[7; BLOCK_BYTES], [0; BLOCK_BYTES]] {
        let dir = TestDir::new();
        let path = file_with(&dir, 4);
        put(&path, 0, 0, &ruin);
        put(&path, 0, 1, &ruin);
        assert_eq!(found(&path), (3, 0, true));
        let error = Superblock::read_newest(&FS, &path).unwrap_err();
        assert!(
            matches!(error, Error::Corrupt { offset: 0, .. }) && error.to_string().contains("both copies")
        );
        flip(&path, offset_of(1, 0));
        flip(&path, offset_of(1, 1));
        assert!(matches!(Superblock::read(&FS, &path), Err(Error::Corrupt { .. })));
        assert!(superblock(5).write_next(&FS, &path).is_err());
    }
}

#[test]
fn a_copy_that_was_damaged_is_written_again() {
    let dir = TestDir::new();
    let path = file_with(&dir, 4);
    for copy in 0..2 {
        flip(&path, offset_of(0, copy) + 40);
        Superblock::read_newest(&FS, &path).unwrap().unwrap().make_durable(&FS, &path).unwrap();
        assert_eq!(found(&path), (4, 0, false));
    }
}

#[test]
fn an_unreadable_sector_costs_one_copy() {
    let fs = SimulatedFileSystem::new(1);
    fs.create_dir(Path::new("/d")).unwrap();
    let path = Path::new("/d/teak.super");
    (1..=4).for_each(|checkpoint| superblock(checkpoint).write_next(&fs, path).unwrap());
    fs.break_sectors(path, 512..1024);
    let newest = Superblock::read(&fs, path).unwrap().unwrap();
    assert!(newest.superblock.checkpoint == 4 && newest.doubt.is_none());
    assert!(newest.remarks[0].1.contains("I/O error"), "{:?}", newest.remarks);
}

#[test]
fn any_torn_write_leaves_the_one_before_or_the_new_one() {
    let dir = TestDir::new();
    let path = file_with(&dir, 5);
    let (old, new) = (superblock(4).encode(), superblock(6).encode());
    for sectors in 0u32..256 {
        let mut torn = old;
        for sector in (0..8).filter(|sector| sectors & (1 << sector) != 0) {
            torn[sector * 512..][..512].copy_from_slice(&new[sector * 512..][..512]);
        }
        // The first and the last sector are those that differ.
        let (complete, untouched) = (sectors & 0x81 == 0x81, sectors & 0x81 == 0);
        let remarks = usize::from(!complete && !untouched);
        put(&path, 0, 0, &torn);
        put(&path, 0, 1, &old);
        assert_eq!(found(&path), (if complete { 6 } else { 5 }, remarks, false));
        put(&path, 0, 0, &new);
        put(&path, 0, 1, &torn);
        assert_eq!(found(&path), (6, remarks, false));
    }
}

#[test]
fn a_power_cut_at_any_moment_leaves_no_doubt() {
    for cut in 0..40 {
        let fs = SimulatedFileSystem::new(cut);
        fs.create_dir(Path::new("/d")).unwrap();
        fs.sync_dir(Path::new("/")).unwrap();
        let path = Path::new("/d/teak.super");
        superblock(1).write_next(&fs, path).unwrap();
        fs.fail_after(cut, Fault::PowerCut);
        let written = (2..=9).take_while(|&checkpoint| superblock(checkpoint).write_next(&fs, path).is_ok());
        let last = 1 + written.count() as u64;
        let fs = fs.crash();
        let newest = Superblock::read(&fs, path).unwrap().unwrap();
        assert!(newest.doubt.is_none(), "{newest:?}");
        assert!((last..=last + 1).contains(&newest.superblock.checkpoint), "{newest:?} after {last}");
    }
}

#[test]
fn files_without_second_copies_are_read_and_get_them() {
    let dir = TestDir::new();
    let path = file_with(&dir, 4);
    let old = |checkpoint| Superblock { version: 3, ..superblock(checkpoint) };
    std::fs::write(&path, [old(4).encode(), old(3).encode()].concat()).unwrap();
    assert_eq!(found(&path), (4, 0, false));
    // Such a file cannot tell a damaged newest superblock from one that a crash tore.
    flip(&path, 40);
    assert_eq!(found(&path), (3, 1, false));
    flip(&path, 40);
    let newest = Superblock::read_newest(&FS, &path).unwrap().unwrap();
    newest.make_durable(&FS, &path).unwrap();
    superblock(5).write_next(&FS, &path).unwrap();
    superblock(6).write_next(&FS, &path).unwrap();
    flip(&path, 40);
    assert_eq!(found(&path), (6, 1, false));
}

#[test]
fn an_unknown_version_is_refused_even_beside_a_known_one() {
    let dir = TestDir::new();
    let path = file_with(&dir, 3);
    let old = Superblock { version: 2, ..superblock(4) };
    old.write_next(&FS, &path).unwrap();
    assert_eq!(Superblock::read_newest(&FS, &path).unwrap(), Some(old));
    Superblock { version: 9, read_from: Release::decode(&[7, 0, 8, 0, 9, 0]).unwrap(), ..superblock(5) }
        .write_next(&FS, &path)
        .unwrap();
    let error = Superblock::read_newest(&FS, &path).unwrap_err();
    let text = error.to_string();
    assert!(matches!(error, Error::TooNew { .. }), "{text}");
    assert!(text.contains("format version 9") && text.contains("Teak 7.8.9 or newer is needed"), "{text}");
    assert!(superblock(6).write_next(&FS, &path).is_err());
}

/// A superblock whose files have the feature of a bit that nobody knows.
fn with_feature(checkpoint: u64, bit: u32) -> Superblock {
    let read_from = Release::decode(&[2, 0, 3, 0, 1, 0]).unwrap();
    Superblock { features: Features::among(1 << bit), read_from, ..superblock(checkpoint) }
}

#[test]
fn an_unknown_feature_forbids_reading_or_writing() {
    let dir = TestDir::new();
    let path = file_with(&dir, 3);
    // It is kept with those that follow, until then it may be read.
    with_feature(4, 17).write_next(&FS, &path).unwrap();
    let found = Superblock::read_newest(&FS, &path).unwrap().unwrap();
    assert_eq!(found, with_feature(4, 17));
    let text = found.check_writing(&path).unwrap_err().to_string();
    assert!(
        text.contains("feature 17") && text.contains("Teak 2.3.1 or newer is needed; teak_force_recovery=2"),
        "{text}"
    );

    with_feature(5, 15).write_next(&FS, &path).unwrap();
    let text = Superblock::read_newest(&FS, &path).unwrap_err().to_string();
    assert!(text.contains("feature 15") && text.contains("Teak 2.3.1 or newer is needed; nothing"), "{text}");
    assert!(superblock(6).write_next(&FS, &path).is_err(), "nothing is written over it");
}

#[test]
fn facts_are_no_features() {
    assert_eq!(Features::among(CLEAN | HAS_DIRECTORY | HAS_SYSTEM_MAP), Features::default());
    superblock(5).check_writing(Path::new("x")).unwrap();
}

#[test]
fn an_empty_file_is_damage_and_not_a_new_engine() {
    let dir = TestDir::new();
    let path = dir.0.join("teak.super");
    std::fs::write(&path, []).unwrap();
    assert!(matches!(Superblock::read_newest(&FS, &path), Err(Error::Corrupt { .. })));
}

proptest! {
    #[test]
    fn decoding_any_bytes_does_not_panic(bytes in proptest::collection::vec(any::<u8>(), 160)) {
        let mut slot = [0; BLOCK_BYTES];
        slot[..160].copy_from_slice(&bytes);
        Superblock::decode(&slot);
        let _ = decode_copy(&slot, 0, Path::new("x"));
    }
}
