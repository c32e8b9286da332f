//! Single tables as files: what FLUSH TABLES ... FOR EXPORT writes and IMPORT TABLESPACE reads, in whichever engine.
//!
//! The blocks are those of the table's file as they are stored there, compressed and encoded, in the order in which a
//! walk comes to them that begins at the roots. So nothing says where in the export a block is: the walk knows what
//! comes next, with its length and its checksum, and whatever is cut off, added or changed is found on the way. Each
//! block goes to the offset of the new file that it had in the old one, as the pages above it say; what was free there
//! is free here. Numbers of spaces and trees are in no block.
//!
//! ```text
//!  0            8         12                    16               24                        32                    40
//!  | "TEAKEXPT" | version | bytes of the        | bytes of the   | XXH3-64 of the          | XXH3-64 of bytes    |
//!  |            | 1 (u32) | description (u32)   | blocks (u64)   | description             | 0 to 31             |
//!  | description | blocks one after the other: the dictionaries of the trees, then each tree, depth first, a large
//!  |             | value behind the leaf that names it, or that is the first to name a value of its bundle; a patch
//!  |             | in front of its leaf
//!
//! description: counter u64 | definition | meta | digest | trees u16 | for each tree:
//!              block size u32 | 0 or 1: dictionary (number u16, address 27) | 0 or 1: root (63)
//!              the three texts are a length (u32) and so many bytes
//! ```
//!
//! The header is written last, when all else is durable: a file that is not whole has none. What is read is not
//! trusted: it may come from anywhere. Knows `catalog`, `tree` and `store`, and no engine.

mod reader;
mod writer;

pub use reader::ExportFile;
pub use writer::write;

use crate::catalog::directory::StoredDictionary;
use crate::store::{BlockAddress, TreeRoot};
use crate::tree::block::blob::BlobAddress;
use std::collections::HashSet;

const MAGIC: &[u8; 8] = b"TEAKEXPT";
/// The newest; of a table that has leaves with patches, whose extents are tight. Those of version 3 end with sectors.
const VERSION: u32 = 4;
/// Of one that has none, but leaves in frames.
const VERSION_WITHOUT_PATCHES: u32 = 2;
/// Of any other, so that builds that do not know frames can import it.
const VERSION_WITHOUT_FRAMES: u32 = 1;
const HEADER_BYTES: u64 = 40;
/// Longest description: that of 4096 columns with long texts has a tenth of it.
const MAX_DESCRIPTION_BYTES: u32 = 16 << 20;

/// Sizes that blocks of trees may have.
const BLOCK_BYTES: std::ops::RangeInclusive<u32> = 1 << 10..=1 << 20;

/// What an export says of its table, besides the rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Description {
    /// Next AUTO_INCREMENT value.
    pub counter: u64,
    /// The caller's: what the table has to be like into which it is imported.
    pub definition: Vec<u8>,
    /// The caller's metadata of the table.
    pub meta: Vec<u8>,
    /// What the caller knows of the rows; may be empty.
    pub digest: Vec<u8>,
    /// Its trees, in the caller's order.
    pub trees: Vec<ExportedTree>,
}

/// Bundles that a walk has come to: each is in the export once. Some ten bytes for each, which holds dozens of values.
#[derive(Default)]
struct BundlesMet(HashSet<u64>);

impl BundlesMet {
    /// Whether the extent of the value is one that nobody has come to.
    fn is_first(&mut self, at: &BlobAddress) -> bool {
        at.member.is_none() || self.0.insert(at.extent.offset)
    }
}

/// One tree of an export.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExportedTree {
    /// As in its specification.
    pub block_bytes: u32,
    /// What its blocks are encoded with.
    pub dictionary: Option<StoredDictionary>,
    /// `None`: it is empty.
    pub root: Option<TreeRoot>,
}

impl Description {
    fn encode(&self) -> Vec<u8> {
        let mut out = self.counter.to_le_bytes().to_vec();
        for text in [&self.definition, &self.meta, &self.digest] {
            out.extend_from_slice(&(text.len() as u32).to_le_bytes());
            out.extend_from_slice(text);
        }
        debug_assert!(u16::try_from(self.trees.len()).is_ok(), "trees that their number leaves out");
        out.extend_from_slice(&(self.trees.len() as u16).to_le_bytes());
        for tree in &self.trees {
            out.extend_from_slice(&tree.block_bytes.to_le_bytes());
            out.push(u8::from(tree.dictionary.is_some()));
            if let Some((number, address)) = &tree.dictionary {
                out.extend_from_slice(&number.to_le_bytes());
                out.extend_from_slice(&address.encode());
            }
            out.push(u8::from(tree.root.is_some()));
            out.extend(tree.root.iter().flat_map(TreeRoot::encode));
        }
        out
    }

    /// Reads what [`Description::encode`] wrote; `None` for anything else.
    fn decode(mut bytes: &[u8]) -> Option<Description> {
        let rest = &mut bytes;
        let counter = u64::from_le_bytes(take(rest)?);
        let (definition, meta, digest) = (take_text(rest)?, take_text(rest)?, take_text(rest)?);
        let count = u16::from_le_bytes(take(rest)?);
        let mut trees = Vec::new();
        for _ in 0..count {
            let block_bytes =
                Some(u32::from_le_bytes(take(rest)?)).filter(|bytes| BLOCK_BYTES.contains(bytes))?;
            let dictionary = match take::<1>(rest)? {
                [0] => None,
                [1] => {
                    let number = u16::from_le_bytes(take(rest)?);
                    let address = BlockAddress::decode(&take::<{ BlockAddress::ENCODED_BYTES }>(rest)?)?;
                    Some((number, address)).filter(|_| number > 0 && address.dictionary == 0).map(Some)?
                }
                _ => return None,
            };
            let root = match take::<1>(rest)? {
                [0] => None,
                [1] => Some(TreeRoot::decode(&take::<{ TreeRoot::ENCODED_BYTES }>(rest)?)?),
                _ => return None,
            };
            trees.push(ExportedTree { block_bytes, dictionary, root });
        }
        rest.is_empty().then_some(Description { counter, definition, meta, digest, trees })
    }
}

/// The next `N` bytes.
fn take<const N: usize>(rest: &mut &[u8]) -> Option<[u8; N]> {
    let (head, tail) = rest.split_first_chunk::<N>()?;
    *rest = tail;
    Some(*head)
}

fn take_text(rest: &mut &[u8]) -> Option<Vec<u8>> {
    let length = u32::from_le_bytes(take(rest)?) as usize;
    let (text, tail) = rest.split_at_checked(length)?;
    *rest = tail;
    Some(text.to_vec())
}

#[cfg(feature = "rooms")]
pub(crate) mod hostile {
    //! What [`crate::rooms::hostile`] needs of this room.

    use super::{Description, ExportedTree};
    use crate::store::{BlockAddress, TreeRoot};

    /// Whatever the bytes are, as a description.
    pub(crate) fn description(bytes: &[u8]) {
        if let Some(description) = Description::decode(bytes) {
            assert_eq!(description.encode(), bytes);
        }
    }

    /// One with everything.
    pub(crate) fn sample_description(root: TreeRoot, dictionary: BlockAddress) -> Vec<u8> {
        let tree =
            ExportedTree { block_bytes: 32 << 10, dictionary: Some((3, dictionary)), root: Some(root) };
        let empty = ExportedTree { dictionary: None, root: None, ..tree };
        let (definition, meta, digest) = (b"column a int".to_vec(), vec![1; 40], Vec::new());
        Description { counter: 17, definition, meta, digest, trees: vec![tree, empty] }.encode()
    }
}
