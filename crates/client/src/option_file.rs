//! Option files (`my.cnf`) as MariaDB's programs read them.
//!
//! ```text
//! # comment          ; comment
//! [group]
//! name               name = value            name = "quoted value"    # comment
//! !include FILE      !includedir DIR         (files that end in .cnf, sorted)
//! ```
//!
//! Dashes and underscores in names are the same, `loose-` is ignored, `skip-x` and `disable-x` are `x` with the
//! value 0. Within values `\n \t \b \r \s \\` are escapes.

use super::Error;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use teak_console::terminal;

/// An include that includes itself must end.
const DEEPEST_INCLUDE: usize = 10;

/// Reads options of some groups out of files, the later over the earlier.
pub struct OptionFiles {
    groups: Vec<String>,
    /// By name with dashes. An option without a value is there with none.
    values: HashMap<String, Option<String>>,
}

impl OptionFiles {
    /// Nothing read yet; only options of these groups will be.
    pub fn new(groups: Vec<String>) -> OptionFiles {
        OptionFiles { groups, values: HashMap::new() }
    }

    /// The value of an option: `None` if not there, `Some(None)` if there without a value.
    pub fn get(&self, name: &str) -> Option<Option<&str>> {
        self.values.get(name).map(Option::as_deref)
    }

    /// Reads a file if it is there and not writable by everybody, which MariaDB ignores too.
    pub fn read_if_there(&mut self, path: &Path) -> Result<(), Error> {
        use std::os::unix::fs::PermissionsExt;
        match std::fs::metadata(path) {
            Err(_) => Ok(()),
            Ok(data) if data.is_file() && data.permissions().mode() & 0o002 != 0 => {
                terminal::message(&format!(
                    "teak: warning: the option file {} is writable by everybody and was ignored",
                    path.display()
                ));
                Ok(())
            }
            Ok(_) => self.read(path),
        }
    }

    /// Reads a file that must be there.
    pub fn read(&mut self, path: &Path) -> Result<(), Error> {
        self.read_nested(path, 0)
    }

    fn read_nested(&mut self, path: &Path, depth: usize) -> Result<(), Error> {
        if depth > DEEPEST_INCLUDE {
            return Err(Error::Settings(format!(
                "{}: option files include each other too deeply",
                path.display()
            )));
        }
        let text = std::fs::read(path)
            .map_err(Error::io(format!("cannot read the option file {}", path.display())))?;
        let mut wanted = false;
        for (number, line) in String::from_utf8_lossy(&text).lines().enumerate() {
            let line = line.trim();
            let wrong = |what: &str| Error::Settings(format!("{}:{}: {what}", path.display(), number + 1));
            if line.is_empty() || line.starts_with(['#', ';']) {
            } else if let Some(dir) = directive(line, "!includedir") {
                for file in files_of(&relative(path, dir))? {
                    self.read_nested(&file, depth + 1)?;
                }
            } else if let Some(file) = directive(line, "!include") {
                self.read_nested(&relative(path, file), depth + 1)?;
            } else if let Some(group) = line.strip_prefix('[') {
                let group = group.split(']').next().unwrap_or_default().trim();
                wanted = self.groups.iter().any(|known| known == group);
            } else if wanted {
                self.option(line).ok_or_else(|| wrong("neither an option nor a group"))?;
            }
        }
        Ok(())
    }

    fn option(&mut self, line: &str) -> Option<()> {
        let (name, value) = match line.split_once('=') {
            Some((name, value)) => (name.trim_end(), Some(unquoted(value.trim()))),
            None => (line.split('#').next().unwrap_or_default().trim_end(), None),
        };
        let name = name.replace('_', "-").to_ascii_lowercase();
        let name = name.strip_prefix("loose-").unwrap_or(&name);
        if name.is_empty() || name.contains(char::is_whitespace) {
            return None;
        }
        match name.strip_prefix("skip-").or_else(|| name.strip_prefix("disable-")) {
            Some(negated) => self.values.insert(negated.to_string(), Some("0".into())),
            None => self.values.insert(name.to_string(), value),
        };
        Some(())
    }
}

