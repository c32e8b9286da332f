//! Dictionaries: the frequent words of a tree, each written as one or two bytes before a block is compressed.
//!
//! zstd and LZ4 look back within one block, where most words of a text occur once. A dictionary knows the words of the whole tree, so that a
//! block of text shrinks by half before it is compressed, which then takes half the time too.
//!
//! A *word* is at most 16 bytes: letters, apostrophes and bytes beyond ASCII, with the space before them if there is one. What the blocks of
//! the tree hardly use serves as codes: a byte that stands for a word by itself, or a leading byte that does so with the byte
//! after it. A byte that is a code is itself written behind the escape byte. So any bytes can be encoded, into twice as many at worst.
//!
//! ```text
//! 0  magic     "TkWd"
//! 4  version   u8 = 1
//! 5  escape    u8
//! 6  singles   u8 = s, at least 1
//! 7  leads     u8 = l
//! 8  words     u32 = n, more than s if l > 0, at most s + 256 l
//! 12 codes     s + l bytes, the singles first; all different, and none is the escape
//!    lengths   n bytes, 3 to 16
//!    words     one after the other; word i < s has the code singles[i], others leads[(i - s) / 256] and (i - s) mod 256
//! ```
//!
//! An encoded block of n bytes has the codes of four parts, one after the other, the first three of n / 4 bytes each; before them stand
//! the lengths of the first three parts' codes, u32 each. That is so because of how decoders wait for memory, not to save anything.

mod training;
mod words;

pub use training::Training;

use words::{unit, WORD_BYTES};

const MAGIC: &[u8; 4] = b"TkWd";
const VERSION: u8 = 1;
const HEADER_BYTES: usize = 12;
/// A block is encoded in so many parts of about equal length.
const LANES: usize = 4;
/// The lengths of the codes of all lanes but the last come first.
const LENGTHS_BYTES: usize = 4 * (LANES - 1);
/// The items of the decoder before the words: the bytes themselves.
const BYTES: usize = 256;

/// What a byte of the code begins.
#[derive(Debug, Clone, Copy)]
struct Start {
    /// The item, or the first of those that the next byte chooses from.
    base: u32,
    /// 0xff if the next byte chooses, else 0.
    mask: u8,
}

/// The frequent words of a tree. Immutable.
pub struct Dictionary {
    number: u16,
    stored: Vec<u8>,
    escape: u8,
    singles: usize,
    /// For the decoder: the bytes, then the words, each in 16 bytes.
    items: Vec<[u8; WORD_BYTES]>,
    lengths: Vec<u8>,
    starts: [Start; BYTES],
    /// For the encoder: how each word is written, and whether a byte needs the escape.
    codes: Vec<[u8; 2]>,
    escaped: [bool; BYTES],
    index: words::Index,
}

impl Dictionary {
    /// From its stored form; the error says what is wrong. `number` is its name within its space, not 0.
    pub fn parse(number: u16, stored: Vec<u8>) -> Result<Dictionary, String> {
        let header = stored.get(..HEADER_BYTES).ok_or("a dictionary cut short")?;
        if header[..4] != MAGIC[..] {
            return Err("not a dictionary".to_string());
        }
        if header[4] != VERSION {
            return Err(format!("dictionary version {}, this build reads {VERSION}", header[4]));
        }
        let (escape, singles, leads) = (header[5], usize::from(header[6]), usize::from(header[7]));
        let words = super::u32_at(header, 8).unwrap_or(0) as usize;
        let least = if leads > 0 { singles + 1 } else { 1 };
        if singles == 0 || words < least || words > singles + BYTES * leads {
            return Err(format!("a dictionary of {words} words for {singles} + {leads} codes"));
        }
        let body = &stored[HEADER_BYTES..];
        let (codes, body) = body.split_at_checked(singles + leads).ok_or("a dictionary without codes")?;
        let (lengths, body) = body.split_at_checked(words).ok_or("a dictionary without lengths")?;
        let starts = starts(escape, codes, singles)?;
        let mut dictionary = Dictionary {
            number,
            escape,
            singles,
            items: Vec::with_capacity(BYTES + words),
            lengths: vec![1; BYTES],
            starts,
            codes: Vec::with_capacity(words),
            escaped: std::array::from_fn(|byte| codes.contains(&(byte as u8)) || byte == usize::from(escape)),
            index: words::Index::new(words),
            stored: Vec::new(),
        };
        dictionary.items.extend((0..=u8::MAX).map(|byte| {
            let mut item = [0; WORD_BYTES];
            item[0] = byte;
            item
        }));
        dictionary.take_words(codes, lengths, body)?;
        dictionary.stored = stored;
        Ok(dictionary)
    }

