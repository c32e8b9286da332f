//! The view of lock chains.

use crate::chains::{chains, Link, Party};
use crate::sample::{Part, Record, Sample};
use crate::table::Place::{Detail, Made, Rest, Wide};
use crate::table::{number, text, Cell, Column, Row, Subject, Table, Unit};
use std::collections::BTreeMap;

const LOCKS: &[Column] = &[
    text("who", "WHO", Made(13), ""),
    number("connection", "ID", Detail, "", Unit::Id),
    number("transaction", "TRANSACTION", Detail, "", Unit::Id),
    text("user", "USER", Detail, ""),
    number("depth", "DEPTH", Detail, "", Unit::Count),
    text("root", "ROOT", Detail, ""),
    number("behind", "BEHIND", Wide(6), "", Unit::Count),
    text("waits_for", "WAITS FOR", Detail, ""),
    number("seconds", "WAITS", Wide(7), "", Unit::Seconds),
    text("lock", "WAITS FOR LOCK, OR: ENDED BY", Made(31), ""),
    text("kind", "KIND", Detail, ""),
    text("table", "TABLE", Detail, ""),
    text("index", "INDEX", Detail, ""),
    text("mode", "MODE", Detail, ""),
    text("key", "KEY", Detail, ""),
    text("kill", "ENDED BY", Detail, ""),
    text("state", "STATE", Detail, ""),
    text("query", "QUERY", Rest, ""),
];

/// Each chain with its root first.
pub fn table(sample: &Sample) -> Table {
    let known: BTreeMap<u64, Record<'_>> =
        sample.records(Part::Parties).filter_map(|row| Some((row.id("ID")?, row))).collect();
    let mut table = Table { is_sortable: false, ..Table::new(LOCKS) };
    for link in chains(sample) {
        let (connection, transaction) = match link.party {
            Party::Connection(id) => (Some(id), None),
            Party::Transaction(id) => (None, Some(id)),
            Party::Unknown => (None, None),
        };
        let who = connection.and_then(|id| known.get(&id));
        let text = |column| who.and_then(|row| row.text(column));
        let wait = link.wait.as_ref().map(|(_, wait)| wait);
        let kill = kill(sample, link.party);
        // Of a root that sleeps there is no statement, and that is worth knowing.
        let query = text("QUERY").or(text("COMMAND"));
        let cells = vec![
            Cell::Text(format!("{}{}", "  ".repeat(link.depth.min(5)), name(link.party))),
            Cell::id(connection),
            Cell::id(transaction),
            Cell::text(text("USER")),
            Cell::number(Some(link.depth as f64), Unit::Count),
            Cell::Text(name(link.root)),
            Cell::number(Some(link.behind as f64), Unit::Count),
            link.wait.as_ref().map_or(Cell::Missing, |(holder, _)| Cell::Text(name(*holder))),
            Cell::number(wait.and_then(|wait| wait.seconds), Unit::Seconds),
            lock(&link).or(kill.clone()).map_or(Cell::Missing, Cell::Text),
            Cell::text(wait.map(|wait| wait.kind)),
            Cell::text(wait.and_then(|wait| wait.table.as_deref())),
            Cell::text(wait.and_then(|wait| wait.index.as_deref())),
            Cell::text(wait.and_then(|wait| wait.mode.as_deref())),
            Cell::text(wait.and_then(|wait| wait.key.as_deref())),
            Cell::text(kill.as_deref()),
            Cell::text(text("STATE")),
            Cell::text(query),
        ];
        let subject = Subject { connection, statement: kill.filter(|_| connection.is_none()) };
        table.rows.push(Row { id: name(link.party), cells, subject });
    }
    table
}

/// What it is called.
pub fn name(party: Party) -> String {
    match party {
        Party::Connection(id) => id.to_string(),
        Party::Transaction(id) => format!("trx {id}"),
        Party::Unknown => "unknown".into(),
    }
}

/// What ends it.
pub fn kill(sample: &Sample, party: Party) -> Option<String> {
    match party {
        Party::Connection(id) => Some(format!("KILL {id}")),
        Party::Transaction(id) => {
            let xid = sample.records(Part::Prepared).find(|row| row.id("TRX_ID") == Some(id))?.text("XID")?;
            Some(format!("XA ROLLBACK {xid}"))
        }
        Party::Unknown => None,
    }
}

/// For what somebody waits, in a word.
fn lock(link: &Link) -> Option<String> {
    let (_, wait) = link.wait.as_ref()?;
    let table = wait.table.as_deref().map(|table| table.rsplit_once('.').map_or(table, |(_, name)| name));
    let kind = (wait.kind != "Teak").then_some(wait.kind);
    let mode = wait.mode.as_deref().map(|mode| match mode {
        "EXCLUSIVE" => "X",
        "SHARED" => "S",
        other => other,
    });
    let words = [kind, table, wait.index.as_deref(), wait.key.as_deref(), mode];
    Some(words.into_iter().flatten().collect::<Vec<_>>().join(" "))
}
