//! Bytes to stored bytes and back.
//!
//! A [`Dictionary`], if there is one, encodes the words of a block first. zstd's contexts are large and slow to make,
//! so each thread keeps one of each, with scratch buffers: compressing a block allocates nothing but its result.

use std::cell::Cell;
use std::ops::RangeInclusive;

use super::dictionary::Dictionary;
use crate::slabs::Buffer;
use crate::{Compression, Error, Packing, Result};

/// zstd's fastest regular level: blocks are read and written far more often than they are archived.
const DEFAULT_LEVEL: u8 = 1;
/// A thread keeps a scratch buffer of at most this size; larger ones served one large value and are given back.
const SCRATCH_KEPT_BYTES: usize = 1 << 20;
/// No LZ4 block expands by more than this.
const LZ4_MAX_RATIO: u64 = 255;
pub(super) const NO_MEMORY: Error = Error::OutOfMemory("a block's buffers");

/// How zstd compresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Setting {
    level: u8,
    /// The length of the shortest match, and of its table of hashes the logarithm; 0: as the level has it.
    least_match: u32,
    hash_log: u32,
}

impl Setting {
    /// For what is as large as a block, or a part of one. Of 16 KiB and less the fastest level looks for matches of
    /// five bytes in a table that does not fit the processor's nearest cache; parts of a block gain nothing by that.
    fn of(level: u8, is_part: bool) -> Setting {
        match (level, is_part) {
            (0 | DEFAULT_LEVEL, true) => Setting { level: DEFAULT_LEVEL, least_match: 6, hash_log: 12 },
            (0, false) => Setting { level: DEFAULT_LEVEL, least_match: 0, hash_log: 0 },
            _ => Setting { level, least_match: 0, hash_log: 0 },
        }
    }

    fn set(self, compressor: &mut zstd::bulk::Compressor<'static>) -> std::io::Result<()> {
        use zstd::zstd_safe::CParameter;
        compressor.set_compression_level(i32::from(self.level))?;
        compressor.set_parameter(CParameter::MinMatch(self.least_match))?;
        compressor.set_parameter(CParameter::HashLog(self.hash_log))
    }
}

