//! A whole transaction in one event of MySQL, plain or compressed with zstd.
//!
//! ```text
//! { field: packed | length: packed | value } | 0 | the events, without checksums
//! ```

use crate::bytes::Bytes;
use crate::error::Problem;
use crate::header::HEADER_BYTES;
use crate::limits::Limits;
use std::io::Read;

/// What a window of zstd may be at most: 2 to the power of this.
const LARGEST_WINDOW: u32 = 27;
/// Where in an event its length is.
const LENGTH_AT: usize = 9;

/// How the events of a payload are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Compression {
    /// As they are.
    None,
    /// As zstd makes them.
    Zstd,
}

/// A whole transaction. Who reads a log again from its middle begins at such an event, never within it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TransactionPayload<'a> {
    /// How it is written.
    pub compression: Compression,
    /// The length of its events, as it tells.
    pub uncompressed_bytes: Option<u64>,
    /// The events.
    pub data: &'a [u8],
}

impl<'a> TransactionPayload<'a> {
    pub(crate) fn read(mut bytes: Bytes<'a>) -> Result<TransactionPayload<'a>, Problem> {
        let what = "a transaction_payload event";
        let (mut length, mut compression, mut uncompressed_bytes) = (None, None, None);
        loop {
            let field = bytes.packed(what)?;
            if field == 0 {
                break;
            }
            let mut value = Bytes(bytes.packed_string(what)?);
            match field {
                1 => length = Some(value.packed(what)?),
                2 => compression = Some(value.packed(what)?),
                3 => uncompressed_bytes = Some(value.packed(what)?),
                _ => (),
            }
        }
        let compression = match compression {
            Some(0) => Compression::Zstd,
            Some(255) => Compression::None,
            other => return Err(Problem::invalid(format!("{what} with compression {other:?}"))),
        };
        let length = length.ok_or_else(|| Problem::invalid(format!("{what} without a length")))?;
        let data = bytes.take_long(length, what)?;
        bytes.end(what)?;
        Ok(TransactionPayload { compression, uncompressed_bytes, data })
    }

    /// Its events, one after the other: of what is compressed no more is in memory than the event that comes, and the
    /// window of zstd.
    pub fn events(&self, limits: &Limits) -> Result<PayloadEvents<'a>, Problem> {
        let source = match self.compression {
            Compression::None => Source::Plain(self.data),
            Compression::Zstd => {
                let mut decoder = zstd::stream::read::Decoder::with_buffer(self.data).map_err(of_zstd)?;
                decoder.window_log_max(LARGEST_WINDOW).map_err(of_zstd)?;
                Source::Zstd(Box::new(decoder))
            }
        };
        Ok(PayloadEvents { source, event: Vec::new(), limits: *limits })
    }
}

fn of_zstd(error: std::io::Error) -> Problem {
    Problem::invalid(format!("a compressed transaction cannot be unpacked: {error}"))
}

enum Source<'a> {
    Plain(&'a [u8]),
    Zstd(Box<zstd::stream::read::Decoder<'static, &'a [u8]>>),
}

/// The events of a payload.
pub struct PayloadEvents<'a> {
    source: Source<'a>,
    event: Vec<u8>,
    limits: Limits,
}

impl std::fmt::Debug for PayloadEvents<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PayloadEvents").finish_non_exhaustive()
    }
}

impl PayloadEvents<'_> {
    /// All bytes of the next event, which has no checksum. After an error there is no next one.
    pub fn next_event(&mut self) -> Result<Option<&[u8]>, Problem> {
        self.event.clear();
        match self.append(HEADER_BYTES)? {
            0 => return Ok(None),
            HEADER_BYTES => (),
            left => return Err(Problem::Truncated { left }),
        }
        let length = self.event[LENGTH_AT..].first_chunk::<4>().map_or(0, |bytes| u32::from_le_bytes(*bytes));
        let length = self.limits.bounded("an event", length.into())?;
        if length < HEADER_BYTES {
            return Err(Problem::invalid(format!("an event of {length} bytes, less than its header has")));
        }
        match self.append(length - HEADER_BYTES)? {
            rest if HEADER_BYTES + rest == length => Ok(Some(&self.event)),
            rest => Err(Problem::Truncated { left: HEADER_BYTES + rest }),
        }
    }

    /// Puts up to so many bytes behind the event; how many there were.
    fn append(&mut self, bytes: usize) -> Result<usize, Problem> {
        let bytes = bytes as u64;
        match &mut self.source {
            Source::Plain(data) => data.take(bytes).read_to_end(&mut self.event),
            Source::Zstd(decoder) => decoder.take(bytes).read_to_end(&mut self.event),
        }
        .map_err(of_zstd)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn events() -> Vec<u8> {
        [19u32, 400, 20]
            .iter()
            .flat_map(|&length| {
                let mut event = vec![length as u8; length as usize];
                event[LENGTH_AT..LENGTH_AT + 4].copy_from_slice(&length.to_le_bytes());
                event
            })
            .collect()
    }

    fn payload(compression: &[u8], data: &[u8]) -> Vec<u8> {
        let mut bytes = vec![2, compression.len() as u8];
        bytes.extend_from_slice(compression);
        bytes.extend_from_slice(&[9, 1, 7, 1, 3, 0xfc]);
        bytes.extend_from_slice(&(data.len() as u16).to_le_bytes());
        bytes.push(0);
        bytes.extend_from_slice(data);
        bytes
    }

    fn lengths(bytes: &[u8]) -> Result<Vec<usize>, Problem> {
        let mut events = TransactionPayload::read(Bytes(bytes))?.events(&Limits::default())?;
        let mut lengths = Vec::new();
        while let Some(event) = events.next_event()? {
            lengths.push(event.len());
        }
        Ok(lengths)
    }

    #[test]
    fn events_come_out_of_both_kinds() {
        let plain = payload(&[0xfc, 255, 0], &events());
        let packed = payload(&[0], &zstd::encode_all(&events()[..], 3).unwrap());
        for bytes in [plain, packed] {
            assert_eq!(lengths(&bytes), Ok(vec![19, 400, 20]));
            for end in 0..bytes.len() {
                assert!(lengths(&bytes[..end]).is_err(), "{end}");
            }
        }
        assert!(lengths(&payload(&[1], &events())).is_err());
    }

    #[test]
    fn an_end_within_an_event_and_a_wrong_length_are_told() {
        let cut = &events()[..438];
        let packed = payload(&[0], &zstd::encode_all(cut, 3).unwrap());
        assert_eq!(lengths(&packed), Err(Problem::Truncated { left: 19 }));
        let mut wrong = events();
        wrong[LENGTH_AT..LENGTH_AT + 4].copy_from_slice(&u32::MAX.to_le_bytes());
        let packed = payload(&[0], &zstd::encode_all(&wrong[..], 3).unwrap());
        assert!(matches!(lengths(&packed), Err(Problem::TooLarge { .. })));
    }
}
