//! Writing an export from an image of the table's file.

use super::{
    BundlesMet, Description, HEADER_BYTES, MAGIC, MAX_DESCRIPTION_BYTES, VERSION, VERSION_WITHOUT_FRAMES,
    VERSION_WITHOUT_PATCHES,
};
use crate::file::File;
use crate::finding::Findings;
use crate::store::{checksum, BlockAddress, Space};
use crate::tree::{block::blob::BlobAddress, block::Block, check_image, ImageVisitor};
use crate::types::TreeId;
use crate::{Error, Result};
use std::sync::Arc;

/// Bytes that are written at a time.
const WRITTEN_AT_ONCE: usize = 1 << 20;

/// Is told how many more bytes were copied, and ends the work by an error.
type Watch<'a> = &'a dyn Fn(u64) -> Result<()>;

struct Blocks<'a> {
    space: &'a Space,
    target: &'a dyn File,
    buffer: Vec<u8>,
    /// Where the buffer goes.
    position: u64,
    bundles: BundlesMet,
    rows: u64,
    has_frames: bool,
    has_patches: bool,
    watch: Watch<'a>,
}

/// Writes the table that `description` tells of, whose blocks are in `space`, to `target`, and makes it durable.
/// Entries of trees are counted. `space` was opened for this alone; a block that is not as it should be is an error
/// that names it.
pub fn write(
    space: &Arc<Space>,
    description: &mut Description,
    target: &dyn File,
    watch: Watch<'_>,
) -> Result<()> {
    let begin = HEADER_BYTES + description.encode().len() as u64;
    target.set_len(0)?;
    let bundles = BundlesMet::default();
    let (buffer, position) = (Vec::new(), begin);
    let mut blocks = Blocks {
        space,
        target,
        buffer,
        position,
        bundles,
        rows: 0,
        has_frames: false,
        has_patches: false,
        watch,
    };
    let mut findings = Findings::default();
    for (number, address) in description.trees.iter().filter_map(|tree| tree.dictionary) {
        space.know_dictionary(number, address, None);
        blocks.copy(&address)?;
    }
    for (place, tree) in description.trees.iter_mut().enumerate() {
        let Some(root) = &mut tree.root else { continue };
        blocks.rows = 0;
        check_image(space, place as TreeId, root, &mut findings, &mut blocks)?;
        root.entries = blocks.rows;
    }
    if let Some(first) = findings.iter().next() {
        return Err(Error::corrupt(&first.path, first.offset.unwrap_or(0), first.detail.clone()));
    }
    blocks.flush()?;
    let block_bytes = blocks.position - begin;
    let described = description.encode();
    let length = u32::try_from(described.len()).unwrap_or(u32::MAX);
    if length > MAX_DESCRIPTION_BYTES {
        let (bytes, maximum) = (described.len() as u64, u64::from(MAX_DESCRIPTION_BYTES));
        return Err(Error::TooLarge { what: "description of a table", bytes, maximum });
    }
    debug_assert_eq!(HEADER_BYTES + described.len() as u64, begin, "the first block is overwritten");
    debug_assert_eq!(
        Description::decode(&described).as_ref(),
        Some(&*description),
        "no import can read this"
    );
    target.write_at(HEADER_BYTES, &described)?;
    target.sync()?;
    let mut header = MAGIC.to_vec();
    let version = match (blocks.has_patches, blocks.has_frames) {
        (true, _) => VERSION,
        (false, true) => VERSION_WITHOUT_PATCHES,
        (false, false) => VERSION_WITHOUT_FRAMES,
    };
    header.extend_from_slice(&version.to_le_bytes());
    header.extend_from_slice(&length.to_le_bytes());
    header.extend_from_slice(&block_bytes.to_le_bytes());
    header.extend_from_slice(&checksum(&described).to_le_bytes());
    header.extend_from_slice(&checksum(&header).to_le_bytes());
    debug_assert_eq!(header.len() as u64, HEADER_BYTES, "the description is overwritten");
    target.write_at(0, &header)?;
    target.sync()
}

impl Blocks<'_> {
    fn copy(&mut self, at: &BlockAddress) -> Result<()> {
        let stored = self.space.stored(at)?;
        debug_assert_eq!(stored.len(), at.stored_bytes as usize, "the next block is elsewhere");
        self.buffer.extend_from_slice(&stored);
        self.has_frames |= at.in_parts;
        (self.watch)(u64::from(at.stored_bytes))?;
        match self.buffer.len() < WRITTEN_AT_ONCE {
            true => Ok(()),
            false => self.flush(),
        }
    }

    fn flush(&mut self) -> Result<()> {
        self.target.write_at(self.position, &self.buffer)?;
        self.position += self.buffer.len() as u64;
        self.buffer.clear();
        Ok(())
    }
}

impl ImageVisitor for Blocks<'_> {
    fn extent(&mut self, at: &BlockAddress) -> Result<()> {
        self.copy(at)
    }

    fn patch(&mut self, at: &BlockAddress) -> Result<()> {
        self.has_patches = true;
        self.copy(at)
    }

    fn large_value(&mut self, at: &BlobAddress) -> Result<bool> {
        match self.bundles.is_first(at) {
            true => self.copy(&at.extent).map(|()| true),
            false => Ok(true),
        }
    }

    fn rows(&mut self, block: &Block) -> Result<()> {
        self.rows += block.len() as u64;
        Ok(())
    }
}
