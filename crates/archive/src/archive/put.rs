//! Bytes into chunks, lists and data, and the record that names them.
//!
//! What ends within a batch, which has the bytes of [`BATCH_CHUNKS`] of the largest chunks, is one transaction.
//! Otherwise each batch is one, and its list is *pending* until the last, with the record: see docs/design/archive.md
//! for what a crash leaves in between.

use super::{protect, Archive, Metadata};
use crate::rows::{
    list_bytes, list_key, Content, ListName, Listed, Protection, Record, StoredChunk, StoredData, LIST_END,
};
use crate::schema::{Schema, Value};
use crate::{Digest, Error, Oid, Result};
use fastcdc::v2020::StreamCDC;
use std::collections::BTreeMap;
use std::io::Read;
use std::sync::atomic::Ordering;
use teak_core::Transaction;

/// So many of the largest chunks are in memory, and in one transaction.
const BATCH_CHUNKS: usize = 16;

/// What a put has made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stored {
    /// The record.
    pub oid: Oid,
    /// Its data.
    pub data: Digest,
    /// Of the data, in bytes.
    pub size: u64,
    /// Whether the data was there already.
    pub was_there: bool,
}

/// What a record has of another archive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Imported {
    /// Its name.
    pub oid: Oid,
    /// The name of its data.
    pub data: Digest,
    /// When it was put there, in microseconds since 1970.
    pub created: i64,
    /// When it was changed last, likewise.
    pub changed: i64,
    /// What protects it.
    pub protection: Protection,
}

/// Chunks that are not stored yet, in their order.
#[derive(Default)]
struct Batch {
    chunks: Vec<(Digest, Vec<u8>)>,
    bytes: usize,
}

/// Data that is being put.
pub(crate) struct Upload<'a> {
    archive: &'a Archive,
    list: ListName,
    /// Whether batches are stored.
    has_begun: bool,
    /// Of the batch that is next, in bytes.
    offset: u64,
    batch: Batch,
}

impl Archive {
    /// Stores bytes with metadata: makes a record, and data if there is none of this content. Nothing is to be seen of
    /// it before this returns. Memory is bounded, whatever the size.
    pub fn put(&self, source: &mut dyn Read, metadata: &Metadata) -> Result<Stored> {
        // Wrong metadata is told before a terabyte was read.
        let schema = self.schema();
        schema.check(&metadata.of_new_record(&schema)?)?;
        let mut upload = Upload::new(self);
        let (data, size) = upload.read(source)?;
        let stored = upload.finish(data, size, metadata, None)?;
        self.answered()?;
        Ok(stored)
    }

    /// Stores bytes as a record that another archive had, under its OID; `false`: it is there already. Bytes that are
    /// not those of the name are refused, and so is a record that is there with other data: nothing is overwritten.
    pub fn import(&self, source: &mut dyn Read, imported: &Imported, metadata: &Metadata) -> Result<bool> {
        let schema = self.schema();
        schema.check(&metadata.of_new_record(&schema)?)?;
        let oid = imported.oid;
        match self.record(oid) {
            Ok(there) if there.data == imported.data => return Ok(false),
            Ok(there) => {
                return Err(Error::Conflict(format!("{oid} is there with other data, {}", there.data)))
            }
            Err(Error::Missing(_)) => {}
            Err(error) => return Err(error),
        }
        let mut upload = Upload::new(self);
        let (data, size) = upload.read(source)?;
        if data != imported.data {
            return Err(Error::Inconsistent(format!("what is to be {} of {oid} is {data}", imported.data)));
        }
        upload.finish(data, size, metadata, Some(imported))?;
        self.answered()?;
        Ok(true)
    }

