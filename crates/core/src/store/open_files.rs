//! A bound on the descriptors that table files take: a file is opened when it is used, and the least recently used are
//! closed.
//!
//! One [`OpenFiles`] per engine knows every open [`TableFile`]. Rules:
//!
//! * The kernel reports a failed writeback to the descriptions that were open when it failed. A file with writes that
//!   no sync has covered is therefore not closed. So that these cannot use up the bound, a writer syncs the oldest of
//!   them when they are more than half of it. A failed sync is remembered, whoever called it: each later
//!   [`TableFile::sync`] fails too, as the kernel tells it only once.
//! * A file that is about to lose its name is first told to [`TableFile::keep_open`]. It no longer counts for the
//!   bound. One that never has a name ([`TableFile::unnamed`]) does not either.
//! * The bound is what is left to table files when the others of the process take little. When they take more, which
//!   the number of a new descriptor tells, or all ([`IdleFiles`]), half of the files are closed, again and again if
//!   need be.
//! * Reads of an open file take no lock: an atomic load, and a store of the stamp of last use if some file was opened
//!   since. Who uses a file while it is closed keeps its descriptor to the end of the call; there may be as many more
//!   as there are such calls.
//!
//! Mutexes, in order: `syncing` > the registry's `open` > `state`. Only `syncing` is held over I/O.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};

use crate::counts::Count;
use crate::sync::ArcSwapOption;
use crate::sync::Mutex;

use crate::file::{File, FileSystem, IdleFiles, OpenMode};
use crate::{Error, Result};

/// What the kernel may read beyond what it is asked for, and keep of that.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum KernelAhead {
    /// What it guesses is wanted next.
    Usual,
    /// Nothing; and it need not keep what it has read, either: see [`OpenFiles::read_unbuffered`].
    Nothing,
}

/// So many files are kept open beside others of the process that take most descriptors: with less nothing could be
/// done.
const FEW: usize = 4;

/// The open table files of one engine.
pub struct OpenFiles {
    fs: Arc<dyn FileSystem>,
    maximum: usize,
    /// Grows with each file that is opened; the unit of the stamps.
    clock: AtomicU64,
    /// Look-ups leave the kernel's cache out.
    unbuffered: AtomicBool,
    /// Files with writes that are not synced.
    unsynced: AtomicUsize,
    /// Each open file once, but those that are kept open; some that are gone.
    open: Mutex<Vec<Weak<TableFile>>>,
}

impl OpenFiles {
    /// Opens files of `fs`, about `maximum` at a time.
    pub fn new(fs: Arc<dyn FileSystem>, maximum: usize) -> Arc<OpenFiles> {
        Arc::new(OpenFiles {
            fs,
            maximum: maximum.max(1),
            clock: AtomicU64::new(0),
            unbuffered: AtomicBool::new(false),
            unsynced: AtomicUsize::new(0),
            open: Mutex::default(),
        })
    }

    /// Whether reads of single blocks leave the kernel's cache of files out, from now on.
    pub fn read_unbuffered(&self, unbuffered: bool) {
        self.unbuffered.store(unbuffered, Ordering::Relaxed); // Relaxed: a setting, as below
    }

    /// What [`OpenFiles::read_unbuffered`] was told.
    pub fn reads_unbuffered(&self) -> bool {
        self.unbuffered.load(Ordering::Relaxed) // Relaxed: see above
    }

    /// Where the files are.
    pub(super) fn fs(&self) -> &dyn FileSystem {
        &*self.fs
    }

    /// How many are closed, or synced, at a time beyond what is necessary: a look at all of them should be rare.
    fn slack(&self) -> usize {
        self.maximum / 16
    }

    fn enter(&self, file: &Arc<TableFile>) {
        // Relaxed, here and for all stamps: nothing is published through them.
        file.used.store(self.clock.fetch_add(1, Ordering::Relaxed) + 1, Ordering::Relaxed);
        let mut closed = Vec::new();
        let mut open = self.open.lock();
        if open.len() == open.capacity() {
            open.retain(|file| file.strong_count() > 0);
        }
        open.push(Arc::downgrade(file));
        let is_last = file.open.load().as_ref().is_some_and(|file| file.is_among_last());
        if open.len() <= self.maximum && !is_last {
            return;
        }
        close_oldest(&mut open, &mut closed, |files| match files > self.maximum {
            true => files - self.maximum + self.slack(),
            false => 0,
        });
        if is_last && open.len() > FEW {
            close_oldest(&mut open, &mut closed, |files| files / 2);
        }
        // The descriptors go after the mutex: closing may take its time.
        drop(open);
    }

    /// Syncs the oldest files with writes until there are not too many. What fails is for the next sync by the owner of
    /// the file to tell.
    fn limit_unsynced(&self) {
        // Relaxed: a count near enough. Again and again, since another writer may have chosen the same file.
        while self.unsynced.load(Ordering::Relaxed) > self.maximum / 2 {
            let files: Vec<_> = self.open.lock().iter().filter_map(Weak::upgrade).collect();
            let written = by_age(files.into_iter().filter(|file| file.state.lock().can_be_synced()));
            if written.is_empty() {
                return;
            }
            for file in written.iter().take(1 + self.slack()) {
                // A file that others are writing to, or whose sync failed, is not chosen again: this ends.
                let _ = file.sync();
            }
        }
    }
}

