//! `--databases`, `--tables` and their kin: which tables a backup has. They mean what they mean to mariadb-backup,
//! which gets them for the tables of the other engines.
//!
//! Names are compared as those of files are: `my-db` is `my@002ddb`. In `--databases` both may be written; the server
//! is asked for the other. A regular expression is given to the same functions of the C library, with the same names.
//!
//! What mariadb-backup makes of a table whose database is named, too, depends on which of them comes first. Here the
//! table goes without saying, and is not passed on.

mod pattern;

use super::files::Received;
use super::source::Source;
use super::BackupError;
use clap::Args;
use pattern::Pattern;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use teak_core::server::BackupCopy;

/// Tables that ALTER works with: they are nobody's.
const TEMPORARY: &str = "#sql";
/// Behind the name of a partition's table.
const PARTITION: &str = "#p#";

/// The options.
#[derive(Args, Debug)]
#[group(id = "selection")]
#[command(next_help_heading = "Partial backups")]
pub struct Arguments {
    /// Only these databases; database.table is a single table. Separated by spaces
    #[arg(long, value_name = "NAMES")]
    databases: Option<String>,
    /// The same, in a file, one a line
    #[arg(long, value_name = "FILE")]
    databases_file: Option<PathBuf>,
    /// Without these databases and tables
    #[arg(long, value_name = "NAMES")]
    databases_exclude: Option<String>,
    /// Only tables whose name, written database.table, matches one of these regular expressions (POSIX, extended).
    /// Separated by commas
    #[arg(long, value_name = "REGEX")]
    tables: Option<String>,
    /// Only these tables, written database.table, in a file, one a line
    #[arg(long, value_name = "FILE")]
    tables_file: Option<PathBuf>,
    /// Without tables that match
    #[arg(long, value_name = "REGEX")]
    tables_exclude: Option<String>,
}

/// What was selected, as a backup's description has it. Names are those of files.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Selection {
    /// Databases, and tables as `database.table`. If both this and `tables` are empty, all.
    pub databases: BTreeSet<String>,
    pub databases_exclude: BTreeSet<String>,
    /// Regular expressions.
    pub tables: Vec<String>,
    pub tables_exclude: Vec<String>,
}

impl Selection {
    /// What the options say; `None`: everything. Each name of a table or database that is to be in the backup is there.
    pub fn of(arguments: &Arguments, source: &mut Source) -> Result<Option<Selection>, BackupError> {
        let mut databases = words(&arguments.databases);
        for file in arguments.databases_file.iter().chain(&arguments.tables_file) {
            databases.extend(lines(file)?);
        }
        let mut in_files = |names: Vec<String>| -> Result<BTreeSet<String>, BackupError> {
            names.iter().map(|name| source.file_name(name)).collect()
        };
        let selection = Selection {
            databases: in_files(databases)?,
            databases_exclude: in_files(words(&arguments.databases_exclude))?,
            tables: patterns(&arguments.tables),
            tables_exclude: patterns(&arguments.tables_exclude),
        };
        if selection == Selection::default() {
            return match arguments.is_given() {
                true => Err(BackupError::Usage("the selection of tables names none".into())),
                false => Ok(None),
            };
        }
        let selection = selection.without_contradictions()?;
        selection.must_be_there(&source.places.datadir)?;
        selection.filter()?;
        Ok(Some(selection))
    }

    fn without_contradictions(mut self) -> Result<Selection, BackupError> {
        if let Some(table) = self.databases_exclude.iter().find(|name| name.contains('.')) {
            if self.databases.is_empty() {
                return Err(BackupError::Usage(format!(
                    "--databases-exclude={table} without --databases leaves all of its database out, as mariadb-backup \
                     understands it: use --tables-exclude"
                )));
            }
        }
        for names in [&mut self.databases, &mut self.databases_exclude] {
            let all = names.clone();
            names.retain(|name| name.split_once('.').is_none_or(|(database, _)| !all.contains(database)));
        }
        Ok(self)
    }

    fn must_be_there(&self, datadir: &Path) -> Result<(), BackupError> {
        for name in &self.databases {
            let (what, path) = match name.split_once('.') {
                Some((database, table)) => ("table", datadir.join(database).join(format!("{table}.frm"))),
                None => ("database", datadir.join(name)),
            };
            if !path.exists() {
                return Err(BackupError::Usage(format!(
                    "there is no {what} {name}: {} does not exist",
                    path.display()
                )));
            }
        }
        Ok(())
    }

    /// As options of mariadb-backup.
    pub fn options(&self) -> Vec<String> {
        let names = |names: &BTreeSet<String>| names.iter().cloned().collect::<Vec<_>>().join(" ");
        let options = [
            ("databases", names(&self.databases)),
            ("databases-exclude", names(&self.databases_exclude)),
            ("tables", self.tables.join(",")),
            ("tables-exclude", self.tables_exclude.join(",")),
        ];
        let given = options.into_iter().filter(|(_, value)| !value.is_empty());
        given.map(|(name, value)| format!("--{name}={value}")).collect()
    }

