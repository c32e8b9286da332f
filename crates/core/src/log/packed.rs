//! Large records are compressed: they are those of bulk work, which writes the log faster than anything else.
//!
//! ```text
//! packed   kind u8 = 7 | length of the record varint | the record, as an LZ4 block
//! ```
//!
//! Who commits compresses, on its own thread, before the record is queued. Records of ordinary transactions stay as
//! they are: a replay reads them faster, and they are too small to gain much.

use super::varint;
use parking_lot::Mutex;

/// The kind of record that holds another one, compressed.
const PACKED: u8 = 7;
/// Records from this size on are compressed, in bytes.
const LEAST_BYTES: usize = 256 << 10;
/// Records above this size are not, in bytes: both forms have to fit in memory.
const MOST_BYTES: usize = 256 << 20;
/// A byte of LZ4 stands for no more bytes than this: who announces more gets no memory for it.
const LZ4_MAX_RATIO: usize = 255;

/// Length of each of the three pieces with which it is tried whether compression pays.
const SAMPLE_BYTES: usize = 16 << 10;

/// Memory that is used again and again: a bulk write packs a megabyte every few milliseconds, and fresh pages for it
/// cost as much as half of the compression.
struct Pool(Mutex<Vec<Vec<u8>>>);

/// Pieces of memory that a pool keeps.
const KEPT: usize = 8;
/// Larger ones are not kept, in bytes.
const KEPT_BYTES: usize = 2 << 20;

/// Of large records on their way to be packed; empty.
static RECORDS: Pool = Pool(Mutex::new(Vec::new()));
/// What is compressed into; full of bytes that nobody needs.
static ROOM: Pool = Pool(Mutex::new(Vec::new()));

impl Pool {
    fn take(&self) -> Vec<u8> {
        self.0.lock().pop().unwrap_or_default()
    }

    fn give(&self, piece: Vec<u8>) {
        let mut kept = self.0.lock();
        if piece.capacity() <= KEPT_BYTES && kept.len() < KEPT {
            kept.push(piece);
        }
    }
}

/// Memory for a record of so many bytes, for [`pack`].
pub(super) fn room_for_record(bytes: usize) -> Vec<u8> {
    if bytes < LEAST_BYTES {
        return Vec::with_capacity(bytes);
    }
    let mut record = RECORDS.take();
    record.reserve_exact(bytes);
    record
}

/// The record, compressed if that pays.
pub(super) fn pack(mut record: Vec<u8>) -> Vec<u8> {
    if !(LEAST_BYTES..=MOST_BYTES).contains(&record.len()) {
        return record;
    }
    let mut room = ROOM.take();
    let most = lz4_flex::block::get_maximum_output_size(record.len());
    if room.len() < most {
        room.resize(most, 0);
    }
    if !samples_shrink(&record, &mut room) {
        ROOM.give(room);
        return record;
    }
    let packed = match lz4_flex::block::compress_into(&record, &mut room) {
        Ok(bytes) if pays(bytes, record.len()) => {
            let mut out = Vec::with_capacity(16 + bytes);
            out.push(PACKED);
            varint::put(&mut out, record.len() as u64);
            out.extend_from_slice(&room[..bytes]);
            record.clear();
            RECORDS.give(record);
            out
        }
        _ => record,
    };
    ROOM.give(room);
    packed
}

fn pays(packed: usize, bytes: usize) -> bool {
    packed < bytes - bytes / 8
}

/// Whether compression pays for pieces from three places of the record: digits and random text do not shrink, and to
/// find that out with all of it was a twelfth of the time of a large UPDATE.
fn samples_shrink(record: &[u8], room: &mut [u8]) -> bool {
    let quarters = [1, 2, 3].map(|quarter| record.len() / 4 * quarter);
    let packed = quarters.map(|at| lz4_flex::block::compress_into(&record[at..at + SAMPLE_BYTES], room));
    let sum: usize = packed.into_iter().map(|bytes| bytes.unwrap_or(SAMPLE_BYTES)).sum();
    pays(sum, quarters.len() * SAMPLE_BYTES)
}

/// The record in `payload`; `buffer` takes it if it is compressed. The error says what is wrong.
pub(crate) fn unpack<'a>(payload: &'a [u8], buffer: &'a mut Vec<u8>) -> Result<&'a [u8], &'static str> {
    let [PACKED, rest @ ..] = payload else { return Ok(payload) };
    let mut compressed = rest;
    let length = varint::take(&mut compressed).and_then(|length| usize::try_from(length).ok());
    let most = MOST_BYTES.min(compressed.len().saturating_mul(LZ4_MAX_RATIO));
    let length = length.filter(|&length| length <= most).ok_or("length of a compressed record")?;
    buffer.resize(length, 0);
    match lz4_flex::block::decompress_into(compressed, buffer) {
        Ok(found) if found == length => Ok(&buffer[..]),
        _ => Err("a compressed record that does not decompress"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_records_shrink_and_come_back_and_others_stay_as_they_are() {
        let text: Vec<u8> = (0..1u32 << 20).map(|i| (i / 7 % 50) as u8).collect();
        let mut state = 1u64;
        let mut next = || {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (state >> 56) as u8
        };
        let random: Vec<u8> = (0..1 << 20).map(|_| next()).collect();
        for (record, shrinks) in
            [(text.clone(), true), (text[..1000].to_vec(), false), (random, false), (Vec::new(), false)]
        {
            let packed = pack(record.clone());
            assert_eq!(packed.len() < record.len(), shrinks);
            assert!(unpack(&packed, &mut Vec::new()).unwrap() == record);
        }
    }

    #[test]
    fn damaged_bytes_are_errors_and_allocate_nothing_beyond_the_limit() {
        let text = vec![3; 1 << 20];
        let packed = pack(text.clone());
        for cut in [1, 2, 5, packed.len() / 2, packed.len() - 1] {
            assert!(unpack(&packed[..cut], &mut Vec::new()).is_err());
        }
        for at in 0..packed.len().min(300) {
            let mut damaged = packed.clone();
            damaged[at] ^= 0x41;
            let mut buffer = Vec::new();
            // Whatever comes out has the length that was announced, or is refused.
            if let Ok(record) = unpack(&damaged, &mut buffer) {
                assert!(record.len() <= MOST_BYTES.max(damaged.len()));
            }
        }
        let mut huge = vec![PACKED];
        varint::put(&mut huge, 1 << 40);
        assert!(unpack(&huge, &mut Vec::new()).is_err());
    }
}
