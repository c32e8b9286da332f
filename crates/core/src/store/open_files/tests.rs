//! Descriptors stay few, none is closed before its sync, and nobody above notices.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering::SeqCst;

use super::super::{Extent, Space};
use super::*;
use crate::file::{Directory, Fault, SimulatedFileSystem};
use crate::Compression;

/// Counts descriptors, and those that were closed with writes that no sync has covered.
#[derive(Default)]
struct Counts {
    open: AtomicUsize,
    most: AtomicUsize,
    closed_unsynced: AtomicUsize,
    opened: Mutex<BTreeMap<PathBuf, usize>>,
}

#[derive(Clone)]
struct Watched {
    fs: SimulatedFileSystem,
    counts: Arc<Counts>,
    /// Beside so many open files others have the rest of the first three quarters.
    room: Arc<AtomicUsize>,
}

struct WatchedFile {
    file: Arc<dyn File>,
    is_among_last: bool,
    counts: Arc<Counts>,
    written: AtomicU64,
    synced: AtomicU64,
}

impl Drop for WatchedFile {
    fn drop(&mut self) {
        self.counts.open.fetch_sub(1, SeqCst);
        if self.written.load(SeqCst) != self.synced.load(SeqCst) {
            self.counts.closed_unsynced.fetch_add(1, SeqCst);
        }
    }
}

impl File for WatchedFile {
    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<usize> {
        self.file.read_at(offset, buf)
    }
    fn write_at(&self, offset: u64, buf: &[u8]) -> Result<()> {
        let result = self.file.write_at(offset, buf);
        self.written.fetch_add(1, SeqCst);
        result
    }
    fn sync(&self) -> Result<()> {
        let written = self.written.load(SeqCst);
        self.file.sync()?;
        self.synced.fetch_max(written, SeqCst);
        Ok(())
    }
    fn len(&self) -> Result<u64> {
        self.file.len()
    }
    fn set_len(&self, bytes: u64) -> Result<()> {
        self.file.set_len(bytes)
    }
    fn punch_hole(&self, offset: u64, bytes: u64) -> Result<bool> {
        self.file.punch_hole(offset, bytes)
    }
    fn allocated_bytes(&self) -> Result<u64> {
        self.file.allocated_bytes()
    }
    fn path(&self) -> &Path {
        self.file.path()
    }
    fn is_among_last(&self) -> bool {
        self.is_among_last
    }
    fn renamed(&self, path: &Path) -> Arc<dyn File> {
        self.file.renamed(path)
    }
}

impl FileSystem for Watched {
    fn open(&self, path: &Path, mode: OpenMode) -> Result<Arc<dyn File>> {
        let file = self.fs.open(path, mode)?;
        let open = self.counts.open.fetch_add(1, SeqCst) + 1;
        self.counts.most.fetch_max(open, SeqCst);
        *self.counts.opened.lock().entry(path.to_path_buf()).or_default() += 1;
        let (written, synced) = (AtomicU64::new(0), AtomicU64::new(0));
        let is_among_last = open > self.room.load(SeqCst);
        Ok(Arc::new(WatchedFile { file, is_among_last, counts: self.counts.clone(), written, synced }))
    }
    fn open_unnamed(&self, path: &Path) -> Result<Arc<dyn File>> {
        self.fs.open_unnamed(path)
    }
    fn create_dir(&self, path: &Path) -> Result<()> {
        self.fs.create_dir(path)
    }
    fn list(&self, dir: &Path) -> Result<Vec<String>> {
        self.fs.list(dir)
    }
    fn exists(&self, path: &Path) -> Result<bool> {
        self.fs.exists(path)
    }
    fn rename(&self, from: &Path, to: &Path) -> Result<()> {
        self.fs.rename(from, to)
    }
    fn remove(&self, path: &Path) -> Result<()> {
        self.fs.remove(path)
    }
    fn open_dir(&self, dir: &Path) -> Result<Arc<dyn Directory>> {
        self.fs.open_dir(dir)
    }
    fn lock_exclusive(&self, path: &Path) -> Result<Box<dyn Send + Sync>> {
        self.fs.lock_exclusive(path)
    }
}

fn path(id: u32) -> PathBuf {
    PathBuf::from(format!("/{id}"))
}

fn content(id: u32, version: u32) -> Vec<u8> {
    (0..200u32).flat_map(|i| (id * 7919 + version * 31 + i).to_le_bytes()).collect()
}

