//! When checkpoints happen, what they contain, and who waits for them.
//!
//! Log written since the last durable checkpoint began, against the setting L = `checkpoint_log_bytes`: above L/2 a
//! checkpoint is started, and also when the deltas to be folded, in memory or spilled, are more than the whole cache: a
//! restart would have to read and change as many leaves, and a million DELETEs are 46 MB of log. Above 2 L writers wait
//! until it is done, or get its error. Without background threads the writer that passes L does the checkpoint itself.

use super::pause::PATIENCE;
use super::progress::RETRY;
use crate::catalog::{Contained, Counted};
use crate::checkpoint::{Arrival, Capture, Dropped, Outcome, Pace, TreeImage};
use crate::engine::data::tables::{Table, LOOKS_AT_ONCE};
use crate::engine::shared::Shared;
use crate::file::DiskReserve;
use crate::log::Lsn;
use crate::options::LogLevel;
use crate::slabs::trim_heaps;
use crate::tree::Tree;
use crate::types::Timestamp;
use crate::{Error, Result};
use std::collections::HashSet;
use std::sync::atomic::Ordering;
use std::sync::Arc;

/// So many leaves of a tree that were filled last may still change: their images wait.
const YOUNG_LEAVES: usize = 16;

/// So many free ranges are given back to the file system after a checkpoint, at most; each may take up to a
/// millisecond.
const HOLES: usize = 4096;
/// Smaller free ranges are kept: what is written next is put there first.
const SMALLEST_HOLE: u64 = 16 << 10;

/// A checkpoint of so many bytes of log, and of rows in blocks beside it, gives heaps' free pages back: statuses of
/// transactions and small deltas went, in pieces, and what statements of many rows had. Of less the next will need what
/// is free.
const TRIM_BYTES: u64 = 16 << 20;

/// Files that a checkpoint writes, or waits for, at a time: their syncs overlap, which costs no processor.
const FILES_AT_ONCE: usize = 16;

/// Whether anybody waits for a checkpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::engine) enum Urgency {
    /// Nobody: a quarter of the processors is enough, and half of them if it does not keep up with the log.
    Background,
    /// Somebody: it may have them all.
    Awaited,
}

/// What writers are told of a failed checkpoint that they have to wait for: that a file is damaged would be taken for
/// the damage of the table that they write to.
fn told_to_others(failure: Error) -> Error {
    match failure {
        Error::Corrupt { ref path, .. } | Error::UnknownVersion { ref path, .. } => {
            Error::Io { operation: "a checkpoint", path: path.clone(), cause: failure.to_string() }
        }
        failure => failure,
    }
}

fn processors() -> usize {
    std::thread::available_parallelism().map_or(1, |n| n.get())
}

impl Shared {
    /// What a restart would have to replay, in bytes.
    fn log_since_checkpoint(&self) -> u64 {
        let direct = self.care.progress.direct_bytes.load(Ordering::SeqCst);
        let direct = direct.saturating_sub(self.care.progress.direct_began.load(Ordering::SeqCst));
        self.log.end().saturating_sub(self.care.progress.began()).saturating_add(direct)
    }

    /// Whether enough log has been written for another checkpoint.
    pub(in crate::engine) fn checkpoint_is_due(&self) -> bool {
        self.log_since_checkpoint() > self.settings.checkpoint_log_bytes() / 2 || self.has_many_changes()
    }

    /// Whether deltas take more than the cache, and twice what no checkpoint can fold.
    fn has_many_changes(&self) -> bool {
        let changes = self.context.changes.approximate();
        // Relaxed: a number that stands for itself.
        changes > self.context.cache.budget()
            && changes / 2 > self.care.progress.changes_left.load(Ordering::Relaxed)
    }

    /// Whether the log has grown to twice that, since a checkpoint is slow: writers are to be held up at four times as
    /// much.
    fn log_is_filling(&self) -> bool {
        self.log_since_checkpoint() > self.settings.checkpoint_log_bytes()
    }

    /// Whether blocks are left for the next checkpoint to rewrite.
    pub(in crate::engine) fn conversion_goes_on(&self) -> bool {
        self.data.dirty.any(Tree::is_converting)
    }