    /// Stores the chunks of a batch, or counts one more use of each that is there.
    fn store_chunks(&self, txn: &mut Transaction, batch: &Batch) -> Result<Vec<Listed>> {
        let mut places: BTreeMap<Digest, Vec<usize>> = BTreeMap::new();
        for (at, (name, _)) in batch.chunks.iter().enumerate() {
            places.entry(*name).or_default().push(at);
        }
        let first = self.take_numbers(batch.chunks.len());
        let mut listed = vec![None; batch.chunks.len()];
        let mut new = Vec::new();
        // In the order of their names, as all who lock several do.
        for (name, places) in &places {
            let mut content = self.lock_content(txn, *name)?;
            let length = batch.chunks[places[0]].1.len() as u64;
            let new_chunk = StoredChunk { number: first + places[0] as u64, length, uses: 0 };
            let chunk = content.chunk.get_or_insert(new_chunk);
            if chunk.uses == 0 {
                new.push(places[0]);
            }
            chunk.uses += places.len() as u64;
            let chunk = *chunk;
            for at in places {
                listed[*at] = Some(Listed { name: *name, number: chunk.number, length });
            }
            self.write_content(txn, *name, &content)?;
        }
        new.sort_unstable();
        for at in new {
            self.insert_chunk(txn, first + at as u64, &batch.chunks[at])?;
        }
        Ok(listed.into_iter().flatten().collect())
    }

    fn take_numbers(&self, count: usize) -> u64 {
        self.next_chunk.fetch_add(count as u64, Ordering::SeqCst)
    }

    fn insert_chunk(
        &self,
        txn: &mut Transaction,
        number: u64,
        (name, bytes): &(Digest, Vec<u8>),
    ) -> Result<()> {
        let mut row = Vec::with_capacity(32 + bytes.len());
        row.extend(name.0);
        row.extend(bytes);
        Ok(txn.insert(&self.trees.chunks, number.to_be_bytes(), row)?)
    }

    /// Data that is one chunk, or nothing, in its own row.
    fn store_small(
        &self,
        txn: &mut Transaction,
        content: &mut Content,
        chunk: Option<&(Digest, Vec<u8>)>,
    ) -> Result<()> {
        let Some(bytes) = chunk else { return Ok(()) };
        let length = bytes.1.len() as u64;
        match &mut content.chunk {
            Some(chunk) => chunk.uses += 1,
            None => {
                let number = self.take_numbers(1);
                content.chunk = Some(StoredChunk { number, length, uses: 1 });
                self.insert_chunk(txn, number, bytes)?;
            }
        }
        Ok(())
    }

    /// A record of data that is there; `false`: it is not, and nothing is done.
    pub(crate) fn store_again(
        &self,
        txn: &mut Transaction,
        schema: &Schema,
        record: &Record,
    ) -> Result<bool> {
        let data = record.data;
        let mut content = self.lock_content(txn, data)?;
        let Some(there) = &mut content.data else { return Ok(false) };
        if let Some(since) = there.orphaned.take() {
            txn.delete(&self.trees.orphans, super::timed_key(since, &data.0))?;
            self.write_content(txn, data, &content)?;
        }
        self.insert_record(txn, schema, record)?;
        Ok(true)
    }

    fn insert_record(&self, txn: &mut Transaction, schema: &Schema, record: &Record) -> Result<()> {
        txn.insert(&self.trees.records, record.oid.0, record.bytes())?;
        for entry in record.entries(schema) {
            txn.insert(&self.trees.entries, entry, [])?;
        }
        Ok(())
    }

    /// A first version.
    pub(crate) fn new_record(&self, data: Digest, size: u64, values: Vec<(u32, Value)>) -> Record {
        let created = self.now();
        let oid = self.oids.make(created);
        let protection = Protection::default();
        Record { oid, version: 1, created, changed: created, data, size, protection, values }
    }
}

