//! `teak check DIR`.

use crate::{directory, Failure};
use std::io::Write;
use std::path::Path;
use teak_core::server::{Depth, Engine};
use teak_core::{Error, Findings, Isolation};

/// Looks at every structure of every table, in memory as the log's replay leaves it and in the files. Prints what is
/// wrong and a sum; `verbose`: a line for each table.
pub fn run(dir: &Path, verbose: bool, out: &mut dyn Write) -> Result<(), Failure> {
    check(&directory::open(dir)?, verbose, out)
}

/// The same, of an engine that is open.
pub fn check(engine: &Engine, verbose: bool, out: &mut dyn Write) -> Result<(), Failure> {
    let (mut tables, mut damaged) = (0, 0);
    for name in engine.table_names("")? {
        tables += 1;
        let found = check_table(engine, &name)?;
        damaged += usize::from(!found.is_empty());
        if !found.is_empty() {
            writeln!(out, "{name}: damaged\n{found}")?;
        } else if verbose {
            writeln!(out, "{name}: ok")?;
        }
    }
    let files = engine.check_files(&mut |_| Ok(()))?;
    if !files.is_empty() {
        writeln!(out, "files: damaged\n{files}")?;
    }
    writeln!(out, "{tables} tables, {damaged} damaged")?;
    match (damaged, files.is_empty()) {
        (0, true) => Ok(()),
        (tables, _) => Err(Failure::Damaged(tables)),
    }
}

fn check_table(engine: &Engine, name: &str) -> Result<Findings, Failure> {
    let mut findings = Findings::default();
    let mut txn = engine.begin(Isolation::Repeatable);
    let checked = engine.open_table(name).and_then(|table| {
        engine.check_trees(&mut txn, (&table, 0..table.trees()), Depth::Structure, &mut |_| Ok(()))
    });
    match findings.absorb(None, checked) {
        Ok(checked) => Ok(checked.map_or(findings, |checked| checked.findings)),
        // A file that the operating system does not read: the others are of interest all the same.
        Err(Error::Io { operation, path, cause }) => {
            let detail = format!("{operation} failed: {cause}");
            findings.add(teak_core::Finding::new(&path, detail));
            Ok(findings)
        }
        Err(error) => Err(error.into()),
    }
}
