//! `teak archive query`.

use super::{objects::record_json, open, ArchiveError};
use clap::Args;
use std::io::{BufWriter, Write};
use std::path::PathBuf;
use teak_archive::{Direction, Query};
use teak_console::{signals, terminal};

#[derive(Args, Debug)]
pub(super) struct Asked {
    /// The archive
    path: PathBuf,
    /// Such as: artist = 'Bach' and (year < 1750 or not title like '%minor%'); empty: all records
    expression: String,
    /// Fields to sort by, with `:desc` behind one the greatest first
    #[arg(long, value_name = "FIELD", value_delimiter = ',')]
    order: Vec<String>,
    /// So many at most; if there may be more, a message says how to go on
    #[arg(long)]
    limit: Option<u64>,
    /// Go on behind the last one of an earlier answer
    #[arg(long)]
    cursor: Option<String>,
    /// Print these fields, separated by tabs, and not the OID
    #[arg(long, value_name = "FIELD", value_delimiter = ',')]
    fields: Vec<String>,
    /// Print a JSON object with all fields, or with the chosen ones, for each record
    #[arg(long)]
    json: bool,
    /// Print which index answers it, and no records
    #[arg(long)]
    explain: bool,
}

pub(super) fn query(asked: &Asked, out: &mut dyn Write) -> Result<(), ArchiveError> {
    let archive = open(&asked.path)?;
    let order = asked.order.iter().map(|field| match field.strip_suffix(":desc") {
        Some(field) => (field.to_string(), Direction::Descending),
        None => (field.to_string(), Direction::Ascending),
    });
    let query = Query {
        expression: asked.expression.clone(),
        order: order.collect(),
        limit: asked.limit,
        cursor: asked.cursor.clone(),
    };
    if asked.explain {
        return Ok(archive.explain(&query)?.iter().try_for_each(|line| writeln!(out, "{line}"))?);
    }
    let schema = archive.schema();
    let chosen = asked.fields.iter().map(|name| Ok(&*schema.field(name)?.name));
    let chosen = chosen.collect::<Result<Vec<&str>, ArchiveError>>()?;
    let mut out = BufWriter::new(out);
    let mut unwritten = None;
    let cursor = archive.query(&query, &mut |record| {
        let written = if asked.json {
            let mut all = record_json(record, &schema);
            all.retain(|name, _| chosen.is_empty() || chosen.contains(&&**name));
            writeln!(out, "{}", serde_json::Value::Object(all))
        } else if chosen.is_empty() {
            writeln!(out, "{}", record.oid)
        } else {
            let fields = record.fields(&schema);
            let column = |name: &&str| {
                let value = fields.iter().find(|(of, _)| of == name);
                value.map_or(String::new(), |(_, value)| value.to_string().escape_debug().to_string())
            };
            writeln!(out, "{}", chosen.iter().map(column).collect::<Vec<_>>().join("\t"))
        };
        unwritten = written.err();
        Ok(unwritten.is_none() && !signals::interrupted())
    })?;
    if let Some(cause) = unwritten {
        return Err(cause.into());
    }
    out.flush()?;
    if let Some(cursor) = cursor {
        terminal::message(&format!("there may be more: --cursor {cursor}"));
    }
    Ok(())
}
