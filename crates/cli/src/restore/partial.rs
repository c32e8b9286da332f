//! What a data directory of a partial backup is good for.

use crate::backup::selection::Selection;
use std::path::Path;

/// Without these no server starts that asks who may do what.
const NEEDED: [&str; 4] = ["db.frm", "global_priv.frm", "plugin.frm", "servers.frm"];

/// What the user should know; `privileges` is the directory of the database `mysql`.
pub fn advice(selection: &Selection, privileges: &Path) -> String {
    let mut text = format!("partial: {selection}\n");
    if NEEDED.iter().any(|table| !privileges.join(table).exists()) {
        text += "the database mysql is not in the backup: a server starts on this directory only with\n  \
                 --skip-grant-tables --skip-networking\n\
                 for mariadb-dump, or for FLUSH TABLES ... FOR EXPORT, which bring its tables to another server\n";
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_told_what_is_missing_and_what_can_be_done() {
        let dir = std::env::temp_dir().join(format!("teak-partial-{}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        let selection = Selection { tables: vec!["^a[.]".into()], ..Selection::default() };
        let missing = advice(&selection, &dir);
        assert!(missing.contains("--tables=^a[.]") && missing.contains("--skip-grant-tables"), "{missing}");
        NEEDED.iter().for_each(|table| std::fs::write(dir.join(table), b"").unwrap());
        let whole = advice(&selection, &dir);
        std::fs::remove_dir_all(&dir).unwrap();
        assert!(!whole.contains("--skip-grant-tables"), "{whole}");
    }
}