fn store(space: &Arc<Space>, raw: &[u8]) -> Arc<Extent> {
    let block = space.prepare(raw, Compression::None).unwrap();
    space.write(&block).unwrap();
    block.extent().clone()
}

type Spaces = Vec<(Arc<Space>, Arc<Extent>)>;

/// Spaces `0..number`, synced, and the extent of `content(id, 0)` in each.
fn spaces(number: u32, maximum: usize) -> (Watched, Arc<OpenFiles>, Spaces) {
    let room = Arc::new(AtomicUsize::new(usize::MAX));
    let fs = Watched { fs: SimulatedFileSystem::new(1), counts: Arc::default(), room };
    let files = OpenFiles::new(Arc::new(fs.clone()), maximum);
    let make = |id| {
        let space = Space::create(&files, &path(id), id).unwrap();
        let extent = store(&space, &content(id, 0));
        space.sync().unwrap();
        (space, extent)
    };
    let spaces = (0..number).map(make).collect();
    (fs, files, spaces)
}

fn opened(fs: &Watched, id: u32) -> usize {
    fs.counts.opened.lock()[&path(id)]
}

#[test]
fn three_hundred_spaces_share_eight_descriptors() {
    const THREADS: u32 = 4;
    let (fs, files, spaces) = spaces(300, 8);
    assert_eq!(fs.counts.most.load(SeqCst), 9, "one is opened before another is closed");
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let spaces = &spaces;
            scope.spawn(move || {
                for i in 0..3000 {
                    let id = (thread * 97 + i * 31) % 300;
                    let (space, extent) = &spaces[id as usize];
                    assert_eq!(extent.read().unwrap(), content(id, 0));
                    if i % 3 == 0 {
                        // Two threads at a time write to the same spaces; some of it waits for a later sync.
                        let id = (thread / 2 * 50 + i) % 100;
                        let (space, _) = &spaces[id as usize];
                        let written = store(space, &content(id, i));
                        assert_eq!(written.read().unwrap(), content(id, i));
                    }
                    if i % 5 == 0 {
                        space.sync().unwrap();
                    }
                }
            });
        }
    });
    let most = fs.counts.most.load(SeqCst);
    assert!(most <= 8 + 2 * THREADS as usize, "{most} descriptors");
    spaces.iter().for_each(|(space, _)| space.sync().unwrap());
    assert_eq!(files.unsynced.load(SeqCst), 0);
    spaces.iter().enumerate().for_each(|(id, (_, extent))| {
        assert_eq!(extent.read().unwrap(), content(id as u32, 0));
    });
    assert!(fs.counts.open.load(SeqCst) <= 8);
    drop(spaces);
    assert_eq!(fs.counts.open.load(SeqCst), 0);
    assert_eq!(fs.counts.closed_unsynced.load(SeqCst), 0);
}

#[test]
fn when_others_take_most_descriptors_fewer_files_are_open() {
    let (fs, _files, spaces) = spaces(100, 64);
    let open = fs.counts.open.load(SeqCst);
    assert!((60..=64).contains(&open), "{open}");
    let read_all = || spaces.iter().for_each(|(_, extent)| drop(extent.read().unwrap()));
    fs.room.store(20, SeqCst);
    read_all();
    let open = fs.counts.open.load(SeqCst);
    assert!((4..=20).contains(&open), "{open}");
    fs.room.store(0, SeqCst);
    read_all();
    let open = fs.counts.open.load(SeqCst);
    assert!((2..=4).contains(&open), "{open}");
    fs.room.store(usize::MAX, SeqCst);
    read_all();
    let open = fs.counts.open.load(SeqCst);
    assert!((60..=64).contains(&open), "{open}");
}

#[test]
fn without_descriptors_idle_files_are_closed_and_none_with_unsynced_writes() {
    let (fs, files, spaces) = spaces(20, 20);
    store(&spaces[0].0, &content(0, 1));
    store(&spaces[1].0, &content(1, 1));
    while files.close_idle() {}
    assert_eq!(fs.counts.open.load(SeqCst), 2);
    assert_eq!(fs.counts.closed_unsynced.load(SeqCst), 0);
}

#[test]
fn the_least_recently_used_goes() {
    let (fs, _files, spaces) = spaces(9, 8);
    let read = |id: u32| assert_eq!(spaces[id as usize].1.read().unwrap(), content(id, 0));
    // 0 was closed when 8 came. Reading it closes 2, as 1 was used since.
    read(1);
    read(0);
    (0..9).filter(|&id| id != 2).for_each(read);
    let opened: Vec<usize> = (0..9).map(|id| opened(&fs, id)).collect();
    assert_eq!(opened, [2, 1, 1, 1, 1, 1, 1, 1, 1]);
}