impl IdleFiles for OpenFiles {
    /// Half of them: others of the process need descriptors, too, and one at a time would be little help.
    fn close_idle(&self) -> bool {
        let mut closed = Vec::new();
        close_oldest(&mut self.open.lock(), &mut closed, |files| files.div_ceil(2));
        !closed.is_empty()
    }
}

/// Takes the descriptors of the least recently used files to `closed`, as many as `number` says of the number of files,
/// as far as they can be closed.
fn close_oldest(
    open: &mut Vec<Weak<TableFile>>,
    closed: &mut Vec<Arc<Arc<dyn File>>>,
    number: impl FnOnce(usize) -> usize,
) {
    let files = open.drain(..).filter_map(|file| file.upgrade()).filter(|file| !file.state.lock().kept);
    let files = by_age(files);
    let mut left = number(files.len());
    for file in &files {
        match (left > 0).then(|| file.close()).flatten() {
            Some(descriptor) => {
                closed.push(descriptor);
                left -= 1;
            }
            None => open.push(Arc::downgrade(file)),
        }
    }
}

/// The least recently used first. The stamps move meanwhile, so each is read once.
fn by_age(files: impl Iterator<Item = Arc<TableFile>>) -> Vec<Arc<TableFile>> {
    let mut files: Vec<_> = files.collect();
    files.sort_by_cached_key(|file| file.used.load(Ordering::Relaxed)); // Relaxed: a stamp
    files
}

/// What a descriptor may be closed for. Changes of `open` are made under its mutex.
#[derive(Default)]
struct State {
    /// Writes under way.
    writing: usize,
    /// Writes that ever began.
    begun: u64,
    /// All of these are durable.
    synced: u64,
    /// The first failure of a sync.
    failed: Option<Error>,
    kept: bool,
}

impl State {
    fn is_synced(&self) -> bool {
        self.begun == self.synced
    }

    fn can_be_synced(&self) -> bool {
        self.writing == 0 && !self.is_synced() && self.failed.is_none()
    }
}

/// A file that has a descriptor when it needs one. All methods may be called from any thread.
pub(super) struct TableFile {
    files: Arc<OpenFiles>,
    path: PathBuf,
    open: ArcSwapOption<Arc<dyn File>>,
    /// The registry's clock at the last use.
    used: AtomicU64,
    state: Mutex<State>,
    /// Held over a sync: two at a time would share one report of a failure.
    syncing: Mutex<()>,
    /// It has no name: once it is open it stays so, and nothing of it is ever synced.
    unnamed: bool,
}

impl TableFile {
    /// Takes over `file`, just opened, of which all is synced.
    pub fn new(files: &Arc<OpenFiles>, path: &Path, file: Arc<dyn File>) -> Arc<TableFile> {
        let file = Arc::new(TableFile::of(files, path, ArcSwapOption::from_pointee(file)));
        files.enter(&file);
        file
    }

    /// Of a file that is not there: whatever needs its descriptor fails.
    pub fn without_file(files: &Arc<OpenFiles>, path: &Path) -> Arc<TableFile> {
        Arc::new(TableFile::of(files, path, ArcSwapOption::empty()))
    }

    /// Of one that the first write makes, without a name, in the directory of `path`, and that goes with this object.
    /// It counts neither for the bound nor among those with writes to be synced.
    pub fn unnamed(files: &Arc<OpenFiles>, path: &Path) -> Arc<TableFile> {
        let mut file = TableFile::of(files, path, ArcSwapOption::empty());
        file.unnamed = true;
        Arc::new(file)
    }

    fn of(files: &Arc<OpenFiles>, path: &Path, open: ArcSwapOption<Arc<dyn File>>) -> TableFile {
        TableFile {
            files: files.clone(),
            path: path.to_path_buf(),
            open,
            used: AtomicU64::new(0),
            state: Mutex::default(),
            syncing: Mutex::new(()),
            unnamed: false,
        }
    }

    /// See [`File::path`].
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// See [`File::read_exact_at`], [`File::read_apart_at`] and [`File::read_unbuffered_at`].
    pub fn read_exact_at(self: &Arc<Self>, offset: u64, buf: &mut [u8], ahead: KernelAhead) -> Result<()> {
        let read = |file: &dyn File, buf| match ahead {
            KernelAhead::Usual => file.read_exact_at(offset, buf),
            KernelAhead::Nothing if self.files.reads_unbuffered() => file.read_unbuffered_at(offset, buf),
            KernelAhead::Nothing => file.read_apart_at(offset, buf),
        };
        self.touch();
        if let Some(file) = &*self.open.load() {
            return read(&***file, buf);
        }
        read(&**self.descriptor()?, buf)
    }

