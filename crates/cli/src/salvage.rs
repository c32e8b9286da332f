//! `teak salvage DIR`.
//!
//! The core knows keys and values; which columns they are is in the table's definition, which the server has. So this
//! writes bytes: what a tool, or a server with an empty table of the same definition, needs to get every row that no
//! damaged block held. Who has a server takes that: `--teak-force-recovery` gives the same rows in SQL.

use crate::{directory, Failure};
use std::collections::HashSet;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use teak_core::server::{Cursor, Engine, Table};
use teak_core::{Error, ForceRecovery, Isolation, View};
use teak_sql::quoting::hex;

/// Says which file is of which table; no table's name makes this one.
const INDEX: &str = "index.tsv";
/// What file systems take, and what is left of a longer name, in bytes.
const LONGEST_NAME: usize = 255;
const SHORTENED: usize = 200;

/// Writes the entries of tables whose name begins with `prefix` to files in `output`, and a report to `out`.
pub fn run(dir: &Path, output: &Path, prefix: &str, out: &mut dyn Write) -> Result<(), Failure> {
    let engine = directory::open_with(dir, ForceRecovery::ReadOnly).or_else(|error| match error {
        Failure::Core(error) if !matches!(error, Error::InUse { .. }) => {
            writeln!(out, "the log cannot be read to its end: {error}")?;
            directory::open_with(dir, ForceRecovery::WithoutLog)
        }
        other => Err(other),
    })?;
    std::fs::create_dir_all(output).map_err(of_file(output))?;
    let mut files = Files::new(output)?;
    let mut damaged = 0;
    for name in engine.table_names(prefix)? {
        damaged += usize::from(!table(&engine, &name, &mut files, out)?);
    }
    match damaged {
        0 => Ok(()),
        tables => Err(Failure::Damaged(tables)),
    }
}

/// Where entries go: a file for each table, and an index of them.
struct Files<'a> {
    output: &'a Path,
    taken: HashSet<String>,
    index: std::fs::File,
}

impl<'a> Files<'a> {
    fn new(output: &'a Path) -> Result<Files<'a>, Failure> {
        Ok(Files { output, taken: HashSet::new(), index: create(&output.join(INDEX))? })
    }

    /// The file of a table. It has the table's name as far as the file system takes it, and no other has taken it.
    fn add(&mut self, table: &str) -> Result<(PathBuf, std::fs::File), Failure> {
        let plain = table.replace('/', "@");
        let mut name = format!("{plain}.tsv");
        if name.len() > LONGEST_NAME || self.taken.contains(&name) {
            let kept =
                (0..=SHORTENED.min(plain.len())).rev().find(|&at| plain.is_char_boundary(at)).unwrap_or(0);
            name = format!("{}~{}.tsv", &plain[..kept], self.taken.len() + 1);
        }
        let path = self.output.join(&name);
        let file = create(&path)?;
        writeln!(self.index, "{name}\t{table}").map_err(of_file(&self.output.join(INDEX)))?;
        self.taken.insert(name);
        Ok((path, file))
    }
}

/// A new file that only its owner reads.
fn create(path: &Path) -> Result<std::fs::File, Failure> {
    let file = std::fs::File::options().write(true).create_new(true).mode(0o600).open(path);
    Ok(file.map_err(of_file(path))?)
}

/// Names the file in an error.
fn of_file(path: &Path) -> impl FnOnce(std::io::Error) -> std::io::Error + '_ {
    move |error| std::io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}

/// Whether the table is whole.
fn table(engine: &Engine, name: &str, files: &mut Files<'_>, out: &mut dyn Write) -> Result<bool, Failure> {
    let opened = match engine.open_table(name) {
        Ok(opened) => opened,
        Err(error) => {
            writeln!(out, "{name}: nothing can be read: {error}")?;
            return Ok(false);
        }
    };
    let before = engine.lost().len();
    let (path, file) = files.add(name)?;
    let mut file = std::io::BufWriter::new(file);
    let (mut entries, mut failed) = (0, None);
    for tree in 0..opened.trees() {
        match copy(engine, &opened, tree, &mut file) {
            Ok(copied) => entries += copied,
            Err(Failure::Core(error)) => failed = Some(error),
            Err(Failure::Output(error)) => return Err(of_file(&path)(error).into()),
            Err(other) => return Err(other),
        }
    }
    file.flush().map_err(of_file(&path))?;
    let lost = engine.lost().split_off(before);
    writeln!(out, "{name}: {entries} entries in {}, {} ranges lost", path.display(), lost.len())?;
    for range in &lost {
        let tree = (0..opened.trees()).find(|&tree| opened.tree(tree).id() == range.tree);
        let high = range.high.as_ref().map_or("the end".to_string(), |high| hex(high));
        let tree = tree.map_or("?".to_string(), |tree| tree.to_string());
        let older = if range.is_older { "without their latest changes: " } else { "" };
        writeln!(out, "  tree {tree} of {name}, keys {} to {high}: {older}{}", hex(&range.low), range.error)?;
    }
    if let Some(error) = &failed {
        writeln!(out, "  {name}: {error}")?;
    }
    Ok(lost.is_empty() && failed.is_none())
}

/// A line for each entry: the number of its tree in the table (0: the rows), key, value.
fn copy(engine: &Engine, table: &Arc<Table>, tree: usize, file: &mut dyn Write) -> Result<u64, Failure> {
    let mut txn = engine.begin(Isolation::Repeatable);
    let mut cursor = Cursor::new(table.tree(tree).clone());
    let mut entries = 0;
    let mut found = cursor.first(&mut txn, View::Latest)?;
    while found {
        writeln!(file, "{tree}\t{}\t{}", hex(cursor.key()), hex(cursor.value()?))?;
        entries += 1;
        found = cursor.next(&mut txn)?;
    }
    Ok(entries)
}