fn directive<'a>(line: &'a str, name: &str) -> Option<&'a str> {
    let rest = line.strip_prefix(name)?;
    rest.starts_with(char::is_whitespace).then(|| rest.trim())
}

fn relative(file: &Path, name: &str) -> PathBuf {
    file.parent().unwrap_or(Path::new("")).join(name)
}

fn files_of(dir: &Path) -> Result<Vec<PathBuf>, Error> {
    let entries = std::fs::read_dir(dir).map_err(Error::io(format!("cannot read {}", dir.display())))?;
    let mut files: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    files.retain(|file| file.extension().is_some_and(|extension| extension == "cnf"));
    files.sort();
    Ok(files)
}

/// A value without its quotes, escapes and the comment after it.
fn unquoted(value: &str) -> String {
    let quote = value.chars().next().filter(|c| matches!(c, '\'' | '"'));
    let inside = quote.and_then(|quote| value[1..].rfind(quote).map(|end| &value[1..1 + end]));
    // Unquoted, a # begins a comment only after a space: it may be part of a password.
    let value = inside.unwrap_or_else(|| value.split(" #").next().unwrap_or_default().trim_end());
    let mut out = String::with_capacity(value.len());
    let mut rest = value.chars();
    while let Some(c) = rest.next() {
        if c != '\\' {
            out.push(c);
            continue;
        }
        match rest.next() {
            Some('n') => out.push('\n'),
            Some('t') => out.push('\t'),
            Some('b') => out.push('\x08'),
            Some('r') => out.push('\r'),
            Some('s') => out.push(' '),
            Some('\\') | None => out.push('\\'),
            Some(other) => out.extend(['\\', other]),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<OptionFiles, Error> {
        let dir = std::env::temp_dir().join(format!(
            "teak-options-{}-{:?}",
            std::process::id(),
            std::thread::current().id()
        ));
        std::fs::create_dir_all(&dir).unwrap();
        let file = dir.join("my.cnf");
        std::fs::write(&file, text).unwrap();
        std::fs::write(dir.join("more.cnf"), "[client]\nport = 3311\n").unwrap();
        let mut files = OptionFiles::new(vec!["client".into(), "teak".into()]);
        let result = files.read(&file).map(|()| files);
        std::fs::remove_dir_all(&dir).unwrap();
        result
    }

    #[test]
    fn groups_quotes_escapes_and_comments() {
        let files = read(concat!(
            "# first\n[mysqld]\nport=1\nuser\n[client]\nport = 3310 # why\nuser=\"a b\" # x\npassword='p#\\s\\\\q'\n",
            "ssl_ca=/x\nloose-skip-ssl\n[teak]\nhost\n[other]\nhost=wrong\n",
        ))
        .unwrap();
        assert_eq!(files.get("port"), Some(Some("3310")));
        assert_eq!(files.get("user"), Some(Some("a b")));
        assert_eq!(files.get("password"), Some(Some("p# \\q")));
        assert_eq!(files.get("ssl-ca"), Some(Some("/x")));
        assert_eq!(files.get("ssl"), Some(Some("0")));
        assert_eq!(files.get("host"), Some(None));
        assert_eq!(files.get("socket"), None);
    }

    #[test]
    fn includes_are_read_where_they_stand_and_loops_end() {
        assert_eq!(read("[client]\nport=1\n!include more.cnf\n").unwrap().get("port"), Some(Some("3311")));
        assert!(matches!(read("!include my.cnf\n"), Err(Error::Settings(_))));
        assert!(matches!(read("!includedir .\n"), Err(Error::Settings(_))));
        assert!(matches!(read("!include nowhere.cnf\n"), Err(Error::Io { .. })));
        assert!(matches!(read("[client]\nsome words\n"), Err(Error::Settings(_))));
    }
}