    /// See [`File::write_at`].
    pub fn write_at(self: &Arc<Self>, offset: u64, buf: &[u8]) -> Result<()> {
        self.touch();
        let file = self.hold(|state| {
            state.writing += 1;
            state.begun += u64::from(!self.unnamed);
        })?;
        let result = file.write_at(offset, buf);
        self.state.lock().writing -= 1;
        self.files.limit_unsynced();
        result
    }

    /// See [`File::sync`]. Without I/O if the file is closed: then there is nothing to sync.
    pub fn sync(&self) -> Result<()> {
        debug_assert!(!self.unnamed, "a sync of what goes with the process");
        let _syncing = self.syncing.lock();
        let (file, covered) = {
            let state = self.state.lock();
            if let Some(error) = &state.failed {
                return Err(error.clone());
            }
            let Some(file) = self.open.load_full() else { return Ok(()) };
            (file, (state.writing == 0).then_some(state.begun))
        };
        let result = file.sync();
        Count::FileSyncs.add(1);
        let mut state = self.state.lock();
        match &result {
            Ok(()) => {
                let was_synced = state.is_synced();
                state.synced = covered.unwrap_or(state.synced);
                if !was_synced && state.is_synced() {
                    self.files.unsynced.fetch_sub(1, Ordering::Relaxed); // Relaxed: a count
                }
            }
            Err(error) => state.failed = Some(error.clone()),
        }
        result
    }

    /// See [`File::len`]; `None` if the file is closed.
    pub fn len_if_open(&self) -> Option<u64> {
        self.open.load().as_ref().and_then(|file| file.len().ok())
    }

    /// Cuts the file if it is longer. No sync need follow: a length that was not cut is no loss.
    pub fn cut(self: &Arc<Self>, bytes: u64) -> Result<()> {
        let file = self.descriptor()?;
        match bytes < file.len()? {
            true => file.set_len(bytes),
            false => Ok(()),
        }
    }

    /// See [`File::allocated_bytes`]; `None` if the file is closed.
    pub fn allocated_if_open(&self) -> Option<u64> {
        self.open.load().as_ref().and_then(|file| file.allocated_bytes().ok())
    }

    /// See [`File::punch_hole`]. No sync need follow: what was not given back is no loss.
    pub fn punch_hole(self: &Arc<Self>, offset: u64, bytes: u64) -> Result<bool> {
        self.descriptor()?.punch_hole(offset, bytes)
    }

    /// The file is about to lose its name: it stays open as long as this object lives.
    pub fn keep_open(self: &Arc<Self>) -> Result<()> {
        self.hold(|state| state.kept = true).map(drop)
    }

    fn touch(&self) {
        // Relaxed: stamps. The line is written only when it changes, so that readers share it.
        let now = self.files.clock.load(Ordering::Relaxed);
        if self.used.load(Ordering::Relaxed) != now {
            self.used.store(now, Ordering::Relaxed); // Relaxed: a stamp
        }
    }

    /// The open file; opens it if it is closed.
    fn descriptor(self: &Arc<Self>) -> Result<Arc<Arc<dyn File>>> {
        self.hold(|_| ())
    }

    /// The open file, and a note why it must stay so. Both in one step: a file that was only opened may be closed at
    /// once, if it is the only one that can be.
    fn hold(self: &Arc<Self>, note: impl Fn(&mut State)) -> Result<Arc<Arc<dyn File>>> {
        if let Some(file) = self.note_if_open(&mut self.state.lock(), &note) {
            return Ok(file);
        }
        let file = Arc::new(match self.unnamed {
            true => self.files.fs.open_unnamed(&self.path)?,
            false => self.files.fs.open(&self.path, OpenMode::Existing)?,
        });
        {
            let mut state = self.state.lock();
            // Somebody else may have been faster; there must be one description only, since writes and syncs go
            // together.
            if let Some(other) = self.note_if_open(&mut state, &note) {
                return Ok(other);
            }
            self.open.store(Some(file.clone()));
            self.note_if_open(&mut state, &note);
        }
        if !self.unnamed {
            self.files.enter(self);
        }
        Ok(file)
    }

    fn note_if_open(&self, state: &mut State, note: impl Fn(&mut State)) -> Option<Arc<Arc<dyn File>>> {
        let file = self.open.load_full()?;
        let was_synced = state.is_synced();
        note(state);
        if was_synced && !state.is_synced() {
            self.files.unsynced.fetch_add(1, Ordering::Relaxed); // Relaxed: a count
        }
        Some(file)
    }

    /// Closes the file if nothing stands against it; the descriptor goes with the result.
    fn close(&self) -> Option<Arc<Arc<dyn File>>> {
        let state = self.state.lock();
        let idle = state.writing == 0 && state.is_synced() && !state.kept;
        idle.then(|| self.open.swap(None)).flatten()
    }
}

impl Drop for TableFile {
    fn drop(&mut self) {
        if !self.state.get_mut().is_synced() {
            self.files.unsynced.fetch_sub(1, Ordering::Relaxed); // Relaxed: a count
        }
    }
}

#[cfg(test)]
mod tests;
