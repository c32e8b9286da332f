//! Large values that are alike are put together, in the background: `SIMILARITY=YES`.
//!
//! ```text
//! checkpoint durable ──> leaves with new values ──> each value: read, inflated, sketched ──> groups (values/groups.rs)
//!                                                                                                │ a batch
//!                    next checkpoint <── leaves name parts of bundles <── some bundles at a time <── bundle written
//! ```
//!
//! The thread `teak-alike` does this, and no session waits for it. It works on values that are durable, one in memory
//! at a time, or those of one bundle. Only the exchange holds back checkpoints, for the time in which some leaves are
//! built anew in memory (`tree/storing/bundles.rs`). The same thread takes bundles apart of which more than half is
//! dead.
//!
//! A value that no other is like stays as it was written. What was waiting when the engine ended is not looked for
//! again, unless its leaf is written anew; OPTIMIZE TABLE looks at all.

use super::checkpoints::Urgency;
use super::walk::LeafWalk;
use crate::engine::data::tables::Table;
use crate::engine::data::watch::Watcher;
use crate::engine::shared::Shared;
use crate::options::LogLevel;
use crate::store::ThinnedBundle;
use crate::sync::Mutex;
use crate::tree::{Bell, Blob, BlobAddress, Exchange, Looked, Moved, Tree, WrittenBundle, MOST_VALUE_BYTES};
use crate::types::TreeId;
use crate::values::bundle::{Content, MOST_CONTENT, MOST_MEMBERS};
use crate::values::deflated;
use crate::values::groups::{Batch, Groups, Limits, Open, Ungrouped};
use crate::values::sketch::Sketch;
use crate::{Error, Result, Time};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Groups to which nothing came for so long are bundled as they are.
const QUIET: Duration = Duration::from_secs(10);
/// A table to which nothing came for so long may be closed.
const REMEMBERED: Duration = Duration::from_secs(600);
/// Bundles whose values are exchanged at a time: neighbours in a leaf are exchanged together.
const BUNDLES_AT_ONCE: usize = 64;
/// So many bytes of values that were put together are worth a checkpoint, which gives back what they took.
const WORTH_A_CHECKPOINT: u64 = 32 << 20;
/// A bundle that does not save an eighth of what its values take is not worth reading all of them for one.
const LEAST_SAVED: u64 = 8;
/// Keys of more bytes than this are left: the bundle has them all.
const MOST_KEY_BYTES: usize = 1 << 10;
/// The index of sketches takes this part of the cache's budget, beside it, and what waits as much again at most.
const PART_OF_BUDGET: u64 = 16;
const LEAST_INDEX_BYTES: u64 = 1 << 20;
const MOST_INDEX_BYTES: u64 = 256 << 20;
/// Of memory for a group, and for a value that waits.
const GROUP_BYTES: usize = 256;
const WAITING_BYTES: usize = 128;

/// For one engine, whatever its tables have.
fn limits(budget: u64) -> Limits {
    let index_bytes = (budget / PART_OF_BUDGET).clamp(LEAST_INDEX_BYTES, MOST_INDEX_BYTES) as usize;
    Limits { index_bytes, groups: index_bytes / GROUP_BYTES, waiting: index_bytes / WAITING_BYTES }
}

/// What an engine knows of values that are alike.
pub(in crate::engine) struct Alike {
    /// Rung for the thread.
    pub bell: Arc<Bell>,
    state: Mutex<State>,
    limits: Limits,
    /// One looks after values at a time, the thread or who does without it.
    looking: Mutex<()>,
}

struct State {
    /// Made with the first value.
    groups: Option<Groups>,
    /// Trees with leaves that nobody has looked at, or with sparse bundles. A table whose trees somebody has stays
    /// open.
    listed: HashMap<TreeId, Arc<Tree>>,
    /// Trees of groups, and when a value of them was seen last.
    owners: HashMap<TreeId, (Arc<Tree>, Instant)>,
    /// When, and up to which turn, groups were looked at that nothing comes to.
    quiet: (Instant, u64),
    /// Bytes that a checkpoint would give back.
    freed_bytes: u64,
    /// How often new values were looked for.
    passes: u64,
}

/// Where the values of a bundle are from.
#[derive(Clone, Copy)]
enum From {
    Group(u64),
    /// They are what was left of the bundle at this offset.
    Pack(u64),
}

/// A bundle that is written, and what is to name it.
struct Prepared {
    tree: Arc<Tree>,
    from: From,
    bundle: Option<WrittenBundle>,
    exchanges: Vec<Exchange>,
    content_bytes: usize,
    freed_bytes: u64,
}

