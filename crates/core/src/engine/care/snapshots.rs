//! Old snapshots: what they hold, and what happens when that is too much.
//!
//! All snapshots together may hold [`Settings::history_max_bytes`](crate::engine::Settings::history_max_bytes). When
//! they hold more, first the history that nobody needs any more goes; then the oldest snapshot that holds any gives way
//! (its next read is [`Error::SnapshotTooOld`]), and again, until the rest fits. Or writers wait until a snapshot ends,
//! if the engine is told so. The thread `teak-history` does this; without background threads the next writer does.
//! Snapshots that the engine takes for itself (checkpoints) never give way: they end by themselves.

use crate::engine::data::statistics::SnapshotInfo;
use crate::engine::shared::{Engine, Shared};
use crate::lock::WaitRequest;
use crate::mvcc::SnapshotInfo as Open;
use crate::options::{HistoryFull, LogLevel};
use crate::{Error, Result};
use std::time::Duration;

/// How often a writer that waits for room looks whether it was interrupted.
const LOOK: Duration = Duration::from_millis(100);

impl Engine {
    /// Open snapshots, oldest first, with what is kept for each; also those that had to give way.
    pub fn snapshots(&self) -> Vec<SnapshotInfo> {
        let mut held = self.shared.context.past.holders();
        let info = |open: Open| {
            // Of several with one timestamp the first has it all; who gave way has nothing.
            let held = match open.fate.gave_way() {
                true => None,
                false => held.remove(&open.timestamp),
            };
            let (age, too_old) = (open.fate.age(), open.fate.gave_way());
            SnapshotInfo {
                session: open.label,
                timestamp: open.timestamp,
                age,
                held: held.unwrap_or_default(),
                too_old,
            }
        };
        self.shared.clock.snapshots().into_iter().filter(|open| !open.internal).map(info).collect()
    }
}

impl Shared {
    /// What the thread `teak-history` does when it is woken, and about once a second.
    pub(in crate::engine) fn look_after_history(&self) {
        self.warn_of_old_snapshots();
        let attention = self.context.attention();
        // What could not be read or written stays; the next look tries again. No duty waits for another, nor a tree.
        let duties = [
            ("empty leaves", attention.retire_spent()),
            ("history of old snapshots", self.keep_history_small()),
            ("small leaves", attention.merge_thin()),
            ("leaves of large transactions", attention.fold_due()),
            ("tables in memory", attention.settle()),
        ];
        let told = |(duty, result): (&str, Result<()>)| Some(format!("{duty}: {}", result.err()?));
        self.tell_history_trouble(duties.into_iter().filter_map(told).collect());
        self.context.past.bell().looked();
    }

    /// Once, until it is another: the next look may be a second away and find the same.
    fn tell_history_trouble(&self, troubles: Vec<String>) {
        let trouble = (!troubles.is_empty()).then(|| troubles.join("; "));
        let mut last = self.care.history_trouble.lock();
        if let Some(text) = trouble.as_ref().filter(|_| *last != trouble) {
            self.observer.message(LogLevel::Warning, text);
        }
        *last = trouble;
    }

    /// Collects garbage if it is worth it; makes snapshots give way if that is due.
    fn keep_history_small(&self) -> Result<()> {
        let past = &self.context.past;
        let mut result = Ok(());
        loop {
            let full = past.is_full();
            let garbage = self.history_garbage();
            if garbage > 0 && (full || garbage >= past.bytes() / 8) {
                // What cannot be collected counts on; snapshots give way to it as to any other.
                result = result.and(self.context.attention().collect_history());
            }
            if !past.is_full() {
                return result;
            }
            if past.bytes() <= past.maximum() && full && garbage > 0 {
                // The disk was full; some of it is free again.
                past.relax();
                return result;
            }
            let waits = self.settings.history_full() == HistoryFull::Wait && past.bytes() > past.maximum();
            if waits || !self.oldest_gives_way() {
                past.relax();
                return result;
            }
        }
    }

    /// Bytes that snapshots held which are not there any more. Some of it others need as well.
    fn history_garbage(&self) -> u64 {
        let active = self.clock.newest_active_snapshots();
        let holders = self.context.past.holders();
        holders.iter().filter(|(&holder, _)| !active.contains(holder)).map(|(_, held)| held.bytes()).sum()
    }

    /// The oldest snapshot that holds anything gives way; `false`: there is none.
    fn oldest_gives_way(&self) -> bool {
        let past = &self.context.past;
        let holders = past.holders();
        let holds =
            |open: &&Open| !open.internal && !open.fate.gave_way() && holders.contains_key(&open.timestamp);
        let open = self.clock.snapshots();
        let Some(oldest) = open.iter().find(holds) else { return false };
        let maximum = past.maximum();
        if self.clock.give_way(oldest, maximum) {
            self.counted.snapshots_too_old.add(1);
            let held = holders.get(&oldest.timestamp).map_or(0, |held| held.bytes());
            let text = format!(
                "the snapshot of session {} gives way at the age of {} s: it held {held} of {} bytes of old versions, the maximum is {maximum}",
                oldest.label,
                oldest.fate.age().as_secs(),
                past.bytes(),
            );
            self.observer.message(LogLevel::Warning, &text);
        }
        true
    }

    fn warn_of_old_snapshots(&self) {
        let limit = self.settings.snapshot_warn_age();
        if limit.is_zero() {
            return;
        }
        let old = |open: &Open| !open.internal && open.fate.age() >= limit && open.fate.warn();
        for open in self.clock.snapshots().into_iter().filter(old) {
            let held = self.context.past.holders().remove(&open.timestamp).unwrap_or_default();
            let text = format!(
                "session {} has had its snapshot open for {} s; {} old versions ({} bytes) are kept for it",
                open.label,
                open.fate.age().as_secs(),
                held.versions,
                held.bytes(),
            );
            self.observer.message(LogLevel::Warning, &text);
        }
    }

    /// Before a write, which holds no latch. Without background threads it does their work.
    #[inline]
    pub(in crate::engine) fn mind_history(&self) {
        if !self.background && self.context.past.is_full() {
            self.look_after_history();
        }
    }

    /// Whether writers have to wait for old snapshots.
    #[inline]
    pub(in crate::engine) fn history_is_full(&self) -> bool {
        self.context.past.is_full() && self.settings.history_full() == HistoryFull::Wait
    }

    /// Returns when old snapshots hold no more than they may, if writers are told to wait for that.
    pub(in crate::engine) fn wait_for_history(&self, wait: &WaitRequest<'_>) -> Result<()> {
        if !self.history_is_full() {
            return Ok(());
        }
        let (past, begin) = (&self.context.past, self.time.now());
        self.counted.history_waits.add(1);
        (wait.before_wait)();
        while self.history_is_full() {
            past.bell().ring();
            if (wait.interrupted)() {
                return Err(Error::Interrupted);
            }
            let left = wait.timeout.saturating_sub(self.time.since(begin));
            if left.is_zero() {
                return Err(Error::HistoryFull { maximum: past.maximum() });
            }
            let (look, mut goes_on) = (left.min(LOOK), true);
            self.time.wait_until(self.time.now() + look, || goes_on = past.bell().wait_for_room(look));
            if !goes_on {
                break;
            }
        }
        Ok(())
    }
}
