//! Scanning the log and telling its unfinished end from damage.
//!
//! Writes that were not synced survive a power loss in any combination, so a bad frame with a good one behind it need
//! not be damage. What decides is what later frames say was synced when they were written (and that a segment is
//! started only when all before it is synced): a bad frame before such a point is damage, [`Error::Corrupt`]; otherwise
//! it is where the log ends. Frames of one group say what was synced before the group: damage of the last group is told
//! by the empty frame that [`Log::seal`](super::Log::seal) writes behind it when the log is quiet. Before that it
//! cannot be told from one that was never finished.
//!
//! Records never cross segments, so that threads may scan segments at the same time: only of the newest it is in doubt
//! where it ends.

use crate::sync::atomic::{AtomicUsize, Ordering};
use std::ops::Range;
use std::path::Path;

use crate::sync::Mutex;

use super::segment::{
    checksum, list_segments, segment_path, FrameHeader, Segment, SegmentDirectory, FRAME_BYTES, HEADER_BYTES,
};
use super::{packed, LogRecord, Lsn};
use crate::file::{FileSystem, OpenMode};
use crate::{Error, Result};

/// How much is read at once.
const WINDOW_BYTES: usize = 1 << 20;

/// Receives the start LSN of a record, and the record.
pub(super) type Visit<'a> = &'a mut dyn FnMut(Lsn, LogRecord<'_>) -> Result<()>;

/// Whether what a record relies on is there.
pub(super) type Intact<'a> = &'a (dyn Fn(Lsn, &LogRecord<'_>) -> Result<bool> + Sync);

/// What a scan on several threads makes of the records: a part from those of each segment, and one thing from the
/// parts.
pub struct Gathering<'a, P> {
    /// At most so many threads.
    pub threads: usize,
    /// Asked of records that may not have been synced: whether what they rely on is there.
    pub intact: &'a (dyn Fn(Lsn, &LogRecord<'_>) -> Result<bool> + Sync),
    /// Gets the records of one segment in their order, and the segment's part.
    pub visit: &'a (dyn Fn(&mut P, Lsn, LogRecord<'_>) -> Result<()> + Sync),
    /// Gets the parts in the order of the log.
    pub absorb: &'a mut dyn FnMut(P),
}

/// What a scan found out besides the records.
pub(super) struct Scanned {
    /// Where the log ends.
    pub end: Lsn,
    /// Everything before this is known to be synced.
    pub synced: Lsn,
    /// Start of the newest segment.
    pub newest: Lsn,
}

/// Reads a segment through a window.
struct SegmentReader {
    segment: Segment,
    len: u64,
    window: Vec<u8>,
    window_offset: u64,
}

impl SegmentReader {
    fn open(fs: &dyn FileSystem, dir: &Path, start: Lsn) -> Result<SegmentReader> {
        let segment = Segment::open(fs, dir, start, OpenMode::ReadOnly)?;
        let len = segment.file.len()?;
        Ok(SegmentReader { segment, len, window: Vec::new(), window_offset: 0 })
    }

    /// `bytes` bytes at `lsn`; `None` if the file ends before.
    fn slice(&mut self, lsn: Lsn, bytes: usize) -> Result<Option<&[u8]>> {
        let offset = self.segment.offset(lsn);
        let end = offset + bytes as u64;
        if end > self.len {
            return Ok(None);
        }
        if offset < self.window_offset || end > self.window_offset + self.window.len() as u64 {
            let available = usize::try_from(self.len - offset).unwrap_or(usize::MAX);
            self.window.resize(bytes.max(WINDOW_BYTES).min(available), 0);
            self.window_offset = offset;
            if let Err(error) = self.segment.file.read_exact_at(offset, &mut self.window) {
                self.window.clear();
                return Err(error);
            }
        }
        let at = (offset - self.window_offset) as usize;
        Ok(Some(&self.window[at..at + bytes]))
    }

