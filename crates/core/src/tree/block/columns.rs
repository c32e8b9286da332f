//! Leaves on disk, by columns: what a compressor sees of a block.
//!
//! Rows of a table and entries of an index begin with fields of fixed width: numbers, times, keys. Side by side they
//! look like noise to zstd; one byte position after the other (as in column stores, and in the shuffle filters of HDF5
//! and Blosc) most of them are runs of few different bytes. So the first bytes of all keys and of all values, as many
//! as pays ([`crate::tree::encoding::arrangement`]), are stored by position, the rest row by row. Heads and starts,
//! which follow from keys and lengths, are left out. In memory blocks are as [`crate::tree::block`] says.
//!
//! ```text
//! 0   as in memory, with version u8 = 2
//! 24  key columns u16 = k       at most as many as the shortest suffix has bytes
//! 26  value columns u16 = c     likewise
//! 28  bytes of a suffix's length u8 = l, 0 if all have one length;  29  bytes of a value's length u8 = m, likewise
//! 30  version 3 only: rows of a frame u32 = r, at least 1; the last frame has what is left
//!     prefix
//!     suffix lengths            l * n bytes: the lowest byte of each, then the next ...
//!     value lengths             m * n bytes; bit 31: the value is the number of a blob
//!     key columns               k * n bytes: the first byte of each suffix, then the second ...
//!     rests of suffixes
//!     value columns             c * n bytes
//!     rests of values
//!     blobs                     as in memory
//! ```
//!
//! With version u8 = 3 the values are in *frames*: columns and rests of r values, then of the next r, and so on. Each
//! frame is a part of the extent by itself ([`crate::store::StoredParts`]), and so is what stands before the first, and
//! the blobs behind the last. Who looks one row up needs what is before the frames, and one of them: see
//! [`super::packed`].

use crate::slabs::Buffer;
use crate::store::MOST_PARTS;
use crate::tree::block::transpose::transpose;
use crate::tree::block::{narrow_head, wide_head, Block, Header, Layout, Run, BLOB_BIT, HEADER_BYTES};
use std::ops::Range;

/// Version of a block that is stored by columns.
pub(in crate::tree) const VERSION: u8 = 2;
/// The same with its values in frames.
pub(in crate::tree) const VERSION_OF_FRAMES: u8 = 3;
/// Of its header; version 3 has four more.
const PACKED_HEADER_BYTES: usize = HEADER_BYTES + 6;
const FRAME_ROWS_BYTES: usize = 4;

/// How many leading bytes are stored by position. Of a block with shorter keys or values it is as many as all of them
/// have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(in crate::tree) struct Columns {
    /// Of each key, without the prefix.
    pub keys: usize,
    /// Of each value.
    pub values: usize,
}

/// What is stored of a block: its bytes by columns, and where each part but the first begins, if it has frames.
pub(in crate::tree) struct Stored {
    pub bytes: Buffer,
    pub cuts: Vec<usize>,
}

/// Items one after the other: starts, and in the end the end of the last. [`BLOB_BIT`] as in the block.
pub(super) struct Starts(pub(super) Vec<u32>);

impl Starts {
    fn of(entries: usize, span: impl Fn(usize) -> (usize, usize)) -> Starts {
        let end = entries.checked_sub(1).map_or(0, |last| span(last).1 as u32);
        Starts((0..entries).map(|i| span(i).0 as u32).chain([end]).collect())
    }

    /// Of items of one length, which are within the limits of a block.
    pub(super) fn fixed(entries: usize, length: usize) -> Starts {
        Starts((0..=entries).map(|i| (i * length) as u32).collect())
    }

    /// Where items `rows` lie.
    pub(super) fn span(&self, rows: &Range<usize>) -> Range<usize> {
        self.start(rows.start)..self.start(rows.end)
    }

    /// Where item `i` begins.
    #[inline]
    pub(super) fn start(&self, i: usize) -> usize {
        (self.0[i] & !BLOB_BIT) as usize
    }

    /// Where item `i` lies.
    #[inline]
    fn range(&self, i: usize) -> Range<usize> {
        self.start(i)..self.start(i + 1)
    }

    fn items(&self) -> usize {
        self.0.len() - 1
    }

    /// How long each is, with [`BLOB_BIT`] from its start.
    fn lengths(&self) -> impl Iterator<Item = u32> + '_ {
        (0..self.items()).map(|i| self.range(i).len() as u32 | self.0[i] & BLOB_BIT)
    }

    fn shortest(&self) -> usize {
        (0..self.items()).map(|i| self.range(i).len()).min().unwrap_or(0)
    }
}

/// The shortest key (without the prefix) and the shortest value: more columns than these have bytes there cannot be.
pub(in crate::tree) fn most(block: &Block) -> Columns {
    let shortest = |span: &dyn Fn(usize) -> (usize, usize)| Starts::of(block.len(), span).shortest();
    Columns { keys: shortest(&|i| block.suffix_span(i)), values: shortest(&|i| block.value_span(i)) }
}

