//! Damaged bytes: what a scrub says of them, and what can be read beside them.

use crate::place::{assert_sound, get, put, Directory, Place, Random};
use std::cell::Cell;
use std::os::unix::fs::FileExt;
use teak_archive::{Archive, Chunking, Digest, Error, Name, Oid, Rules, Scrub};

const ALL: Scrub<'static> = Scrub { bytes_per_second: None, restart: false, stop: &|| false };

#[test]
fn flipped_bytes_are_found_and_hurt_nothing_else() {
    let dir = Directory::new("scrub");
    let mut random = Random(1);
    let archive = Archive::init(&dir.0, Chunking::default(), &Rules::default()).unwrap();
    let contents: Vec<Vec<u8>> =
        [20_000, 300_000, 100, 40_000].iter().map(|size| random.bytes(*size)).collect();
    let oids: Vec<Oid> = contents.iter().map(|bytes| put(&archive, bytes, &[]).unwrap()).collect();
    archive.close().unwrap();
    let file = std::fs::File::options().read(true).write(true).open(dir.0.join("s1.teak")).unwrap();
    let length = file.metadata().unwrap().len();
    let mut rounds_with_damage = 0;
    for at in (8192..length).step_by(17_001) {
        let mut byte = [0];
        file.read_exact_at(&mut byte, at).unwrap();
        file.write_all_at(&[byte[0] ^ 4], at).unwrap();
        if let Ok(archive) = Archive::open(&dir.0) {
            let scrubbed = archive.scrub(&ALL).unwrap();
            assert!(scrubbed.is_complete);
            let hurt: Vec<Oid> = scrubbed.damage.iter().flat_map(|damage| damage.records.clone()).collect();
            rounds_with_damage += usize::from(!hurt.is_empty());
            for (oid, bytes) in oids.iter().zip(&contents) {
                match get(&archive, Name::Record(*oid)) {
                    Ok(read) => assert!(read == *bytes && !hurt.contains(oid)),
                    Err(Error::Damaged { chunk, data, .. }) => {
                        assert!(hurt.contains(oid) && data == Digest::of(bytes));
                        assert!(scrubbed.damage.iter().any(|damage| damage.chunk == chunk));
                    }
                    Err(error) => panic!("{error}"),
                }
            }
        }
        file.write_all_at(&byte, at).unwrap();
    }
    assert!(rounds_with_damage > 5, "{rounds_with_damage}");
    assert_sound(&Archive::open(&dir.0).unwrap());
}

#[test]
fn an_interrupted_scrub_goes_on_where_it_was() {
    let place = Place::new(2);
    let archive = place.init();
    let bytes = Random(2).bytes(100_000);
    put(&archive, &bytes, &[]).unwrap();
    let (asked, stops_at) = (Cell::new(0), Cell::new(100));
    let stop = || {
        asked.set(asked.get() + 1);
        asked.get() > stops_at.get()
    };
    let stopping = Scrub { stop: &stop, ..ALL };
    let first = archive.scrub(&stopping).unwrap();
    assert!(!first.is_complete && first.chunks == 100, "{first:?}");
    archive.close().unwrap();
    let archive = place.open().unwrap();
    asked.set(0);
    stops_at.set(50);
    assert_eq!(archive.scrub(&stopping).unwrap().chunks, 150);
    let last = archive.scrub(&ALL).unwrap();
    assert!(last.is_complete && last.bytes == 100_000 && last.damage.is_empty());
    assert!(archive.scrub(&ALL).unwrap().chunks == last.chunks, "the next begins anew");
}
