//! What MariaDB compresses with zlib: statements and rows of events, and values of columns.
//!
//! ```text
//! event:  1 | kind: 3 bits, 0 is zlib | 0 | number of length bytes: 3 bits     then the length, highest byte first, zlib
//! column: method: 4 bits              | raw | number of length bytes: 3 bits   then the same
//! ```
//!
//! A column's method is 0 for bytes as they are, and 8 for zlib, *raw* being whether it is without zlib's own header.

use super::bytes::Bytes;
use super::error::Problem;
use super::limits::Limits;
use flate2::bufread::{DeflateDecoder, ZlibDecoder};
use std::borrow::Cow;
use std::io::Read;

/// The statement or the rows of a compressed event.
pub fn of_event(bytes: &[u8], limits: &Limits) -> Result<Vec<u8>, Problem> {
    let mut bytes = Bytes(bytes);
    let head = bytes.u8("what tells how an event is compressed")?;
    if head & 0xf8 != 0x80 {
        return Err(Problem::invalid(format!("an event that is compressed in an unknown way ({head:02x})")));
    }
    inflate(bytes, head, ZlibDecoder::new, limits)
}

/// The value of a compressed column.
pub fn of_column<'a>(value: &'a [u8], limits: &Limits) -> Result<Cow<'a, [u8]>, Problem> {
    let mut bytes = Bytes(value);
    if bytes.is_empty() {
        return Ok(Cow::Borrowed(value));
    }
    let head = bytes.u8("what tells how a value is compressed")?;
    match (head >> 4, head & 8) {
        (0, _) => Ok(Cow::Borrowed(bytes.rest())),
        (8, 0) => inflate(bytes, head, ZlibDecoder::new, limits).map(Cow::Owned),
        (8, _) => inflate(bytes, head, DeflateDecoder::new, limits).map(Cow::Owned),
        _ => Err(Problem::invalid(format!("a value that is compressed in an unknown way ({head:02x})"))),
    }
}

/// What memory is taken grows with what comes out, up to the length that was told.
fn inflate<'a, D: Read>(
    mut bytes: Bytes<'a>,
    head: u8,
    decoder: impl FnOnce(&'a [u8]) -> D,
    limits: &Limits,
) -> Result<Vec<u8>, Problem> {
    let what = "what is compressed";
    let length_bytes = usize::from(head & 7);
    if !(1..=4).contains(&length_bytes) {
        return Err(Problem::invalid(format!("{what} has a length of {length_bytes} bytes")));
    }
    let length = limits.bounded(what, bytes.big(length_bytes, what)?)?;
    let mut out = Vec::new();
    // One byte more, so that a longer one is told from one that ends here.
    let read = decoder(bytes.rest()).take(length as u64 + 1).read_to_end(&mut out);
    match read {
        Err(error) => Err(Problem::invalid(format!("{what} cannot be inflated: {error}"))),
        Ok(_) if out.len() != length => {
            Err(Problem::invalid(format!("{what} has other than the {length} bytes that are told")))
        }
        Ok(_) => Ok(out),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::read::{DeflateEncoder, ZlibEncoder};
    use flate2::Compression;

    fn packed(head: u8, length: &[u8], text: &[u8]) -> Vec<u8> {
        let mut out = vec![head | length.len() as u8];
        out.extend_from_slice(length);
        if head & 8 == 0 {
            ZlibEncoder::new(text, Compression::best()).read_to_end(&mut out).unwrap();
        } else {
            DeflateEncoder::new(text, Compression::best()).read_to_end(&mut out).unwrap();
        }
        out
    }

    #[test]
    fn what_is_compressed_comes_back() {
        let (text, limits) = (b"x".repeat(300), Limits::default());
        let event = packed(0x80, &[1, 44], &text);
        assert_eq!(of_event(&event, &limits).unwrap(), text);
        for (head, length) in [(0x80, &[1, 44][..]), (0x88, &[0, 1, 44])] {
            assert_eq!(of_column(&packed(head, length, &text), &limits).unwrap(), text);
        }
        assert_eq!(of_column(b"\0ab", &limits).unwrap(), &b"ab"[..]);
        assert_eq!(of_column(b"", &limits).unwrap(), &b""[..]);
    }

    #[test]
    fn other_lengths_and_kinds_are_errors() {
        let (text, limits) = (b"x".repeat(300), Limits { event_bytes: 1000, ..Limits::default() });
        for length in [&[1, 43][..], &[1, 45], &[0], &[0xff, 0xff, 0xff, 0xff], &[4, 0]] {
            assert!(of_event(&packed(0x80, length, &text), &limits).is_err(), "{length:?}");
        }
        for head in [0x00, 0x80, 0x85, 0x90, 0x88, 0x01] {
            assert!(of_event(&[head, 1, 2, 3], &limits).is_err(), "{head:x}");
        }
        for head in [0x10, 0x81, 0x89, 0x90, 0xf1] {
            assert!(of_column(&[head, 1, 2, 3], &limits).is_err(), "{head:x}");
        }
        let whole = packed(0x80, &[1, 44], &text);
        for end in 0..whole.len() {
            assert!(of_event(&whole[..end], &limits).is_err(), "{end}");
        }
    }
}
