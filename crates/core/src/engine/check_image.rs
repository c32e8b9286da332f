//! Whether what is in the files is as it should be: the newest superblock, the directory, the catalog, and all that
//! they lead to.
//!
//! ```text
//! superblock ──> directory ──> catalog ──> each table's trees ──> extents ─┐
//!                    └──────> free map of each file ───────────────────────┴─> each byte is either in use or free
//! ```
//!
//! Everything is read from the files, with books of their own, so that a mistake in memory does not hide one on disk.
//! The extents of a file are sorted in the spill file if there are many; what grows with the number of tables is what
//! the directory says of each.

use super::shared::Shared;
use crate::catalog::image::{Catalog, DirectoryRows};
use crate::catalog::{
    space_file_name, superblock_path, TableRecord, CATALOG_TREE, DIRECTORY_TREE, SYSTEM_SPACE,
};
use crate::finding::{Finding, Findings};
use crate::sort::Sorter;
use crate::store::{BlockAddress, FreeSpace, NamedExtent, OpenFiles, Space, Superblock, Unit};
use crate::tree::{block::blob::BlobAddress, block::Block, check_image, each_row, ImageVisitor};
use crate::Result;
use std::collections::HashSet;
use std::sync::Arc;

/// Memory for sorting the extents of a file.
const SORT_BYTES: usize = 4 << 20;
/// Descriptors of its own.
const OPEN_FILES: usize = 4;

/// Gathers the extents of one file, and rows.
struct Collector<'a> {
    /// Of the file.
    unit: Unit,
    extents: Sorter,
    /// The same file as the engine has it open.
    live: Option<&'a Arc<Space>>,
    given_away: u64,
    rows: &'a mut dyn FnMut(&Block) -> Result<()>,
}

impl ImageVisitor for Collector<'_> {
    fn extent(&mut self, at: &BlockAddress) -> Result<()> {
        self.note(at, NamedExtent::whole(at, self.unit))
    }

    fn large_value(&mut self, at: &BlobAddress) -> Result<bool> {
        self.note(&at.extent, at.named(self.unit)).map(|()| true)
    }

    fn rows(&mut self, block: &Block) -> Result<()> {
        (self.rows)(block)
    }
}

impl Collector<'_> {
    fn note(&mut self, at: &BlockAddress, named: NamedExtent) -> Result<()> {
        self.given_away += u64::from(self.live.is_some_and(|space| !space.has_in_use(at)));
        let (key, value) = named.to_entry();
        self.extents.push(&key, &value)
    }

    /// Compares what was gathered with the free map.
    fn compare(self, space: &Arc<Space>, map: Option<BlockAddress>, findings: &mut Findings) -> Result<()> {
        findings.expect(self.given_away == 0, || {
            let detail = format!("{} extents of the durable image may be overwritten", self.given_away);
            Finding::new(space.path(), detail)
        });
        let Some(free) = FreeSpace::read(space, map, findings)? else { return Ok(()) };
        let mut sorted = self.extents.finish()?;
        let mut next = || -> Result<Option<NamedExtent>> {
            if !sorted.advance()? {
                return Ok(None);
            }
            let (key, value) = sorted.entry();
            Ok(NamedExtent::of_entry(key, value))
        };
        free.compare(&mut next, findings)
    }
}

/// The check of one engine's files.
pub(super) struct ImageCheck<'a> {
    shared: &'a Shared,
    files: Arc<OpenFiles>,
    findings: &'a mut Findings,
    watch: &'a mut dyn FnMut(u64) -> Result<()>,
}

