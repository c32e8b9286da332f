//! Single tables: written to a file of their own, and brought from such a file, perhaps another engine's, into a table
//! that is there and empty ([`crate::exports`] has the file).
//!
//! ```text
//! export   checkpoint ──> the image of the table's file, block by block ──> header
//! import   new trees, a new file │ blocks, each looked at ──> free map, sync │ checkpoint: roots, map, counter │ metadata
//!          (catalog, durable)    │                                           │ (directory, durable)            │ (catalog)
//! ```
//!
//! **Export.** Nobody writes to the table, so a checkpoint has all of it, and the ones after it leave the image alone
//! unless they rewrite blocks on their own account (another compression). Then a block of it may be overwritten before
//! it is copied, which its checksum tells: the copy begins anew, with checkpoints paused.
//!
//! **Import.** Nothing of it is in the log: as with the build of an index, a checkpoint makes the rows durable, and
//! only then the catalog says that they count. Up to there the table is what it was, one whose metadata say that it is
//! not to be used; after a crash in between the import is repeated, and what an unfinished one left goes with the file
//! that the next one, or a DROP, replaces.

use super::care::checkpoints::Urgency;
use super::data::tables::Table;
use super::definitions::catalog_changes::CatalogChanges;
use super::shared::{Engine, Shared};
use crate::catalog::TableRecord;
use crate::checkpoint::{Arrival, ArrivedTree};
use crate::exports::{self, Description, ExportFile, ExportedTree};
use crate::file::OpenMode;
use crate::options::{Packing, TreeSpec};
use crate::store::{BlockAddress, OpenFiles, Space};
use crate::{Error, Result};
use std::path::Path;
use std::sync::Arc;

/// Memory for sorting where blocks lie.
const SORT_BYTES: usize = 4 << 20;
/// Descriptors of a table's file.
const OPEN_FILES: usize = 2;

/// Is told how many more bytes were copied, and ends the work by an error.
type Watch<'a> = &'a dyn Fn(u64) -> Result<()>;

/// What a file says of the table that is in it.
#[derive(Debug, Clone, Copy)]
pub struct Incoming<'a> {
    /// What [`Engine::export_table`] was given.
    pub definition: &'a [u8],
    /// The metadata of the table that was exported.
    pub meta: &'a [u8],
    /// How many trees it has.
    pub trees: usize,
}

/// What the caller makes of it.
#[derive(Debug, Clone)]
pub struct Admission {
    /// The table's metadata while it has not all of its rows: they are to say so. Up to the end of the import, and
    /// after a crash during it.
    pub pending: Vec<u8>,
    /// The metadata from then on.
    pub meta: Vec<u8>,
    /// As [`super::Alteration::guarded`].
    pub guarded: bool,
    /// How blocks are written that will change.
    pub packing: Packing,
}

impl Engine {
    /// Writes the table to the file at `path`, which is made anew, for [`Engine::import_table`] of any engine:
    /// `definition` is given to that one's caller. Nobody may write to the table meanwhile. The file is durable when
    /// this returns, and belongs to the caller; after an error there is none. Costs a checkpoint, and reading and
    /// writing all blocks of the table as they are stored.
    ///
    /// Errors: [`Error::Undecided`] if a prepared transaction has written to the table; [`Error::Corrupt`] names a
    /// block that is damaged; [`Error::CheckpointsPaused`].
    pub fn export_table(&self, name: &str, definition: &[u8], path: &Path, watch: Watch<'_>) -> Result<()> {
        let table = self.open_table(name)?;
        let exported = self.export(&table, definition, path, watch);
        if exported.is_err() && self.shared.fs.exists(path).unwrap_or(true) {
            // What is left has no header, and says so to who tries to import it.
            let _ = self.shared.fs.remove(path);
        }
        exported
    }

    fn export(&self, table: &Arc<Table>, definition: &[u8], path: &Path, watch: Watch<'_>) -> Result<()> {
        let shared = &self.shared;
        shared.check_checkpoints()?;
        shared.check_decided(&shared.record(&table.name())?)?;
        let target = shared.fs.open(path, OpenMode::Create)?;
        shared.checkpoint(false, Urgency::Awaited)?;
        let mut description = Description {
            counter: table.counter(),
            definition: definition.to_vec(),
            meta: table.meta().to_vec(),
            digest: self.digest(table)?.unwrap_or_default(),
            trees: shared.exported_trees(table)?,
        };
        let trees = description.trees.clone();
        match exports::write(&shared.image_of(table)?, &mut description, &*target, watch) {
            Err(error) if error.is_damage_of(table.path()) => {
                let _pause = self.pause_checkpoints();
                description.trees = shared.exported_trees(table)?;
                if description.trees == trees {
                    return Err(error);
                }
                exports::write(&shared.image_of(table)?, &mut description, &*target, watch)
            }
            written => written,
        }
    }

