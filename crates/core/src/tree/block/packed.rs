//! A leaf's block as it is stored, in memory, with its keys unpacked: a look-up decompresses one frame of values.
//!
//! It takes what the block takes on disk and the keys, which is about half of the block that scans and changes need,
//! and a row costs 5 to 8 us instead of nothing. Blocks with large values are not kept so.

use super::columns::{self, frames, Input, Starts};
use super::header::Header;
use super::Block;
use crate::slabs::Buffer;
use crate::store::StoredParts;
use crate::{Error, Result};
use std::ops::Range;
use std::sync::Arc;

/// Where values begin within all of them.
#[derive(Debug)]
enum Values {
    Fixed(usize),
    Starts(Box<[u32]>),
}

/// A block whose values are as they are stored.
#[derive(Debug)]
pub(in crate::tree) struct PackedBlock {
    /// Its keys, each without a value.
    keys: Arc<Block>,
    /// Of the whole block.
    header: Header,
    values: Values,
    value_columns: usize,
    frame_rows: usize,
    frames: StoredParts,
}

/// What is said of bytes that are not as they should be.
type Damage = String;

impl PackedBlock {
    /// Of the first part of a stored block and the others. `None` if the block has large values. Checked as
    /// [`Block::parse`] does, but for the values, which may be any.
    pub(in crate::tree) fn parse(first: &[u8], parts: StoredParts) -> Result<Option<PackedBlock>, Damage> {
        let (header, version) = Header::decode(first)?;
        if version != columns::VERSION_OF_FRAMES {
            return Err(format!("a block of version {version} in parts"));
        }
        if header.blobs > 0 {
            return Ok(None);
        }
        let columns::UnpackedKeys { bytes, values, value_columns, frame_rows } =
            columns::unpack_keys(first, &header)?;
        let entries = header.entries as usize;
        let expected = frames(entries, frame_rows).map(|rows| values.span(&rows).len());
        if !parts.raw_bytes().eq(expected) {
            return Err("frames that do not have the bytes of their values".into());
        }
        let keys = Arc::new(Block::parse_spilled(bytes, Box::default())?);
        let values = match header.fixed_value {
            true => Values::Fixed(values.start(entries.min(1))),
            false if values.0.iter().any(|start| start & super::BLOB_BIT != 0) => {
                return Err("a large value of a block that has none".into())
            }
            false => Values::Starts(values.0.into()),
        };
        Ok(Some(PackedBlock { keys, header, values, value_columns, frame_rows, frames: parts }))
    }

    /// Its keys: a block whose entries are those of the whole one, by number too, without their values.
    pub(in crate::tree) fn keys(&self) -> &Arc<Block> {
        &self.keys
    }

    /// Bytes of memory that it takes.
    pub(in crate::tree) fn memory(&self) -> usize {
        let starts = match &self.values {
            Values::Fixed(_) => 0,
            Values::Starts(starts) => 4 * starts.len(),
        };
        std::mem::size_of::<PackedBlock>() + self.keys.memory() + starts + self.frames.memory()
    }

    fn start(&self, i: usize) -> usize {
        match &self.values {
            Values::Fixed(length) => i * length,
            Values::Starts(starts) => starts[i] as usize,
        }
    }

    /// Replaces `out` by the value of entry `i`, which there is. The inner error says what is wrong with its frame.
    pub(in crate::tree) fn value_into(&self, i: usize, out: &mut Vec<u8>) -> Result<Result<(), Damage>> {
        let (frame, columns) = (i / self.frame_rows, self.value_columns);
        let first = frame * self.frame_rows;
        let rows = self.frame_rows.min(self.keys.len() - first);
        let (before, length) = (self.start(i) - self.start(first), self.start(i + 1) - self.start(i));
        let rest = columns * rows + before - columns * (i - first);
        self.frames.with_part(frame, |raw| {
            out.clear();
            out.extend((0..columns).map(|column| raw[column * rows + i - first]));
            out.extend_from_slice(&raw[rest..rest + length - columns]);
        })
    }

    /// The whole block. The inner error says what is wrong with a frame.
    pub(in crate::tree) fn whole(&self) -> Result<Result<Block, Damage>> {
        let (entries, keys) = (self.keys.len(), &self.keys);
        let layout = match self.header.layout() {
            Ok(layout) => layout,
            Err(detail) => return Ok(Err(detail)),
        };
        let mut out = Buffer::new(layout.end).ok_or(Error::OutOfMemory("a block"))?;
        // Up to the starts of suffixes both are alike, but for the header.
        let (before, suffixes) = (keys.layout.suffixes, keys.layout.suffixes..keys.layout.values);
        out[..before].copy_from_slice(&keys.bytes[..before]);
        out[..super::HEADER_BYTES].copy_from_slice(&self.header.encode());
        out[layout.suffixes..layout.values].copy_from_slice(&keys.bytes[suffixes]);
        let starts = match &self.values {
            Values::Fixed(length) => Starts::fixed(entries, *length),
            Values::Starts(starts) => Starts(starts.to_vec()),
        };
        columns::put_starts(layout.value_run, &starts, &mut out);
        let values = &mut out[layout.values..layout.blobs];
        for (frame, rows) in frames(entries, self.frame_rows).enumerate() {
            if let Err(detail) = self.put_frame(frame, rows, &starts, values)? {
                return Ok(Err(detail));
            }
        }
        Ok(Block::parse_spilled(out, Box::default()))
    }

    fn put_frame(
        &self,
        frame: usize,
        rows: Range<usize>,
        starts: &Starts,
        values: &mut [u8],
    ) -> Result<Result<(), Damage>> {
        let done =
            self.frames.with_part(frame, |raw| Input(raw).rows(starts, rows, self.value_columns, values))?;
        Ok(done.and_then(|done| done))
    }
}
