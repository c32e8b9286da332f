//! Tables by name: who may change one; creating, changing and dropping them; relations; what is left over.
//!
//! | file | what |
//! |---|---|
//! | `names.rs` | whose turn it is with a name |
//! | `ddl.rs`, `alter.rs` | creating, dropping, renaming, emptying; changing |
//! | `catalog_changes.rs` | the transaction that each of these ends with |
//! | `opening.rs` | opening tables |
//! | `links.rs` | relations of tables by name |
//! | `temporary.rs` | definitions that the catalog has not |
//! | `orphans.rs` | files of no table that could not be removed |
//! | `left_out.rs` | tables that a partial copy has not |

pub(super) mod alter;
pub(super) mod catalog_changes;
pub(super) mod ddl;
pub(super) mod left_out;
pub(super) mod links;
pub(super) mod names;
mod opening;
pub(super) mod orphans;
pub(super) mod temporary;

use self::names::Names;
use self::temporary::TemporaryTables;
use crate::checkpoint::Dropped;
use crate::store::Space;
use crate::sync::{Mutex, RwLock};
use std::collections::BTreeMap;
use std::sync::atomic::AtomicU64;
use std::sync::Arc;

/// What this floor keeps.
#[derive(Default)]
pub(in crate::engine) struct Definitions {
    /// The names of tables that DDL changes, and of those that are being opened.
    pub(in crate::engine) names: Names,
    /// Shared by DDL under way; had alone by the capture of a checkpoint. Nobody asks for it twice.
    pub(in crate::engine) ddl: RwLock<()>,
    /// Definitions that the catalog has not.
    pub(in crate::engine) temporary: TemporaryTables,
    /// See [`crate::engine::Engine::link_changes`].
    link_changes: AtomicU64,
    /// Whose directory rows the next checkpoint removes.
    pub(in crate::engine) dropped: Mutex<Vec<Dropped>>,
    /// Files of no table that could not be removed, by space; with what may still be read of it.
    pub(in crate::engine) orphans: Mutex<BTreeMap<u32, Option<Arc<Space>>>>,
}