    /// Called by writers that hold no latch: starts a checkpoint when one is due, and waits when checkpoints are far
    /// behind.
    #[inline]
    pub(in crate::engine) fn wait_for_checkpoint(&self) -> Result<()> {
        if self.checkpoint_is_due() {
            return self.wait_for_checkpoint_slowly(&|| false);
        }
        self.mind_finished();
        Ok(())
    }

    /// Has leaves that were filled written ahead of the next checkpoint, if there are many.
    #[inline]
    pub(in crate::engine) fn mind_finished(&self) {
        let enough = self.care.progress.finished_enough.load(Ordering::Relaxed); // Relaxed: a hint
        if self.context.attention().finished_leaves() > enough {
            self.ask_for_early_images();
        }
    }

    /// A write was refused because nothing could be evicted for it: a checkpoint cleans what is committed, and then
    /// something can.
    pub(in crate::engine) fn ask_for_room(&self, refusal: &Error) {
        if self.background && matches!(refusal, Error::SpillFull { .. } | Error::DiskFull { .. }) {
            self.care.progress.ask();
        }
    }

    #[cold]
    fn ask_for_early_images(&self) {
        match self.background {
            true => self.care.progress.ask(),
            false => self.write_finished(),
        }
    }

    /// Writes leaves that appends have filled, so that the next checkpoint need not. A failure is one that the
    /// checkpoint will meet and report.
    pub(in crate::engine) fn write_finished(&self) {
        if self.health.check().is_err() {
            return;
        }
        let keep = if self.background { YOUNG_LEAVES } else { 1 };
        for tree in self.data.dirty.all() {
            let _ = tree.write_finished(keep, &|| self.checkpoint_is_due());
        }
        // Relaxed: a hint; what is left is looked at again when there is more.
        self.care
            .progress
            .finished_enough
            .store(self.context.attention().finished_leaves() + keep, Ordering::Relaxed);
    }

    /// Whether [`Shared::wait_for_checkpoint`] would wait, and not only ask.
    #[inline]
    pub(in crate::engine) fn checkpoint_is_far_behind(&self) -> bool {
        let limit = self.settings.checkpoint_log_bytes().saturating_mul(2);
        let since = self.log_since_checkpoint();
        self.background && since > limit && (!self.care.progress.pauses.any() || since / PATIENCE > limit)
    }

    /// Waits as [`Shared::wait_for_checkpoint`] does; `interrupted` is asked about once a second.
    #[cold]
    pub(in crate::engine) fn wait_for_checkpoint_slowly(&self, interrupted: &dyn Fn() -> bool) -> Result<()> {
        let limit = self.settings.checkpoint_log_bytes();
        if !self.background {
            return self.checkpoint_inline(limit);
        }
        if !self.care.progress.pauses.any() {
            self.care.progress.ask();
        }
        if !self.checkpoint_is_far_behind() {
            return Ok(());
        }
        self.counted.checkpoint_waits.add(1);
        let mut state = self.care.progress.state.lock();
        // The attempt that runs may have begun long ago; the one after it is the answer to this writer.
        let enough = state.attempts + 2;
        loop {
            self.health.check()?;
            if state.stopped || !self.checkpoint_is_far_behind() {
                return Ok(());
            }
            if interrupted() {
                return Err(Error::Interrupted);
            }
            if state.attempts >= enough {
                return state.failure.clone().map_or(Ok(()), |failure| Err(told_to_others(failure)));
            }
            // During a pause nothing is asked for: its end does.
            if !self.care.progress.pauses.any() && !self.care.progress.asked.swap(true, Ordering::SeqCst) {
                self.care.progress.changed.notify_all();
            }
            self.care.progress.changed.wait_for(&mut state, RETRY);
        }
    }

    fn checkpoint_inline(&self, limit: u64) -> Result<()> {
        let behind = self.log_since_checkpoint();
        let since_attempt =
            self.log.end().saturating_sub(self.care.progress.attempted.load(Ordering::SeqCst));
        if behind <= limit || since_attempt <= limit / 8 {
            return Ok(());
        }
        match self.checkpoint(false, Urgency::Background) {
            Err(error) if behind > limit.saturating_mul(2) => Err(told_to_others(error)),
            // There is time to try again.
            _ => self.health.check(),
        }
    }

    /// Threads for work that somebody waits for.
    pub(in crate::engine) fn hurried_writers(&self) -> usize {
        match self.background {
            true => processors(),
            false => 1,
        }
    }

