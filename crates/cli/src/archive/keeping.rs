//! What is about the archive itself, and what it keeps.

use super::{changing, name, of_file, open, options, values, ArchiveError};
use clap::Args;
use serde_json::json;
use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;
use teak_archive::{Archive, Chunking, Definition, Protecting, Rules, Scrub, Value};
use teak_console::{amounts, signals};
use teak_core::file::RealFileSystem;

#[derive(Args, Debug)]
pub(super) struct Init {
    /// Where it is made
    path: PathBuf,
    #[command(flatten)]
    rules: Kept,
    /// Bytes of a chunk: at least, mostly, at most. What was put with other sizes is not recognised, so they stay
    #[arg(long, value_name = "BYTES", value_delimiter = ',', value_parser = values::bytes)]
    chunks: Vec<u64>,
}

#[derive(Args, Debug)]
struct Kept {
    /// How long data without records is kept: seconds, or a number with s, m, h or d. One day unless it is given
    #[arg(long, value_parser = values::seconds)]
    grace: Option<u64>,
    /// How many older versions of a record are kept. A hundred unless it is given
    #[arg(long, value_name = "N")]
    keep_versions: Option<u64>,
}

impl Kept {
    fn over(&self, rules: &Rules) -> Rules {
        Rules {
            grace_seconds: self.grace.unwrap_or(rules.grace_seconds),
            keep_versions: self.keep_versions.unwrap_or(rules.keep_versions),
        }
    }
}

#[derive(Args, Debug)]
pub(super) struct Evolve {
    /// The archive
    path: PathBuf,
    /// A file with the schema that it is to have; `-` is standard input
    #[arg(long, value_name = "FILE")]
    set: Option<PathBuf>,
}

#[derive(Args, Debug)]
pub(super) struct Change {
    /// The archive
    path: PathBuf,
    #[command(flatten)]
    rules: Kept,
}

#[derive(Args, Debug)]
pub(super) struct Hold {
    /// The archive
    path: PathBuf,
    /// An OID, or b3: and a hash
    object: String,
    /// What the hold is called
    hold: String,
    /// Release it
    #[arg(long)]
    release: bool,
}

#[derive(Args, Debug)]
pub(super) struct Retain {
    /// The archive
    path: PathBuf,
    /// An OID, or b3: and a hash
    object: String,
    /// A date, or a timestamp such as 2030-01-31T12:00:00Z
    #[arg(value_parser = values::moment)]
    until: i64,
}

#[derive(Args, Debug)]
pub(super) struct Collect {
    /// The archive
    path: PathBuf,
    /// Instead of the archive's own grace period
    #[arg(long, value_parser = values::seconds)]
    grace: Option<u64>,
}

#[derive(Args, Debug)]
pub(super) struct Read {
    /// The archive
    path: PathBuf,
    /// Bytes a second to read at most: a number, with K, M or G
    #[arg(long, value_name = "BYTES", value_parser = values::bytes)]
    rate: Option<u64>,
    /// From the beginning, also if one was interrupted
    #[arg(long)]
    restart: bool,
}

#[derive(Args, Debug)]
pub(super) struct Check {
    /// The archive
    path: PathBuf,
}

#[derive(Args, Debug)]
pub(super) struct Audit {
    /// The archive
    path: PathBuf,
    /// Not what was before
    #[arg(long, value_name = "DATE", value_parser = values::moment)]
    since: Option<i64>,
}

pub(super) fn init(init: &Init) -> Result<(), ArchiveError> {
    let chunking = match init.chunks[..] {
        [min, average, max] => {
            let sizes = [min, average, max].map(|bytes| u32::try_from(bytes).unwrap_or(u32::MAX));
            Chunking::new(sizes[0], sizes[1], sizes[2])?
        }
        [] => Chunking::default(),
        _ => return Err(ArchiveError::Usage("chunks of MIN,AVERAGE,MAX bytes are expected".into())),
    };
    let rules = init.rules.over(&Rules::default());
    let archive = Archive::init_on(Arc::new(RealFileSystem), options(&init.path), chunking, &rules)?;
    Ok(archive.close()?)
}

pub(super) fn schema(evolve: &Evolve, out: &mut dyn Write) -> Result<(), ArchiveError> {
    let Some(path) = &evolve.set else {
        let archive = open(&evolve.path)?;
        let shown =
            serde_json::to_string_pretty(&Definition::of(&archive.schema())).map_err(std::io::Error::from)?;
        return Ok(writeln!(out, "{shown}")?);
    };
    let text = match path.as_os_str() == "-" {
        true => std::io::read_to_string(std::io::stdin())?,
        false => std::fs::read_to_string(path).map_err(of_file(path))?,
    };
    let definition = Definition::parse(&text)?;
    changing(&evolve.path, |archive| Ok(archive.set_schema(&definition)?))
}

