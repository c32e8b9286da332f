//! Merging sorted runs: a binary heap of readers by their current keys.

use super::run::{head, shared_by_all, MemoryRun, RunReader, SpilledRun};
use crate::Result;
use std::cmp::Ordering;

/// Several sorted runs as one.
pub(super) struct Merge {
    /// A heap: no source's key is less than that of the source at half its place.
    sources: Vec<Source>,
    /// What all keys begin with, which their heads leave out.
    shared: Vec<u8>,
    started: bool,
}

/// A run and the head of its current key.
struct Source {
    head: u128,
    reader: RunReader,
}

impl Source {
    /// At the first entry; None if there is none.
    fn first(mut reader: RunReader, shared: usize) -> Result<Option<Source>> {
        Ok(reader
            .advance()?
            .then(|| Source { head: head(reader.entry().0.get(shared..).unwrap_or_default()), reader }))
    }

    /// Goes to the next entry; `false` at the end.
    fn advance(&mut self, shared: usize) -> Result<bool> {
        let more = self.reader.advance()?;
        if more {
            self.head = head(self.reader.entry().0.get(shared..).unwrap_or_default());
        }
        Ok(more)
    }

    fn is_before(&self, other: &Source) -> bool {
        match self.head.cmp(&other.head) {
            Ordering::Equal => self.reader.entry().0 < other.reader.entry().0,
            order => order.is_lt(),
        }
    }
}

impl Merge {
    /// Merges `spilled` and those in `memory`, which are sorted.
    pub fn new(spilled: Vec<SpilledRun>, memory: Vec<MemoryRun>) -> Result<Merge> {
        // Empty ones share nothing with anybody.
        let memory: Vec<MemoryRun> = memory.into_iter().filter(|run| !run.is_empty()).collect();
        let prefixes = spilled.iter().map(SpilledRun::shared).chain(memory.iter().map(MemoryRun::shared));
        let shared = shared_by_all(prefixes).to_vec();
        let memory = memory.into_iter().map(RunReader::memory);
        let all = spilled.into_iter().map(RunReader::spilled).chain(memory);
        let mut sources = Vec::new();
        for reader in all {
            sources.extend(Source::first(reader, shared.len())?);
        }
        let mut merge = Merge { sources, shared, started: false };
        for place in (0..merge.sources.len() / 2).rev() {
            merge.sift_down(place);
        }
        Ok(merge)
    }

    /// The beginning of all keys.
    pub fn shared(&self) -> &[u8] {
        &self.shared
    }

    /// Goes to the next entry; `false` at the end.
    pub fn advance(&mut self) -> Result<bool> {
        if !std::mem::replace(&mut self.started, true) {
            return Ok(!self.sources.is_empty());
        }
        if self.sources.is_empty() {
            return Ok(false);
        }
        if !self.sources[0].advance(self.shared.len())? {
            self.sources.swap_remove(0);
        }
        self.sift_down(0);
        debug_assert!(
            self.sources.iter().skip(1).take(2).all(|source| !source.is_before(&self.sources[0])),
            "the least is not on top"
        );
        Ok(!self.sources.is_empty())
    }

    /// The current entry; `advance` has returned `true`.
    pub fn entry(&self) -> (&[u8], &[u8]) {
        self.sources[0].reader.entry()
    }

    fn sift_down(&mut self, mut place: usize) {
        loop {
            let mut least = place;
            for child in [2 * place + 1, 2 * place + 2] {
                if child < self.sources.len() && self.sources[child].is_before(&self.sources[least]) {
                    least = child;
                }
            }
            if least == place {
                return;
            }
            self.sources.swap(place, least);
            place = least;
        }
    }
}
