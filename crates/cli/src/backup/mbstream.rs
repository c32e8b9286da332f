//! The format in which `mariadb-backup --stream=mbstream` writes: pieces of many files, in turn.
//!
//! ```text
//! "XBSTCK01" | flags 1 | type 1 | length of the path 4 | path | by type:
//!   P piece:  length 8 | offset 8 | CRC-32 4 | bytes        flag 2: the file begins anew
//!   S seek:   offset 8                                      the next piece lies there; what is between are zeros
//!   R rename: length 4 | new path
//!   D remove, E end of the file: nothing
//! ```
//! Numbers are little-endian. A type that is not known and has flag 1 can be passed over; it looks like a piece.

use std::io::{Read, Write};

const MAGIC: &[u8; 8] = b"XBSTCK01";
const IGNORABLE: u8 = 1;
const ANEW: u8 = 2;
/// Paths are not longer, FN_REFLEN in the server's sources.
const LONGEST_PATH: usize = 512;
/// Nor pieces: mariadb-backup writes up to its buffers' size, 10 MiB.
const LONGEST_PIECE: usize = 1 << 30;

/// What stands next in a stream.
#[derive(Debug, Clone, PartialEq)]
pub enum Chunk {
    /// The bytes are in the reader's buffer.
    Piece {
        path: String,
        offset: u64,
        anew: bool,
    },
    Seek {
        path: String,
        offset: u64,
    },
    Rename {
        path: String,
        to: String,
    },
    Remove {
        path: String,
    },
    End {
        path: String,
    },
}

/// Reads a stream.
pub struct Reader<R> {
    input: R,
    /// Bytes read so far: for messages.
    at: u64,
    bytes: Vec<u8>,
}

impl<R: Read> Reader<R> {
    pub fn new(input: R) -> Reader<R> {
        Reader { input, at: 0, bytes: Vec::new() }
    }

    /// The bytes of the piece that came last; none if something else did.
    pub fn piece(&self) -> &[u8] {
        &self.bytes
    }

    /// The next chunk; `None` where the stream ends.
    pub fn next(&mut self) -> std::io::Result<Option<Chunk>> {
        loop {
            self.bytes.clear();
            let Some(header) = self.header()? else { return Ok(None) };
            let [flags, kind] = [header[8], header[9]];
            let path = self.path([header[10], header[11], header[12], header[13]])?;
            return Ok(Some(match kind {
                b'P' => {
                    let offset = self.read_piece()?;
                    Chunk::Piece { path, offset, anew: flags & ANEW != 0 }
                }
                b'S' => Chunk::Seek { path, offset: u64::from_le_bytes(self.exact()?) },
                b'R' => {
                    let length = self.exact()?;
                    Chunk::Rename { path, to: self.path(length)? }
                }
                b'D' => Chunk::Remove { path },
                b'E' => Chunk::End { path },
                _ if flags & IGNORABLE != 0 => {
                    self.read_piece()?;
                    continue;
                }
                other => return Err(self.broken(format!("a chunk of unknown type {other:#04x}"))),
            }));
        }
    }

    fn header(&mut self) -> std::io::Result<Option<[u8; 14]>> {
        let mut header = [0; 14];
        // The only place where the stream may end.
        if self.input.read(&mut header[..1])? == 0 {
            return Ok(None);
        }
        self.at += 1;
        self.fill(&mut header[1..])?;
        match header.starts_with(MAGIC) {
            true => Ok(Some(header)),
            false => Err(self.broken("no chunk begins here")),
        }
    }

    fn path(&mut self, length: [u8; 4]) -> std::io::Result<String> {
        let length = u32::from_le_bytes(length) as usize;
        if length == 0 || length > LONGEST_PATH {
            return Err(self.broken(format!("a path of {length} bytes")));
        }
        let mut path = vec![0; length];
        self.fill(&mut path)?;
        let path = String::from_utf8(path).map_err(|_| self.broken("a path that is not UTF-8"))?;
        let path = path.strip_prefix("./").map(str::to_string).unwrap_or(path);
        match path.split('/').any(|part| part.is_empty() || part == "." || part == "..") {
            true => Err(self.broken(format!("the path {path:?} leads elsewhere"))),
            false => Ok(path),
        }
    }

    fn read_piece(&mut self) -> std::io::Result<u64> {
        let length = u64::from_le_bytes(self.exact()?);
        let offset = u64::from_le_bytes(self.exact()?);
        let sum = u32::from_le_bytes(self.exact()?);
        if length > LONGEST_PIECE as u64 {
            return Err(self.broken(format!("a piece of {length} bytes")));
        }
        let mut bytes = std::mem::take(&mut self.bytes);
        bytes.clear();
        // As far as there are bytes: a length alone takes no memory.
        let read = (&mut self.input).take(length).read_to_end(&mut bytes)?;
        self.bytes = bytes;
        if (read as u64) < length {
            // Who sends it has ended, and knows why.
            let text = format!("at byte {} of the stream: it ends within a piece", self.at);
            return Err(std::io::Error::new(std::io::ErrorKind::UnexpectedEof, text));
        }
        let mut crc = flate2::Crc::new();
        crc.update(&self.bytes);
        if crc.sum() != sum {
            return Err(self.broken("the checksum of a piece is wrong"));
        }
        self.at += length;
        Ok(offset)
    }

