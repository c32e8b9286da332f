//! Copies what an image has in one file.

use super::extents::{Extents, Mark};
use super::{Pacer, Tally};
use crate::file::File;
use crate::finding::Findings;
use crate::store::{BlockAddress, Space, TreeRoot};
use crate::sync::Mutex;
use crate::tree::{block::Block, check_image, ImageVisitor};
use crate::types::TreeId;
use crate::Result;
use std::sync::Arc;

/// A file's copy in one round.
pub(super) struct SpaceCopy<'a> {
    space: &'a Arc<Space>,
    target: &'a dyn File,
    extents: &'a Mutex<Extents>,
    mark: Mark,
    tally: &'a Tally,
    pacer: Pacer<'a>,
    written_bytes: u64,
}

/// Is shown the leaves of a tree.
type Leaves<'r> = dyn FnMut(&Block) -> Result<()> + 'r;

/// Goes over a tree: copies what is not there yet, or, with `rows`, looks at all leaves besides.
struct Walk<'a, 'b, 'r> {
    copy: &'b mut SpaceCopy<'a>,
    rows: Option<&'r mut Leaves<'r>>,
}

impl<'a> SpaceCopy<'a> {
    pub fn new(
        space: &'a Arc<Space>,
        target: &'a dyn File,
        (extents, mark): (&'a Mutex<Extents>, Mark),
        tally: &'a Tally,
        pacer: Pacer<'a>,
    ) -> SpaceCopy<'a> {
        SpaceCopy { space, target, extents, mark, tally, pacer, written_bytes: 0 }
    }

    /// Copies what a tree has.
    pub fn tree(&mut self, tree: TreeId, root: &TreeRoot) -> Result<()> {
        self.walk(tree, root, None)
    }

    /// The same, and shows all its leaves.
    pub fn tree_with(&mut self, tree: TreeId, root: &TreeRoot, rows: &mut Leaves<'_>) -> Result<()> {
        self.walk(tree, root, Some(rows))
    }

    fn walk<'r>(&mut self, tree: TreeId, root: &TreeRoot, rows: Option<&'r mut Leaves<'r>>) -> Result<()> {
        let (space, tally) = (self.space, self.tally);
        let mut findings = Findings::default();
        let walked = check_image(space, tree, root, &mut findings, &mut Walk { copy: self, rows });
        tally.findings.lock().append(findings);
        walked
    }

    /// An extent that no tree names.
    pub fn extent_apart(&mut self, at: &BlockAddress) -> Result<()> {
        self.take(at).map(drop)
    }

    /// Whether the target's file has to be synced.
    pub fn has_written(&self) -> bool {
        self.written_bytes > 0
    }

    /// Copies an extent that leads nowhere, unless the target has it. Whether it was as it should be.
    fn take(&mut self, at: &BlockAddress) -> Result<bool> {
        if self.extents.lock().know(at, self.mark.round) {
            return Ok(true);
        }
        let copied = self.copy(at);
        let copied = self.tally.findings.lock().absorb(None, copied)?;
        if copied.is_some() {
            self.extents.lock().insert(at, self.mark, false);
        }
        Ok(copied.is_some())
    }

    fn copy(&mut self, at: &BlockAddress) -> Result<()> {
        let stored = self.space.stored(at)?;
        self.extents.lock().overwrite(at);
        self.target.write_at(at.offset, &stored)?;
        self.written_bytes += stored.len() as u64;
        self.tally.wrote(stored.len() as u64);
        (self.pacer)(stored.len() as u64)
    }
}

impl ImageVisitor for Walk<'_, '_, '_> {
    fn extent(&mut self, at: &BlockAddress) -> Result<()> {
        // What it leads to is looked at all the same.
        if self.copy.extents.lock().origin(at).is_some() {
            return Ok(());
        }
        match self.copy.copy(at) {
            // It is read next, and found.
            Err(error) if error.is_damage_of(self.copy.space.path()) => Ok(()),
            result => result,
        }
    }

    fn large_value(&mut self, at: &BlockAddress) -> Result<bool> {
        self.copy.take(at)
    }

    fn knows(&mut self, at: &BlockAddress) -> bool {
        self.rows.is_none() && self.copy.extents.lock().know(at, self.copy.mark.round)
    }

    fn whole(&mut self, at: &BlockAddress, leads_on: bool) {
        let mut extents = self.copy.extents.lock();
        let origin = extents.origin(at).unwrap_or(self.copy.mark.origin);
        extents.insert(at, Mark { origin, ..self.copy.mark }, leads_on);
    }

    fn rows(&mut self, block: &Block) -> Result<()> {
        self.rows.as_mut().map_or(Ok(()), |rows| rows(block))
    }
}
