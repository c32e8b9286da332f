//! Group commit. Committers queue their records under a short mutex; the first becomes the leader, takes the whole
//! queue, writes and syncs it as one, publishes its members in log order and wakes them. Meanwhile the next group
//! forms, and the leader hands the lead to a member of it. Who finds nobody before it is a group of its own. Syncs that
//! nobody commits with, once a second or before a checkpoint ([`Log::sync_up_to`]), go on beside the groups.
//!
//! Invariants:
//! 1. An LSN that was handed out never changes. When a write fails, the failed records leave a skip frame of their
//!    size.
//! 2. Closures run in the order of their records: a record that wants no write is published at once only while no
//!    earlier one waits for its publication; otherwise it waits with them.
//! 3. A record without a waiting member (appended, or published before it was written) is never dropped: it stays
//!    queued when its write fails, and is lost only with the whole log's poisoning.
//!
//! There are no threads here: whoever commits or flushes does the work, so a simulation can drive the log on one
//! thread.

use crate::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed, Ordering::SeqCst};
use std::mem;
use std::path::Path;
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use crate::counts::Timed;
use crate::sync::{Mutex, MutexGuard};

use super::prerequisites::{Prerequisite, Prerequisites};
use super::reader::{self, Gathering, RecordReader, Visit};
use super::segment::{list_segments, Failure, FrameHeader, Segment, SegmentDirectory, MAX_SPARES};
use super::slot::{Slot, SlotState};
use super::writer::{Entry, Payload, Writer};
use super::Lsn;
use crate::file::{DiskReserve, FileSystem};
use crate::{CommitFlush, Error, Result};

mod leader;

/// Times a member looks whether its group is written before it sleeps.
const YIELDS_BEFORE_SLEEP: u32 = 16;
/// More than this in the queue is written before more is queued without waiting, in bytes.
const MAX_QUEUED_BYTES: usize = 8 << 20;

/// The write-ahead log. All methods may be called from any number of threads.
pub struct Log {
    directory: SegmentDirectory,
    queue: Mutex<Queue>,
    /// Locked by the leader only.
    writer: Mutex<Writer>,
    prerequisites: Arc<Prerequisites>,
    reserve: OnceLock<Arc<DiskReserve>>,
    end: AtomicU64,
    written: AtomicU64,
    synced: AtomicU64,
    published: AtomicU64,
    /// Of the writer's buffer, as it was when the last group was written.
    buffer_bytes: AtomicUsize,
    /// End of the last frame that [`Log::seal`] wrote.
    sealed: AtomicU64,
}

/// What [`Log::recover`] found.
pub struct Recovered {
    /// Ready to write.
    pub log: Log,
    /// Where the log was known to be synced when it was found; what comes after has been synced now.
    pub synced: Lsn,
}

type Publish = Box<dyn FnOnce(Lsn) + Send>;

/// One who waits for a group.
struct Member {
    slot: Arc<Slot>,
    /// The group is done for it when the log is written up to here.
    end: Lsn,
    /// Its record, which is void if the write fails, starts here.
    record: Option<Lsn>,
    publish: Option<Publish>,
}

#[derive(Default)]
struct Group {
    /// Contiguous in LSN.
    entries: Vec<Entry>,
    /// Ascending in `end`.
    members: Vec<Member>,
    sync: bool,
}

struct Queue {
    group: Group,
    /// Memory of the entries in `group`.
    bytes: usize,
    end: Lsn,
    /// Somebody writes a group, or has been told to.
    led: bool,
    /// Members with a closure that has not run yet, including those of the group that is being written.
    unpublished: usize,
    /// Records at or after `Log::published` that were published when they were queued.
    early: Vec<Lsn>,
    poison: Option<String>,
}

impl Queue {
    fn check(&self) -> Result<()> {
        self.poison.as_ref().map_or(Ok(()), |cause| Err(Error::ReadOnly(cause.clone())))
    }

    /// The log takes no more records, as `error` has come; what those are told who wait.
    fn poison_by(&mut self, error: Error) -> Error {
        let cause = match error {
            Error::ReadOnly(cause) => cause,
            other => other.to_string(),
        };
        Error::ReadOnly(self.poison.get_or_insert(cause).clone())
    }