    /// Makes a checkpoint. After an error that leaves the engine writable everything is as before. During a pause there
    /// is none, which is an error for who awaits it: he may be the one who pauses them, and a backup may take hours. An
    /// engine that is being closed knows no pause.
    pub(in crate::engine) fn checkpoint(&self, clean: bool, urgency: Urgency) -> Result<()> {
        match self.unless_paused(clean, urgency)? {
            false if urgency == Urgency::Awaited => Err(Error::CheckpointsPaused),
            _ => Ok(()),
        }
    }

    /// Makes a checkpoint that has what arrived.
    pub(in crate::engine) fn checkpoint_with(&self, arrival: Arrival) -> Result<()> {
        let space = arrival.space;
        {
            let mut arrivals = self.care.arrivals.lock();
            debug_assert!(arrivals.iter().all(|other| other.space != space), "a file arrives twice");
            arrivals.push(arrival);
        }
        let made = self.checkpoint(false, Urgency::Awaited);
        // If it failed, one that others have begun since may have it none the less: the blocks stay where they are.
        self.care.arrivals.lock().retain(|waiting| waiting.space != space);
        made
    }

    /// Whether there was a checkpoint, and no pause.
    fn unless_paused(&self, clean: bool, urgency: Urgency) -> Result<bool> {
        if self.care.progress.is_paused() {
            return Ok(false);
        }
        if !clean {
            self.copy_pinned_log();
        }
        let processors = self.hurried_writers();
        let writers = || match urgency {
            Urgency::Awaited => processors,
            Urgency::Background if self.log_is_filling() => processors.div_ceil(2),
            Urgency::Background => processors.div_ceil(4),
        };
        let files = if self.background { FILES_AT_ONCE } else { 1 };
        let pace = Pace { writers: &writers, files };
        match self.try_checkpoint(clean, &pace) {
            // Nothing of what it wrote is kept, and now there is space for it.
            Err(Error::DiskFull { .. }) if self.log.make_space(DiskReserve::spend_for_checkpoint) => {
                self.try_checkpoint(clean, &pace)
            }
            result => result,
        }
    }

    /// `false`: checkpoints are paused. A table that cannot be read is closed, and the others get their checkpoint.
    pub(in crate::engine) fn try_checkpoint(&self, clean: bool, pace: &Pace<'_>) -> Result<bool> {
        loop {
            // Each round closes a table.
            if let Some(ended) = self.attempt_checkpoint(clean, pace) {
                return ended;
            }
        }
    }

    /// `None`: it failed because of a table that is closed now.
    fn attempt_checkpoint(&self, clean: bool, pace: &Pace<'_>) -> Option<Result<bool>> {
        if let Err(error) = self.health.check() {
            return Some(Err(error));
        }
        let capture = || (!self.care.progress.is_paused()).then(|| self.capture(clean));
        let leave = |capture: &mut Capture, outcome| self.leave_to_the_next(capture, outcome);
        let Some(result) = self.care.checkpointer.run(pace, capture, leave) else { return Some(Ok(false)) };
        self.tell_remarks();
        match result {
            Ok((capture, leftover)) => {
                if let Some(error) = leftover {
                    let text = format!("after a checkpoint space could not be given back: {error}");
                    self.observer.message(LogLevel::Warning, &text);
                }
                self.counted.checkpoints.add(1);
                self.checkpoint_done(capture);
                Some(Ok(true))
            }
            Err(failure) if self.close_unreadable(&failure) => None,
            Err(failure) => {
                self.counted.failed_checkpoints.add(1);
                if failure.fatal || matches!(failure.error, Error::ReadOnly(_)) {
                    self.fail(&format!("a checkpoint failed: {}", failure.error));
                } else if !self.care.progress.is_failing() {
                    // Once: it is tried again each second.
                    let text = format!("a checkpoint failed and will be tried again: {}", failure.error);
                    self.observer.message(LogLevel::Warning, &text);
                }
                self.care.progress.ended(Some(failure.error.clone()));
                Some(Err(failure.error))
            }
        }
    }

