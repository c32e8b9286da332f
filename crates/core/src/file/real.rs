//! The operating system's files, by positional reads and writes.

use std::fs::{DirBuilder, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{DirBuilderExt, FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use super::unbuffered::{Unbuffered, MOST_UNBUFFERED_BYTES};
use super::{Directory, File, FileSystem, OpenMode};
use crate::{Error, Result};

/// Files of the operating system.
#[derive(Debug, Clone, Copy, Default)]
pub struct RealFileSystem;

/// How many descriptors the process may have open (the soft RLIMIT_NOFILE); 1024 if that cannot be found out.
pub fn descriptor_limit() -> u64 {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the pointer is to a local that getrlimit fills.
    match unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit) } {
        0 => limit.rlim_cur,
        _ => 1024,
    }
}

struct RealFile {
    file: Arc<std::fs::File>,
    /// Another description of it, of which the kernel reads nothing ahead; `None` inside: it could not be had.
    apart: Arc<OnceLock<Option<std::fs::File>>>,
    /// And one that leaves the kernel's cache out.
    unbuffered: Arc<OnceLock<Option<Unbuffered>>>,
    path: PathBuf,
}

impl RealFile {
    fn new(file: std::fs::File, path: &Path) -> Arc<RealFile> {
        Arc::new(RealFile {
            file: Arc::new(file),
            apart: Arc::default(),
            unbuffered: Arc::default(),
            path: path.to_owned(),
        })
    }
}

/// Whether this descriptor is among the last quarter of those that the process may have.
fn is_among_last(file: &std::fs::File) -> bool {
    let limit = descriptor_limit();
    u64::try_from(file.as_raw_fd()).is_ok_and(|number| number >= limit - limit / 4)
}

/// Opens what `file` is once more, for reads in no order; `None` if that cannot be, or descriptors are short.
fn described_apart(file: &std::fs::File) -> Option<std::fs::File> {
    let apart = std::fs::File::open(format!("/proc/self/fd/{}", file.as_raw_fd())).ok()?;
    // SAFETY: the descriptor is open for as long as `apart` lives; posix_fadvise touches no memory of ours.
    let advised = unsafe { libc::posix_fadvise(apart.as_raw_fd(), 0, 0, libc::POSIX_FADV_RANDOM) };
    (advised == 0 && !is_among_last(&apart)).then_some(apart)
}

struct RealDirectory {
    dir: std::fs::File,
    path: PathBuf,
}

impl Directory for RealDirectory {
    fn sync(&self) -> Result<()> {
        self.dir.sync_all().map_err(|e| Error::io("sync directory", &self.path, &e))
    }
}

/// A flock, which ends with this object and not with the last descriptor: a process that has been forked, and does not
/// run its program yet, has all that are open.
struct FileLock(std::fs::File);

impl FileLock {
    fn take(path: &Path) -> Result<FileLock> {
        let file = options(OpenMode::Create).open(path).map_err(|e| not_opened("open", path, &e))?;
        loop {
            // SAFETY: the descriptor is open for as long as `file` lives; flock touches no memory of ours.
            if unsafe { libc::flock(file.as_raw_fd(), libc::LOCK_EX | libc::LOCK_NB) } == 0 {
                return Ok(FileLock(file));
            }
            let cause = io::Error::last_os_error();
            match cause.raw_os_error() {
                Some(libc::EINTR) => continue,
                Some(libc::EWOULDBLOCK) => return Err(Error::InUse { path: path.to_owned() }),
                _ => return Err(Error::io("lock", path, &cause)),
            }
        }
    }
}

impl Drop for FileLock {
    fn drop(&mut self) {
        // SAFETY: as in `take`. A failure leaves what closing does.
        unsafe { libc::flock(self.0.as_raw_fd(), libc::LOCK_UN) };
    }
}

