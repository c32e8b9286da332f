//! Rows of an archive that may be anything: errors, and no panic.

use crate::place::{put, Place, Random};
use teak_archive::{Name, Scrub};

#[test]
fn changed_rows_are_errors_and_never_a_panic() {
    let seed = crate::place::seed(1);
    let rounds: u64 =
        std::env::var("TEAK_MUTATIONS").ok().and_then(|count| count.parse().ok()).unwrap_or(300);
    for round in 0..rounds {
        let place = Place::new(1);
        let archive = place.init();
        let mut random = Random(seed + round);
        let oids: Vec<_> = [10, 3000, 40_000]
            .map(|size| put(&archive, &Random(size).bytes(size as usize), &[]).unwrap())
            .into();
        archive.update(oids[0], &crate::place::metadata(&[("file.name", "x")])).unwrap();
        let data = archive.record(oids[1]).unwrap().data;
        archive.remove(oids[1]).unwrap();
        let engine = archive.engine();
        let table = engine.open_table("archive").unwrap();
        let chunks = engine.open_table("chunks").unwrap();
        let number = random.below(9);
        let tree = if number == 0 { chunks.tree(0) } else { table.tree(number) };
        let rows: Vec<_> = engine.snapshot().rows(tree).map(Result::unwrap).collect();
        let Some((key, value)) = rows.get(random.below(rows.len())).cloned() else { continue };
        let (mut new_key, mut new_value) = (key.clone(), value.clone());
        let changed = if random.below(4) == 0 { &mut new_key } else { &mut new_value };
        match random.below(3) {
            0 if !changed.is_empty() => changed.truncate(random.below(changed.len())),
            1 => changed.push(random.next() as u8),
            _ if !changed.is_empty() => {
                let at = random.below(changed.len());
                changed[at] = random.next() as u8;
            }
            _ => {}
        }
        let mut txn = engine.begin();
        txn.delete(tree, key).unwrap();
        txn.put(tree, new_key, new_value).unwrap();
        txn.commit().unwrap();
        let _ = archive.check_references();
        for oid in &oids {
            let _ = archive.stat(Name::Record(*oid));
            let _ = archive.versions(*oid);
            let _ = archive.get(Name::Record(*oid), None, &mut Vec::new());
        }
        let _ = archive.get(Name::Data(data), None, &mut Vec::new());
        let _ = archive.audit(0, &mut |_| Ok(true));
        let _ = archive.scrub(&Scrub { bytes_per_second: None, restart: true, stop: &|| false });
        let _ = archive.collect(Some(0), &|| false);
        let _ = put(&archive, b"another", &[]);
        let _ = archive.remove(oids[2]);
        let _ = archive.query(&Default::default(), &mut |_| Ok(true));
        let _ = archive.collect(Some(0), &|| false);
        let _ = archive.close();
        if let Ok(archive) = place.open() {
            let _ = put(&archive, b"once more", &[]);
        }
    }
}
