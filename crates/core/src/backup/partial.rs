//! A copy with some of the tables: those whose names are wanted when it ends.
//!
//! ```text
//!  round 1   copies what has a wanted name in its image
//!  round 2   the same; files of tables that have lost their wanted name leave the target
//!  finish    image + log = the names at the end: what has got a wanted one since the image is copied now
//! ```
//!
//! Checkpoints are paused until the copy is finished, so the image still has what was left out of it.
//!
//! The system trees and the log are copied whole: they name tables whose files are not in the copy. A start that is
//! told so ([`crate::Options::partial`]) drops them before it replays the log. Tables in memory have no files: the copy
//! has a list of those that were wanted.

use super::{space_images, BackupCopy, Pacer, Settled, SpaceImage, Tally, OPEN_FILES};
use crate::catalog::image::{Catalog, DirectoryRows};
use crate::catalog::{encode_memory_list, MEMORY_LIST};
use crate::catalog::{name_of_key, space_file_name, space_of_file_name, Contained, Counted, TableRecord};
use crate::checkpoint::recovery::Survey;
use crate::file::OpenMode;
use crate::log::{Lsn, Segments};
use crate::store::OpenFiles;
use crate::types::WriteOp;
use crate::{Error, Result};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Whether a copy is to have the table of this name. Asked again as names change.
pub type Wanted = Arc<dyn Fn(&str) -> bool + Send + Sync>;

/// The number of a table's space, and whether there is a file of it.
#[derive(Clone, Copy)]
struct Place {
    space: u32,
    has_file: bool,
}

impl Place {
    fn of(record: &TableRecord) -> Place {
        Place { space: record.space, has_file: record.has_file() }
    }
}

/// What an image has of which a copy takes some.
pub(super) struct Choice {
    /// All tables, by their names.
    tables: BTreeMap<String, Place>,
    /// What was not copied.
    left_out: Vec<SpaceImage>,
}

impl BackupCopy {
    /// Only tables with wanted names are copied. What is made of the copy is opened with [`crate::Options::partial`].
    pub fn only(mut self, wanted: Wanted) -> BackupCopy {
        self.wanted = Some(wanted);
        self
    }

    /// What a round copies of an image.
    pub(super) fn choose(&self, rows: DirectoryRows, names: Catalog) -> (Vec<SpaceImage>, Option<Choice>) {
        let place = |(name, record): (&String, &TableRecord)| (name.clone(), Place::of(record));
        let tables = names.records.iter().map(place).collect();
        let images = space_images(rows, names);
        let Some(wanted) = &self.wanted else { return (images, None) };
        let (chosen, left_out) = images.into_iter().partition(|image| wanted(&image.name));
        (chosen, Some(Choice { tables, left_out }))
    }

    /// Has what the image has of the tables whose names are wanted at `end`, and nothing else of tables.
    pub(super) fn choose_at_end(
        &mut self,
        settled: &Settled,
        end: Lsn,
        tally: &Tally,
        pacer: Pacer<'_>,
    ) -> Result<()> {
        let (Some(wanted), Some(choice)) = (self.wanted.clone(), &settled.choice) else { return Ok(()) };
        let names = self.names_at(end, settled, &choice.tables)?;
        let chosen = names.into_iter().filter(|(name, _)| wanted(name)).map(|(_, place)| place);
        let (with_files, in_memory): (Vec<_>, Vec<_>) = chosen.partition(|place| place.has_file);
        let chosen: BTreeSet<u32> = with_files.iter().map(|place| place.space).collect();
        let were = choice.tables.values().filter(|place| place.has_file).map(|place| place.space);
        self.keep_files(were.filter(|space| chosen.contains(space)))?;
        let late: Vec<_> = choice.left_out.iter().filter(|image| chosen.contains(&image.space)).collect();
        self.copy_spaces(&OpenFiles::new(self.source.clone(), OPEN_FILES), &late, tally, pacer)?;
        self.list_in_memory(in_memory.iter().map(|place| place.space).collect())?;
        self.chosen = Some(chosen);
        tally.faultless()
    }

    /// The copy says which tables in memory it has: no file does.
    fn list_in_memory(&self, spaces: BTreeSet<u32>) -> Result<()> {
        let file = self.target.open(&self.to.join(MEMORY_LIST), OpenMode::Create)?;
        file.write_at(0, &encode_memory_list(&spaces))?;
        file.sync()
    }

    /// All tables at `end`, by their names; `tables` are those of the image.
    fn names_at(
        &self,
        end: Lsn,
        settled: &Settled,
        tables: &BTreeMap<String, Place>,
    ) -> Result<BTreeMap<String, Place>> {
        let (from_log, _) = self.log_dirs();
        let range = settled.superblock.replay_from..end;
        let mut survey = Survey::default();
        Segments::list(&*self.source, &from_log, range.start)?.read(range, &mut |lsn, record| {
            survey.visit(lsn, record);
            Ok(())
        })?;
        let mut names = tables.clone();
        for change in survey.take_catalog() {
            let Some(name) = name_of_key(&change.key) else { continue };
            match change.kind.write(&change.value) {
                WriteOp::Delete => names.remove(name),
                WriteOp::Insert(value) | WriteOp::Update(value) => {
                    let record = TableRecord::decode(value);
                    let record = record.map_err(|detail| Error::corrupt(&from_log, change.at(), detail))?;
                    names.insert(name.to_string(), Place::of(&record))
                }
            };
        }
        Ok(names)
    }

    /// Whether the copy has tables in this space when it ends.
    pub(super) fn takes(&self, space: u32) -> bool {
        self.chosen.as_ref().is_none_or(|chosen| chosen.contains(&space))
    }

    /// What need not be there of what the log names: what the image has, and all of tables that are left out.
    pub(super) fn needless(&self, settled: &Settled) -> Result<Contained> {
        let mut contained = settled.contained.clone();
        let files = self.source.list(&self.from)?;
        let left_out =
            files.iter().filter_map(|name| space_of_file_name(name)).filter(|space| !self.takes(*space));
        contained.apart.extend(left_out.map(|space| (space, Counted::nothing(Lsn::MAX))));
        Ok(contained)
    }

    /// A table that was chosen has its file in the target: without one, it would pass for left out.
    pub(super) fn has_all_chosen(&self) -> Result<()> {
        let begun = self.begun.lock();
        match self.chosen.iter().flatten().find(|space| !begun.contains(space)) {
            None => Ok(()),
            Some(space) => {
                let path = self.from.join(space_file_name(*space));
                Err(Error::corrupt(path, 0, "the file of a table is missing"))
            }
        }
    }
}