fn options(mode: OpenMode) -> OpenOptions {
    let mut options = OpenOptions::new();
    options.read(true).mode(0o600);
    match mode {
        OpenMode::Existing => options.write(true),
        OpenMode::Create => options.write(true).create(true).truncate(false),
        OpenMode::ReadOnly => &mut options,
    };
    options
}

/// What a call says that was to give a descriptor: the kernel may also have no memory for one.
fn not_opened(operation: &'static str, path: &Path, cause: &io::Error) -> Error {
    match cause.raw_os_error() {
        Some(libc::ENOMEM) => Error::NoDescriptor { path: path.to_owned(), cause: cause.to_string() },
        _ => Error::io(operation, path, cause),
    }
}

/// Names that are tried for a file that is to have none, where the file system cannot do without.
const NAMES: usize = 100;

/// A file that had a name nobody else has, or may have linked to something: the next free one behind `path`.
fn created_and_removed(path: &Path) -> io::Result<std::fs::File> {
    let mut name = path.as_os_str().to_owned();
    for _ in 0..NAMES {
        match options(OpenMode::Existing).create_new(true).open(&name) {
            Ok(file) => return std::fs::remove_file(&name).map(|()| file),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => name.push("~"),
            Err(error) => return Err(error),
        }
    }
    Err(io::ErrorKind::AlreadyExists.into())
}

impl FileSystem for RealFileSystem {
    fn open(&self, path: &Path, mode: OpenMode) -> Result<Arc<dyn File>> {
        let file = options(mode).open(path).map_err(|e| not_opened("open", path, &e))?;
        Ok(RealFile::new(file, path))
    }

    fn open_unnamed(&self, path: &Path) -> Result<Arc<dyn File>> {
        let dir = path.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let file = match options(OpenMode::Existing).custom_flags(libc::O_TMPFILE | libc::O_EXCL).open(dir) {
            // What file systems and kernels answer that cannot.
            Err(error)
                if matches!(error.raw_os_error(), Some(libc::EOPNOTSUPP | libc::EISDIR | libc::ENOENT)) =>
            {
                created_and_removed(path)
            }
            other => other,
        };
        let file = file.map_err(|e| not_opened("create", path, &e))?;
        Ok(RealFile::new(file, path))
    }

    fn create_dir(&self, path: &Path) -> Result<()> {
        match DirBuilder::new().mode(0o700).create(path) {
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists && path.is_dir() => Ok(()),
            other => other.map_err(|e| Error::io("create directory", path, &e)),
        }
    }

    fn list(&self, dir: &Path) -> Result<Vec<String>> {
        let failed = |e: io::Error| not_opened("list", dir, &e);
        let mut names = Vec::new();
        for entry in std::fs::read_dir(dir).map_err(failed)? {
            // A name that is not UTF-8 is none of ours.
            if let Ok(name) = entry.map_err(failed)?.file_name().into_string() {
                names.push(name);
            }
        }
        names.sort_unstable();
        Ok(names)
    }

    fn exists(&self, path: &Path) -> Result<bool> {
        path.try_exists().map_err(|e| Error::io("stat", path, &e))
    }

    fn rename(&self, from: &Path, to: &Path) -> Result<()> {
        std::fs::rename(from, to).map_err(|e| Error::io("rename", from, &e))
    }

    fn remove(&self, path: &Path) -> Result<()> {
        std::fs::remove_file(path).map_err(|e| Error::io("remove", path, &e))
    }

    fn open_dir(&self, path: &Path) -> Result<Arc<dyn Directory>> {
        let dir = std::fs::File::open(path).map_err(|e| not_opened("open directory", path, &e))?;
        Ok(Arc::new(RealDirectory { dir, path: path.to_owned() }))
    }

    fn lock_exclusive(&self, path: &Path) -> Result<Box<dyn Send + Sync>> {
        Ok(Box::new(FileLock::take(path)?))
    }
}

