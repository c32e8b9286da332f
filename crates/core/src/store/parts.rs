//! Blocks that are compressed in parts, each by itself, so that a reader can have one without the others.
//!
//! What a part is for the caller to say. A block in parts is one extent, is read by one call, and has one checksum over
//! all of its stored bytes, as any other; the sums of the parts tell which of them is damaged.
//!
//! ```text
//! 0    number of parts u8 = n, at least 1
//!      for each: raw bytes varint, stored bytes varint, u32: lower half of the XXH3-64 of the stored bytes
//!      part 0 | part 1 | ...
//! ```

use std::ops::Range;
use std::sync::Arc;

use super::compression::{self, NO_MEMORY};
use super::dictionary::Dictionary;
use super::free_map::{pop_varint, push_varint};
use super::{checksum, u32_at};
use crate::slabs::Buffer;
use crate::{Compression, Packing, Result};

/// More parts no block has.
pub const MOST_PARTS: usize = u8::MAX as usize;

/// Where a part lies within the stored bytes, and within those before compression.
#[derive(Debug, Clone)]
struct Part {
    stored: Range<usize>,
    raw: Range<usize>,
    sum: u32,
}

fn sum_of(stored: &[u8]) -> u32 {
    checksum(stored) as u32
}

/// Compresses `raw`, cut at `cuts` (ascending, within it); `None` if the result would not be at most `limit` bytes.
pub(super) fn compress(
    raw: &[u8],
    cuts: &[usize],
    packing: Packing,
    dictionary: Option<&Dictionary>,
    limit: usize,
) -> Result<Option<Buffer>> {
    debug_assert!(cuts.len() < MOST_PARTS && cuts.windows(2).all(|two| two[0] <= two[1]));
    let mut table = vec![cuts.len() as u8 + 1];
    let mut parts = Vec::with_capacity(cuts.len() + 1);
    let ends = cuts.iter().copied().chain([raw.len()]);
    let mut start = 0;
    for end in ends {
        let part = &raw[std::mem::replace(&mut start, end)..end];
        let Some(stored) = compression::compress_part(part, packing, dictionary)? else { return Ok(None) };
        push_varint(&mut table, part.len() as u64);
        push_varint(&mut table, stored.len() as u64);
        table.extend_from_slice(&sum_of(&stored).to_le_bytes());
        parts.push(stored);
    }
    let bytes = table.len() + parts.iter().map(|part| part.len()).sum::<usize>();
    if bytes > limit {
        return Ok(None);
    }
    let mut out = Buffer::new(bytes).ok_or(NO_MEMORY)?;
    let mut at = 0;
    for piece in std::iter::once(&table[..]).chain(parts.iter().map(|part| &part[..])) {
        out[at..at + piece.len()].copy_from_slice(piece);
        at += piece.len();
    }
    Ok(Some(out))
}

/// The parts of `stored`, which give `raw_bytes` together.
fn table(stored: &[u8], raw_bytes: usize) -> Result<Vec<Part>, String> {
    const SHORT: &str = "a table of parts that ends too soon";
    let (&count, mut rest) = stored.split_first().ok_or(SHORT)?;
    let mut parts = Vec::new();
    let (mut raw_at, mut stored_at) = (0, 0);
    let place = |at: &mut usize, bytes: u64, most: usize| {
        let end = usize::try_from(bytes).ok().and_then(|bytes| at.checked_add(bytes));
        let end = end.filter(|end| *end <= most).ok_or("a part that reaches beyond its block")?;
        Ok::<_, &str>(std::mem::replace(at, end)..end)
    };
    for _ in 0..count {
        let raw = place(&mut raw_at, pop_varint(&mut rest).ok_or(SHORT)?, raw_bytes)?;
        let stored = place(&mut stored_at, pop_varint(&mut rest).ok_or(SHORT)?, stored.len())?;
        let sum = u32_at(rest, 0).ok_or(SHORT)?;
        rest = &rest[4..];
        parts.push(Part { stored, raw, sum });
    }
    let begin = stored.len() - rest.len();
    if parts.is_empty() || raw_at != raw_bytes || stored_at != rest.len() {
        let room = rest.len();
        return Err(format!(
            "{count} parts of {raw_at} bytes in {stored_at}, where {raw_bytes} in {room} are expected"
        ));
    }
    for part in &mut parts {
        part.stored = part.stored.start + begin..part.stored.end + begin;
    }
    Ok(parts)
}

