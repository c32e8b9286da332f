//! The part of a checkpoint that writes tables: their trees as of T, and the free map of each file, which is then
//! synced.
//!
//! Files are written side by side. A worker has one file at a time, from its first block to its sync: so files wait for
//! the disk at the same time, and only as many as there are workers have writes that are not synced. Few of the workers
//! compute at a time: they share [`Permits`], and have none while they wait for a sync.

use super::writer::{Capture, Failure, Touched, TreeImage};
use crate::catalog::directory::StoredDictionary;
use crate::store::{BlockAddress, Space, TreeRoot};
use crate::sync::{Condvar, Mutex};
use crate::tree::{Moment, Tree};
use crate::types::TreeId;
use crate::Result;
use std::collections::BTreeMap;
use std::sync::Arc;

/// How fast a checkpoint is to go.
pub struct Pace<'a> {
    /// Threads that build and compress blocks at a time. Asked again and again: there may be more when the log is
    /// filling.
    pub writers: &'a (dyn Fn() -> usize + Sync),
    /// Files that are written or synced at a time; with one, all is done by the calling thread and in the same order
    /// each time.
    pub files: usize,
}

/// What the directory is told of what was written.
#[derive(Default)]
pub(super) struct Written {
    pub roots: Vec<(TreeId, TreeRoot)>,
    pub maps: Vec<(u32, BlockAddress)>,
    pub dictionaries: Vec<(TreeId, StoredDictionary)>,
}

impl Written {
    fn append(&mut self, mut other: Written) {
        self.roots.append(&mut other.roots);
        self.maps.append(&mut other.maps);
        self.dictionaries.append(&mut other.dictionaries);
    }
}

/// What there is to do in a space.
enum Part<'a> {
    Image(&'a TreeImage),
    Retired(&'a Arc<Tree>),
}

type Parts<'a> = (&'a Arc<Space>, Vec<Part<'a>>);

/// By number, so that runs are alike.
fn by_space(capture: &Capture) -> BTreeMap<u32, Parts<'_>> {
    let images = capture.trees.iter().map(|image| (image.tree.space(), Part::Image(image)));
    let retired = capture.dropped.iter().flat_map(|dropped| &dropped.retired);
    let mut spaces: BTreeMap<u32, Parts<'_>> = BTreeMap::new();
    for (space, part) in images.chain(retired.map(|tree| (tree.space(), Part::Retired(tree)))) {
        spaces.entry(space.id()).or_insert_with(|| (space, Vec::new())).1.push(part);
    }
    spaces
}

/// Leaves to be written.
fn leaves((_, parts): &Parts<'_>) -> usize {
    let of = |part: &Part<'_>| match part {
        Part::Image(image) => image.tree.dirty_leaves(),
        Part::Retired(_) => 0,
    };
    parts.iter().map(of).sum()
}

/// Writes the trees of `capture`, and syncs each file but that of the space `system`.
pub(super) fn write_trees(
    generation: u64,
    capture: &Capture,
    touched: &mut Touched,
    system: u32,
    pace: &Pace<'_>,
) -> Result<Written, Failure> {
    // Taken from the end.
    let mut spaces: Vec<Parts<'_>> = by_space(capture).into_values().rev().collect();
    let workers = pace.files.min(spaces.len());
    if workers > 1 {
        // The largest at the end of it all, when its leaves may have the processors that the others do not need any
        // more.
        spaces.sort_by_cached_key(|space| std::cmp::Reverse(leaves(space)));
    }
    let images = Images {
        generation,
        capture,
        system,
        permits: Permits { taken: Mutex::new(0), freed: Condvar::new(), maximum: pace.writers },
        state: Mutex::new(State { spaces, touched, written: Written::default(), failure: None }),
    };
    crate::threads::share(workers, "teak-write", || {
        images.work();
        Ok(())
    })
    .map_err(Failure::fatal)?;
    let State { written, failure, .. } = images.state.into_inner();
    failure.map_or(Ok(written), Err)
}

/// What the workers share.
struct Images<'a> {
    generation: u64,
    capture: &'a Capture,
    system: u32,
    permits: Permits<'a>,
    state: Mutex<State<'a>>,
}

struct State<'a> {
    /// Nobody has begun with these.
    spaces: Vec<Parts<'a>>,
    touched: &'a mut Touched,
    written: Written,
    /// The first one, or one that is fatal.
    failure: Option<Failure>,
}

