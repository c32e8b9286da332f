//! SQL as text: what statements say, and how what they name is written.

pub mod columns;
pub mod quoting;
