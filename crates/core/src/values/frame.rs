//! What stands around a deflate stream in a value: nothing, or headers, checksums and lengths, which follow from the
//! bytes in the stream and from the level it was written with. Only gzip's header has to be kept.
//!
//! ```text
//! raw          stream                                     PHP's gzdeflate
//! zlib         78 FL | stream | Adler-32, big-endian      RFC 1950; gzcompress, Python's zlib
//! gzip         header of RFC 1952 | stream | CRC-32 | length, little-endian
//! counted      length u32 little-endian, 30 bits | zlib | '.' if the last byte is a blank      SQL's COMPRESS()
//! column       88 + n | length, n bytes big-endian | stream        MariaDB's COMPRESSED columns
//! column zlib  80 + n | length, n bytes big-endian | zlib          with column_compression_zlib_wrap
//! ```

use super::zlib::{adler32, crc32};

/// Longer headers of gzip files are refused, in bytes: names and comments are short.
const MOST_HEAD: usize = 1024;
/// First byte of a zlib stream: deflate with a window of 32 KiB.
const ZLIB: u8 = 0x78;

/// The kind is stored: numbers never change.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub(super) enum Kind {
    Raw = 0,
    Zlib = 1,
    Gzip = 2,
    Counted = 3,
    Column = 4,
    ColumnZlib = 5,
}

impl Kind {
    pub(super) fn of_number(number: u8) -> Option<Kind> {
        let kinds = [Kind::Raw, Kind::Zlib, Kind::Gzip, Kind::Counted, Kind::Column, Kind::ColumnZlib];
        kinds.get(usize::from(number)).copied()
    }

    fn has_zlib(self) -> bool {
        matches!(self, Kind::Zlib | Kind::Counted | Kind::ColumnZlib)
    }
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Frame {
    pub(super) kind: Kind,
    /// The whole header of a gzip file; empty otherwise.
    pub(super) kept: Box<[u8]>,
}

/// A frame that a value may have.
pub(super) struct Guess {
    pub(super) frame: Frame,
    /// Where the stream begins.
    pub(super) start: usize,
    /// How long the frame says the content is, if it does so at its beginning.
    pub(super) announced: Option<usize>,
}

impl Frame {
    /// What the first bytes of `value` may be the beginning of, most telling first.
    pub(super) fn guesses(value: &[u8]) -> impl Iterator<Item = Guess> + '_ {
        let plain = |kind, start, announced| {
            let frame = Frame { kind, kept: Box::default() };
            Guess { frame, start, announced }
        };
        let gzip = gzip_head(value).map(|start| {
            let frame = Frame { kind: Kind::Gzip, kept: value[..start].into() };
            Guess { frame, start, announced: None }
        });
        let zlib = is_zlib(value).then(|| plain(Kind::Zlib, 2, None));
        let column = column_head(value).map(|(wrapped, width, length)| match wrapped {
            true => plain(Kind::ColumnZlib, 1 + width + 2, Some(length)),
            false => plain(Kind::Column, 1 + width, Some(length)),
        });
        let counted = value.split_first_chunk().filter(|(_, rest)| is_zlib(rest)).map(|(count, _)| {
            // A length that has more bits is not that of what is inflated.
            plain(Kind::Counted, 6, Some(u32::from_le_bytes(*count) as usize))
        });
        let all = [gzip, zlib, column, counted, Some(plain(Kind::Raw, 0, None))];
        all.into_iter().flatten().filter(|guess| may_begin(&value[guess.start..]))
    }

    /// What stands before a stream that was written with `level` and has `length` bytes in it.
    pub(super) fn head(&self, level: u8, length: usize) -> Vec<u8> {
        let mut head = self.kept.to_vec();
        match self.kind {
            Kind::Raw | Kind::Zlib | Kind::Gzip => {}
            Kind::Counted => head.extend_from_slice(&(length as u32 & 0x3fff_ffff).to_le_bytes()),
            Kind::Column | Kind::ColumnZlib => {
                let bytes = (length as u32).to_be_bytes();
                let width = width_of(length);
                head.push(if self.kind == Kind::Column { 0x88 } else { 0x80 } + width as u8);
                head.extend_from_slice(&bytes[4 - width..]);
            }
        }
        if self.kind.has_zlib() {
            // How hard the writer says that it has tried (FLEVEL), and what makes the header divisible by 31.
            let flags = match level {
                0 | 1 => 0x01,
                2..=5 => 0x5e,
                6 => 0x9c,
                _ => 0xda,
            };
            head.extend_from_slice(&[ZLIB, flags]);
        }
        head
    }

