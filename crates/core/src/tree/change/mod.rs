//! What changes a tree: writes, folding of changes into bases, splits, collecting of what nobody needs.

pub(super) mod collect;
pub(super) mod consolidate;
mod due;
mod evict;
mod merge;
pub(super) mod pack;
mod removal;
mod settle;
pub(super) mod structure;
pub(super) mod trunk;
pub(super) mod vacancy;
pub(super) mod waiting;
pub(super) mod write;
