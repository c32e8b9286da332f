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
        let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o640).open(&path)?;
        file.try_lock()?;
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