/// Reads until `buf` is full or the file ends; the bytes that were read.
fn read_at(file: &std::fs::File, offset: u64, buf: &mut [u8]) -> io::Result<usize> {
    let mut filled = 0;
    while filled < buf.len() {
        match file.read_at(&mut buf[filled..], offset + filled as u64) {
            Ok(0) => break,
            Ok(n) => filled += n,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
    Ok(filled)
}

impl File for RealFile {
    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<usize> {
        read_at(&self.file, offset, buf).map_err(|e| Error::io("read", &self.path, &e))
    }

    fn read_apart_at(&self, offset: u64, buf: &mut [u8]) -> Result<()> {
        let apart = self.apart.get_or_init(|| described_apart(&self.file)).as_ref();
        // Whatever went wrong or is missing there, the first description has to say.
        match apart.map(|apart| read_at(apart, offset, buf)) {
            Some(Ok(found)) if found == buf.len() => Ok(()),
            _ => self.read_exact_at(offset, buf),
        }
    }

    fn read_unbuffered_at(&self, offset: u64, buf: &mut [u8]) -> Result<()> {
        let unbuffered = self
            .unbuffered
            .get_or_init(|| Unbuffered::open(&self.file, |file| !is_among_last(file)))
            .as_ref();
        match unbuffered.filter(|_| buf.len() <= MOST_UNBUFFERED_BYTES).map(|file| file.read_at(offset, buf))
        {
            Some(Ok(found)) if found == buf.len() => Ok(()),
            _ => self.read_apart_at(offset, buf),
        }
    }

    fn write_at(&self, offset: u64, buf: &[u8]) -> Result<()> {
        self.file.write_all_at(buf, offset).map_err(|e| Error::io("write", &self.path, &e))
    }

    fn sync(&self) -> Result<()> {
        self.file.sync_data().map_err(|e| Error::io("sync", &self.path, &e))
    }

    fn len(&self) -> Result<u64> {
        Ok(self.file.metadata().map_err(|e| Error::io("stat", &self.path, &e))?.len())
    }

    fn set_len(&self, bytes: u64) -> Result<()> {
        self.file.set_len(bytes).map_err(|e| Error::io("truncate", &self.path, &e))
    }

    fn punch_hole(&self, offset: u64, bytes: u64) -> Result<bool> {
        debug_assert!(bytes > 0, "a hole of no bytes");
        let failed = |cause: &io::Error| Err(Error::io("punch hole", &self.path, cause));
        let (Ok(offset), Ok(bytes)) = (libc::off_t::try_from(offset), libc::off_t::try_from(bytes)) else {
            return failed(&io::Error::from_raw_os_error(libc::EFBIG));
        };
        let mode = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;
        loop {
            // SAFETY: the descriptor is open for as long as `self` lives; fallocate touches no memory of ours.
            if unsafe { libc::fallocate(self.file.as_raw_fd(), mode, offset, bytes) } == 0 {
                return Ok(true);
            }
            let cause = io::Error::last_os_error();
            match cause.raw_os_error() {
                Some(libc::EINTR) => continue,
                Some(libc::EOPNOTSUPP | libc::ENOSYS) => return Ok(false),
                _ => return failed(&cause),
            }
        }
    }

    fn allocated_bytes(&self) -> Result<u64> {
        // The unit is 512 whatever the block size.
        Ok(self.file.metadata().map_err(|e| Error::io("stat", &self.path, &e))?.blocks() * 512)
    }

    fn path(&self) -> &Path {
        &self.path
    }

    fn is_among_last(&self) -> bool {
        is_among_last(&self.file)
    }

    fn renamed(&self, path: &Path) -> Arc<dyn File> {
        Arc::new(RealFile {
            file: self.file.clone(),
            apart: self.apart.clone(),
            unbuffered: self.unbuffered.clone(),
            path: path.to_owned(),
        })
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    /// A directory that goes away with the test.
    struct TempDir(PathBuf);

    impl TempDir {
        fn new(name: &str) -> TempDir {
            let path = std::env::temp_dir().join(format!("teak-file-{name}-{}", std::process::id()));
            let _ = std::fs::remove_dir_all(&path);
            RealFileSystem.create_dir(&path).unwrap();
            TempDir(path)
        }
    }

    impl Drop for TempDir {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn reads_back_what_was_written_and_is_short_only_at_the_end() {
        let dir = TempDir::new("io");
        let file = RealFileSystem.open(&dir.0.join("a"), OpenMode::Create).unwrap();
        file.write_at(3, b"teak").unwrap();
        file.sync().unwrap();
        let mut buf = [9; 10];
        assert_eq!(file.read_at(2, &mut buf).unwrap(), 5);
        assert_eq!(&buf[..5], b"\0teak");
        assert!(matches!(file.read_exact_at(2, &mut buf), Err(Error::Corrupt { offset: 2, .. })));
        file.set_len(4).unwrap();
        assert_eq!(file.len().unwrap(), 4);
    }

    #[test]
    fn what_is_read_apart_is_what_was_written_also_under_another_name() {
        let dir = TempDir::new("apart");
        let (path, other) = (dir.0.join("a"), dir.0.join("b"));
        let file = RealFileSystem.open(&path, OpenMode::Create).unwrap();
        file.write_at(0, b"teak").unwrap();
        let read = |file: &dyn File, offset| {
            let mut buf = [0; 3];
            file.read_apart_at(offset, &mut buf).map(|()| buf)
        };
        assert_eq!(read(&*file, 1).unwrap(), *b"eak");
        RealFileSystem.rename(&path, &other).unwrap();
        let renamed = file.renamed(&other);
        renamed.write_at(4, b"wood").unwrap();
        assert_eq!(read(&*renamed, 4).unwrap(), *b"woo");
        RealFileSystem.remove(&other).unwrap();
        assert_eq!(read(&*file, 5).unwrap(), *b"ood");
        assert!(matches!(read(&*file, 6), Err(Error::Corrupt { offset: 6, .. })));
        let unnamed = RealFileSystem.open_unnamed(&path).unwrap();
        unnamed.write_at(0, b"none").unwrap();
        assert_eq!(read(&*unnamed, 0).unwrap(), *b"non");
    }

    /// Blocks lie anywhere in a file and end anywhere, the last one with it; what was written is read at once, whether
    /// the kernel has it on the disk or not.
    #[test]
    fn what_is_read_unbuffered_is_what_was_written() {
        let dir = TempDir::new("unbuffered");
        let file = RealFileSystem.open(&dir.0.join("a"), OpenMode::Create).unwrap();
        let mut bytes: Vec<u8> = (0..200_001u32).map(|i| (i * 31 / 7) as u8).collect();
        file.write_at(0, &bytes).unwrap();
        let read = |offset: usize, length: usize| {
            let mut buf = vec![0; length];
            file.read_unbuffered_at(offset as u64, &mut buf).map(|()| buf)
        };
        for (offset, length) in [(0, 1), (1, 511), (511, 2), (512, 512), (4000, 14_321), (0, 200_001)] {
            assert_eq!(read(offset, length).unwrap(), bytes[offset..][..length], "{offset}");
        }
        assert_eq!(read(190_000, 10_001).unwrap(), bytes[190_000..]);
        assert!(matches!(read(190_000, 10_002), Err(Error::Corrupt { offset: 190_000, .. })));
        for round in 1..20 {
            bytes[round * 9000..][..5000].fill(round as u8);
            file.write_at(round as u64 * 9000, &bytes[round * 9000..][..5000]).unwrap();
            assert_eq!(read(round * 9000 - 100, 6000).unwrap(), bytes[round * 9000 - 100..][..6000]);
            if round % 7 == 0 {
                file.sync().unwrap();
            }
        }
    }

    #[test]
    fn a_hole_reads_as_zeros_keeps_the_length_and_takes_nothing() {
        let dir = TempDir::new("hole");
        let file = RealFileSystem.open(&dir.0.join("a"), OpenMode::Create).unwrap();
        file.write_at(0, &[7; 64 << 10]).unwrap();
        file.sync().unwrap();
        let before = file.allocated_bytes().unwrap();
        assert!(file.punch_hole(8 << 10, 32 << 10).unwrap(), "the tests need a file system that has holes");
        assert_eq!(before - file.allocated_bytes().unwrap(), 32 << 10);
        assert_eq!(file.len().unwrap(), 64 << 10);
        let mut bytes = [1; 64 << 10];
        file.read_exact_at(0, &mut bytes).unwrap();
        assert!(bytes
            .iter()
            .enumerate()
            .all(|(i, &b)| b == if (8 << 10..40 << 10).contains(&i) { 0 } else { 7 }));
        assert!(file.punch_hole(u64::MAX, 1).is_err());
    }

    #[test]
    fn files_and_directories_are_private() {
        let dir = TempDir::new("mode");
        let sub = dir.0.join("sub");
        RealFileSystem.create_dir(&sub).unwrap();
        RealFileSystem.create_dir(&sub).unwrap();
        RealFileSystem.open(&sub.join("a"), OpenMode::Create).unwrap();
        assert_eq!(std::fs::metadata(&sub).unwrap().permissions().mode() & 0o777, 0o700);
        assert_eq!(std::fs::metadata(sub.join("a")).unwrap().permissions().mode() & 0o777, 0o600);
    }

    #[test]
    fn a_file_without_a_name_touches_nothing_that_has_its_name() {
        let dir = TempDir::new("unnamed");
        let (victim, path) = (dir.0.join("victim"), dir.0.join("spill"));
        std::fs::write(&victim, b"precious").unwrap();
        std::os::unix::fs::symlink(&victim, &path).unwrap();
        let file = RealFileSystem.open_unnamed(&path).unwrap();
        let other = created_and_removed(&path).unwrap();
        assert_eq!(other.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        file.write_at(0, b"spilled").unwrap();
        let mut found = [0; 7];
        file.read_exact_at(0, &mut found).unwrap();
        assert_eq!((&found, file.path()), (b"spilled", &*path));
        assert_eq!(std::fs::read(&victim).unwrap(), b"precious");
        assert_eq!(RealFileSystem.list(&dir.0).unwrap(), ["spill", "victim"]);
        assert!(RealFileSystem.open_unnamed(&dir.0.join("missing/spill")).is_err());
    }

    #[test]
    fn names_are_listed_renamed_and_removed() {
        let dir = TempDir::new("names");
        for name in ["b", "a"] {
            RealFileSystem.open(&dir.0.join(name), OpenMode::Create).unwrap();
        }
        assert_eq!(RealFileSystem.list(&dir.0).unwrap(), ["a", "b"]);
        RealFileSystem.rename(&dir.0.join("a"), &dir.0.join("c")).unwrap();
        RealFileSystem.remove(&dir.0.join("b")).unwrap();
        RealFileSystem.sync_dir(&dir.0).unwrap();
        assert_eq!(RealFileSystem.list(&dir.0).unwrap(), ["c"]);
        assert!(!RealFileSystem.exists(&dir.0.join("a")).unwrap());
        assert!(RealFileSystem.open(&dir.0.join("a"), OpenMode::Existing).is_err());
    }

    #[test]
    fn a_lock_ends_with_its_holder_also_if_a_forked_process_has_the_descriptor() {
        let dir = TempDir::new("forked-lock");
        let path = dir.0.join("lock");
        let lock = FileLock::take(&path).unwrap();
        let inherited = lock.0.try_clone().unwrap();
        drop(lock);
        FileLock::take(&path).unwrap();
        drop(inherited);
    }

    #[test]
    fn a_lock_has_one_holder() {
        let dir = TempDir::new("lock");
        let path = dir.0.join("lock");
        let held = RealFileSystem.lock_exclusive(&path).unwrap();
        assert!(matches!(RealFileSystem.lock_exclusive(&path), Err(Error::InUse { .. })));
        drop(held);
        RealFileSystem.lock_exclusive(&path).unwrap();
    }
}