impl Images<'_> {
    fn work(&self) {
        loop {
            let (space, parts) = {
                let mut state = self.state.lock();
                if state.failure.is_some() {
                    return;
                }
                let Some((space, parts)) = state.spaces.pop() else { return };
                // Before anything is written: it is to be abandoned if something fails, here or elsewhere.
                state.touched.space(space, self.generation);
                let images = parts.iter().filter_map(|part| match part {
                    Part::Image(image) => Some(image.tree.clone()),
                    Part::Retired(_) => None,
                });
                state.touched.trees.extend(images);
                (space, parts)
            };
            let written = self.write(space, &parts);
            let written = written.map_err(|failure| Failure { space: Some(space.id()), ..failure });
            let mut state = self.state.lock();
            match written {
                Ok(written) => state.written.append(written),
                Err(failure) if failure.fatal || state.failure.is_none() => state.failure = Some(failure),
                Err(_) => {}
            }
        }
    }

    fn write(&self, space: &Arc<Space>, parts: &[Part<'_>]) -> Result<Written, Failure> {
        let written = self.write_parts(space, parts)?;
        if space.id() != self.system {
            space.sync().map_err(Failure::fatal)?;
        }
        Ok(written)
    }

    fn write_parts(&self, space: &Arc<Space>, parts: &[Part<'_>]) -> Result<Written> {
        let mut permit = self.permits.one();
        let moment = Moment { at: self.capture.snapshot.timestamp(), counted_at: self.capture.counted_at };
        let mut written = Written::default();
        for part in parts {
            match part {
                Part::Image(image) => {
                    permit.resize(Tree::useful_writers(image.tree.dirty_leaves()));
                    let root = image.tree.checkpoint(moment, self.generation, permit.count)?;
                    let entries = image.entries;
                    written.roots.extend(root.map(|root| (image.tree.id(), TreeRoot { entries, ..root })));
                    let dictionary = image.tree.save_dictionary(self.generation);
                    written.dictionaries.extend(dictionary.map(|stored| (image.tree.id(), stored)));
                }
                Part::Retired(tree) => tree.supersede_all(self.generation)?,
            }
        }
        if space.id() != self.system {
            written.maps.push((space.id(), space.write_map(self.generation)?));
        }
        Ok(written)
    }
}

/// How many threads may compute.
struct Permits<'a> {
    taken: Mutex<usize>,
    freed: Condvar,
    maximum: &'a (dyn Fn() -> usize + Sync),
}

/// Given back when it is dropped.
struct Permit<'a> {
    of: &'a Permits<'a>,
    count: usize,
}

impl Permits<'_> {
    /// For one thread; waits for it.
    fn one(&self) -> Permit<'_> {
        let mut taken = self.taken.lock();
        while *taken >= (self.maximum)().max(1) {
            self.freed.wait(&mut taken);
        }
        *taken += 1;
        Permit { of: self, count: 1 }
    }
}

impl Permit<'_> {
    /// From now on for `wanted` threads, if so many more are free; at least for one.
    fn resize(&mut self, wanted: usize) {
        let maximum = (self.of.maximum)();
        let mut taken = self.of.taken.lock();
        let more = wanted.saturating_sub(self.count).min(maximum.saturating_sub(*taken));
        let less = self.count - wanted.clamp(1, self.count);
        *taken = *taken + more - less;
        self.count = self.count + more - less;
        if less > 0 {
            self.of.freed.notify_all();
        }
    }
}

impl Drop for Permit<'_> {
    fn drop(&mut self) {
        *self.of.taken.lock() -= self.count;
        self.of.freed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    #[test]
    fn no_more_threads_compute_than_there_are_permits_and_who_is_alone_has_them_all() {
        let permits = Permits { taken: Mutex::new(0), freed: Condvar::new(), maximum: &|| 3 };
        let computing = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for thread in 0..8 {
                let (permits, computing) = (&permits, &computing);
                scope.spawn(move || {
                    for round in 0..500 {
                        let mut permit = permits.one();
                        permit.resize((thread + round) % 5);
                        assert!(computing.fetch_add(permit.count, Ordering::SeqCst) + permit.count <= 3);
                        computing.fetch_sub(permit.count, Ordering::SeqCst);
                    }
                });
            }
        });
        let mut alone = permits.one();
        alone.resize(9);
        assert_eq!(alone.count, 3);
        alone.resize(0);
        assert_eq!(alone.count, 1);
        drop(alone);
        assert_eq!(*permits.taken.lock(), 0);
    }
}
