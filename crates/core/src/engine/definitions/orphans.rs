//! Table files that no record of the catalog names, and that could not be removed: since the device failed at that
//! moment, somebody has protected them, or the engine's files are being copied ([`crate::engine::care::pause`]).
//!
//! It is tried again after each checkpoint and at each start. As the log forgets the DDL that they are left over from,
//! checkpoints write their numbers to the directory: a start looks at what is left over, not at all tables.

use crate::catalog::SYSTEM_SPACE;
use crate::engine::data::tables::Table;
use crate::engine::shared::Shared;
use crate::options::LogLevel;
use crate::store::Space;
use crate::{Error, Result};
use std::sync::atomic::Ordering;
use std::sync::Arc;

impl Shared {
    /// Removes the file of a space that no record names. `table` is the table that it was, if that is open: old
    /// snapshots may still read it. What cannot be removed is said, and tried again. That nobody names it is in the
    /// log.
    pub(in crate::engine) fn remove_file(&self, space: u32, table: Option<&Table>) {
        let open = table.map(|table| table.space().clone());
        // Somebody copies the files: his copy may end before the record of this in the log, and needs the file.
        if self.care.progress.pauses.any() {
            self.definitions.orphans.lock().insert(space, open);
            return;
        }
        if let Err(error) = self.try_to_remove(space, open.as_ref()) {
            self.leave(space, open, &error);
        }
    }

    /// The file of no table could not be removed now.
    pub(in crate::engine) fn leave(&self, space: u32, open: Option<Arc<Space>>, error: &Error) {
        let path = self.space_path(space);
        let text = format!(
            "{} is not used any more and could not be removed; this is tried again after each checkpoint: {error}",
            path.display()
        );
        self.observer.message(LogLevel::Warning, &text);
        // Relaxed: at a start, when no other thread is there; later all numbers that are in use are below it anyway. A
        // checkpoint may not have known of one that DDL was using when the power went: it must not become another
        // table's.
        self.ids.space.fetch_max(space.saturating_add(1), Ordering::Relaxed);
        self.definitions.orphans.lock().insert(space, open);
    }

    /// Tries again to remove what is left over. To be called now and then.
    pub(in crate::engine) fn remove_left_over(&self) {
        let left: Vec<_> =
            self.definitions.orphans.lock().iter().map(|(space, open)| (*space, open.clone())).collect();
        for (space, open) in left {
            if self.try_to_remove(space, open.as_ref()).is_ok() {
                self.definitions.orphans.lock().remove(&space);
            }
        }
    }

    fn try_to_remove(&self, space: u32, open: Option<&Arc<Space>>) -> Result<()> {
        assert_ne!(space, SYSTEM_SPACE, "the catalog is removed");
        let path = self.space_path(space);
        open.map_or(Ok(()), |open| open.keep_open())?;
        if self.fs.exists(&path)? {
            self.fs.remove(&path)?;
        }
        // Also if an earlier attempt came as far as this.
        self.fs.sync_dir(&self.dir)
    }
}
