//! Tables that are closed because their files cannot be read, while the others go on: at the start, where they cannot
//! take their part of the log, and later, where a checkpoint has to read what it cannot.
//!
//! Their log is kept from where the last image begins that they are in: nothing of it is lost while they exist, and a
//! start that can read them again replays it. Until then no checkpoint has them, so their images stay as they are, and
//! each checkpoint writes down once more what these contain. Who has such a table open since before reads on what can
//! be read; writes are refused.

use super::Care;
use crate::catalog::{Contained, Counted, TableRecord};
use crate::checkpoint::{Capture, Failure};
use crate::engine::shared::Shared;
use crate::log::Lsn;
use crate::options::{ForceRecovery, LogLevel};
use crate::tree::Tree;
use crate::types::TreeId;
use crate::{Error, Result};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// See the module's documentation.
pub(crate) struct Damaged {
    pub trees: HashMap<TreeId, Error>,
    /// What the images of their spaces contain: they do not change.
    pub spaces: BTreeMap<u32, Counted>,
    /// What the images of the last durable checkpoint contain.
    pub contained: Contained,
    /// Where a replay on top of it begins: not behind what tables need that were closed before it.
    pub replay_from: Lsn,
}

impl Damaged {
    /// Nothing so far.
    pub(in crate::engine) fn none(contained: Contained, replay_from: Lsn) -> Damaged {
        Damaged { trees: HashMap::new(), spaces: BTreeMap::new(), contained, replay_from }
    }

    /// A tree, and the space whose images stay as they are.
    fn add(&mut self, tree: TreeId, space: Option<u32>, error: Error) {
        self.trees.insert(tree, error);
        if let Some(space) = space {
            let contained = self.contained.of(space).clone();
            self.spaces.entry(space).or_insert(contained);
        }
    }

    /// A checkpoint is durable.
    pub(in crate::engine) fn checkpoint_durable(&mut self, capture: &Capture) {
        debug_assert!(capture.replay_from >= self.replay_from, "a replay would need log that is released");
        self.contained.clone_from(&capture.counted);
        self.replay_from = capture.replay_from;
    }
}

impl Care {
    /// Whether a table is closed.
    pub(in crate::engine) fn has_damage(&self) -> bool {
        !self.damaged.lock().trees.is_empty()
    }

    /// The table of that record is gone.
    pub(in crate::engine) fn forget_damage(&self, record: &TableRecord) {
        let mut damaged = self.damaged.lock();
        record.trees.iter().for_each(|(tree, _)| drop(damaged.trees.remove(tree)));
        damaged.spaces.remove(&record.space);
    }
}

impl Shared {
    /// Whether the error is that the table's file is damaged, or what the directory says of it.
    pub(in crate::engine) fn is_damage_of_table(&self, name: &str, error: &Error) -> Result<bool> {
        if self.force_recovery >= ForceRecovery::PassOver {
            return Ok(true);
        }
        let own = self.system.table(name)?.map(|record| self.space_path(record.space));
        Ok(own.is_some_and(|own| error.is_damage_of(&own)) || error.is_damage_of(self.system.space.path()))
    }

    /// A table cannot take its part of the log: it is not opened, the log is kept, the others go on.
    pub(in crate::engine) fn damage(&self, tree: TreeId, error: Error) -> Result<()> {
        let name = self.system.table_of(tree)?.unwrap_or_default();
        if self.fs.is_read_only() {
            let text =
                format!("table '{name}' lacks what the log has for blocks that cannot be read: {error}");
            self.observer.message(LogLevel::Error, &text);
            return Ok(());
        }
        let text = format!("table '{name}' cannot be recovered and stays closed; its log is kept: {error}");
        self.observer.message(LogLevel::Error, &text);
        let record = self.system.table(&name)?;
        self.care.damaged.lock().add(tree, record.map(|record| record.space), error.clone());
        let table = self.data.tables.lock().close(name, error);
        if let Some(table) = table {
            self.data.dirty.remove(table.all_trees().iter().map(|tree| tree.id()));
        }
        Ok(())
    }

    /// A checkpoint could not read what it must of a table's file: the table is closed, as a start does it, so that
    /// another attempt goes on without it. `false`: it is no table's damage, or nothing of it can be read later.
    pub(in crate::engine) fn close_unreadable(&self, failure: &Failure) -> bool {
        let Some(space) = failure.space.filter(|_| !failure.fatal) else { return false };
        let error = &failure.error;
        // No table changes its name or its trees meanwhile, and no checkpoint captures half of this.
        let _ddl = self.definitions.ddl.write();
        let table = self.data.tables.lock().all().find(|table| table.space().id() == space).cloned();
        let Some(table) = table else {
            // Another checkpoint has closed it since this one captured its trees, and put back those that were left.
            let is_closed = self.care.damaged.lock().spaces.contains_key(&space);
            if is_closed {
                self.close_trees(space, error, Vec::new());
            }
            return is_closed;
        };
        let Some(first) = table.counter_id() else { return false };
        // What was moved to the spill file the log has, too.
        if !error.is_damage_of(table.path()) && !error.is_damage_of(self.context.spill.path()) {
            return false;
        }
        let name = table.name();
        let text = format!(
            "table '{name}' is closed, as a checkpoint cannot read what it has to; its log is kept, and a start that can read it has all of it: {error}"
        );
        self.observer.message(LogLevel::Error, &text);
        self.care.damaged.lock().add(first, Some(space), error.clone());
        self.data.tables.lock().close(name, error.clone());
        self.close_trees(space, error, table.all_trees().to_vec());
        true
    }

    /// No checkpoint reads trees of this space any more, with those that are being built.
    fn close_trees(&self, space: u32, error: &Error, mut trees: Vec<Arc<Tree>>) {
        trees.extend(self.data.dirty.all().into_iter().filter(|tree| tree.space().id() == space));
        trees.iter().for_each(|tree| tree.close(error));
        self.forget_dirty(trees.iter());
    }
}
