//! Whether tables, the catalog and the files are as they should be.
//!
//! [`Engine::check_trees`] looks at one table while everything goes on. [`Engine::check_files`] lets checkpoints wait
//! and reads what is durable. [`Engine::check_everything`] is for tests and for directories that no server uses: it
//! asks for quiet, and looks at all of it. Whether an index has the entries of its table's rows is for who knows what
//! these are: see `compare.rs`.

use super::check_image::ImageCheck;
use super::data::tables::Table;
use super::data::watch::Watcher;
use super::shared::{Engine, Shared};
use super::txn::transaction::Transaction;
use crate::catalog::{space_of_file_name, SYSTEM_SPACE};
use crate::finding::{Finding, Findings};
use crate::store::Space;
use crate::tree::{Depth, Reader, Tree};
use crate::types::{Isolation, Timestamp, View};
use crate::{Error, Result};
use std::collections::HashSet;
use std::ops::Range;
use std::sync::Arc;

/// What the check of a table came to.
#[derive(Debug, Default)]
pub struct TableCheck {
    /// What is wrong.
    pub findings: Findings,
    /// Entries that the transaction sees in each tree; at [`Depth::Structure`] only, and of trees that are not damaged.
    pub entries: Vec<u64>,
}

impl Engine {
    /// Looks at these trees of the table, each block of them on disk; counts entries as `txn` sees them. Others read
    /// and write meanwhile. `watch` is told how many leaves were looked at.
    pub fn check_trees(
        &self,
        txn: &mut Transaction,
        (table, trees): (&Table, Range<usize>),
        depth: Depth,
        watch: Watcher<'_>,
    ) -> Result<TableCheck> {
        let mut check = TableCheck::default();
        let mut before = 0;
        for tree in table.all_trees().iter().take(trees.end).skip(trees.start) {
            txn.show_writes(tree, None)?;
            let reader = txn.reader(View::Snapshot);
            let mut leaves = |leaves: u64| watch(before + leaves);
            let summary = tree.check(&reader, depth, &mut check.findings, &mut leaves)?;
            before += summary.leaves;
            check.entries.push(summary.entries);
        }
        table.space().check_books(&mut check.findings);
        Ok(check)
    }

    /// [`Engine::check_trees`] for who only wants to know whether anything is wrong: the error is all that was found.
    pub fn check_table(&self, table: &Table) -> Result<()> {
        let mut txn = self.begin(Isolation::Repeatable);
        let check =
            self.check_trees(&mut txn, (table, 0..table.trees()), Depth::Structure, &mut |_| Ok(()))?;
        txn.rollback();
        match check.findings.is_empty() {
            true => Ok(()),
            false => Err(Error::corrupt(table.space().path(), 0, check.findings.to_string())),
        }
    }

    /// Reads everything that the durable image consists of, and compares it with what the files say is free.
    /// Checkpoints wait meanwhile. `watch` is told how many tables were looked at.
    pub fn check_files(&self, watch: Watcher<'_>) -> Result<Findings> {
        let mut findings = Findings::default();
        let shared = &self.shared;
        shared.care.checkpointer.paused(|| ImageCheck::new(shared, &mut findings, watch).run())?;
        Ok(findings)
    }

    /// Looks at everything, in memory and on disk. Nobody else may use the engine meanwhile, nor may it have background
    /// threads. Tables that cannot be opened are findings.
    pub fn check_everything(&self, watch: Watcher<'_>) -> Result<Findings> {
        let mut findings = self.check_files(watch)?;
        let shared = &self.shared;
        shared.check_names(&mut findings)?;
        for tree in [&shared.system.directory, &shared.system.catalog] {
            check_tree(tree, None, &mut findings, watch)?;
        }
        shared.system.space.check_books(&mut findings);
        for name in shared.system.names("")?.into_iter().chain(shared.definitions.temporary.names()) {
            let opened = shared.open_table(&name);
            let Some(table) = findings.absorb(None, opened)? else { continue };
            for tree in table.all_trees() {
                check_tree(tree, Some(tree.entries()), &mut findings, watch)?;
            }
            table.space().check_books(&mut findings);
        }
        Ok(findings)
    }
}

/// `entries`: how many committed ones there should be.
fn check_tree(
    tree: &Arc<Tree>,
    entries: Option<u64>,
    findings: &mut Findings,
    watch: Watcher<'_>,
) -> Result<()> {
    let found = tree.check(&Reader::at(Timestamp::MAX), Depth::Structure, findings, watch)?;
    tree.check_lists(findings)?;
    findings.expect(entries.is_none_or(|entries| entries == found.entries), || {
        let detail = format!("{} entries were counted, not {}", entries.unwrap_or(0), found.entries);
        Finding::new(tree.space().path(), detail).of_tree(tree.id())
    });
    Ok(())
}

impl Shared {
    /// The file of the table as it is open now, if it is.
    pub(super) fn open_space(&self, name: &str, space: u32) -> Option<Arc<Space>> {
        let tables = self.data.tables.lock();
        tables.get(name).map(|table| table.space().clone()).filter(|open| open.id() == space)
    }

    /// The catalog against itself and against the names of the files.
    fn check_names(&self, findings: &mut Findings) -> Result<()> {
        let path = self.system.space.path().to_path_buf();
        let mut spaces = HashSet::from([SYSTEM_SPACE]);
        let mut trees = HashSet::new();
        for name in self.system.names("")? {
            let Some(Some(record)) = findings.absorb(None, self.system.table(&name))? else { continue };
            let fault = |detail: String| Finding::new(&path, format!("table '{name}': {detail}"));
            findings.expect(spaces.insert(record.space), || fault("its file is another's".into()));
            for (tree, _) in &record.trees {
                findings.expect(trees.insert(*tree), || fault(format!("tree {tree} is another's, too")));
                let of = self.system.table_of(*tree)?;
                findings.expect(of.as_deref() == Some(&name), || {
                    fault(format!("tree {tree} is not entered as its"))
                });
            }
            let exists = self.fs.exists(&self.space_path(record.space))?;
            match record.has_file() {
                true => findings.expect(exists, || fault("its file is missing".into())),
                false => findings.expect(!exists, || fault("it lives in memory and has a file".into())),
            }
        }
        for name in self.fs.list(&self.dir)? {
            let known = space_of_file_name(&name).is_none_or(|space| spaces.contains(&space));
            findings.expect(known, || Finding::new(&self.dir.join(&name), "the file is of no table"));
        }
        Ok(())
    }
}
