//! Dictionaries: the frequent words of a tree, each written as one or two bytes before a block is compressed.
//!
//! zstd and LZ4 look back within one block, where most words of a text occur once. A dictionary knows the words of the
//! whole tree, so that a block of text shrinks by half before it is compressed, which then takes half the time too.
//!
//! A *word* is at most 15 bytes: letters, apostrophes and bytes beyond ASCII, with the space before them if there is
//! one. What the blocks of the tree hardly use serves as codes: a byte that stands for a word by itself, or a leading
//! byte that does so with the byte after it. A byte that is a code is itself written behind the escape byte. So any
//! bytes can be encoded, into twice as many at worst.
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

mod index;
mod training;
mod words;

pub use training::Training;

use crate::slabs::Buffer;
use index::Index;
use words::{key_of, Key, Span, Words, WORD_BYTES};

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
    singles: usize,
    /// For the decoder: the bytes, then the words, each in 16 bytes; then as many as there are codes without one.
    items: Vec<Item>,
    starts: [Start; BYTES],
    /// For the encoder: how each word is written, and each byte that is part of none.
    codes: Vec<Code>,
    alone: [Code; BYTES],
    index: Index,
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
            singles,
            items: Vec::with_capacity(BYTES + words),
            starts,
            codes: Vec::with_capacity(BYTES + words),
            alone: std::array::from_fn(|byte| match (byte as u8, codes.contains(&(byte as u8))) {
                (byte, false) if byte != escape => Code { code: [byte, 0], bytes: 1 },
                (byte, _) => Code { code: [escape, byte], bytes: 2 },
            }),
            index: Index::new(&[], 0),
            stored: Vec::new(),
        };
        dictionary.codes.extend([Code { code: [0; 2], bytes: 0 }; BYTES]);
        dictionary.items.extend((0..=u8::MAX).map(|byte| Item::new(&[byte])));
        dictionary.take_words(codes, lengths, body)?;
        dictionary.stored = stored;
        Ok(dictionary)
    }

    fn take_words(&mut self, codes: &[u8], lengths: &[u8], mut body: &[u8]) -> Result<(), String> {
        let mut keys = Vec::with_capacity(lengths.len());
        for (i, &length) in lengths.iter().enumerate() {
            let (word, rest) =
                body.split_at_checked(usize::from(length)).ok_or("a dictionary without words")?;
            body = rest;
            // The encoder finds whole words; nothing else may be in its index.
            keys.push(key_of(word).ok_or_else(|| format!("word {i} of a dictionary is none"))?);
            self.codes.push(match i.checked_sub(self.singles) {
                None => Code { code: [codes[i], 0], bytes: 1 },
                Some(i) => Code { code: [codes[self.singles + i / BYTES], (i % BYTES) as u8], bytes: 2 },
            });
            self.items.push(Item::new(word));
        }
        self.index = Index::new(&keys, BYTES as u16);
        // A code for each second byte, so that the decoder finds something whatever there is.
        let leads = codes.len() - self.singles;
        self.items.resize(BYTES + self.singles + BYTES * leads, Item::none());
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
            + self.codes.len() * std::mem::size_of::<Code>()
            + self.index.memory()
    }

    /// The most bytes that `raw` bytes can be encoded into, with what [`Dictionary::encode`] needs behind them.
    pub fn bound(raw: usize) -> usize {
        2 * raw + 2
    }

    /// Encodes `raw` into the start of `out`, which has [`Dictionary::bound`] bytes; returns how many.
    pub fn encode(&self, raw: &[u8], out: &mut [u8]) -> usize {
        let (mut done, mut end) = (0, 0);
        let mut seen = Seen::default();
        let mut words = Words::new(raw);
        while let Some(edges) = words.next_batch() {
            let found = self.look_up(raw, edges, &mut seen);
            for Found { word, code: Code { code, bytes } } in &seen.found[..found] {
                let span = seen.spans[usize::from(*word)];
                end = self.encode_bytes(&raw[done..span.start], out, end);
                out[end..end + 2].copy_from_slice(code);
                end += usize::from(*bytes);
                done = span.end;
            }
        }
        self.encode_bytes(&raw[done..], out, end)
    }

    /// Takes note in `seen` of the words of `raw` between `edges`; returns how many the dictionary has.
    ///
    /// Step by step for all words, not word by word: each step is so short that the reads of many words, some of them
    /// from outside the nearest cache, overlap. Nothing branches on what is found.
    #[inline(never)]
    fn look_up(&self, raw: &[u8], edges: &[[usize; 2]], seen: &mut Seen) -> usize {
        for (((edges, span), key), hash) in
            edges.iter().zip(&mut seen.spans).zip(&mut seen.keys).zip(&mut seen.hashes)
        {
            *span = Span::between(raw, edges);
            *key = span.key(raw);
            *hash = key.hash();
        }
        let count = edges.len().min(Words::MOST);
        self.index.candidates(&seen.hashes[..count], &mut seen.items);
        let mut found = 0;
        for (word, (item, key)) in (0..).zip(seen.items[..count].iter().zip(&seen.keys)) {
            let item = usize::from(*item);
            // Noted in any case, and overwritten by the next if it is not one.
            seen.found[found] = Found { word, code: self.codes[item] };
            found += usize::from(self.items[item].0 == key.bytes());
        }
        found
    }

    /// Encodes bytes that are no words of the dictionary, behind the first `end` of `out`; returns how many are there
    /// then.
    #[inline]
    fn encode_bytes(&self, raw: &[u8], out: &mut [u8], mut end: usize) -> usize {
        for &byte in raw {
            let Code { code, bytes } = self.alone[usize::from(byte)];
            out[end..end + 2].copy_from_slice(&code);
            end += usize::from(bytes);
        }
        end
    }

    /// Decodes exactly `raw_bytes`; the error says what is wrong with `coded`.
    pub fn decode(&self, coded: &[u8], raw_bytes: usize) -> Result<Buffer, String> {
        if raw_bytes > coded.len().saturating_mul(WORD_BYTES) {
            return Err(format!("{} codes cannot give {raw_bytes} bytes", coded.len()));
        }
        // A word is copied with its padding, which the next one overwrites.
        let mut raw = Buffer::new(raw_bytes + Item::BYTES)
            .ok_or_else(|| format!("no memory for a block of {raw_bytes} bytes"))?;
        let mut to = Decoded { end: 0, begins: 0xff, lengths: 0 };
        let all = coded.windows(2).all(|pair| self.decode_byte(pair[0], pair[1], &mut raw, &mut to))
            && coded.last().is_none_or(|byte| self.decode_byte(*byte, 0, &mut raw, &mut to));
        if !all || to.end != raw_bytes || to.begins == 0 || to.lengths & NO_WORD != 0 {
            return Err(format!("{} codes that do not give {raw_bytes} bytes", coded.len()));
        }
        raw.truncate(raw_bytes);
        Ok(raw)
    }

    /// Decodes as if a code began at `byte`, and takes that back if it is the second byte of one: cheaper than to skip
    /// it, since nothing branches and the next byte does not wait for this one. False if `raw` ends.
    #[inline]
    fn decode_byte(&self, byte: u8, next: u8, raw: &mut [u8], to: &mut Decoded) -> bool {
        let start = self.starts[usize::from(byte)];
        let item = usize::from(start.base) + usize::from(next & start.mask);
        let (Some(item), Some(place)) = (self.items.get(item), raw.get_mut(to.end..to.end + Item::BYTES))
        else {
            return false;
        };
        place.copy_from_slice(&item.0);
        let length = item.length() & to.begins;
        to.end += usize::from(length);
        to.lengths |= length;
        to.begins = !(to.begins & start.mask);
        true
    }
}

