//! A file system that does with fewer descriptors when the process has none left.
//!
//! The limit of open files is the process's, and others take theirs without asking: sessions, the server's own tables,
//! other engines. So whatever is opened may find none left. Then files that are open only for the next use of them are
//! closed, and it is tried again; an error ([`Error::NoDescriptor`]) means that nothing could be closed, and that
//! nothing has been done.

use std::path::Path;
use std::sync::{Arc, OnceLock, Weak};

use super::{Directory, File, FileSystem, OpenMode};
use crate::{Error, Result};

/// Times that files are closed for one opening: others may take the descriptors first.
const ATTEMPTS: usize = 4;

/// Who has files open that it could open again.
pub trait IdleFiles: Send + Sync {
    /// Closes some of them, without waiting for I/O; `false` if there are none. May be called from any call into the
    /// file system that opens something.
    fn close_idle(&self) -> bool;
}

/// See the module.
pub struct SparingFileSystem {
    inner: Arc<dyn FileSystem>,
    idle: OnceLock<Weak<dyn IdleFiles>>,
}

impl SparingFileSystem {
    /// The files of `inner`.
    pub fn new(inner: Arc<dyn FileSystem>) -> SparingFileSystem {
        SparingFileSystem { inner, idle: OnceLock::new() }
    }

    /// Whom to ask for descriptors; the first stays.
    pub fn set_idle(&self, idle: Weak<dyn IdleFiles>) {
        let _ = self.idle.set(idle);
    }

    fn attempt<T>(&self, open: impl Fn() -> Result<T>) -> Result<T> {
        for _ in 0..ATTEMPTS {
            match open() {
                Err(Error::NoDescriptor { .. }) if self.close_idle() => {}
                result => return result,
            }
        }
        open()
    }

    fn close_idle(&self) -> bool {
        self.idle.get().and_then(Weak::upgrade).is_some_and(|idle| idle.close_idle())
    }
}

impl FileSystem for SparingFileSystem {
    fn open(&self, path: &Path, mode: OpenMode) -> Result<Arc<dyn File>> {
        self.attempt(|| self.inner.open(path, mode))
    }

    fn open_unnamed(&self, path: &Path) -> Result<Arc<dyn File>> {
        self.attempt(|| self.inner.open_unnamed(path))
    }

    fn create_dir(&self, path: &Path) -> Result<()> {
        self.inner.create_dir(path)
    }

    fn list(&self, dir: &Path) -> Result<Vec<String>> {
        self.attempt(|| self.inner.list(dir))
    }

    fn exists(&self, path: &Path) -> Result<bool> {
        self.inner.exists(path)
    }

    fn rename(&self, from: &Path, to: &Path) -> Result<()> {
        self.inner.rename(from, to)
    }

    fn remove(&self, path: &Path) -> Result<()> {
        self.inner.remove(path)
    }

    fn open_dir(&self, dir: &Path) -> Result<Arc<dyn Directory>> {
        self.attempt(|| self.inner.open_dir(dir))
    }

    fn lock_exclusive(&self, path: &Path) -> Result<Box<dyn Send + Sync>> {
        self.attempt(|| self.inner.lock_exclusive(path))
    }

    fn is_read_only(&self) -> bool {
        self.inner.is_read_only()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

    use super::super::{Fault, SimulatedFileSystem};
    use super::*;

    /// So many files that can be closed; each gives one descriptor.
    struct Idle(SimulatedFileSystem, AtomicUsize);

    impl IdleFiles for Idle {
        fn close_idle(&self) -> bool {
            let closed = self.1.fetch_update(SeqCst, SeqCst, |left| left.checked_sub(1)).is_ok();
            if closed && self.1.load(SeqCst) == 0 {
                self.0.heal();
            }
            closed
        }
    }

    fn without_descriptors(idle: usize) -> (SparingFileSystem, Arc<Idle>) {
        let fs = SimulatedFileSystem::new(1);
        let idle = Arc::new(Idle(fs.clone(), AtomicUsize::new(idle)));
        let sparing = SparingFileSystem::new(Arc::new(fs.clone()));
        sparing.set_idle(Arc::<Idle>::downgrade(&idle));
        fs.fail_from(0, Fault::Emfile);
        (sparing, idle)
    }

    #[test]
    fn idle_files_are_closed_until_there_is_a_descriptor() {
        let (sparing, idle) = without_descriptors(3);
        sparing.open(Path::new("/a"), OpenMode::Create).unwrap();
        assert_eq!(idle.1.load(SeqCst), 0);
    }

    #[test]
    fn without_idle_files_nothing_is_done() {
        let (sparing, _idle) = without_descriptors(0);
        let path = Path::new("/a");
        for failed in [
            sparing.open(path, OpenMode::Create).map(drop),
            sparing.open_unnamed(path).map(drop),
            sparing.sync_dir(Path::new("/")),
            sparing.list(Path::new("/")).map(drop),
            sparing.lock_exclusive(path).map(drop),
        ] {
            assert!(matches!(failed, Err(Error::NoDescriptor { .. })), "{failed:?}");
        }
        assert!(!sparing.exists(path).unwrap());
    }
}