    fn exact<const N: usize>(&mut self) -> std::io::Result<[u8; N]> {
        let mut bytes = [0; N];
        self.fill(&mut bytes)?;
        Ok(bytes)
    }

    fn fill(&mut self, bytes: &mut [u8]) -> std::io::Result<()> {
        self.input.read_exact(bytes)?;
        self.at += bytes.len() as u64;
        Ok(())
    }

    fn broken(&self, what: impl std::fmt::Display) -> std::io::Error {
        let text = format!("at byte {} of the stream: {what}", self.at);
        std::io::Error::new(std::io::ErrorKind::InvalidData, text)
    }
}

/// Writes one chunk; `bytes` are those of a piece.
pub fn write(output: &mut dyn Write, chunk: &Chunk, bytes: &[u8]) -> std::io::Result<()> {
    let (flags, kind, path) = match chunk {
        Chunk::Piece { path, anew, .. } => (if *anew { ANEW } else { 0 }, b'P', path),
        Chunk::Seek { path, .. } => (0, b'S', path),
        Chunk::Rename { path, .. } => (0, b'R', path),
        Chunk::Remove { path } => (0, b'D', path),
        Chunk::End { path } => (0, b'E', path),
    };
    let length = |text: &str| (text.len() as u32).to_le_bytes();
    let mut header = [MAGIC, &[flags, kind][..], &length(path), path.as_bytes()].concat();
    match chunk {
        Chunk::Piece { offset, .. } => {
            let mut crc = flate2::Crc::new();
            crc.update(bytes);
            header.extend_from_slice(&(bytes.len() as u64).to_le_bytes());
            header.extend_from_slice(&offset.to_le_bytes());
            header.extend_from_slice(&crc.sum().to_le_bytes());
        }
        Chunk::Seek { offset, .. } => header.extend_from_slice(&offset.to_le_bytes()),
        Chunk::Rename { to, .. } => {
            header.extend_from_slice(&length(to));
            header.extend_from_slice(to.as_bytes());
        }
        Chunk::Remove { .. } | Chunk::End { .. } => {}
    }
    output.write_all(&header)?;
    output.write_all(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(chunk: &Chunk, bytes: &[u8]) -> Vec<u8> {
        let mut output = Vec::new();
        write(&mut output, chunk, bytes).unwrap();
        output
    }

    fn chunks() -> Vec<Chunk> {
        let path = || "d/a.ibd".to_string();
        vec![
            Chunk::Piece { path: path(), offset: 0, anew: false },
            Chunk::Piece { path: path(), offset: 0, anew: true },
            Chunk::Seek { path: path(), offset: 4096 },
            Chunk::End { path: path() },
            Chunk::Rename { path: "b".into(), to: "c".into() },
            Chunk::Remove { path: "c".into() },
        ]
    }

    fn stream() -> Vec<u8> {
        let bytes = |chunk: &Chunk| match chunk {
            Chunk::Piece { .. } => &b"hello"[..],
            _ => b"",
        };
        chunks().iter().flat_map(|chunk| written(chunk, bytes(chunk))).collect()
    }

    fn read(bytes: &[u8]) -> std::io::Result<Vec<Chunk>> {
        let mut reader = Reader::new(bytes);
        let mut chunks = Vec::new();
        while let Some(chunk) = reader.next()? {
            chunks.push(chunk);
        }
        Ok(chunks)
    }

    #[test]
    fn chunks_of_each_type_are_read_as_they_were_written() {
        assert_eq!(read(&stream()).unwrap(), chunks());
        let local = written(&Chunk::End { path: "./a".into() }, b"");
        assert_eq!(read(&local).unwrap(), [Chunk::End { path: "a".into() }]);
    }

    #[test]
    fn an_unknown_type_is_passed_over_if_it_says_so() {
        let mut unknown = written(&Chunk::Piece { path: "x".into(), offset: 0, anew: false }, b"abc");
        unknown[9] = b'?';
        assert!(read(&unknown).is_err());
        unknown[8] = IGNORABLE;
        assert_eq!(read(&[unknown, stream()].concat()).unwrap(), chunks());
    }

    #[test]
    fn what_is_cut_or_damaged_or_leads_out_of_the_directory_is_refused() {
        let whole = stream();
        let boundaries: Vec<_> =
            (0..=whole.len()).filter(|&at| at == whole.len() || whole[at..].starts_with(MAGIC)).collect();
        for cut in 0..=whole.len() {
            assert_eq!(read(&whole[..cut]).is_ok(), boundaries.contains(&cut), "{cut}");
        }
        for path in ["../x", "/etc/passwd", "a/../b", "a//b", ".", ""] {
            assert!(read(&written(&Chunk::End { path: path.into() }, b"")).is_err(), "{path}");
        }
        let mut long = written(&Chunk::Piece { path: "a".into(), offset: 0, anew: false }, b"abc");
        long[15..23].copy_from_slice(&(1u64 << 60).to_le_bytes());
        assert!(read(&long).is_err());
    }
}
