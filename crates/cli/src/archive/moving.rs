//! `teak archive export` and `import`: a directory of plain files.
//!
//! ```text
//! manifest.b3          as `b3sum` writes it, of all files of data: `b3sum -c manifest.b3` verifies them
//! schema.json          the schema, with views
//! records.jsonl        a JSON object a record: oid, data, created, changed, fields, holds, until
//! data/ab/abcd...      the bytes of each data, by the hexadecimal digits of its name
//! ```

use super::{of_file, open, open_for_many, ArchiveError};
use clap::Args;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value as Json};
use std::fs::File;
use std::io::{BufRead, BufReader, BufWriter, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use teak_archive::{
    Archive, Definition, Digest, Imported, Metadata, Name, Protection, Query, Record, Schema,
};
use teak_console::signals;

#[derive(Args, Debug)]
pub(super) struct Export {
    /// The archive
    path: PathBuf,
    /// A directory that is empty or missing
    directory: PathBuf,
    /// Which records; all, unless it is given
    #[arg(default_value = "")]
    expression: String,
}

#[derive(Args, Debug)]
pub(super) struct Import {
    /// The archive
    path: PathBuf,
    /// What an export has written
    directory: PathBuf,
}

/// A line of the file of records.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    oid: String,
    data: String,
    created: i64,
    changed: i64,
    fields: Map<String, Json>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    holds: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    until: Option<i64>,
}

const MANIFEST: &str = "manifest.b3";
const SCHEMA: &str = "schema.json";
const RECORDS: &str = "records.jsonl";
/// After so many records all are synced.
const AT_ONCE: u64 = 1000;

pub(super) fn export(export: &Export, out: &mut dyn Write) -> Result<(), ArchiveError> {
    let archive = open(&export.path)?;
    let dir = &export.directory;
    make_dir(dir)?;
    if std::fs::read_dir(dir).map_err(of_file(dir))?.next().is_some() {
        return Err(ArchiveError::Usage(format!("{} is not empty", dir.display())));
    }
    let schema = archive.schema();
    let text = serde_json::to_string_pretty(&Definition::of(&schema)).map_err(std::io::Error::from)?;
    create(&dir.join(SCHEMA))?.write_all(text.as_bytes()).map_err(of_file(&dir.join(SCHEMA)))?;
    let (manifest, records) = (dir.join(MANIFEST), dir.join(RECORDS));
    let mut manifest_file = BufWriter::new(create(&manifest)?);
    let mut records_file = BufWriter::new(create(&records)?);
    let mut failed = None;
    let (mut count, mut files) = (0u64, 0u64);
    let query = Query { expression: export.expression.clone(), ..Query::default() };
    archive.query(&query, &mut |record| {
        let mut written = || -> Result<(), ArchiveError> {
            if signals::interrupted() {
                return Err(ArchiveError::Usage("interrupted".into()));
            }
            let line = serde_json::to_string(&line_of(record, &schema)).map_err(std::io::Error::from)?;
            writeln!(records_file, "{line}").map_err(of_file(&records))?;
            let name = file_name(record.data);
            if write_data(&archive, record.data, &dir.join(&name))? {
                files += 1;
                writeln!(manifest_file, "{}  {name}", record.data.hex()).map_err(of_file(&manifest))?;
            }
            count += 1;
            Ok(())
        };
        failed = written().err();
        Ok(failed.is_none())
    })?;
    if let Some(error) = failed {
        return Err(error);
    }
    for (path, file) in [(&manifest, manifest_file), (&records, records_file)] {
        let file = file.into_inner().map_err(|error| of_file(path)(error.into_error()))?;
        file.sync_all().map_err(of_file(path))?;
    }
    Ok(writeln!(out, "{count} records, {files} files")?)
}

fn line_of(record: &Record, schema: &Schema) -> Line {
    let fields = record.fields(schema).into_iter();
    let own = fields.filter(|(name, _)| schema.field(name).is_ok_and(|field| !field.is_computed()));
    Line {
        oid: record.oid.to_string(),
        data: record.data.to_string(),
        created: record.created,
        changed: record.changed,
        fields: own.map(|(name, value)| (name.to_string(), value.to_json())).collect(),
        holds: record.protection.holds.clone(),
        until: record.protection.until,
    }
}

