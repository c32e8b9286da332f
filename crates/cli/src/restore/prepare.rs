//! `mariadb-backup --prepare`: makes the other engines' files what a server leaves that was shut down.

use crate::backup::companion::path_option;
use crate::backup::messages::Messages;
use crate::backup::BackupError;
use crate::children::ends_with_us;
use std::path::Path;
use std::process::{Command, Stdio};

/// In which mariadb-backup writes what the server was.
pub const SET_UP: &str = "backup-my.cnf";

/// How it is called.
pub struct Prepare<'a> {
    pub program: &'a Path,
    pub use_memory: Option<&'a str>,
    /// Options of the user, in place of what the backup says.
    pub options: &'a [String],
    /// Where its messages go.
    pub log: &'a Path,
}

impl Prepare<'_> {
    /// Works on the copy in `target`; with what an incremental backup has in `incremental`.
    ///
    /// What the server was has to be known: the size of its pages, its data files, where its keys are. Each backup says
    /// so of itself, as of its own end: keys may have been added since the one below it.
    pub fn run(&self, target: &Path, incremental: Option<&impl AsRef<Path>>) -> Result<(), BackupError> {
        let _ = std::fs::remove_file(self.log);
        let messages = Messages::at(self.log)?;
        let said = incremental.map_or(target, |dir| dir.as_ref()).join(SET_UP);
        let options = put_in(self.options, &said)?;
        let mut command = Command::new(self.program);
        command
            .arg(path_option("defaults-file", &said))
            .arg("--prepare")
            .arg(path_option("target-dir", target))
            .args(incremental.map(|dir| path_option("incremental-dir", dir.as_ref())))
            .args(self.use_memory.map(|bytes| format!("--use-memory={bytes}")))
            .args(options)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(messages.output()?);
        let status =
            ends_with_us(&mut command).status().map_err(BackupError::io("cannot run", self.program))?;
        match status.success() {
            true => Ok(()),
            false => Err(with_advice(messages.failed(status))),
        }
    }
}

/// Puts those of the user's options that the backup's set-up has, too, into its file: mariadb-backup takes options of
/// plugins from there alone. Those that it has not.
fn put_in<'a>(options: &'a [String], file: &Path) -> Result<Vec<&'a String>, BackupError> {
    if options.is_empty() {
        return Ok(Vec::new());
    }
    let text = std::fs::read_to_string(file).map_err(BackupError::io("cannot read", file))?;
    let (text, rest) = replaced(&text, options);
    std::fs::write(file, text).map_err(BackupError::io("cannot write", file))?;
    Ok(rest)
}

/// The text with the options that have a line in it, and the others.
fn replaced<'a>(text: &str, options: &'a [String]) -> (String, Vec<&'a String>) {
    let parts = |option: &str| {
        let (name, value) = option.split_once('=').unwrap_or((option, ""));
        (name.trim().trim_start_matches("--").replace('-', "_"), value.to_string())
    };
    let mut lines: Vec<String> = text.lines().map(str::to_string).collect();
    let mut rest = Vec::new();
    for option in options {
        let (name, value) = parts(option);
        match lines.iter_mut().find(|line| line.contains('=') && parts(line).0 == name) {
            Some(line) => {
                let quoted = value.replace('\\', "\\\\").replace('"', "\\\"");
                *line = format!("{name}=\"{quoted}\"");
            }
            None => rest.push(option),
        }
    }
    (lines.join("\n") + "\n", rest)
}

/// Where keys are missing, it is said how they are given: the plugin's messages do not know.
fn with_advice(error: BackupError) -> BackupError {
    match error {
        BackupError::Companion { status, place, tail, missed_log } if tail.contains("ncryption") => {
            let tail = format!(
                "{tail}\nThe keys of encrypted tables are needed. If they are elsewhere than on the server that was backed \
                 up, say so: --mariadb-backup-option=--file-key-management-filename=FILE, or what the plugin of the \
                 keys takes"
            );
            BackupError::Companion { status, place, tail, missed_log }
        }
        error => error,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_set_up_has_is_replaced_there_and_nothing_else() {
        let text =
            "[mysqld]\ninnodb_page_size=16384\nplugin_dir=\"/a/\"\nfile_key_management_filename=/a/keys\n";
        let options =
            ["--file-key-management-filename=/b/c \"d\"", "--plugin-dir=/b", "--ftwrl-wait-timeout=3"];
        let options = options.map(String::from);
        let (text, rest) = replaced(text, &options);
        let expected = "[mysqld]\ninnodb_page_size=16384\nplugin_dir=\"/b\"\n\
                        file_key_management_filename=\"/b/c \\\"d\\\"\"\n";
        assert_eq!((text.as_str(), rest), (expected, vec![&options[2]]));
    }
}