pub(super) fn rules(change: &Change, out: &mut dyn Write) -> Result<(), ArchiveError> {
    let show = |archive: &Archive, out: &mut dyn Write| {
        let rules = archive.rules();
        writeln!(out, "grace\t{}s\nkeep-versions\t{}", rules.grace_seconds, rules.keep_versions)
    };
    if change.rules.grace.is_none() && change.rules.keep_versions.is_none() {
        return Ok(show(&open(&change.path)?, out)?);
    }
    changing(&change.path, |archive| {
        archive.set_rules(&change.rules.over(&archive.rules()))?;
        Ok(show(archive, out)?)
    })
}

pub(super) fn hold(hold: &Hold) -> Result<(), ArchiveError> {
    let what = match hold.release {
        true => Protecting::Release(hold.hold.clone()),
        false => Protecting::Hold(hold.hold.clone()),
    };
    let name = name(&hold.object)?;
    changing(&hold.path, |archive| Ok(archive.protect(name, &what)?))
}

pub(super) fn retain(retain: &Retain) -> Result<(), ArchiveError> {
    let name = name(&retain.object)?;
    changing(&retain.path, |archive| Ok(archive.protect(name, &Protecting::Retain(retain.until))?))
}

pub(super) fn collect(collect: &Collect, out: &mut dyn Write) -> Result<(), ArchiveError> {
    changing(&collect.path, |archive| {
        let done = archive.collect(collect.grace, &signals::interrupted)?;
        writeln!(
            out,
            "{} data removed, {} kept by protection, {} chunks of {}",
            done.data,
            done.kept,
            done.chunks,
            amounts::bytes(done.bytes as f64)
        )?;
        Ok(())
    })
}

pub(super) fn scrub(read: &Read, out: &mut dyn Write) -> Result<(), ArchiveError> {
    let how = Scrub { bytes_per_second: read.rate, restart: read.restart, stop: &signals::interrupted };
    let scrubbed = changing(&read.path, |archive| Ok(archive.scrub(&how)?))?;
    for damage in &scrubbed.damage {
        writeln!(out, "damaged chunk {}", damage.chunk)?;
        damage.data.iter().try_for_each(|data| writeln!(out, "  data {data}"))?;
        damage.records.iter().try_for_each(|oid| writeln!(out, "  record {oid}"))?;
    }
    let (chunks, bytes) = (scrubbed.chunks, amounts::bytes(scrubbed.bytes as f64));
    match scrubbed.is_complete {
        true => writeln!(out, "{chunks} chunks of {bytes}, {} damaged", scrubbed.damage.len())?,
        false => writeln!(out, "{chunks} chunks of {bytes} so far; the next scrub goes on from here")?,
    }
    match scrubbed.damage.len() {
        0 => Ok(()),
        1 => Err(ArchiveError::Damaged("1 chunk is damaged".into())),
        chunks => Err(ArchiveError::Damaged(format!("{chunks} chunks are damaged"))),
    }
}

pub(super) fn check(check: &Check, out: &mut dyn Write) -> Result<(), ArchiveError> {
    let archive = open(&check.path)?;
    let findings = archive.engine().check().map_err(teak_archive::Error::from)?;
    if !findings.is_empty() {
        writeln!(out, "{findings}")?;
    }
    let wrong = archive.check_references()?;
    wrong.iter().try_for_each(|line| writeln!(out, "{line}"))?;
    match findings.is_empty() && wrong.is_empty() {
        true => Ok(()),
        false => Err(ArchiveError::Damaged("the archive is damaged".into())),
    }
}

pub(super) fn audit(audit: &Audit, out: &mut dyn Write) -> Result<(), ArchiveError> {
    let archive = open(&audit.path)?;
    let mut unwritten = None;
    archive.audit(audit.since.unwrap_or(i64::MIN), &mut |entry| {
        let mut line = json!({ "time": Value::Timestamp(entry.time).to_json(), "actor": entry.actor, "action": entry.action });
        if !entry.object.is_empty() {
            line["object"] = entry.object.clone().into();
        }
        if !entry.details.is_null() {
            line["details"] = entry.details.clone();
        }
        unwritten = writeln!(out, "{line}").err();
        Ok(unwritten.is_none())
    })?;
    unwritten.map_or(Ok(()), |cause| Err(cause.into()))
}
