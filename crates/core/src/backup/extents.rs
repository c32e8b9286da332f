//! Which extents of one file the target has.
//!
//! A backup goes over the images of several checkpoints, one round each, and takes of each what it has not yet: an
//! extent that both images name has the same bytes in both, as extents are never written in place. What an inner page
//! leads to need not be looked at if the page was in the image before, with all that it leads to: none of it has been
//! overwritten since, as the extents of one image lie apart.
//!
//! An incremental backup begins with what the backups below it have ([`super::list`]): each extent's origin says which
//! of them.

use std::collections::BTreeMap;

use super::list::ListedExtent;
use crate::store::BlockAddress;

/// Rounds are counted from here. What a backup below has was in an image two rounds ago, or, if it is certain that the
/// last one named it, one.
pub(super) const FIRST_ROUND: u32 = 2;

/// An extent that the target has.
#[derive(Debug, Clone, Copy)]
struct Entry {
    stored_bytes: u32,
    checksum: u64,
    /// When, and by which backup.
    mark: Mark,
    /// It names other extents.
    leads_on: bool,
}

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
    entries: BTreeMap<u64, Entry>,
}

impl Extents {
    /// Whether the target has the extent, which the image of `round` names, and all that it leads to.
    pub fn know(&mut self, at: &BlockAddress, round: u32) -> bool {
        let Some(entry) = self.entries.get_mut(&at.offset) else { return false };
        let is_same = entry.stored_bytes == at.stored_bytes && entry.checksum == at.checksum;
        // What it leads to may have been overwritten while no image had it.
        if !is_same || (entry.leads_on && entry.mark.round + 1 < round) {
            return false;
        }
        entry.mark.round = round;
        true
    }

    /// Where the extent itself is, if the target has it; what it leads to may be missing.
    pub fn origin(&self, at: &BlockAddress) -> Option<u16> {
        let entry = self.entries.get(&at.offset)?;
        let is_same = entry.stored_bytes == at.stored_bytes && entry.checksum == at.checksum;
        is_same.then_some(entry.mark.origin)
    }

    /// The bytes of the extent are going to be written: what the target had there is lost.
    pub fn overwrite(&mut self, at: &BlockAddress) {
        let end = at.offset + u64::from(at.stored_bytes);
        // Those that begin before the end; the last of them first, until one ends before the extent begins.
        while let Some((&offset, entry)) = self.entries.range(..end).next_back() {
            if offset + u64::from(entry.stored_bytes) <= at.offset {
                break;
            }
            self.entries.remove(&offset);
        }
    }

    /// The target has the extent and, if it leads on, all that it leads to.
    pub fn insert(&mut self, at: &BlockAddress, mark: Mark, leads_on: bool) {
        let entry = Entry { stored_bytes: at.stored_bytes, checksum: at.checksum, mark, leads_on };
        self.entries.insert(at.offset, entry);
    }

    /// What the backups below have, by offsets.
    pub fn of_list(listed: &[ListedExtent]) -> Extents {
        let entry = |extent: &ListedExtent| {
            let round = if extent.current { FIRST_ROUND - 1 } else { 0 };
            let ListedExtent { stored_bytes, checksum, origin, leads_on, .. } = *extent;
            (extent.offset, Entry { stored_bytes, checksum, mark: Mark { round, origin }, leads_on })
        };
        Extents { entries: listed.iter().map(entry).collect() }
    }

    /// For those to come; `round` was the last.
    pub fn to_list(&self, round: u32) -> Vec<ListedExtent> {
        let listed = |(&offset, entry): (&u64, &Entry)| ListedExtent {
            offset,
            stored_bytes: entry.stored_bytes,
            checksum: entry.checksum,
            origin: entry.mark.origin,
            leads_on: entry.leads_on,
            current: entry.mark.round == round,
        };
        self.entries.iter().map(listed).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::Compression;

    fn extent(offset: u64, stored_bytes: u32, checksum: u64) -> BlockAddress {
        let compression = Compression::None;
        BlockAddress { offset, stored_bytes, raw_bytes: stored_bytes, checksum, compression, dictionary: 0 }
    }

    fn mark(round: u32) -> Mark {
        Mark { round, origin: 0 }
    }

    #[test]
    fn what_is_written_over_is_not_known_any_more() {
        let mut extents = Extents::default();
        let (first, second) = (extent(4096, 1000, 1), extent(5120, 512, 2));
        extents.insert(&first, mark(1), false);
        extents.insert(&second, mark(1), false);
        assert!(extents.know(&first, 9) && extents.know(&second, 9), "by itself it stays what it is");
        assert!(!extents.know(&extent(4096, 1000, 7), 9) && !extents.know(&extent(4096, 999, 1), 9));
        extents.overwrite(&extent(5095, 10, 3));
        assert!(!extents.know(&first, 9) && extents.know(&second, 9));
        extents.insert(&first, mark(9), false);
        extents.overwrite(&extent(4608, 4096, 4));
        assert!(!extents.know(&first, 9) && !extents.know(&second, 9));
        assert!(extents.entries.is_empty());
    }

    #[test]
    fn what_leads_on_is_known_from_one_image_to_the_next() {
        let mut extents = Extents::default();
        let page = extent(4096, 1000, 1);
        extents.insert(&page, mark(1), true);
        assert!(extents.know(&page, 2) && extents.know(&page, 3));
        assert!(
            !extents.know(&page, 5),
            "image 4 did not name it, and may have had something below it elsewhere"
        );
    }

    #[test]
    fn what_the_backup_below_has_is_known_if_its_last_image_named_it() {
        let mut below = Extents::default();
        let (page, old, leaf) = (extent(4096, 1000, 1), extent(8192, 1000, 2), extent(12288, 1000, 3));
        below.insert(&page, mark(4), true);
        below.insert(&old, mark(3), true);
        below.insert(&leaf, mark(3), false);
        let mut extents = Extents::of_list(&below.to_list(4));
        assert!(extents.know(&page, FIRST_ROUND) && extents.know(&leaf, FIRST_ROUND));
        assert!(!extents.know(&old, FIRST_ROUND) && extents.origin(&old) == Some(0));
        assert_eq!(extents.origin(&extent(8192, 1000, 7)), None);
    }
}
