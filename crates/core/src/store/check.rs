//! Whether each byte of a table file is either in use or free, and the books in memory agree with themselves and with
//! the file.
//!
//! Who walks the trees gives their extents, sorted by offset; what is free is told by the free map of the image, or by
//! the books.

use super::bundles::{BundleMap, BundleUse, ThinnedBundle};
use super::free_map::{self, FreeMap};
use super::lifecycle::Books;
use super::space::HEADER_BYTES;
use super::{fixed, BlockAddress, Space, Unit};
use crate::finding::{Finding, Findings};
use crate::Result;
use std::path::PathBuf;
use std::sync::Arc;

/// An extent that an image names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NamedExtent {
    /// In the file.
    pub offset: u64,
    /// That it occupies.
    pub bytes: u64,
    bundle: Option<NamedBundle>,
}

/// Values of a bundle that are named.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct NamedBundle {
    address: BlockAddress,
    of: u8,
    named: u64,
    value_bytes: u64,
}

impl NamedExtent {
    /// One with a single content, in a file of that unit.
    pub fn whole(at: &BlockAddress, unit: Unit) -> NamedExtent {
        NamedExtent { offset: at.offset, bytes: at.occupied_bytes(unit), bundle: None }
    }

    /// One of which this names value `number` of `of`, which has so many bytes.
    pub fn part(at: &BlockAddress, unit: Unit, (number, of): (u8, u8), value_bytes: u64) -> NamedExtent {
        let bundle = NamedBundle { address: *at, of, named: 1 << (number % 64), value_bytes };
        NamedExtent { bundle: Some(bundle), ..NamedExtent::whole(at, unit) }
    }

    /// Key and value with which it is sorted.
    pub fn to_entry(self) -> ([u8; 8], Vec<u8>) {
        let mut value = self.bytes.to_le_bytes().to_vec();
        if let Some(NamedBundle { address, of, named, value_bytes }) = self.bundle {
            value.extend_from_slice(&address.encode());
            value.push(of);
            value.extend_from_slice(&named.to_le_bytes());
            value.extend_from_slice(&value_bytes.to_le_bytes());
        }
        (self.offset.to_be_bytes(), value)
    }

    /// Reads what [`NamedExtent::to_entry`] gave.
    pub fn of_entry(key: &[u8], value: &[u8]) -> Option<NamedExtent> {
        let number = |at| fixed(value, at).map(u64::from_le_bytes);
        let (offset, bytes) = (fixed(key, 0).map(u64::from_be_bytes)?, number(0)?);
        let mut bundle = None;
        if value.len() > 8 {
            let address = BlockAddress::decode(&value[8..])?;
            let at = 8 + BlockAddress::ENCODED_BYTES;
            bundle = Some(NamedBundle {
                address,
                of: value[at],
                named: number(at + 1)?,
                value_bytes: number(at + 9)?,
            });
        }
        Some(NamedExtent { offset, bytes, bundle })
    }

    /// The two as one, if they are values of one bundle.
    fn merged(&self, other: &NamedExtent) -> Option<NamedExtent> {
        let (one, more) = (self.bundle?, other.bundle?);
        let apart = one.address == more.address && one.of == more.of && one.named & more.named == 0;
        let bundle = NamedBundle {
            named: one.named | more.named,
            value_bytes: one.value_bytes.saturating_add(more.value_bytes),
            ..one
        };
        apart.then_some(NamedExtent { bundle: Some(bundle), ..*self })
    }

    /// If it is a bundle, enters it into what a map has of all of them.
    pub(super) fn count_bundle(&self, bundles: &mut BundleMap) {
        let Some(NamedBundle { address, of, named, value_bytes }) = self.bundle else { return };
        let BundleUse { bundles: count, values, value_bytes: bytes, stored_bytes, most_values } =
            &mut bundles.usage;
        *count += 1;
        *values += u64::from(named.count_ones());
        *bytes = bytes.saturating_add(value_bytes);
        *stored_bytes = stored_bytes.saturating_add(self.bytes);
        *most_values = (*most_values).max(u64::from(of));
        let dead = ThinnedBundle::all(of) & !named;
        if dead != 0 {
            bundles.thinned.push(ThinnedBundle { address, of, dead });
        }
    }
}

