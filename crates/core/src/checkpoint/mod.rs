//! Checkpoints and recovery: the only place that knows the log and the store both.
//!
//! A checkpoint is a reader at timestamp T. What makes it right:
//!
//! - **Nothing is missing.** Each commit up to T is in the image; each later one is in the log at or after
//!   `replay_from`. The caller captures in this order: `log.published()`; the first records of transactions whose redo
//!   is partly in the log; T. A commit that is published after the first look has its record behind it, or had
//!   announced an earlier one before.
//! - **Nothing is ahead of the log.** The log is made durable up to its end as of T before the superblock is written.
//!   Otherwise a commit whose record was lost could survive in the image alone, without the binlog or another tree
//!   having it.
//! - **Nothing durable is overwritten.** Images go to new extents; what they replace is reused only after the new
//!   superblock is durable.
//! - **The next one has what this one lacks.** A tree that has more than its image, or another count than stands beside
//!   it, is entered for the next checkpoint before that can be captured: its replay begins behind all that was
//!   published by then.
//!
//! ```text
//!  capture T ──> trees as of T ──> free maps, sync ──> directory ──> its map, sync ──> superblock ──> reuse, release log
//!                └──────────────── an error here: abandon, nothing happened ────┘      └─ an error here is fatal: both the
//!                                                                                         old and the new image may be current
//! ```
//!
//! Recovery ([`recovery`]) reads the newest superblock and replays the log in two passes: outcomes first, then the
//! operations of transactions that committed, in log order. Replay is idempotent, so it may begin before T.

mod counter;
pub mod direct;
mod images;
pub mod recovery;
mod writer;

pub use counter::PersistedCounter;
pub use images::Pace;
pub use writer::{Arrival, ArrivedTree, Capture, Checkpointer, Dropped, Failure, Outcome, TreeImage};
