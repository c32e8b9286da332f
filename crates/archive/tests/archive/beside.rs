//! Puts, removals, reads and gc beside each other.

use crate::place::{assert_sound, collect, get, Directory, Random};
use std::sync::atomic::{AtomicBool, Ordering};
use teak_archive::{Archive, Chunking, Definition, Digest, Durability, Metadata, Name, Options, Rules};

/// One of few contents, which share chunks.
fn content(number: usize) -> Vec<u8> {
    let mut bytes = Random(1).bytes(2000);
    bytes.extend(Random(number as u64 / 3).bytes(100 * (number % 40)));
    bytes.truncate(if number.is_multiple_of(5) { 50 } else { 30_000 });
    bytes
}

#[test]
fn nothing_that_was_answered_is_taken_by_gc() {
    let dir = Directory::new("beside");
    let options = Options { durability: Durability::OnSync, ..Options::new(&dir.0) };
    let fs = std::sync::Arc::new(teak_core::file::RealFileSystem);
    let rules = Rules { grace_seconds: 0, keep_versions: 2 };
    let archive = Archive::init_on(fs, options, Chunking::new(64, 256, 1024).unwrap(), &rules).unwrap();
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..4u64)
            .map(|worker| {
                let archive = &archive;
                scope.spawn(move || {
                    let (mut random, mut mine) = (Random(worker + 100), Vec::new());
                    for _ in 0..300 {
                        let bytes = content(random.below(60));
                        let stored = archive.put(&mut &*bytes, &Metadata::default()).unwrap();
                        assert_eq!(stored.data, Digest::of(&bytes));
                        mine.push((stored.oid, bytes));
                        while mine.len() > 5 {
                            let (oid, bytes) = mine.swap_remove(random.below(mine.len()));
                            assert!(get(archive, Name::Record(oid)).unwrap() == bytes);
                            archive.remove(oid).unwrap();
                        }
                    }
                    mine
                })
            })
            .collect();
        scope.spawn(|| {
            while !done.load(Ordering::SeqCst) {
                archive.collect(None, &|| false).unwrap();
            }
        });
        scope.spawn(|| {
            for round in 0.. {
                if done.load(Ordering::SeqCst) {
                    break;
                }
                let indexes = ["", r#"["file.name"]"#, r#"["system.size", "file.name"]"#][round % 3];
                let text = format!("{{\"indexes\": [{indexes}]}}");
                archive.set_schema(&Definition::parse(&text).unwrap()).unwrap();
            }
        });
        let left: Vec<_> = workers.into_iter().map(|worker| worker.join()).collect();
        done.store(true, Ordering::SeqCst);
        for (oid, bytes) in left.into_iter().flat_map(Result::unwrap) {
            assert!(get(&archive, Name::Record(oid)).unwrap() == bytes);
        }
    });
    assert_sound(&archive);
    collect(&archive);
    assert_sound(&archive);
}

#[test]
fn a_reader_goes_on_when_its_object_is_removed_and_collected() {
    struct Removes<'a>(&'a Archive, Option<teak_archive::Oid>, Vec<u8>);
    impl std::io::Write for Removes<'_> {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            if let Some(oid) = self.1.take() {
                self.0.remove(oid).unwrap();
                assert_eq!(collect(self.0).data, 1);
            }
            self.2.extend(bytes);
            Ok(bytes.len())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let archive = crate::place::Place::new(2).init();
    let bytes = Random(3).bytes(100_000);
    let oid = crate::place::put(&archive, &bytes, &[]).unwrap();
    let mut reader = Removes(&archive, Some(oid), Vec::new());
    archive.get(Name::Record(oid), None, &mut reader).unwrap();
    assert!(reader.2 == bytes);
    assert!(get(&archive, Name::Record(oid)).is_err());
    assert_sound(&archive);
}

#[test]
fn gc_in_the_middle_of_a_put_takes_nothing_from_it() {
    struct Collects<'a>(&'a Archive, &'a [u8]);
    impl std::io::Read for Collects<'_> {
        fn read(&mut self, buf: &mut [u8]) -> std::io::Result<usize> {
            // Nothing of a put that is under way is to be had, whoever else had the same.
            collect(self.0);
            let count = buf.len().min(self.1.len()).min(5000);
            buf[..count].copy_from_slice(&self.1[..count]);
            self.1 = &self.1[count..];
            Ok(count)
        }
    }
    let archive = crate::place::Place::new(3).init();
    let bytes = Random(4).bytes(200_000);
    let before = crate::place::put(&archive, &bytes[50_000..], &[]).unwrap();
    archive.remove(before).unwrap();
    let stored = archive.put(&mut Collects(&archive, &bytes), &Metadata::default()).unwrap();
    assert_sound(&archive);
    let collected = collect(&archive);
    assert_eq!((collected.data, collected.lists), (0, 0));
    assert!(get(&archive, Name::Record(stored.oid)).unwrap() == bytes);
    assert_sound(&archive);
}
