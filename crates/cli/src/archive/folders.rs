//! All files below a directory, for `teak archive put --recursive`.

use super::{of_file, ArchiveError};
use std::path::{Path, PathBuf};
use teak_console::terminal;

/// Calls for each file, in the order of their names, with its path below the directory that holds this one. What is
/// neither file nor directory, links too, is passed over and told.
pub(super) fn walk(
    directory: &Path,
    call: &mut dyn FnMut(&Path, &str) -> Result<(), ArchiveError>,
) -> Result<(), ArchiveError> {
    let whole = directory.canonicalize().map_err(of_file(directory))?;
    let above = whole.parent().unwrap_or(&whole).to_path_buf();
    // Directories that are not read yet, on top the next one: no depth is too much.
    let mut waiting = vec![whole];
    while let Some(path) = waiting.pop() {
        let about = path.symlink_metadata().map_err(of_file(&path))?;
        if about.is_dir() {
            let entries = std::fs::read_dir(&path).map_err(of_file(&path))?;
            let mut below = entries.map(|entry| entry.map(|entry| entry.path()).map_err(of_file(&path)));
            let mut below = below.by_ref().collect::<Result<Vec<PathBuf>, _>>()?;
            below.sort_unstable_by(|one, other| other.cmp(one));
            waiting.extend(below);
        } else if about.is_file() {
            let below = path.strip_prefix(&above).unwrap_or(&path);
            call(&path, &below.to_string_lossy())?;
        } else {
            terminal::message(&format!("{} is no file, and passed over", path.display()));
        }
    }
    Ok(())
}