impl<'a> Upload<'a> {
    pub(crate) fn new(archive: &'a Archive) -> Upload<'a> {
        let list = archive.oids.make(archive.now()).0;
        Upload { archive, list, has_begun: false, offset: 0, batch: Batch::default() }
    }

    /// Reads all, and stores all but the last batch; the name and the size.
    pub(crate) fn read(&mut self, source: &mut dyn Read) -> Result<(Digest, u64)> {
        let unread = |cause| Error::Stream { what: "cannot read what is to be stored", cause };
        let sizes = self.archive.chunking;
        let mut begin = Vec::new();
        (&mut *source).take(u64::from(sizes.min)).read_to_end(&mut begin).map_err(unread)?;
        if begin.len() < sizes.min as usize {
            let (name, size) = (Digest::of(&begin), begin.len() as u64);
            if size > 0 {
                self.batch.push(name, begin);
            }
            return Ok((name, size));
        }
        let all = std::io::Cursor::new(begin).chain(source);
        let (mut whole, mut first, mut count, mut size) = (blake3::Hasher::new(), None, 0u64, 0);
        for cut in StreamCDC::new(all, sizes.min as usize, sizes.average as usize, sizes.max as usize) {
            let bytes = cut.map_err(|error| unread(error.into()))?.data;
            let name = Digest::of(&bytes);
            // One chunk alone has the name of the whole already.
            if count == 1 {
                whole.update(&self.batch.chunks[0].1);
            }
            if count > 0 {
                whole.update(&bytes);
            }
            first.get_or_insert(name);
            count += 1;
            size += bytes.len() as u64;
            if self.batch.bytes + bytes.len() > BATCH_CHUNKS * sizes.max as usize {
                self.store_batch()?;
            }
            self.batch.push(name, bytes);
        }
        let alone = first.filter(|_| count == 1);
        Ok((alone.unwrap_or_else(|| Digest(*whole.finalize().as_bytes())), size))
    }

    fn store_batch(&mut self) -> Result<()> {
        let archive = self.archive;
        if !self.has_begun {
            archive.live().insert(self.list);
        }
        archive.transact(|txn| {
            if !self.has_begun {
                txn.insert(&archive.trees.pending, self.list, [])?;
            }
            self.store_part(txn)
        })?;
        self.has_begun = true;
        self.offset += self.batch.bytes as u64;
        self.batch = Batch::default();
        Ok(())
    }

    /// The batch and its row of the list.
    fn store_part(&self, txn: &mut Transaction) -> Result<()> {
        let chunks = self.archive.store_chunks(txn, &self.batch)?;
        txn.insert(&self.archive.trees.lists, list_key(&self.list, self.offset), list_bytes(&chunks))?;
        Ok(())
    }

    /// The transaction that makes it visible.
    fn finish(self, data: Digest, size: u64, metadata: &Metadata, of: Option<&Imported>) -> Result<Stored> {
        let archive = self.archive;
        let schema = archive.schema_shared();
        let values = metadata.of_new_record(&schema)?;
        schema.check(&values)?;
        let mut record = archive.new_record(data, size, values);
        if let Some(of) = of {
            let (oid, created, changed) = (of.oid, of.created, of.changed);
            record =
                Record { oid, created, changed, protection: protect::checked(&of.protection)?, ..record };
        }
        let was_there = archive.transact(|txn| self.store(txn, &schema, &record))?;
        Ok(Stored { oid: record.oid, data, size, was_there })
    }

    /// The record, and its data if there is none; whether there was.
    pub(crate) fn store(&self, txn: &mut Transaction, schema: &Schema, record: &Record) -> Result<bool> {
        let (archive, data) = (self.archive, record.data);
        if archive.store_again(txn, schema, record)? {
            return Ok(true);
        }
        let mut content = archive.lock_content(txn, data)?;
        let list = (self.has_begun || self.batch.chunks.len() > 1).then_some(self.list);
        match list {
            Some(list) => self.store_end(txn, &list, data)?,
            None => archive.store_small(txn, &mut content, self.batch.chunks.first())?,
        }
        let (size, created, protection) = (record.size, record.created, Protection::default());
        content.data = Some(StoredData { size, created, list, orphaned: None, protection });
        archive.write_content(txn, data, &content)?;
        archive.insert_record(txn, schema, record)?;
        Ok(false)
    }

    /// The last batch, and the end of the list, which is not pending any more.
    fn store_end(&self, txn: &mut Transaction, list: &ListName, data: Digest) -> Result<()> {
        let archive = self.archive;
        self.store_part(txn)?;
        txn.insert(&archive.trees.lists, list_key(list, LIST_END), data.0)?;
        if self.has_begun {
            txn.delete(&archive.trees.pending, list)?;
        }
        Ok(())
    }
}

impl Drop for Upload<'_> {
    /// What is pending still is nobody's.
    fn drop(&mut self) {
        self.archive.live().remove(&self.list);
    }
}

impl Batch {
    fn push(&mut self, name: Digest, bytes: Vec<u8>) {
        self.bytes += bytes.len();
        self.chunks.push((name, bytes));
    }
}
