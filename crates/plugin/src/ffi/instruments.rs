//! What the server's performance_schema hears of the engine's threads and files.
//!
//! It lists what it was told of: each thread, and each file with its reads, writes and syncs. If it is off, or
//! cannot list files, nothing is in the way of them: the engine has the operating system's.

use std::collections::HashMap;
use std::ffi::CString;
use std::os::raw::{c_char, c_int, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};

use teak_core::file::{Directory, File, FileSystem, OpenMode};
use teak_core::server::{watch_threads, ThreadWatch};
use teak_core::Result;

/// Rows, entries of indexes, large values.
pub const TEAK_FILE_TABLE: u32 = 0;
/// Segments of the log.
pub const TEAK_FILE_LOG: u32 = 1;
/// Without a name: spilled changes, sorts, temporary tables.
pub const TEAK_FILE_TEMPORARY: u32 = 2;
/// Superblocks, and whatever is small.
pub const TEAK_FILE_OTHER: u32 = 3;

/// What happens to a file; the numbers are those of the server's PSI_file_operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
enum Operation {
    Open = 2,
    Close = 4,
    Read = 6,
    Write = 7,
    Size = 13,
    Delete = 14,
    Sync = 16,
}

/// What the server notes while an operation lasts.
#[repr(C)]
pub struct RawFileWait {
    /// Room for a PSI_file_locker_state.
    pub state: [u64; 16],
}

/// What is to happen to a file.
#[repr(C)]
#[allow(missing_docs)]
pub struct RawFileEvent {
    /// TEAK_FILE_...
    pub kind: u32,
    /// A PSI_file_operation.
    pub operation: u32,
    /// Zero-terminated: of what is opened or removed, otherwise NULL.
    pub name: *const c_char,
    /// What an opening gave, otherwise NULL.
    pub file: *mut c_void,
    /// To be read or written.
    pub bytes: usize,
}

/// See `file_begins` of [`Instruments`].
pub type FileBeginsFunction =
    Option<unsafe extern "C" fn(wait: *mut RawFileWait, event: *const RawFileEvent) -> *mut c_void>;
/// See `file_ends` of [`Instruments`].
pub type FileEndsFunction =
    Option<unsafe extern "C" fn(*mut c_void, event: *const RawFileEvent, bytes: usize, c_int) -> *mut c_void>;

/// Functions of the server that it is told by, from any thread, whatever latches that holds: none calls into Teak.
#[derive(Debug, Clone, Copy, Default)]
#[repr(C)]
#[allow(missing_docs)]
pub struct Instruments {
    /// The calling thread is the engine's, and begins. May be NULL.
    pub thread_begins: Option<unsafe extern "C" fn(name: *const c_char, len: usize)>,
    /// And ends. May be NULL.
    pub thread_ends: Option<unsafe extern "C" fn()>,
    /// Something is to happen to a file: NULL if nobody counts it, otherwise what `file_ends` wants. NULL: files are
    /// not listed.
    pub file_begins: FileBeginsFunction,
    /// It has happened, to so many bytes, or failed; of an opening, what stands for the file from now on, or NULL.
    pub file_ends: FileEndsFunction,
}

static TOLD: OnceLock<Instruments> = OnceLock::new();

impl Instruments {
    /// Has the server told of threads from now on, and of the files of what this returns. The functions stay for as
    /// long as the library is in memory.
    pub fn watch(self, files: Arc<dyn FileSystem>) -> Arc<dyn FileSystem> {
        let told = TOLD.get_or_init(|| self);
        watch_threads(ThreadWatch { begins: thread_begins, ends: thread_ends });
        match (told.file_begins, told.file_ends) {
            (Some(_), Some(_)) => Arc::new(ListedFiles { inner: files, names: Arc::default() }),
            _ => files,
        }
    }

    /// Does `work`, as `event`.
    fn tell<T>(
        event: &RawFileEvent,
        bytes: impl Fn(&T) -> usize,
        work: impl FnOnce() -> Result<T>,
    ) -> (Result<T>, Opened) {
        let mut wait = RawFileWait { state: [0; 16] };
        let (begins, ends) = TOLD.get().map_or((None, None), |told| (told.file_begins, told.file_ends));
        // SAFETY: the shim promised a function for any thread; both live until `file_ends` was called.
        let locker = begins.map_or(std::ptr::null_mut(), |begins| unsafe { begins(&mut wait, event) });
        let result = work();
        let done = result.as_ref().map_or(0, &bytes);
        let failed = c_int::from(result.is_err());
        let opened = match ends {
            // SAFETY: the locker is that of this event, on the same thread.
            Some(ends) if !locker.is_null() => unsafe { ends(locker, event, done, failed) },
            _ => std::ptr::null_mut(),
        };
        (result, Opened(opened.expose_provenance()))
    }
}

