//! The header of a block, and where it says that the sections lie.
//!
//! Invariant: a [`Layout`] has its sections one behind the other and within [`MAX_BLOCK_BYTES`], whatever the header
//! says; whether the block is as long is for who has its bytes.

use super::blob::BLOB_ADDRESS_BYTES;
use super::{columns, read_u32};

/// Bytes before the prefix.
pub const HEADER_BYTES: usize = 24;
/// No block may take more bytes than this: offsets keep bit 31 for blobs.
pub const MAX_BLOCK_BYTES: usize = (1 << 31) - 1;

const MAGIC: [u8; 2] = *b"Tk";
/// Of the bytes in memory; [`columns`] has another on disk.
pub(super) const VERSION: u8 = 1;
const WIDE_HEADS: u8 = 1;
const FIXED_SUFFIX: u8 = 2;
const FIXED_VALUE: u8 = 4;

/// The header, which decides where everything else lies.
#[derive(Debug, Clone, Copy, Default)]
pub struct Header {
    pub wide_heads: bool,
    pub fixed_suffix: bool,
    pub fixed_value: bool,
    pub entries: u32,
    pub prefix_bytes: u32,
    pub blobs: u32,
    pub suffix_bytes: u32,
    pub value_bytes: u32,
}

impl Header {
    pub fn encode(&self) -> [u8; HEADER_BYTES] {
        self.encode_as(VERSION)
    }

    pub fn encode_as(&self, version: u8) -> [u8; HEADER_BYTES] {
        let flag = |set: bool, flag: u8| if set { flag } else { 0 };
        let flags = flag(self.wide_heads, WIDE_HEADS)
            | flag(self.fixed_suffix, FIXED_SUFFIX)
            | flag(self.fixed_value, FIXED_VALUE);
        let mut out = [0; HEADER_BYTES];
        out[..4].copy_from_slice(&[MAGIC[0], MAGIC[1], version, flags]);
        let fields = [self.entries, self.prefix_bytes, self.blobs, self.suffix_bytes, self.value_bytes];
        for (place, field) in out[4..].chunks_exact_mut(4).zip(fields) {
            place.copy_from_slice(&field.to_le_bytes());
        }
        out
    }

    /// The header, and the version of what follows it: [`VERSION`] or those of [`columns`].
    pub fn decode(bytes: &[u8]) -> Result<(Header, u8), String> {
        let header = bytes.get(..HEADER_BYTES).ok_or_else(|| format!("a block of {} bytes", bytes.len()))?;
        if header[..2] != MAGIC {
            return Err(format!("block magic {:02x}{:02x}", header[0], header[1]));
        }
        let version = header[2];
        if !matches!(version, VERSION | columns::VERSION | columns::VERSION_OF_FRAMES) {
            let newest = columns::VERSION_OF_FRAMES;
            return Err(format!("block version {version}, this build reads {VERSION} to {newest}"));
        }
        let flags = header[3];
        if flags & !(WIDE_HEADS | FIXED_SUFFIX | FIXED_VALUE) != 0 {
            return Err(format!("unknown block flags {flags:#x}"));
        }
        let decoded = Header {
            wide_heads: flags & WIDE_HEADS != 0,
            fixed_suffix: flags & FIXED_SUFFIX != 0,
            fixed_value: flags & FIXED_VALUE != 0,
            entries: read_u32(header, 4),
            prefix_bytes: read_u32(header, 8),
            blobs: read_u32(header, 12),
            suffix_bytes: read_u32(header, 16),
            value_bytes: read_u32(header, 20),
        };
        Ok((decoded, version))
    }

    fn head_width(&self) -> u64 {
        if self.wide_heads {
            8
        } else {
            4
        }
    }

    /// Where the sections lie, and the length of the whole block. Errors when a run of fixed length does not divide
    /// evenly, or the block is too long.
    pub fn layout(&self) -> Result<Layout, String> {
        let entries = u64::from(self.entries);
        let starts = |fixed: bool| if fixed { 0 } else { 4 * (entries + 1) };
        let prefix = HEADER_BYTES as u64;
        let heads = prefix + u64::from(self.prefix_bytes);
        let suffix_starts = heads + entries * self.head_width();
        let value_starts = suffix_starts + starts(self.fixed_suffix);
        let suffixes = value_starts + starts(self.fixed_value);
        let values = suffixes + u64::from(self.suffix_bytes);
        let blobs = values + u64::from(self.value_bytes);
        let end = blobs + u64::from(self.blobs) * BLOB_ADDRESS_BYTES as u64;
        if end > MAX_BLOCK_BYTES as u64 {
            return Err(format!("a block of {end} bytes"));
        }
        let stride = |bytes: u32, what: &str| match (bytes, self.entries) {
            (0, 0) => Ok(0),
            (bytes, n) if n > 0 && bytes % n == 0 => Ok(bytes as usize / n as usize),
            (bytes, n) => Err(format!("{n} {what} of one length in {bytes} bytes")),
        };
        let run = |fixed: bool, bytes: u32, starts: u64, what| {
            Ok::<Run, String>(match fixed {
                true => Run::Fixed(stride(bytes, what)?),
                false => Run::Starts(starts as usize),
            })
        };
        let suffix_run = run(self.fixed_suffix, self.suffix_bytes, suffix_starts, "suffixes")?;
        let (near_suffixes, suffix_stride) = match suffix_run {
            Run::Fixed(length) if length as u64 <= self.head_width() => (heads, self.head_width() as usize),
            Run::Fixed(length) => (suffixes, length),
            Run::Starts(_) => (suffixes, 0),
        };
        Ok(Layout {
            suffix_run,
            near_suffixes: near_suffixes as usize,
            suffix_stride,
            value_run: run(self.fixed_value, self.value_bytes, value_starts, "values")?,
            heads: heads as usize,
            heads_end: suffix_starts as usize,
            suffixes: suffixes as usize,
            values: values as usize,
            blobs: blobs as usize,
            end: end as usize,
        })
    }
}

/// How the items of a section are found.
#[derive(Debug, Clone, Copy)]
pub enum Run {
    /// All have this length.
    Fixed(usize),
    /// Their starts are an array at this offset of the block.
    Starts(usize),
}

/// Offsets of the sections; each ends where the next begins.
#[derive(Debug, Clone, Copy)]
pub struct Layout {
    pub suffix_run: Run,
    pub value_run: Run,
    /// Where suffixes of one length are read, and how far apart: those that are no longer than their heads in the
    /// heads, which the search that led to them has in the processor's cache.
    pub near_suffixes: usize,
    pub suffix_stride: usize,
    pub heads: usize,
    pub heads_end: usize,
    pub suffixes: usize,
    pub values: usize,
    pub blobs: usize,
    pub end: usize,
}