    fn header(&mut self, lsn: Lsn) -> Result<Option<FrameHeader>> {
        let id = self.segment.id;
        Ok(self.slice(lsn, FRAME_BYTES as usize)?.and_then(|bytes| FrameHeader::decode(bytes, id, lsn)))
    }

    /// The payload of the frame at `lsn`, `None` if it fails its check.
    fn payload(&mut self, lsn: Lsn, header: &FrameHeader) -> Result<Option<&[u8]>> {
        let payload = self.slice(lsn + FRAME_BYTES, header.length as usize)?;
        Ok(payload.filter(|bytes| checksum(bytes) == header.payload_checksum))
    }

    /// The header of the frame at `lsn`, if all of it is intact.
    fn frame(&mut self, lsn: Lsn) -> Result<Option<FrameHeader>> {
        let Some(header) = self.header(lsn)?.filter(|header| !header.skip) else { return Ok(None) };
        Ok(self.payload(lsn, &header)?.map(|_| header))
    }

    /// The greatest LSN that a frame behind `lsn` knew to be synced, 0 if there is no frame.
    fn synced_according_to_frames_after(&mut self, lsn: Lsn) -> Result<Lsn> {
        let last = self.segment.start + self.len.saturating_sub(HEADER_BYTES + FRAME_BYTES);
        let mut synced = 0;
        for at in (lsn..=last).step_by(8) {
            if let Some(header) = self.header(at)? {
                synced = synced.max(header.synced_to);
            }
        }
        Ok(synced)
    }

    /// The greatest LSN that a frame of the chain from `lsn` on knew to be synced; 0 if there is no frame.
    fn synced_according_to_chain(&mut self, mut lsn: Lsn) -> Result<Lsn> {
        let mut synced = 0;
        while let Some(header) = self.header(lsn)? {
            synced = synced.max(header.synced_to);
            lsn += FrameHeader::frame_bytes(header.length);
        }
        Ok(synced)
    }

    /// Whether the log was synced beyond `lsn`; `limit` is where the next segment starts.
    fn was_synced(&mut self, limit: Option<Lsn>, lsn: Lsn) -> Result<bool> {
        Ok(limit.is_some() || self.synced_according_to_frames_after(lsn)? > lsn)
    }

    fn corrupt(&self, lsn: Lsn, detail: impl Into<String>) -> Error {
        Error::corrupt(self.segment.file.path(), self.segment.offset(lsn), detail)
    }
}

impl Scanned {
    /// Adds what the scan of the next segment found.
    fn join(&mut self, next: Scanned) {
        self.end = next.end;
        self.synced = self.synced.max(next.synced);
        self.newest = next.newest;
    }
}

/// The segments from a position on.
pub struct Segments<'a> {
    fs: &'a dyn FileSystem,
    dir: &'a Path,
    from: Lsn,
    /// Ascending; the first contains the position.
    starts: Vec<Lsn>,
}

