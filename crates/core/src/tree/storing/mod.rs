//! How a tree comes to disk: images of checkpoints, patches, leaves written ahead of them, loads, what is moved within
//! a file or put into other bytes.

pub(crate) mod bundles;
pub(super) mod convert;
pub(super) mod direct;
pub(super) mod early;
mod exchange;
pub(super) mod image;
pub(super) mod load;
pub(super) mod lost;
pub(super) mod pages;
mod patches;
pub(super) mod relocate;
pub(super) mod rewrite;
pub(super) mod tree;
