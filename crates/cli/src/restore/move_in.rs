//! The last step of a restore: what was made moves to where a server expects it, and is counted.
//!
//! What the backup lists has to be there in the end. Names alone decide nothing: a database may be called as
//! mariadb-backup calls a file of its own.

use crate::backup::companion::is_own;
use crate::backup::files::original_name;
use crate::backup::{layout, BackupError};
use crate::directory;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// A server does not start without it, so it comes last.
pub const PRIVILEGES: &str = "mysql";

/// What becomes of a file while a backup is prepared: it is applied to others, or made anew.
const APPLIED: [&str; 5] = [".new", ".ren", ".del", ".meta", ".isl"];
/// Files at the top that are made anew, or that a server does without: logs, and the list of what was in a cache.
const MADE_ANEW: [&str; 3] = ["ib_logfile", "aria_log", "ib_buffer_pool"];

/// Moves everything from `work` to where a server expects it. `listed`: paths of the files that the last backup has,
/// seen from its `server`, as they are stored.
pub fn move_in(datadir: &Path, work: &Path, listed: &[PathBuf]) -> Result<(), BackupError> {
    let server = work.join(layout::SERVER);
    let rename =
        |from: &Path, to: &Path| std::fs::rename(from, to).map_err(BackupError::io("cannot rename", from));
    make_sure(&server, listed, "after mariadb-backup has prepared it")?;
    for entry in std::fs::read_dir(&server).map_err(BackupError::io("cannot read", &server))? {
        let entry = entry.map_err(BackupError::io("cannot read", &server))?;
        let name = entry.file_name();
        let is_dir = entry.file_type().map_err(BackupError::io("cannot look at", &entry.path()))?.is_dir();
        if name != PRIVILEGES && (is_dir || !is_own(&name.to_string_lossy())) {
            rename(&entry.path(), &datadir.join(&name))?;
        }
    }
    rename(&work.join(layout::ENGINE), &datadir.join(directory::IN_DATADIR))?;
    layout::sync_dir(datadir)?;
    let (privileges, others): (Vec<_>, Vec<_>) =
        listed.iter().cloned().partition(|path| path.starts_with(PRIVILEGES));
    make_sure(datadir, &others, "after all was moved")?;
    make_sure(&server, &privileges, "before it was moved")?;
    if server.join(PRIVILEGES).exists() {
        rename(&server.join(PRIVILEGES), &datadir.join(PRIVILEGES))?;
    }
    std::fs::remove_dir_all(work).map_err(BackupError::io("cannot remove", work))?;
    layout::sync_dir(datadir)
}

/// All of `listed` that a server needs is below `dir`; `when` says at which moment.
fn make_sure(dir: &Path, listed: &[PathBuf], when: &str) -> Result<(), BackupError> {
    match expected(listed).into_iter().find(|path| !dir.join(path).exists()) {
        None => Ok(()),
        Some(path) => {
            let detail =
                format!("the backup has this file, and it is missing {when}: this is no whole restore");
            Err(BackupError::damaged(&dir.join(path), detail))
        }
    }
}

/// The files of a data directory that are to come of those that a backup lists.
fn expected(listed: &[PathBuf]) -> BTreeSet<PathBuf> {
    let names: BTreeSet<_> =
        listed.iter().map(|path| original_name(&path.to_string_lossy()).0.to_string()).collect();
    let is_gone = |name: &str| {
        // Dropped or renamed while it was copied: what says so lies beside it.
        name.strip_suffix(".ibd").is_some_and(|table| {
            ["ren", "del"].iter().any(|ending| names.contains(&format!("{table}.{ending}")))
        })
    };
    let wanted = |name: &String| {
        let is_at_top = !name.contains('/');
        let is_applied = APPLIED.iter().any(|ending| name.ends_with(ending));
        !(is_applied || is_gone(name) || name.contains("#sql"))
            && !(is_at_top && (is_own(name) || MADE_ANEW.iter().any(|beginning| name.starts_with(beginning))))
    };
    // Changes to a tablespace make it larger or other, and never remove it.
    let named = names.iter().map(|name| name.strip_suffix(".delta").unwrap_or(name).to_string());
    named.filter(wanted).map(PathBuf::from).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paths(names: &[&str]) -> Vec<PathBuf> {
        names.iter().map(PathBuf::from).collect()
    }

    #[test]
    fn what_is_expected_are_the_files_of_a_server() {
        let listed = paths(&[
            "ib_logfile0",
            "aria_log.00000002",
            "ib_buffer_pool",
            "ibdata1.delta",
            "ibdata1.meta",
            "xtrabackup_info.zst",
            "xtrabackup_logs/db.opt.zst",
            "d/t.frm",
            "d/t.ibd.delta",
            "d/t.ibd.meta",
            "d/gone.ibd",
            "d/gone.del",
            "d/#sql-1.frm",
            "d/n.new",
            "d/xtrabackup_info",
        ]);
        let found: Vec<_> = expected(&listed).into_iter().collect();
        let there = ["d/t.frm", "d/t.ibd", "d/xtrabackup_info", "ibdata1", "xtrabackup_logs/db.opt"];
        assert_eq!(found, paths(&there));
    }

    #[test]
    fn databases_with_odd_names_are_moved_and_a_missing_file_is_told() {
        let datadir = std::env::temp_dir().join(format!("teak-move-in-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&datadir);
        let work = datadir.join("#restore");
        let listed = paths(&["xtrabackup_logs/t.frm", "xtrabackup_info", "mysql/db.frm"]);
        let make = || {
            std::fs::create_dir_all(work.join("teak")).unwrap();
            for path in &listed {
                let path = work.join("server").join(path);
                std::fs::create_dir_all(path.parent().unwrap()).unwrap();
                std::fs::write(path, b"").unwrap();
            }
        };
        make();
        move_in(&datadir, &work, &listed).unwrap();
        for there in ["xtrabackup_logs/t.frm", "mysql/db.frm", "#teak"] {
            assert!(datadir.join(there).exists(), "{there}");
        }
        assert!(!datadir.join("xtrabackup_info").exists() && !work.exists());
        std::fs::remove_dir_all(&datadir).unwrap();
        make();
        let missing = move_in(&datadir, &work, &[listed, paths(&["d/gone.frm"])].concat()).unwrap_err();
        assert!(missing.to_string().contains("d/gone.frm") && !datadir.join("mysql").exists(), "{missing}");
        std::fs::remove_dir_all(&datadir).unwrap();
    }
}