/// A value that is to become part of a bundle.
struct Candidate {
    key: Vec<u8>,
    content: Content,
    old: BlobAddress,
}

impl Alike {
    /// `budget`: the cache's, in bytes.
    pub(in crate::engine) fn new(time: &Time, budget: u64) -> Alike {
        let (listed, owners) = (HashMap::new(), HashMap::new());
        let state = State { groups: None, listed, owners, quiet: (time.now(), 0), freed_bytes: 0, passes: 0 };
        let (state, limits) = (Mutex::new(state), limits(budget));
        Alike { bell: Arc::default(), state, limits, looking: Mutex::new(()) }
    }

    /// A checkpoint of these trees is durable.
    pub(in crate::engine) fn checkpoint_durable<'a>(&self, trees: impl Iterator<Item = &'a Arc<Tree>>) {
        let mut has_work = false;
        for tree in trees {
            let is_new = tree.is_for_bundles() && tree.has_unseen();
            if is_new || tree.sparse_bundles(0, 1).is_ok_and(|sparse| !sparse.is_empty()) {
                self.state.lock().listed.insert(tree.id(), tree.clone());
                has_work = true;
            }
        }
        if has_work {
            self.bell.ring();
        }
    }

    fn with_groups<T>(&self, work: impl FnOnce(&mut Groups) -> T) -> T {
        work(self.state.lock().groups.get_or_insert_with(|| Groups::new(self.limits)))
    }

    /// The tree with that number, if it is still there.
    fn owner(&self, id: TreeId) -> Option<Arc<Tree>> {
        self.state.lock().owners.get(&id).map(|(tree, _)| tree.clone()).filter(|tree| !tree.is_dropped())
    }
}

impl Shared {
    /// What the thread `teak-alike` does when a checkpoint is durable, and every few seconds.
    pub(in crate::engine) fn look_for_alike_values(&self) {
        let result = self.care.alike.looking.try_lock().map(|_looking| self.look_for_alike());
        match result {
            None | Some(Ok(()) | Err(Error::Interrupted)) => {}
            // What it wrote is private and goes; the values stay as they are.
            Some(Err(error)) => {
                let text = format!("values that are alike stay as they were: {error}");
                self.observer.message(LogLevel::Warning, &text);
            }
        }
    }

    fn look_for_alike(&self) -> Result<()> {
        if self.health.check().is_err() || self.care.progress.pauses.any() {
            return Ok(());
        }
        let listed = self.care.alike.take_listed(self.time.now());
        let goes_on = || match self.background && !self.care.progress.is_running() {
            true => Err(Error::Interrupted),
            false => Ok(()),
        };
        let mut work = AlikeWork::new(self, &goes_on);
        let mut result = Ok(());
        for tree in listed.into_values() {
            match work.look_at_tree(&tree) {
                // Its file may be gone.
                Err(_) if tree.is_dropped() => {}
                looked => result = unless_interrupted(result, looked)?,
            }
        }
        for batch in self.care.alike.quiet_groups(self.time.now()) {
            result = unless_interrupted(result, work.prepare(batch))?;
        }
        result = result.and(work.exchange());
        let freed = std::mem::take(&mut self.care.alike.state.lock().freed_bytes);
        if freed > 0 {
            // A failure is one that the next checkpoint will meet and report.
            let _ = self.checkpoint(false, Urgency::Background);
        }
        result
    }

    /// Puts together all values of the table that are alike, whether or not somebody has looked at them. What could be
    /// freed by it is so after the next checkpoint.
    pub(in crate::engine) fn put_alike_together(&self, table: &Table, watch: Watcher<'_>) -> Result<()> {
        let is_for_bundles = |tree: &&Arc<Tree>| tree.is_for_bundles();
        if !table.all_trees().iter().any(|tree| tree.is_for_bundles()) {
            return Ok(());
        }
        let walk = LeafWalk::new(self, table, watch)?;
        // Only what is durable is put together.
        self.checkpoint(false, Urgency::Awaited)?;
        let _looking = self.care.alike.looking.lock();
        let goes_on = || walk.tell();
        let mut work = AlikeWork::new(self, &goes_on);
        for tree in table.all_trees().iter().filter(is_for_bundles) {
            walk.over(tree, |key| work.see_leaf(tree, key, Looked::Any))?;
            let rest = self.care.alike.with_groups(|groups| groups.due(groups.turn(), Some(tree.id())));
            rest.into_iter().try_for_each(|batch| work.prepare(batch))?;
            work.rewrite_sparse(tree)?;
        }
        work.exchange()
    }

