//! Tests of the simulated file system: it must be as strict as it says.

use std::path::Path;

use super::{Fault, FileSystem, OpenMode, SimulatedFileSystem};
use crate::Error;

fn with_file(seed: u64, content: &[u8]) -> SimulatedFileSystem {
    let fs = SimulatedFileSystem::new(seed);
    let file = fs.open(Path::new("/a"), OpenMode::Create).unwrap();
    file.write_at(0, content).unwrap();
    file.sync().unwrap();
    fs.sync_dir(Path::new("/")).unwrap();
    fs
}

fn content(fs: &SimulatedFileSystem, path: &str) -> Vec<u8> {
    let file = fs.open(Path::new(path), OpenMode::ReadOnly).unwrap();
    let mut bytes = vec![0; file.len().unwrap() as usize];
    file.read_exact_at(0, &mut bytes).unwrap();
    bytes
}

#[test]
fn synced_content_under_a_synced_name_survives_every_crash() {
    for seed in 0..50 {
        assert_eq!(content(&with_file(seed, b"kept").crash(), "/a"), b"kept");
    }
}

#[test]
fn unsynced_writes_survive_wholly_partly_or_not_at_all() {
    let mut outcomes = std::collections::BTreeSet::new();
    for seed in 0..200 {
        let fs = with_file(seed, &[0; 1024]);
        let file = fs.open(Path::new("/a"), OpenMode::Existing).unwrap();
        file.write_at(0, &[1; 1024]).unwrap();
        let after = content(&fs.crash(), "/a");
        outcomes.insert((after[0], after[511], after[512], after[1023]));
    }
    let expected = [(0, 0, 0, 0), (0, 0, 1, 1), (1, 1, 0, 0), (1, 1, 1, 1)];
    assert_eq!(outcomes.into_iter().collect::<Vec<_>>(), expected);
}

#[test]
fn a_later_write_may_survive_an_earlier_one() {
    let survived = |seed| {
        let fs = with_file(seed, &[0; 2048]);
        let file = fs.open(Path::new("/a"), OpenMode::Existing).unwrap();
        file.write_at(0, &[1]).unwrap();
        file.write_at(1024, &[1]).unwrap();
        let after = content(&fs.crash(), "/a");
        (after[0], after[1024])
    };
    assert!((0..100).any(|seed| survived(seed) == (0, 1)));
}

#[test]
fn a_name_without_directory_sync_may_be_lost_though_the_file_was_synced() {
    let outcomes: Vec<bool> = (0..100)
        .map(|seed| {
            let fs = SimulatedFileSystem::new(seed);
            fs.open(Path::new("/a"), OpenMode::Create).unwrap().sync().unwrap();
            fs.crash().exists(Path::new("/a")).unwrap()
        })
        .collect();
    assert!(outcomes.contains(&true) && outcomes.contains(&false));
}

#[test]
fn a_rename_is_all_or_nothing() {
    for seed in 0..100 {
        let fs = with_file(seed, b"x");
        fs.rename(Path::new("/a"), Path::new("/b")).unwrap();
        let after = fs.crash();
        assert_ne!(after.exists(Path::new("/a")).unwrap(), after.exists(Path::new("/b")).unwrap());
        assert_eq!(after.list(Path::new("/")).unwrap().len(), 1);
    }
}

#[test]
fn files_in_a_lost_directory_are_lost() {
    for seed in 0..100 {
        let fs = SimulatedFileSystem::new(seed);
        fs.create_dir(Path::new("/d")).unwrap();
        fs.open(Path::new("/d/a"), OpenMode::Create).unwrap().sync().unwrap();
        fs.sync_dir(Path::new("/d")).unwrap();
        let after = fs.crash();
        assert_eq!(after.exists(Path::new("/d")).unwrap(), after.exists(Path::new("/d/a")).unwrap());
    }
}

#[test]
fn after_a_power_cut_everything_fails() {
    let fs = with_file(1, b"x");
    let file = fs.open(Path::new("/a"), OpenMode::Existing).unwrap();
    fs.fail_after(1, Fault::PowerCut);
    file.write_at(0, b"y").unwrap();
    assert!(file.sync().is_err());
    assert!(fs.power_is_off());
    assert!(file.read_at(0, &mut [0]).is_err());
    assert!(fs.list(Path::new("/")).is_err());
    assert!(fs.open(Path::new("/a"), OpenMode::ReadOnly).is_err());
    assert_eq!(content(&fs.crash(), "/a").len(), 1);
}

#[test]
fn a_full_disk_refuses_growth_but_not_truncation() {
    let fs = with_file(1, b"abc");
    let file = fs.open(Path::new("/a"), OpenMode::Existing).unwrap();
    fs.fail_from(0, Fault::Enospc);
    assert!(matches!(file.write_at(3, b"d"), Err(Error::DiskFull { .. })));
    file.set_len(2).unwrap();
    file.sync().unwrap();
    assert!(fs.open(Path::new("/b"), OpenMode::Create).is_err());
    fs.heal();
    file.write_at(2, b"z").unwrap();
    assert_eq!(content(&fs, "/a"), b"abz");
}

