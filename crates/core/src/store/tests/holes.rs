//! Tests of [`Space::punch_holes`]: what is free goes back to the file system, and nothing else.

use super::*;

#[test]
fn what_is_free_takes_no_space_until_it_is_used_again() {
    let dir = TestDir::new();
    let path = dir.0.join("s");
    let space = Space::create(&files(FS), &path, 7).unwrap();
    let store = |i| stored(&space, Lifetime::Kept, &content(i, 100_000), Compression::None);
    let extents: Vec<_> = (0..20).map(store).collect();
    space.write_map(1).unwrap();
    space.sync().unwrap();
    space.durable(1);
    let allocated = || std::fs::metadata(&path).unwrap().blocks() * 512;
    let full = allocated();
    assert_eq!(space.punch_holes(0, 100, &|| false).unwrap(), 0, "nothing is free");
    // All but each fifth.
    extents.iter().enumerate().filter(|(i, _)| i % 5 > 0).for_each(|(_, extent)| extent.supersede(2));
    space.write_map(2).unwrap();
    space.sync().unwrap();
    assert_eq!(space.punch_holes(0, 100, &|| false).unwrap(), 0, "the durable image names them");
    space.durable(2);
    assert_eq!(space.punch_holes(0, 100, &|| false).unwrap(), 0, "readers hold them");
    let kept: Vec<_> = extents.into_iter().enumerate().filter(|(i, _)| i % 5 == 0).collect();
    assert_eq!(space.punch_holes(1 << 20, 100, &|| false).unwrap(), 0, "smaller than that");
    assert_eq!(space.punch_holes(0, 2, &|| false).unwrap(), 2);
    assert_eq!(
        (space.punch_holes(0, 100, &|| false).unwrap(), space.punch_holes(0, 100, &|| false).unwrap()),
        (2, 0),
        "each once"
    );
    assert!(full - allocated() > 1_500_000, "{full} bytes, then {}", allocated());
    assert_eq!(space.disk_usage().0, allocated());
    assert!(space.disk_usage().1 < 40_000, "{:?}", space.disk_usage());
    assert!(space.free_bytes() >= 1_600_000, "free all the same");
    kept.iter().for_each(|(i, extent)| assert_eq!(extent.read().unwrap(), content(*i as u64, 100_000)));

    let length = space.file_bytes();
    let again: Vec<_> = (0..12).map(store).collect();
    space.sync().unwrap();
    assert_eq!((space.file_bytes(), space.punch_holes(1 << 20, 100, &|| false).unwrap()), (length, 0));
    assert!(full - allocated() < 500_000, "written again");
    drop(again);
}

#[test]
fn a_file_system_without_holes_is_asked_once_and_nothing_fails() {
    let fs = SimulatedFileSystem::new(1);
    let space = Space::create(&files(fs.clone()), Path::new("/s"), 0).unwrap();
    let low = stored(&space, Lifetime::Private, &content(1, 50_000), Compression::None);
    let high = stored(&space, Lifetime::Private, &content(2, 50_000), Compression::None);
    drop(low);
    fs.refuse_holes();
    let operations = fs.operations();
    assert_eq!(
        (space.punch_holes(0, 9, &|| false).unwrap(), space.punch_holes(0, 9, &|| false).unwrap()),
        (0, 0)
    );
    assert_eq!(fs.operations(), operations);
    assert_eq!(stored(&space, Lifetime::Kept, b"low", Compression::None).address().offset, HEADER_BYTES);
    assert_eq!(high.read().unwrap(), content(2, 50_000));
}

#[test]
fn a_hole_that_fails_changes_nothing_and_a_full_disk_refuses_to_fill_one() {
    let fs = SimulatedFileSystem::new(1);
    let space = Space::create(&files(fs.clone()), Path::new("/s"), 0).unwrap();
    let low = stored(&space, Lifetime::Private, &content(1, 50_000), Compression::None);
    let high = stored(&space, Lifetime::Private, &content(2, 50_000), Compression::None);
    drop(low);
    fs.fail_after(0, Fault::Eio);
    assert!(matches!(space.punch_holes(0, 9, &|| false), Err(Error::Io { .. })));
    assert_eq!(space.punch_holes(0, 9, &|| false).unwrap(), 1);
    assert_eq!(space.free_bytes(), Unit::Fine.occupied(50_000, Compression::None));

    let block = space.prepare(&content(3, 40_000), Compression::None).unwrap();
    fs.fail_from(0, Fault::Enospc);
    assert!(matches!(space.write(&block), Err(Error::DiskFull { .. })));
    fs.heal();
    space.write(&block).unwrap();
    assert_eq!(block.extent().read().unwrap(), content(3, 40_000));
    assert_eq!(high.read().unwrap(), content(2, 50_000));
}

#[test]
fn no_range_is_punched_that_somebody_has_been_given() {
    let dir = TestDir::new();
    let space = Space::create(&files(FS), &dir.0.join("s"), 7).unwrap();
    let working = AtomicU64::new(3);
    let holes = std::thread::scope(|scope| {
        for thread in 0..3u64 {
            let (space, working) = (&space, &working);
            scope.spawn(move || {
                let mut kept = std::collections::VecDeque::new();
                for i in 0..1500 {
                    let raw = content(thread * 10_000 + i, (i * 7919 % 30_000) as usize);
                    kept.push_back((stored(space, Lifetime::Private, &raw, Compression::None), raw));
                    if kept.len() > 12 {
                        let (extent, raw) = kept.swap_remove_back((i % 12) as usize).unwrap();
                        assert!(extent.read().unwrap() == raw, "{:?}", extent.address());
                    }
                }
                kept.iter().for_each(|(extent, raw)| assert!(extent.read().unwrap() == raw));
                working.fetch_sub(1, Ordering::SeqCst);
            });
        }
        let mut holes = 0;
        while working.load(Ordering::SeqCst) > 0 {
            holes += space.punch_holes(0, 7, &|| false).unwrap();
            if holes % 16 == 0 {
                space.trim().unwrap();
            }
        }
        holes
    });
    assert!(holes > 0);
    space.trim().unwrap();
    assert_eq!(space.file_bytes(), HEADER_BYTES);
}

#[test]
fn what_waits_for_a_checkpoint_or_is_being_given_back_is_not_needed() {
    let mut books = super::lifecycle::Books::new(Unit::Fine, None);
    let mut allocate = |bytes| {
        let (offset, _) = books.allocate(bytes, Lifetime::Kept).unwrap();
        books.written(offset);
        offset
    };
    let (low, high) = (allocate(64 << 10), allocate(96 << 10));
    let (end, _) = books.usage().unwrap();
    assert_eq!(books.needed_bytes(), Some(160 << 10));
    books.begin(1);
    books.durable(1);
    books.supersede(low, 64 << 10, 1, 2);
    assert_eq!((books.needed_bytes(), books.usage()), (Some(96 << 10), Some((end, 0))), "a reader holds it");
    books.begin(2);
    books.durable(2);
    books.dropped(low);
    assert_eq!((books.needed_bytes(), books.usage()), (Some(96 << 10), Some((end, 64 << 10))));
    assert!(books.begin_punching(low, 64 << 10));
    assert_eq!((books.needed_bytes(), books.usage()), (Some(96 << 10), Some((end, 0))), "on its way");
    books.punched(low, 64 << 10, true);
    books.dropped(high);
    assert_eq!((books.needed_bytes(), books.usage()), (Some(96 << 10), Some((end, 64 << 10))));
}
