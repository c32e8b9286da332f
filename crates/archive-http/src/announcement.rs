//! A file in the directory of an archive that says where its server is, locked for as long as the server lives: so who
//! finds the archive in use can be told, and one that a killed server has left says nothing.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Error, Read, Write};
use std::net::SocketAddr;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

const NAME: &str = "http-address";
/// An address is shorter.
const MOST_BYTES: u64 = 100;

/// It goes with this.
pub(crate) struct Announcement {
    path: PathBuf,
    _locked: File,
}

impl Announcement {
    /// Of whoever has the archive open.
    pub(crate) fn new(archive: &Path, address: SocketAddr) -> Result<Announcement, Error> {
        let path = archive.join(NAME);
        let mut file = OpenOptions::new().write(true).create(true).truncate(false).mode(0o640).open(&path)?;
        file.try_lock()?;
        file.set_len(0)?;
        writeln!(file, "http://{address}")?;
        Ok(Announcement { path, _locked: file })
    }
}

impl Drop for Announcement {
    fn drop(&mut self) {
        // One that is left says nothing.
        let _ = std::fs::remove_file(&self.path);
    }
}

/// Where the server is that has the archive in this directory open, if there is one.
pub fn server_of(archive: &Path) -> Option<String> {
    let file = File::open(archive.join(NAME)).ok()?;
    match file.try_lock_shared() {
        Err(TryLockError::WouldBlock) => {}
        _ => return None,
    }
    let mut address = String::new();
    file.take(MOST_BYTES).read_to_string(&mut address).ok()?;
    Some(address.trim_end().to_string()).filter(|address| !address.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_is_found_as_long_as_it_lives() {
        let dir = std::env::temp_dir().join(format!("teak-announcement-{}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        assert_eq!(server_of(&dir), None);
        let announcement = Announcement::new(&dir, "127.0.0.1:8080".parse().unwrap()).unwrap();
        assert_eq!(server_of(&dir).as_deref(), Some("http://127.0.0.1:8080"));
        assert!(Announcement::new(&dir, "127.0.0.1:8081".parse().unwrap()).is_err());
        drop(announcement);
        assert_eq!((server_of(&dir), dir.join(NAME).exists()), (None, false));
        // As a kill leaves it.
        std::fs::write(dir.join(NAME), "http://127.0.0.1:8080\n").unwrap();
        assert_eq!(server_of(&dir), None);
        std::fs::remove_dir_all(&dir).unwrap();
    }
}
