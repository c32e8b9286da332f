//! `teak check DIR`.

use crate::{directory, Failure};
use std::io::Write;
use std::path::Path;

/// Reads every block of every table, and prints a line for each.
pub fn run(dir: &Path, out: &mut dyn Write) -> Result<(), Failure> {
    let engine = directory::open(dir)?;
    let mut damaged = 0;
    for name in engine.table_names("")? {
        let result = engine.open_table(&name).and_then(|table| engine.check_table(&table));
        match result {
            Ok(()) => writeln!(out, "{name}: ok")?,
            Err(error) => {
                damaged += 1;
                writeln!(out, "{name}: {error}")?;
            }
        }
    }
    match damaged {
        0 => Ok(()),
        tables => Err(Failure::Damaged(tables)),
    }
}