fn thread_begins(name: &str) {
    if let Some(begins) = TOLD.get().and_then(|told| told.thread_begins) {
        // SAFETY: the shim promised a function for any thread that is the engine's.
        unsafe { begins(name.as_ptr().cast(), name.len()) }
    }
}

fn thread_ends() {
    if let Some(ends) = TOLD.get().and_then(|told| told.thread_ends) {
        // SAFETY: likewise; the thread has begun.
        unsafe { ends() }
    }
}

/// What stands for an open file with the server; 0: nothing, its operations are not counted.
#[derive(Debug, Clone, Copy)]
struct Opened(usize);

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn text(path: &Path) -> CString {
    CString::new(path.as_os_str().as_bytes()).unwrap_or_default()
}

/// By the names that the engine gives.
fn kind(path: &Path) -> u32 {
    let is_in_log = path.parent().and_then(Path::file_name).is_some_and(|dir| dir == "log");
    match path.extension() {
        _ if is_in_log => TEAK_FILE_LOG,
        Some(extension) if extension == "teak" => TEAK_FILE_TABLE,
        _ => TEAK_FILE_OTHER,
    }
}

fn event(kind: u32, operation: Operation, name: Option<&CString>) -> RawFileEvent {
    RawFileEvent {
        kind,
        operation: operation as u32,
        name: name.map_or(std::ptr::null(), |name| name.as_ptr()),
        file: std::ptr::null_mut(),
        bytes: 0,
    }
}

/// Tells of something that happens to a name.
fn named<T>(
    kind: u32,
    operation: Operation,
    path: &Path,
    work: impl FnOnce() -> Result<T>,
) -> (Result<T>, Opened) {
    Instruments::tell(&event(kind, operation, Some(&text(path))), |_| 0, work)
}

/// A name that files are open under. The server forgets a removed one when the last of them is closed: before, it
/// would forget what they are counted in.
struct Name {
    kind: u32,
    path: PathBuf,
    is_removed: AtomicBool,
    names: Weak<Names>,
}

type Names = Mutex<HashMap<PathBuf, Weak<Name>>>;

impl Drop for Name {
    fn drop(&mut self) {
        if let Some(names) = self.names.upgrade() {
            let mut names = lock(&names);
            if names.get(&self.path).is_some_and(|name| name.strong_count() == 0) {
                names.remove(&self.path);
            }
        }
        // Relaxed: the end of the last `Arc` is ordered after all that was done with others.
        if self.is_removed.load(Ordering::Relaxed) {
            drop(named(self.kind, Operation::Delete, &self.path, || Ok(())));
        }
    }
}

/// What an opening of `path` gave: counted under its name from now on.
fn listed(
    names: &Arc<Names>,
    file: Arc<dyn File>,
    path: &Path,
    kind: u32,
    opened: Opened,
    is_removed: bool,
) -> Arc<dyn File> {
    if opened.0 == 0 {
        return file;
    }
    let mut all = lock(names);
    let name = all.get(path).and_then(Weak::upgrade).unwrap_or_else(|| {
        let name = Arc::new(Name {
            kind,
            path: path.to_owned(),
            is_removed: AtomicBool::new(false),
            names: Arc::downgrade(names),
        });
        all.insert(path.to_owned(), Arc::downgrade(&name));
        name
    });
    name.is_removed.store(is_removed, Ordering::Relaxed); // Relaxed: see `Name`
    Arc::new(ListedFile { inner: file, handle: Handle { opened, name } })
}

/// Files of which the server is told.
struct ListedFiles {
    inner: Arc<dyn FileSystem>,
    names: Arc<Names>,
}

impl ListedFiles {
    /// Nothing has this name any more.
    fn forget(&self, path: &Path) {
        let open = lock(&self.names).get(path).and_then(Weak::upgrade);
        match open {
            Some(name) => name.is_removed.store(true, Ordering::Relaxed), // Relaxed: see `Name`
            None => drop(named(kind(path), Operation::Delete, path, || Ok(()))),
        }
    }
}

impl FileSystem for ListedFiles {
    fn open(&self, path: &Path, mode: OpenMode) -> Result<Arc<dyn File>> {
        let kind = kind(path);
        let (file, opened) = named(kind, Operation::Open, path, || self.inner.open(path, mode));
        Ok(listed(&self.names, file?, path, kind, opened, false))
    }

