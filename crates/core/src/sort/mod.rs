//! Sorting more entries than memory holds: sorted runs go compressed to the spill file and are merged.
//!
//! ```text
//! push ──> run in memory ── full: sort, write ──> runs of level 0 ── FAN of them: merge ──> one run of level 1 ...
//! finish ──> merge of all runs that are left, the one in memory included
//! ```
//!
//! Each entry is thus written once per level: log_FAN(data / memory) times, and the files go when the sorter does, or
//! with the process.

mod merge;
mod run;
#[cfg(test)]
mod tests;

use crate::cache::Cache;
use crate::counts::Count;
use crate::store::SpillFile;
use crate::{Error, Result};
use merge::Merge;
use run::{MemoryRun, RunWriter, SpilledRun};
use std::sync::Arc;
use std::thread::JoinHandle;

/// Runs of one level that are merged at once, and the most that a level keeps.
const FAN: usize = 64;

/// A run of fewer bytes is not written for want of memory: there would be too many.
const LEAST_RUN_BYTES: usize = 1 << 20;

/// Takes entries in any order.
pub struct Sorter {
    spill: Arc<SpillFile>,
    /// Of one run.
    budget_bytes: usize,
    /// What its memory is charged to.
    cache: Option<Arc<Cache>>,
    run: MemoryRun,
    /// Runs in memory of sorters that were absorbed; they are sorted at the end.
    absorbed: Vec<MemoryRun>,
    levels: Vec<Vec<SpilledRun>>,
    entries: u64,
    /// Whether runs are sorted and written on threads of their own.
    threads: bool,
    /// The run that is being sorted and written.
    writing: Option<JoinHandle<Result<(SpilledRun, MemoryRun)>>>,
}

impl Sorter {
    /// A sorter that uses about `budget_bytes` of memory, and `spill` for what is more. With `threads` it takes entries
    /// while the ones before are being sorted.
    pub fn new(spill: Arc<SpillFile>, budget_bytes: usize, threads: bool) -> Sorter {
        // Two runs at a time: one is filled, one is written.
        let budget_bytes = if threads { budget_bytes / 2 } else { budget_bytes };
        let (run, levels) = (MemoryRun::default(), Vec::new());
        let (absorbed, writing, cache) = (Vec::new(), None, None);
        Sorter { spill, budget_bytes, cache, run, absorbed, levels, entries: 0, threads, writing }
    }

    /// Its memory is charged to `cache` from now on: at most a half of that, and where others need the rest a run is
    /// written sooner.
    pub fn charged_to(mut self, cache: &Arc<Cache>) -> Sorter {
        let most = cache.budget() / if self.threads { 4 } else { 2 };
        let most = usize::try_from(most).unwrap_or(usize::MAX).max(LEAST_RUN_BYTES);
        self.budget_bytes = self.budget_bytes.min(most);
        self.cache = Some(cache.clone());
        self
    }

    /// Entries so far.
    pub fn entries(&self) -> u64 {
        self.entries
    }

    /// Adds an entry. When the memory is used up a run is sorted and written.
    pub fn push(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        if !self.run.is_empty() && self.run.memory_with(key, value) > self.budget_bytes {
            self.spill_run()?;
        }
        self.run.push(key, value);
        self.entries += 1;
        self.mind_cache()
    }

    /// Charges what there is, and writes it if the cache cannot have more.
    fn mind_cache(&mut self) -> Result<()> {
        let Some(cache) = &self.cache else { return Ok(()) };
        if !self.run.charge(cache) {
            return Ok(());
        }
        cache.make_room_if_possible();
        if self.run.memory() >= LEAST_RUN_BYTES && !cache.has_room() {
            self.spill_run()?;
            // What that run had is for others now. If it stayed for the next run, a few sorters would hold all of the
            // cache, and no block that is read would be kept: each window of a scan would read its leaf again.
            self.run = MemoryRun::default();
        }
        Ok(())
    }

    fn spill_run(&mut self) -> Result<()> {
        let emptied = self.wait_for_run()?.unwrap_or_default();
        let run = std::mem::replace(&mut self.run, emptied);
        let spill = self.spill.clone();
        if self.threads {
            let thread = crate::threads::spawn("teak-sort".into(), move || write_run(run, &spill));
            self.writing = Some(thread.map_err(|_| Error::OutOfMemory("no thread for a sort"))?);
            return Ok(());
        }
        let (written, emptied) = write_run(run, &spill)?;
        self.run = emptied;
        self.add_run(0, written)
    }

    /// The memory of the run that was being written, if there was one.
    fn wait_for_run(&mut self) -> Result<Option<MemoryRun>> {
        let Some(thread) = self.writing.take() else { return Ok(None) };
        let outcome = thread.join().unwrap_or(Err(Error::OutOfMemory("a thread that sorts has died")));
        let (written, emptied) = outcome?;
        self.add_run(0, written)?;
        Ok(Some(emptied))
    }

    fn add_run(&mut self, level: usize, run: SpilledRun) -> Result<()> {
        if self.levels.len() <= level {
            self.levels.resize_with(level + 1, Vec::new);
        }
        debug_assert!(self.levels[level].len() < FAN, "a level that should have been merged");
        self.levels[level].push(run);
        if self.levels[level].len() < FAN {
            return Ok(());
        }
        let mut merge = Merge::new(std::mem::take(&mut self.levels[level]), Vec::new())?;
        let mut writer = RunWriter::new(&self.spill, merge.shared());
        while merge.advance()? {
            let (key, value) = merge.entry();
            writer.push(key, value)?;
        }
        self.add_run(level + 1, writer.finish()?)
    }

    /// Takes over what another sorter with the same spill file has.
    pub fn absorb(&mut self, mut other: Sorter) -> Result<()> {
        other.wait_for_run()?;
        for (level, runs) in other.levels.drain(..).enumerate() {
            runs.into_iter().try_for_each(|run| self.add_run(level, run))?;
        }
        self.absorbed.append(&mut other.absorbed);
        self.absorbed.push(std::mem::take(&mut other.run));
        self.entries += other.entries;
        Ok(())
    }

    /// All entries in ascending order of their keys; equal keys in any order.
    pub fn finish(mut self) -> Result<Sorted> {
        self.wait_for_run()?;
        let mut memory = std::mem::take(&mut self.absorbed);
        memory.push(std::mem::take(&mut self.run));
        if self.cache.as_ref().is_some_and(|cache| !cache.has_room()) {
            // Whoever takes the entries writes them somewhere, and would look for room at each of them in vain.
            for run in memory.drain(..).filter(|run| !run.is_empty()) {
                let (written, _) = write_run(run, &self.spill)?;
                self.add_run(0, written)?;
            }
        }
        memory.iter_mut().for_each(MemoryRun::sort);
        let runs = self.levels.drain(..).flatten().collect();
        Ok(Sorted { merge: Merge::new(runs, memory)? })
    }
}

impl Drop for Sorter {
    /// What a thread still writes is dropped here, not some time later.
    fn drop(&mut self) {
        if let Some(thread) = self.writing.take() {
            drop(thread.join());
        }
    }
}

/// Sorts and writes a run, and returns its memory.
fn write_run(mut run: MemoryRun, spill: &Arc<SpillFile>) -> Result<(SpilledRun, MemoryRun)> {
    Count::SortRunsSpilled.add(1);
    let mut writer = RunWriter::new(spill, run.shared());
    run.sort();
    for i in 0..run.len() {
        let (key, value) = run.entry(i);
        writer.push(key, value)?;
    }
    run.clear();
    Ok((writer.finish()?, run))
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