/// How many rows a frame has, if the values of `block` are to be in frames of about `frame_bytes`. `None` if it would
/// be one. Of a block with large values it is, too: nobody reads one row of such a block alone.
fn rows_of_frame(block: &Block, frame_bytes: usize) -> Option<usize> {
    let frames = (block.value_bytes().len() + frame_bytes / 2) / frame_bytes.max(1);
    // One part is for the keys.
    let rows = block.len().div_ceil(frames.clamp(1, MOST_PARTS - 1));
    (rows < block.len() && block.blobs().is_empty()).then_some(rows)
}

/// `rows` of each frame of `entries`.
pub(super) fn frames(entries: usize, rows: usize) -> impl Iterator<Item = Range<usize>> {
    (0..entries).step_by(rows.max(1)).map(move |first| first..entries.min(first.saturating_add(rows.max(1))))
}

/// `block`, whose bytes are `image` (with the addresses of its blobs), by columns, and in frames of about so many bytes
/// if there is a number.
pub(in crate::tree) fn pack(
    block: &Block,
    image: &[u8],
    wanted: Columns,
    frame_bytes: Option<usize>,
) -> Stored {
    let header = block.header();
    let suffixes = Starts::of(block.len(), |i| block.suffix_span(i));
    let values = Starts::of(block.len(), |i| block.value_span(i));
    let columns = |wanted: usize, starts: &Starts| wanted.min(starts.shortest()).min(usize::from(u16::MAX));
    let (key_columns, value_columns) = (columns(wanted.keys, &suffixes), columns(wanted.values, &values));
    let length_bytes = |fixed: bool, starts: &Starts| match (fixed, starts.lengths().max()) {
        (true, _) | (_, None) => 0,
        (_, Some(longest)) => (32 - longest.leading_zeros()).div_ceil(8).max(1) as u8,
    };
    let suffix_lengths = length_bytes(header.fixed_suffix, &suffixes);
    let value_lengths = length_bytes(header.fixed_value, &values);
    let frame_rows = frame_bytes.and_then(|bytes| rows_of_frame(block, bytes));

    let blobs = block.blobs().len() * super::blob::BLOB_ADDRESS_BYTES;
    let lengths = block.len() * usize::from(suffix_lengths + value_lengths);
    let rows = block.suffix_bytes().len() + block.value_bytes().len();
    let extra = frame_rows.map_or(0, |_| FRAME_ROWS_BYTES);
    let mut bytes = Buffer::must(PACKED_HEADER_BYTES + extra + block.prefix().len() + lengths + rows + blobs);
    let total = bytes.len();
    let mut out = Output(&mut bytes);
    out.put(&header.encode_as(if frame_rows.is_some() { VERSION_OF_FRAMES } else { VERSION }));
    out.put(&(key_columns as u16).to_le_bytes());
    out.put(&(value_columns as u16).to_le_bytes());
    out.put(&[suffix_lengths, value_lengths]);
    if let Some(rows) = frame_rows {
        out.put(&(rows as u32).to_le_bytes());
    }
    out.put(block.prefix());
    for (bytes, starts) in [(suffix_lengths, &suffixes), (value_lengths, &values)] {
        for plane in 0..bytes {
            let places = out.take(starts.items());
            let lengths = starts.lengths().map(|length| (length >> (8 * plane)) as u8);
            places.iter_mut().zip(lengths).for_each(|(place, length)| *place = length);
        }
    }
    put_rows(block.suffix_bytes(), &suffixes, 0..block.len(), key_columns, &mut out);
    let mut cuts = Vec::new();
    for rows in frames(block.len(), frame_rows.unwrap_or(block.len())) {
        cuts.push(total - out.0.len());
        put_rows(block.value_bytes(), &values, rows, value_columns, &mut out);
    }
    if frame_rows.is_none() {
        cuts.clear();
    }
    out.put(&image[image.len() - blobs..]);
    Stored { bytes, cuts }
}

/// What is left to be written of the bytes for the disk.
struct Output<'a>(&'a mut [u8]);

impl<'a> Output<'a> {
    fn take(&mut self, bytes: usize) -> &'a mut [u8] {
        let (taken, rest) = std::mem::take(&mut self.0).split_at_mut(bytes);
        self.0 = rest;
        taken
    }

    fn put(&mut self, bytes: &[u8]) {
        self.take(bytes.len()).copy_from_slice(bytes);
    }
}

/// Writes `rows` of `items`, the first `columns` bytes of each by position.
fn put_rows(items: &[u8], starts: &Starts, rows: Range<usize>, columns: usize, out: &mut Output<'_>) {
    to_columns(items, starts, rows.clone(), columns, out.take(columns * rows.len()));
    if columns * rows.len() < starts.span(&rows).len() {
        rows.for_each(|i| out.put(&items[starts.range(i)][columns..]));
    }
}

