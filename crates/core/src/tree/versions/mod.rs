//! Versions of rows that one leaf has: those in memory, those kept for old snapshots, and who sees which. Knows blocks,
//! no leaf.

pub(super) mod birth;
pub mod delta;
pub(super) mod history;
pub(super) mod materialise;
pub(super) mod past;
pub(super) mod visibility;
