//! Files of temporary tables.

use super::*;

fn block(space: &Arc<Space>, seed: u64, bytes: usize) -> Result<Arc<Extent>, Error> {
    let block = space.prepare_for(Lifetime::Private, &content(seed, bytes), Compression::Lz4)?;
    space.write(&block)?;
    Ok(block.extent().clone())
}

#[test]
fn the_first_write_makes_a_file_without_a_name_that_stays_open_and_is_not_synced() {
    let fs = SimulatedFileSystem::new(1);
    let spill = SpillFile::create(&fs, Path::new("/"), 1 << 20).unwrap();
    let files = OpenFiles::new(Arc::new(fs.clone()), 2);
    let (operations, syncs) = (fs.operations(), fs.syncs());
    let spaces: Vec<_> = (1..20).map(|id| Space::temporary(&files, id, &spill)).collect();
    assert_eq!(fs.operations(), operations);
    let extents: Vec<_> =
        spaces.iter().map(|space| block(space, u64::from(space.id()), 9000).unwrap()).collect();
    for (space, extent) in spaces.iter().zip(&extents) {
        assert_eq!(extent.read().unwrap(), content(u64::from(space.id()), 9000));
    }
    assert!(fs.list(Path::new("/")).unwrap().is_empty());
    assert_eq!(fs.syncs(), syncs);
    drop(extents);
    // What nobody has any more is free at once, without a checkpoint.
    for space in &spaces {
        let length = space.file_bytes();
        for seed in 0..10 {
            block(space, seed, 9000).unwrap();
        }
        assert!(space.file_bytes() <= length + 512, "{} of {length}", space.file_bytes());
    }
}

#[test]
fn the_budget_of_spilled_data_pays_for_it_until_it_goes() {
    let fs = SimulatedFileSystem::new(2);
    let spill = SpillFile::create(&fs, Path::new("/"), 100_000).unwrap();
    let files = files(fs);
    let (first, second) = (Space::temporary(&files, 1, &spill), Space::temporary(&files, 2, &spill));
    let kept: Vec<_> = (0..).map_while(|seed| block(&first, seed, 8000).ok()).collect();
    assert!((10..25).contains(&kept.len()), "{}", kept.len());
    assert!(spill.used_bytes() <= 100_000);
    assert!(matches!(block(&second, 1, 80_000), Err(Error::SpillFull { maximum: 100_000, .. })));
    assert!(matches!(second.check_room(80_000), Err(Error::SpillFull { .. })));
    assert!(spill.write(&[1; 50_000]).is_err());
    // Room in the file itself can be had still.
    drop(kept);
    first.check_room(80_000).unwrap();
    block(&first, 7, 8000).unwrap();
    drop(first);
    assert_eq!(spill.used_bytes(), 0);
    block(&second, 1, 80_000).unwrap();
}
