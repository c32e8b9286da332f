//! Tests of spaces: what a file must still hold after any history of writes, checkpoints and crashes.

mod holes;
mod temporary;

use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;

use proptest::prelude::*;

use super::space::HEADER_BYTES;
use super::*;
use crate::file::{Fault, FileSystem, RealFileSystem, SimulatedFileSystem};
use crate::{Compression, Error};

/// A directory that goes with the test.
pub(super) struct TestDir(pub PathBuf);

impl TestDir {
    pub fn new() -> TestDir {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let number = NUMBER.fetch_add(1, Ordering::SeqCst);
        let path = std::env::temp_dir().join(format!("teak-store-test-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        TestDir(path)
    }
}

impl Drop for TestDir {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Inverts one byte of a file.
pub(super) fn flip(path: &Path, at: u64) {
    let file = std::fs::OpenOptions::new().read(true).write(true).open(path).unwrap();
    let mut byte = [0];
    file.read_exact_at(&mut byte, at).unwrap();
    file.write_all_at(&[!byte[0]], at).unwrap();
}

const FS: RealFileSystem = RealFileSystem;
/// Those of one space: the bound does not matter.
fn files(fs: impl FileSystem + 'static) -> Arc<OpenFiles> {
    OpenFiles::new(Arc::new(fs), 8)
}

const COMPRESSIONS: [Compression; 3] = [Compression::None, Compression::Lz4, Compression::Zstd];

/// Half noise, half text, so that compression has something to do.
fn content(seed: u64, bytes: usize) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    (0..bytes)
        .map(|i| {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            if i % 1024 < 512 {
                (state >> 56) as u8
            } else {
                b'a' + (i % 7) as u8
            }
        })
        .collect()
}

fn stored(space: &Arc<Space>, lifetime: Lifetime, raw: &[u8], compression: Compression) -> Arc<Extent> {
    let block = space.prepare_for(lifetime, raw, compression).unwrap();
    space.write(&block).unwrap();
    block.extent().clone()
}

#[test]
fn blocks_of_all_sizes_and_compressions_come_back() {
    let dir = TestDir::new();
    let space = Space::create(&files(FS), &dir.0.join("s"), 7).unwrap();
    for compression in COMPRESSIONS {
        for bytes in [0, 1, 511, 512, 513, 5000, 32 << 10, 300_000] {
            for raw in [content(1, bytes), vec![b'x'; bytes]] {
                let extent = stored(&space, Lifetime::Kept, &raw, compression);
                let at = *extent.address();
                assert_eq!(extent.read().unwrap(), raw);
                assert_eq!(space.adopt(at).read().unwrap(), raw);
                assert!(
                    at.occupied_bytes(Unit::Fine) <= Unit::Fine.occupied(bytes as u64, Compression::None)
                );
                if at.compression != Compression::None {
                    assert!(
                        at.occupied_bytes(Unit::Fine) < Unit::Fine.occupied(bytes as u64, Compression::None),
                        "else it is stored raw"
                    );
                }
            }
        }
    }
}

#[test]
fn each_flipped_byte_of_a_block_is_detected_and_located() {
    let dir = TestDir::new();
    let path = dir.0.join("s");
    let space = Space::create(&files(FS), &path, 7).unwrap();
    for compression in COMPRESSIONS {
        let raw = content(3, 3000);
        let extent = stored(&space, Lifetime::Kept, &raw, compression);
        assert_eq!(extent.address().compression, compression);
        for at in 0..u64::from(extent.address().stored_bytes) {
            flip(&path, extent.address().offset + at);
            match extent.read() {
                Err(Error::Corrupt { path: found, offset, .. }) => {
                    assert_eq!((found, offset), (path.clone(), extent.address().offset));
                }
                other => panic!("byte {at}: {other:?}"),
            }
            flip(&path, extent.address().offset + at);
        }
        assert_eq!(extent.read().unwrap(), raw);
    }
}

#[test]
fn each_flipped_byte_of_a_header_is_detected() {
    let dir = TestDir::new();
    let path = dir.0.join("s");
    drop(Space::create(&files(FS), &path, 7).unwrap());
    for at in 0..HEADER_BYTES {
        flip(&path, at);
        assert!(matches!(Space::open(&files(FS), &path, 7, None), Err(Error::Corrupt { .. })), "byte {at}");
        flip(&path, at);
    }
    assert!(matches!(Space::open(&files(FS), &path, 8, None), Err(Error::Corrupt { .. })), "another id");
    Space::open(&files(FS), &path, 7, None).unwrap();
}

#[test]
fn a_damaged_map_stops_writes_and_not_reads() {
    let dir = TestDir::new();
    let path = dir.0.join("s");
    let space = Space::create(&files(FS), &path, 7).unwrap();
    let at = *stored(&space, Lifetime::Kept, b"data", Compression::None).address();
    let map = space.write_map(1).unwrap();
    for byte in 0..u64::from(map.stored_bytes) {
        flip(&path, map.offset + byte);
        let space = Space::open(&files(FS), &path, 7, Some(map)).unwrap();
        assert!(matches!(space.prepare(b"more", Compression::None), Err(Error::Corrupt { .. })));
        assert_eq!(space.adopt(at).read().unwrap(), b"data");
        assert_eq!(space.free_bytes(), 0);
        flip(&path, map.offset + byte);
    }
    let no_map = Space::open(&files(FS), &path, 7, Some(at)).unwrap();
    assert!(matches!(no_map.write_map(2), Err(Error::Corrupt { .. })), "a block that is no map");
}

#[test]
fn impossible_addresses_are_errors_that_allocate_nothing() {
    let dir = TestDir::new();
    let space = Space::create(&files(FS), &dir.0.join("s"), 7).unwrap();
    let good = *stored(&space, Lifetime::Kept, &content(1, 4000), Compression::Zstd).address();
    for bad in [
        BlockAddress { offset: 1 << 61, ..good },
        BlockAddress { offset: u64::MAX - 511, ..good },
        BlockAddress { offset: 0, ..good },
        BlockAddress { stored_bytes: u32::MAX, ..good },
        BlockAddress { raw_bytes: u32::MAX, ..good },
        BlockAddress { raw_bytes: u32::MAX, compression: Compression::Lz4, ..good },
        BlockAddress { raw_bytes: u32::MAX, compression: Compression::None, ..good },
        BlockAddress { raw_bytes: 1, ..good },
    ] {
        assert!(matches!(space.adopt(bad).read(), Err(Error::Corrupt { .. })), "{bad:?}");
    }
}

#[test]
fn an_unwritten_block_gives_its_space_back() {
    let dir = TestDir::new();
    let space = Space::create(&files(FS), &dir.0.join("s"), 7).unwrap();
    let first = space.prepare(&content(1, 4000), Compression::None).unwrap();
    let offset = first.address().offset;
    drop(first);
    assert_eq!(space.prepare(b"x", Compression::None).unwrap().address().offset, offset);
    assert_eq!(offset, HEADER_BYTES);
}

#[test]
fn the_free_tail_goes_back_to_the_file_system() {
    let dir = TestDir::new();
    let space = Space::create(&files(FS), &dir.0.join("s"), 7).unwrap();
    let low = stored(&space, Lifetime::Kept, &content(1, 100_000), Compression::None);
    let high = stored(&space, Lifetime::Kept, &content(2, 900_000), Compression::None);
    space.begin(1);
    space.write_map(1).unwrap();
    space.durable(1);
    high.supersede(2);
    space.write_map(2).unwrap();
    space.durable(2);
    space.trim().unwrap();
    assert!(space.file_bytes() > 900_000, "a reader holds it");
    drop(high);
    // The map of 2 lies behind it; that of 3 takes lower space.
    space.write_map(3).unwrap();
    space.durable(3);
    space.trim().unwrap();
    assert!(space.file_bytes() < 110_000, "{}", space.file_bytes());
    assert_eq!(low.read().unwrap(), content(1, 100_000));
}

/// A block as the model knows it.
#[derive(Clone)]
struct Block {
    at: BlockAddress,
    raw: Vec<u8>,
}

/// What memory refers to; `extent` is `None` while it only knows the address.
struct Live {
    block: Block,
    extent: Option<Arc<Extent>>,
}

/// An engine reduced to its extents: rows (`live`), pages that only checkpoints write (`pages`), readers of old views,
/// bulk builds; and what the disk would hold after a crash now.
struct World {
    path: PathBuf,
    space: Arc<Space>,
    live: Vec<Live>,
    pages: Vec<Block>,
    readers: Vec<(Arc<Extent>, Block)>,
    private: Vec<(Arc<Extent>, Block)>,
    durable: u64,
    image: Vec<Block>,
    image_pages: Vec<Block>,
    map: Option<BlockAddress>,
    seed: u64,
    /// After a failed checkpoint; else it abandons it.
    resumes: bool,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Outcome {
    Durable,
    Failed,
    Crashed,
}

#[derive(Debug, Clone)]
enum Step {
    Write(usize),
    Replace { which: usize, bytes: usize, reader: bool },
    Evict(usize),
    Adopt(usize),
    ReaderEnds(usize),
    Bulk(usize),
    BulkFails(usize),
    BulkPublishes(usize),
    Checkpoint { outcome: Outcome, pages: usize, bytes: usize, meanwhile: usize },
    Crash,
    Trim,
    Punch(usize),
}

fn step() -> impl Strategy<Value = Step> {
    let outcome = prop_oneof![
        4 => Just(Outcome::Durable), 2 => Just(Outcome::Failed), 1 => Just(Outcome::Crashed)
    ];
    prop_oneof![
        4 => (0usize..6000).prop_map(Step::Write),
        6 => (any::<usize>(), 0usize..6000, any::<bool>())
            .prop_map(|(which, bytes, reader)| Step::Replace { which, bytes, reader }),
        2 => any::<usize>().prop_map(Step::Evict),
        2 => any::<usize>().prop_map(Step::Adopt),
        2 => any::<usize>().prop_map(Step::ReaderEnds),
        2 => (0usize..6000).prop_map(Step::Bulk),
        1 => any::<usize>().prop_map(Step::BulkFails),
        1 => any::<usize>().prop_map(Step::BulkPublishes),
        5 => (outcome, 0usize..4, 0usize..3000, 0usize..4)
            .prop_map(|(outcome, pages, bytes, meanwhile)| Step::Checkpoint { outcome, pages, bytes, meanwhile }),
        1 => Just(Step::Crash),
        2 => Just(Step::Trim),
        4 => (0usize..9).prop_map(Step::Punch),
    ]
}

impl World {
    fn new(dir: &TestDir, resumes: bool) -> World {
        let path = dir.0.join("s");
        World {
            space: Space::create(&files(FS), &path, 7).unwrap(),
            path,
            live: Vec::new(),
            pages: Vec::new(),
            readers: Vec::new(),
            private: Vec::new(),
            durable: 0,
            image: Vec::new(),
            image_pages: Vec::new(),
            map: None,
            seed: 0,
            resumes,
        }
    }

    fn store(&mut self, lifetime: Lifetime, bytes: usize) -> (Arc<Extent>, Block) {
        self.seed += 1;
        let raw = content(self.seed, bytes);
        let extent = stored(&self.space, lifetime, &raw, COMPRESSIONS[self.seed as usize % 3]);
        let block = Block { at: *extent.address(), raw };
        (extent, block)
    }

    fn replace(&mut self, which: usize, bytes: usize, reader: bool, generation: u64) {
        if self.live.is_empty() {
            return;
        }
        let i = which % self.live.len();
        let (extent, block) = self.store(Lifetime::Kept, bytes);
        let old = std::mem::replace(&mut self.live[i], Live { block, extent: Some(extent) });
        let held = old.extent.unwrap_or_else(|| self.space.adopt(old.block.at));
        held.supersede(generation);
        if reader {
            self.readers.push((held, old.block));
        }
    }

    fn checkpoint(&mut self, outcome: Outcome, pages: usize, bytes: usize, meanwhile: usize) {
        let generation = self.durable + 1;
        self.space.begin(generation);
        let old_pages = std::mem::take(&mut self.pages);
        for page in &old_pages {
            self.space.adopt(page.at).supersede(generation);
        }
        for _ in 0..pages {
            let (_, page) = self.store(Lifetime::Checkpoint(generation), bytes);
            self.pages.push(page);
        }
        let image: Vec<Block> = self.live.iter().map(|l| l.block.clone()).chain(self.pages.clone()).collect();
        let map = self.space.write_map(generation).unwrap();
        for i in 0..meanwhile {
            self.replace(i, bytes, i % 2 == 0, generation + 1);
            self.check();
        }
        match outcome {
            Outcome::Durable => {
                (self.image, self.map, self.durable) = (image, Some(map), generation);
                self.image_pages = self.pages.clone();
                self.space.durable(generation);
            }
            Outcome::Failed if self.resumes => (),
            Outcome::Failed => {
                self.space.abandon(generation);
                self.pages = self.image_pages.clone();
            }
            Outcome::Crashed => self.crash(),
        }
    }

    fn crash(&mut self) {
        (self.readers, self.private, self.live) = Default::default();
        (self.pages, self.image_pages) = Default::default();
        self.space = Space::open(&files(FS), &self.path, 7, self.map).unwrap();
        self.live = self.image.iter().map(|block| Live { block: block.clone(), extent: None }).collect();
        self.check();
        self.nothing_leaked();
    }

    /// Everything that may still be asked for is there.
    fn check(&self) {
        let live = self.live.iter().map(|l| &l.block);
        let held = self.readers.iter().chain(&self.private).map(|r| &r.1);
        for block in live.chain(held).chain(&self.pages).chain(&self.image) {
            assert!(self.space.read(&block.at).unwrap() == block.raw, "{:?}", block.at);
        }
    }

    /// Each byte of the file is the header's, the map's, free, or of a block in the image.
    fn nothing_leaked(&self) {
        let free = self.space.free_bytes();
        let used: u64 = self.image.iter().map(|b| b.at.occupied_bytes(Unit::Fine)).sum();
        let map = self.map.map_or(0, |map| map.occupied_bytes(Unit::Fine));
        let end = self.space.end().unwrap();
        assert_eq!(HEADER_BYTES + free + used + map, end);
    }

    /// What is free takes nothing from the disk, apart from blocks that hold something else too.
    fn everything_free_is_given_back(&self) {
        // As after each checkpoint: a crash may have left a tail that the books know nothing of.
        self.space.trim().unwrap();
        while self.space.punch_holes(0, 100, &|| false).unwrap() > 0 {}
        self.check();
        self.space.sync().unwrap();
        let (taken, free) = self.space.disk_usage();
        let allocated = std::fs::metadata(&self.path).unwrap().blocks() * 512;
        let in_use = self.image.len() as u64 + 2;
        assert_eq!(taken, allocated);
        assert!(free <= 2 * 4096 * in_use, "{free} of {taken} bytes are free, with {in_use} extents");
        self.nothing_leaked();
    }

    fn run(&mut self, step: Step) {
        let next = self.durable + 1;
        match step {
            Step::Write(bytes) => {
                let (extent, block) = self.store(Lifetime::Kept, bytes);
                self.live.push(Live { block, extent: Some(extent) });
            }
            Step::Replace { which, bytes, reader } => self.replace(which, bytes, reader, next),
            Step::Evict(i) if !self.live.is_empty() => {
                let i = i % self.live.len();
                self.live[i].extent = None;
            }
            Step::Adopt(i) if !self.live.is_empty() => {
                let i = i % self.live.len();
                self.live[i].extent = Some(self.space.adopt(self.live[i].block.at));
            }
            Step::ReaderEnds(i) if !self.readers.is_empty() => {
                self.readers.swap_remove(i % self.readers.len());
            }
            Step::Bulk(bytes) => {
                let built = self.store(Lifetime::Private, bytes);
                self.private.push(built);
            }
            Step::BulkFails(i) if !self.private.is_empty() => {
                self.private.swap_remove(i % self.private.len());
            }
            Step::BulkPublishes(i) if !self.private.is_empty() => {
                let (extent, block) = self.private.swap_remove(i % self.private.len());
                extent.publish();
                self.live.push(Live { block, extent: Some(extent) });
            }
            Step::Checkpoint { outcome, pages, bytes, meanwhile } => {
                self.checkpoint(outcome, pages, bytes, meanwhile);
            }
            Step::Crash => self.crash(),
            Step::Trim => self.space.trim().unwrap(),
            Step::Punch(maximum) => {
                assert!(self.space.punch_holes(0, maximum, &|| false).unwrap() <= maximum)
            }
            _ => (),
        }
        self.check();
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]
    #[test]
    fn no_history_of_checkpoints_and_crashes_loses_a_block_or_leaks(
        steps in proptest::collection::vec(step(), 1..80), resumes: bool,
    ) {
        let dir = TestDir::new();
        let mut world = World::new(&dir, resumes);
        for step in steps {
            world.run(step);
        }
        // At rest nothing but the image is in use, in memory and after a crash.
        world.readers.clear();
        world.private.clear();
        world.checkpoint(Outcome::Durable, 1, 100, 0);
        world.checkpoint(Outcome::Durable, 1, 100, 0);
        world.nothing_leaked();
        world.everything_free_is_given_back();
        world.crash();
        world.everything_free_is_given_back();
    }
}

#[test]
fn threads_that_write_and_drop_share_a_space() {
    let dir = TestDir::new();
    let space = Space::create(&files(FS), &dir.0.join("s"), 7).unwrap();
    std::thread::scope(|scope| {
        for thread in 0..4u64 {
            let space = &space;
            scope.spawn(move || {
                let mut kept = Vec::new();
                for i in 0..300 {
                    let raw = content(thread * 1000 + i, (i * 37 % 5000) as usize);
                    let extent = stored(space, Lifetime::Private, &raw, COMPRESSIONS[i as usize % 3]);
                    kept.push((extent, raw));
                    if kept.len() > 20 {
                        let (extent, raw) = kept.swap_remove((i % 20) as usize);
                        assert_eq!(extent.read().unwrap(), raw);
                    }
                    if i % 50 == 0 {
                        space.trim().unwrap();
                    }
                }
                kept.iter().for_each(|(extent, raw)| assert_eq!(&extent.read().unwrap(), raw));
            });
        }
    });
    space.trim().unwrap();
    assert_eq!(space.file_bytes(), HEADER_BYTES);
}

/// Rewrites some of twenty blocks per checkpoint until the power goes, and notes what each checkpoint's image was to
/// hold.
fn checkpoints_until_power_cut(fs: &SimulatedFileSystem, images: &mut Vec<Vec<Block>>) -> crate::Result<()> {
    let space = Space::create(&files(fs.clone()), Path::new("/e/s"), 0)?;
    let mut blocks: Vec<Arc<Extent>> = Vec::new();
    for generation in 1..=30u64 {
        space.begin(generation);
        for i in 0..20 {
            if generation > 1 && (generation * 7 + i * 3) % 5 > 1 {
                continue;
            }
            let raw = content(generation * 100 + i, (generation * i * 91 % 4000) as usize);
            let block = space.prepare(&raw, COMPRESSIONS[i as usize % 3])?;
            space.write(&block)?;
            match blocks.get_mut(i as usize) {
                Some(old) => std::mem::replace(old, block.extent().clone()).supersede(generation),
                None => blocks.push(block.extent().clone()),
            }
        }
        let image = blocks.iter().map(|e| Ok(Block { at: *e.address(), raw: e.read()?.to_vec() }));
        images.push(image.collect::<crate::Result<_>>()?);
        let map = space.write_map(generation)?;
        space.sync()?;
        let superblock = Superblock {
            version: Superblock::VERSION,
            engine_id: [1; 16],
            checkpoint: generation,
            timestamp: 0,
            replay_from: 0,
            next_tree: 0,
            next_txn: 0,
            next_space: 1,
            directory: None,
            system_map: Some(map),
            features: Features::default(),
            read_from: Release::READS_OURS,
            clean: false,
        };
        superblock.write_next(fs, Path::new("/e/teak.super"))?;
        space.durable(generation);
        space.trim()?;
        space.punch_holes(0, 5, &|| false)?;
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]
    #[test]
    fn after_a_power_cut_the_newest_superblock_leads_to_a_whole_image(seed: u64, operations in 0u64..700) {
        let fs = SimulatedFileSystem::new(seed);
        fs.create_dir(Path::new("/e")).unwrap();
        fs.sync_dir(Path::new("/")).unwrap();
        fs.fail_after(operations, Fault::PowerCut);
        let mut images = Vec::new();
        let finished = checkpoints_until_power_cut(&fs, &mut images).is_ok();
        let fs = fs.crash();
        let path = Path::new("/e/teak.super");
        let Some(newest) = Superblock::read_newest(&fs, path).unwrap() else {
            prop_assert!(images.len() <= 1 && !finished, "a durable checkpoint is lost");
            return Ok(());
        };
        let durable = newest.checkpoint as usize;
        prop_assert!(durable == images.len() || durable + 1 == images.len(), "{durable} of {}", images.len());
        let space = Space::open(&files(fs.clone()), Path::new("/e/s"), 0, newest.system_map).unwrap();
        for block in &images[durable - 1] {
            prop_assert!(space.adopt(block.at).read().unwrap() == block.raw);
        }
        let used: u64 = images[durable - 1].iter().map(|b| b.at.occupied_bytes(Unit::Fine)).sum();
        let map = newest.system_map.map_or(0, |map| map.occupied_bytes(Unit::Fine));
        prop_assert_eq!(space.end().unwrap(), HEADER_BYTES + used + map + space.free_bytes());
    }
}

#[test]
fn a_full_disk_is_an_error_and_the_space_stays_usable() {
    let fs = SimulatedFileSystem::new(1);
    fs.create_dir(Path::new("/e")).unwrap();
    let space = Space::create(&files(fs.clone()), Path::new("/e/s"), 0).unwrap();
    let kept = stored(&space, Lifetime::Kept, b"kept", Compression::None);
    let end = space.end().unwrap();
    fs.fail_from(0, Fault::Enospc);
    let block = space.prepare(&content(1, 2000), Compression::None).unwrap();
    assert!(matches!(space.write(&block), Err(Error::DiskFull { .. })));
    assert!(matches!(space.write_map(1), Err(Error::DiskFull { .. })));
    drop(block);
    fs.heal();
    assert_eq!(kept.read().unwrap(), b"kept");
    space.write_map(1).unwrap();
    space.durable(1);
    assert_eq!(space.end().unwrap() - space.free_bytes(), end + 512);
}
