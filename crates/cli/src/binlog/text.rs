//! Events for people: a line for each, and below it, indented, statement and rows.

use super::event_json::{change_name, statement, Where};
use super::json::bytes;
use super::value_json;
use teak_binlog::{Body, Compression, Event, Rows, Timestamp};

/// An event; `file` is told if it is another one than that of the event before.
pub fn block(at: &Where<'_>, event: &Event<'_>, is_new_file: bool) -> Result<String, teak_binlog::Error> {
    let header = &event.header;
    let mut out = if is_new_file { format!("{}\n", at.file) } else { String::new() };
    let time = Timestamp { seconds: header.time, ..Timestamp::default() };
    let position = event.place.position;
    let end = at.end.map_or("in payload".to_string(), |end| end.to_string());
    let name = header.kind().map_or("unknown", |kind| kind.name());
    out.push_str(&format!("{position}..{end} {time} server {} {name}", header.server_id));
    let (head, below) = parts(&event.body)?;
    for word in head {
        out.push(' ');
        out.push_str(&word);
    }
    out.push('\n');
    for line in below {
        out.push_str("  ");
        out.push_str(&line);
        out.push('\n');
    }
    Ok(out)
}

/// What stands in the first line, and what below it.
fn parts(body: &Body<'_>) -> Result<(Vec<String>, Vec<String>), teak_binlog::Error> {
    let mut below = Vec::new();
    let head = match body {
        Body::FormatDescription(format) => vec![
            format.server_version.clone(),
            if format.checksum.bytes() > 0 { "crc32".into() } else { "no checksums".into() },
        ],
        Body::Query(query) => {
            below.push(statement(query));
            let compressed = query.was_compressed.then(|| "compressed".to_string());
            [bytes(query.database)].into_iter().chain(compressed).collect()
        }
        Body::ExecuteLoadQuery(load) => {
            below.push(statement(&load.query));
            vec![bytes(load.query.database), format!("file {}", load.file_id)]
        }
        Body::RowsQuery(statement) => {
            below.push(bytes(statement));
            Vec::new()
        }
        Body::TableMap(table) => {
            let column = |at: usize| {
                let kind = table.columns.get(at).map(|column| column.sql_type());
                format!("{} {}", table.column_name(at), kind.unwrap_or_default())
            };
            below.push((0..table.columns.len()).map(column).collect::<Vec<_>>().join(", "));
            vec![table.quoted_name(), format!("id {}", table.id)]
        }
        Body::Rows(rows) => rows_head(rows, &mut below)?,
        Body::RowsPart(part, whole) => {
            let mut head = vec![format!("{} of {}", part.part, part.parts)];
            if let Some(rows) = whole {
                head.extend(rows_head(rows, &mut below)?);
            }
            head
        }
        _ => small(body),
    };
    Ok((head, below))
}

/// Those without anything below.
fn small(body: &Body<'_>) -> Vec<String> {
    let words = |words: Vec<&str>| words.into_iter().map(str::to_string).collect::<Vec<_>>();
    match body {
        Body::Rotate(rotate) => vec![format!("to {} {}", bytes(rotate.file), rotate.position)],
        Body::Incident(incident) => vec![incident.number.to_string(), bytes(incident.message)],
        Body::Heartbeat(heartbeat) => vec![bytes(heartbeat.file)],
        Body::Intvar(intvar) => {
            let name = if intvar.kind == 1 { "last_insert_id" } else { "insert_id" };
            vec![format!("{name} {}", intvar.value)]
        }
        Body::Rand(rand) => vec![rand.seeds.0.to_string(), rand.seeds.1.to_string()],
        Body::UserVar(variable) => vec![bytes(variable.name)],
        Body::BeginLoadQuery(block) | Body::AppendBlock(block) => {
            vec![format!("file {}, {} bytes", block.file_id, block.data.len())]
        }
        Body::DeleteFile(block) => vec![format!("file {}", block.file_id)],
        Body::Xid(xid) => vec![xid.to_string()],
        Body::XaPrepare(prepare) => vec![prepare.xid.to_string()],
        Body::MariaDbGtid(transaction) => {
            let mut head = vec![transaction.gtid.to_string()];
            head.extend(words(transaction.flag_names()));
            head.extend(transaction.xid.map(|xid| xid.to_string()));
            head
        }
        Body::MySqlGtid(transaction) => transaction.gtid.iter().map(|gtid| gtid.to_string()).collect(),
        Body::MariaDbGtidList(list) => {
            let gtids: Vec<String> = list.gtids.iter().map(|gtid| gtid.to_string()).collect();
            vec![gtids.join(",")]
        }
        Body::PreviousGtids(set) => vec![set.to_string()],
        Body::BinlogCheckpoint(file) => vec![bytes(file)],
        Body::StartEncryption(start) => vec![format!("key version {}", start.key_version)],
        Body::TransactionPayload(payload) => {
            let compression = if payload.compression == Compression::Zstd { "zstd" } else { "plain" };
            vec![format!("{compression}, {} bytes", payload.data.len())]
        }
        Body::LargeTransaction(large) => vec![format!("to {}", large.last_event_at)],
        Body::OldLoad(body) | Body::Other(body) => vec![format!("{} bytes", body.len())],
        _ => Vec::new(),
    }
}

fn rows_head(rows: &Rows<'_>, below: &mut Vec<String>) -> Result<Vec<String>, teak_binlog::Error> {
    for row in rows {
        let row = row?;
        for (sign, image) in [('-', &row.old), ('+', &row.new)] {
            if let Some(image) = image {
                below.push(format!("{sign} {}", value_json::image(rows, image)?));
            }
        }
    }
    let flags = rows.flag_names().into_iter().map(str::to_string);
    Ok([rows.table.quoted_name(), change_name(rows.change).to_string()].into_iter().chain(flags).collect())
}
