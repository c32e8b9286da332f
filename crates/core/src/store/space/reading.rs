//! Reading of blocks: where they lie, their checksums, compression and dictionaries.

use super::{Known, Space, HEADER_BYTES};
use crate::counts::{note_read, Count};
use crate::slabs::Buffer;
use crate::store::dictionary::Dictionary;
use crate::store::open_files::{KernelAhead, TableFile};
use crate::store::{checksum, compression, parts, recompression, BlockAddress, StoredParts};
use crate::{Compression, Error, Result};
use std::cell::Cell;
use std::sync::atomic::Ordering;
use std::sync::Arc;
use std::time::Instant;

/// A large value that begins at most so far behind another counts as the next one.
const NEAR_VALUE_BYTES: u64 = 64 << 10;
/// Another block likewise: threads that read ahead of a scan have every so manieth of its leaves each.
const NEAR_BLOCK_BYTES: u64 = 1 << 20;
/// So many spaces a thread reads in turns, and knows of each how far it has come: of an index and its rows, or two of
/// a join.
const TURNS: usize = 4;

/// Where in a space something was read last, and where that ends.
type Last = Cell<(u32, u64)>;

thread_local! {
    static LAST_BLOCKS: [Last; TURNS] = const { [const { Cell::new((0, 0)) }; TURNS] };
    static LAST_VALUE: Last = const { Cell::new((0, 0)) };
}

fn count_block(at: &BlockAddress) {
    count(at, Count::BlocksRead, Count::BlockBytesRead);
}

fn count(at: &BlockAddress, reads: Count, stored_bytes: Count) {
    reads.add(1);
    stored_bytes.add(at.stored_bytes.into());
    Count::RawBytesRead.add(at.raw_bytes.into());
}

impl Space {
    /// The bytes of a block as they are in the file, checked.
    pub fn stored(&self, at: &BlockAddress) -> Result<Vec<u8>> {
        self.check_place(at)?;
        let mut stored = vec![0; at.stored_bytes as usize];
        self.read_stored(at, &mut stored, KernelAhead::Usual)?;
        Ok(stored)
    }

    /// That the block lies within the file.
    fn check_place(&self, at: &BlockAddress) -> Result<()> {
        let end = at.offset.saturating_add(u64::from(at.stored_bytes));
        // Relaxed: whoever knows an address learnt it through something that happened after the block's write.
        let length = self.length.load(Ordering::Relaxed);
        if end > length || at.offset < HEADER_BYTES {
            let detail = format!("a block of {} bytes does not fit a file of {length}", at.stored_bytes);
            return Err(Error::corrupt(self.path(), at.offset, detail));
        }
        Ok(())
    }

    /// Reads, checks and decompresses a block. The kernel is to read nothing but that, unless it lies behind what this
    /// thread has read last, as in a scan: where half of a file is in its cache it takes look-ups for streams, and
    /// reads much more than they need.
    pub(in crate::store) fn read(&self, at: &BlockAddress) -> Result<Buffer> {
        self.check_place(at)?;
        count_block(at);
        let ahead =
            LAST_BLOCKS.with(|last| self.ahead_of(at, &last[self.id as usize % TURNS], NEAR_BLOCK_BYTES));
        self.decompress(at, |stored| self.read_stored(at, stored, ahead))
    }

    /// The same of a large value.
    pub(in crate::store) fn read_value(&self, at: &BlockAddress) -> Result<Buffer> {
        self.check_place(at)?;
        count(at, Count::ValuesRead, Count::ValueBytesRead);
        let ahead = LAST_VALUE.with(|last| self.ahead_of(at, last, NEAR_VALUE_BYTES));
        self.decompress(at, |stored| self.read_stored(at, stored, ahead))
    }

    /// What the kernel may read beside what is `at` there, and that comes after `last`.
    fn ahead_of(&self, at: &BlockAddress, last: &Last, near_bytes: u64) -> KernelAhead {
        let before = last.replace((self.id, at.offset + u64::from(at.stored_bytes)));
        match before.0 == self.id && (before.1..=before.1 + near_bytes).contains(&at.offset) {
            true => KernelAhead::Usual,
            false => KernelAhead::Nothing,
        }
    }

    /// The bytes of a block of which [`Space::stored`] gave `stored`.
    pub fn unpacked(&self, at: &BlockAddress, stored: &[u8]) -> Result<Buffer> {
        debug_assert_eq!(stored.len(), at.stored_bytes as usize);
        self.decompress(at, |into| {
            into.copy_from_slice(stored);
            Ok(())
        })
    }

    /// Decompresses what `read` fills a buffer with.
    fn decompress(&self, at: &BlockAddress, read: impl FnOnce(&mut [u8]) -> Result<()>) -> Result<Buffer> {
        let corrupt = |detail: String| Error::corrupt(self.path(), at.offset, detail);
        if at.compression == Compression::None && at.stored_bytes != at.raw_bytes {
            return Err(corrupt("an uncompressed block has two sizes".into()));
        }
        let dictionary = self.dictionary_of(at)?;
        let (stored_bytes, raw_bytes) = (at.stored_bytes as usize, at.raw_bytes as usize);
        let dictionary = dictionary.as_deref();
        let raw = match at.compression {
            Compression::Recompress => recompression::unpack(stored_bytes, raw_bytes, dictionary, read),
            other if at.in_parts => parts::decompress(stored_bytes, raw_bytes, other, dictionary, read),
            other => compression::decompress(stored_bytes, raw_bytes, other, dictionary, read),
        }?;
        raw.map_err(corrupt)
    }

