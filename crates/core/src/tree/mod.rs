//! Trees of delta leaves: ordered maps of byte keys to byte values, many versions each.
//!
//! ```text
//! Trunk ── root ──> inner ──> inner ──> leaf ──> view { base, delta, history }
//! ```
//!
//! Readers descend and read without latch or lock. A writer latches one leaf for one push. Structure changes (splits,
//! removal of empty leaves, merges) are serialised by the tree's structure latch, and publish top-down: a parent
//! knows a new leaf before the old one is narrowed, so a descent that meets a narrowed leaf finds the right one by
//! starting again.
//! Latch order: structure latch, then leaf latches; a thread that holds a leaf latch never waits for the structure
//! latch.
//!
//! The room has floors, from the ground up: `block`, then `encoding` and `versions`, then `leaf`, `change`, `storing`,
//! `read`, and the checkers on top. Each knows only those below; `tests/floors.rs` sees to it.
//!
//! This room knows `store` (to read and write blocks), `cache` (to account for memory) and `mvcc`; it knows neither the
//! log nor transactions beyond their [`crate::mvcc::TxnStatus`].

pub mod block;
mod change;
mod check;
mod check_image;
mod encoding;
mod leaf;
mod read;
mod storing;
#[cfg(test)]
mod tests;
mod versions;

pub(crate) use block::blob::{Blob, BlobAddress};
pub(crate) use change::pack::Packing;
pub use change::trunk::Trunk;
#[cfg(test)]
pub(crate) use change::trunk::DESCENTS;
pub use change::write::{Write, Written, MAX_KEY_BYTES};
pub use check::Depth;
pub use check_image::{check_image, check_image_shared, each_row, ImageVisitor, SharedVisitor};
#[cfg(test)]
pub(crate) use leaf::care::Care;
pub(crate) use leaf::node::Node;
#[cfg(any(test, feature = "rooms"))]
pub(crate) use leaf::patch::PatchBlock;
pub use read::cursor::TreeCursor;
pub use read::listing::Listed;
pub use read::sample::Outline;
pub use read::window::Window;
pub(crate) use storing::bundles::{Exchange, Looked, WrittenBundle, MOST_VALUE_BYTES};
pub(crate) use storing::direct::Attached;
pub use storing::direct::DirectJob;
#[cfg(test)]
pub(crate) use storing::direct::MOST_READS;
pub use storing::image::Moment;
pub use storing::load::TreeLoader;
pub use storing::lost::Lost;
pub(crate) use storing::relocate::Moved;
pub use storing::rewrite::Rewriter;
pub use storing::tree::{Tree, TreeContext};
pub use versions::past::{Bell, Held};
pub use versions::visibility::Reader;