impl<'a> Segments<'a> {
    /// Those of the log in `dir` from `from` on.
    pub fn list(fs: &'a dyn FileSystem, dir: &'a Path, from: Lsn) -> Result<Segments<'a>> {
        let mut starts = list_segments(fs, dir)?;
        let Some(first) = starts.iter().rposition(|&start| start <= from) else {
            let detail = format!("no log segment contains LSN {from}, from where it is needed: what was there is lost, or a newer checkpoint released it");
            return Err(Error::corrupt(dir, 0, detail));
        };
        starts.drain(..first);
        Ok(Segments { fs, dir, from, starts })
    }

    /// Where each segment starts and, of all but the last, where the next one does.
    pub(super) fn bounds(&self) -> impl Iterator<Item = (Lsn, Option<Lsn>)> + '_ {
        self.starts.iter().enumerate().map(|(index, &start)| (start, self.limit(index)))
    }

    /// Where the segment behind the one at `index` starts, if there is one.
    fn limit(&self, index: usize) -> Option<Lsn> {
        self.starts.get(index + 1).copied()
    }

    /// Visits the records of one segment that start at or after `from`.
    fn scan_one(&self, index: usize, intact: Option<Intact<'_>>, visit: Visit<'_>) -> Result<Scanned> {
        let start = self.starts[index];
        let mut scanned = Scanned { end: start, synced: start, newest: start };
        let mut reader = SegmentReader::open(self.fs, self.dir, start)?;
        // Usually `from` is where a record begins; if none begins there, they are followed from the segment's start.
        let inside = index == 0 && self.from.is_multiple_of(8) && self.from - start < reader.len;
        if inside && reader.header(self.from)?.is_some() {
            scanned.end = self.from;
        }
        // What was synced counts whether or not what it relies on can be read: that is for those to say who need it.
        let intact = intact.filter(|_| self.limit(index).is_none());
        let doubtful = match intact {
            Some(intact) => Some((reader.synced_according_to_chain(scanned.end)?, intact)),
            None => None,
        };
        scan_segment(&mut reader, self.limit(index), self.from, &mut scanned, doubtful, visit)?;
        Ok(scanned)
    }

    /// The error if the log ends before `from`.
    fn reaching(&self, scanned: Scanned) -> Result<Scanned> {
        if scanned.end < self.from {
            let detail =
                format!("the log ends at LSN {}, before {}, from where it is needed", scanned.end, self.from);
            let end = HEADER_BYTES + (scanned.end - scanned.newest);
            return Err(Error::corrupt(segment_path(self.dir, scanned.newest), end, detail));
        }
        Ok(scanned)
    }

    /// Visits the records in `range`, of which a scan has found that they are there: both ends are where a record
    /// begins, or the log ends. May be called from several threads at a time.
    pub fn read(&self, range: Range<Lsn>, visit: Visit<'_>) -> Result<()> {
        let mut unpacked = Vec::new();
        let first = self.starts.partition_point(|&start| start <= range.start).saturating_sub(1);
        for (index, &start) in self.starts.iter().enumerate().skip(first) {
            if start >= range.end {
                break;
            }
            let end = self.limit(index).map_or(range.end, |limit| limit.min(range.end));
            let mut reader = SegmentReader::open(self.fs, self.dir, start)?;
            let mut lsn = start.max(range.start);
            while lsn < end {
                let gone = "a damaged record where a first reading found it whole";
                let header = reader.header(lsn)?.ok_or_else(|| reader.corrupt(lsn, gone))?;
                if !header.skip {
                    let found = reader
                        .payload(lsn, &header)?
                        .map(|payload| packed::unpack(payload, &mut unpacked).and_then(LogRecord::decode));
                    match found {
                        Some(Ok(record)) => visit(lsn, record)?,
                        Some(Err(detail)) => return Err(reader.corrupt(lsn, detail)),
                        None => return Err(reader.corrupt(lsn, gone)),
                    }
                }
                lsn += FrameHeader::frame_bytes(header.length);
            }
        }
        Ok(())
    }
}

/// Reads single records of a log that is being written.
pub struct RecordReader<'a> {
    directory: &'a SegmentDirectory,
    /// Of the segment that was read last.
    segment: Option<SegmentReader>,
    unpacked: Vec<u8>,
}