/// What a thread keeps.
#[derive(Default)]
pub(super) struct Contexts {
    /// And what it is set to.
    compressor: Option<(zstd::bulk::Compressor<'static>, Setting)>,
    decompressor: Option<zstd::bulk::Decompressor<'static>>,
    scratch: Vec<u8>,
    /// A block's words as codes.
    coded: Vec<u8>,
}

thread_local! {
    static CONTEXTS: Cell<Contexts> =
        const { Cell::new(Contexts { compressor: None, decompressor: None, scratch: Vec::new(), coded: Vec::new() }) };
}

/// Runs `work` with this thread's contexts; a thread that is being torn down gets fresh ones.
fn with_contexts<R>(work: impl FnOnce(&mut Contexts) -> R) -> R {
    let mut contexts = CONTEXTS.try_with(Cell::take).unwrap_or_default();
    let result = work(&mut contexts);
    for scratch in [&mut contexts.scratch, &mut contexts.coded] {
        if scratch.capacity() > SCRATCH_KEPT_BYTES {
            *scratch = Vec::new();
        }
    }
    // A thread that is being torn down has nowhere to keep them.
    let _ = CONTEXTS.try_with(|kept| kept.set(contexts));
    result
}

/// Bytes that [`is_dense`] looks at, in pieces of [`SAMPLE_PIECE`].
const SAMPLE_BYTES: usize = 1024;
const SAMPLE_PIECE: usize = 256;

/// Whether `value` looks as if it had been compressed, or encrypted, before: all bytes are about equally frequent in a
/// few pieces of it. A fraction of a microsecond. What is too short to tell is not.
///
/// The sum of the squares of the frequencies of 256 bytes is n + n(n-1)/256 on average if bytes are as by chance; in
/// text it is many times as much. (This is Friedman's index of coincidence, without its divisor.)
pub fn is_dense(value: &[u8]) -> bool {
    if value.len() < 2 * SAMPLE_BYTES {
        return false;
    }
    let mut counts = [0u32; 256];
    let step = (value.len() - SAMPLE_PIECE) / (SAMPLE_BYTES / SAMPLE_PIECE - 1);
    for piece in (0..SAMPLE_BYTES / SAMPLE_PIECE).map(|i| &value[i * step..][..SAMPLE_PIECE]) {
        piece.iter().for_each(|byte| counts[usize::from(*byte)] += 1);
    }
    let squares: u64 = counts.iter().map(|&count| u64::from(count) * u64::from(count)).sum();
    let n = SAMPLE_BYTES as u64;
    squares < n + n * n / 256 * 3 / 2
}

/// Compresses `raw`; `None` if the result would not be at most `limit` bytes, in which case `raw` is stored as it is.
pub(super) fn compress(
    raw: &[u8],
    packing: Packing,
    dictionary: Option<&Dictionary>,
    limit: usize,
) -> Result<Option<Buffer>> {
    compress_as(raw, packing, dictionary, limit, false)
}

/// The same of a part of a block.
pub(super) fn compress_part(
    raw: &[u8],
    packing: Packing,
    dictionary: Option<&Dictionary>,
) -> Result<Option<Buffer>> {
    // A part that does not get smaller is stored with what compression adds to it.
    compress_as(raw, packing, dictionary, usize::MAX, true)
}

fn compress_as(
    raw: &[u8],
    packing: Packing,
    dictionary: Option<&Dictionary>,
    limit: usize,
    is_part: bool,
) -> Result<Option<Buffer>> {
    if limit == 0 || packing.compression == Compression::None {
        return Ok(None);
    }
    with_contexts(|contexts| {
        let scratch = &mut contexts.scratch;
        let raw = match dictionary {
            Some(dictionary) => {
                grow(&mut contexts.coded, Dictionary::bound(raw.len()))?;
                let bytes = dictionary.encode(raw, &mut contexts.coded);
                &contexts.coded[..bytes]
            }
            None => raw,
        };
        let bytes = match packing.compression {
            Compression::None => return Ok(None),
            Compression::Lz4 => {
                let bound = lz4_flex::block::get_maximum_output_size(raw.len());
                grow(scratch, bound)?;
                lz4_flex::block::compress_into(raw, scratch).map_err(|_| NO_MEMORY)?
            }
            Compression::Zstd | Compression::Recompress => {
                let wanted = Setting::of(packing.level, is_part);
                let (compressor, set) = match &mut contexts.compressor {
                    Some((compressor, set)) if *set == wanted => (compressor, set),
                    Some((compressor, set)) => {
                        wanted.set(compressor).map_err(|_| NO_MEMORY)?;
                        (compressor, set)
                    }
                    none => {
                        let mut compressor = zstd::bulk::Compressor::default();
                        wanted.set(&mut compressor).map_err(|_| NO_MEMORY)?;
                        let (compressor, set) = none.insert((compressor, wanted));
                        (compressor, set)
                    }
                };
                *set = wanted;
                grow(scratch, zstd::zstd_safe::compress_bound(raw.len()))?;
                compressor.compress_to_buffer(raw, &mut scratch[..]).map_err(|_| NO_MEMORY)?
            }
        };
        Ok((bytes <= limit).then(|| Buffer::from(&scratch[..bytes])))
    })
}

/// Gives `read` a buffer for the `stored_bytes` of a compressed block, then decompresses what it read.
///
/// `Ok(Err(text))` says what is wrong with the stored bytes. No more than a few times `raw_bytes` is allocated.
pub(super) fn decompress(
    stored_bytes: usize,
    raw_bytes: usize,
    compression: Compression,
    dictionary: Option<&Dictionary>,
    read: impl FnOnce(&mut [u8]) -> Result<()>,
) -> Result<Result<Buffer, String>> {
    if compression == Compression::None {
        let mut raw = Buffer::new(raw_bytes).ok_or(NO_MEMORY)?;
        read(&mut raw)?;
        return Ok(Ok(raw));
    }
    with_stored(stored_bytes, read, |stored, contexts| {
        let expected = match dictionary {
            None => raw_bytes..=raw_bytes,
            Some(_) => 0..=Dictionary::bound(raw_bytes),
        };
        Ok(match (promised(stored, compression, &expected), dictionary) {
            (Err(detail), _) => Err(detail),
            (Ok(bytes), None) => {
                let mut raw = Buffer::new(bytes).ok_or(NO_MEMORY)?;
                unpack(stored, compression, &expected, contexts, &mut raw)?.map(|_| raw)
            }
            (Ok(bytes), Some(dictionary)) => {
                let mut coded = std::mem::take(&mut contexts.coded);
                grow(&mut coded, bytes)?;
                let unpacked = unpack(stored, compression, &expected, contexts, &mut coded[..bytes])?;
                let decoded = unpacked.and_then(|bytes| dictionary.decode(&coded[..bytes], raw_bytes));
                contexts.coded = coded;
                decoded
            }
        })
    })
}

/// Gives `read` a buffer of this thread for the `stored_bytes` of a block, then has `work` do something with them.
pub(super) fn with_stored<R>(
    stored_bytes: usize,
    read: impl FnOnce(&mut [u8]) -> Result<()>,
    work: impl FnOnce(&[u8], &mut Contexts) -> Result<R>,
) -> Result<R> {
    with_scratch(stored_bytes, |stored, contexts| {
        read(stored)?;
        work(stored, contexts)
    })
}

/// Gives `work` a buffer of this thread of so many bytes, whatever stands in them.
pub(super) fn with_scratch<R>(
    bytes: usize,
    work: impl FnOnce(&mut [u8], &mut Contexts) -> Result<R>,
) -> Result<R> {
    with_contexts(|contexts| {
        let mut scratch = std::mem::take(&mut contexts.scratch);
        grow(&mut scratch, bytes)?;
        let done = work(&mut scratch[..bytes], contexts);
        contexts.scratch = scratch;
        done
    })
}

/// Decompresses `stored` into `raw`, of which it gives all. The inner error says what is wrong with it.
pub(super) fn decompress_into(
    stored: &[u8],
    compression: Compression,
    dictionary: Option<&Dictionary>,
    contexts: &mut Contexts,
    raw: &mut [u8],
) -> Result<Result<(), String>> {
    let Some(dictionary) = dictionary else {
        let expected = raw.len()..=raw.len();
        if let Err(detail) = promised(stored, compression, &expected) {
            return Ok(Err(detail));
        }
        return Ok(unpack(stored, compression, &expected, contexts, raw)?.map(|_| ()));
    };
    let expected = 0..=Dictionary::bound(raw.len());
    let bytes = match promised(stored, compression, &expected) {
        Ok(bytes) => bytes,
        Err(detail) => return Ok(Err(detail)),
    };
    let mut coded = std::mem::take(&mut contexts.coded);
    grow(&mut coded, bytes)?;
    let unpacked = unpack(stored, compression, &expected, contexts, &mut coded[..bytes])?;
    let decoded = unpacked.and_then(|bytes| dictionary.decode(&coded[..bytes], raw.len()));
    contexts.coded = coded;
    Ok(decoded.map(|decoded| raw.copy_from_slice(&decoded)))
}

/// How many bytes `stored` says that it gives, or gives at most: a number in `expected`, or what is wrong.
fn promised(
    stored: &[u8],
    compression: Compression,
    expected: &RangeInclusive<usize>,
) -> Result<usize, String> {
    let most = *expected.end();
    if matches!(compression, Compression::Zstd | Compression::Recompress) {
        let announced = zstd::zstd_safe::get_frame_content_size(stored).ok().flatten();
        let bytes = announced.and_then(|bytes| usize::try_from(bytes).ok());
        return bytes
            .filter(|bytes| expected.contains(bytes))
            .ok_or_else(|| format!("zstd frame of {announced:?} bytes where {expected:?} are expected"));
    }
    match *expected.start() as u64 > (stored.len() as u64).saturating_mul(LZ4_MAX_RATIO) {
        true => Err(format!("{} bytes of LZ4 cannot hold {most}", stored.len())),
        false => Ok(most),
    }
}

/// Decompresses into `out`, which has as many bytes as were promised. How many there are: a number in `expected`.
fn unpack(
    stored: &[u8],
    compression: Compression,
    expected: &RangeInclusive<usize>,
    contexts: &mut Contexts,
    out: &mut [u8],
) -> Result<Result<usize, String>> {
    let done = match compression {
        Compression::Zstd | Compression::Recompress => {
            let decompressor = match &mut contexts.decompressor {
                Some(decompressor) => decompressor,
                none => none.insert(zstd::bulk::Decompressor::new().map_err(|_| NO_MEMORY)?),
            };
            let done = decompressor.decompress_to_buffer(stored, out).map_err(|error| error.to_string());
            done.and_then(|found| match found == out.len() {
                true => Ok(found),
                false => Err(format!("decompressed to {found} bytes where {} are announced", out.len())),
            })
        }
        _ => lz4_flex::block::decompress_into(stored, out).map_err(|error| error.to_string()),
    };
    Ok(done.and_then(|bytes| match expected.contains(&bytes) {
        true => Ok(bytes),
        false => Err(format!("decompressed to {bytes} bytes where {expected:?} are expected")),
    }))
}

/// Makes `buffer` at least `bytes` long, without aborting the process when memory is short.
fn grow(buffer: &mut Vec<u8>, bytes: usize) -> Result<()> {
    if buffer.len() < bytes {
        let more = bytes - buffer.len();
        buffer.try_reserve_exact(more).map_err(|_| Error::OutOfMemory("buffer for a block"))?;
        buffer.resize(bytes, 0);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn unpack(stored: &[u8], raw_bytes: usize, compression: Compression) -> Result<Vec<u8>, String> {
        let raw = decompress(stored.len(), raw_bytes, compression, None, |buffer| {
            buffer.copy_from_slice(stored);
            Ok(())
        });
        raw.unwrap().map(|raw| raw.to_vec())
    }

    #[test]
    fn each_compression_returns_what_it_was_given() {
        for compression in [Compression::Lz4, Compression::Zstd] {
            for size in [1usize, 100, 32 << 10, 3 << 20] {
                let raw: Vec<u8> = (0..size).map(|i| (i / 37) as u8).collect();
                let packed = compress(&raw, compression.into(), None, size * 2 + 64).unwrap().unwrap();
                assert_eq!(unpack(&packed, size, compression).unwrap(), raw);
                assert!(unpack(&packed, size + 1, compression).is_err());
                assert!(unpack(&packed, size - 1, compression).is_err());
            }
        }
    }

    #[test]
    fn a_result_past_the_limit_is_not_given() {
        assert_eq!(compress(&[7; 4096], Compression::Zstd.into(), None, 5).unwrap(), None);
        assert_eq!(compress(&[7; 4096], Compression::None.into(), None, 9999).unwrap(), None);
    }

    #[test]
    fn a_higher_level_gives_less_and_the_lower_one_works_after_it() {
        let mut state = 1u32;
        let mut word = || {
            state = state.wrapping_mul(1664525).wrapping_add(1013904223);
            format!("word{} ", (state >> 20) % 700)
        };
        let raw: Vec<u8> = (0..4000).flat_map(|_| word().into_bytes()).collect();
        let size = |level| {
            let packing = Packing { compression: Compression::Zstd, level, similarity: false };
            let packed = compress(&raw, packing, None, raw.len()).unwrap().unwrap();
            assert_eq!(unpack(&packed, raw.len(), Compression::Zstd).unwrap(), raw);
            packed.len()
        };
        let sizes = [size(0), size(12), size(1)];
        assert!(sizes[1] < sizes[0] && sizes[0] == sizes[2], "{sizes:?}");
    }

    #[test]
    fn what_is_compressed_looks_dense_and_text_or_numbers_do_not() {
        let mut state = 9u64;
        let mut random = || {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            state >> 33
        };
        let words: Vec<u8> =
            (0..9000).flat_map(|_| format!("word{} ", random() % 700).into_bytes()).collect();
        let numbers: Vec<u8> = (0..9000u32).flat_map(|i| (i * 77).to_le_bytes()).collect();
        let hex: Vec<u8> = (0..9000).flat_map(|_| format!("{:x}", random()).into_bytes()).collect();
        for raw in [&words, &numbers, &hex] {
            assert!(!is_dense(raw));
        }
        for compression in [Compression::Zstd, Compression::Lz4] {
            let packed = compress(&words, compression.into(), None, words.len()).unwrap().unwrap();
            assert_eq!(is_dense(&packed), compression == Compression::Zstd);
        }
        let noise: Vec<u8> = (0..9000).map(|_| random() as u8).collect();
        assert!(is_dense(&noise) && is_dense(&noise[..2 * SAMPLE_BYTES]));
        assert!(!is_dense(&noise[..2 * SAMPLE_BYTES - 1]) && !is_dense(b""));
    }

    proptest! {
        #[test]
        fn decompressing_any_bytes_does_not_panic(
            bytes in proptest::collection::vec(any::<u8>(), 0..300), raw in 0usize..100_000, zstd: bool,
        ) {
            let compression = if zstd { Compression::Zstd } else { Compression::Lz4 };
            let _ = unpack(&bytes, raw, compression);
        }
    }
}