#[test]
fn a_file_stays_open_from_a_write_to_its_sync() {
    let (fs, _files, spaces) = spaces(20, 4);
    let before = opened(&fs, 3);
    let written = store(&spaces[3].0, &content(3, 1));
    assert_eq!(opened(&fs, 3), before + 1);
    let syncs = fs.fs.syncs();
    for (id, (_, extent)) in spaces.iter().enumerate() {
        assert_eq!(extent.read().unwrap(), content(id as u32, 0));
    }
    assert_eq!(written.read().unwrap(), content(3, 1));
    assert_eq!(opened(&fs, 3), before + 1);
    assert_eq!(fs.fs.syncs(), syncs, "readers sync nothing");
    spaces[3].0.sync().unwrap();
    spaces[10..].iter().for_each(|(_, extent)| drop(extent.read().unwrap()));
    // It is closed and was synced, so this does nothing.
    let syncs = fs.fs.syncs();
    spaces[3].0.sync().unwrap();
    assert_eq!((fs.fs.syncs(), opened(&fs, 3)), (syncs, before + 1));
    let at = *written.address();
    let files = OpenFiles::new(Arc::new(fs.fs.crash()), 4);
    let space = Space::open(&files, &path(3), 3, None).unwrap();
    assert_eq!(space.adopt(at).read().unwrap(), content(3, 1));
}

#[test]
fn a_sync_that_another_writer_caused_and_that_failed_is_told_to_the_owner() {
    let (fs, _files, spaces) = spaces(20, 4);
    store(&spaces[0].0, &content(0, 1));
    store(&spaces[1].0, &content(1, 1));
    // The write comes first, then the sync of the oldest.
    fs.fs.fail_after(1, Fault::Eio);
    let third = store(&spaces[2].0, &content(2, 1));
    spaces.iter().for_each(|(_, extent)| drop(extent.read().unwrap()));
    for _ in 0..2 {
        assert!(matches!(spaces[0].0.sync(), Err(Error::Io { operation: "sync", .. })));
    }
    spaces[1].0.sync().unwrap();
    spaces[2].0.sync().unwrap();
    assert_eq!(third.read().unwrap(), content(2, 1));
    assert_eq!(fs.counts.closed_unsynced.load(SeqCst), 0);
}

#[test]
fn unsynced_files_cannot_use_up_the_bound() {
    let (fs, files, spaces) = spaces(300, 8);
    let before = fs.counts.most.load(SeqCst);
    spaces.iter().enumerate().for_each(|(id, (space, _))| drop(store(space, &content(id as u32, 1))));
    assert_eq!(fs.counts.most.load(SeqCst), before);
    assert!(files.unsynced.load(SeqCst) <= 4);
    assert_eq!(fs.counts.closed_unsynced.load(SeqCst), 0);
}

#[test]
fn a_removed_file_stays_readable_and_writable() {
    let (fs, _files, spaces) = spaces(20, 4);
    let (kept, extent) = &spaces[3];
    kept.keep_open().unwrap();
    kept.keep_open().unwrap();
    fs.remove(&path(3)).unwrap();
    fs.remove(&path(4)).unwrap();
    for round in 0..3 {
        spaces[5..].iter().for_each(|(_, extent)| drop(extent.read().unwrap()));
        assert_eq!(extent.read().unwrap(), content(3, 0));
        assert_eq!(store(kept, &content(3, round)).read().unwrap(), content(3, round));
        kept.sync().unwrap();
        kept.trim().unwrap();
    }
    assert!(spaces[4].1.read().is_err(), "it was not told");
    assert!(spaces[4].0.keep_open().is_err());
}

#[test]
fn files_that_cannot_be_closed_do_not_keep_others_from_being_used() {
    let (fs, _files, spaces) = spaces(5, 1);
    fs.fs.fail_after(1, Fault::Eio);
    store(&spaces[0].0, &content(0, 1));
    for (id, (space, extent)) in spaces.iter().enumerate().skip(1) {
        assert_eq!(extent.read().unwrap(), content(id as u32, 0));
        store(space, &content(id as u32, 1));
        space.sync().unwrap();
        space.trim().unwrap();
    }
    spaces[1].0.keep_open().unwrap();
    assert!(spaces[0].0.sync().is_err());
    assert_eq!(fs.counts.closed_unsynced.load(SeqCst), 0);
}