fn to_columns(items: &[u8], starts: &Starts, rows: Range<usize>, columns: usize, out: &mut [u8]) {
    let (first, rows) = (rows.start, rows.len());
    transpose((items, |row| starts.start(first + row)), (out, |column| column * rows), rows, columns);
}

fn from_columns(stored: &[u8], starts: &Starts, rows: Range<usize>, columns: usize, items: &mut [u8]) {
    let (first, rows) = (rows.start, rows.len());
    transpose((stored, |column| column * rows), (items, |row| starts.start(first + row)), columns, rows);
}

/// What is left of the bytes on disk.
pub(super) struct Input<'a>(pub(super) &'a [u8]);

impl<'a> Input<'a> {
    fn take(&mut self, bytes: usize) -> Result<&'a [u8], String> {
        let taken =
            self.0.get(..bytes).ok_or_else(|| format!("{bytes} bytes where {} are left", self.0.len()))?;
        self.0 = &self.0[bytes..];
        Ok(taken)
    }

    /// The starts of `entries` items that take `total` bytes and have `columns` each.
    fn starts(
        &mut self,
        run: Run,
        length_bytes: u8,
        entries: usize,
        total: usize,
        columns: usize,
    ) -> Result<Starts, String> {
        let starts = match (run, length_bytes) {
            (Run::Fixed(length), 0) => Starts::fixed(entries, length),
            (Run::Starts(_), 0..=4) => self.lengths(length_bytes, entries)?,
            _ => return Err(format!("lengths of {length_bytes} bytes")),
        };
        if starts.0[entries] as usize != total {
            return Err(format!("lengths end at {} of {total}", starts.0[entries]));
        }
        match starts.shortest() {
            shortest if shortest < columns => Err(format!("{columns} columns of {shortest} bytes")),
            _ => Ok(starts),
        }
    }

    fn lengths(&mut self, length_bytes: u8, entries: usize) -> Result<Starts, String> {
        let mut starts = vec![0; entries + 1];
        for plane in 0..length_bytes {
            let bytes = self.take(entries)?;
            starts
                .iter_mut()
                .zip(bytes)
                .for_each(|(length, &byte)| *length |= u32::from(byte) << (8 * plane));
        }
        let mut end = 0u32;
        for start in &mut starts {
            let length = *start;
            *start = end | length & BLOB_BIT;
            end = end
                .checked_add(length & !BLOB_BIT)
                .filter(|end| end & BLOB_BIT == 0)
                .ok_or("lengths past the limit")?;
        }
        Ok(Starts(starts))
    }

    /// Fills `rows` of `items`.
    pub(super) fn rows(
        &mut self,
        starts: &Starts,
        rows: Range<usize>,
        columns: usize,
        items: &mut [u8],
    ) -> Result<(), String> {
        let stored = self.take(columns * rows.len())?;
        from_columns(stored, starts, rows.clone(), columns, items);
        let bytes = starts.span(&rows).len();
        if stored.len() < bytes {
            let mut rests = Input(self.take(bytes - stored.len())?);
            for i in rows {
                let rest = &mut items[starts.range(i)][columns..];
                rest.copy_from_slice(rests.take(rest.len())?);
            }
        }
        Ok(())
    }
}

/// What stands before the keys of a block by columns, and where its items are in memory.
struct Head {
    layout: Layout,
    columns: Columns,
    suffixes: Starts,
    values: Starts,
    frame_rows: usize,
}

impl Head {
    /// Takes it from `input`, which begins with `header`. Nothing takes more memory than a few times the input.
    fn take<'a>(input: &mut Input<'a>, header: &Header, version: u8) -> Result<(Head, &'a [u8]), String> {
        let bytes = input.0.len();
        let start = input.take(PACKED_HEADER_BYTES)?;
        let number = |at: usize| usize::from(u16::from_le_bytes([start[at], start[at + 1]]));
        let columns = Columns { keys: number(HEADER_BYTES), values: number(HEADER_BYTES + 2) };
        let (suffix_lengths, value_lengths) = (start[HEADER_BYTES + 4], start[HEADER_BYTES + 5]);
        // Keys differ, so only one may be empty.
        if u64::from(header.entries) > u64::from(header.suffix_bytes) + 1
            || header.suffix_bytes as usize > bytes
        {
            return Err(format!("{} keys in {} bytes", header.entries, header.suffix_bytes));
        }
        let (entries, layout) = (header.entries as usize, header.layout()?);
        let frame_rows = match version {
            VERSION_OF_FRAMES => super::read_u32(input.take(FRAME_ROWS_BYTES)?, 0) as usize,
            _ => entries.max(1),
        };
        if frame_rows == 0 {
            return Err("frames without rows".into());
        }
        let (suffix_bytes, value_bytes) = (layout.values - layout.suffixes, layout.blobs - layout.values);
        let prefix = input.take(layout.heads - HEADER_BYTES)?;
        let suffixes =
            input.starts(layout.suffix_run, suffix_lengths, entries, suffix_bytes, columns.keys)?;
        let values = input.starts(layout.value_run, value_lengths, entries, value_bytes, columns.values)?;
        Ok((Head { layout, columns, suffixes, values, frame_rows }, prefix))
    }
}

