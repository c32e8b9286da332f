//! A file's bytes, as they come, cut into events. It knows the length in each header, and nothing else of events.

use super::error::Problem;
use super::header::HEADER_BYTES;
use super::limits::Limits;

/// What each file of a log begins with.
pub const MAGIC: [u8; 4] = [0xfe, b'b', b'i', b'n'];

/// Where in an event its length is.
const LENGTH_AT: usize = 9;

/// The bytes of one event, header and checksum with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Frame<'a> {
    /// Where in the file it begins. It ends at this and the number of its bytes.
    pub position: u64,
    /// All of it.
    pub bytes: &'a [u8],
}

/// Cuts a file into events. It holds what was fed and is no whole event yet: memory grows with bytes that have come,
/// never by a length that they tell.
#[derive(Debug)]
pub struct Framer {
    limits: Limits,
    input: Vec<u8>,
    /// What of the input was handed out.
    taken: usize,
    /// Where in the file that is.
    position: u64,
    begun: bool,
}

impl Framer {
    /// Of a file from its first byte on.
    pub fn new(limits: Limits) -> Framer {
        Framer { limits, input: Vec::new(), taken: 0, position: 0, begun: false }
    }

    /// More bytes of the file.
    pub fn feed(&mut self, bytes: &[u8]) {
        if self.taken > 0 {
            self.input.drain(..self.taken);
            self.taken = 0;
        }
        self.input.extend_from_slice(bytes);
    }

    /// The next event, if all of it was fed. After an error there is no next one.
    pub fn next_event(&mut self) -> Result<Option<Frame<'_>>, Problem> {
        if !self.begun {
            let given = self.input.len().min(MAGIC.len());
            if self.input[..given] != MAGIC[..given] {
                return Err(Problem::NotABinaryLog);
            }
            if given < MAGIC.len() {
                return Ok(None);
            }
            self.begun = true;
            self.advance(MAGIC.len());
        }
        let left = &self.input[self.taken..];
        let Some(length) = left.get(LENGTH_AT..).and_then(|bytes| bytes.first_chunk::<4>()) else {
            return Ok(None);
        };
        let length = self.limits.bounded("an event", u64::from(u32::from_le_bytes(*length)))?;
        if length < HEADER_BYTES {
            return Err(Problem::invalid(format!("an event of {length} bytes, less than its header has")));
        }
        if left.len() < length {
            return Ok(None);
        }
        let (from, position) = (self.taken, self.position);
        self.advance(length);
        Ok(Some(Frame { position, bytes: &self.input[from..self.taken] }))
    }

    fn advance(&mut self, bytes: usize) {
        self.taken += bytes;
        self.position += bytes as u64;
    }

    /// Where in the file the next event begins.
    pub fn position(&self) -> u64 {
        self.position
    }

    /// Fails if the file ends here within an event, or before its first one.
    pub fn finish(&self) -> Result<(), Problem> {
        match self.input.len() - self.taken {
            _ if !self.begun => Err(Problem::NotABinaryLog),
            0 => Ok(()),
            left => Err(Problem::Truncated { left }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(lengths: &[usize]) -> Vec<u8> {
        let mut bytes = MAGIC.to_vec();
        for &length in lengths {
            let mut event = vec![7; length];
            event[LENGTH_AT..LENGTH_AT + 4].copy_from_slice(&(length as u32).to_le_bytes());
            bytes.extend_from_slice(&event);
        }
        bytes
    }

    fn cut(bytes: &[u8], step: usize) -> (Vec<(u64, usize)>, Result<(), Problem>) {
        let mut framer = Framer::new(Limits::default());
        let mut found = Vec::new();
        for part in bytes.chunks(step) {
            framer.feed(part);
            loop {
                match framer.next_event() {
                    Ok(Some(frame)) => found.push((frame.position, frame.bytes.len())),
                    Ok(None) => break,
                    Err(problem) => return (found, Err(problem)),
                }
            }
        }
        (found, framer.finish())
    }

    #[test]
    fn events_are_the_same_however_the_bytes_come() {
        let bytes = file(&[19, 300, 20]);
        for step in 1..bytes.len() {
            assert_eq!(cut(&bytes, step), (vec![(4, 19), (23, 300), (323, 20)], Ok(())), "steps of {step}");
        }
    }

    #[test]
    fn an_end_within_an_event_is_told() {
        let bytes = file(&[19, 20]);
        for end in 0..bytes.len() {
            let (_, result) = cut(&bytes[..end], 7);
            let expected = match end {
                0..=3 => Err(Problem::NotABinaryLog),
                4 | 23 => Ok(()),
                5..=22 => Err(Problem::Truncated { left: end - 4 }),
                _ => Err(Problem::Truncated { left: end - 23 }),
            };
            assert_eq!(result, expected, "{end}");
        }
    }

    #[test]
    fn lengths_are_looked_at_before_their_bytes_come() {
        let mut bytes = file(&[19]);
        bytes.truncate(4 + LENGTH_AT + 4);
        for (length, refused) in [(0, true), (18, true), (19, false), (1 << 30, false), (u32::MAX, true)] {
            bytes[4 + LENGTH_AT..].copy_from_slice(&length.to_le_bytes());
            let mut framer = Framer::new(Limits::default());
            framer.feed(&bytes);
            assert_eq!(framer.next_event().is_err(), refused, "{length}");
            assert!(framer.input.capacity() < 1000);
        }
        assert_eq!(cut(b"#!/bin/sh\n", 3).1, Err(Problem::NotABinaryLog));
    }
}