/// The words of a batch.
struct Seen {
    spans: [Span; Words::MOST],
    keys: [Key; Words::MOST],
    hashes: [u64; Words::MOST],
    /// The only item that each may be.
    items: [u16; Words::MOST],
    found: [Found; Words::MOST],
}

impl Default for Seen {
    fn default() -> Seen {
        Seen {
            spans: [Span::default(); Words::MOST],
            keys: [Key::default(); Words::MOST],
            hashes: [0; Words::MOST],
            items: [0; Words::MOST],
            found: [Found::default(); Words::MOST],
        }
    }
}

/// A word of a batch that is one of the dictionary.
#[derive(Clone, Copy, Default)]
struct Found {
    word: u16,
    code: Code,
}

/// How a word is written, or a byte.
#[derive(Clone, Copy, Default)]
struct Code {
    code: [u8; 2],
    /// How many bytes of it there are.
    bytes: u16,
}

/// How far the decoder is.
struct Decoded {
    /// Bytes decoded.
    end: usize,
    /// 0xff if the next byte begins a code, 0 if it belongs to the one before.
    begins: u8,
    /// All lengths, one over the other.
    lengths: u8,
}

/// The length of what no word is. A bit that no other length has.
const NO_WORD: u8 = 0x80;

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

    /// That of a code which has no word.
    fn none() -> Item {
        let mut item = [0; Item::BYTES];
        item[Item::BYTES - 1] = NO_WORD;
        Item(item)
    }

    #[inline]
    fn length(&self) -> u8 {
        self.0[Item::BYTES - 1]
    }
}

impl std::fmt::Debug for Dictionary {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Dictionary({}, {} words)", self.number, self.codes.len() - BYTES)
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