    /// Queues a frame; returns start and end.
    fn push(&mut self, payload: Payload) -> (Lsn, Lsn) {
        let entry = Entry { lsn: self.end, payload };
        let (start, end) = (entry.lsn, entry.end());
        debug_assert!(end > start && start % 8 == 0, "a frame from {start} to {end}");
        debug_assert!(
            self.group.entries.last().is_none_or(|last| last.end() == start),
            "a gap before {start}"
        );
        self.bytes += entry.memory();
        self.end = end;
        self.group.entries.push(entry);
        (start, end)
    }
}

impl Log {
    /// Creates an empty log in `dir` (made if missing), durably; its first record is at `start`, rounded up to a
    /// multiple of 8. An empty log that is there is replaced; one with records is [`Error::Corrupt`].
    pub fn create(fs: Arc<dyn FileSystem>, dir: &Path, segment_bytes: u64, start: Lsn) -> Result<Log> {
        fs.create_dir(dir)?;
        if let Some(parent) = dir.parent().filter(|parent| !parent.as_os_str().is_empty()) {
            fs.sync_dir(parent)?;
        }
        let start = start.next_multiple_of(8);
        let present = list_segments(&*fs, dir)?;
        if let Some(&first) = present.first() {
            let mut records = 0;
            reader::scan(&*fs, dir, first, &mut |_, _| {
                records += 1;
                Ok(())
            })?;
            if records > 0 {
                return Err(Error::corrupt(dir, 0, "there are log records where a new log is to be created"));
            }
            for &old in present.iter().rev() {
                fs.remove(&super::segment::segment_path(dir, old))?;
            }
        }
        let directory = SegmentDirectory::open(fs, dir, segment_bytes)?;
        let segment = match directory.start_segment(start) {
            Ok(segment) => segment,
            Err(Failure::Clean(error) | Failure::Fatal(error)) => return Err(error),
        };
        Ok(Log::new(directory, Some(segment), start))
    }

    /// Scans the log from `from` like [`Log::scan`], on several threads, and returns it positioned at its end, ready to
    /// write. Everything that was visited is durable when this returns. At a record that is not `intact` the log ends,
    /// as at one that fails its checksum, unless it is known to have been synced further: then the record is visited
    /// all the same.
    pub fn recover<P: Default + Send>(
        fs: Arc<dyn FileSystem>,
        dir: &Path,
        segment_bytes: u64,
        from: Lsn,
        gathering: Gathering<'_, P>,
    ) -> Result<Recovered> {
        let directory = SegmentDirectory::open(fs, dir, segment_bytes)?;
        let scanned = reader::gather(&*directory.fs, dir, from, gathering)?;
        reader::rewrite_unsynced(&*directory.fs, dir, &scanned)?;
        Ok(Recovered { log: Log::new(directory, None, scanned.end), synced: scanned.synced })
    }

    /// A log that nobody is going to write to, positioned at `end`: nothing is read or changed.
    pub fn look_at(fs: Arc<dyn FileSystem>, dir: &Path, segment_bytes: u64, end: Lsn) -> Result<Log> {
        Ok(Log::new(SegmentDirectory::look_at(fs, dir, segment_bytes)?, None, end))
    }

    /// A log of which nothing before `start` is needed any more, whatever is there; its first record will be at
    /// `start`, where a damaged log ended. What lies behind is removed, what lies before goes with the next
    /// [`Log::release_before`].
    pub fn start_anew(fs: Arc<dyn FileSystem>, dir: &Path, segment_bytes: u64, start: Lsn) -> Result<Log> {
        fs.create_dir(dir)?;
        for behind in list_segments(&*fs, dir)?.into_iter().rev().take_while(|&segment| segment > start) {
            fs.remove(&super::segment::segment_path(dir, behind))?;
        }
        let directory = SegmentDirectory::open(fs, dir, segment_bytes)?;
        match directory.start_segment(start) {
            Ok(segment) => Ok(Log::new(directory, Some(segment), start)),
            Err(Failure::Clean(error) | Failure::Fatal(error)) => Err(error),
        }
    }

