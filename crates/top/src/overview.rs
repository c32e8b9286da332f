//! The first view: what deserves to be looked at, and the sessions that work longest.

use crate::chains::chains;
use crate::locks::{kill, name};
use crate::moment::Moment;
use crate::sample::Part;
use crate::table::Place::{Rest, Wide};
use crate::table::{number, shown, text, Cell, Column, Row, Subject, Table, Unit};
use crate::views::replica_state;

const COLUMNS: &[Column] = &[
    text("what", "WHAT", Wide(16), ""),
    text("value", "HOW MUCH", Wide(9), ""),
    number("connection", "ID", Wide(8), "", Unit::Id),
    text("detail", "WHAT IT IS, OR DOES", Rest, ""),
];
/// So many of a kind.
const CHAINS: usize = 3;
const SESSIONS: usize = 10;

/// In the order of what people ask first.
pub fn table(moment: &Moment<'_>) -> Table {
    let mut table = Table { is_sortable: false, ..Table::new(COLUMNS) };
    blockers(moment, &mut table);
    snapshot(moment, &mut table);
    replicas(moment, &mut table);
    engine(moment, &mut table);
    for row in moment.now.records(Part::Sessions).take(SESSIONS) {
        let command = row.text("COMMAND").unwrap_or_default();
        let user = row.text("USER").unwrap_or_default();
        let detail = row.text("QUERY").or(row.text("STATE")).unwrap_or(command);
        let seconds = Cell::number(row.number("SECONDS"), Unit::Seconds);
        add(&mut table, "session", seconds, Subject::of(row.id("ID")), format!("{user}: {detail}"));
    }
    table
}

fn add(table: &mut Table, what: &str, value: Cell, subject: Subject, detail: String) {
    let cells = vec![Cell::Text(what.into()), value, Cell::id(subject.connection), Cell::Text(detail)];
    let id = format!("{what} {:?}", subject);
    table.rows.push(Row { id, cells, subject });
}

fn blockers(moment: &Moment<'_>, table: &mut Table) {
    let all = chains(moment.now);
    let roots: Vec<_> = all.iter().filter(|link| link.depth == 0).collect();
    for link in roots.iter().take(CHAINS) {
        let connection = match link.party {
            crate::chains::Party::Connection(id) => Some(id),
            _ => None,
        };
        let kill = kill(moment.now, link.party);
        let detail = match &kill {
            Some(kill) => format!("{} wait, at last, for {}: {kill}", link.behind, name(link.party)),
            None => format!("{} wait for somebody whom the server does not name", link.behind),
        };
        let subject = Subject { connection, statement: kill.filter(|_| connection.is_none()) };
        add(table, "in the way", Cell::Number(link.behind as f64, Unit::Count), subject, detail);
    }
    if roots.len() > CHAINS {
        let others = (roots.len() - CHAINS) as f64;
        add(
            table,
            "others in the way",
            Cell::Number(others, Unit::Count),
            Subject::default(),
            "3 shows all".into(),
        );
    }
}

fn snapshot(moment: &Moment<'_>, table: &mut Table) {
    let now = moment.now;
    if let Some(row) = now.first(Part::Snapshots) {
        let bytes = row.number("MEMORY_BYTES").unwrap_or(0.0) + row.number("SPILLED_BYTES").unwrap_or(0.0);
        let versions = row.number("VERSIONS").unwrap_or(0.0);
        let detail = format!(
            "{} of {} old versions are kept for it ({})",
            shown(bytes, Unit::Bytes),
            shown(versions, Unit::Count),
            row.text("STATE").unwrap_or_default()
        );
        let age = Cell::number(row.number("AGE_SECONDS"), Unit::Seconds);
        add(table, "oldest snapshot", age, Subject::of(row.id("CONNECTION_ID")), detail);
    } else if let Some(age) = now.status("teak_snapshot_oldest_seconds").filter(|age| *age > 0.0) {
        let detail = "whose it is, only who has PROCESS sees".into();
        add(table, "oldest snapshot", Cell::Number(age, Unit::Seconds), Subject::default(), detail);
    }
}

fn replicas(moment: &Moment<'_>, table: &mut Table) {
    for row in moment.now.records(Part::Replicas) {
        let lag = Cell::number(row.number("Seconds_Behind_Master"), Unit::Seconds);
        let (name, host) =
            (row.text("Connection_name").unwrap_or_default(), row.text("Master_Host").unwrap_or_default());
        let detail = format!("of {host}: {}", replica_state(row).unwrap_or("stopped"));
        add(table, &format!("replica {name}"), lag, Subject::default(), detail);
    }
}

/// The engine's numbers that have a limit.
fn engine(moment: &Moment<'_>, table: &mut Table) {
    let (now, header) = (moment.now, moment.header());
    let bytes = |name: &str| shown(now.status(name).unwrap_or(0.0), Unit::Bytes);
    if !now.has_teak() {
        return;
    }
    let detail = format!(
        "{} of log since the last one; writes wait at {}, and have {} times",
        bytes("teak_checkpoint_age"),
        bytes("teak_checkpoint_max_age"),
        shown(now.status("teak_checkpoint_waits").unwrap_or(0.0), Unit::Count)
    );
    add(table, "checkpoint", Cell::number(header.checkpoint, Unit::Share), Subject::default(), detail);
    let detail = format!(
        "of {}; {} of pages asked for were there",
        bytes("teak_cache_bytes_budget"),
        header.cache_hits.map_or("-".into(), |hits| shown(hits, Unit::Share)),
    );
    add(table, "cache", Cell::number(header.cache_bytes, Unit::Bytes), Subject::default(), detail);
    let detail = format!(
        "the process; engine {}, all else {}",
        bytes("teak_cache_bytes_used"),
        bytes("teak_memory_rest"),
    );
    add(table, "memory", Cell::number(header.memory_bytes, Unit::Bytes), Subject::default(), detail);
}
