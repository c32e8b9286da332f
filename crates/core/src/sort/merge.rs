//! Merging sorted runs: a binary heap of readers by their current keys.

use super::run::{MemoryRun, RunReader, SpilledRun};
use crate::Result;

/// Several sorted runs as one.
pub(super) struct Merge {
    /// A heap: no reader's key is less than that of the reader at half its place.
    readers: Vec<RunReader>,
    started: bool,
}

impl Merge {
    /// Merges `spilled` and `memory`, which is sorted.
    pub fn new(spilled: Vec<SpilledRun>, memory: MemoryRun) -> Result<Merge> {
        let all = spilled.into_iter().map(RunReader::spilled).chain([RunReader::memory(memory)]);
        let mut readers = Vec::new();
        for mut reader in all {
            if reader.advance()? {
                readers.push(reader);
            }
        }
        let mut merge = Merge { readers, started: false };
        for place in (0..merge.readers.len() / 2).rev() {
            merge.sift_down(place);
        }
        Ok(merge)
    }

    /// Goes to the next entry; `false` at the end.
    pub fn advance(&mut self) -> Result<bool> {
        if !std::mem::replace(&mut self.started, true) {
            return Ok(!self.readers.is_empty());
        }
        if self.readers.is_empty() {
            return Ok(false);
        }
        if !self.readers[0].advance()? {
            self.readers.swap_remove(0);
        }
        self.sift_down(0);
        Ok(!self.readers.is_empty())
    }

    /// The current entry; `advance` has returned `true`.
    pub fn entry(&self) -> (&[u8], &[u8]) {
        self.readers[0].entry()
    }

    fn sift_down(&mut self, mut place: usize) {
        loop {
            let mut least = place;
            for child in [2 * place + 1, 2 * place + 2] {
                if child < self.readers.len() && self.key(child) < self.key(least) {
                    least = child;
                }
            }
            if least == place {
                return;
            }
            self.readers.swap(place, least);
            place = least;
        }
    }

    fn key(&self, place: usize) -> &[u8] {
        self.readers[place].entry().0
    }
}