/// Extents by ascending offset, of which bundles come once for each of their values, each once.
pub(super) struct Merged<'a> {
    next: &'a mut dyn FnMut() -> Result<Option<NamedExtent>>,
    ahead: Option<NamedExtent>,
}

impl Merged<'_> {
    pub fn new(next: &mut dyn FnMut() -> Result<Option<NamedExtent>>) -> Merged<'_> {
        Merged { next, ahead: None }
    }

    pub fn next(&mut self) -> Result<Option<NamedExtent>> {
        let Some(mut extent) = self.ahead.take().map_or_else(|| (self.next)(), |extent| Ok(Some(extent)))?
        else {
            return Ok(None);
        };
        loop {
            self.ahead = (self.next)()?;
            match self.ahead.and_then(|ahead| extent.merged(&ahead)) {
                Some(merged) => extent = merged,
                None => return Ok(Some(extent)),
            }
        }
    }
}

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
            let bundles = BundleMap::default();
            let map =
                FreeMap { generation: 0, end: HEADER_BYTES, ranges: Vec::new(), bundles, areas: Vec::new() };
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

    /// Compares it with the extents that the same image names: `next` gives them by ascending offset.
    pub fn compare(
        &self,
        next: &mut dyn FnMut() -> Result<Option<NamedExtent>>,
        findings: &mut Findings,
    ) -> Result<()> {
        let mut free = self.map.ranges.iter().copied().peekable();
        let mut at = HEADER_BYTES;
        let (mut extents, mut bundles) = (Merged::new(next), BundleMap::default());
        loop {
            let used = extents.next()?;
            let until = used.map_or(self.map.end, |extent| extent.offset);
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
            let Some(extent) = used else { break };
            extent.count_bundle(&mut bundles);
            let NamedExtent { offset, bytes, .. } = extent;
            if offset < at {
                findings.add(self.fault(offset, "an extent overlaps another, or what is free"));
            }
            at = at.max(offset + bytes);
        }
        if at > self.map.end {
            findings
                .add(self.fault(at, format!("an extent ends behind {}, where the file ends", self.map.end)));
        }
        self.compare_bundles(bundles, findings);
        Ok(())
    }

    /// What the map says of bundles is what the image has.
    fn compare_bundles(&self, mut found: BundleMap, findings: &mut Findings) {
        let told = &self.map.bundles;
        // There may have been a larger one.
        found.usage.most_values = found.usage.most_values.max(told.usage.most_values);
        findings.expect(found.usage == told.usage, || {
            self.fault(HEADER_BYTES, format!("bundles: {:?}, the map has {:?}", found.usage, told.usage))
        });
        let (mut found, mut told) = (found.thinned.iter().peekable(), told.thinned.iter().peekable());
        loop {
            let first = match (found.peek(), told.peek()) {
                (Some(a), Some(b)) => a.address.offset.min(b.address.offset),
                (Some(a), None) | (None, Some(a)) => a.address.offset,
                (None, None) => break,
            };
            let is_first = |bundle: &&ThinnedBundle| bundle.address.offset == first;
            let (found, told) = (found.next_if(is_first), told.next_if(is_first));
            findings.expect(found == told, || {
                let dead = |bundle: Option<&ThinnedBundle>| bundle.map_or(0, |bundle| bundle.dead);
                let detail = format!(
                    "values {:#x} of a bundle are not named, the map has {:#x}",
                    dead(found),
                    dead(told)
                );
                self.fault(first, detail)
            });
        }
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
    let mut ranges: Vec<(u64, u64, Option<bool>)> =
        books.free_ranges().map(|(offset, bytes, in_area)| (offset, bytes, Some(in_area))).collect();
    ranges.extend(books.tracked_ranges().map(|(o, b)| (o, b, None)));
    ranges.sort_unstable();
    let mut before: Option<(u64, Option<bool>)> = None;
    for (offset, bytes, free) in ranges {
        let fault = |detail: &str| Finding::new(path, format!("books: {detail}")).at(offset);
        let is_whole = offset % unit == 0 && bytes % unit == 0 && bytes > 0;
        findings.expect(is_whole && offset >= HEADER_BYTES, || fault("a range that cannot be"));
        findings.expect(before.is_none_or(|(end, _)| end <= offset), || fault("ranges overlap"));
        let is_joined = free.is_none() || before != Some((offset, free));
        findings.expect(is_joined, || fault("free ranges are not joined"));
        before = Some((offset + bytes, free));
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
