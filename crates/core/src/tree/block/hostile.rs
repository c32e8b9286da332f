//! What [`crate::rooms::hostile`] needs of this room.

use super::columns::{self, Columns};
use crate::tree::block::Block;

/// The block as leaves are on disk, with so many bytes of keys and values by position.
pub(crate) fn by_columns(block: &Block, image: &[u8], keys: usize, values: usize) -> Vec<u8> {
    columns::pack(block, image, Columns { keys, values }, None).bytes.to_vec()
}

/// The same with its values in frames of so many bytes.
pub(crate) fn in_frames(block: &Block, image: &[u8], frame_bytes: usize) -> Vec<u8> {
    columns::pack(block, image, Columns { keys: 4, values: 3 }, Some(frame_bytes)).bytes.to_vec()
}
