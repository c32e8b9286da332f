//! Events in JSON: what all have first, then what they say.

use super::json::{bytes, hex, list, string, Object};
use super::value_json;
use teak_binlog::{
    character_set, to_utf8, Body, Change, Column, Compression, Event, Family, Format, MariaDbTransaction,
    MySqlTransaction, Query, Rows, Session, Table, UserVar,
};

/// Where an event is, as the output tells it.
pub struct Where<'a> {
    /// The log.
    pub file: &'a str,
    /// Where the next event begins. None of an event that came out of a compressed transaction, whose position it has.
    pub end: Option<u64>,
}

/// An event in one line.
pub fn line(at: &Where<'_>, event: &Event<'_>) -> Result<String, teak_binlog::Error> {
    let (header, mut object) = (&event.header, Object::new());
    object.text("file", at.file).plain("position", event.place.position);
    match at.end {
        None => object.plain("in_payload", true),
        Some(end) => object.plain("end", end),
    };
    match header.kind() {
        Some(kind) => object.text("event", kind.name()),
        None => object.text("event", "unknown"),
    };
    object.plain("code", header.code).plain("time", header.time).plain("server_id", header.server_id);
    let flags: Vec<String> = header.flags.names().map(string).collect();
    object.raw("flags", &list(flags));
    if let Some(checksum) = event.checksum {
        object.text("checksum", format!("{checksum:08x}"));
    }
    body(&mut object, &event.body)?;
    Ok(object.finish())
}

fn body(object: &mut Object, body: &Body<'_>) -> Result<(), teak_binlog::Error> {
    match body {
        Body::Rows(rows) => return rows_members(object, rows),
        Body::RowsPart(part, whole) => {
            object.plain("part", part.part).plain("parts", part.parts);
            return whole.as_ref().map_or(Ok(()), |rows| rows_members(object, rows));
        }
        Body::FormatDescription(format) => format_members(object, format),
        Body::Query(query) => query_members(object, query),
        Body::ExecuteLoadQuery(load) => {
            object.plain("file_id", load.file_id).plain("duplicates", load.duplicates);
            object.raw("name_at", &format!("[{},{}]", load.name_at.0, load.name_at.1));
            query_members(object, &load.query);
        }
        Body::TableMap(table) => table_members(object, table),
        Body::MariaDbGtid(transaction) => mariadb_members(object, transaction),
        Body::MySqlGtid(transaction) => mysql_members(object, transaction),
        _ => small_body(object, body),
    }
    Ok(())
}

/// Those with few members.
fn small_body(object: &mut Object, body: &Body<'_>) {
    match body {
        Body::Rotate(rotate) => {
            object.bytes("next_file", rotate.file).plain("next_position", rotate.position);
        }
        Body::Incident(incident) => {
            object.plain("number", incident.number).bytes("message", incident.message);
        }
        Body::Heartbeat(heartbeat) => {
            object.bytes("sent_file", heartbeat.file).plain_if("sent_position", heartbeat.position);
        }
        Body::Intvar(intvar) => {
            let name = if intvar.kind == 1 { "last_insert_id" } else { "insert_id" };
            object.plain(name, intvar.value);
        }
        Body::Rand(rand) => {
            object.raw("seeds", &format!("[{},{}]", rand.seeds.0, rand.seeds.1));
        }
        Body::UserVar(variable) => user_var_members(object, variable),
        Body::BeginLoadQuery(block) | Body::AppendBlock(block) => {
            object.plain("file_id", block.file_id).raw("data", &hex(block.data));
        }
        Body::DeleteFile(block) => {
            object.plain("file_id", block.file_id);
        }
        Body::Xid(xid) => {
            object.plain("xid", xid);
        }
        Body::XaPrepare(prepare) => {
            object.text("xid", prepare.xid).plain("one_phase", prepare.one_phase);
        }
        Body::RowsQuery(statement) => {
            object.bytes("statement", statement);
        }
        Body::MariaDbGtidList(list_of) => {
            object.plain("list_flags", list_of.flags);
            object.raw("gtids", &list(list_of.gtids.iter().map(|gtid| string(&gtid.to_string()))));
        }
        Body::BinlogCheckpoint(file) => {
            object.bytes("checkpoint_file", file);
        }
        Body::StartEncryption(start) => {
            object.plain("scheme", start.scheme).plain("key_version", start.key_version);
        }
        Body::PreviousGtids(set) => {
            object.text("gtids", set);
        }
        Body::TransactionPayload(payload) => {
            let compression = if payload.compression == Compression::Zstd { "zstd" } else { "none" };
            object.text("compression", compression).plain("bytes", payload.data.len());
            object.plain_if("uncompressed_bytes", payload.uncompressed_bytes);
        }
        Body::LargeTransaction(large) => {
            object
                .plain("last_event_at", large.last_event_at)
                .plain("last_event_code", large.last_event_code);
        }
        Body::OldLoad(body) | Body::Other(body) => {
            object.raw("body", &hex(body));
        }
        // Of the others all was told, or is told elsewhere.
        _ => (),
    }
}

fn format_members(object: &mut Object, format: &Format) {
    let family = if format.family == Family::MariaDb { "mariadb" } else { "mysql" };
    object.text("server_version", &format.server_version).text("family", family);
    object.plain("version", format.version).plain("created", format.created);
    object.plain("checksums", format.checksum.bytes() > 0);
}

fn user_var_members(object: &mut Object, variable: &UserVar<'_>) {
    object.bytes("name", variable.name);
    match &variable.value {
        None => object.raw("value", "null"),
        Some(value) => {
            let kind = ["string", "double", "integer", "row", "decimal"].get(usize::from(value.kind));
            object.text_if("type", kind).plain("collation", value.collation);
            object.plain("unsigned", value.flags & 1 != 0).raw("value", &hex(value.bytes))
        }
    };
}

