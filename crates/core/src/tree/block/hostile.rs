//! What [`crate::rooms::hostile`] needs of this room.

use super::columns::{self, Columns};
use super::packed::PackedBlock;
use super::Value;
use crate::store::StoredParts;
use crate::tree::block::Block;

/// The block as leaves are on disk, with so many bytes of keys and values by position.
pub(crate) fn by_columns(block: &Block, image: &[u8], keys: usize, values: usize) -> Vec<u8> {
    columns::pack(block, image, Columns { keys, values }, None).bytes.to_vec()
}

/// The same with its values in frames of so many bytes; and where each part but the first begins.
pub(crate) fn in_frames(block: &Block, image: &[u8], frame_bytes: usize) -> (Vec<u8>, Vec<usize>) {
    let stored = columns::pack(block, image, Columns { keys: 4, values: 3 }, Some(frame_bytes));
    (stored.bytes.to_vec(), stored.cuts)
}

/// A block in frames, each row by itself, and then all of it: if that can be had, it is as `whole`.
pub(crate) fn read_packed(first: &[u8], parts: StoredParts, whole: Option<&Block>) {
    let Ok(Some(packed)) = PackedBlock::parse(first, parts) else { return };
    let (mut key, mut value) = (Vec::new(), Vec::new());
    let made = packed.whole().ok().and_then(|made| made.ok());
    for i in 0..packed.keys().len() {
        packed.keys().key_into(i, &mut key);
        assert_eq!(packed.keys().search(&key), Ok(i));
        let found = packed.value_into(i, &mut value).is_ok_and(|found| found.is_ok());
        if let Some(made) = &made {
            assert!(found && matches!(made.value(i), Value::Inline(bytes) if *bytes == value[..]));
        }
    }
    if let (Some(made), Some(whole)) = (&made, whole) {
        assert_eq!(made.bytes(), whole.bytes());
    }
}
