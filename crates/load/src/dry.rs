//! `--dry-run`: reads, splits and counts, without a server.

use super::error::LoadError;
use super::input::{self, Source};
use super::report::Report;
use super::session::{Initial, SessionState};
use std::collections::BTreeMap;
use std::io::Write;
use std::sync::atomic::Ordering;
use std::sync::Arc;
use std::time::Instant;
use teak_console::amounts::bytes;
use teak_sql::rows;
use teak_sql::splitter::{Splitter, LONGEST};
use teak_sql::statement::{classify, Kind};

#[derive(Default)]
struct Found {
    statements: u64,
    bytes: u64,
    rows: u64,
}

/// Reads all sources and prints what is in them and how fast they were split; with `count`, the rows of each table too.
pub fn run(
    sources: &[Source],
    initial: &Arc<Initial>,
    report: &Report,
    count: bool,
    out: &mut dyn Write,
) -> Result<(), LoadError> {
    let (mut statements, mut read) = (0, 0);
    let mut tables: BTreeMap<String, Found> = BTreeMap::new();
    let began = Instant::now();
    for source in sources {
        let unreadable = |error| LoadError::Read { name: source.name.clone(), error };
        let input = input::open(source, report.counters.read.clone()).map_err(unreadable)?;
        let database = source.database.as_ref().map(|name| name.clone().into_bytes());
        let mut session = SessionState::new(database, initial.clone());
        let mut dialect = session.dialect();
        let mut splitter = Splitter::new(input, LONGEST, source.delimiter, dialect);
        loop {
            let statement = splitter
                .next_statement()
                .map_err(|error| LoadError::Split { name: source.name.clone(), error })?;
            let Some(statement) = statement else { break };
            statements += 1;
            match classify(statement.text, dialect, false) {
                Kind::Insert(insert) => {
                    let database = insert.table.0.or_else(|| session.database.clone()).unwrap_or_default();
                    let name = [&database[..], &insert.table.1].join(&b'.');
                    let found = tables.entry(String::from_utf8_lossy(&name).into_owned()).or_default();
                    found.statements += 1;
                    found.bytes += statement.text.len() as u64;
                    if count {
                        found.rows +=
                            rows::scan(statement.text, insert.rows_at, dialect, &rows::Watched::default())
                                .map_or(0, |rows| rows.count);
                    }
                }
                Kind::Use(name) => session.database = Some(name),
                Kind::SessionState => {
                    session.guess(statement.text);
                    dialect = session.dialect();
                    splitter.set_dialect(dialect);
                }
                _ => {}
            }
        }
        read += splitter.offset();
        // Relaxed: a number to be shown.
        report.counters.sql.store(read, Ordering::Relaxed);
    }
    let seconds = began.elapsed().as_secs_f64().max(1e-6);
    for (name, found) in &tables {
        let name = name.trim_start_matches('.');
        let rows = if count { format!(", {} rows", found.rows) } else { String::new() };
        writeln!(out, "{name}: {} INSERT statements, {}{rows}", found.statements, bytes(found.bytes as f64))?;
        report.event("table", serde_json::json!({"table": name, "statements": found.statements, "bytes": found.bytes, "rows": found.rows}));
    }
    let rate = bytes(read as f64 / seconds);
    writeln!(
        out,
        "{statements} statements, {} of SQL in {seconds:.2} s: {rate}/s; nothing was loaded",
        bytes(read as f64)
    )?;
    report.event(
        "dry-run",
        serde_json::json!({"statements": statements, "sql_bytes": read, "seconds": seconds}),
    );
    Ok(())
}