    /// An expression may be mistyped as a name may be.
    pub fn must_have_matched(&self, received: &Received) -> Result<(), BackupError> {
        match self.tables.is_empty() || received.has_table() {
            true => Ok(()),
            false => Err(BackupError::Usage("--tables matches no table".into())),
        }
    }

    /// For asking it.
    fn filter(&self) -> Result<Filter, BackupError> {
        let compiled = |patterns: &[String]| patterns.iter().map(|pattern| Pattern::new(pattern)).collect();
        let compiled = |patterns: &[String]| -> Result<Vec<Pattern>, String> { compiled(patterns) };
        let usage = BackupError::Usage;
        Ok(Filter {
            included: Names::of(&self.databases),
            excluded: Names::of(&self.databases_exclude),
            matching: compiled(&self.tables).map_err(usage)?,
            not_matching: compiled(&self.tables_exclude).map_err(usage)?,
        })
    }
}

impl std::fmt::Display for Selection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.options().join(" "))
    }
}

impl Arguments {
    fn is_given(&self) -> bool {
        let lists = [&self.databases, &self.databases_exclude, &self.tables, &self.tables_exclude];
        let files = [&self.databases_file, &self.tables_file];
        lists.iter().any(|list| list.is_some()) || files.iter().any(|file| file.is_some())
    }
}

/// The copy of the engine is to have what is selected of it, or all: in both cases without what ALTER works with, of
/// which mariadb-backup copies no definition.
pub fn narrow(copy: BackupCopy, selection: Option<&Selection>) -> Result<BackupCopy, BackupError> {
    let filter = selection.map_or_else(|| Ok(Filter::default()), Selection::filter)?;
    Ok(copy.only(Arc::new(move |table| filter.has(table))))
}

/// Whether an option for mariadb-backup selects tables: then this program would not know of it.
pub fn is_selecting(option: &str) -> bool {
    let name = option.trim_start_matches('-').replace('_', "-");
    ["databases", "tables"].iter().any(|selecting| name.starts_with(selecting))
}

fn words(list: &Option<String>) -> Vec<String> {
    list.iter()
        .flat_map(|list| list.split([' ', '\t']))
        .filter(|word| !word.is_empty())
        .map(Into::into)
        .collect()
}

fn patterns(list: &Option<String>) -> Vec<String> {
    list.iter().flat_map(|list| list.split(',')).filter(|word| !word.is_empty()).map(Into::into).collect()
}

fn lines(path: &Path) -> Result<Vec<String>, BackupError> {
    let text = std::fs::read_to_string(path).map_err(BackupError::io("cannot read", path))?;
    Ok(text.lines().filter(|line| !line.is_empty()).map(Into::into).collect())
}

/// Databases, tables, and the databases of these.
#[derive(Default)]
struct Names {
    databases: BTreeSet<String>,
    tables: BTreeSet<String>,
    with_tables: BTreeSet<String>,
}

impl Names {
    fn of(names: &BTreeSet<String>) -> Names {
        let mut sorted = Names::default();
        for name in names {
            match name.split_once('.') {
                Some((database, _)) => {
                    sorted.with_tables.insert(database.to_string());
                    sorted.tables.insert(name.clone());
                }
                None => drop(sorted.databases.insert(name.clone())),
            }
        }
        sorted
    }

    fn is_empty(&self) -> bool {
        self.databases.is_empty() && self.tables.is_empty()
    }
}

/// A selection that can be asked; by default all tables.
#[derive(Default)]
struct Filter {
    included: Names,
    excluded: Names,
    matching: Vec<Pattern>,
    not_matching: Vec<Pattern>,
}

impl Filter {
    /// Whether the backup has the table, given as the engine knows it: `database/table`. Partitions go with their
    /// table, which cannot be opened without one of them.
    fn has(&self, name: &str) -> bool {
        let mut parts = name.rsplit('/');
        let (Some(table), Some(database)) = (parts.next(), parts.next()) else { return true };
        if table.starts_with(TEMPORARY) {
            return false;
        }
        let end = table.to_ascii_lowercase().find(PARTITION).unwrap_or(table.len());
        self.has_table(database, &format!("{database}.{}", &table[..end]))
    }

    /// In the order in which mariadb-backup asks.
    fn has_table(&self, database: &str, name: &str) -> bool {
        let named = self.included.databases.contains(database);
        if self.excluded.databases.contains(database)
            || !(self.included.is_empty() || named || self.included.with_tables.contains(database))
        {
            return false;
        }
        let any = |patterns: &[Pattern]| patterns.iter().any(|pattern| pattern.matches(name));
        if self.excluded.tables.contains(name) || any(&self.not_matching) {
            return false;
        }
        let all = self.included.is_empty() && self.matching.is_empty();
        all || named || self.included.tables.contains(name) || any(&self.matching)
    }
}

#[cfg(test)]
mod tests;
