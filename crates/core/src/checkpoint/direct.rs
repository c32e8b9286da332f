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
//!   ([`crate::log::Log::rely_on`]). Power may still fail between the two, with the record on disk and the block not: such a record
//!   is in a part of the log that was never synced, and the log ends before it. Only commit records that carry their operations may
//!   rely on that; before others the file is synced.
//! * Once a checkpoint contains the transaction, its blocks are overwritten sooner or later, and nobody asks for them.

use crate::catalog::{space_file_name, Contained};
use crate::file::{File, FileSystem, OpenMode};
use crate::log::{LogRecord, Lsn, Op, Ops, Prerequisite};
use crate::store::{BlockAddress, Space};
use crate::Result;
use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;

/// Where the rows of an [`crate::log::OpKind::Block`] are, or the value of an operation that has it in the table's file.
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

/// Looks whether the blocks of commit records are there.
pub struct Inspection<'a> {
    fs: &'a dyn FileSystem,
    dir: PathBuf,
    /// What the checkpoint contains.
    counted: Contained,
    /// `None`: the file is gone, and the table with it.
    files: HashMap<u32, Option<Arc<dyn File>>>,
    /// Blocks of the part of the log that may not have been synced, and where in the log.
    found: Vec<(Lsn, u32, BlockAddress)>,
}

impl<'a> Inspection<'a> {
    /// For the files in `dir`.
    pub fn new(fs: &'a dyn FileSystem, dir: PathBuf, counted: Contained) -> Inspection<'a> {
        Inspection { fs, dir, counted, files: HashMap::new(), found: Vec::new() }
    }

    /// Whether all blocks of the record are there that it may lack.
    pub fn is_intact(&mut self, lsn: Lsn, record: &LogRecord<'_>) -> Result<bool> {
        match record {
            LogRecord::Commit { ops, .. } if self.may_lack(lsn) => self.are_there(lsn, *ops),
            _ => Ok(true),
        }
    }

    /// Whether some image may lack the commit at `lsn`.
    fn may_lack(&self, lsn: Lsn) -> bool {
        !self.counted.common.contains(lsn) || self.counted.apart.values().any(|apart| !apart.contains(lsn))
    }

    fn are_there(&mut self, lsn: Lsn, ops: Ops<'_>) -> Result<bool> {
        for block in ops.iter().filter_map(|op| DirectBlock::of(&op)) {
            if self.counted.of(block.space).contains(lsn) {
                continue;
            }
            let Some(file) = self.file(block.space)? else { continue };
            for address in [Some(block.address), block.dictionary].into_iter().flatten() {
                match address.stored_in(&*file) {
                    Ok(Some(_)) => {}
                    Ok(None) => return Ok(false),
                    // The disk has something there that it cannot read any more: damage of that table, and not the end of the log.
                    Err(error) if error.is_damage_of(file.path()) => continue,
                    Err(error) => return Err(error),
                }
                self.found.push((lsn, block.space, address));
            }
        }
        Ok(true)
    }

    fn file(&mut self, space: u32) -> Result<Option<Arc<dyn File>>> {
        if let Some(file) = self.files.get(&space) {
            return Ok(file.clone());
        }
        let path = self.dir.join(space_file_name(space));
        let file = match self.fs.exists(&path)? {
            true => Some(self.fs.open(&path, OpenMode::Existing)?),
            false => None,
        };
        self.files.insert(space, file.clone());
        Ok(file)
    }

    /// Makes the blocks durable that the log names from `synced` on, where it was not known to be. They are written again, since the kernel
    /// may show what it could not write.
    pub fn make_durable(&mut self, synced: Lsn) -> Result<()> {
        let mut written = HashMap::new();
        for (_, space, address) in std::mem::take(&mut self.found).iter().filter(|found| found.0 >= synced) {
            let Some(file) = self.file(*space)? else { continue };
            if let Some(bytes) = address.stored_in(&*file)? {
                file.write_at(address.offset, &bytes)?;
                written.insert(*space, file);
            }
        }
        written.values().try_for_each(|file| file.sync())
    }
}
