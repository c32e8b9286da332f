//! `teak archive put`, `get`, `stat`, `change`, `rm`.

use super::{changing, folders, name, of_file, open, open_for_many, values, ArchiveError};
use clap::Args;
use serde_json::{json, Map, Value as Json};
use std::fs::File;
use std::io::{BufWriter, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;
use teak_archive::{Archive, Metadata, Name, Oid, Record, Schema, Stored, Value};
use teak_console::signals;

#[derive(Args, Debug)]
pub(super) struct Put {
    /// The archive
    path: PathBuf,
    /// What to store; `-` is standard input
    #[arg(required = true)]
    files: Vec<PathBuf>,
    /// Metadata of each: a field of the schema and its value; of a list, one of its values
    #[arg(long, value_name = "FIELD=VALUE", value_parser = values::field)]
    meta: Vec<(String, String)>,
    /// Store all files below directories, with `system.path`; links are passed over
    #[arg(long, short)]
    recursive: bool,
    /// Print the OID and the name of the data as a JSON object
    #[arg(long)]
    json: bool,
}

#[derive(Args, Debug)]
pub(super) struct Get {
    /// The archive
    path: PathBuf,
    /// An OID, or b3: and a hash
    object: String,
    /// Write to this file, which must not be there
    #[arg(long, short)]
    output: Option<PathBuf>,
    /// Some bytes only: FROM-TO, with both, FROM-, or the last -COUNT
    #[arg(long, allow_hyphen_values = true)]
    range: Option<String>,
}

#[derive(Args, Debug)]
pub(super) struct Show {
    /// The archive
    path: PathBuf,
    /// An OID, or b3: and a hash
    object: String,
    /// As a JSON object
    #[arg(long)]
    json: bool,
    /// An older version of the record
    #[arg(long)]
    version: Option<u64>,
}

#[derive(Args, Debug)]
pub(super) struct Change {
    /// The archive
    path: PathBuf,
    /// The record
    oid: String,
    /// A field and its value
    #[arg(long, value_name = "FIELD=VALUE", value_parser = values::field)]
    meta: Vec<(String, String)>,
    /// A field that is to go
    #[arg(long, value_name = "FIELD")]
    unset: Vec<String>,
}

#[derive(Args, Debug)]
pub(super) struct Remove {
    /// The archive
    path: PathBuf,
    /// The records
    #[arg(required = true)]
    oids: Vec<String>,
}

/// OIDs are told when all before are durable: after so many.
const AT_ONCE: usize = 100;

pub(super) fn put(put: &Put, out: &mut dyn Write) -> Result<(), ArchiveError> {
    let archive = open_for_many(&put.path)?;
    let mut stored = Vec::new();
    let done = put.files.iter().try_for_each(|path| {
        let metadata = values::metadata(&put.meta, &[]);
        if put.recursive && path.is_dir() {
            return folders::walk(path, &mut |file, below| {
                let mut metadata = metadata.clone();
                metadata.text("system.path", below);
                stored.push(put_one(&archive, file, metadata)?);
                told(&archive, &mut stored, AT_ONCE, put.json, out)
            });
        }
        stored.push(put_one(&archive, path, metadata)?);
        told(&archive, &mut stored, AT_ONCE, put.json, out)
    });
    // Also what was stored before something failed.
    told(&archive, &mut stored, 1, put.json, out)?;
    archive.close()?;
    done
}

/// Tells what is stored, once it is so many, and durable.
fn told(
    archive: &Archive,
    stored: &mut Vec<Stored>,
    at_once: usize,
    as_json: bool,
    out: &mut dyn Write,
) -> Result<(), ArchiveError> {
    if stored.len() < at_once {
        return Ok(());
    }
    archive.sync()?;
    for one in stored.drain(..) {
        let (oid, data) = (one.oid.to_string(), one.data.to_string());
        match as_json {
            true => writeln!(out, "{}", json!({ "oid": oid, "data": data, "size": one.size }))?,
            false => writeln!(out, "{oid}")?,
        }
    }
    Ok(out.flush()?)
}

/// Stores a file, or standard input.
pub(super) fn put_one(archive: &Archive, path: &Path, metadata: Metadata) -> Result<Stored, ArchiveError> {
    match path.as_os_str() == "-" {
        true => Ok(archive.put(&mut Ending(signals::Input::open()?), &metadata)?),
        false => put_file(archive, path, metadata),
    }
}

/// With the file's name and time, unless something else is given for them.
fn put_file(archive: &Archive, path: &Path, mut metadata: Metadata) -> Result<Stored, ArchiveError> {
    let file = File::open(path).map_err(of_file(path))?;
    let about = file.metadata().map_err(of_file(path))?;
    if about.is_dir() {
        return Err(ArchiveError::Usage(format!(
            "{} is a directory: --recursive stores what is in it",
            path.display()
        )));
    }
    let schema = archive.schema();
    if let Some(name) = path.file_name().filter(|_| metadata.lacks(&schema, "file.name")) {
        metadata.text("file.name", name.to_string_lossy());
    }
    if metadata.lacks(&schema, "file.modified") {
        let modified = about.modified().map_err(of_file(path))?;
        let micros =
            modified.duration_since(UNIX_EPOCH).ok().and_then(|since| i64::try_from(since.as_micros()).ok());
        if let Some(micros) = micros {
            metadata.value("file.modified", Value::Timestamp(micros));
        }
    }
    Ok(archive.put(&mut Ending(file), &metadata)?)
}

/// Ends with an error when the command is interrupted.
struct Ending<R>(R);

impl<R: Read> Read for Ending<R> {
    fn read(&mut self, buf: &mut [u8]) -> std::io::Result<usize> {
        let read = self.0.read(buf)?;
        match signals::interrupted() {
            true => Err(std::io::Error::other("interrupted")),
            false => Ok(read),
        }
    }
}

pub(super) fn get(get: &Get, out: &mut dyn Write) -> Result<(), ArchiveError> {
    let archive = open(&get.path)?;
    let name = name(&get.object)?;
    let size = archive.stat(name)?.size;
    let range = get.range.as_ref().map(|range| values::range(range, size)).transpose()?;
    let Some(path) = &get.output else {
        archive.get(name, range, out)?;
        return Ok(out.flush()?);
    };
    let file = File::options().write(true).create_new(true).mode(0o640).open(path).map_err(of_file(path))?;
    let mut file = BufWriter::with_capacity(1 << 20, file);
    let written = archive.get(name, range, &mut file).map_err(ArchiveError::from);
    let written = written.and_then(|_| file.flush().map_err(of_file(path)));
    if written.is_err() {
        // Half of a file is not what was asked for.
        let _ = std::fs::remove_file(path);
    }
    written
}

pub(super) fn stat(show: &Show, out: &mut dyn Write) -> Result<(), ArchiveError> {
    let archive = open(&show.path)?;
    let name = name(&show.object)?;
    let stat = archive.stat(name)?;
    let schema = archive.schema();
    let mut all = Map::new();
    let mut add = |key: &str, value: Json| drop(all.insert(key.to_string(), value));
    if let Some(newest) = &stat.record {
        let record = match show.version {
            Some(version) => archive.version(newest.oid, version)?,
            None => newest.clone(),
        };
        record_json(&record, &schema).into_iter().for_each(|(key, value)| add(&key, value));
        add("versions", archive.versions(newest.oid)?.into());
        add("protected", reason(&newest.protection, &archive));
    } else {
        add("system.data", stat.data.to_string().into());
        add("system.size", stat.size.into());
    }
    add("data.protected", reason(&stat.protection, &archive));
    add("data.records", stat.records.iter().map(Oid::to_string).collect());
    add("data.orphaned", stat.orphaned.map_or(Json::Null, |since| Value::Timestamp(since).to_json()));
    if show.json {
        return Ok(writeln!(out, "{}", Json::Object(all))?);
    }
    for (key, value) in all.iter().filter(|(_, value)| !value.is_null()) {
        match value {
            Json::String(text) => writeln!(out, "{key}\t{}", text.escape_debug())?,
            value => writeln!(out, "{key}\t{value}")?,
        }
    }
    Ok(())
}

fn reason(protection: &teak_archive::Protection, archive: &Archive) -> Json {
    protection.reason(archive.now()).map_or(Json::Null, Json::String)
}

/// The fields of a record.
pub(super) fn record_json(record: &Record, schema: &Schema) -> Map<String, Json> {
    record.fields(schema).into_iter().map(|(name, value)| (name.to_string(), value.to_json())).collect()
}

pub(super) fn change(change: &Change, out: &mut dyn Write) -> Result<(), ArchiveError> {
    let oid = oid(&change.oid)?;
    changing(&change.path, |archive| {
        let version = archive.update(oid, &values::metadata(&change.meta, &change.unset))?;
        Ok(writeln!(out, "{version}")?)
    })
}

pub(super) fn remove(remove: &Remove) -> Result<(), ArchiveError> {
    let oids = remove.oids.iter().map(|text| oid(text)).collect::<Result<Vec<_>, _>>()?;
    changing(&remove.path, |archive| oids.iter().try_for_each(|oid| Ok(archive.remove(*oid)?)))
}

fn oid(text: &str) -> Result<Oid, ArchiveError> {
    match name(text)? {
        Name::Record(oid) => Ok(oid),
        Name::Data(_) => {
            Err(ArchiveError::Usage(format!("{text} is data; an OID is expected, that of a record")))
        }
    }
}
