//! `/api/objects`: putting, getting, metadata, removal, protection.

use crate::asked::Asked;
use crate::checks::{Checked, Checks};
use crate::conditions::{failed, if_match, tag, wanted, Wanted};
use crate::dav::http_date;
use crate::incoming::{Cut, Source};
use crate::problem::Problem;
use crate::reply::Reply;
use crate::serve::Site;
use hyper::header::{
    HeaderName, ACCEPT_RANGES, CACHE_CONTROL, CONTENT_DISPOSITION, CONTENT_RANGE, CONTENT_SECURITY_POLICY,
    CONTENT_TYPE, ETAG, LAST_MODIFIED, LOCATION,
};
use hyper::{Method, StatusCode};
use serde::Deserialize;
use serde_json::{json, Map, Value as Json};
use std::io::Read;
use teak_archive::{
    Archive, Metadata, Name, Oid, Protecting, Protection, Record, Scalar, Schema, Stored, Value,
};

/// Metadata as a JSON object.
const METADATA: HeaderName = HeaderName::from_static("teak-metadata");
/// Of what is put, besides the bytes.
pub(crate) const PARAMETERS: [&str; 4] = ["meta", "data", "view", "path"];
/// What curl says of bytes if it is told nothing.
const OF_FORMS: &str = "application/x-www-form-urlencoded";

/// POST /api/objects
pub(crate) fn put(site: &Site, asked: &mut Asked, reply: &mut Reply) -> Result<(), Problem> {
    asked.only(&PARAMETERS)?;
    let metadata = metadata_of(asked, &site.archive)?;
    let checks = Checks::of(asked)?;
    let body = std::mem::replace(&mut asked.body, Source::whole(Vec::new()));
    let mut body = Checked::new(body, checks);
    let stored = store(&site.archive, &mut body, &metadata);
    let stored = stored.map_err(|problem| body.source().cut.map_or(problem, Cut::problem))?;
    tell_stored(&stored, reply);
    Ok(())
}

/// Stores bytes, if they are those that were meant.
pub(crate) fn store<R: Read>(
    archive: &Archive,
    source: &mut Checked<R>,
    metadata: &Metadata,
) -> Result<Stored, Problem> {
    let stored = archive.put(source, metadata);
    stored.map_err(|error| source.refused.take().unwrap_or_else(|| error.into()))
}

pub(crate) fn tell_stored(stored: &Stored, reply: &mut Reply) {
    let (oid, data) = (stored.oid.to_string(), stored.data.to_string());
    reply.status(StatusCode::CREATED);
    reply.header(LOCATION, &format!("/api/objects/{oid}"));
    reply.header(ETAG, &tag(stored.data));
    reply.json(&json!({ "oid": oid, "data": data, "size": stored.size, "was_there": stored.was_there }));
}

/// What a path of a view, parameters, the header and the type of the body say.
pub(crate) fn metadata_of(asked: &Asked, archive: &Archive) -> Result<Metadata, Problem> {
    let mut metadata = match (asked.one("view")?, asked.one("path")?) {
        (None, None) => Metadata::default(),
        (Some(view), Some(path)) => {
            archive.fields_of_path(view, path).map_err(|error| Problem::from(error).in_path())?
        }
        _ => return Err(Problem::of_field("path", "it goes with a view, and a view with it")),
    };
    for pair in asked.all("meta") {
        match pair.split_once('=') {
            Some((field, value)) if !field.is_empty() => metadata.text(field, value),
            _ => return Err(Problem::of_field("meta", "FIELD=VALUE is expected")),
        };
    }
    if let Some(header) = asked.headers.get(METADATA) {
        let given: Map<String, Json> = serde_json::from_slice(header.as_bytes()).map_err(|wrong| {
            Problem::of_field("Teak-Metadata", format!("a JSON object is expected: {wrong}"))
        })?;
        add_json(&mut metadata, &given)?;
    }
    if let Some(of) = content_type(asked).filter(|_| metadata.lacks(&archive.schema(), "system.content_type"))
    {
        metadata.text("system.content_type", of);
    }
    Ok(metadata)
}

/// What the body is said to be.
pub(crate) fn content_type(asked: &Asked) -> Option<&str> {
    asked.header(CONTENT_TYPE).filter(|of| !of.eq_ignore_ascii_case(OF_FORMS))
}

