//! `teak inspect DIR`.

use crate::{directory, Failure};
use std::io::Write;
use std::path::Path;

/// Prints the checkpoint, the log and the tables of an engine directory.
pub fn run(dir: &Path, out: &mut dyn Write) -> Result<(), Failure> {
    // First, so that nothing is printed of a directory that a server uses.
    let engine = directory::open(dir)?;
    let checkpoint = directory::checkpoint(dir)?;
    let id: String = checkpoint.engine_id.iter().map(|byte| format!("{byte:02x}")).collect();
    writeln!(out, "engine            {id}")?;
    writeln!(out, "format            {}", checkpoint.version)?;
    writeln!(out, "checkpoint        {}", checkpoint.number)?;
    writeln!(out, "  commits up to   {}", checkpoint.timestamp)?;
    writeln!(out, "  closed cleanly  {}", if checkpoint.clean { "yes" } else { "no" })?;
    writeln!(out, "log")?;
    writeln!(out, "  replay from     {}", checkpoint.replay_from)?;

    let numbers = engine.statistics();
    writeln!(out, "  ends at         {}", checkpoint.replay_from + numbers.log_bytes_since_checkpoint)?;
    writeln!(out, "  replayed        {} operations", numbers.replayed_operations)?;
    let prepared = engine.prepared();
    writeln!(out, "prepared          {}", prepared.len())?;
    for xid in prepared {
        writeln!(out, "  {}", xid.escape_ascii())?;
    }
    let names = engine.table_names("")?;
    writeln!(out, "tables            {}", names.len())?;
    if names.is_empty() {
        return Ok(());
    }
    writeln!(out, "{:>12} {:>14} {:>14} {:>6}  name", "rows", "disk bytes", "free of them", "trees")?;
    for name in names {
        match engine.open_table(&name) {
            Ok(table) => {
                let rows = if table.trees() == 0 { 0 } else { table.tree(0).entries() };
                let (file, free) = (table.disk_bytes(), table.free_bytes());
                writeln!(out, "{rows:>12} {file:>14} {free:>14} {:>6}  {name}", table.trees())?;
            }
            Err(error) => writeln!(out, "{:>12} {name}: {error}", "damaged")?,
        }
    }
    Ok(())
}
