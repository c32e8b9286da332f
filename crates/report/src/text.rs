//! The report for a terminal.

use crate::facts::{Directory, Facts, Index, Server, Table};
use crate::Report;
use std::fmt::Write;
use std::time::Duration;
use teak_console::amounts::{bytes, clock};

/// Columns of a table of the report: the first ones are names, the others numbers.
pub struct Columns {
    pub heads: Vec<&'static str>,
    /// How many of them are names.
    pub names: usize,
    pub rows: Vec<Vec<String>>,
}

fn amount(count: u64) -> String {
    bytes(count as f64)
}

/// `disk` as a share of `raw`.
fn ratio(disk: u64, raw: u64) -> String {
    match raw {
        0 => "-".into(),
        raw => format!("{:.2}", disk as f64 / raw as f64),
    }
}

/// What the report is of: a host's name, or a directory.
pub fn place(facts: &Facts) -> &str {
    match (&facts.server, &facts.directory) {
        (Some(server), _) => &server.host,
        (None, directory) => directory.as_ref().map_or("", |directory| &directory.path),
    }
}

fn server(server: &Server) -> String {
    format!(
        "MariaDB {} on {}, up for {}, asked at {}; cache {}",
        server.version,
        server.host,
        clock(Duration::from_secs(server.uptime_seconds)),
        server.asked,
        amount(server.cache_bytes)
    )
}

fn directory(directory: &Directory) -> Vec<String> {
    let line = format!(
        "the directory {}: a start replays {} of log; {} prepared transactions wait",
        directory.path,
        amount(directory.log_bytes),
        directory.prepared_transactions
    );
    let damaged = directory.damaged.iter().map(|table| format!("cannot be opened: {table}"));
    std::iter::once(line).chain(damaged).collect()
}

/// About the server or directory, and what all tables take.
pub fn summary(facts: &Facts) -> Vec<String> {
    let sum = |of: fn(&Table) -> u64| facts.tables.iter().map(of).sum::<u64>();
    let (raw, blocks, disk) = (sum(|t| t.raw_bytes), sum(|t| t.block_bytes), sum(|t| t.disk_bytes));
    let mut lines: Vec<String> = facts.server.iter().map(server).collect();
    lines.extend(facts.directory.iter().flat_map(directory));
    lines.extend([
        format!(
            "{} tables of Teak: {} rows, {} on disk and {} free in their files",
            facts.tables.len(),
            sum(|t| t.rows),
            amount(disk),
            amount(sum(|t| t.free_bytes))
        ),
        format!(
            "compression: blocks of {} are {} on disk ({}), of which dictionaries {}",
            amount(raw),
            amount(blocks),
            ratio(blocks, raw),
            amount(sum(|t| t.dictionary_bytes))
        ),
    ]);
    let bundled = sum(|t| t.bundled_values);
    if bundled > 0 {
        lines.push(format!(
            "likeness: {bundled} large values of {} are {} on disk",
            amount(sum(|t| t.bundled_bytes)),
            amount(sum(|t| t.bundled_disk_bytes))
        ));
    }
    let memory = sum(|t| t.memory_bytes);
    if memory > 0 {
        lines.push(format!("tables that live in memory: {}", amount(memory)));
    }
    lines.extend(match (&facts.oldest_snapshot, &facts.server) {
        (None, None) => None,
        (None, Some(_)) => Some("no open snapshot".into()),
        (Some(old), _) => Some(format!(
            "oldest snapshot: connection {}, {} ago; {} versions are kept for it, {} in memory and {} on disk",
            old.connection,
            clock(Duration::from_secs(old.age_seconds)),
            old.versions,
            amount(old.memory_bytes),
            amount(old.spilled_bytes)
        )),
    });
    lines
}

/// The largest tables.
pub fn tables(facts: &Facts, largest: usize) -> Columns {
    let row = |table: &Table| {
        vec![
            format!("{}.{}", table.database, table.name),
            table.compression.clone(),
            table.rows.to_string(),
            amount(table.raw_bytes),
            amount(table.disk_bytes),
            ratio(table.block_bytes, table.raw_bytes),
            amount(table.free_bytes),
        ]
    };
    Columns {
        heads: vec!["table", "compression", "rows", "raw", "disk", "ratio", "free"],
        names: 2,
        rows: facts.tables.iter().take(largest).map(row).collect(),
    }
}

