//! The end of a copy: the log since the image's checkpoint, and what it names.

use super::extents::{Extents, Mark};
use super::{BackupCopy, Pacer, Settled, Tally};
use crate::catalog::{space_file_name, space_of_file_name};
use crate::checkpoint::direct::{DirectBlock, Inspection};
use crate::file::{File, OpenMode};
use crate::log::{copy_segments, LogRecord, Lsn, Ops, Segments};
use crate::store::{BlockAddress, Space};
use crate::sync::Mutex;
use crate::{Error, Result};
use std::collections::BTreeMap;
use std::sync::Arc;

/// So many files have blocks that the log names before those are synced and closed that came first.
const OPEN_FILES: usize = 64;

/// The engine's file, and the target's.
type Pair = (Arc<dyn File>, Arc<dyn File>);

/// The files of the target that get blocks.
struct Tail<'a> {
    copy: &'a BackupCopy,
    tally: &'a Tally,
    pacer: Pacer<'a>,
    /// `None`: the engine's is gone, and its table with it, or there is no table yet.
    files: BTreeMap<u32, Option<Pair>>,
    /// What the target has in the files of tables that were created since the checkpoint.
    created: Created,
    /// What was copied, by spaces and offsets. None overlaps another.
    noted: BTreeMap<u32, BTreeMap<u64, BlockAddress>>,
}

/// The extents of spaces that no image has.
pub(super) type Created = BTreeMap<u32, Arc<Mutex<Extents>>>;

/// Copies the log of the image in `settled` up to `end`, and makes everything durable. What was copied of tables that
/// are not in the image.
pub(super) fn copy(
    copy: &BackupCopy,
    settled: &Settled,
    end: Lsn,
    tally: &Tally,
    pacer: Pacer<'_>,
) -> Result<Created> {
    let (source, target) = (&*copy.source, &*copy.target);
    let (from_log, to_log) = copy.log_dirs();
    let range = settled.superblock.replay_from..end;
    target.create_dir(&to_log)?;
    copy_segments((source, &from_log), (target, &to_log), range.clone(), &mut |bytes| {
        tally.wrote(bytes);
        pacer(bytes)
    })?;
    target.sync_dir(&to_log)?;
    let mut tail =
        Tail { copy, tally, pacer, files: BTreeMap::new(), created: Created::new(), noted: BTreeMap::new() };
    // Tables that were created since the checkpoint: the log has their names, and not their files.
    for space in source.list(&copy.from)?.iter().filter_map(|name| space_of_file_name(name)) {
        if !copy.extents.contains_key(&space) && copy.takes(space) && tail.files_of(space)?.is_some() {
            tail.created.insert(space, Arc::default());
        }
    }
    let needless = copy.needless(settled)?;
    let inspection = Inspection::new(source, copy.from.clone(), &needless, copy.threads);
    Segments::list(source, &from_log, range.start)?.read(range, &mut |lsn, record| {
        let Some(ops) = ops_of(&record).filter(|ops| ops.may_name_extents()) else { return Ok(()) };
        if !inspection.is_intact(lsn, &record)? {
            let detail = format!("the log names blocks at LSN {lsn} that are not in their files");
            return Err(Error::corrupt(&from_log, lsn, detail));
        }
        tail.blocks(&ops)
    })?;
    tail.sync_files()?;
    target.sync_dir(&copy.to)?;
    Ok(tail.end())
}

fn ops_of<'a>(record: &LogRecord<'a>) -> Option<Ops<'a>> {
    match *record {
        LogRecord::Ops { ops, .. }
        | LogRecord::Commit { ops, .. }
        | LogRecord::Prepare { ops, .. }
        | LogRecord::Copy { ops, .. } => Some(ops),
        _ => None,
    }
}

impl Tail<'_> {
    /// Copies the blocks that operations name, as far as they are there: those that an image has already, or of a
    /// transaction that was rolled back, may have been overwritten.
    fn blocks(&mut self, ops: &Ops<'_>) -> Result<()> {
        for block in ops.iter().filter_map(|op| DirectBlock::of(&op)) {
            if !self.copy.takes(block.space) {
                continue;
            }
            let (tally, pacer) = (self.tally, self.pacer);
            let Some((source, target)) = self.files_of(block.space)? else { continue };
            let (source, target) = (source.clone(), target.clone());
            for address in [Some(block.address), block.dictionary].into_iter().flatten() {
                if self.has(block.space, &address) {
                    continue;
                }
                if let Some(stored) = address.stored_in(&*source)? {
                    target.write_at(address.offset, &stored)?;
                    self.note(block.space, &address);
                    tally.wrote(stored.len() as u64);
                    pacer(stored.len() as u64)?;
                }
            }
        }
        Ok(())
    }

    /// Whether this was copied: many blocks have one dictionary.
    fn has(&self, space: u32, at: &BlockAddress) -> bool {
        self.noted.get(&space).is_some_and(|noted| noted.get(&at.offset) == Some(at))
    }

    /// The target has this, and nothing else in its place.
    fn note(&mut self, space: u32, at: &BlockAddress) {
        let end = |at: &BlockAddress| at.offset.saturating_add(u64::from(at.stored_bytes));
        let noted = self.noted.entry(space).or_default();
        while let Some((&offset, _)) =
            noted.range(..end(at)).next_back().filter(|(_, last)| end(last) > at.offset)
        {
            noted.remove(&offset);
        }
        noted.insert(at.offset, *at);
    }

    /// The target's extents are what was copied besides. What that leads to is not known.
    fn end(self) -> Created {
        for (space, noted) in &self.noted {
            let Some(extents) = self.copy.extents.get(space).or_else(|| self.created.get(space)) else {
                continue;
            };
            let mut extents = extents.lock();
            let mut changes = extents.changes();
            for at in noted.values() {
                changes.overwrite(at);
                changes.insert(at, Mark { round: 0, ..self.copy.mark }, true);
            }
            extents.apply(changes);
        }
        self.created
    }

    fn files_of(&mut self, space: u32) -> Result<&Option<Pair>> {
        if !self.files.contains_key(&space) {
            if self.files.len() >= OPEN_FILES {
                self.sync_files()?;
            }
            let path = self.copy.from.join(space_file_name(space));
            let files = match self.copy.source.open(&path, OpenMode::ReadOnly) {
                Err(_) if !self.copy.source.exists(&path)? => None,
                // Of a table that is being created, behind the end: its header is durable before the log has it.
                Ok(file) if file.len()? < Space::HEADER_BYTES => None,
                opened => Some((opened?, self.copy.target_file(space, &path)?)),
            };
            self.files.insert(space, files);
        }
        Ok(&self.files[&space])
    }

    /// Makes durable what was copied into the files that are open, and closes them.
    fn sync_files(&mut self) -> Result<()> {
        std::mem::take(&mut self.files).into_values().flatten().try_for_each(|(_, target)| target.sync())
    }
}