    fn take_words(&mut self, codes: &[u8], lengths: &[u8], mut body: &[u8]) -> Result<(), String> {
        for (i, &length) in lengths.iter().enumerate() {
            let (word, rest) =
                body.split_at_checked(usize::from(length)).ok_or("a dictionary without words")?;
            body = rest;
            // The encoder finds what is a unit of the text; nothing else may be in its index.
            let found = unit(word, 0).filter(|(_, bytes)| *bytes == word.len());
            let (key, _) = found.ok_or_else(|| format!("word {i} of a dictionary is none"))?;
            self.index.insert(key, i);
            self.codes.push(match i.checked_sub(self.singles) {
                None => [codes[i], 0],
                Some(i) => [codes[self.singles + i / BYTES], (i % BYTES) as u8],
            });
            self.items.push(key.bytes());
            self.lengths.push(length);
        }
        match body.len() {
            0 => Ok(()),
            more => Err(format!("{more} bytes behind the words of a dictionary")),
        }
    }

    /// Its name within its space.
    pub fn number(&self) -> u16 {
        self.number
    }

    /// The stored form.
    pub fn stored(&self) -> &[u8] {
        &self.stored
    }

    /// Bytes of memory that it takes.
    pub fn memory(&self) -> usize {
        std::mem::size_of::<Dictionary>()
            + self.stored.capacity()
            + self.items.len() * (WORD_BYTES + 1)
            + self.codes.len() * 2
            + self.index.memory()
    }

    /// The most bytes that `raw` bytes can be encoded into, with what [`Dictionary::encode`] needs behind them.
    pub fn bound(raw: usize) -> usize {
        LENGTHS_BYTES + 2 * raw + 2
    }

    /// Encodes `raw` into the start of `out`, which has [`Dictionary::bound`] bytes; returns how many.
    pub fn encode(&self, raw: &[u8], out: &mut [u8]) -> usize {
        let mut end = LENGTHS_BYTES;
        for lane in 0..LANES {
            let begin = end;
            end = self.encode_lane(&raw[span(raw.len(), lane)], out, begin);
            if let Some(place) = out[..LENGTHS_BYTES].get_mut(4 * lane..4 * lane + 4) {
                place.copy_from_slice(&((end - begin) as u32).to_le_bytes());
            }
        }
        end
    }

    fn encode_lane(&self, raw: &[u8], out: &mut [u8], mut end: usize) -> usize {
        let mut at = 0;
        while let Some(&byte) = raw.get(at) {
            if !words::begins(byte) {
                out[end] = self.escape;
                end += usize::from(self.escaped[usize::from(byte)]);
                out[end] = byte;
                end += 1;
                at += 1;
                continue;
            }
            let bytes = match unit(raw, at) {
                Some((key, bytes)) => {
                    if let Some(word) = self.index.find(key, |word| self.items[BYTES + word]) {
                        out[end..end + 2].copy_from_slice(&self.codes[word]);
                        end += 1 + usize::from(word >= self.singles);
                        at += bytes;
                        continue;
                    }
                    bytes
                }
                None => words::run(raw, at),
            };
            for &byte in &raw[at..at + bytes] {
                out[end] = self.escape;
                end += usize::from(self.escaped[usize::from(byte)]);
                out[end] = byte;
                end += 1;
            }
            at += bytes;
        }
        end
    }

