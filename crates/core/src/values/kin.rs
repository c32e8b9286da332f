//! Which of the values seen before is most like a new one: an index from features to groups of values, in memory of a
//! fixed size.
//!
//! A table of buckets, each with four features, the youngest first; what a full bucket takes pushes out its oldest.
//! So nothing has to be found to be removed, and what was seen long ago, and not again since, is forgotten. A feature
//! leads to the group that had it last.

use super::sketch::{Sketch, FEATURES};

/// Features of a bucket.
const WAYS: usize = 4;
/// Bytes of memory for a bucket: tags of 4, groups of 8.
const BUCKET_BYTES: usize = WAYS * (4 + 8);
/// Groups that are forgotten before the table is swept.
const FORGOTTEN: usize = 256;
/// So many features make a group kin. Measured (`docs/design/values.md`): one may be a letterhead that many share.
const LEAST_SHARED: usize = 2;

/// See the module's documentation.
pub(crate) struct Kin {
    /// Zero where nothing is. Tags and groups are apart, so that a search reads the tags alone.
    tags: Vec<[u32; WAYS]>,
    groups: Vec<[u64; WAYS]>,
    /// What the table may still have of them counts for nothing.
    forgotten: Vec<u64>,
}

impl Kin {
    /// An empty index that never takes more than `bytes` of memory; the system gives it as it is filled. With less than
    /// 4 KiB there is a table of one bucket all the same.
    pub(crate) fn new(bytes: usize) -> Kin {
        let buckets = (bytes.saturating_sub(FORGOTTEN * 8) / BUCKET_BYTES).max(1);
        Kin {
            tags: vec![[0; WAYS]; buckets],
            groups: vec![[0; WAYS]; buckets],
            forgotten: Vec::with_capacity(FORGOTTEN),
        }
    }

    /// The group that shares most features with `sketch`, at least two, and how many. Of two that share as many it is
    /// the one with the larger number.
    pub(crate) fn find(&self, sketch: &Sketch) -> Option<(u64, usize)> {
        let mut groups = [0; FEATURES];
        let mut found = 0;
        for feature in sketch.features() {
            let (bucket, tag) = self.place(feature);
            if let Some(way) = self.tags[bucket].iter().position(|&other| other == tag) {
                groups[found] = self.groups[bucket][way];
                found += 1;
            }
        }
        let groups = &groups[..found];
        let shared = |group: u64| groups.iter().filter(|&&other| other == group).count();
        let counted = groups.iter().map(|&group| (shared(group), group));
        counted
            .filter(|&(count, group)| count >= LEAST_SHARED && !self.forgotten.contains(&group))
            .max()
            .map(|(count, group)| (group, count))
    }

    /// From now on a value with `sketch` belongs to `group`, which all of its features lead to.
    pub(crate) fn note(&mut self, sketch: &Sketch, group: u64) {
        if self.forgotten.contains(&group) {
            self.sweep();
        }
        for feature in sketch.features() {
            let (bucket, tag) = self.place(feature);
            let (tags, groups) = (&mut self.tags[bucket], &mut self.groups[bucket]);
            let way = tags.iter().position(|&other| other == tag).unwrap_or(WAYS - 1);
            tags[..=way].rotate_right(1);
            groups[..=way].rotate_right(1);
            (tags[0], groups[0]) = (tag, group);
        }
    }

    /// From now on nothing leads to `group`. Cheap but for each 256th time, which goes through the table.
    pub(crate) fn forget(&mut self, group: u64) {
        if self.forgotten.contains(&group) {
            return;
        }
        if self.forgotten.len() == FORGOTTEN {
            self.sweep();
        }
        self.forgotten.push(group);
    }

    /// Takes what is forgotten out of the table.
    fn sweep(&mut self) {
        self.forgotten.sort_unstable();
        for (tags, groups) in self.tags.iter_mut().zip(&self.groups) {
            for (tag, group) in tags.iter_mut().zip(groups) {
                // Most of a table may never have been touched, and stays so.
                if *tag != 0 && self.forgotten.binary_search(group).is_ok() {
                    *tag = 0;
                }
            }
        }
        self.forgotten.clear();
    }

    /// Bucket and tag of a feature. Features are small for hashes, the smallest of their value: all of their bits are
    /// mixed again.
    fn place(&self, feature: u64) -> (usize, u32) {
        let product = u128::from(feature) * 0x9e37_79b9_7f4a_7c15;
        let mixed = (product >> 64) as u64 ^ product as u64;
        let bucket = (u128::from(mixed) * self.tags.len() as u128) >> 64;
        (bucket as usize, (mixed as u32).max(1))
    }
}

#[cfg(test)]
mod tests;
