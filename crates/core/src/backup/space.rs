//! Copies what an image has in one file.

use super::extents::{ExtentChanges, Extents, Mark};
use super::{Pacer, Tally};
use crate::file::File;
use crate::finding::Findings;
use crate::store::{BlockAddress, Space, TreeRoot};
use crate::sync::Mutex;
use crate::tree::block::blob::BlobAddress;
use crate::tree::{block::Block, check_image, check_image_shared, ImageVisitor, SharedVisitor};
use crate::types::TreeId;
use crate::Result;
use std::collections::HashSet;
use std::sync::Arc;

/// Several threads share a tree that has so many leaves for each: with less, starting them costs more than it saves.
const LEAVES_A_THREAD: u64 = 64;
/// The pacer hears of so many bytes at a time from each thread.
const PACED_BYTES: u64 = 256 << 10;

/// A file's copy in one round, or a part of it: what it changes is its own until it is done.
pub(super) struct SpaceCopy<'a> {
    space: &'a Arc<Space>,
    target: &'a dyn File,
    known: &'a Extents,
    mark: Mark,
    tally: &'a Tally,
    pacer: Pacer<'a>,
    changes: ExtentChanges,
    /// Extents that several leaves name, as they hold a value of each, which this round has copied.
    bundles: Arc<Mutex<HashSet<u64>>>,
    /// Written, and not told to the pacer.
    unpaced_bytes: u64,
    /// Of the page or leaf that was named last, if it was copied.
    stored: Option<Vec<u8>>,
}

/// Is shown the leaves of a tree.
type Leaves<'r> = dyn FnMut(&Block) -> Result<()> + 'r;

/// A copy that looks at all leaves besides.
struct WithRows<'a, 'b, 'r> {
    copy: &'b mut SpaceCopy<'a>,
    rows: &'r mut Leaves<'r>,
}

/// Whether so many threads have enough to do with a tree.
pub(super) fn is_for_several(root: &TreeRoot, threads: usize) -> bool {
    threads > 1 && root.leaves / LEAVES_A_THREAD >= threads as u64
}

impl<'a> SpaceCopy<'a> {
    pub fn new(
        space: &'a Arc<Space>,
        target: &'a dyn File,
        (known, mark): (&'a Extents, Mark),
        tally: &'a Tally,
        pacer: Pacer<'a>,
    ) -> SpaceCopy<'a> {
        SpaceCopy {
            space,
            target,
            known,
            mark,
            tally,
            pacer,
            changes: known.changes(),
            bundles: Arc::default(),
            unpaced_bytes: 0,
            stored: None,
        }
    }

    /// Copies what a tree has, by so many threads if it is large.
    pub fn tree(&mut self, tree: TreeId, root: &TreeRoot, threads: usize) -> Result<()> {
        let (space, mut findings) = (self.space, Findings::default());
        let walked = match is_for_several(root, threads) {
            true => check_image_shared(space, (tree, root), (threads, "teak-copy"), &mut findings, self),
            false => check_image(space, tree, root, &mut findings, self),
        };
        self.tally.findings.lock().append(findings);
        walked
    }

    /// Copies what a tree has, and shows all its leaves.
    pub fn tree_with<'r>(&mut self, tree: TreeId, root: &TreeRoot, rows: &'r mut Leaves<'r>) -> Result<()> {
        let (space, tally, mut findings) = (self.space, self.tally, Findings::default());
        let walked = check_image(space, tree, root, &mut findings, &mut WithRows { copy: self, rows });
        tally.findings.lock().append(findings);
        walked
    }

    /// An extent that no tree names.
    pub fn extent_apart(&mut self, at: &BlockAddress) -> Result<()> {
        self.take(at).map(drop)
    }

    /// What it has done.
    pub fn finish(mut self) -> Result<ExtentChanges> {
        self.tell_pacer()?;
        Ok(self.changes)
    }

    /// Copies an extent that leads nowhere, unless the target has it. Whether it was as it should be.
    fn take(&mut self, at: &BlockAddress) -> Result<bool> {
        if self.known.know(at, self.mark.round) {
            return Ok(true);
        }
        let copied = self.copy(at).map(drop);
        if copied.is_ok() {
            self.changes.insert(at, self.mark, false);
            return Ok(true);
        }
        self.tally.findings.lock().absorb(None, copied).map(|_| false)
    }

    /// The extent's stored bytes.
    fn copy(&mut self, at: &BlockAddress) -> Result<Vec<u8>> {
        let stored = self.space.stored(at)?;
        self.changes.overwrite(at);
        self.target.write_at(at.offset, &stored)?;
        self.unpaced_bytes += stored.len() as u64;
        if self.unpaced_bytes >= PACED_BYTES {
            self.tell_pacer()?;
        }
        Ok(stored)
    }

    fn tell_pacer(&mut self) -> Result<()> {
        let bytes = std::mem::take(&mut self.unpaced_bytes);
        self.tally.wrote(bytes);
        if bytes == 0 {
            return Ok(());
        }
        (self.pacer)(bytes)
    }
}

impl ImageVisitor for SpaceCopy<'_> {
    fn extent(&mut self, at: &BlockAddress) -> Result<()> {
        self.stored = None;
        // What it leads to is looked at all the same.
        if self.known.has(at) {
            return Ok(());
        }
        match self.copy(at) {
            Ok(stored) => self.stored = Some(stored),
            // It is read next, and found.
            Err(error) if error.is_damage_of(self.space.path()) => {}
            Err(error) => return Err(error),
        }
        Ok(())
    }

    fn take_stored(&mut self) -> Option<Vec<u8>> {
        self.stored.take()
    }

    /// Checksums say whether a leaf is as it was written; `teak backup verify` reads the rows.
    fn passes_over_rows(&self) -> bool {
        true
    }

    fn large_value(&mut self, at: &BlobAddress) -> Result<bool> {
        if at.member.is_none() {
            return self.take(&at.extent);
        }
        if self.bundles.lock().contains(&at.extent.offset) {
            return Ok(true);
        }
        // Two threads may come to one at a time, and write the same.
        let is_there = self.take(&at.extent)?;
        if is_there {
            self.bundles.lock().insert(at.extent.offset);
        }
        Ok(is_there)
    }

    fn knows(&mut self, at: &BlockAddress) -> bool {
        self.known.know(at, self.mark.round)
    }

    fn whole(&mut self, at: &BlockAddress, leads_on: bool) {
        if !self.known.confirm(at, self.mark.round, leads_on) {
            self.changes.insert(at, self.mark, leads_on);
        }
    }
}

impl SharedVisitor for SpaceCopy<'_> {
    fn part(&self) -> Self {
        let (changes, bundles) = (self.known.changes(), self.bundles.clone());
        SpaceCopy { changes, bundles, unpaced_bytes: 0, stored: None, ..*self }
    }

    fn end(&mut self) -> Result<()> {
        self.tell_pacer()
    }

    fn join(&mut self, part: Self) {
        self.changes.join(part.changes);
    }
}

impl ImageVisitor for WithRows<'_, '_, '_> {
    fn extent(&mut self, at: &BlockAddress) -> Result<()> {
        self.copy.extent(at)
    }

    fn take_stored(&mut self) -> Option<Vec<u8>> {
        self.copy.take_stored()
    }

    fn large_value(&mut self, at: &BlobAddress) -> Result<bool> {
        self.copy.large_value(at)
    }

    fn whole(&mut self, at: &BlockAddress, leads_on: bool) {
        self.copy.whole(at, leads_on);
    }

    fn rows(&mut self, block: &Block) -> Result<()> {
        (self.rows)(block)
    }
}