impl<'a> ImageCheck<'a> {
    pub(super) fn new(
        shared: &'a Shared,
        findings: &'a mut Findings,
        watch: &'a mut dyn FnMut(u64) -> Result<()>,
    ) -> ImageCheck<'a> {
        let files = OpenFiles::new(shared.fs.clone(), OPEN_FILES);
        ImageCheck { shared, files, findings, watch }
    }

    /// While no checkpoint becomes durable.
    pub(super) fn run(mut self) -> Result<()> {
        let path = superblock_path(&self.shared.dir);
        let newest = Superblock::read_newest(&*self.shared.fs, &path);
        let Some(Some(superblock)) = self.findings.absorb(None, newest)? else { return Ok(()) };
        let Some(root) = superblock.directory else { return Ok(()) };
        let map = superblock.system_map;
        let path = self.shared.space_path(SYSTEM_SPACE);
        let opened = Space::open(&self.files, &path, SYSTEM_SPACE, map);
        let Some(space) = self.findings.absorb(None, opened)? else { return Ok(()) };
        let (mut rows, mut names) = (DirectoryRows::default(), Catalog::default());
        let shared = self.shared;
        let spill = &shared.context.spill;
        let extents = Sorter::new(spill.clone(), SORT_BYTES, false);
        let mut odd = Vec::new();
        let mut note = |block: &Block| each_row(block, &mut |key, value| rows.note(key, value, &mut odd));
        let (unit, live) = (space.unit(), Some(&shared.system.space));
        let mut collector = Collector { unit, extents, live, given_away: 0, rows: &mut note };
        check_image(&space, DIRECTORY_TREE, &root, self.findings, &mut collector)?;
        let Collector { extents, given_away, .. } = collector;
        let mut odd_names = Vec::new();
        let mut note =
            |block: &Block| each_row(block, &mut |key, value| names.note(key, value, &mut odd_names));
        let mut collector = Collector { unit, extents, live, given_away, rows: &mut note };
        if let Some(root) = rows.roots.remove(&CATALOG_TREE) {
            check_image(&space, CATALOG_TREE, &root, self.findings, &mut collector)?;
        }
        map.iter().try_for_each(|map| collector.extent(map))?;
        collector.compare(&space, map, self.findings)?;
        for detail in odd.into_iter().chain(odd_names) {
            self.findings.add(Finding::new(space.path(), detail));
        }
        self.tables(&superblock, rows, names)
    }

    fn tables(&mut self, superblock: &Superblock, mut rows: DirectoryRows, mut names: Catalog) -> Result<()> {
        let path = self.shared.space_path(SYSTEM_SPACE);
        let mut spaces = HashSet::new();
        for (done, (name, record)) in std::mem::take(&mut names.records).into_iter().enumerate() {
            (self.watch)(done as u64)?;
            let fault = |detail: String| Finding::new(&path, format!("table '{name}': {detail}"));
            self.findings.expect(spaces.insert(record.space), || fault("its file is another's".into()));
            let is_old = record.space < superblock.next_space
                && record.trees.iter().all(|(tree, _)| *tree < superblock.next_tree);
            self.findings.expect(is_old, || fault("it has numbers that are still to be given out".into()));
            for (tree, _) in &record.trees {
                let table = names.tables.remove(tree);
                self.findings.expect(table.as_deref() == Some(name.as_bytes()), || {
                    fault(format!("tree {tree} is not entered as its"))
                });
            }
            for target in record.targets() {
                let entered = names.referrers.remove(&(target.to_string(), name.clone()));
                self.findings
                    .expect(entered, || fault(format!("its link to table '{target}' is not entered there")));
            }
            for link in record.link_names() {
                let entered = names.links.remove(link).is_some_and(|table| table == name.as_bytes());
                self.findings.expect(entered, || fault(format!("its link '{link}' is not entered as its")));
            }
            self.table(&name, &record, &mut rows)?;
        }
        let mut left: Vec<String> = Vec::new();
        left.extend(names.tables.keys().map(|tree| format!("the catalog has a tree {tree} of no table")));
        left.extend(
            names
                .referrers
                .iter()
                .map(|(to, from)| format!("the catalog has a link of table '{from}' to '{to}' that is none")),
        );
        left.extend(names.links.keys().map(|link| format!("the catalog has a link '{link}' of no table")));
        left.extend(rows.roots.keys().map(|tree| format!("the directory has a tree {tree} of no table")));
        left.extend(
            rows.dictionaries
                .keys()
                .map(|t| format!("the directory has a dictionary of tree {t}, of no table")),
        );
        left.extend(
            rows.counters.iter().map(|t| format!("the directory has a counter of tree {t}, of no table")),
        );
        left.extend(
            rows.digests.iter().map(|t| format!("the directory has a digest of tree {t}, of no table")),
        );
        left.extend(
            rows.maps.keys().map(|space| format!("the directory has a map of file {space}, of no table")),
        );
        left.into_iter().for_each(|detail| self.findings.add(Finding::new(&path, detail)));
        Ok(())
    }

    /// One table's file. What belongs to it leaves `rows`.
    fn table(&mut self, name: &str, record: &TableRecord, rows: &mut DirectoryRows) -> Result<()> {
        let map = rows.maps.remove(&record.space);
        if let Some((first, _)) = record.trees.first() {
            rows.counters.remove(first);
            rows.digests.remove(first);
        }
        let trees: Vec<_> = record
            .trees
            .iter()
            .map(|(tree, _)| (*tree, rows.roots.remove(tree), rows.dictionaries.remove(tree)))
            .collect();
        let path = self.shared.dir.join(space_file_name(record.space));
        if !self.shared.fs.exists(&path)? {
            // Dropped since the checkpoint; a table that is there without its file is found when it is opened.
            return Ok(());
        }
        let opened = Space::open(&self.files, &path, record.space, map);
        let Some(space) = self.findings.absorb(None, opened)? else { return Ok(()) };
        let live = self.shared.open_space(name, record.space);
        let extents = self.shared.sorter(SORT_BYTES, false);
        let (unit, live) = (space.unit(), live.as_ref());
        let mut collector = Collector { unit, extents, live, given_away: 0, rows: &mut |_| Ok(()) };
        for (_, _, dictionary) in &trees {
            if let Some((number, address)) = dictionary {
                space.know_dictionary(*number, *address, None);
                collector.extent(address)?;
            }
        }
        for (tree, root, _) in &trees {
            if let Some(root) = root {
                check_image(&space, *tree, root, self.findings, &mut collector)?;
            }
        }
        map.iter().try_for_each(|map| collector.extent(map))?;
        collector.compare(&space, map, self.findings)
    }
}