    /// Has large values of the tree that lie behind `limit` written anew, to where there is room before it: bundles as
    /// a whole, and values alone.
    pub(super) fn move_values(&self, tree: &Arc<Tree>, limit: u64, walk: &LeafWalk<'_>) -> Result<()> {
        let _looking = self.care.alike.looking.lock();
        let goes_on = || walk.tell();
        let mut work = AlikeWork::new(self, &goes_on);
        walk.over(tree, |key| {
            for bundle in tree.bundles_behind(key, limit)? {
                (work.goes_on)()?;
                work.rewrite(tree, &bundle)?;
            }
            // Before the next leaf is looked at, which may name the same ones.
            work.exchange()?;
            tree.relocate_at(key, limit, Moved::Values)
        })
    }
}

impl Alike {
    /// Takes the list of trees; what waits of those that are gone, or that nothing came to for long, is forgotten.
    fn take_listed(&self, now: Instant) -> HashMap<TreeId, Arc<Tree>> {
        let mut state = self.state.lock();
        let is_gone = |(_, (tree, seen)): &(&TreeId, &(Arc<Tree>, Instant))| {
            tree.is_dropped() || now.saturating_duration_since(*seen) > REMEMBERED
        };
        let gone: Vec<TreeId> = state.owners.iter().filter(is_gone).map(|(id, _)| *id).collect();
        let gone: Vec<_> = gone.into_iter().filter_map(|id| state.owners.remove(&id)).collect();
        let listed = std::mem::take(&mut state.listed);
        drop(state);
        // Without the mutex: a table may be closed by it.
        drop(gone);
        listed
    }

    /// Batches of groups to which nothing came for a while; none if it is not time to look.
    fn quiet_groups(&self, now: Instant) -> Vec<Batch> {
        let mut state = self.state.lock();
        let (since, turn) = state.quiet;
        let Some(groups) = &mut state.groups else { return Vec::new() };
        if now.saturating_duration_since(since) < QUIET {
            return Vec::new();
        }
        let (batches, turn) = (groups.due(turn, None), groups.turn());
        state.quiet = (now, turn);
        batches
    }
}

/// What one look works with.
struct AlikeWork<'a> {
    shared: &'a Shared,
    prepared: Vec<Prepared>,
    /// Asked before each value; an error: it ends.
    goes_on: &'a dyn Fn() -> Result<()>,
    /// Its number.
    pass: u64,
}

