//! What the leader of a group does: writes what is queued, publishes its members in log order, tells them, and hands
//! the lead on.
//!
//! Invariant: whatever goes wrong, also a panic of a closure, each member of the group is told, and the lead stays with
//! somebody while anybody waits.

use super::{Group, Log, Queue};
use crate::file::DiskReserve;
use crate::log::segment::Failure;
use crate::log::slot::SlotState;
use crate::log::writer::{Entry, Payload};
use crate::log::Lsn;
use crate::sync::atomic::Ordering::{Relaxed, SeqCst};
use crate::sync::MutexGuard;
use crate::{Error, Result};
use std::any::Any;
use std::mem;
use std::panic::{catch_unwind, resume_unwind, AssertUnwindSafe};

/// Groups that a leader writes before somebody else must.
const GROUPS_PER_LEADER: u32 = 8;

/// A list for so many is used again for the next group.
const KEPT: usize = 1024;

type Written = Result<(), Failure>;

/// Runs `write`; a panic in it is a failure after which only recovery tells, and comes back to be gone on with.
fn caught(write: impl FnOnce() -> Written) -> (Written, Option<Box<dyn Any + Send>>) {
    match catch_unwind(AssertUnwindSafe(write)) {
        Ok(outcome) => (outcome, None),
        Err(panic) => {
            let error = Error::ReadOnly("a panic while the log was written".into());
            (Err(Failure::Fatal(error)), Some(panic))
        }
    }
}

impl Log {
    /// Commits a record that nobody leads a group for and that nobody waits before: on the stack of who commits.
    pub(super) fn commit_alone<'a>(
        &'a self,
        mut queue: MutexGuard<'a, Queue>,
        payload: Payload,
        sync: bool,
        publish: impl FnOnce(Lsn),
    ) -> Result<Lsn> {
        debug_assert!(!queue.led && queue.group.members.is_empty(), "somebody is before it");
        let (start, end) = queue.push(payload);
        self.move_end(end);
        queue.led = true;
        queue.unpublished += 1;
        queue.bytes = 0;
        let mut entries = mem::take(&mut queue.group.entries);
        drop(queue);
        let (mut written, mut publish) = (0, Some(publish));
        let (outcome, panic) = caught(|| {
            self.write(&entries, sync, &mut written, |position| {
                if let Some(publish) = publish.take_if(|_| end <= position) {
                    publish(end);
                }
            })
        });
        let mut queue = self.queue.lock();
        let void = publish.is_some().then_some(start);
        let failed = settle(&mut queue, outcome, entries.drain(written..), void.into_iter());
        queue.unpublished -= 1;
        keep_memory(&mut queue.group.entries, entries);
        let keep = panic.is_none() && may_stay(&queue, sync);
        match keep {
            true => self.lead(queue),
            false => hand_on(&mut queue),
        }
        if let Some(panic) = panic {
            resume_unwind(panic);
        }
        match failed {
            Some(error) if publish.is_some() => Err(error),
            _ => Ok(end),
        }
    }

    /// Writes the group that has formed and tells its members; then hands the lead on. A leader that need not sync
    /// keeps the lead for some groups: the next one might be asleep, and the log idle until it gets a processor.
    pub(super) fn lead<'a>(&'a self, mut queue: MutexGuard<'a, Queue>) {
        for round in 1.. {
            match self.lead_once(queue, round < GROUPS_PER_LEADER) {
                Some(next) => queue = next,
                None => return,
            }
        }
    }

    /// Returns the queue if the lead stays here for another group.
    fn lead_once<'a>(
        &'a self,
        mut queue: MutexGuard<'a, Queue>,
        may_keep: bool,
    ) -> Option<MutexGuard<'a, Queue>> {
        debug_assert!(queue.led, "a group is written without a leader");
        let Group { mut entries, mut members, sync } = mem::take(&mut queue.group);
        queue.bytes = 0;
        let poisoned = queue.check();
        drop(queue);
        let closures = members.iter().filter(|member| member.publish.is_some()).count();
        let (mut written, mut told) = (0, 0);
        let (outcome, panic) = match poisoned {
            Err(error) => (Err(Failure::Fatal(error)), None),
            Ok(()) => caught(|| {
                self.write(&entries, sync, &mut written, |position| {
                    while let Some(member) = members.get_mut(told).filter(|member| member.end <= position) {
                        told += 1;
                        if let Some(publish) = member.publish.take() {
                            publish(member.end);
                        }
                    }
                })
            }),
        };
        let mut queue = self.queue.lock();
        let void = members[told..].iter().filter_map(|member| member.record);
        let failed = settle(&mut queue, outcome, entries.drain(written..), void);
        debug_assert!(queue.unpublished >= closures, "each closure was counted when it was queued");
        queue.unpublished -= closures;
        // The lead goes on before this group is told, so that the device does not wait.
        let keep = may_keep && panic.is_none() && may_stay(&queue, sync);
        if !keep {
            hand_on(&mut queue);
        }
        drop(queue);
        for (i, member) in members.into_iter().enumerate() {
            let outcome = match &failed {
                Some(error) if i >= told => Err(error.clone()),
                _ => Ok(()),
            };
            drop(member.publish);
            member.slot.set(SlotState::Done(outcome));
        }
        if let Some(panic) = panic {
            resume_unwind(panic);
        }
        keep.then(|| self.queue.lock())
    }

    /// Writes the entries segment by segment, `written` counts them, and has `publish` publish what ends at or before
    /// the position that it is given as soon as that is as durable as the group wants.
    fn write(
        &self,
        entries: &[Entry],
        sync: bool,
        written: &mut usize,
        mut publish: impl FnMut(Lsn),
    ) -> Written {
        let mut writer = self.writer.lock();
        loop {
            let outcome = writer.write(&self.directory, &entries[*written..]).and_then(|count| {
                if sync {
                    writer.sync()?;
                }
                Ok(count)
            });
            debug_assert!(writer.synced <= writer.position, "synced before it is written");
            debug_assert!(writer.position <= self.end(), "written behind what was queued");
            debug_assert!(
                self.written() <= writer.position && self.synced() <= writer.synced,
                "the log shrank"
            );
            // Relaxed: a statistic.
            self.buffer_bytes.store(writer.buffered(), Relaxed);
            self.written.store(writer.position, SeqCst);
            self.synced.store(writer.synced, SeqCst);
            *written += match outcome {
                // Nothing of it was written, and now there is space for it.
                Err(Failure::Clean(Error::DiskFull { .. }))
                    if self.make_space(DiskReserve::spend_for_log) =>
                {
                    0
                }
                outcome => outcome?,
            };
            publish(writer.position);
            self.published.fetch_max(writer.position, SeqCst);
            debug_assert!(*written <= entries.len(), "more written than there was");
            if *written == entries.len() {
                return Ok(());
            }
        }
    }
}