    /// Decodes exactly `raw_bytes`; the error says what is wrong with `coded`.
    pub fn decode(&self, coded: &[u8], raw_bytes: usize) -> Result<Vec<u8>, String> {
        if raw_bytes > coded.len().saturating_mul(WORD_BYTES) {
            return Err(format!("{} codes cannot give {raw_bytes} bytes", coded.len()));
        }
        let mut raw: Vec<u8> = Vec::new();
        let room = raw_bytes + LANES * WORD_BYTES;
        raw.try_reserve_exact(room).map_err(|_| format!("no memory for a block of {raw_bytes} bytes"))?;
        raw.resize(room, 0);
        let (lengths, mut codes) = coded.split_at_checked(LENGTHS_BYTES).ok_or("codes cut short")?;
        let mut rest = &mut raw[..];
        let mut lanes: [Lane; LANES] = Default::default();
        for (i, lane) in lanes.iter_mut().enumerate() {
            let bytes = super::u32_at(lengths, 4 * i).map_or(codes.len(), |bytes| bytes as usize);
            (lane.codes, codes) = codes.split_at_checked(bytes).ok_or("a lane of codes cut short")?;
            let place = span(raw_bytes, i).len() + WORD_BYTES;
            (lane.raw, rest) = std::mem::take(&mut rest).split_at_mut(place);
        }
        // Each code waits for the one before it: four at a time wait side by side.
        while lanes.iter_mut().all(|lane| self.decode_one(lane)) {}
        for (i, lane) in lanes.iter_mut().enumerate() {
            while self.decode_one(lane) {}
            let bytes = span(raw_bytes, i).len();
            if lane.at != lane.codes.len() || lane.end != bytes {
                let (found, codes) = (lane.end, lane.codes.len());
                return Err(format!("{codes} codes of which {} give {found} bytes, of {bytes}", lane.at));
            }
        }
        for i in 1..LANES {
            let to = span(raw_bytes, i);
            let from = to.start + i * WORD_BYTES;
            raw.copy_within(from..from + to.len(), to.start);
        }
        raw.truncate(raw_bytes);
        Ok(raw)
    }

    /// Decodes the next code; false if there is none, or none that fits.
    #[inline(always)]
    fn decode_one(&self, lane: &mut Lane<'_>) -> bool {
        let Some(&byte) = lane.codes.get(lane.at) else { return false };
        let start = self.starts[usize::from(byte)];
        let next = lane.codes.get(lane.at + 1).copied().unwrap_or(0);
        let item = start.base as usize + usize::from(next & start.mask);
        let (Some(item), Some(&length)) = (self.items.get(item), self.lengths.get(item)) else {
            return false;
        };
        // A word is copied as a whole: what is behind its end is overwritten by the next.
        let Some(place) = lane.raw.get_mut(lane.end..lane.end + WORD_BYTES) else { return false };
        place.copy_from_slice(item);
        lane.end += usize::from(length);
        lane.at += 1 + usize::from(start.mask & 1);
        true
    }
}

/// A part of a block whose codes stand by themselves.
#[derive(Default)]
struct Lane<'a> {
    codes: &'a [u8],
    at: usize,
    /// With room for a word behind the end.
    raw: &'a mut [u8],
    end: usize,
}

/// The bytes of a block of `raw` bytes that are in a lane.
fn span(raw: usize, lane: usize) -> std::ops::Range<usize> {
    let each = raw / LANES;
    let end = if lane + 1 == LANES { raw } else { (lane + 1) * each };
    lane * each..end
}

impl std::fmt::Debug for Dictionary {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Dictionary({}, {} words)", self.number, self.codes.len())
    }
}

/// What each byte begins.
fn starts(escape: u8, codes: &[u8], singles: usize) -> Result<[Start; BYTES], String> {
    let mut starts: [Start; BYTES] = std::array::from_fn(|byte| Start { base: byte as u32, mask: 0 });
    let mut taken = [false; BYTES];
    starts[usize::from(escape)] = Start { base: 0, mask: 0xff };
    taken[usize::from(escape)] = true;
    for (i, &code) in codes.iter().enumerate() {
        if std::mem::replace(&mut taken[usize::from(code)], true) {
            return Err(format!("code {code:#04x} of a dictionary has two meanings"));
        }
        starts[usize::from(code)] = match i.checked_sub(singles) {
            None => Start { base: (BYTES + i) as u32, mask: 0 },
            Some(lead) => Start { base: (BYTES + singles + BYTES * lead) as u32, mask: 0xff },
        };
    }
    Ok(starts)
}

#[cfg(test)]
mod tests;
