//! What large values have in common, for a store that keeps once what many of them share. Pure functions of bytes: the
//! room knows no trees and no files. `docs/design/values.md` has the reasons and the figures.
//!
//! | module | is responsible for |
//! |---|---|
//! | `deflated` | values that are zlib, gzip or deflate streams: what is in them, how they are made again |
//! | `frame` | what stands around a deflate stream: headers, checksums, lengths |
//! | `place` | where in a value a stream may stand |
//! | `sketch` | a few numbers that are the same for values which share much |
//! | `kin` | which of the values seen before is most like a new one |
//! | `groups` | which values are to be put together, as far as they were seen |
//! | `bundle` | several values as one |
//! | `zlib` | the pinned zlib behind safe calls |
//! | `texts` | texts for tests of all these |

pub(crate) mod bundle;
pub(crate) mod deflated;
mod frame;
pub(crate) mod groups;
mod kin;
mod place;
pub(crate) mod sketch;
#[cfg(test)]
pub(crate) mod texts;
mod zlib;
