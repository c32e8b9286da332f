//! Records by name, and the bytes of data: each chunk is compared with its name before it is given out.

use super::Archive;
use crate::rows::{list_key, read_list, Listed, Protection, Record, StoredData, LIST_END};
use crate::schema::built_in;
use crate::{Digest, Error, Name, Oid, Result};
use std::io::Write;
use teak_core::Snapshot;

/// A part of data, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Range {
    /// Where it begins.
    pub from: u64,
    /// Before what it ends; `None`, or behind the end: all that there is.
    pub to: Option<u64>,
}

/// What is known of an object.
#[derive(Debug, Clone, PartialEq)]
pub struct Stat {
    /// The record, if it was asked for by its OID.
    pub record: Option<Record>,
    /// The data.
    pub data: Digest,
    /// Of the data, in bytes.
    pub size: u64,
    /// When the data was first put, in microseconds since 1970.
    pub created: i64,
    /// Since when no record names it, likewise.
    pub orphaned: Option<i64>,
    /// What protects the data itself.
    pub protection: Protection,
    /// Records of the data, at most [`Stat::MOST_RECORDS`] of them.
    pub records: Vec<Oid>,
}

impl Stat {
    /// How many records are told.
    pub const MOST_RECORDS: usize = 100;
}

impl Archive {
    /// The newest version of a record.
    pub fn record(&self, oid: Oid) -> Result<Record> {
        let found = self.record_in(&self.engine.snapshot(), oid)?;
        found.ok_or(Error::Missing(Name::Record(oid)))
    }

    /// A version of a record.
    pub fn version(&self, oid: Oid, version: u64) -> Result<Record> {
        let snapshot = self.engine.snapshot();
        let newest = self.record_in(&snapshot, oid)?.ok_or(Error::Missing(Name::Record(oid)))?;
        if newest.version == version {
            return Ok(newest);
        }
        match snapshot.get(&self.trees.versions, version_key(oid, version))? {
            Some(row) => self.read_record(oid, &row),
            None => Err(Error::MissingVersion { oid, version }),
        }
    }

    /// Numbers of the versions of a record that are kept, ascending; the last is the newest.
    pub fn versions(&self, oid: Oid) -> Result<Vec<u64>> {
        let snapshot = self.engine.snapshot();
        let newest = self.record_in(&snapshot, oid)?.ok_or(Error::Missing(Name::Record(oid)))?;
        let mut numbers = Vec::new();
        let mut rows = snapshot.range(&self.trees.versions, version_key(oid, 0)..=version_key(oid, u64::MAX));
        while rows.advance()? {
            numbers.push(rows.key().last_chunk().map_or(0, |number| u64::from_be_bytes(*number)));
        }
        numbers.push(newest.version);
        Ok(numbers)
    }

    /// What is known of an object.
    pub fn stat(&self, name: Name) -> Result<Stat> {
        let snapshot = self.engine.snapshot();
        let (record, digest, data) = self.resolve(&snapshot, name)?;
        let mut records = Vec::new();
        let prefix = by_data(digest);
        let mut entries = snapshot.range(&self.trees.entries, prefix.clone()..);
        while records.len() < Stat::MOST_RECORDS && entries.advance()? && entries.key().starts_with(&prefix) {
            records.push(oid_of_entry(entries.key())?);
        }
        let StoredData { size, created, orphaned, protection, .. } = data;
        Ok(Stat { record, data: digest, size, created, orphaned, protection, records })
    }

    /// Whether the archive has data of this content, with a record or without.
    pub fn has_data(&self, data: Digest) -> Result<bool> {
        Ok(self.content_in(&self.engine.snapshot(), data)?.data.is_some())
    }

    /// Writes the bytes of an object, or a part of them; how many.
    pub fn get(&self, name: Name, range: Option<Range>, out: &mut dyn Write) -> Result<u64> {
        let snapshot = self.engine.snapshot();
        let (_, digest, data) = self.resolve(&snapshot, name)?;
        let from = range.map_or(0, |range| range.from);
        if from > data.size {
            return Err(Error::Range { from, size: data.size });
        }
        let to = range.and_then(|range| range.to).unwrap_or(data.size).min(data.size);
        let mut written = 0;
        self.each_chunk(&snapshot, digest, &data, from..to, &mut |chunk, offset| {
            let bytes = self.read_chunk(&snapshot, digest, chunk)?;
            let end = bytes.len().min(usize::try_from(to - offset).unwrap_or(usize::MAX));
            let begin = usize::try_from(from.saturating_sub(offset)).unwrap_or(usize::MAX).min(end);
            written += (end - begin) as u64;
            let unwritten = |cause| Error::Stream { what: "cannot write what was read", cause };
            out.write_all(&bytes[begin..end]).map_err(unwritten)
        })?;
        match written == to.saturating_sub(from) {
            true => Ok(written),
            false => Err(Error::Inconsistent(format!("{digest} has {written} of {} bytes", to - from))),
        }
    }

