//! Whether each byte of a table file is either in use or free, and the books in memory agree with themselves and with
//! the file.
//!
//! Who walks the trees gives their extents, sorted by offset; what is free is told by the free map of the image, or by
//! the books.

use super::free_map::{self, FreeMap};
use super::lifecycle::Books;
use super::space::HEADER_BYTES;
use super::{BlockAddress, Space};
use crate::finding::{Finding, Findings};
use crate::Result;
use std::path::PathBuf;
use std::sync::Arc;

/// What an image says is free in its file.
pub struct FreeSpace {
    path: PathBuf,
    map: FreeMap,
}

impl FreeSpace {
    /// Reads the map at `at` of a space; `None` is a finding. Without a map nothing past the header is in use.
    pub fn read(
        space: &Arc<Space>,
        at: Option<BlockAddress>,
        findings: &mut Findings,
    ) -> Result<Option<FreeSpace>> {
        let path = space.path().to_path_buf();
        let Some(at) = at else {
            let map = FreeMap { generation: 0, end: HEADER_BYTES, ranges: Vec::new() };
            return Ok(Some(FreeSpace { path, map }));
        };
        let Some(bytes) = findings.absorb(None, space.adopt(at).read())? else { return Ok(None) };
        match free_map::decode(space.id(), space.unit(), &bytes) {
            Ok(map) => Ok(Some(FreeSpace { path, map })),
            Err(detail) => {
                findings.add(Finding::new(&path, detail).at(at.offset));
                Ok(None)
            }
        }
    }

    /// Compares it with the extents (offset, bytes) that the same image names: `next` gives them by ascending offset.
    pub fn compare(
        &self,
        next: &mut dyn FnMut() -> Result<Option<(u64, u64)>>,
        findings: &mut Findings,
    ) -> Result<()> {
        let mut free = self.map.ranges.iter().copied().peekable();
        let mut at = HEADER_BYTES;
        loop {
            let used = next()?;
            let until = used.map_or(self.map.end, |(offset, _)| offset);
            // What lies before the next extent is free, all of it.
            while let Some((offset, bytes)) = free.next_if(|&(offset, _)| offset < until) {
                if offset > at {
                    self.lost(at, offset, findings);
                }
                if offset < at {
                    findings.add(self.fault(offset, "a range is in use and free"));
                }
                at = at.max(offset + bytes);
            }
            if until > at {
                self.lost(at, until, findings);
            }
            let Some((offset, bytes)) = used else { break };
            if offset < at {
                findings.add(self.fault(offset, "an extent overlaps another, or what is free"));
            }
            at = at.max(offset + bytes);
        }
        if at > self.map.end {
            findings
                .add(self.fault(at, format!("an extent ends behind {}, where the file ends", self.map.end)));
        }
        Ok(())
    }

    fn lost(&self, from: u64, to: u64, findings: &mut Findings) {
        findings.add(self.fault(from, format!("{} bytes are neither in use nor free", to - from)));
    }

    fn fault(&self, offset: u64, detail: impl Into<String>) -> Finding {
        Finding::new(&self.path, detail).at(offset)
    }
}

impl Space {
    /// Compares the books in memory with themselves, whatever goes on.
    pub fn check_books(&self, findings: &mut Findings) {
        self.with_books(|books| check_books(self, books, findings));
    }

    /// Whether the extent of a durable image is in use as the books have it.
    pub fn has_in_use(&self, at: &BlockAddress) -> bool {
        self.with_books(|books| books.is_in_use(at.offset, at.occupied_bytes(self.unit())))
    }
}

/// Free ranges and tracked extents lie side by side, in whole units, within the file; nobody tracks what nobody needs.
fn check_books(space: &Space, books: &Books, findings: &mut Findings) {
    let (path, unit) = (space.path(), space.unit().bytes());
    let mut ranges: Vec<(u64, u64, bool)> = books.free_ranges().map(|(o, b)| (o, b, true)).collect();
    ranges.extend(books.tracked_ranges().map(|(o, b)| (o, b, false)));
    ranges.sort_unstable();
    let mut before: Option<(u64, bool)> = None;
    for (offset, bytes, is_free) in ranges {
        let fault = |detail: &str| Finding::new(path, format!("books: {detail}")).at(offset);
        let is_whole = offset % unit == 0 && bytes % unit == 0 && bytes > 0;
        findings.expect(is_whole && offset >= HEADER_BYTES, || fault("a range that cannot be"));
        findings.expect(before.is_none_or(|(end, _)| end <= offset), || fault("ranges overlap"));
        findings.expect(before != Some((offset, true)) || !is_free, || fault("free ranges are not joined"));
        before = Some((offset + bytes, is_free));
    }
    if let Some((end, _)) = books.usage() {
        findings.expect(before.is_none_or(|(last, _)| last <= end), || {
            Finding::new(path, "books: a range ends behind the end").at(end)
        });
    }
    for offset in books.forgotten() {
        findings
            .add(Finding::new(path, "books: an extent that nobody holds or names is not free").at(offset));
    }
}
