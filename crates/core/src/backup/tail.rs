//! The end of a copy: the log since the image's checkpoint, and what it names.

use super::{BackupCopy, Pacer, Settled, Tally};
use crate::catalog::{space_file_name, space_of_file_name};
use crate::checkpoint::direct::{DirectBlock, Inspection};
use crate::file::{File, OpenMode};
use crate::log::{copy_segments, LogRecord, Lsn, Ops, Segments};
use crate::{Error, Result};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The engine's file, and the target's.
type Pair = (Arc<dyn File>, Arc<dyn File>);

/// The files of the target that get blocks.
struct Tail<'a> {
    copy: &'a BackupCopy,
    tally: &'a Tally,
    pacer: Pacer<'a>,
    /// `None`: the engine's is gone, and its table with it.
    files: BTreeMap<u32, Option<Pair>>,
}

/// Copies the log of the image in `settled` up to `end`, and makes everything durable.
pub(super) fn copy(
    copy: &BackupCopy,
    settled: &Settled,
    end: Lsn,
    tally: &Tally,
    pacer: Pacer<'_>,
) -> Result<()> {
    let (source, target) = (&*copy.source, &*copy.target);
    let (from_log, to_log) = copy.log_dirs();
    let range = settled.superblock.replay_from..end;
    target.create_dir(&to_log)?;
    copy_segments((source, &from_log), (target, &to_log), range.clone(), &mut |bytes| {
        tally.wrote(bytes);
        pacer(bytes)
    })?;
    target.sync_dir(&to_log)?;
    let mut tail = Tail { copy, tally, pacer, files: BTreeMap::new() };
    // Tables that were created since the checkpoint: the log has their names, and not their files.
    for space in source.list(&copy.from)?.iter().filter_map(|name| space_of_file_name(name)) {
        if !copy.extents.contains_key(&space) {
            tail.files_of(space)?;
        }
    }
    let inspection = Inspection::new(source, copy.from.clone(), &settled.contained, copy.threads);
    Segments::list(target, &to_log, range.start)?.read(range, &mut |lsn, record| {
        let Some(ops) = ops_of(&record).filter(|ops| ops.may_name_extents()) else { return Ok(()) };
        if !inspection.is_intact(lsn, &record)? {
            let detail = format!("the log names blocks at LSN {lsn} that are not in their files");
            return Err(Error::corrupt(&from_log, lsn, detail));
        }
        tail.blocks(&ops)
    })?;
    tail.sync()
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
            let (tally, pacer) = (self.tally, self.pacer);
            let Some((source, target)) = self.files_of(block.space)? else { continue };
            for address in [Some(block.address), block.dictionary].into_iter().flatten() {
                if let Some(stored) = address.stored_in(&**source)? {
                    target.write_at(address.offset, &stored)?;
                    tally.wrote(stored.len() as u64);
                    pacer(stored.len() as u64)?;
                }
            }
        }
        Ok(())
    }

    fn files_of(&mut self, space: u32) -> Result<&Option<Pair>> {
        if !self.files.contains_key(&space) {
            let path = self.copy.from.join(space_file_name(space));
            let files = match self.copy.source.open(&path, OpenMode::ReadOnly) {
                Err(_) if !self.copy.source.exists(&path)? => None,
                opened => Some((opened?, self.copy.target_file(space, &path)?)),
            };
            self.files.insert(space, files);
        }
        Ok(&self.files[&space])
    }

    fn sync(self) -> Result<()> {
        self.files.values().flatten().try_for_each(|(_, target)| target.sync())?;
        self.copy.target.sync_dir(&self.copy.to)
    }
}
