//! What the leader of a group does: writes what is queued, publishes its members in log order, tells them, and hands
//! the lead on.
//!
//! Invariant: whatever goes wrong, also a panic of a closure, each member of the group is told, and the lead stays with
//! somebody while anybody waits.

use super::{Group, Log, Member, Queue};
use crate::file::DiskReserve;
use crate::log::segment::Failure;
use crate::log::slot::SlotState;
use crate::log::writer::Entry;
use crate::sync::atomic::Ordering::SeqCst;
use crate::sync::MutexGuard;
use crate::Error;
use std::mem;
use std::panic::{catch_unwind, resume_unwind, AssertUnwindSafe};

/// Groups that a leader writes before somebody else must.
const GROUPS_PER_LEADER: u32 = 8;

/// How much of a group is done.
#[derive(Default)]
struct Progress {
    entries: usize,
    members: usize,
}

impl Log {
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
        let mut group = mem::take(&mut queue.group);
        queue.bytes = 0;
        let poisoned = queue.check();
        drop(queue);
        let closures = group.members.iter().filter(|member| member.publish.is_some()).count();
        let mut progress = Progress::default();
        let mut panic = None;
        let outcome = match poisoned {
            Err(error) => Err(Failure::Fatal(error)),
            Ok(()) => catch_unwind(AssertUnwindSafe(|| self.write(&mut group, &mut progress)))
                .unwrap_or_else(|payload| {
                    panic = Some(payload);
                    Err(Failure::Fatal(Error::ReadOnly("a panic while the log was written".into())))
                }),
        };
        let members = mem::take(&mut group.members);
        let mut queue = self.queue.lock();
        let failed = match outcome {
            Ok(()) => None,
            Err(Failure::Clean(error)) => {
                let rest = group.entries.drain(progress.entries..);
                requeue(&mut queue, rest, &members[progress.members..]);
                Some(error)
            }
            Err(Failure::Fatal(error)) => Some(queue.poison_by(error)),
        };
        debug_assert!(queue.unpublished >= closures, "each closure was counted when it was queued");
        queue.unpublished -= closures;
        // The lead goes on before this group is told, so that the device does not wait.
        let keep = may_keep
            && panic.is_none()
            && !group.sync
            && !queue.group.sync
            && !queue.group.members.is_empty();
        match queue.group.members.first() {
            Some(_) if keep => {}
            Some(next) => next.slot.set(SlotState::Lead),
            None => queue.led = false,
        }
        drop(queue);
        for (i, member) in members.into_iter().enumerate() {
            let outcome = match &failed {
                Some(error) if i >= progress.members => Err(error.clone()),
                _ => Ok(()),
            };
            drop(member.publish);
            member.slot.set(SlotState::Done(outcome));
        }
        if let Some(payload) = panic {
            resume_unwind(payload);
        }
        keep.then(|| self.queue.lock())
    }

    /// Writes the entries segment by segment, publishing what is in each as soon as it is as durable as the group
    /// wants.
    fn write(&self, group: &mut Group, progress: &mut Progress) -> Result<(), Failure> {
        let mut writer = self.writer.lock();
        loop {
            let outcome =
                writer.write(&self.directory, &group.entries[progress.entries..]).and_then(|count| {
                    if group.sync {
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
            self.written.store(writer.position, SeqCst);
            self.synced.store(writer.synced, SeqCst);
            progress.entries += match outcome {
                // Nothing of it was written, and now there is space for it.
                Err(Failure::Clean(Error::DiskFull { .. }))
                    if self.make_space(DiskReserve::spend_for_log) =>
                {
                    0
                }
                outcome => outcome?,
            };
            while let Some(member) = group.members.get_mut(progress.members) {
                if member.end > writer.position {
                    break;
                }
                progress.members += 1;
                if let Some(publish) = member.publish.take() {
                    publish(member.end);
                }
            }
            self.published.fetch_max(writer.position, SeqCst);
            debug_assert!(progress.entries <= group.entries.len(), "more written than there was");
            if progress.entries == group.entries.len() {
                return Ok(());
            }
        }
    }
}

/// Puts what could not be written back to the front of the queue; records whose members are told of the failure become
/// void.
fn requeue(queue: &mut Queue, entries: impl Iterator<Item = Entry>, failed: &[Member]) {
    let mut void = failed.iter().filter_map(|member| member.record).peekable();
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
