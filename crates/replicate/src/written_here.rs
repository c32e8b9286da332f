//! `teak replicate verify --target-log`: rows of the target's tables that are followed which somebody else has changed
//! there. The target's own log tells them by the server that they are of: with `gtid_domain_id` what is applied has the
//! source's number there (`target/origin.rs`), so that what has the target's own was written by others.

use crate::configuration::Configuration;
use crate::dump::{Asked, Beginning, Dump, DumpError};
use crate::keys;
use crate::routes::Name;
use crate::sides::SideError;
use crate::tables;
use crate::verify::VerifyError;
use std::collections::BTreeMap;
use std::io::Write;
use teak_binlog::{Body, Change, Rows};
use teak_client::{Connection, Error};
use teak_console::signals;

/// So many rows of a table are told one by one.
const TOLD: u64 = 100;

/// What is known of a table of the target.
struct Known {
    source: String,
    key: Option<Vec<(usize, String)>>,
    rows: u64,
}

/// Reads the target's log from a file on, or all of it.
pub fn show(
    configuration: &Configuration,
    from: Option<&str>,
    out: &mut dyn Write,
) -> Result<(), VerifyError> {
    signals::catch();
    let of_target = |error: Error| side("target", SideError::Target(error));
    let mut tables = followed(configuration)?;
    let plan = &configuration.target.settings;
    let mut target = plan.connect().map_err(of_target)?;
    let own = target.value("SELECT @@GLOBAL.server_id").map_err(of_target)?.unwrap_or_default();
    let beginning = from.map_or(Beginning::Oldest, |file| Beginning::File(file.into()));
    let asked = Asked { beginning, follow: false, server_id: None };
    let mut dump = Dump::begin(plan, &asked)?;
    let mut gtid = None;
    while let Some((sent, _)) = dump.receive()?.filter(|_| !signals::interrupted()) {
        match &sent.event.body {
            Body::MariaDbGtid(transaction) => {
                let is_own = sent.event.header.server_id.to_string() == own;
                gtid = is_own.then(|| transaction.gtid.to_string());
            }
            Body::Rows(rows) => {
                let name = (rows.table.database.to_string(), rows.table.name.to_string());
                if let (Some(gtid), Some(known)) = (&gtid, tables.get_mut(&name)) {
                    tell(known, rows, gtid, &mut target, out)?;
                }
            }
            _ => (),
        }
    }
    for ((database, table), known) in tables.iter().filter(|(_, known)| known.rows > TOLD) {
        let more = known.rows - TOLD;
        writeln!(out, "{}: `{database}`.`{table}`: {more} more rows", known.source)?;
    }
    match tables.values().map(|known| known.rows).sum() {
        0 => Ok(()),
        rows => Err(VerifyError::WrittenHere(rows)),
    }
}

fn side(name: &str, error: SideError) -> VerifyError {
    VerifyError::Side { source_name: name.into(), error }
}

/// The tables of the target that are followed now.
fn followed(configuration: &Configuration) -> Result<BTreeMap<Name, Known>, VerifyError> {
    let mut all = BTreeMap::new();
    for plan in &configuration.sources {
        if plan.gtid_domain_id.is_none() {
            return Err(VerifyError::NoOrigin(plan.name.clone()));
        }
        let of_source = |error: Error| side(&plan.name, SideError::Source(error));
        let follows =
            |database: &str, table: &str| plan.routes.follows_table(database.as_bytes(), table.as_bytes());
        let mut source = plan.settings.connect().map_err(of_source)?;
        for (database, table) in tables::all(&mut source, &follows).map_err(of_source)?.into_keys() {
            let known = Known { source: plan.name.clone(), key: None, rows: 0 };
            all.insert(plan.routes.names_of(&database, &table), known);
        }
    }
    Ok(all)
}

/// Names the rows of an event.
fn tell(
    known: &mut Known,
    rows: &Rows<'_>,
    gtid: &str,
    target: &mut Connection,
    out: &mut dyn Write,
) -> Result<(), VerifyError> {
    let table = rows.table.quoted_name();
    if known.key.is_none() {
        // By the key that it has now; that of the log may have been another one.
        known.key = keys::columns(target, &rows.table).ok();
    }
    let key = known.key.as_deref().unwrap_or_default();
    let done = match rows.change {
        Change::Write => "inserted",
        Change::Update => "changed",
        Change::Delete => "deleted",
    };
    for row in rows.iter() {
        let row = row.map_err(DumpError::Log)?;
        known.rows += 1;
        if known.rows <= TOLD {
            writeln!(out, "{}: {table}, {}: {done} in {gtid}", known.source, keys::shown(&row, key))?;
        }
    }
    Ok(())
}
