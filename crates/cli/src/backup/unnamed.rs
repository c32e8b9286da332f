//! Files and sockets that have no name: nothing is left of them in the directory of temporary files, whatever ends this
//! program.

use super::{layout, BackupError};
use std::fs::File;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};

/// Lets `make` make something below `parent`, and takes away its name, which is in a directory that only this user
/// reaches.
fn without_name<T>(
    parent: &Path,
    make: impl FnOnce(&Path) -> Result<T, BackupError>,
) -> Result<T, BackupError> {
    let dir = parent.join(format!("teak-backup-{}", super::new_id()?));
    let created = std::fs::DirBuilder::new().mode(0o700).create(&dir);
    created.map_err(BackupError::io("cannot create", &dir))?;
    let made = make(&dir.join("s"));
    // Nobody minds what is left in the directory of temporary files.
    let _ = std::fs::remove_dir_all(&dir);
    made
}

/// A file that ends with its last handle.
pub fn file() -> Result<File, BackupError> {
    without_name(&std::env::temp_dir(), layout::create_file)
}

/// A socket that listens. It is reached through a descriptor of this process, as Linux shows it in /proc: so by this
/// user and root alone.
pub struct Door {
    pub listener: UnixListener,
    /// What its name led to.
    entry: File,
}

impl Door {
    pub fn open() -> Result<Door, BackupError> {
        Door::open_in(&std::env::temp_dir())
    }

    fn open_in(parent: &Path) -> Result<Door, BackupError> {
        let handle = |path: &Path| File::options().read(true).custom_flags(libc::O_PATH).open(path);
        without_name(parent, |path| {
            let open = || {
                let dir = handle(path.parent().unwrap_or(path))?;
                // By the directory's handle: an address has 107 bytes at most, and TMPDIR may be longer.
                let listener = UnixListener::bind(path_of(&dir).join("s"))?;
                Ok(Door { listener, entry: handle(path)? })
            };
            open().map_err(BackupError::io("cannot listen on", path))
        })
    }

    /// Where this process, and others of its user, connect to it.
    pub fn path(&self) -> PathBuf {
        path_of(&self.entry)
    }
}

/// The short path by which Linux shows what is open.
fn path_of(file: &File) -> PathBuf {
    PathBuf::from(format!("/proc/{}/fd/{}", std::process::id(), file.as_raw_fd()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::os::unix::net::UnixStream;

    #[test]
    fn a_door_without_a_name_lets_in_who_has_its_path_however_long_that_of_its_directory_is() {
        let dir =
            std::env::temp_dir().join(format!("teak-door-{}-{}", std::process::id(), "long".repeat(30)));
        std::fs::create_dir_all(&dir).unwrap();
        let door = Door::open_in(&dir).unwrap();
        std::fs::remove_dir(&dir).unwrap();
        let mut guest = UnixStream::connect(door.path()).unwrap();
        let (mut inside, _) = door.listener.accept().unwrap();
        guest.write_all(b"hello").unwrap();
        drop(guest);
        let mut heard = String::new();
        inside.read_to_string(&mut heard).unwrap();
        assert_eq!(heard, "hello");
    }
}