impl<'a> RecordReader<'a> {
    pub(super) fn new(directory: &'a SegmentDirectory) -> RecordReader<'a> {
        RecordReader { directory, segment: None, unpacked: Vec::new() }
    }

    /// What `visit` makes of the record at `lsn`, which has been written to its file; or it says what is wrong with it.
    pub fn read<T>(
        &mut self,
        lsn: Lsn,
        visit: impl FnOnce(LogRecord<'_>) -> Result<T, &'static str>,
    ) -> Result<T> {
        let directory = self.directory;
        let Some(start) = directory.segment_of(lsn) else {
            return Err(Error::corrupt(&directory.path, 0, format!("no log segment contains LSN {lsn}")));
        };
        let mut reader = match self.segment.take().filter(|reader| reader.segment.start == start) {
            Some(reader) => reader,
            None => SegmentReader::open(&*directory.fs, &directory.path, start)?,
        };
        if reader.frame(lsn)?.is_none() {
            // What was read ahead may be from before it was written.
            reader = SegmentReader::open(&*directory.fs, &directory.path, start)?;
        }
        let Some(header) = reader.frame(lsn)? else {
            return Err(reader.corrupt(lsn, "a damaged record, or none"));
        };
        let payload = reader.payload(lsn, &header)?.unwrap_or_default();
        let record = packed::unpack(payload, &mut self.unpacked).and_then(LogRecord::decode);
        let made = record.and_then(visit).map_err(|detail| reader.corrupt(lsn, detail))?;
        self.segment = Some(reader);
        Ok(made)
    }
}

/// Visits every record that starts at or after `from`.
pub(super) fn scan(fs: &dyn FileSystem, dir: &Path, from: Lsn, visit: Visit<'_>) -> Result<Scanned> {
    let segments = Segments::list(fs, dir, from)?;
    let mut scanned = segments.scan_one(0, None, visit)?;
    for index in 1..segments.starts.len() {
        scanned.join(segments.scan_one(index, None, visit)?);
    }
    segments.reaching(scanned)
}

/// Segments that threads take from one list, for each of them; their parts are in memory before they are put together.
const SEGMENTS_PER_THREAD: usize = 2;
/// So many at least: at the end of a list some threads have nothing to do.
const LEAST_SEGMENTS: usize = 16;

/// Where a thread leaves what it has made of a segment.
type Outcome<P> = Mutex<Option<Result<(P, Scanned)>>>;

/// Like [`scan`], on several threads: each takes whole segments. The error is the first in the log.
pub(super) fn gather<P: Default + Send>(
    fs: &dyn FileSystem,
    dir: &Path,
    from: Lsn,
    gathering: Gathering<'_, P>,
) -> Result<Scanned> {
    let Gathering { threads, intact, visit, absorb } = gathering;
    let segments = Segments::list(fs, dir, from)?;
    let mut joined: Option<Scanned> = None;
    let at_once = match threads {
        0 | 1 => 1,
        threads => (threads * SEGMENTS_PER_THREAD).max(LEAST_SEGMENTS),
    };
    for first in (0..segments.starts.len()).step_by(at_once) {
        let count = at_once.min(segments.starts.len() - first);
        let done: Vec<Outcome<P>> = (0..count).map(|_| Mutex::default()).collect();
        let next = AtomicUsize::new(0);
        let work = || {
            // Relaxed: only numbers are handed out; what is done is handed over by the mutexes.
            loop {
                let at = next.fetch_add(1, Ordering::Relaxed);
                let Some(slot) = done.get(at) else { return Ok(()) };
                let mut part = P::default();
                let visit = &mut |lsn, record: LogRecord<'_>| visit(&mut part, lsn, record);
                let scanned = segments.scan_one(first + at, Some(intact), visit);
                *slot.lock() = Some(scanned.map(|scanned| (part, scanned)));
            }
        };
        crate::threads::share(threads.min(count), "teak-log-scan", work)?;
        for (part, scanned) in done.into_iter().filter_map(Mutex::into_inner).collect::<Result<Vec<_>>>()? {
            absorb(part);
            match &mut joined {
                Some(joined) => joined.join(scanned),
                None => joined = Some(scanned),
            }
        }
    }
    segments.reaching(joined.unwrap_or(Scanned { end: from, synced: from, newest: from }))
}

/// What there is at a position of the log.
enum Found {
    Frame,
    /// A record, but not all that it relies on.
    Incomplete,
    Nothing,
}

/// Scans from `scanned.end` to the end of the segment, which is `limit` if there is a next segment. Of records from a
/// position on, `doubtful` is asked whether they are intact.
fn scan_segment(
    reader: &mut SegmentReader,
    limit: Option<Lsn>,
    from: Lsn,
    scanned: &mut Scanned,
    doubtful: Option<(Lsn, Intact<'_>)>,
    visit: Visit<'_>,
) -> Result<()> {
    let mut unpacked = Vec::new();
    let complete = |lsn: Lsn, record: &LogRecord<'_>| match doubtful {
        Some((synced, intact)) if lsn >= synced => intact(lsn, record),
        _ => Ok(true),
    };
    while limit != Some(scanned.end) {
        let lsn = scanned.end;
        let header = reader.header(lsn)?;
        let end = header.map_or(lsn, |header| lsn + FrameHeader::frame_bytes(header.length));
        let found = match &header {
            Some(_) if limit.is_some_and(|limit| end > limit) => Found::Nothing,
            Some(header) if header.skip => Found::Frame,
            Some(header) => match reader.payload(lsn, header)? {
                Some(payload) if lsn >= from => {
                    match packed::unpack(payload, &mut unpacked).and_then(LogRecord::decode) {
                        Ok(record) if complete(lsn, &record)? => {
                            visit(lsn, record)?;
                            Found::Frame
                        }
                        Ok(_) => Found::Incomplete,
                        Err(detail) => return Err(reader.corrupt(lsn, detail)),
                    }
                }
                Some(_) => Found::Frame,
                None => Found::Nothing,
            },
            None => Found::Nothing,
        };
        match (found, &header) {
            (Found::Frame, _) => {}
            (Found::Incomplete, Some(header)) if reader.was_synced(limit, lsn)? => {
                // What it relies on is damaged, which is for those to say who need it.
                let payload = reader.payload(lsn, header)?.unwrap_or_default();
                if let Ok(record) = packed::unpack(payload, &mut unpacked).and_then(LogRecord::decode) {
                    visit(lsn, record)?;
                }
            }
            (Found::Incomplete, _) => return Ok(()),
            (Found::Nothing, _) => return end_or_damage(reader, limit, lsn),
        }
        if let Some(header) = header {
            scanned.synced = scanned.synced.max(header.synced_to);
        }
        scanned.end = end;
    }
    Ok(())
}

/// Ok if the log may end at `lsn`, where there is no intact frame.
fn end_or_damage(reader: &mut SegmentReader, limit: Option<Lsn>, lsn: Lsn) -> Result<()> {
    if let Some(next) = limit {
        return Err(
            reader.corrupt(lsn, format!("a damaged record before the log segment that starts at {next}"))
        );
    }
    let synced = reader.synced_according_to_frames_after(lsn)?;
    if synced > lsn {
        return Err(reader.corrupt(lsn, format!("a damaged record; the log was synced up to LSN {synced}")));
    }
    Ok(())
}

/// Writes again what a scan accepted beyond the part that is known to be synced, and syncs it.
///
/// The kernel may show pages whose write-back failed before the restart as if they were on disk, and would never write
/// them.
pub(super) fn rewrite_unsynced(fs: &dyn FileSystem, dir: &Path, scanned: &Scanned) -> Result<()> {
    let mut lsn = scanned.synced.max(scanned.newest);
    if lsn >= scanned.end {
        return Ok(());
    }
    let segment = Segment::open(fs, dir, scanned.newest, OpenMode::Existing)?;
    let mut buffer = vec![0; WINDOW_BYTES];
    while lsn < scanned.end {
        let wanted = (scanned.end - lsn).min(WINDOW_BYTES as u64) as usize;
        let found = segment.file.read_at(segment.offset(lsn), &mut buffer[..wanted])?;
        if found == 0 {
            // The hole of a skip frame at the very end.
            break;
        }
        segment.file.write_at(segment.offset(lsn), &buffer[..found])?;
        lsn += found as u64;
    }
    segment.file.sync()
}