/// Fields by their values in JSON; `null` is none.
fn add_json(metadata: &mut Metadata, given: &Map<String, Json>) -> Result<(), Problem> {
    for (field, value) in given {
        let wrong = || Problem::of_field(field, "an object is no value of a field");
        let text = |value: &Json| match value {
            Json::String(text) => Some(text.clone()),
            Json::Number(_) | Json::Bool(_) => Some(value.to_string()),
            _ => None,
        };
        match value {
            Json::Null => drop(metadata.nothing(field)),
            Json::Array(values) if values.is_empty() => drop(metadata.value(field, Value::List(Vec::new()))),
            Json::Array(values) => {
                for value in values {
                    metadata.text(field, text(value).ok_or_else(wrong)?);
                }
            }
            value => drop(metadata.text(field, text(value).ok_or_else(wrong)?)),
        }
    }
    Ok(())
}

/// GET /api/objects/{name}
pub(crate) fn get(site: &Site, asked: &mut Asked, reply: &mut Reply) -> Result<(), Problem> {
    asked.only(&[])?;
    send(site, asked, asked.name()?, reply)
}

/// GET /api/views/{view}/file
pub(crate) fn file(site: &Site, asked: &mut Asked, reply: &mut Reply) -> Result<(), Problem> {
    asked.only(&["path"])?;
    let oid = site.archive.find_in_view(&asked.segments[0], asked.one("path")?.unwrap_or_default())?;
    send(site, asked, Name::Record(oid), reply)
}

pub(crate) fn send(site: &Site, asked: &Asked, name: Name, reply: &mut Reply) -> Result<(), Problem> {
    let stat = site.archive.stat(name)?;
    let tag = tag(stat.data);
    let wanted = wanted(asked, &tag, stat.size)?;
    reply.header(ETAG, &tag);
    // Whoever asks again is told whether it is there still, which costs no bytes.
    reply.header(CACHE_CONTROL, "private, no-cache");
    if wanted == Wanted::NotModified {
        reply.status(StatusCode::NOT_MODIFIED);
        return Ok(());
    }
    describe(site, stat.record.as_ref(), reply);
    match wanted {
        Wanted::Part(from, to) => {
            reply.status(StatusCode::PARTIAL_CONTENT);
            reply.header(CONTENT_RANGE, &format!("bytes {from}-{}/{}", to - 1, stat.size));
            reply.length(to - from);
        }
        _ => reply.length(stat.size),
    }
    if asked.method == Method::GET {
        site.archive.get(name, wanted.range(), reply)?;
    }
    Ok(())
}

/// Headers of an object. What somebody has put here is no page of this server: it runs no scripts in its name.
fn describe(site: &Site, record: Option<&Record>, reply: &mut Reply) {
    reply.header(ACCEPT_RANGES, "bytes");
    reply.header(CONTENT_TYPE, "application/octet-stream");
    reply.header(CONTENT_SECURITY_POLICY, "sandbox; default-src 'none'");
    let Some(record) = record else { return };
    if let Some(modified) = http_date(record.modified()) {
        reply.header(LAST_MODIFIED, &modified);
    }
    let schema = site.archive.schema();
    for (field, value) in record.fields(&schema) {
        match (field, value) {
            ("system.content_type", Value::String(of)) => reply.header(CONTENT_TYPE, &of),
            ("file.name", Value::String(name)) => {
                let encoded: String = name.bytes().map(encoded).collect();
                reply.header(CONTENT_DISPOSITION, &format!("inline; filename*=UTF-8''{encoded}"));
            }
            _ => {}
        }
    }
}

/// A byte of a value by RFC 8187.
fn encoded(byte: u8) -> String {
    match byte.is_ascii_alphanumeric() || b"-._".contains(&byte) {
        true => char::from(byte).to_string(),
        false => format!("%{byte:02X}"),
    }
}

/// DELETE /api/objects/{name}
pub(crate) fn remove(site: &Site, asked: &mut Asked, reply: &mut Reply) -> Result<(), Problem> {
    asked.only(&[])?;
    let oid = asked.oid()?;
    if let Some(tags) = if_match(asked) {
        // A record's data is never other data.
        if !tags.has(&tag(site.archive.record(oid)?.data)) {
            return Err(failed());
        }
    }
    site.archive.remove(oid)?;
    reply.status(StatusCode::NO_CONTENT);
    Ok(())
}

