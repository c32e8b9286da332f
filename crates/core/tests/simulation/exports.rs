//! Single tables: one is exported, and brought into another, or into itself.

use std::path::Path;

use super::{Session, Step};
use crate::backups::Backup;
use crate::durable::{rows_in, Rows, Table};
use crate::subject;
use teak_core::file::Fault;
use teak_core::{Error, Isolation, Result, TreeSpec, View};

const FILE: &str = "/exported";

impl Session<'_> {
    /// No transaction has touched `from` and `to`.
    pub(super) fn move_table(&mut self, from: &str, to: &str) -> Step {
        let exported = self.engine.export_table(from, b"definition", Path::new(FILE), &|_| Ok(()));
        let pauses = self.backup.as_ref().is_some_and(Backup::pauses);
        match exported {
            Err(Error::CheckpointsPaused) if pauses => return Step::Done,
            // Without a descriptor its file cannot be opened, which comes before that is found out.
            exported if pauses && (exported.is_ok() || self.fault.is_none()) => {
                panic!("beside a backup that pauses: {exported:?}")
            }
            Err(error) if self.was_taken_back(&error) => return Step::Done,
            Err(error) => return Step::Failed(error),
            Ok(_) => {}
        }
        // It has made a checkpoint.
        self.expected.checkpointed();
        let (pending, meta) = (self.random.next().to_be_bytes(), self.random.next().to_be_bytes());
        let source = self.expected.current.tables[from].clone();
        let arrived = Table { identity: self.random.next(), meta: meta.to_vec(), ..source.clone() };
        let mut complete = self.expected.current.clone();
        complete.tables.insert(to.to_string(), arrived);
        // On the way there it has the new trees, and what they have is of no matter.
        let on_the_way = |trees: Vec<Rows>, counter| {
            let mut next = complete.clone();
            let table = Table { meta: pending.to_vec(), trees, counter, ..next.tables[to].clone() };
            next.tables.insert(to.to_string(), table);
            next
        };
        let empty = on_the_way(vec![Rows::new(); source.trees.len()], 0);
        let full = on_the_way(source.trees.clone(), source.counter);
        let admit = |incoming: subject::Incoming<'_>| {
            assert_eq!(incoming.definition, b"definition");
            assert_eq!((incoming.meta, incoming.trees), (&source.meta[..], source.trees.len()));
            let packing = TreeSpec::default().packing;
            Ok(subject::Admission { pending: pending.to_vec(), meta: meta.to_vec(), packing, guarded: false })
        };
        let error = match self.engine.import_table(to, Path::new(FILE), &admit, &|_| Ok(())) {
            Ok(()) => {
                self.expected.durable(complete);
                return Step::Done;
            }
            Err(error) if self.was_taken_back(&error) => return Step::Done,
            Err(error) => error,
        };
        if self.fault == Some(Fault::Emfile) {
            self.fs.heal();
        }
        // How far it came, as the engine shows it: a checkpoint that failed in the end may have left the rows. The new
        // trees are durable, by the catalog's commit; which of both they have is not, also if the log is synced later
        // on, or others commit.
        if let Some((_, rows)) = self.shown(to).ok().filter(|(found, _)| *found == pending) {
            let (now, other) = if rows == empty.tables[to].trees { (&empty, &full) } else { (&full, &empty) };
            let (mut now, other) = (now.clone(), other.tables[to].clone());
            now.tables
                .entry(to.to_string())
                .and_modify(|table| table.instead = Some((other.trees, other.counter)));
            self.expected.durable(now);
        }
        [empty, full, complete].into_iter().for_each(|state| self.expected.undecided(state));
        Step::Failed(error)
    }

    fn shown(&self, name: &str) -> Result<(Vec<u8>, Vec<Rows>)> {
        let meta = self.engine.table_meta(name)?;
        let table = self.engine.open_table(name)?;
        let mut txn = self.engine.begin(Isolation::Repeatable);
        let rows = (0..table.trees()).map(|tree| rows_in(&mut txn, table.tree(tree), View::Snapshot));
        Ok((meta, rows.collect::<Result<_>>()?))
    }
}
