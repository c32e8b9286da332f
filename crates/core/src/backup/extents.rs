//! Which extents of one file the target has.
//!
//! A backup goes over the images of several checkpoints, one round each, and takes of each what it has not yet: an
//! extent that both images name has the same bytes in both, as extents are never written in place. What an inner page
//! leads to need not be looked at if the page was in the image before, with all that it leads to: none of it has been
//! overwritten since, as the extents of one image lie apart.
//!
//! An incremental backup begins with what the backups below it have ([`super::list`]): each extent's origin says which
//! of them.
//!
//! During a round, the threads that copy a file read these and gather what they change apart ([`ExtentChanges`]), so
//! nobody waits for anybody. That is enough: extents of one image lie apart, so what the round writes changes nothing
//! of what it is going to ask for.

use std::sync::atomic::{AtomicU32, Ordering};

use super::list::ListedExtent;
use crate::store::BlockAddress;
use crate::Result;

/// Rounds are counted from here. What a backup below has was in an image two rounds ago, or, if it is certain that the
/// last one named it, one.
pub(super) const FIRST_ROUND: u32 = 2;

/// An extent that the target has.
#[derive(Debug)]
struct Entry {
    offset: u64,
    checksum: u64,
    stored_bytes: u32,
    seen: Seen,
    /// The backup whose files have it.
    origin: u16,
}

/// The last round whose image is known to name an extent, and whether the extent names others.
#[derive(Debug)]
struct Seen(AtomicU32);

/// What stands beside an extent that the target has.
#[derive(Debug, Clone, Copy)]
pub(super) struct Mark {
    /// The last round whose image is known to name it.
    pub round: u32,
    /// The backup whose files have it: 0 for a full one, else how many are below it.
    pub origin: u16,
}

/// The extents of one file in the target, by their offsets. None overlaps another.
#[derive(Debug, Default)]
pub(super) struct Extents {
    entries: Vec<Entry>,
}

/// What is to become of the extents of one file.
#[derive(Debug)]
pub(super) struct ExtentChanges {
    has_written: bool,
    /// Where something was written: offset and end. `None`: there was nothing before.
    written: Option<Vec<(u64, u64)>>,
    /// What the target has now, with all that it leads to.
    whole: Vec<Entry>,
}

impl Seen {
    fn new(round: u32, leads_on: bool) -> Seen {
        Seen(AtomicU32::new(round << 1 | u32::from(leads_on)))
    }

    // Relaxed, here and below: an image names an extent once, so one thread a round comes to it, and rounds are apart.
    // Threads that come to one bundle say the same of it.
    fn set(&self, round: u32, leads_on: bool) {
        self.0.store(round << 1 | u32::from(leads_on), Ordering::Relaxed);
    }

    fn round(&self) -> u32 {
        self.0.load(Ordering::Relaxed) >> 1
    }

    fn leads_on(&self) -> bool {
        self.0.load(Ordering::Relaxed) & 1 != 0
    }
}

impl Entry {
    fn new(at: &BlockAddress, mark: Mark, leads_on: bool) -> Entry {
        let BlockAddress { offset, checksum, stored_bytes, .. } = *at;
        Entry { offset, checksum, stored_bytes, seen: Seen::new(mark.round, leads_on), origin: mark.origin }
    }

    fn end(&self) -> u64 {
        self.offset.saturating_add(u64::from(self.stored_bytes))
    }
}

impl Extents {
    fn find(&self, at: &BlockAddress) -> Option<&Entry> {
        let place = self.entries.binary_search_by_key(&at.offset, |entry| entry.offset).ok()?;
        let entry = &self.entries[place];
        (entry.stored_bytes == at.stored_bytes && entry.checksum == at.checksum).then_some(entry)
    }

    /// Whether the target has the extent, which the image of `round` names, and all that it leads to.
    pub fn know(&self, at: &BlockAddress, round: u32) -> bool {
        let Some(Entry { seen, .. }) = self.find(at) else { return false };
        // What it leads to may have been overwritten while no image had it.
        if seen.leads_on() && seen.round() + 1 < round {
            return false;
        }
        seen.set(round, seen.leads_on());
        true
    }

    /// Whether the target has the extent itself; what it leads to may be missing.
    pub fn has(&self, at: &BlockAddress) -> bool {
        self.find(at).is_some()
    }

    /// What the extent leads to, if it leads on, is there as well, if the target has the extent.
    pub fn confirm(&self, at: &BlockAddress, round: u32, leads_on: bool) -> bool {
        self.find(at).inspect(|entry| entry.seen.set(round, leads_on)).is_some()
    }

    /// Does `work`, which reads these and says what it has changed. If it fails, nothing is known any more: something
    /// may have been written over. Whether something was written.
    pub fn change(&mut self, work: impl FnOnce(&Extents) -> Result<ExtentChanges>) -> Result<bool> {
        let known = std::mem::take(self);
        let changes = work(&known)?;
        *self = known;
        let has_written = changes.has_written;
        self.apply(changes);
        Ok(has_written)
    }

    /// Changes of these, none so far.
    pub fn changes(&self) -> ExtentChanges {
        let written = (!self.entries.is_empty()).then(Vec::new);
        ExtentChanges { has_written: false, written, whole: Vec::new() }
    }

    /// Takes in what was done. What was written over is forgotten.
    pub fn apply(&mut self, mut changes: ExtentChanges) {
        if let Some(written) = changes.written.as_mut().filter(|written| !written.is_empty()) {
            written.sort_unstable();
            self.entries.retain(|entry| !overlaps(written, entry));
        }
        if self.entries.is_empty() {
            self.entries = std::mem::take(&mut changes.whole);
        }
        self.entries.append(&mut changes.whole);
        if changes.has_written {
            self.entries.sort_unstable_by_key(|entry| entry.offset);
            // Two threads may have copied one bundle.
            self.entries.dedup_by_key(|entry| entry.offset);
        }
        debug_assert!(self.entries.is_sorted_by(|one, next| one.end() <= next.offset), "extents overlap");
    }

