//! Sorting more entries than memory holds: sorted runs go compressed to the spill file and are merged.
//!
//! ```text
//! push ──> run in memory ── full: sort, write ──> runs of level 0 ── FAN of them: merge ──> one run of level 1 ...
//! finish ──> merge of all runs that are left, the one in memory included
//! ```
//!
//! Each entry is thus written once per level: log_FAN(data / memory) times, and the files go when the sorter does, or with the process.

mod merge;
mod run;
#[cfg(test)]
mod tests;

use crate::store::SpillFile;
use crate::Result;
use merge::Merge;
use run::{MemoryRun, RunWriter, SpilledRun};
use std::sync::Arc;

/// Runs of one level that are merged at once, and the most that a level keeps.
const FAN: usize = 64;

/// Takes entries in any order.
pub struct Sorter {
    spill: Arc<SpillFile>,
    budget_bytes: usize,
    run: MemoryRun,
    levels: Vec<Vec<SpilledRun>>,
    entries: u64,
}

impl Sorter {
    /// A sorter that uses about `budget_bytes` of memory, and `spill` for what is more.
    pub fn new(spill: Arc<SpillFile>, budget_bytes: usize) -> Sorter {
        Sorter { spill, budget_bytes, run: MemoryRun::default(), levels: Vec::new(), entries: 0 }
    }

    /// Entries so far.
    pub fn entries(&self) -> u64 {
        self.entries
    }

    /// Adds an entry. When the memory is used up this sorts and writes a run.
    pub fn push(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        if !self.run.is_empty() && self.run.memory_with(key, value) > self.budget_bytes {
            self.spill_run()?;
        }
        self.run.push(key, value);
        self.entries += 1;
        Ok(())
    }

    fn spill_run(&mut self) -> Result<()> {
        let mut writer = RunWriter::new(&self.spill);
        self.run.sort();
        for i in 0..self.run.len() {
            let (key, value) = self.run.entry(i);
            writer.push(key, value)?;
        }
        self.run.clear();
        self.add_run(0, writer.finish()?)
    }

    fn add_run(&mut self, level: usize, run: SpilledRun) -> Result<()> {
        if self.levels.len() <= level {
            self.levels.resize_with(level + 1, Vec::new);
        }
        self.levels[level].push(run);
        if self.levels[level].len() < FAN {
            return Ok(());
        }
        let mut merge = Merge::new(std::mem::take(&mut self.levels[level]), MemoryRun::default())?;
        let mut writer = RunWriter::new(&self.spill);
        while merge.advance()? {
            let (key, value) = merge.entry();
            writer.push(key, value)?;
        }
        self.add_run(level + 1, writer.finish()?)
    }

    /// All entries in ascending order of their keys; equal keys in any order.
    pub fn finish(mut self) -> Result<Sorted> {
        self.run.sort();
        let runs = self.levels.drain(..).flatten().collect();
        Ok(Sorted { merge: Merge::new(runs, std::mem::take(&mut self.run))? })
    }
}

/// What a [`Sorter`] made of its entries.
pub struct Sorted {
    merge: Merge,
}

impl Sorted {
    /// Goes to the next entry; `false` at the end.
    pub fn advance(&mut self) -> Result<bool> {
        self.merge.advance()
    }

    /// Key and value of the current entry; [`Sorted::advance`] has returned `true`.
    pub fn entry(&self) -> (&[u8], &[u8]) {
        self.merge.entry()
    }
}
