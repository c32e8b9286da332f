//! Which extents of one file the target has.
//!
//! A backup goes over the images of several checkpoints, one round each, and takes of each what it has not yet: an
//! extent that both images name has the same bytes in both, as extents are never written in place. What an inner page
//! leads to need not be looked at if the page was in the image before, with all that it leads to: none of it has been
//! overwritten since, as the extents of one image lie apart.

use std::collections::BTreeMap;

use crate::store::BlockAddress;

/// An extent that the target has.
#[derive(Debug, Clone, Copy)]
struct Entry {
    stored_bytes: u32,
    checksum: u64,
    /// The last round whose image is known to name it.
    round: u32,
    /// It names other extents.
    leads_on: bool,
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
        if !is_same || (entry.leads_on && entry.round + 1 < round) {
            return false;
        }
        entry.round = round;
        true
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
    pub fn insert(&mut self, at: &BlockAddress, round: u32, leads_on: bool) {
        let entry = Entry { stored_bytes: at.stored_bytes, checksum: at.checksum, round, leads_on };
        self.entries.insert(at.offset, entry);
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

    #[test]
    fn what_is_written_over_is_not_known_any_more() {
        let mut extents = Extents::default();
        let (first, second) = (extent(4096, 1000, 1), extent(5120, 512, 2));
        extents.insert(&first, 1, false);
        extents.insert(&second, 1, false);
        assert!(extents.know(&first, 9) && extents.know(&second, 9), "by itself it stays what it is");
        assert!(!extents.know(&extent(4096, 1000, 7), 9) && !extents.know(&extent(4096, 999, 1), 9));
        extents.overwrite(&extent(5095, 10, 3));
        assert!(!extents.know(&first, 9) && extents.know(&second, 9));
        extents.insert(&first, 9, false);
        extents.overwrite(&extent(4608, 4096, 4));
        assert!(!extents.know(&first, 9) && !extents.know(&second, 9));
        assert!(extents.entries.is_empty());
    }

    #[test]
    fn what_leads_on_is_known_from_one_image_to_the_next() {
        let mut extents = Extents::default();
        let page = extent(4096, 1000, 1);
        extents.insert(&page, 1, true);
        assert!(extents.know(&page, 2) && extents.know(&page, 3));
        assert!(
            !extents.know(&page, 5),
            "image 4 did not name it, and may have had something below it elsewhere"
        );
    }
}
