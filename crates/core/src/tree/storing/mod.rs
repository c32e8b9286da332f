//! How a tree comes to disk: images of checkpoints, leaves written ahead of them, loads, encodings chosen.

pub(super) mod convert;
pub(super) mod direct;
pub(super) mod early;
pub(super) mod image;
pub(super) mod load;
pub(super) mod lost;
pub(super) mod tree;
