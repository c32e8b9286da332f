//! What is free where the server's data are: of a server on this machine, as its variable `datadir` says.

use crate::part::Missing;
use std::ffi::CString;
use std::io::{Error, ErrorKind};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use teak_metrics::{Family, Kind};

/// Free and all bytes of the file system.
pub fn families(data_directory: Option<&Path>) -> Result<Vec<Family>, Missing> {
    let path =
        data_directory.ok_or_else(|| Missing::NotConnected("it is not known where the data are".into()))?;
    let (free, size) = space(path)
        .map_err(|error| Missing::Disk(Error::new(error.kind(), format!("{}: {error}", path.display()))))?;
    let family = |name, help, value: u64| Family::of(name, Kind::Gauge, help, value as f64);
    Ok(vec![
        family(
            "teak_data_directory_free_bytes",
            "What is free on the file system of the data directory",
            free,
        ),
        family("teak_data_directory_size_bytes", "The size of that file system", size),
    ])
}

fn space(path: &Path) -> Result<(u64, u64), Error> {
    let path = CString::new(path.as_os_str().as_bytes()).map_err(|_| Error::from(ErrorKind::InvalidInput))?;
    // SAFETY: it consists of numbers.
    let mut about: libc::statvfs = unsafe { std::mem::zeroed() };
    // SAFETY: the path ends with a zero, and the call writes one structure, which lives as long as it.
    if unsafe { libc::statvfs(path.as_ptr(), &mut about) } != 0 {
        return Err(Error::last_os_error());
    }
    let bytes = |blocks: libc::fsblkcnt_t| blocks.saturating_mul(about.f_frsize);
    // For whoever is not root.
    Ok((bytes(about.f_bavail), bytes(about.f_blocks)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_system_has_not_more_free_than_it_has_and_a_path_that_is_missing_is_told() {
        let (free, size) = space(&std::env::temp_dir()).unwrap();
        assert!(free <= size && size > 0);
        let missing = families(Some(Path::new("/nowhere/at/all"))).unwrap_err();
        assert!(missing.to_string().starts_with("/nowhere/at/all: "), "{missing}");
        assert!(families(None).is_err());
    }
}