/// What has come of a group: an error for those that it leaves, of which `void` are the records. What else could not be
/// written, `rest`, is tried again.
fn settle(
    queue: &mut Queue,
    outcome: Written,
    rest: impl Iterator<Item = Entry>,
    void: impl Iterator<Item = Lsn>,
) -> Option<Error> {
    match outcome {
        Ok(()) => None,
        Err(Failure::Clean(error)) => {
            requeue(queue, rest, void);
            Some(error)
        }
        Err(Failure::Fatal(error)) => Some(queue.poison_by(error)),
    }
}

/// Whether the lead may stay where it is for the next group: neither that nor the last one, `synced` or not, waits for
/// the device.
fn may_stay(queue: &Queue, synced: bool) -> bool {
    !synced && !queue.group.sync && !queue.group.members.is_empty()
}

/// The lead goes to the first who waits for the next group.
fn hand_on(queue: &mut Queue) {
    match queue.group.members.first() {
        Some(next) => next.slot.set(SlotState::Lead),
        None => queue.led = false,
    }
}

/// The list `of` takes the memory that a list before it had, if it has none itself.
fn keep_memory(of: &mut Vec<Entry>, mut before: Vec<Entry>) {
    if of.capacity() == 0 && before.capacity() <= KEPT {
        before.clear();
        *of = before;
    }
}

/// Puts what could not be written back to the front of the queue; the records of those who are told of the failure
/// become void.
fn requeue(queue: &mut Queue, entries: impl Iterator<Item = Entry>, void: impl Iterator<Item = Lsn>) {
    let mut void = void.peekable();
    let mut kept: Vec<Entry> = Vec::new();
    for mut entry in entries {
        if void.next_if_eq(&entry.lsn).is_some() {
            entry.void();
        }
        if !kept.last_mut().is_some_and(|last| last.merge(&entry)) {
            kept.push(entry);
        }
    }
    debug_assert!(void.next().is_none(), "a failed record that was not in the group");
    if let (Some(last), Some(next)) = (kept.last(), queue.group.entries.first()) {
        debug_assert_eq!(last.end(), next.lsn, "what was queued meanwhile follows");
    }
    queue.bytes += kept.iter().map(Entry::memory).sum::<usize>();
    queue.group.entries.splice(0..0, kept);
}