#[test]
fn an_unsynced_hole_survives_a_crash_wholly_partly_or_not_at_all() {
    let mut outcomes = std::collections::BTreeSet::new();
    for seed in 0..200 {
        let fs = with_file(seed, &[1; 2048]);
        let file = fs.open(Path::new("/a"), OpenMode::Existing).unwrap();
        assert!(file.punch_hole(512, 1024).unwrap());
        let mut now = [9; 2048];
        file.read_exact_at(0, &mut now).unwrap();
        assert_eq!((now[511], now[512], now[1535], now[1536]), (1, 0, 0, 1));
        let after = content(&fs.crash(), "/a");
        assert_eq!((after.len(), after[511], after[1536]), (2048, 1, 1));
        outcomes.insert((after[512], after[1535]));
    }
    assert_eq!(outcomes.into_iter().collect::<Vec<_>>(), [(0, 0), (0, 1), (1, 0), (1, 1)]);
}

#[test]
fn a_hole_takes_nothing_until_it_is_written_and_needs_space_then() {
    let fs = with_file(1, &[1; 64 << 10]);
    let file = fs.open(Path::new("/a"), OpenMode::Existing).unwrap();
    assert!(file.punch_hole(4096, 40 << 10).unwrap());
    assert_eq!((file.len().unwrap(), file.allocated_bytes().unwrap()), (64 << 10, 24 << 10));
    file.sync().unwrap();
    assert_eq!(
        fs.crash().open(Path::new("/a"), OpenMode::ReadOnly).unwrap().allocated_bytes().unwrap(),
        24 << 10
    );

    let fs = with_file(1, &[1; 64 << 10]);
    let file = fs.open(Path::new("/a"), OpenMode::Existing).unwrap();
    assert!(file.punch_hole(0, 100 << 10).unwrap());
    assert_eq!((file.len().unwrap(), file.allocated_bytes().unwrap()), (64 << 10, 0));
    fs.fail_after(0, Fault::Enospc);
    assert!(matches!(file.write_at(5000, b"x"), Err(Error::DiskFull { .. })));
    file.write_at(5000, b"x").unwrap();
    assert_eq!(file.allocated_bytes().unwrap(), 4096);
    fs.refuse_holes();
    assert!(!file.punch_hole(4096, 4096).unwrap());
    assert_eq!(content(&fs, "/a")[5000], b'x');
}

#[test]
fn a_failed_sync_may_lose_writes_for_good() {
    let lost = |seed| {
        let fs = with_file(seed, b"a");
        let file = fs.open(Path::new("/a"), OpenMode::Existing).unwrap();
        file.write_at(0, b"b").unwrap();
        fs.fail_after(0, Fault::Eio);
        assert!(file.sync().is_err());
        assert_eq!(content(&fs, "/a"), b"b");
        file.sync().unwrap();
        content(&fs.crash(), "/a") == b"a"
    };
    assert!((0..50).any(lost));
}

#[test]
fn a_killed_process_leaves_what_it_wrote_and_can_do_no_more() {
    let fs = with_file(0, b"a");
    let held = fs.lock_exclusive(Path::new("/lock")).unwrap();
    let file = fs.open(Path::new("/a"), OpenMode::Existing).unwrap();
    file.write_at(0, b"b").unwrap();
    fs.fail_after(0, Fault::PowerCut);
    assert!(file.sync().is_err());
    let after = fs.kill();
    assert!(file.write_at(0, b"c").is_err());
    drop(held);
    let _held = after.lock_exclusive(Path::new("/lock")).unwrap();
    assert_eq!(content(&after, "/a"), b"b");
    after.open(Path::new("/a"), OpenMode::Existing).unwrap().sync().unwrap();
    assert_eq!(content(&after.crash(), "/a"), b"b");
}

#[test]
fn the_same_seed_gives_the_same_outcome() {
    let run = |seed| {
        let fs = with_file(seed, &[0; 4096]);
        fs.open(Path::new("/a"), OpenMode::Existing).unwrap().write_at(100, &[7; 3000]).unwrap();
        content(&fs.crash(), "/a")
    };
    for seed in 0..20 {
        assert_eq!(run(seed), run(seed));
    }
}

#[test]
fn a_lock_has_one_holder() {
    let fs = SimulatedFileSystem::new(0);
    let held = fs.lock_exclusive(Path::new("/lock")).unwrap();
    assert!(matches!(fs.lock_exclusive(Path::new("/lock")), Err(Error::InUse { .. })));
    drop(held);
    fs.lock_exclusive(Path::new("/lock")).unwrap();
}

#[test]
fn a_file_without_a_name_is_nobody_elses_and_ends_with_the_power() {
    let fs = with_file(3, b"precious");
    let file = fs.open_unnamed(Path::new("/a")).unwrap();
    file.write_at(0, b"spilled").unwrap();
    file.sync().unwrap();
    fs.sync_dir(Path::new("/")).unwrap();
    assert_eq!(content(&fs, "/a"), b"precious");
    assert_eq!(fs.list(Path::new("/")).unwrap(), ["a"]);
    assert_eq!(content(&fs.crash(), "/a"), b"precious");
    assert!(fs.open_unnamed(Path::new("/none/a")).is_err());
}
