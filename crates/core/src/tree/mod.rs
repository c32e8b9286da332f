//! See docs/architecture.md.

pub mod blob;
pub mod block;
pub mod builder;
pub mod delta;
