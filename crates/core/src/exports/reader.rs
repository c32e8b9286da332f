//! Reading an export, of which nothing is believed that was not looked at.

use super::{
    BundlesMet, Description, HEADER_BYTES, MAGIC, MAX_DESCRIPTION_BYTES, VERSION, VERSION_WITHOUT_FRAMES,
};
use crate::file::{File, FileSystem, OpenMode};
use crate::finding::Findings;
use crate::sort::Sorter;
use crate::store::{checksum, BlockAddress, NamedExtent, Space};
use crate::tree::{block::blob::BlobAddress, block::Block, check_image, ImageVisitor};
use crate::types::TreeId;
use crate::{Error, Result};
use std::path::Path;
use std::sync::Arc;

/// No file is so long; what is above it is nonsense that would make a file which few systems can hold.
const LONGEST_FILE: u64 = 1 << 56;

/// Is told how many more bytes were copied, and ends the work by an error.
type Watch<'a> = &'a dyn Fn(u64) -> Result<()>;

/// A file that says it is an export: header and description are sound.
pub struct ExportFile {
    file: Arc<dyn File>,
    description: Description,
    /// Where the first block begins.
    begin: u64,
    /// Where the last one ends, which is the end of the file.
    end: u64,
}

/// Takes block after block out of the file and puts it where it belongs.
struct Blocks<'a> {
    from: &'a ExportFile,
    /// Of the next block.
    position: u64,
    to: &'a Space,
    extents: &'a mut Sorter,
    bundles: BundlesMet,
    rows: u64,
    watch: Watch<'a>,
}

impl ExportFile {
    /// Opens the file at `path`; it is an error if there is none.
    pub fn open(fs: &dyn FileSystem, path: &Path) -> Result<ExportFile> {
        let file = fs.open(path, OpenMode::ReadOnly)?;
        let corrupt = |offset, detail: &str| Error::corrupt(path, offset, detail);
        let mut header = [0; HEADER_BYTES as usize];
        file.read_exact_at(0, &mut header)?;
        if header[..8] != MAGIC[..] {
            return Err(corrupt(
                0,
                "this is no table that was exported, or its export did not come to the end",
            ));
        }
        let number = |at: usize| header[at..].first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes));
        if number(32) != checksum(&header[..32]) {
            return Err(corrupt(0, "the checksum of the header does not match"));
        }
        let (version, description_bytes) = (number(8) as u32, (number(8) >> 32) as u32);
        if !(VERSION_WITHOUT_FRAMES..=VERSION).contains(&version) {
            return Err(Error::UnknownVersion { path: path.into(), found: version, supported: VERSION });
        }
        let begin = HEADER_BYTES + u64::from(description_bytes);
        let (end, length) = (begin.saturating_add(number(16)), file.len()?);
        if description_bytes > MAX_DESCRIPTION_BYTES || end != length {
            return Err(corrupt(
                0,
                &format!("the file has {length} bytes and should have {end}: it was cut off"),
            ));
        }
        let mut described = vec![0; description_bytes as usize];
        file.read_exact_at(HEADER_BYTES, &mut described)?;
        if checksum(&described) != number(24) {
            return Err(corrupt(HEADER_BYTES, "the checksum of the description does not match"));
        }
        let description = Description::decode(&described)
            .ok_or_else(|| corrupt(HEADER_BYTES, "the description of the table is malformed"))?;
        Ok(ExportFile { file, description, begin, end })
    }

    /// What it says of its table.
    pub fn description(&self) -> &Description {
        &self.description
    }

    /// Copies the blocks to `to`, a file without extents that nobody else uses, and looks at all of them; `extents`
    /// sorts where they lie. Returns where the map of what is free is. All is durable then. What is not as it should be
    /// is an error, and `to` is to be cut.
    pub fn copy(&self, to: &Arc<Space>, mut extents: Sorter, watch: Watch<'_>) -> Result<BlockAddress> {
        let mut findings = Findings::default();
        let (position, bundles) = (self.begin, BundlesMet::default());
        let mut blocks = Blocks { from: self, position, to, extents: &mut extents, bundles, rows: 0, watch };
        for (number, address) in self.description.trees.iter().filter_map(|tree| tree.dictionary) {
            to.know_dictionary(number, address, None);
            blocks.extent(&address)?;
        }
        for (place, tree) in self.description.trees.iter().enumerate() {
            let Some(root) = &tree.root else { continue };
            blocks.rows = 0;
            check_image(to, place as TreeId, root, &mut findings, &mut blocks)?;
            if let Some(finding) = findings.iter().next() {
                return Err(blocks.corrupt(format!("tree {place}: {}", finding.detail)));
            }
            if blocks.rows != root.entries {
                let detail = format!("tree {place} has {} entries and says {}", blocks.rows, root.entries);
                return Err(blocks.corrupt(detail));
            }
        }
        if blocks.position != self.end {
            return Err(blocks.corrupt("there is more behind the last block"));
        }
        let mut sorted = extents.finish()?;
        let map = to.write_map_around(&mut || {
            if !sorted.advance()? {
                return Ok(None);
            }
            let (key, value) = sorted.entry();
            Ok(NamedExtent::of_entry(key, value))
        });
        // Two blocks at one place are a fault of the export, not of the file that is written.
        let map = map.map_err(|error| match error {
            Error::Corrupt { detail, .. } => Error::corrupt(self.file.path(), self.begin, detail),
            other => other,
        })?;
        to.sync()?;
        Ok(map)
    }
}

impl Blocks<'_> {
    fn corrupt(&self, detail: impl Into<String>) -> Error {
        Error::corrupt(self.from.file.path(), self.position, detail)
    }

    /// The next block is the one that belongs at `at`.
    fn take(&mut self, at: &BlockAddress) -> Result<()> {
        if u64::from(at.stored_bytes) > self.from.end - self.position {
            return Err(self.corrupt("the file ends within a block"));
        }
        if at.offset < Space::HEADER_BYTES || at.offset > LONGEST_FILE {
            return Err(self.corrupt(format!("a block that belongs at offset {} of a table", at.offset)));
        }
        let mut stored = vec![0; at.stored_bytes as usize];
        self.from.file.read_exact_at(self.position, &mut stored)?;
        if checksum(&stored) != at.checksum {
            let detail = format!("the checksum of a block of {} bytes does not match", at.stored_bytes);
            return Err(self.corrupt(detail));
        }
        self.position += u64::from(at.stored_bytes);
        self.to.place(at, &stored)?;
        (self.watch)(u64::from(at.stored_bytes))
    }

    fn note(&mut self, named: NamedExtent) -> Result<()> {
        let (key, value) = named.to_entry();
        self.extents.push(&key, &value)
    }
}

impl ImageVisitor for Blocks<'_> {
    fn extent(&mut self, at: &BlockAddress) -> Result<()> {
        self.take(at)?;
        self.note(NamedExtent::whole(at, self.to.unit()))
    }

    fn large_value(&mut self, at: &BlobAddress) -> Result<bool> {
        if self.bundles.is_first(at) {
            self.take(&at.extent)?;
        }
        self.note(at.named(self.to.unit())).map(|()| true)
    }

    fn rows(&mut self, block: &Block) -> Result<()> {
        self.rows += block.len() as u64;
        Ok(())
    }
}