    /// See `crate::checkpoint` for why the order matters.
    pub(in crate::engine) fn capture(&self, clean: bool) -> Capture {
        let _ddl = self.definitions.ddl.write();
        // Row counts, and which commits they contain, are of one moment; that of T comes later.
        let (published, early, counted_at, mut trees) = self.log.while_settled(|published, early| {
            let dirty = self.data.dirty.take();
            let image = |tree: Arc<Tree>| TreeImage { entries: tree.entries(), tree };
            let counted_at = self.clock.last_committed();
            (published, early.to_vec(), counted_at, dirty.into_iter().map(image).collect::<Vec<_>>())
        });
        let held = self.undecided.holds.first();
        let (damaged, apart) = {
            let damaged = self.care.damaged.lock();
            ((!damaged.trees.is_empty()).then_some(damaged.replay_from), damaged.spaces.clone())
        };
        let snapshot = self.clock.internal_snapshot();
        let log_end = self.log.end();
        let direct_bytes = self.care.progress.direct_bytes.load(Ordering::SeqCst);
        self.care.progress.attempted.store(log_end, Ordering::SeqCst);
        let replay_from = [held, damaged].into_iter().flatten().fold(published, Lsn::min);
        debug_assert!(published <= log_end, "a replay from behind the end of the log");
        debug_assert!(early.iter().all(|&record| record >= published), "a record is contained twice");
        debug_assert!(counted_at <= snapshot.timestamp(), "counts of commits that the images have not");
        // Same space after same space, and the same order in each run.
        trees.sort_by_key(|image| (image.tree.space().id(), image.tree.id()));
        // They stay in the list until the checkpoint is durable: a table that is opened meanwhile finds its counter
        // there.
        let counters =
            self.data.counters.lock().iter().map(|(&table, counter)| (table, counter.value())).collect();
        Capture {
            snapshot,
            log_end,
            replay_from,
            counted: Contained { common: Counted { before: published, end: log_end, early }, apart },
            counted_at,
            direct_bytes,
            trees,
            counters,
            digests: self.data.digests.captured(),
            arrivals: std::mem::take(&mut *self.care.arrivals.lock()),
            dropped: std::mem::take(&mut *self.definitions.dropped.lock()),
            orphans: self.definitions.orphans.lock().keys().copied().collect(),
            // Relaxed: identifiers are given out under `ddl`, or (transactions) only need to be above those in the log
            // before `replay_from`.
            next_tree: self.ids.tree.load(Ordering::Relaxed),
            next_txn: self.ids.txn.load(Ordering::Relaxed), // Relaxed: as above
            next_space: self.ids.space.load(Ordering::Relaxed), // Relaxed: as above
            // Without log the next start would not have what a closed table needs.
            clean: clean && damaged.is_none(),
        }
    }

    /// Takes back what a full disk was given, if there is room for it.
    pub(in crate::engine) fn fill_reserve(&self) {
        let was_spent = self.reserve.is_spent();
        match self.reserve.fill() {
            Ok(()) if was_spent => {
                self.observer.message(LogLevel::Note, "the disk has room again: writes go on")
            }
            Err(error) if !was_spent => {
                let text = format!(
                    "no reserve of disk space: {error}. Until there is room, only what deletes is written"
                );
                self.observer.message(LogLevel::Warning, &text);
            }
            _ => {}
        }
    }

    /// The disk was full: looks whether it has room again, after a checkpoint if that may give any.
    pub(in crate::engine) fn regain_space(&self) {
        if !self.reserve.is_spent() || self.health.check().is_err() {
            return;
        }
        match self.data.dirty.len() == 0 && self.definitions.dropped.lock().is_empty() {
            true => self.fill_reserve(),
            false => self.care.progress.ask(),
        }
    }

    /// Writes that take space are refused while the reserve is spent.
    #[inline]
    pub(in crate::engine) fn check_space(&self) -> Result<()> {
        match self.reserve.is_spent() {
            true => Err(Error::DiskFull { path: self.dir.clone() }),
            false => Ok(()),
        }
    }

    /// What a checkpoint does not contain is for the next one: all that was captured if it failed; else the trees that
    /// have more than their images, or other counts than stand beside these: what is published between the look at the
    /// counts and T is in the one and not in the other, and the next replay begins behind it.
    pub(in crate::engine) fn leave_to_the_next(&self, capture: &mut Capture, outcome: Outcome) {
        for image in capture.trees.iter().filter(|image| image.entries != image.tree.entries()) {
            image.tree.note_miscounted();
        }
        let trees = capture.trees.iter().map(|image| &image.tree);
        match outcome {
            Outcome::Durable => {
                self.mark_dirty(trees.filter(|tree| tree.awaits_checkpoint()));
                self.care.damaged.lock().checkpoint_durable(capture);
            }
            Outcome::Failed => {
                self.mark_dirty(trees);
                self.care.arrivals.lock().append(&mut capture.arrivals);
                self.definitions.dropped.lock().append(&mut capture.dropped);
            }
        }
    }