/// The block in memory of the one on disk, which begins with `header`. The result is to be checked as any other: here
/// is seen to it that nothing lies outside of it, and that it takes no more memory than a few times `bytes`.
pub(in crate::tree) fn unpack(bytes: &[u8], header: &Header, version: u8) -> Result<Buffer, String> {
    let mut input = Input(bytes);
    let (head, prefix) = Head::take(&mut input, header, version)?;
    let layout = &head.layout;
    if layout.end - layout.suffixes != input.0.len() {
        return Err(format!(
            "{} bytes of rows where the header implies {}",
            input.0.len(),
            layout.end - layout.suffixes
        ));
    }
    let mut out =
        Buffer::new(layout.end).ok_or_else(|| format!("no memory for a block of {} bytes", layout.end))?;
    out[..HEADER_BYTES].copy_from_slice(&header.encode());
    out[HEADER_BYTES..layout.heads].copy_from_slice(prefix);
    put_starts(layout.suffix_run, &head.suffixes, &mut out);
    put_starts(layout.value_run, &head.values, &mut out);
    let entries = head.suffixes.items();
    let suffixes = &mut out[layout.suffixes..layout.values];
    input.rows(&head.suffixes, 0..entries, head.columns.keys, suffixes)?;
    for rows in frames(entries, head.frame_rows) {
        input.rows(&head.values, rows, head.columns.values, &mut out[layout.values..layout.blobs])?;
    }
    out[layout.blobs..].copy_from_slice(input.take(layout.end - layout.blobs)?);
    put_heads(header, layout, &head.suffixes, &mut out);
    Ok(out)
}

/// What is told by the first part of a block in frames.
pub(super) struct UnpackedKeys {
    /// A block with the keys, each without a value; to be checked as any other.
    pub bytes: Buffer,
    pub values: Starts,
    pub value_columns: usize,
    pub frame_rows: usize,
}

/// Reads `bytes`, the first part of a block in frames, which begins with `header`. As [`unpack`].
pub(super) fn unpack_keys(bytes: &[u8], header: &Header) -> Result<UnpackedKeys, String> {
    let mut input = Input(bytes);
    let (head, prefix) = Head::take(&mut input, header, VERSION_OF_FRAMES)?;
    let keys = Header { fixed_value: true, value_bytes: 0, blobs: 0, ..*header };
    let layout = keys.layout()?;
    if layout.values - layout.suffixes != input.0.len() {
        return Err(format!(
            "{} bytes of keys where {} are left",
            layout.values - layout.suffixes,
            input.0.len()
        ));
    }
    let mut out =
        Buffer::new(layout.end).ok_or_else(|| format!("no memory for keys of {} bytes", layout.end))?;
    out[..HEADER_BYTES].copy_from_slice(&keys.encode());
    out[HEADER_BYTES..layout.heads].copy_from_slice(prefix);
    put_starts(layout.suffix_run, &head.suffixes, &mut out);
    let entries = head.suffixes.items();
    let suffixes = &mut out[layout.suffixes..layout.values];
    input.rows(&head.suffixes, 0..entries, head.columns.keys, suffixes)?;
    put_heads(&keys, &layout, &head.suffixes, &mut out);
    let Head { columns, values, frame_rows, .. } = head;
    Ok(UnpackedKeys { bytes: out, values, value_columns: columns.values, frame_rows })
}

pub(super) fn put_starts(run: Run, starts: &Starts, out: &mut [u8]) {
    if let Run::Starts(at) = run {
        let places = out[at..].chunks_exact_mut(4);
        places.zip(&starts.0).for_each(|(place, start)| place.copy_from_slice(&start.to_le_bytes()));
    }
}

fn put_heads(header: &Header, layout: &Layout, suffixes: &Starts, out: &mut [u8]) {
    let (before, items) = out.split_at_mut(layout.suffixes);
    let heads = &mut before[layout.heads..layout.heads_end];
    for i in 0..suffixes.items() {
        let suffix = &items[suffixes.range(i)];
        match header.wide_heads {
            true => heads[8 * i..][..8].copy_from_slice(&wide_head(suffix).to_be_bytes()),
            false => heads[4 * i..][..4].copy_from_slice(&narrow_head(suffix).to_be_bytes()),
        }
    }
}