    /// Puts the rows of the file at `path`, which [`Engine::export_table`] has made, into the table `name`, in place of
    /// all that it had: `admit` looks whether they fit, and says what the table's metadata are to be. Nobody may use
    /// the table meanwhile. All of the file is checked. The rows are durable when this returns; handles opened before
    /// are to be opened again.
    ///
    /// After an error, or a crash, the table is as before, or it has the pending metadata, and is not to be used until
    /// it is imported, truncated or dropped: it has no rows, or those of the file, and a restart may exchange the one
    /// for the other, whatever was committed meanwhile, as it depends on which checkpoint is the newest durable one. If
    /// the error has made the engine read-only, a restart may find it complete. Costs a checkpoint, and reading and
    /// writing all blocks.
    ///
    /// Errors: that of `admit`; [`Error::Corrupt`] and [`Error::UnknownVersion`] tell what is wrong with the file;
    /// [`Error::Undecided`]; [`Error::CheckpointsPaused`].
    pub fn import_table(
        &self,
        name: &str,
        path: &Path,
        admit: &dyn Fn(Incoming<'_>) -> Result<Admission>,
        watch: Watch<'_>,
    ) -> Result<()> {
        let shared = &self.shared;
        shared.check_checkpoints()?;
        let file = ExportFile::open(&*shared.fs, path)?;
        let Description { definition, meta, trees, .. } = file.description();
        let admission = admit(Incoming { definition, meta, trees: trees.len() })?;
        let (record, map) = {
            let _turn = shared.definitions.names.take(&[name]);
            let spec =
                |tree: &ExportedTree| TreeSpec { block_bytes: tree.block_bytes, packing: admission.packing };
            let specs: Vec<TreeSpec> = trees.iter().map(spec).collect();
            let record = shared.replace_trees(name, &specs, &admission.pending)?;
            let map = shared.bring(&file, &record, watch)?;
            (record, map)
        };
        // Not while the name is taken: who checks files has the checkpoints, and asks for names.
        shared.checkpoint_with(arrival(&record, map, file.description()))?;
        shared.accept(name, &record, admission.meta, admission.guarded)
    }
}

fn arrival(record: &TableRecord, map: BlockAddress, description: &Description) -> Arrival {
    debug_assert_eq!(record.trees.len(), description.trees.len(), "a tree that arrives without rows");
    let tree = |(&(tree, _), from): (&(u64, TreeSpec), &ExportedTree)| ArrivedTree {
        tree,
        root: from.root,
        dictionary: from.dictionary,
    };
    Arrival {
        space: record.space,
        map,
        trees: record.trees.iter().zip(&description.trees).map(tree).collect(),
        counter: description.counter,
        digest: description.digest.clone(),
    }
}

impl Shared {
    /// Both need one at their end: who comes during a pause is told before anything is done.
    fn check_checkpoints(&self) -> Result<()> {
        match self.care.progress.pauses.any() {
            true => Err(Error::CheckpointsPaused),
            false => Ok(()),
        }
    }

    /// The trees of a table as of the newest checkpoint.
    fn exported_trees(&self, table: &Table) -> Result<Vec<ExportedTree>> {
        let tree = |tree: &Arc<crate::tree::Tree>| {
            Ok(ExportedTree {
                block_bytes: tree.spec().block_bytes,
                dictionary: self.system.dictionary(tree.id())?,
                root: self.system.root(tree.id())?,
            })
        };
        table.all_trees().iter().map(tree).collect()
    }

    /// The table's file with books of its own.
    fn image_of(&self, table: &Table) -> Result<Arc<Space>> {
        let files = OpenFiles::new(self.fs.clone(), OPEN_FILES);
        Space::open(&files, table.path(), table.space().id(), None)
    }

    /// Copies the blocks of `file` to that of `record`, where nothing is so far. Where its free map is.
    fn bring(&self, file: &ExportFile, record: &TableRecord, watch: Watch<'_>) -> Result<BlockAddress> {
        let path = self.space_path(record.space);
        let files = OpenFiles::new(self.fs.clone(), OPEN_FILES);
        let space = Space::open(&files, &path, record.space, None)?;
        let extents = self.sorter(SORT_BYTES, false);
        file.copy(&space, extents, watch).inspect_err(|_| {
            // No image names anything behind the header. What cannot be cut goes with the table.
            let cut =
                self.fs.open(&path, OpenMode::Existing).and_then(|file| file.set_len(Space::HEADER_BYTES));
            drop(cut);
        })
    }

    /// The table is complete: its metadata say so from now on.
    fn accept(&self, name: &str, arrived: &TableRecord, meta: Vec<u8>, guarded: bool) -> Result<()> {
        let _turn = self.definitions.names.take(&[name]);
        let record = self.record(name)?;
        if record.space != arrived.space {
            return Err(Error::TableChanged);
        }
        // Somebody may have looked at it while it was empty. What can fail comes before the commit.
        self.data.tables.lock().retire(name);
        let arrived = self.load_table(name)?;
        {
            let _ddl = self.definitions.ddl.read();
            self.health.check()?;
            let mut changes = CatalogChanges::default();
            changes.update(name, &TableRecord { meta: meta.clone(), guarded, ..record });
            changes.commit(self)?;
        }
        let table = arrived.with_trees(meta, arrived.all_trees().to_vec());
        table.all_trees().iter().for_each(|tree| tree.hide_from_older_snapshots());
        self.data.tables.lock().insert(Arc::new(table));
        Ok(())
    }
}
