//! Blocks, and large values, that the log names instead of having them: what the log says of one, and that it is there.
//!
//! ```text
//! value of the operation      0      4       8
//!                             | rows | space | address of the block (27 bytes) | address of its dictionary |   little-endian
//!
//! The last part only if the block needs a dictionary that no checkpoint has saved.
//! ```
//!
//! Rules, which make a restart find what it was promised:
//! * A block is in its file before a record that names it is queued, and synced before that record is
//!   ([`crate::log::Log::rely_on`]). Power may still fail between the two, with the record on disk and the block not:
//!   such a record is in a part of the log that was never synced, and the log ends before it. Only commit records that
//!   carry their operations may rely on that; before others the file is synced.
//! * Once a checkpoint contains the transaction, its blocks are overwritten sooner or later, and nobody asks for them.

use crate::catalog::{space_file_name, Contained};
use crate::file::{File, FileSystem, OpenMode};
use crate::log::{LogRecord, Lsn, Op, Prerequisite};
use crate::store::{BlockAddress, Space};
use crate::sync::Mutex;
use crate::Result;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::Arc;

/// Where the rows of an [`crate::log::OpKind::Block`] are, or the value of an operation that has it in the table's
/// file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DirectBlock {
    /// Rows in the block; 1 for a value.
    pub rows: u32,
    /// Number of the table's file.
    pub space: u32,
    /// Where in it.
    pub address: BlockAddress,
    /// Where in it the dictionary is that the block needs, if the directory may not say so.
    pub dictionary: Option<BlockAddress>,
}

/// Size of the encoding without dictionary.
const ENCODED_BYTES: usize = 8 + BlockAddress::ENCODED_BYTES;

impl DirectBlock {
    /// As value of the operation.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(ENCODED_BYTES + BlockAddress::ENCODED_BYTES);
        out.extend_from_slice(&self.rows.to_le_bytes());
        out.extend_from_slice(&self.space.to_le_bytes());
        out.extend_from_slice(&self.address.encode());
        if let Some(dictionary) = &self.dictionary {
            out.extend_from_slice(&dictionary.encode());
        }
        out
    }

    /// The block or value that an operation names; `None` if it names none.
    pub fn of(op: &Op<'_>) -> Option<DirectBlock> {
        let rest = op.value.get(ENCODED_BYTES..).filter(|_| op.kind.names_extent())?;
        let dictionary = match rest.len() {
            0 => None,
            BlockAddress::ENCODED_BYTES => Some(BlockAddress::decode(rest)?),
            _ => return None,
        };
        let number = |at: usize| op.value[at..].first_chunk().map(|bytes| u32::from_le_bytes(*bytes));
        Some(DirectBlock {
            rows: number(0)?,
            space: number(4)?,
            address: BlockAddress::decode(&op.value[8..])?,
            dictionary,
        })
    }
}

/// A table's file, as what the log relies on.
pub struct TableFile(pub Arc<Space>);

impl Prerequisite for TableFile {
    fn make_durable(&self) -> Result<()> {
        self.0.sync()
    }
}

/// Where a block should be.
type Place = (u32, BlockAddress);

/// Looks whether the blocks of commit records are there that may be part of a log that was never synced. All methods
/// may be called from any thread.
pub struct Inspection<'a> {
    fs: &'a dyn FileSystem,
    dir: PathBuf,
    /// What the checkpoint contains.
    counted: &'a Contained,
    threads: usize,
    /// Blocks that are there, and where in the log.
    found: Mutex<Vec<(Lsn, Place)>>,
}

/// Blocks that a thread looks at in a row.
const RUN: usize = 64;

impl<'a> Inspection<'a> {
    /// For the files in `dir`; blocks are read by up to `threads` threads.
    pub fn new(
        fs: &'a dyn FileSystem,
        dir: PathBuf,
        counted: &'a Contained,
        threads: usize,
    ) -> Inspection<'a> {
        Inspection { fs, dir, counted, threads, found: Mutex::default() }
    }

    /// Whether all blocks of the record are there that some image may lack.
    pub fn is_intact(&self, lsn: Lsn, record: &LogRecord<'_>) -> Result<bool> {
        let LogRecord::Commit { ops, .. } = record else { return Ok(true) };
        if !ops.may_name_extents() {
            return Ok(true);
        }
        let mut places = Vec::new();
        for block in ops.iter().filter_map(|op| DirectBlock::of(&op)) {
            if !self.counted.of(block.space).contains(lsn) {
                let addresses = [Some(block.address), block.dictionary];
                places.extend(addresses.into_iter().flatten().map(|address| (block.space, address)));
            }
        }
        // One file after the other: none is opened more than once by a thread.
        places.sort_unstable_by_key(|(space, address)| (*space, address.offset));
        let (next, intact) = (AtomicUsize::new(0), AtomicBool::new(true));
        let look = || {
            // Relaxed: numbers are handed out, and who asks for the answer waits for the threads.
            while intact.load(Ordering::Relaxed) {
                let run = places.chunks(RUN).nth(next.fetch_add(1, Ordering::Relaxed));
                let Some(run) = run else { break };
                if !self.are_there(lsn, run)? {
                    intact.store(false, Ordering::Relaxed); // Relaxed: as above
                }
            }
            Ok(())
        };
        crate::threads::share(self.threads.min(places.len().div_ceil(RUN)), "teak-inspect", look)?;
        Ok(intact.into_inner())
    }

    /// `places` by file.
    fn are_there(&self, lsn: Lsn, places: &[Place]) -> Result<bool> {
        let mut found = Vec::new();
        for places in places.chunk_by(|a, b| a.0 == b.0) {
            let Some(file) = self.file(places[0].0)? else { continue };
            for &(space, address) in places {
                match address.stored_in(&*file) {
                    Ok(Some(_)) => found.push((lsn, (space, address))),
                    Ok(None) => return Ok(false),
                    // The disk has something there that it cannot read any more: damage of that table, and not the end
                    // of the log.
                    Err(error) if error.is_damage_of(file.path()) => {}
                    Err(error) => return Err(error),
                }
            }
        }
        self.found.lock().append(&mut found);
        Ok(true)
    }

    /// `None`: the file is gone, and the table with it.
    fn file(&self, space: u32) -> Result<Option<Arc<dyn File>>> {
        let path = self.dir.join(space_file_name(space));
        match self.fs.exists(&path)? {
            true => self.fs.open(&path, OpenMode::Existing).map(Some),
            false => Ok(None),
        }
    }

    /// Makes the blocks durable that the log names from `synced` on, where it was not known to be. They are written
    /// again, since the kernel may show what it could not write.
    pub fn make_durable(&self, synced: Lsn) -> Result<()> {
        let mut places = std::mem::take(&mut *self.found.lock());
        places.retain(|(lsn, _)| *lsn >= synced);
        places.sort_unstable_by_key(|(_, (space, address))| (*space, address.offset));
        for places in places.chunk_by(|a, b| a.1 .0 == b.1 .0) {
            let (_, (space, _)) = places[0];
            let Some(file) = self.file(space)? else { continue };
            for (_, (_, address)) in places {
                if let Some(bytes) = address.stored_in(&*file)? {
                    file.write_at(address.offset, &bytes)?;
                }
            }
            file.sync()?;
        }
        Ok(())
    }
}