/// A statement in the character set of its client.
pub fn statement(query: &Query<'_>) -> String {
    let set = query.session.collations.and_then(|[client, ..]| character_set(client.into()));
    match set {
        None | Some("binary") => bytes(&query.statement),
        Some(set) => {
            to_utf8(set, &query.statement).map_or_else(|| hex(&query.statement), |text| string(&text))
        }
    }
}

fn query_members(object: &mut Object, query: &Query<'_>) {
    object.bytes("database", query.database).raw("statement", &statement(query));
    object
        .plain("thread_id", query.thread_id)
        .plain("seconds", query.seconds)
        .plain("error", query.error_code);
    let mut session = Object::new();
    session_members(&mut session, &query.session);
    object.raw("session", &session.finish());
}

fn session_members(object: &mut Object, session: &Session<'_>) {
    object.plain_if("flags", session.flags).plain_if("sql_mode", session.sql_mode);
    if let Some((increment, offset)) = session.auto_increment {
        object.raw("auto_increment", &format!("[{increment},{offset}]"));
    }
    if let Some(collations) = session.collations {
        object.raw("collations", &list(collations.map(|collation| collation.to_string())));
    }
    if let Some(zone) = session.time_zone {
        object.bytes("time_zone", zone);
    }
    object.plain_if("lc_time_names", session.time_names);
    object.plain_if("database_collation", session.database_collation);
    object.plain_if("updated_tables", session.updated_tables);
    if let Some((user, host)) = session.invoker {
        object.raw("invoker", &list([bytes(user), bytes(host)]));
    }
    if let Some(databases) = &session.databases {
        object.raw("databases", &list(databases.iter().map(|name| bytes(name))));
    }
    object.plain_if("microseconds", session.microseconds).plain_if("xid", session.xid);
    object.plain_if("explicit_defaults_for_timestamp", session.explicit_timestamp_defaults);
    object.plain_if("utf8mb4_collation", session.utf8mb4_collation);
    object.plain_if("sql_require_primary_key", session.requires_primary_key);
    object.plain_if("default_table_encryption", session.table_encryption);
    if let Some((flags, begun)) = session.alter {
        object.plain("alter_flags", flags).plain_if("alter_sequence", begun);
    }
    if !session.unknown.is_empty() {
        object.raw("unknown", &hex(session.unknown));
    }
}

fn mariadb_members(object: &mut Object, transaction: &MariaDbTransaction) {
    object.text("gtid", transaction.gtid);
    object.raw("transaction", &list(transaction.flag_names().into_iter().map(string)));
    object.plain_if("commit_id", transaction.commit_id).text_if("xid", transaction.xid);
    object.plain_if("extra_engines", transaction.extra_engines);
    object
        .plain_if("alter_sequence", transaction.alter_sequence)
        .plain_if("thread_id", transaction.thread_id);
}

fn mysql_members(object: &mut Object, transaction: &MySqlTransaction) {
    object.text_if("gtid", transaction.gtid.as_ref());
    object.plain("may_have_statements", transaction.flags & 1 != 0);
    object.plain("last_committed", transaction.last_committed);
    object.plain("sequence_number", transaction.sequence_number);
    object.plain_if("immediate_commit_time", transaction.immediate_commit_time);
    object.plain_if("original_commit_time", transaction.original_commit_time);
    object.plain_if("transaction_bytes", transaction.transaction_bytes);
    object.plain_if("immediate_server_version", transaction.immediate_server_version);
    object.plain_if("original_server_version", transaction.original_server_version);
    object.plain_if("commit_group_ticket", transaction.commit_group_ticket);
}

fn table_members(object: &mut Object, table: &Table) {
    object.plain("table_id", table.id).text("database", &table.database).text("table", &table.name);
    object.raw("columns", &list(table.columns.iter().map(column)));
    if let Some(key) = &table.primary_key {
        let parts = key.iter().map(|part| {
            let mut object = Object::new();
            object.plain("column", part.column + 1);
            if part.prefix_characters > 0 {
                object.plain("prefix", part.prefix_characters);
            }
            object.finish()
        });
        object.raw("primary_key", &list(parts));
    }
}

fn column(column: &Column) -> String {
    let mut object = Object::new();
    object.text_if("name", column.name.as_ref()).text("type", column.sql_type());
    object.plain("nullable", column.is_nullable).plain_if("unsigned", column.is_unsigned);
    object.plain_if("collation", column.collation);
    object.text_if("charset", column.collation.and_then(character_set));
    if let Some(members) = &column.members {
        object.raw("members", &list(members.iter().map(|text| value_json::of_column(column, text))));
    }
    object.plain_if("geometry_type", column.geometry_type).plain_if("dimensions", column.dimensions);
    object.plain_if("visible", column.is_visible);
    object.finish()
}

/// What happened to rows, in a word.
pub fn change_name(change: Change) -> &'static str {
    match change {
        Change::Write => "write",
        Change::Update => "update",
        Change::Delete => "delete",
    }
}

fn rows_members(object: &mut Object, rows: &Rows<'_>) -> Result<(), teak_binlog::Error> {
    object
        .plain("table_id", rows.table.id)
        .text("database", &rows.table.database)
        .text("table", &rows.table.name);
    object.text("change", change_name(rows.change));
    object.raw("rows_flags", &list(rows.flag_names().into_iter().map(string)));
    if let Some((partition, from)) = rows.partition {
        object.plain("partition", partition).plain_if("from_partition", from);
    }
    object.raw("rows", &value_json::rows(rows)?);
    Ok(())
}