impl<'a> AlikeWork<'a> {
    fn new(shared: &'a Shared, goes_on: &'a dyn Fn() -> Result<()>) -> AlikeWork<'a> {
        let pass = {
            let mut state = shared.care.alike.state.lock();
            state.passes += 1;
            state.passes
        };
        AlikeWork { shared, prepared: Vec::new(), goes_on, pass }
    }

    /// Looks at what was written of a tree since the last look.
    fn look_at_tree(&mut self, tree: &Arc<Tree>) -> Result<()> {
        let mut result = Ok(());
        while let Some(low) = tree.next_unseen().filter(|_| !tree.is_dropped()) {
            let seen = self.see_leaf(tree, &low, Looked::Unseen);
            result = unless_interrupted(result, seen.map(drop))?;
        }
        result.and(self.rewrite_sparse(tree))
    }

    /// Looks at the values of a leaf. Where the walk goes on.
    fn see_leaf(&mut self, tree: &Arc<Tree>, key: &[u8], looked: Looked) -> Result<Option<Vec<u8>>> {
        let (values, next) = tree.lone_values(key, looked, MOST_VALUE_BYTES)?;
        if !values.is_empty() {
            self.shared
                .care
                .alike
                .state
                .lock()
                .owners
                .insert(tree.id(), (tree.clone(), self.shared.time.now()));
        }
        for value in values {
            (self.goes_on)()?;
            let Some(extent) = value.blob.extent().filter(|_| value.key.len() <= MOST_KEY_BYTES) else {
                continue;
            };
            let bytes = match value.blob.bytes() {
                // Whoever reads it gets the error; a check finds it.
                Err(Error::Corrupt { .. }) => continue,
                bytes => bytes?,
            };
            let inflated = tree.inflates().then(|| deflated::content_of(&bytes, MOST_CONTENT)).flatten();
            let text = inflated.as_deref().unwrap_or(&bytes);
            let sketch = Sketch::of(text);
            let pass = if value.is_new { self.pass } else { 0 };
            let waiting = Ungrouped {
                key: value.key,
                pass,
                offset: extent.address().offset,
                content_bytes: text.len(),
            };
            let batches =
                self.shared.care.alike.with_groups(|groups| groups.see(tree.id(), &sketch, waiting));
            for batch in batches {
                self.prepare(batch)?;
            }
        }
        Ok(next)
    }

    /// Writes a bundle for the values of a batch, if it saves enough.
    fn prepare(&mut self, batch: Batch) -> Result<()> {
        let Some(tree) = self.shared.care.alike.owner(batch.owner) else { return Ok(()) };
        let mut candidates = Vec::new();
        let mut bytes = 0;
        for value in &batch.waiting {
            (self.goes_on)()?;
            let Some(blob) = tree.value_in(&value.key, value.offset)? else { continue };
            let Some(old) = blob.address().filter(|at| at.member.is_none()) else { continue };
            let Some(content) = content(&tree, &blob)? else { continue };
            bytes += content.len();
            if bytes > MOST_CONTENT {
                break;
            }
            candidates.push(Candidate { key: value.key.clone(), content, old });
        }
        if let Some(bundle) = batch.open.as_ref().map(|open| open_bundle(&tree, open)).transpose()?.flatten()
        {
            let before = candidates.len();
            candidates.extend(values_of(&tree, &bundle)?);
            let bytes: usize = candidates.iter().map(|candidate| candidate.content.len()).sum();
            if candidates.len() > MOST_MEMBERS || bytes > MOST_CONTENT {
                candidates.truncate(before);
            }
        }
        if candidates.len() >= 2 {
            self.write(&tree, From::Group(batch.group), candidates)?;
        }
        Ok(())
    }

    /// Writes values of a bundle of which more than half is dead together again.
    fn rewrite_sparse(&mut self, tree: &Arc<Tree>) -> Result<()> {
        let (mut after, mut result) = (0, Ok(()));
        loop {
            let sparse = tree.sparse_bundles(after, BUNDLES_AT_ONCE)?;
            let Some(last) = sparse.last() else { return result };
            after = last.address.offset;
            for bundle in &sparse {
                (self.goes_on)()?;
                result = unless_interrupted(result, self.rewrite(tree, bundle))?;
            }
        }
    }

    fn rewrite(&mut self, tree: &Arc<Tree>, bundle: &ThinnedBundle) -> Result<()> {
        let mut candidates = values_of(tree, bundle)?;
        match candidates.len() {
            // They are another tree's of the same file, or about to go.
            0 => Ok(()),
            1 => self.write_alone(tree, candidates.swap_remove(0)),
            _ => self.write(tree, From::Pack(bundle.address.offset), candidates),
        }
    }

    fn write_alone(&mut self, tree: &Arc<Tree>, candidate: Candidate) -> Result<()> {
        let damaged = |detail| Error::corrupt(tree.space().path(), candidate.old.extent.offset, detail);
        let new = tree.write_alone(&candidate.content.value().map_err(damaged)?)?;
        let exchanges = vec![Exchange { key: candidate.key, old: candidate.old, new }];
        let (from, tree) = (From::Pack(candidate.old.extent.offset), tree.clone());
        self.add(Prepared { tree, from, bundle: None, exchanges, content_bytes: 0, freed_bytes: 0 })
    }

    fn write(&mut self, tree: &Arc<Tree>, from: From, mut candidates: Vec<Candidate>) -> Result<()> {
        candidates.sort_unstable_by(|a, b| a.key.cmp(&b.key));
        candidates.dedup_by(|a, b| a.key == b.key);
        let content_bytes = candidates.iter().map(|candidate| candidate.content.len()).sum();
        let unit = tree.space().unit();
        let mut before: Vec<(u64, u64)> = candidates
            .iter()
            .map(|candidate| (candidate.old.extent.offset, candidate.old.extent.occupied_bytes(unit)))
            .collect();
        before.sort_unstable();
        before.dedup();
        let before: u64 = before.iter().map(|(_, bytes)| bytes).sum();
        let (olds, members): (Vec<_>, Vec<_>) =
            candidates.into_iter().map(|Candidate { key, content, old }| (old, (key, content))).unzip();
        let bundle = tree.write_bundle(&members)?;
        let saved = before.saturating_sub(bundle.occupied_bytes());
        // What is in a bundle already is written anew for other reasons.
        if matches!(from, From::Group(_)) && saved < before / LEAST_SAVED {
            return Ok(());
        }
        let news = bundle.blobs();
        debug_assert_eq!(news.len(), members.len(), "a row would not name its value");
        let exchange = |(((key, _), old), new)| Exchange { key, old, new };
        let exchanges = members.into_iter().zip(olds).zip(news).map(exchange).collect();
        let (tree, bundle) = (tree.clone(), Some(bundle));
        self.add(Prepared { tree, from, bundle, exchanges, content_bytes, freed_bytes: before })
    }

    fn add(&mut self, prepared: Prepared) -> Result<()> {
        self.prepared.push(prepared);
        match self.prepared.len() < BUNDLES_AT_ONCE {
            true => Ok(()),
            false => self.exchange(),
        }
    }

    /// Has rows name what was written for them, tree by tree.
    fn exchange(&mut self) -> Result<()> {
        let mut trees: HashMap<TreeId, Vec<Prepared>> = HashMap::new();
        for prepared in self.prepared.drain(..) {
            trees.entry(prepared.tree.id()).or_default().push(prepared);
        }
        let mut exchanged = Ok(());
        for prepared in trees.into_values() {
            let result = self.shared.exchange(prepared);
            exchanged = exchanged.and(result);
        }
        exchanged
    }
}

