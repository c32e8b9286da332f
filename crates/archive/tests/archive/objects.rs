//! Bytes in and out, by record and by content.

use crate::place::{assert_sound, collect, get, metadata, put, Place, Random};
use std::io::Read;
use teak_archive::{Archive, Chunking, Digest, Error, Metadata, Name, Range, Rules};
use teak_core::file::Fault;

#[test]
fn bytes_of_all_sizes_come_back_whole_and_in_parts() {
    let place = Place::new(1);
    let archive = place.init();
    let mut random = Random(1);
    for size in [0, 1, 63, 64, 65, 255, 1024, 5000, 16_384, 16_385, 100_000] {
        let bytes = random.bytes(size);
        let stored = archive.put(&mut &*bytes, &Metadata::default()).unwrap();
        assert_eq!((stored.size, stored.data), (size as u64, Digest::of(&bytes)));
        assert!(get(&archive, Name::Record(stored.oid)).unwrap() == bytes);
        for _ in 0..20 {
            let (from, to) = (random.below(size + 1), random.below(size + 10));
            let mut part = Vec::new();
            let range = Range { from: from as u64, to: Some(to as u64) };
            archive.get(Name::Data(stored.data), Some(range), &mut part).unwrap();
            assert_eq!(part, bytes[from..to.clamp(from, size)], "{from}..{to} of {size}");
        }
        let behind = Range { from: size as u64 + 1, to: None };
        let told = archive.get(Name::Data(stored.data), Some(behind), &mut Vec::new());
        assert!(matches!(told, Err(Error::Range { .. })));
    }
    assert_sound(&archive);
}

#[test]
fn what_is_there_is_stored_once_as_a_whole_and_in_parts() {
    let archive = Place::new(2).init();
    let bytes = Random(2).bytes(50_000);
    let first = archive.put(&mut &*bytes, &Metadata::default()).unwrap();
    let second = archive.put(&mut &*bytes, &Metadata::default()).unwrap();
    assert!(!first.was_there && second.was_there && first.oid < second.oid);
    assert_eq!(archive.stat(Name::Data(first.data)).unwrap().records, [first.oid, second.oid]);
    // The list of the second put was nobody's.
    assert_eq!(collect(&archive).lists, 1);
    let before = stored_bytes(&archive);
    let changed = [&bytes[..20_000], b"something else", &bytes[20_000..]].concat();
    put(&archive, &changed, &[]).unwrap();
    assert!(stored_bytes(&archive) - before < 5000);
    // A chunk that is within the whole, by itself.
    put(&archive, &[&bytes[..], &bytes[..]].concat(), &[]).unwrap();
    assert!(stored_bytes(&archive) - before < 8000);
    assert_sound(&archive);
}

/// Bytes of all chunks.
fn stored_bytes(archive: &Archive) -> u64 {
    let how = teak_archive::Scrub { bytes_per_second: None, restart: true, stop: &|| false };
    archive.scrub(&how).unwrap().bytes
}

#[test]
fn a_put_that_cannot_be_read_leaves_nothing() {
    let archive = Place::new(3).init();
    struct Breaks(usize);
    impl Read for Breaks {
        fn read(&mut self, buf: &mut [u8]) -> std::io::Result<usize> {
            if self.0 == 0 {
                return Err(std::io::Error::other("the cable is out"));
            }
            self.0 -= 1;
            buf.iter_mut().enumerate().for_each(|(at, byte)| *byte = (at * self.0) as u8);
            Ok(buf.len())
        }
    }
    for reads in [0, 1, 50, 500] {
        let told = archive.put(&mut Breaks(reads), &Metadata::default()).unwrap_err().to_string();
        assert!(told.contains("the cable is out"), "{told}");
    }
    assert_sound(&archive);
    let collected = collect(&archive);
    assert!(collected.lists > 0 && collected.chunks > 0, "{collected:?}");
    assert_eq!(stored_bytes(&archive), 0);
    assert_sound(&archive);
}

#[test]
fn versions_of_a_record_stay_readable_as_many_as_are_kept() {
    let archive = Place::new(4).init();
    let oid = put(&archive, b"x", &[("file.name", "0")]).unwrap();
    for version in 2..=6u64 {
        let changed = archive.update(oid, &metadata(&[("file.name", &version.to_string())])).unwrap();
        assert_eq!(changed, version);
    }
    assert_eq!(archive.update(oid, &metadata(&[("file.name", "6")])).unwrap(), 6, "nothing to change");
    let refused = archive.update_version(oid, 5, &metadata(&[("file.name", "7")]));
    assert!(matches!(refused, Err(Error::OtherVersion { found: 6, wanted: 5, .. })), "{refused:?}");
    assert_eq!(archive.update_version(oid, 6, &metadata(&[("file.name", "6")])).unwrap(), 6);
    assert_eq!(archive.versions(oid).unwrap(), [3, 4, 5, 6]);
    let names = |version| {
        archive.version(oid, version).unwrap().fields(&archive.schema()).last().unwrap().1.to_string()
    };
    assert_eq!((names(3), names(6)), ("3".into(), "6".into()));
    assert!(matches!(archive.version(oid, 2), Err(Error::MissingVersion { .. })));
    archive.update(oid, Metadata::default().nothing("file_name")).unwrap();
    assert!(archive
        .record(oid)
        .unwrap()
        .fields(&archive.schema())
        .iter()
        .all(|(name, _)| *name != "file.name"));
    assert_sound(&archive);
    archive.remove(oid).unwrap();
    assert!(matches!(archive.version(oid, 6), Err(Error::Missing(_))));
    assert_sound(&archive);
}