/// Where the bytes of data are.
fn file_name(data: Digest) -> String {
    let hex = data.hex();
    format!("data/{}/{hex}", &hex[..2])
}

/// Whether it was not there yet.
fn write_data(archive: &Archive, data: Digest, path: &Path) -> Result<bool, ArchiveError> {
    if path.exists() {
        return Ok(false);
    }
    path.ancestors().skip(1).take(2).collect::<Vec<_>>().into_iter().rev().try_for_each(make_dir)?;
    let mut file = BufWriter::with_capacity(1 << 20, create(path)?);
    archive.get(Name::Data(data), None, &mut file)?;
    file.flush().map_err(of_file(path))?;
    Ok(true)
}

fn create(path: &Path) -> Result<File, ArchiveError> {
    File::options().write(true).create_new(true).mode(0o640).open(path).map_err(of_file(path))
}

fn make_dir(path: &Path) -> Result<(), ArchiveError> {
    match std::fs::DirBuilder::new().mode(0o750).create(path) {
        Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => Err(of_file(path)(error)),
        _ => Ok(()),
    }
}

pub(super) fn import(import: &Import, out: &mut dyn Write) -> Result<(), ArchiveError> {
    let dir = &import.directory;
    let records = dir.join(RECORDS);
    let lines = BufReader::new(File::open(&records).map_err(of_file(&records))?);
    let archive = open_for_many(&import.path)?;
    adopt_schema(&archive, &dir.join(SCHEMA))?;
    let (mut count, mut known) = (0u64, 0u64);
    for (at, line) in lines.lines().enumerate() {
        if signals::interrupted() {
            return Err(ArchiveError::Usage("interrupted; a second import goes on".into()));
        }
        let line = line.map_err(of_file(&records))?;
        let wrong =
            |problem: String| ArchiveError::Usage(format!("{}:{}: {problem}", records.display(), at + 1));
        let line: Line = serde_json::from_str(&line).map_err(|problem| wrong(problem.to_string()))?;
        match import_line(&archive, dir, &line).map_err(|error| match error {
            ArchiveError::Archive(
                error @ (teak_archive::Error::Field { .. } | teak_archive::Error::Name(_)),
            ) => wrong(error.to_string()),
            error => error,
        })? {
            true => count += 1,
            false => known += 1,
        }
        if count % AT_ONCE == 0 {
            archive.sync()?;
        }
    }
    archive.sync()?;
    archive.close()?;
    Ok(writeln!(out, "{count} records, {known} were there")?)
}

/// The fields and indexes of the export are added; an archive that has others of their names keeps its own.
fn adopt_schema(archive: &Archive, path: &Path) -> Result<(), ArchiveError> {
    let text = std::fs::read_to_string(path).map_err(of_file(path))?;
    let (theirs, mut all) = (Definition::parse(&text)?, Definition::of(&archive.schema()));
    for (namespace, fields) in theirs.namespaces {
        let own = all.namespaces.entry(namespace).or_default();
        for (name, field) in fields {
            own.entry(name).or_insert(field);
        }
    }
    for index in theirs.indexes {
        if !all.indexes.contains(&index) {
            all.indexes.push(index);
        }
    }
    match all == Definition::of(&archive.schema()) {
        true => Ok(()),
        false => Ok(archive.set_schema(&all)?),
    }
}

/// Whether it was not there yet.
fn import_line(archive: &Archive, dir: &Path, line: &Line) -> Result<bool, ArchiveError> {
    let mut metadata = Metadata::default();
    for (field, value) in &line.fields {
        let values = match value {
            Json::Array(values) => values.iter().collect(),
            value => vec![value],
        };
        for value in values {
            match value {
                Json::String(text) => metadata.text(field, text),
                value => metadata.text(field, value.to_string()),
            };
        }
    }
    let imported = Imported {
        oid: line.oid.parse()?,
        data: line.data.parse()?,
        created: line.created,
        changed: line.changed,
        protection: Protection { until: line.until, holds: line.holds.clone() },
    };
    let path = dir.join(file_name(imported.data));
    let mut file = File::open(&path).map_err(of_file(&path))?;
    Ok(archive.import(&mut file, &imported, &metadata)?)
}