/// The largest indexes.
pub fn indexes(facts: &Facts, largest: usize) -> Columns {
    let mut all: Vec<(&Table, &Index)> =
        facts.tables.iter().flat_map(|table| table.indexes.iter().map(move |index| (table, index))).collect();
    all.sort_by_key(|(_, index)| std::cmp::Reverse(index.disk_bytes));
    let row = |(table, index): &(&Table, &Index)| {
        let count = |of: fn(&crate::facts::Uses) -> u64| {
            index.uses.as_ref().map_or_else(|| "-".into(), |uses| of(uses).to_string())
        };
        vec![
            format!("{}.{}", table.database, table.name),
            match index.columns.is_empty() {
                true => index.name.clone(),
                false => format!("{} ({})", index.name, index.columns.join(", ")),
            },
            index.entries.to_string(),
            amount(index.disk_bytes),
            ratio(index.disk_bytes, index.raw_bytes),
            index.fill.map_or_else(|| "-".into(), |fill| format!("{fill:.2}")),
            count(|uses| uses.look_ups),
            count(|uses| uses.scans),
            count(|uses| uses.inserts),
        ]
    };
    Columns {
        heads: vec!["table", "index", "entries", "disk", "ratio", "fill", "look-ups", "scans", "inserts"],
        names: 2,
        rows: all.iter().take(largest).map(row).collect(),
    }
}

fn put(text: &mut String, columns: &Columns) {
    let width = |at: usize| {
        let cells = columns.rows.iter().map(|row| row[at].chars().count());
        cells.chain([columns.heads[at].len()]).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..columns.heads.len()).map(width).collect();
    let heads: Vec<String> = columns.heads.iter().map(|head| head.to_string()).collect();
    for row in std::iter::once(&heads).chain(&columns.rows) {
        let cells = row.iter().zip(&widths).enumerate().map(|(at, (cell, width))| match at < columns.names {
            true => format!("{cell:<width$}"),
            false => format!("{cell:>width$}"),
        });
        let line = cells.collect::<Vec<_>>().join("  ");
        text.push_str(line.trim_end());
        text.push('\n');
    }
}

/// All of it.
pub fn shown(report: &Report, largest: usize) -> String {
    let mut text = summary(&report.facts).join("\n") + "\n";
    for columns in [tables(&report.facts, largest), indexes(&report.facts, largest)] {
        if !columns.rows.is_empty() {
            text.push('\n');
            put(&mut text, &columns);
        }
    }
    text.push_str(if report.advice.is_empty() { "\nnothing to advise\n" } else { "\nadvice\n" });
    for (at, advice) in report.advice.iter().enumerate() {
        let table = advice.table.as_ref().map_or_else(String::new, |table| format!(" {table}"));
        // Writing to a string cannot fail.
        let _ = writeln!(
            text,
            "{:3}. {}{table}: {}\n     {};",
            at + 1,
            advice.kind,
            advice.evidence,
            advice.statement
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::advice::Advice;

    #[test]
    fn columns_stand_below_their_heads() {
        let index =
            Index { name: "PRIMARY".into(), columns: vec!["id".into()], entries: 12, ..Index::default() };
        let table =
            Table { database: "d".into(), name: "täble".into(), indexes: vec![index], ..Table::default() };
        let facts = Facts { tables: vec![table], ..Facts::default() };
        let advice = Advice {
            kind: "k",
            table: None,
            evidence: "seen".into(),
            statement: "DO 1".into(),
            gain_bytes: 0,
        };
        let text = shown(&Report { facts, advice: vec![advice] }, 5);
        assert!(text.contains("\ntable    index         entries"), "{text}");
        assert!(text.contains("\nd.täble  PRIMARY (id)       12"), "{text}");
        assert!(text.ends_with("advice\n  1. k: seen\n     DO 1;\n"), "{text}");
    }
}
