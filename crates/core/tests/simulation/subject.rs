//! The engine under test. While another is built, or to try the tests themselves, `model` stands in with one changed
//! line.

pub use teak_core::server::*;
