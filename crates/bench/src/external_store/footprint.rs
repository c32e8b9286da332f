//! What the server's process and files say of it, where they are on this machine.

use crate::Error;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Files of engines that keep all tables together, below the data directory: directory, begin and end of names.
const SHARED: [(&str, &str, &str); 3] =
    [("#teak", "s", ".teak"), ("#rocksdb", "", ".sst"), ("#rocksdb", "", ".blob")];
/// A block of stat(2), whatever the file system's are.
const BLOCK: u64 = 512;

/// Bytes that a server process has read from disks since it began; `process` is its number, or a file that holds it,
/// which is read each time, since a restart changes it.
pub fn read_bytes(process: &str) -> Result<u64, Error> {
    let number = match process.parse::<u32>() {
        Ok(number) => number,
        Err(_) => {
            let text = read(Path::new(process))?;
            let number = text.trim().parse::<u32>();
            number.map_err(|_| Error::Usage(format!("{process} does not hold the number of a process")))?
        }
    };
    let path = PathBuf::from(format!("/proc/{number}/io"));
    let counts = read(&path)?;
    let count =
        counts.lines().find_map(|line| line.strip_prefix("read_bytes: ")).and_then(|text| text.parse().ok());
    count.ok_or_else(|| Error::Usage(format!("{} has no read_bytes", path.display())))
}

fn read(path: &Path) -> Result<String, Error> {
    std::fs::read_to_string(path).map_err(|error| Error::File { path: path.into(), error })
}

/// What the files of the tables take from the disk: those in the database's directory, and those of an engine that
/// keeps all its tables together.
pub fn disk_bytes(data: &Path, database: &str, engine: &str) -> Result<u64, Error> {
    let of_engine = match engine.to_ascii_lowercase().as_str() {
        "teak" => "#teak",
        "rocksdb" => "#rocksdb",
        _ => "",
    };
    let mut total = sum(&data.join(database), |name| !name.ends_with(".frm") && !name.ends_with(".opt"))?;
    for (directory, begin, end) in SHARED.iter().filter(|(directory, ..)| *directory == of_engine) {
        total += sum(&data.join(directory), |name| name.starts_with(begin) && name.ends_with(end))?;
    }
    Ok(total)
}

fn sum(directory: &Path, counts: impl Fn(&str) -> bool) -> Result<u64, Error> {
    let failed = |error| Error::File { path: directory.into(), error };
    let mut total = 0;
    for entry in std::fs::read_dir(directory).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        if counts(&entry.file_name().to_string_lossy()) {
            // A file may go between the listing and the look.
            total += entry.metadata().map_or(0, |file| file.blocks() * BLOCK);
        }
    }
    Ok(total)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_own_process_has_a_count_and_wrong_ones_are_named() {
        assert!(read_bytes(&std::process::id().to_string()).is_ok());
        let error = read_bytes("/nowhere/pid").unwrap_err().to_string();
        assert!(error.contains("/nowhere/pid"), "{error}");
        let error = disk_bytes(Path::new("/nowhere"), "wiki", "InnoDB").unwrap_err().to_string();
        assert!(error.contains("/nowhere/wiki"), "{error}");
    }
}
