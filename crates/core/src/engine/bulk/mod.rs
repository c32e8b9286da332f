//! Work on all rows of a table.
//!
//! | file | what |
//! |---|---|
//! | `build.rs`, `feed.rs` | filling trees from unsorted entries, or from the rows |
//! | `online.rs` | the same while others write the rows |
//! | `compare.rs` | whether indexes have what the rows say |

pub(super) mod build;
pub(super) mod compare;
pub(super) mod feed;
pub(super) mod online;
