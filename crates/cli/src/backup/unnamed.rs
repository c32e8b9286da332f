//! Files and sockets that have no name: nothing is left of them in the directory of temporary files, whatever ends this
//! program.

use super::{layout, BackupError};
use std::fs::File;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};

/// Lets `make` make something, and takes away its name, which is in a directory that only this user reaches.
fn without_name<T>(make: impl FnOnce(&Path) -> Result<T, BackupError>) -> Result<T, BackupError> {
    let dir = std::env::temp_dir().join(format!("teak-backup-{}", super::new_id()?));
    let created = std::fs::DirBuilder::new().mode(0o700).create(&dir);
    created.map_err(BackupError::io("cannot create", &dir))?;
    let made = make(&dir.join("s"));
    // Nobody minds what is left in the directory of temporary files.
    let _ = std::fs::remove_dir_all(&dir);
    made
}

/// A file that ends with its last handle.
pub fn file() -> Result<File, BackupError> {
    without_name(layout::create_file)
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
        without_name(|path| {
            let opened = UnixListener::bind(path).and_then(|listener| {
                let entry = File::options().read(true).custom_flags(libc::O_PATH).open(path)?;
                Ok(Door { listener, entry })
            });
            opened.map_err(BackupError::io("cannot listen on", path))
        })
    }

    /// Where this process, and others of its user, connect to it.
    pub fn path(&self) -> PathBuf {
        PathBuf::from(format!("/proc/{}/fd/{}", std::process::id(), self.entry.as_raw_fd()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::os::unix::net::UnixStream;

    #[test]
    fn a_door_without_a_name_lets_in_who_has_its_path() {
        let door = Door::open().unwrap();
        let mut guest = UnixStream::connect(door.path()).unwrap();
        let (mut inside, _) = door.listener.accept().unwrap();
        guest.write_all(b"hello").unwrap();
        drop(guest);
        let mut heard = String::new();
        inside.read_to_string(&mut heard).unwrap();
        assert_eq!(heard, "hello");
    }
}