/// GET /api/objects/{name}/meta
pub(crate) fn metadata(site: &Site, asked: &mut Asked, reply: &mut Reply) -> Result<(), Problem> {
    asked.only(&["version"])?;
    let archive = &site.archive;
    let stat = archive.stat(asked.name()?)?;
    let schema = archive.schema();
    let version = asked.read::<u64>("version")?;
    let mut all = match (&stat.record, version) {
        (Some(newest), version) => {
            let record = match version {
                Some(version) => archive.version(newest.oid, version)?,
                None => newest.clone(),
            };
            reply.header(ETAG, &tag(record.version));
            let mut all = record_json(&record, &schema);
            all.insert("versions".into(), archive.versions(newest.oid)?.into());
            add_protection(&mut all, &newest.protection);
            all
        }
        (None, Some(_)) => return Err(Problem::of_field("version", "records have versions, data has none")),
        (None, None) => {
            let mut all = Map::new();
            all.insert("system.data".into(), stat.data.to_string().into());
            all.insert("system.size".into(), stat.size.into());
            all
        }
    };
    let mut data = Map::new();
    add_protection(&mut data, &stat.protection);
    data.insert("records".into(), stat.records.iter().map(Oid::to_string).collect());
    data.insert("orphaned".into(), stat.orphaned.map_or(Json::Null, moment));
    all.insert("data".into(), data.into());
    reply.json(&all.into());
    Ok(())
}

/// The fields of a record.
pub(crate) fn record_json(record: &Record, schema: &Schema) -> Map<String, Json> {
    record.fields(schema).into_iter().map(|(name, value)| (name.to_string(), value.to_json())).collect()
}

fn add_protection(to: &mut Map<String, Json>, protection: &Protection) {
    to.insert("holds".into(), protection.holds.clone().into());
    to.insert("retained_until".into(), protection.until.map_or(Json::Null, moment));
}

fn moment(micros: i64) -> Json {
    Value::Timestamp(micros).to_json()
}

/// PATCH /api/objects/{name}/meta
pub(crate) fn change(site: &Site, asked: &mut Asked, reply: &mut Reply) -> Result<(), Problem> {
    asked.only(&[])?;
    let oid = asked.oid()?;
    let mut metadata = Metadata::default();
    add_json(&mut metadata, &asked.json()?)?;
    let version = match if_match(asked) {
        None => site.archive.update(oid, &metadata)?,
        Some(tags) => {
            let present = site.archive.record(oid)?.version;
            if !tags.has(&tag(present)) {
                return Err(failed());
            }
            site.archive.update_version(oid, present, &metadata)?
        }
    };
    reply.header(ETAG, &tag(version));
    reply.json(&json!({ "version": version }));
    Ok(())
}

/// PUT and DELETE /api/objects/{name}/holds/{hold}
pub(crate) fn hold(site: &Site, asked: &mut Asked, reply: &mut Reply) -> Result<(), Problem> {
    asked.only(&[])?;
    let hold = asked.segments[1].clone();
    let what = match asked.method == Method::PUT {
        true => Protecting::Hold(hold),
        false => Protecting::Release(hold),
    };
    protect(site, asked.name()?, &what, reply)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Retention {
    until: String,
}

/// PUT /api/objects/{name}/retention
pub(crate) fn retain(site: &Site, asked: &mut Asked, reply: &mut Reply) -> Result<(), Problem> {
    asked.only(&[])?;
    let Retention { until } = asked.json()?;
    match Scalar::Timestamp.parse(&until) {
        Ok(Value::Timestamp(until)) => protect(site, asked.name()?, &Protecting::Retain(until), reply),
        _ => {
            Err(Problem::of_field("until", "a date is expected, or a timestamp such as 2030-01-31T12:00:00Z"))
        }
    }
}

fn protect(site: &Site, name: Name, what: &Protecting, reply: &mut Reply) -> Result<(), Problem> {
    site.archive.protect(name, what)?;
    reply.status(StatusCode::NO_CONTENT);
    Ok(())
}