    fn open_unnamed(&self, path: &Path) -> Result<Arc<dyn File>> {
        let open = || self.inner.open_unnamed(path);
        let (file, opened) = named(TEAK_FILE_TEMPORARY, Operation::Open, path, open);
        Ok(listed(&self.names, file?, path, TEAK_FILE_TEMPORARY, opened, true))
    }

    fn create_dir(&self, path: &Path) -> Result<()> {
        self.inner.create_dir(path)
    }

    fn list(&self, dir: &Path) -> Result<Vec<String>> {
        self.inner.list(dir)
    }

    fn exists(&self, path: &Path) -> Result<bool> {
        self.inner.exists(path)
    }

    /// What is open counts under the old name until somebody takes it under the new one ([`File::renamed`]).
    fn rename(&self, from: &Path, to: &Path) -> Result<()> {
        self.inner.rename(from, to)?;
        self.forget(from);
        Ok(())
    }

    fn remove(&self, path: &Path) -> Result<()> {
        self.inner.remove(path)?;
        self.forget(path);
        Ok(())
    }

    fn open_dir(&self, dir: &Path) -> Result<Arc<dyn Directory>> {
        self.inner.open_dir(dir)
    }

    fn lock_exclusive(&self, path: &Path) -> Result<Box<dyn Send + Sync>> {
        self.inner.lock_exclusive(path)
    }

    fn is_read_only(&self) -> bool {
        self.inner.is_read_only()
    }
}

/// An opening, until it is closed.
struct Handle {
    opened: Opened,
    name: Arc<Name>,
}

impl Handle {
    fn tell<T>(
        &self,
        operation: Operation,
        bytes: usize,
        done: impl Fn(&T) -> usize,
        work: impl FnOnce() -> Result<T>,
    ) -> Result<T> {
        let mut event = event(self.name.kind, operation, None);
        event.file = std::ptr::with_exposed_provenance_mut(self.opened.0);
        event.bytes = bytes;
        Instruments::tell(&event, done, work).0
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        // It cannot fail: nothing is done.
        let _ = self.tell(Operation::Close, 0, |()| 0, || Ok(()));
    }
}

struct ListedFile {
    inner: Arc<dyn File>,
    handle: Handle,
}

impl ListedFile {
    fn read(&self, bytes: usize, work: impl FnOnce() -> Result<()>) -> Result<()> {
        self.handle.tell(Operation::Read, bytes, |()| bytes, work)
    }
}

impl File for ListedFile {
    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<usize> {
        self.handle.tell(Operation::Read, buf.len(), |read| *read, || self.inner.read_at(offset, buf))
    }

    fn read_apart_at(&self, offset: u64, buf: &mut [u8]) -> Result<()> {
        self.read(buf.len(), || self.inner.read_apart_at(offset, buf))
    }

    fn read_unbuffered_at(&self, offset: u64, buf: &mut [u8]) -> Result<()> {
        self.read(buf.len(), || self.inner.read_unbuffered_at(offset, buf))
    }

    fn write_at(&self, offset: u64, buf: &[u8]) -> Result<()> {
        let write = || self.inner.write_at(offset, buf);
        self.handle.tell(Operation::Write, buf.len(), |()| buf.len(), write)
    }

    fn sync(&self) -> Result<()> {
        self.handle.tell(Operation::Sync, 0, |()| 0, || self.inner.sync())
    }

    fn len(&self) -> Result<u64> {
        self.inner.len()
    }

    fn set_len(&self, bytes: u64) -> Result<()> {
        self.handle.tell(Operation::Size, 0, |()| 0, || self.inner.set_len(bytes))
    }

    fn punch_hole(&self, offset: u64, bytes: u64) -> Result<bool> {
        self.handle.tell(Operation::Size, 0, |_| 0, || self.inner.punch_hole(offset, bytes))
    }

    fn allocated_bytes(&self) -> Result<u64> {
        self.inner.allocated_bytes()
    }

    fn path(&self) -> &Path {
        self.inner.path()
    }

    fn is_among_last(&self) -> bool {
        self.inner.is_among_last()
    }

    fn renamed(&self, path: &Path) -> Arc<dyn File> {
        let (inner, name) = (self.inner.renamed(path), &self.handle.name);
        let Some(names) = name.names.upgrade() else { return inner };
        let (_, opened) = named(name.kind, Operation::Open, path, || Ok(()));
        listed(&names, inner, path, name.kind, opened, false)
    }
}