    fn resolve(&self, snapshot: &Snapshot, name: Name) -> Result<(Option<Record>, Digest, StoredData)> {
        let (record, digest) = match name {
            Name::Data(digest) => (None, digest),
            Name::Record(oid) => {
                let record = self.record_in(snapshot, oid)?.ok_or(Error::Missing(name))?;
                let digest = record.data;
                (Some(record), digest)
            }
        };
        let data = self.content_in(snapshot, digest)?.data;
        Ok((record, digest, data.ok_or(Error::Missing(Name::Data(digest)))?))
    }

    /// Calls for each chunk that has bytes of a range, in their order, with where it begins.
    pub(super) fn each_chunk(
        &self,
        snapshot: &Snapshot,
        name: Digest,
        data: &StoredData,
        range: std::ops::Range<u64>,
        call: &mut dyn FnMut(&Listed, u64) -> Result<()>,
    ) -> Result<()> {
        if range.is_empty() {
            return Ok(());
        }
        let Some(list) = &data.list else {
            let chunk = self.content_in(snapshot, name)?.chunk;
            let chunk = chunk.ok_or_else(|| Error::Inconsistent(format!("{name} has no chunk")))?;
            return call(&Listed { name, number: chunk.number, length: chunk.length }, 0);
        };
        let broken = || Error::Inconsistent(format!("the list of {name} cannot be read"));
        let end = snapshot.get(&self.trees.lists, list_key(list, LIST_END))?;
        if end.as_deref() != Some(&name.0) {
            return Err(broken());
        }
        let mut before =
            snapshot.range(&self.trees.lists, list_key(list, 0)..=list_key(list, range.start)).descending();
        if !before.advance()? {
            return Err(broken());
        }
        let first = before.key().to_vec();
        let mut rows = snapshot.range(&self.trees.lists, first..list_key(list, range.end).to_vec());
        while rows.advance()? {
            let mut offset = rows.key().last_chunk().map_or(0, |offset| u64::from_be_bytes(*offset));
            for chunk in read_list(rows.value()?).ok_or_else(broken)? {
                let end = offset.checked_add(chunk.length).ok_or_else(broken)?;
                if offset < range.end && end > range.start {
                    call(&chunk, offset)?;
                }
                offset = end;
            }
        }
        Ok(())
    }

    /// The bytes of a chunk, which are those that its name says.
    fn read_chunk(&self, snapshot: &Snapshot, data: Digest, chunk: &Listed) -> Result<Vec<u8>> {
        let damaged = |detail: String| Error::Damaged { chunk: chunk.name, data, detail };
        let row = match snapshot.get(&self.trees.chunks, chunk.number.to_be_bytes()) {
            Ok(Some(row)) => row,
            Ok(None) => return Err(damaged("it is missing".into())),
            Err(error @ (teak_core::Error::Corrupt { .. } | teak_core::Error::Io { .. })) => {
                return Err(damaged(error.to_string()))
            }
            Err(error) => return Err(error.into()),
        };
        match check_chunk(&row) {
            Some(name) if name == chunk.name && row.len() as u64 - 32 == chunk.length => {
                Ok(row[32..].to_vec())
            }
            _ => Err(damaged("its bytes are not those of its name".into())),
        }
    }
}

/// The name of a chunk's row, if its bytes have it.
pub(super) fn check_chunk(row: &[u8]) -> Option<Digest> {
    let (name, bytes) = row.split_first_chunk::<32>()?;
    (Digest::of(bytes).0 == *name).then_some(Digest(*name))
}

pub(super) fn version_key(oid: Oid, version: u64) -> [u8; 24] {
    let mut key = [0; 24];
    key[..16].copy_from_slice(&oid.0);
    key[16..].copy_from_slice(&version.to_be_bytes());
    key
}

/// What entries of records of some data begin with.
pub(super) fn by_data(data: Digest) -> Vec<u8> {
    let mut prefix = built_in::BY_DATA.to_be_bytes().to_vec();
    prefix.extend(data.0);
    prefix
}

/// Whose entry it is.
pub(crate) fn oid_of_entry(key: &[u8]) -> Result<Oid> {
    key.last_chunk::<16>().map(|oid| Oid(*oid)).ok_or_else(|| Error::row("entries", key))
}
