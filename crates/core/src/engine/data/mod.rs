//! What the floors above keep books in: open tables and what is known of them, settings, counts.
//!
//! | file | what |
//! |---|---|
//! | `tables.rs`, `losses.rs` | open tables; what of a table in memory a restart has taken |
//! | `dirty.rs` | which trees a checkpoint has to write |
//! | `digests.rs` | what the caller knows of the content of tables |
//! | `trail.rs` | where the log has what an undecided transaction did |
//! | `followed.rs` | keys of what is written to a tree while somebody follows it |
//! | `view.rs` | reading what was committed at a moment |
//! | `watch.rs` | work of several threads that reports and may be ended |
//! | `settings.rs`, `statistics.rs` | knobs and numbers |

pub(super) mod digests;
pub(super) mod dirty;
pub(super) mod followed;
pub(super) mod losses;
pub(super) mod settings;
pub(super) mod statistics;
pub(super) mod tables;
pub(super) mod trail;
pub(super) mod view;
pub(super) mod watch;

use self::digests::Digests;
use self::dirty::DirtyTrees;
use self::followed::Followed;
use self::tables::OpenTables;
use crate::checkpoint::PersistedCounter;
use crate::sync::Mutex;
use crate::types::TreeId;
use std::collections::HashMap;
use std::sync::Arc;

/// What this floor keeps.
#[derive(Default)]
pub(in crate::engine) struct Data {
    pub(in crate::engine) tables: Mutex<OpenTables>,
    /// Trees with commits since the last checkpoint captured its list.
    pub(in crate::engine) dirty: DirtyTrees,
    /// Trees whose writes somebody follows.
    pub(in crate::engine) followed: Followed,
    /// Counters whose newest value no checkpoint has, by the first tree of their table.
    pub(in crate::engine) counters: Mutex<HashMap<TreeId, Arc<PersistedCounter>>>,
    /// What callers have found out about tables, as far as no checkpoint has it.
    pub(in crate::engine) digests: Digests,
}