    /// Calls `visit` with start LSN and content of each record that starts at or after `from`, in log order, and
    /// returns the end of the log. Writes nothing.
    ///
    /// Unfinished records at the end are ignored. Damage before that, and a log that ends before `from`, are
    /// [`Error::Corrupt`]. `from` should be where a record starts or ends; otherwise the segment is read from its
    /// start.
    pub fn scan(fs: &dyn FileSystem, dir: &Path, from: Lsn, visit: Visit<'_>) -> Result<Lsn> {
        Ok(reader::scan(fs, dir, from, visit)?.end)
    }

    fn new(directory: SegmentDirectory, segment: Option<Segment>, end: Lsn) -> Log {
        let prerequisites = Arc::<Prerequisites>::default();
        let writer = Writer::new(segment, end, prerequisites.clone());
        let queue = Queue {
            group: Group::default(),
            bytes: 0,
            end,
            led: false,
            unpublished: 0,
            early: Vec::new(),
            poison: None,
        };
        Log {
            directory,
            queue: Mutex::new(queue),
            writer: Mutex::new(writer),
            prerequisites,
            reserve: OnceLock::new(),
            end: AtomicU64::new(end),
            written: AtomicU64::new(end),
            synced: AtomicU64::new(end),
            published: AtomicU64::new(end),
            buffer_bytes: AtomicUsize::new(0),
            sealed: AtomicU64::new(end),
        }
    }

    /// What is spent when the disk is full, before a write fails. To be called once, before others use the log.
    pub fn set_reserve(&self, reserve: Arc<DiskReserve>) {
        // The first stays.
        let _ = self.reserve.set(reserve);
    }

    /// A record that is about to be queued relies on it: from now on it is made durable before the log is. `number`
    /// names it.
    pub fn rely_on(&self, number: u32, prerequisite: Arc<dyn Prerequisite>) {
        self.prerequisites.add(number, prerequisite);
    }

    /// Queues a record, to be written with the next group or flush; returns its end LSN. When more than 8 MiB are
    /// queued they are written first, and if that fails the record is not queued.
    pub fn append(&self, record: impl Into<Vec<u8>>) -> Result<Lsn> {
        let payload = Payload::record(record.into())?;
        let mut queue = self.lock_queue_with_room()?;
        let (_, end) = queue.push(payload);
        self.move_end(end);
        Ok(end)
    }

    /// Like [`Log::append`] for a small record that tells what has been decided: it is queued even when the queue is
    /// full, so a full disk does not refuse it.
    pub fn append_decision(&self, record: impl Into<Vec<u8>>) -> Result<Lsn> {
        let payload = Payload::record(record.into())?;
        let mut queue = self.queue.lock();
        queue.check()?;
        let (_, end) = queue.push(payload);
        self.move_end(end);
        Ok(end)
    }

    /// Queues a commit that was decided elsewhere, as [`Log::append_decision`] does, and publishes it at once, before
    /// commits that are queued and wait for their group. After an error `publish` was not called.
    pub fn append_published(&self, record: impl Into<Vec<u8>>, publish: impl FnOnce()) -> Result<Lsn> {
        let payload = Payload::record(record.into())?;
        let mut queue = self.queue.lock();
        queue.check()?;
        let (start, end) = queue.push(payload);
        self.move_end(end);
        publish();
        if queue.unpublished == 0 {
            self.published.fetch_max(end, SeqCst);
        } else {
            let published = self.published();
            queue.early.retain(|&lsn| lsn >= published);
            queue.early.push(start);
        }
        Ok(end)
    }

    /// Bytes of memory that it takes: records on their way, and the buffer that they are written from. Never waits.
    pub fn memory(&self) -> u64 {
        // Relaxed: a statistic.
        self.end().saturating_sub(self.written()) + self.buffer_bytes.load(Relaxed) as u64
    }

    /// Runs `look` while nothing is being published, with [`Log::published`] and the records after it that are
    /// published all the same. It must be short and must not call the log.
    pub fn while_settled<T>(&self, look: impl FnOnce(Lsn, &[Lsn]) -> T) -> T {
        // Closures run under the one, or under the other.
        let _writer = self.writer.lock();
        let mut queue = self.queue.lock();
        let published = self.published();
        queue.early.retain(|&lsn| lsn >= published);
        look(published, &queue.early)
    }