impl Shared {
    /// All of one tree.
    fn exchange(&self, prepared: Vec<Prepared>) -> Result<()> {
        let Some(tree) = prepared.first().map(|first| first.tree.clone()) else { return Ok(()) };
        debug_assert!(prepared.iter().all(|one| Arc::ptr_eq(&one.tree, &tree)), "values of two trees");
        let (mut exchanges, mut bundles, mut bundled, mut freed_bytes) =
            (Vec::new(), Vec::new(), Vec::new(), 0);
        for one in prepared {
            if let Some(bundle) = &one.bundle {
                let keys = one.exchanges.iter().map(|exchange| exchange.key.clone()).collect();
                bundled.push((
                    one.from,
                    Open { keys, offset: bundle.offset(), content_bytes: one.content_bytes },
                ));
            }
            exchanges.extend(one.exchanges);
            bundles.extend(one.bundle);
            freed_bytes += one.freed_bytes;
        }
        exchanges.sort_unstable_by(|a, b| a.key.cmp(&b.key));
        exchanges.dedup_by(|a, b| a.key == b.key);
        self.care.checkpointer.paused(|| {
            let result = tree.exchange(&exchanges, bundles);
            if tree.is_dirty() {
                self.mark_dirty(std::iter::once(&tree));
            }
            result
        })?;
        self.care.alike.with_groups(|groups| {
            bundled.into_iter().for_each(|(from, bundle)| match from {
                From::Group(group) => groups.bundled(group, bundle),
                From::Pack(offset) => groups.moved(tree.id(), offset, bundle),
            });
        });
        let enough = {
            let mut state = self.care.alike.state.lock();
            state.freed_bytes += freed_bytes;
            (state.freed_bytes >= WORTH_A_CHECKPOINT).then(|| state.freed_bytes = 0).is_some()
        };
        if enough {
            // A failure is one that the next checkpoint will meet and report.
            let _ = self.checkpoint(false, Urgency::Background);
        }
        Ok(())
    }
}

/// The first error of `result` and of `next`, for who goes on with others; unless he is told to end.
fn unless_interrupted(result: Result<()>, next: Result<()>) -> Result<Result<()>> {
    match next {
        Err(Error::Interrupted) => Err(Error::Interrupted),
        next => Ok(result.and(next)),
    }
}

/// What is put together of a value.
fn content(tree: &Tree, blob: &Blob) -> Result<Option<Content>> {
    let bytes = blob.bytes()?;
    let inflated = tree.inflates().then(|| Content::inflated(&bytes)).flatten();
    Ok(inflated.or_else(|| Content::plain(&bytes)))
}

/// The bundle of a group, if one of its rows leads to it still.
fn open_bundle(tree: &Tree, open: &Open) -> Result<Option<ThinnedBundle>> {
    for key in &open.keys {
        let Some(blob) = tree.value_in(key, open.offset)? else { continue };
        if let Some(BlobAddress { extent, member: Some(member), .. }) = blob.address() {
            return Ok(Some(ThinnedBundle { address: extent, of: member.of, dead: 0 }));
        }
    }
    Ok(None)
}

fn values_of(tree: &Tree, bundle: &ThinnedBundle) -> Result<Vec<Candidate>> {
    let values = tree.values_of_bundle(bundle)?.into_iter();
    Ok(values.map(|(key, content, old)| Candidate { key, content, old }).collect())
}