    pub(in crate::engine) fn checkpoint_done(&self, capture: Capture) {
        // Relaxed: see `has_many_changes`.
        self.care.progress.changes_left.store(self.context.changes.approximate(), Ordering::Relaxed);
        let before = capture.counted.common.before;
        let logged = before.saturating_sub(self.care.progress.began.fetch_max(before, Ordering::SeqCst));
        let direct = self.care.progress.direct_began.fetch_max(capture.direct_bytes, Ordering::SeqCst);
        let changed = logged.saturating_add(capture.direct_bytes.saturating_sub(direct));
        // Those that have moved on are for the next one.
        self.data
            .counters
            .lock()
            .retain(|table, counter| capture.counters.get(table) != Some(&counter.value()));
        self.data.digests.stored(&capture.digests);
        let at = capture.snapshot.timestamp();
        let trees: Vec<Arc<Tree>> = capture.trees.iter().map(|image| image.tree.clone()).collect();
        trees.iter().for_each(|tree| tree.note_written(at));
        drop(capture);
        if self.care.progress.is_failing() {
            self.observer.message(LogLevel::Note, "checkpoints succeed again");
        }
        self.care.progress.ended(None);
        if let Err(error) = self.punch_holes(&trees) {
            let text = format!("free space of a table could not be given back to the file system: {error}");
            self.observer.message(LogLevel::Warning, &text);
        }
        if self.reserve.is_spent() {
            self.fill_reserve();
        }
        self.care.alike.checkpoint_durable(trees.iter());
        let written = trees.len();
        drop(trees);
        if changed >= TRIM_BYTES {
            trim_heaps();
        }
        self.release_idle_tables(at, written);
        self.remove_left_over();
        self.mind_pinned_log();
    }

    /// Gives free ranges inside the files of `trees` back to the file system, unless the next checkpoint is about to
    /// fill them. Nobody waits for it. As long as the trees are held nobody opens one of these files anew, with other
    /// books of what is free.
    fn punch_holes(&self, trees: &[Arc<Tree>]) -> Result<()> {
        debug_assert!(trees.is_sorted_by_key(|tree| tree.space().id()), "a file is looked at twice");
        let (mut left, mut last, mut result) = (HOLES, None, Ok(()));
        // Those of one file lie side by side.
        for space in trees.iter().map(|tree| tree.space()) {
            if last.replace(space.id()) != Some(space.id()) {
                match space.punch_holes(SMALLEST_HOLE, left, &|| self.checkpoint_is_due()) {
                    Ok(punched) => left -= punched,
                    Err(error) => result = result.and(Err(error)),
                }
            }
        }
        result
    }

    /// After a checkpoint at `at` that had `written` trees to write.
    fn release_idle_tables(&self, at: Timestamp, written: usize) {
        let oldest = self.clock.snapshots().first().map_or(at, |oldest| oldest.timestamp);
        let mut looks = self.data.tables.lock().looks(written);
        while looks > 0 {
            let count = looks.min(LOOKS_AT_ONCE);
            looks -= count;
            let idle = {
                let mut tables = self.data.tables.lock();
                let counters = self.data.counters.lock();
                // A table that is opened anew has other books of its file: those of today would give back in vain what
                // these trees took.
                let retired = self
                    .definitions
                    .dropped
                    .lock()
                    .iter()
                    .flat_map(Dropped::retired_from)
                    .collect::<HashSet<u32>>();
                let is_dirty = |table: &Table| {
                    table.all_trees().iter().any(|tree| tree.is_entered() || tree.awaits_checkpoint())
                        || retired.contains(&table.space().id())
                        || !table.counter_is_settled()
                        || table.counter_id().is_some_and(|id| counters.contains_key(&id))
                };
                tables.release_idle(count, oldest, is_dirty)
            };
            drop(idle);
        }
    }
}