/// Which part of `stored`, whose checksum is wrong, is damaged; for whoever says so.
pub(super) fn damaged(stored: &[u8], raw_bytes: usize) -> String {
    let Ok(parts) = table(stored, raw_bytes) else { return "the table of its parts is damaged".into() };
    let wrong = |part: &Part| sum_of(&stored[part.stored.clone()]) != part.sum;
    let wrong: Vec<_> = (0..parts.len()).filter(|i| wrong(&parts[*i])).map(|i| i.to_string()).collect();
    match wrong.is_empty() {
        true => "the table of its parts is damaged".into(),
        false => format!("of its parts 0 to {} damaged: {}", parts.len() - 1, wrong.join(", ")),
    }
}

/// Gives `read` a buffer for the `stored_bytes` of a block, then decompresses all parts of what it read, one behind the
/// other. As [`compression::decompress`].
pub(super) fn decompress(
    stored_bytes: usize,
    raw_bytes: usize,
    compression: Compression,
    dictionary: Option<&Dictionary>,
    read: impl FnOnce(&mut [u8]) -> Result<()>,
) -> Result<Result<Buffer, String>> {
    compression::with_stored(stored_bytes, read, |stored, contexts| {
        let parts = match table(stored, raw_bytes) {
            Ok(parts) => parts,
            Err(detail) => return Ok(Err(detail)),
        };
        let mut raw = Buffer::new(raw_bytes).ok_or(NO_MEMORY)?;
        for part in parts {
            let (stored, raw) = (&stored[part.stored], &mut raw[part.raw]);
            if let Err(detail) = compression::decompress_into(stored, compression, dictionary, contexts, raw)?
            {
                return Ok(Err(detail));
            }
        }
        Ok(Ok(raw))
    })
}

/// Stored bytes in memory: all parts of a block but the first. Decompressed when somebody wants to read one.
pub struct StoredParts {
    stored: Buffer,
    parts: Box<[Part]>,
    compression: Compression,
    dictionary: Option<Arc<Dictionary>>,
}

impl StoredParts {
    /// Gives `read` a buffer for the `stored_bytes` of a block; the first part of what it read, decompressed, and the
    /// others as they are. The inner error says what is wrong with them.
    pub(super) fn read(
        stored_bytes: usize,
        raw_bytes: usize,
        compression: Compression,
        dictionary: Option<Arc<Dictionary>>,
        read: impl FnOnce(&mut [u8]) -> Result<()>,
    ) -> Result<Result<(Buffer, StoredParts), String>> {
        compression::with_stored(stored_bytes, read, |stored, contexts| {
            let mut parts = match table(stored, raw_bytes) {
                Ok(parts) => parts,
                Err(detail) => return Ok(Err(detail)),
            };
            let first = parts.remove(0);
            let mut raw = Buffer::new(first.raw.len()).ok_or(NO_MEMORY)?;
            let dictionary_of = dictionary.as_deref();
            let compressed = &stored[first.stored.clone()];
            let done =
                compression::decompress_into(compressed, compression, dictionary_of, contexts, &mut raw)?;
            if let Err(detail) = done {
                return Ok(Err(detail));
            }
            let rest = &stored[first.stored.end..];
            let mut kept = Buffer::new(rest.len()).ok_or(NO_MEMORY)?;
            kept.copy_from_slice(rest);
            for part in &mut parts {
                part.stored = part.stored.start - first.stored.end..part.stored.end - first.stored.end;
            }
            Ok(Ok((raw, StoredParts { stored: kept, parts: parts.into(), compression, dictionary })))
        })
    }

    /// Bytes of each part before it was compressed.
    pub fn raw_bytes(&self) -> impl Iterator<Item = usize> + '_ {
        self.parts.iter().map(|part| part.raw.len())
    }

    /// Bytes of memory that they take.
    pub fn memory(&self) -> usize {
        self.stored.capacity() + self.parts.len() * std::mem::size_of::<Part>()
    }

    /// Decompresses a part (0: the first of these) into a buffer of this thread, for `look`. The inner error says what
    /// is wrong with it.
    pub fn with_part<R>(&self, part: usize, look: impl FnOnce(&[u8]) -> R) -> Result<Result<R, String>> {
        let Some(part) = self.parts.get(part) else { return Ok(Err(format!("no part {part}"))) };
        let (stored, dictionary) = (&self.stored[part.stored.clone()], self.dictionary.as_deref());
        compression::with_scratch(part.raw.len(), |raw, contexts| {
            let done = compression::decompress_into(stored, self.compression, dictionary, contexts, raw)?;
            Ok(done.map(|()| look(raw)))
        })
    }
}