#[test]
fn data_goes_when_its_grace_is_over_unless_somebody_names_it_again() {
    let place = Place::new(5);
    let archive = place.init();
    let (small, large) = (Random(5).bytes(100), Random(6).bytes(50_000));
    for bytes in [&small[..], &large, b""] {
        let name = Name::Data(Digest::of(bytes));
        let oid = put(&archive, bytes, &[]).unwrap();
        archive.remove(oid).unwrap();
        assert!(matches!(archive.remove(oid), Err(Error::Missing(_))));
        assert_eq!(archive.collect(None, &|| false).unwrap().data, 0);
        assert_eq!(get(&archive, name).unwrap(), bytes, "within its grace it is there by its content");
        let again = archive.put(&mut &*bytes, &Metadata::default()).unwrap();
        assert!(again.was_there);
        place.pass(61);
        archive.collect(None, &|| false).unwrap();
        assert_eq!(get(&archive, name).unwrap(), bytes);
        archive.remove(again.oid).unwrap();
        place.pass(61);
        assert_eq!(archive.collect(None, &|| false).unwrap().data, 1);
        assert!(matches!(get(&archive, name), Err(Error::Missing(_))));
    }
    assert_eq!(stored_bytes(&archive), 0);
    assert_sound(&archive);
}

#[test]
fn what_goes_away_with_gc_leaves_chunks_that_others_have() {
    let archive = Place::new(6).init();
    let bytes = Random(7).bytes(50_000);
    let first = put(&archive, &bytes, &[]).unwrap();
    let other = put(&archive, &[b"before", &bytes[..]].concat(), &[]).unwrap();
    archive.remove(first).unwrap();
    let collected = collect(&archive);
    assert_eq!((collected.data, collected.lists), (1, 1));
    assert_eq!(get(&archive, Name::Record(other)).unwrap(), [b"before", &bytes[..]].concat());
    assert_sound(&archive);
}

#[test]
fn an_archive_is_made_once_and_opened_by_one() {
    let place = Place::new(8);
    assert!(matches!(place.open(), Err(Error::NoArchive(_))));
    let archive = place.init();
    let oid = put(&archive, b"stays", &[]).unwrap();
    assert!(matches!(place.open(), Err(Error::InUse(_))));
    archive.close().unwrap();
    assert!(matches!(place.try_init(), Err(Error::Exists(_))));
    let archive = place.open().unwrap();
    assert_eq!(get(&archive, Name::Record(oid)).unwrap(), b"stays");
    assert_eq!(archive.rules(), Rules { grace_seconds: 60, keep_versions: 3 });
    for sizes in [[32, 256, 1024], [64, 63, 1024], [64, 256, 255], [65, 256, 1024], [64, 256, u32::MAX]] {
        assert!(Chunking::new(sizes[0], sizes[1], sizes[2]).is_err(), "{sizes:?}");
    }
}

#[test]
fn metadata_that_does_not_fit_refuses_the_put_and_names_field_and_type() {
    let archive = Place::new(9).init();
    for (field, value, part) in [
        ("nothing.of_that", "1", "field nothing.of_that"),
        ("file.modified", "yesterday", "field file.modified: 'yesterday' is no timestamp"),
        ("file_name", &"x".repeat(256), "field file.name: a value of length 256 is too long for string(255)"),
        ("system.size", "1", "field system.size: is set by the archive itself"),
    ] {
        let told = put(&archive, b"x", &[(field, value)]).unwrap_err().to_string();
        assert!(told.contains(part), "{told}");
    }
    let twice = put(&archive, b"x", &[("file.name", "a"), ("file_name", "b")]).unwrap_err().to_string();
    assert!(twice.contains("given twice"), "{twice}");
    assert_eq!(stored_bytes(&archive), 0);
}

#[test]
fn on_a_full_disk_reads_go_on_and_what_was_answered_stays() {
    for writes in 0..12 {
        let mut place = Place::new(writes);
        let archive = place.init();
        let bytes = Random(9).bytes(30_000);
        let oid = put(&archive, &bytes, &[]).unwrap();
        place.fs.fail_from(writes, Fault::Enospc);
        let (mut answered, mut failed) = (Vec::new(), None);
        for number in 0..10 {
            match put(&archive, &Random(100 + number).bytes(20_000), &[]) {
                Ok(oid) => answered.push(oid),
                Err(error) => failed = Some(error),
            }
        }
        assert!(matches!(failed, Some(Error::Core(_))), "{failed:?}");
        assert_eq!(get(&archive, Name::Record(oid)).unwrap(), bytes);
        drop(archive);
        place.fs.heal();
        place.fs = place.fs.kill();
        let archive = place.open().unwrap();
        assert!(answered.iter().chain([&oid]).all(|oid| get(&archive, Name::Record(*oid)).is_ok()));
        collect(&archive);
        assert_sound(&archive);
    }
}