    /// Group commit of `record`; returns its end LSN, which is also what `publish` is given.
    ///
    /// With [`CommitFlush::Sync`] the record is durable, and with [`CommitFlush::Write`] in the hands of the operating
    /// system, when this returns; `publish` ran before any member of the group returns, in log order, perhaps on
    /// another thread. With [`CommitFlush::Lazy`] the record is queued and published at once; it waits only while
    /// records before it wait for their publication. `publish` must be short and must not call the log.
    ///
    /// On an error `publish` was not called and the record is not and will not be in the log, unless the error is
    /// [`Error::ReadOnly`]: then the log takes no more records, and only recovery tells.
    pub fn commit<'a>(
        &self,
        record: impl Into<Vec<u8>>,
        flush: CommitFlush,
        publish: impl FnOnce(Lsn) + Send + 'a,
    ) -> Result<Lsn> {
        let begun = Instant::now();
        let end = self.take_commit(Payload::record(record.into())?, flush, publish)?;
        Timed::Commit.add(begun.elapsed());
        Ok(end)
    }

    fn take_commit<'a>(
        &self,
        payload: Payload,
        flush: CommitFlush,
        publish: impl FnOnce(Lsn) + Send + 'a,
    ) -> Result<Lsn> {
        let mut queue = match flush {
            CommitFlush::Lazy => self.lock_queue_with_room()?,
            CommitFlush::Sync | CommitFlush::Write => self.queue.lock(),
        };
        queue.check()?;
        if flush == CommitFlush::Lazy && queue.unpublished == 0 {
            let (_, end) = queue.push(payload);
            self.move_end(end);
            // Under the mutex, since the next must not be published before.
            publish(end);
            let before = self.published.fetch_max(end, SeqCst);
            debug_assert!(before < end, "published up to {before}, and then the record that ends at {end}");
            return Ok(end);
        }
        if !queue.led && queue.group.members.is_empty() {
            return self.commit_alone(queue, payload, flush == CommitFlush::Sync, publish);
        }
        let publish: Box<dyn FnOnce(Lsn) + Send + 'a> = Box::new(publish);
        // SAFETY: only the lifetime changes. `submit` returns or unwinds only after the leader of the group took the
        // closure out of the member and called or dropped it, so it does not outlive 'a, which outlives this call.
        let publish = unsafe { mem::transmute::<Box<dyn FnOnce(Lsn) + Send + 'a>, Publish>(publish) };
        self.submit(queue, Some(payload), Some(publish), flush == CommitFlush::Sync)
    }

    /// Like [`Log::commit`] for a record that publishes nothing, such as a prepare: commits behind it need not wait for
    /// it.
    pub fn harden(&self, record: impl Into<Vec<u8>>, flush: CommitFlush) -> Result<Lsn> {
        if flush == CommitFlush::Lazy {
            return self.append(record);
        }
        let payload = Payload::record(record.into())?;
        let queue = self.queue.lock();
        queue.check()?;
        self.submit(queue, Some(payload), None, flush == CommitFlush::Sync)
    }

    /// If all is synced, writes an empty frame that says so: damage of the last group that was synced is then told from
    /// an unfinished end. To be called when the log is quiet; the frame itself need not be synced soon.
    pub fn seal(&self) -> Result<()> {
        let mut queue = self.queue.lock();
        queue.check()?;
        if queue.end != self.synced() || queue.end == self.sealed.load(SeqCst) {
            return Ok(());
        }
        let (_, end) = queue.push(Payload::Skip(0));
        self.move_end(end);
        self.sealed.store(end, SeqCst);
        self.submit(queue, None, None, false).map(drop)
    }

    /// Returns when everything that ends at or before `lsn` is in the hands of the operating system.
    pub fn write_up_to(&self, lsn: Lsn) -> Result<()> {
        if self.written() >= lsn {
            return Ok(());
        }
        let queue = self.queue.lock();
        queue.check()?;
        self.submit(queue, None, None, false).map(drop)
    }

    /// Returns when everything that ends at or before `lsn` is durable. Those who commit without a sync do not wait for
    /// it: their groups are written meanwhile.
    pub fn sync_up_to(&self, lsn: Lsn) -> Result<()> {
        if self.synced() >= lsn {
            return Ok(());
        }
        self.queue.lock().check()?;
        self.write_up_to(lsn)?;
        let Some((file, position)) = self.writer.lock().unsynced(lsn) else { return Ok(()) };
        let synced = self.prerequisites.sync(&*file);
        synced.map_err(|error| self.queue.lock().poison_by(error))?;
        let mut writer = self.writer.lock();
        writer.synced = writer.synced.max(position);
        self.synced.fetch_max(writer.synced, SeqCst);
        Ok(())
    }

    /// Records up to `end` are queued; the queue is locked.
    fn move_end(&self, end: Lsn) {
        debug_assert!(end >= self.end(), "the log's end goes back from {} to {end}", self.end());
        self.end.store(end, SeqCst);
    }

    /// Where a record begins that has so many bytes and ends at `end`.
    pub fn start_of(end: Lsn, bytes: usize) -> Lsn {
        // No longer ones are taken.
        end - FrameHeader::frame_bytes(bytes as u32)
    }

    /// Reads single records that are kept: [`Log::release_before`] was not called with more.
    pub fn record_reader(&self) -> RecordReader<'_> {
        RecordReader::new(&self.directory)
    }

    /// End of the last record that was queued.
    pub fn end(&self) -> Lsn {
        self.end.load(SeqCst)
    }

    /// Every committed record that ends at or before this has been published.
    pub fn published(&self) -> Lsn {
        self.published.load(SeqCst)
    }

    /// Everything before this is in the hands of the operating system.
    pub fn written(&self) -> Lsn {
        self.written.load(SeqCst)
    }

    /// Everything before this is durable.
    pub fn synced(&self) -> Lsn {
        self.synced.load(SeqCst)
    }

    /// Recycles or removes the segments that lie wholly before `lsn`; nobody may scan from before it any more. The
    /// newest segment always stays. On a full disk none is kept.
    pub fn release_before(&self, lsn: Lsn) -> Result<()> {
        self.queue.lock().check()?;
        debug_assert!(lsn <= self.synced(), "released up to {lsn}, durable up to {}", self.synced());
        let is_full = self.reserve.get().is_some_and(|reserve| reserve.is_spent());
        self.directory.release_before(lsn, if is_full { 0 } else { MAX_SPARES })
    }

    /// The disk is full: gives back released segments, and of the reserve what `spend` does. Whether it is worth
    /// another try.
    pub fn make_space(&self, spend: fn(&DiskReserve) -> bool) -> bool {
        let removed = self.directory.remove_spares();
        self.reserve.get().is_some_and(|reserve| spend(reserve)) || removed
    }

    /// The queue, with less than its bound in it.
    fn lock_queue_with_room(&self) -> Result<MutexGuard<'_, Queue>> {
        loop {
            let queue = self.queue.lock();
            queue.check()?;
            if queue.bytes <= MAX_QUEUED_BYTES {
                return Ok(queue);
            }
            self.submit(queue, None, None, false)?;
        }
    }

    /// Joins the group that forms and waits for its outcome, leading it if nobody else does.
    fn submit(
        &self,
        mut queue: MutexGuard<'_, Queue>,
        payload: Option<Payload>,
        publish: Option<Publish>,
        sync: bool,
    ) -> Result<Lsn> {
        let slot = Arc::new(Slot::default());
        let record = payload.map(|payload| queue.push(payload).0);
        let end = queue.end;
        self.move_end(end);
        debug_assert!(queue.group.members.last().is_none_or(|last| last.end <= end), "members are ascending");
        queue.unpublished += usize::from(publish.is_some());
        queue.group.sync |= sync;
        queue.group.members.push(Member { slot: slot.clone(), end, record, publish });
        if queue.led {
            drop(queue);
        } else {
            queue.led = true;
            self.lead(queue);
        }
        // A write takes a few microseconds, less than falling asleep and being woken; a sync takes a thousand times
        // that.
        let mut yields = if sync { 0 } else { YIELDS_BEFORE_SLEEP };
        let mut state = slot.state.lock();
        loop {
            match mem::take(&mut *state) {
                SlotState::Waiting if yields > 0 => {
                    yields -= 1;
                    drop(state);
                    crate::sync::yield_now();
                    state = slot.state.lock();
                }
                SlotState::Waiting => slot.changed.wait(&mut state),
                SlotState::Done(outcome) => return outcome.map(|()| end),
                SlotState::Lead => {
                    drop(state);
                    self.lead(self.queue.lock());
                    state = slot.state.lock();
                }
            }
        }
    }
}