    /// What stands behind a stream that has `content` in it.
    pub(super) fn tail(&self, content: &[u8]) -> Vec<u8> {
        match self.kind {
            Kind::Raw | Kind::Column => Vec::new(),
            Kind::Zlib | Kind::ColumnZlib => adler32(content).to_be_bytes().to_vec(),
            Kind::Gzip => [crc32(content).to_le_bytes(), (content.len() as u32).to_le_bytes()].concat(),
            Kind::Counted => {
                let mut tail = adler32(content).to_be_bytes().to_vec();
                // The server does so because CHAR columns lose blanks at their end.
                if tail.last() == Some(&b' ') {
                    tail.push(b'.');
                }
                tail
            }
        }
    }

    /// Whether what was kept is a header, and nothing else.
    pub(super) fn is_sound(&self) -> bool {
        match self.kind {
            Kind::Gzip => gzip_head(&self.kept) == Some(self.kept.len()),
            _ => self.kept.is_empty(),
        }
    }

    /// The level that a gzip header hints at (XFL): some writers always say the same.
    pub(super) fn hinted_level(&self) -> Option<u8> {
        match self.kept.get(8) {
            Some(2) => Some(9),
            Some(4) => Some(1),
            _ => None,
        }
    }
}

/// Whether a deflate stream may begin so. Refuses most of what is none at the price of a few comparisons; zlib itself
/// refuses nearly all of the rest within its first hundred bytes.
fn may_begin(stream: &[u8]) -> bool {
    let &[first, second, ref rest @ ..] = stream else { return false };
    match first >> 1 & 3 {
        // Stored: zlib fills the byte up with zeros; the length stands there twice, once inverted.
        0 => first >> 3 == 0 && rest.len() >= 3 && second == !rest[1] && rest[0] == !rest[2],
        1 => true,
        // There are 286 symbols for literals and lengths, and 30 for distances.
        2 => first >> 3 <= 29 && second & 31 <= 29,
        _ => false,
    }
}

/// Whether the first block of a stream is stored as it is.
pub(super) fn begins_stored(stream: &[u8]) -> bool {
    stream.first().is_some_and(|first| first >> 1 & 3 == 0)
}

/// A zlib header without a dictionary.
fn is_zlib(value: &[u8]) -> bool {
    matches!(value, [ZLIB, flags, ..] if flags & 0x20 == 0 && u16::from_be_bytes([ZLIB, *flags]).is_multiple_of(31))
}

/// Bytes that a length needs.
fn width_of(length: usize) -> usize {
    (4 - (length as u32).leading_zeros() as usize / 8).max(1)
}

/// Of a compressed column: whether zlib's header follows, the width of the length, the length.
fn column_head(value: &[u8]) -> Option<(bool, usize, usize)> {
    let (&kind, rest) = value.split_first()?;
    let width = usize::from(kind & 7);
    if kind & 0xf0 != 0x80 || !(1..=4).contains(&width) || rest.len() < width {
        return None;
    }
    let length = rest[..width].iter().fold(0, |length, &byte| length << 8 | usize::from(byte));
    let wrapped = kind & 8 == 0;
    (width_of(length) == width && (!wrapped || is_zlib(&rest[width..]))).then_some((wrapped, width, length))
}

/// The length of the gzip header that `value` begins with.
fn gzip_head(value: &[u8]) -> Option<usize> {
    const CHECKSUM: u8 = 2;
    const EXTRA: u8 = 4;
    const NAME: u8 = 8;
    const COMMENT: u8 = 16;
    let &[0x1f, 0x8b, 8, flags, _, _, _, _, _, _, ..] = value else { return None };
    if flags >= 32 {
        return None;
    }
    let value = &value[..value.len().min(MOST_HEAD)];
    let mut at = 10;
    if flags & EXTRA != 0 {
        let &[low, high] = value.get(at..at + 2)? else { return None };
        at += 2 + usize::from(u16::from_le_bytes([low, high]));
    }
    for text in [NAME, COMMENT] {
        if flags & text != 0 {
            at += value.get(at..)?.iter().position(|&byte| byte == 0)? + 1;
        }
    }
    if flags & CHECKSUM != 0 {
        at += 2;
    }
    (at <= value.len()).then_some(at)
}
