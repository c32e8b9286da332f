//! What is done by the way, for all: checkpoints, old snapshots, packing, tables that are closed as damaged.
//!
//! | file | what |
//! |---|---|
//! | `background.rs` | the threads |
//! | `checkpoints.rs`, `pause.rs` | when checkpoints happen and who waits; times without any |
//! | `damaged.rs` | tables that are closed because their files cannot be read |
//! | `snapshots.rs` | what old snapshots hold, and when they give way |
//! | `alike.rs` | putting large values together that are alike |
//! | `pack.rs` | giving back what a table has more than it needs |

pub(super) mod alike;
pub(super) mod background;
pub(super) mod checkpoints;
pub(super) mod damaged;
pub(super) mod pack;
pub(super) mod pause;
pub(super) mod snapshots;
