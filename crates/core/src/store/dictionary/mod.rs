//! Dictionaries: the frequent words of a tree, each written as one or two bytes before a block is compressed.
//!
//! zstd and LZ4 look back within one block, where most words of a text occur once. A dictionary knows the words of the whole tree, so that a
//! block of text shrinks by half before it is compressed, which then takes half the time too.
//!
//! A *word* is at most 15 bytes: letters, apostrophes and bytes beyond ASCII, with the space before them if there is one. What the blocks of
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
//!    lengths   n bytes, 3 to 15
//!    words     one after the other; word i < s has the code singles[i], others leads[(i - s) / 256] and (i - s) mod 256
//! ```

mod training;
mod words;

pub use training::Training;

use words::{unit, WORD_BYTES};

const MAGIC: &[u8; 4] = b"TkWd";
const VERSION: u8 = 1;
const HEADER_BYTES: usize = 12;
/// The items of the decoder before the words: the bytes themselves.
const BYTES: usize = 256;

/// What a byte of the code begins.
#[derive(Debug, Clone, Copy)]
struct Start {
    /// The item, or the first of those that the next byte chooses from.
    base: u16,
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
    items: Vec<Item>,
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
            starts,
            codes: Vec::with_capacity(words),
            escaped: std::array::from_fn(|byte| codes.contains(&(byte as u8)) || byte == usize::from(escape)),
            index: words::Index::new(words),
            stored: Vec::new(),
        };
        dictionary.items.extend((0..=u8::MAX).map(|byte| Item::new(&[byte])));
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
            self.items.push(Item::new(word));
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
            + self.items.len() * Item::BYTES
            + self.codes.len() * 2
            + self.index.memory()
    }

    /// The most bytes that `raw` bytes can be encoded into, with what [`Dictionary::encode`] needs behind them.
    pub fn bound(raw: usize) -> usize {
        2 * raw + 2
    }

    /// Encodes `raw` into the start of `out`, which has [`Dictionary::bound`] bytes; returns how many.
    pub fn encode(&self, raw: &[u8], out: &mut [u8]) -> usize {
        let (mut at, mut end) = (0, 0);
        while let Some(&byte) = raw.get(at) {
            let bytes = match words::begins(byte) {
                false => 1,
                true => match unit(raw, at) {
                    Some((key, bytes)) => {
                        if let Some(word) = self.index.find(key, |word| self.items[BYTES + word].0) {
                            out[end..end + 2].copy_from_slice(&self.codes[word]);
                            end += 1 + usize::from(word >= self.singles);
                            at += bytes;
                            continue;
                        }
                        bytes
                    }
                    None => words::run(raw, at),
                },
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
        // A word is copied with its padding, which the next one overwrites.
        let room = raw_bytes + Item::BYTES;
        raw.try_reserve_exact(room).map_err(|_| format!("no memory for a block of {raw_bytes} bytes"))?;
        raw.resize(room, 0);
        let (mut at, mut end) = (0, 0);
        while let Some(&byte) = coded.get(at) {
            let start = self.starts[usize::from(byte)];
            let next = coded.get(at + 1).copied().unwrap_or(0);
            let item = usize::from(start.base) + usize::from(next & start.mask);
            let (Some(item), Some(place)) = (self.items.get(item), raw.get_mut(end..end + Item::BYTES))
            else {
                break;
            };
            place.copy_from_slice(&item.0);
            end += item.length();
            at += 1 + usize::from(start.mask & 1);
        }
        if at != coded.len() || end != raw_bytes {
            let codes = coded.len();
            return Err(format!("{codes} codes of which {at} give {end} bytes, of {raw_bytes}"));
        }
        raw.truncate(raw_bytes);
        Ok(raw)
    }
}

/// What a code stands for: the bytes, zeros behind them, and in the last place their number.
#[derive(Clone, Copy)]
struct Item([u8; Item::BYTES]);

impl Item {
    const BYTES: usize = WORD_BYTES + 1;

    fn new(word: &[u8]) -> Item {
        let mut item = [0; Item::BYTES];
        item[..word.len()].copy_from_slice(word);
        item[Item::BYTES - 1] = word.len() as u8;
        Item(item)
    }

    fn length(&self) -> usize {
        usize::from(self.0[Item::BYTES - 1])
    }
}

impl std::fmt::Debug for Dictionary {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Dictionary({}, {} words)", self.number, self.codes.len())
    }
}

/// What each byte begins.
fn starts(escape: u8, codes: &[u8], singles: usize) -> Result<[Start; BYTES], String> {
    let mut starts: [Start; BYTES] = std::array::from_fn(|byte| Start { base: byte as u16, mask: 0 });
    let mut taken = [false; BYTES];
    starts[usize::from(escape)] = Start { base: 0, mask: 0xff };
    taken[usize::from(escape)] = true;
    for (i, &code) in codes.iter().enumerate() {
        if std::mem::replace(&mut taken[usize::from(code)], true) {
            return Err(format!("code {code:#04x} of a dictionary has two meanings"));
        }
        starts[usize::from(code)] = match i.checked_sub(singles) {
            None => Start { base: (BYTES + i) as u16, mask: 0 },
            Some(lead) => Start { base: (BYTES + singles + BYTES * lead) as u16, mask: 0xff },
        };
    }
    Ok(starts)
}

#[cfg(test)]
mod tests;