    /// What the backups below have, by offsets.
    pub fn of_list(listed: &[ListedExtent]) -> Extents {
        let entry = |extent: &ListedExtent| {
            let round = if extent.current { FIRST_ROUND - 1 } else { 0 };
            let ListedExtent { offset, checksum, stored_bytes, origin, leads_on, .. } = *extent;
            Entry { offset, checksum, stored_bytes, seen: Seen::new(round, leads_on), origin }
        };
        Extents { entries: listed.iter().map(entry).collect() }
    }

    /// For those to come; `round` was the last.
    pub fn to_list(&self, round: u32) -> Vec<ListedExtent> {
        let listed = |entry: &Entry| ListedExtent {
            offset: entry.offset,
            stored_bytes: entry.stored_bytes,
            checksum: entry.checksum,
            origin: entry.origin,
            leads_on: entry.seen.leads_on(),
            current: entry.seen.round() == round,
        };
        self.entries.iter().map(listed).collect()
    }
}

/// Whether something was written where the extent lies; `written` is in order, and none overlaps another.
fn overlaps(written: &[(u64, u64)], entry: &Entry) -> bool {
    let first = written.partition_point(|(_, end)| *end <= entry.offset);
    written.get(first).is_some_and(|(offset, _)| *offset < entry.end())
}

impl ExtentChanges {
    /// The bytes of the extent are going to be written: what the target had there is lost.
    pub fn overwrite(&mut self, at: &BlockAddress) {
        self.has_written = true;
        let end = at.offset.saturating_add(u64::from(at.stored_bytes));
        self.written.iter_mut().for_each(|written| written.push((at.offset, end)));
    }

    /// The target has the extent, which was written, and all that it leads to, if it leads on.
    pub fn insert(&mut self, at: &BlockAddress, mark: Mark, leads_on: bool) {
        self.whole.push(Entry::new(at, mark, leads_on));
    }

    /// What another thread has done elsewhere in the file.
    pub fn join(&mut self, mut others: ExtentChanges) {
        self.has_written |= others.has_written;
        if let (Some(written), Some(more)) = (&mut self.written, &mut others.written) {
            written.append(more);
        }
        self.whole.append(&mut others.whole);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::Compression;

    fn extent(offset: u64, stored_bytes: u32, checksum: u64) -> BlockAddress {
        let compression = Compression::None;
        let raw_bytes = stored_bytes;
        BlockAddress {
            offset,
            stored_bytes,
            raw_bytes,
            checksum,
            compression,
            in_parts: false,
            is_tight: false,
            dictionary: 0,
        }
    }

    fn mark(round: u32) -> Mark {
        Mark { round, origin: 0 }
    }

    /// What was written, and is whole.
    fn written(extents: &Extents, changed: &[(&BlockAddress, Mark, bool)]) -> ExtentChanges {
        let mut changes = extents.changes();
        for (at, mark, leads_on) in changed {
            changes.overwrite(at);
            changes.insert(at, *mark, *leads_on);
        }
        changes
    }

    #[test]
    fn what_is_written_over_is_not_known_any_more() {
        let mut extents = Extents::default();
        let (first, second) = (extent(4096, 1000, 1), extent(5120, 512, 2));
        extents.apply(written(&extents, &[(&second, mark(1), false), (&first, mark(1), false)]));
        assert!(extents.know(&first, 9) && extents.know(&second, 9), "by itself it stays what it is");
        assert!(!extents.know(&extent(4096, 1000, 7), 9) && !extents.know(&extent(4096, 999, 1), 9));
        let mut broken = extents.changes();
        broken.overwrite(&extent(5095, 10, 3));
        extents.apply(broken);
        assert!(!extents.know(&first, 9) && extents.know(&second, 9));
        extents.apply(written(&extents, &[(&first, mark(9), false)]));
        let mut both = extents.changes();
        both.overwrite(&extent(4608, 4096, 4));
        extents.apply(both);
        assert!(!extents.know(&first, 9) && !extents.know(&second, 9));
        assert!(extents.entries.is_empty());
    }

    #[test]
    fn what_leads_on_is_known_from_one_image_to_the_next() {
        let mut extents = Extents::default();
        let page = extent(4096, 1000, 1);
        extents.apply(written(&extents, &[(&page, mark(1), true)]));
        assert!(extents.know(&page, 2) && extents.know(&page, 3));
        assert!(
            !extents.know(&page, 5),
            "image 4 did not name it, and may have had something below it elsewhere"
        );
        assert!(extents.has(&page) && extents.confirm(&page, 5, true) && extents.know(&page, 6));
    }

    #[test]
    fn what_the_backup_below_has_is_known_if_its_last_image_named_it() {
        let mut below = Extents::default();
        let (page, old, leaf) = (extent(4096, 1000, 1), extent(8192, 1000, 2), extent(12288, 1000, 3));
        below.apply(written(
            &below,
            &[(&page, mark(4), true), (&old, mark(3), true), (&leaf, mark(3), false)],
        ));
        let extents = Extents::of_list(&below.to_list(4));
        assert!(extents.know(&page, FIRST_ROUND) && extents.know(&leaf, FIRST_ROUND));
        assert!(!extents.know(&old, FIRST_ROUND) && extents.has(&old));
        assert!(!extents.has(&extent(8192, 1000, 7)));
        assert_eq!(extents.to_list(FIRST_ROUND).iter().map(|listed| listed.origin).max(), Some(0));
    }
}