impl std::fmt::Debug for StoredParts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} parts in {} bytes", self.parts.len(), self.stored.len())
    }
}

/// Blocks in parts without a file, for tests of what reads them.
#[cfg(any(test, feature = "rooms"))]
pub(crate) mod in_parts {
    use super::*;

    /// `raw`, cut at `cuts`, as it is stored.
    pub(crate) fn compressed(raw: &[u8], cuts: &[usize], compression: Compression) -> Vec<u8> {
        let stored = compress(raw, cuts, compression.into(), None, usize::MAX);
        stored.ok().flatten().map_or_else(Vec::new, |stored| stored.to_vec())
    }

    /// The first part of such bytes, and the others.
    pub(crate) fn read(
        stored: &[u8],
        raw_bytes: usize,
        compression: Compression,
    ) -> Result<(Buffer, StoredParts), String> {
        let copy = |buffer: &mut [u8]| {
            buffer.copy_from_slice(stored);
            Ok(())
        };
        StoredParts::read(stored.len(), raw_bytes, compression, None, copy)
            .unwrap_or_else(|error| Err(error.to_string()))
    }

    /// All parts of them, one behind the other.
    pub(crate) fn read_all(
        stored: &[u8],
        raw_bytes: usize,
        compression: Compression,
    ) -> Result<Buffer, String> {
        let copy = |buffer: &mut [u8]| {
            buffer.copy_from_slice(stored);
            Ok(())
        };
        decompress(stored.len(), raw_bytes, compression, None, copy)
            .unwrap_or_else(|error| Err(error.to_string()))
    }
}

#[cfg(test)]
mod tests {
    use super::in_parts::{compressed, read, read_all};
    use super::*;
    use proptest::prelude::*;

    fn raw(bytes: usize) -> Vec<u8> {
        (0..bytes as u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 29) as u8 + (i / 100) as u8).collect()
    }

    #[test]
    fn parts_are_had_together_and_one_by_one() {
        let (raw, cuts) = (raw(20_000), [300, 300, 9000, 19_999]);
        for compression in [Compression::Lz4, Compression::Zstd] {
            let stored = compressed(&raw, &cuts, compression);
            assert_eq!(read_all(&stored, raw.len(), compression).unwrap(), raw);
            let (first, parts) = read(&stored, raw.len(), compression).unwrap();
            assert_eq!(first, raw[..300]);
            let lengths: Vec<_> = parts.raw_bytes().collect();
            assert_eq!(lengths, [0, 8700, 10_999, 1]);
            let mut at = 300;
            for (i, length) in lengths.into_iter().enumerate() {
                let found = parts.with_part(i, |part| part.to_vec()).unwrap().unwrap();
                assert_eq!(found, raw[at..at + length]);
                at += length;
            }
            assert!(parts.with_part(4, |_| ()).unwrap().is_err());
            assert!(read_all(&stored, raw.len() + 1, compression).is_err());
        }
    }

    #[test]
    fn the_part_that_is_damaged_is_named() {
        let raw = raw(20_000);
        let stored = compressed(&raw, &[300, 9000], Compression::Zstd);
        let parts = table(&stored, raw.len()).unwrap();
        for (i, part) in parts.iter().enumerate() {
            for at in [part.stored.start, part.stored.end - 1] {
                let mut flipped = stored.clone();
                flipped[at] ^= 4;
                assert_eq!(damaged(&flipped, raw.len()), format!("of its parts 0 to 2 damaged: {i}"));
            }
        }
        let mut flipped = stored.clone();
        flipped[1] ^= 4;
        assert_eq!(damaged(&flipped, raw.len()), "the table of its parts is damaged");
    }

    proptest! {
        #[test]
        fn any_bytes_are_an_error_or_parts(
            mut stored in proptest::collection::vec(any::<u8>(), 0..300), raw_bytes in 0usize..5000, few: bool,
        ) {
            if let (true, Some(first)) = (few, stored.first_mut()) {
                *first %= 4;
            }
            let _ = read_all(&stored, raw_bytes, Compression::Lz4);
            let _ = damaged(&stored, raw_bytes);
            if let Ok((_, parts)) = read(&stored, raw_bytes, Compression::Lz4) {
                for i in 0..=parts.raw_bytes().count() {
                    let _ = parts.with_part(i, |_| ());
                }
            }
        }
    }
}