    /// Reads and checks a block in parts: the first of them, decompressed, and the others.
    pub(in crate::store) fn read_parts(&self, at: &BlockAddress) -> Result<(Buffer, StoredParts)> {
        self.check_place(at)?;
        count_block(at);
        let ahead =
            LAST_BLOCKS.with(|last| self.ahead_of(at, &last[self.id as usize % TURNS], NEAR_BLOCK_BYTES));
        let dictionary = self.dictionary_of(at)?;
        let (stored_bytes, raw_bytes) = (at.stored_bytes as usize, at.raw_bytes as usize);
        let read = |stored: &mut [u8]| self.read_stored(at, stored, ahead);
        StoredParts::read(stored_bytes, raw_bytes, at.compression, dictionary, read)?
            .map_err(|detail| Error::corrupt(self.path(), at.offset, detail))
    }

    fn dictionary_of(&self, at: &BlockAddress) -> Result<Option<Arc<Dictionary>>> {
        if at.dictionary == 0 {
            return Ok(None);
        }
        let known = self.dictionary(at.dictionary)?;
        let missing = || format!("dictionary {} of the block is missing", at.dictionary);
        known.ok_or_else(|| Error::corrupt(self.path(), at.offset, missing())).map(Some)
    }

    /// Fills `stored` with the stored bytes of a block and checks them.
    fn read_stored(&self, at: &BlockAddress, stored: &mut [u8], ahead: KernelAhead) -> Result<()> {
        let begun = Instant::now();
        let read = self.read_checked(at, stored, ahead);
        note_read(begun.elapsed());
        read
    }

    fn read_checked(&self, at: &BlockAddress, stored: &mut [u8], ahead: KernelAhead) -> Result<()> {
        let read = |file: &Arc<TableFile>, stored: &mut [u8]| {
            file.read_exact_at(at.offset, stored, ahead)?;
            match checksum(stored) {
                found if found == at.checksum => Ok(()),
                found => {
                    let expected = at.checksum;
                    let mut detail = format!(
                        "block checksum is {found:016x}, {expected:016x} is expected ({} bytes)",
                        at.stored_bytes
                    );
                    if at.in_parts {
                        detail = format!("{detail}; {}", parts::damaged(stored, at.raw_bytes as usize));
                    }
                    Err(Error::corrupt(file.path(), at.offset, detail))
                }
            }
        };
        match (read(&self.file, stored), self.kind.twin()) {
            (Err(error), Some(twin)) if error.is_damage_of(self.path()) => {
                twin.rescue(&self.file, at.offset, stored, error, read)
            }
            (result, _) => result,
        }
    }

    /// A number for a new dictionary; None if the space has used up all.
    pub fn new_dictionary_number(&self) -> Option<u16> {
        // Relaxed: nothing depends on it but that numbers differ.
        u16::try_from(self.next_dictionary.fetch_add(1, Ordering::Relaxed)).ok()
    }

    /// Blocks may name the dictionary `number`, whose stored form is the block at `at`; the caller keeps that extent.
    /// `loaded`: what was stored there, if it is in memory.
    pub fn know_dictionary(&self, number: u16, at: BlockAddress, loaded: Option<Arc<Dictionary>>) {
        // Relaxed: as above.
        self.next_dictionary.fetch_max(u32::from(number) + 1, Ordering::Relaxed);
        let mut dictionaries = self.dictionaries.lock();
        if loaded.is_some() || dictionaries.get(&number).is_none_or(|known| known.at != at) {
            dictionaries.insert(number, Known { at, loaded });
        }
    }

    /// The dictionary `number`, read if it is not in memory; None if it is not known.
    pub fn dictionary(&self, number: u16) -> Result<Option<Arc<Dictionary>>> {
        let at = match self.dictionaries.lock().get(&number) {
            Some(Known { loaded: Some(dictionary), .. }) => return Ok(Some(dictionary.clone())),
            Some(known) => known.at,
            None => return Ok(None),
        };
        let damaged =
            |detail: String| Error::corrupt(self.path(), at.offset, format!("dictionary {number}: {detail}"));
        if at.dictionary != 0 {
            return Err(damaged("it needs another".to_string()));
        }
        let stored = self.read(&at).map_err(|error| match error {
            Error::Corrupt { detail, .. } => damaged(detail),
            other => other,
        })?;
        let read = Arc::new(Dictionary::parse(number, stored.to_vec()).map_err(damaged)?);
        let mut dictionaries = self.dictionaries.lock();
        // Two may have read it at a time: all use the same.
        Ok(dictionaries.get_mut(&number).map(|known| known.loaded.get_or_insert(read).clone()))
    }
}
