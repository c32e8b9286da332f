//! Puts queued records into segment files. One thread at a time: whoever leads a group (see `group`).

use super::prerequisites::Prerequisites;
use super::segment::{checksum, Failure, FrameHeader, Segment, SegmentDirectory, FRAME_BYTES};
use super::Lsn;
use crate::counts::Count;
use crate::file::File;
use crate::{Error, Result};
use std::sync::Arc;

/// Payloads from this size on are written from where they are instead of being copied beside others.
const UNCOPIED_BYTES: usize = 256 << 10;
/// The buffer is written when it is this full.
const BUFFER_BYTES: usize = 4 << 20;

/// What a queued frame carries.
pub(super) enum Payload {
    /// A record and its checksum.
    Record(Vec<u8>, u64),
    /// So many bytes that belonged to records that failed.
    Skip(u32),
}

impl Payload {
    /// Takes a record; its checksum is computed here, by the thread that commits and not by the leader for all.
    pub(super) fn record(bytes: Vec<u8>) -> Result<Payload> {
        if u32::try_from(bytes.len()).is_err() {
            let (bytes, maximum) = (bytes.len() as u64, u64::from(u32::MAX));
            return Err(Error::TooLarge { what: "log record", bytes, maximum });
        }
        let check = checksum(&bytes);
        Ok(Payload::Record(bytes, check))
    }

    fn length(&self) -> u32 {
        match self {
            Payload::Record(bytes, _) => bytes.len() as u32,
            Payload::Skip(length) => *length,
        }
    }
}

/// A frame to be written.
pub(super) struct Entry {
    /// Where in the log; fixed when it was queued.
    pub lsn: Lsn,
    pub payload: Payload,
}

impl Entry {
    /// Where the frame ends.
    pub(super) fn end(&self) -> Lsn {
        self.lsn + FrameHeader::frame_bytes(self.payload.length())
    }

    /// Bytes of memory it holds.
    pub(super) fn memory(&self) -> usize {
        match &self.payload {
            Payload::Record(bytes, _) => bytes.len() + FRAME_BYTES as usize,
            Payload::Skip(_) => FRAME_BYTES as usize,
        }
    }

    /// Makes the record void but keeps its place, since later LSNs were handed out already.
    pub(super) fn void(&mut self) {
        self.payload = Payload::Skip(self.payload.length());
    }

    /// Takes in the following entry if both are void.
    pub(super) fn merge(&mut self, next: &Entry) -> bool {
        let (Payload::Skip(_), Payload::Skip(_)) = (&self.payload, &next.payload) else { return false };
        match u32::try_from(next.end() - self.lsn - FRAME_BYTES) {
            Ok(length) => {
                self.payload = Payload::Skip(length);
                true
            }
            Err(_) => false,
        }
    }
}

/// The writing end of the log.
pub(super) struct Writer {
    /// The newest segment; none after a recovery, since nothing is added to a segment of an earlier run.
    segment: Option<Segment>,
    /// Everything before is written.
    pub position: Lsn,
    /// Everything before is synced.
    pub synced: Lsn,
    prerequisites: Arc<Prerequisites>,
    buffer: Vec<u8>,
}

impl Writer {
    pub(super) fn new(segment: Option<Segment>, position: Lsn, prerequisites: Arc<Prerequisites>) -> Writer {
        Writer { segment, position, synced: position, prerequisites, buffer: Vec::new() }
    }

    /// Bytes of memory that its buffer holds.
    pub(super) fn buffered(&self) -> usize {
        self.buffer.capacity()
    }

    /// Writes a prefix of `entries`, as much as goes into one segment, and returns its length. After a clean failure
    /// nothing of `entries` is or becomes durable and `position` is unchanged.
    pub(super) fn write(
        &mut self,
        directory: &SegmentDirectory,
        entries: &[Entry],
    ) -> Result<usize, Failure> {
        let Some(first) = entries.first() else { return Ok(0) };
        debug_assert_eq!(first.lsn, self.position);
        Count::LogWrites.add(1);
        let room_until = |segment: &Segment| segment.start + directory.segment_bytes;
        let full = |s: &Segment| first.end() > room_until(s) && first.lsn > s.start;
        let mut segment = match self.segment.take() {
            Some(segment) if full(&segment) => {
                // Back in its place until there is a next.
                self.segment = Some(segment);
                self.sync()?;
                directory.start_segment(first.lsn)?
            }
            Some(segment) => segment,
            None => directory.start_segment(first.lsn)?,
        };
        let limit = room_until(&segment);
        // In release as well: frames behind a gap would be lost with the next recovery.
        assert!(
            segment.start <= first.lsn,
            "a frame at {} before its segment at {}",
            first.lsn,
            segment.start
        );
        let fitting = entries.iter().take_while(|entry| entry.end() <= limit).count().max(1);
        let outcome = self.write_frames(&mut segment, limit, &entries[..fitting]);
        self.buffer.clear();
        self.buffer.shrink_to(BUFFER_BYTES);
        let outcome = match outcome {
            Ok(()) => {
                let end = entries[fitting - 1].end();
                debug_assert!(end > self.position, "the log goes back from {} to {end}", self.position);
                self.position = end;
                Ok(fitting)
            }
            Err(error) => Err(self.cut_back(&mut segment, error)),
        };
        self.segment = Some(segment);
        outcome
    }

    fn write_frames(&mut self, segment: &mut Segment, limit: Lsn, entries: &[Entry]) -> Result<()> {
        debug_assert!(entries.windows(2).all(|pair| pair[0].end() == pair[1].lsn), "a gap between frames");
        debug_assert!(segment.start <= self.position, "the segment begins behind what is to be written");
        let buffer = &mut self.buffer;
        let mut begin = self.position;
        let mut flush = |buffer: &mut Vec<u8>, next: Lsn| -> Result<()> {
            if !buffer.is_empty() {
                segment.file.write_at(segment.offset(begin), buffer)?;
                buffer.clear();
            }
            begin = next;
            Ok(())
        };
        for entry in entries {
            let length = entry.payload.length();
            let (skip, payload_checksum) = match entry.payload {
                Payload::Record(_, check) => (false, check),
                Payload::Skip(_) => (true, 0),
            };
            let header = FrameHeader { length, skip, synced_to: self.synced, payload_checksum };
            buffer.extend_from_slice(&header.encode(segment.id, entry.lsn));
            let payload_at = entry.lsn + FRAME_BYTES;
            match &entry.payload {
                Payload::Record(bytes, _) if bytes.len() < UNCOPIED_BYTES => buffer.extend_from_slice(bytes),
                Payload::Record(bytes, _) => {
                    flush(buffer, payload_at + u64::from(length))?;
                    segment.file.write_at(segment.offset(payload_at), bytes)?;
                }
                Payload::Skip(_) => flush(buffer, entry.end())?,
            }
            if !skip {
                let padding = entry.end() - payload_at - u64::from(length);
                buffer.resize(buffer.len() + padding as usize, 0);
            }
            if buffer.len() >= BUFFER_BYTES {
                flush(buffer, entry.end())?;
            }
        }
        segment.write_last(begin, buffer, limit)
    }

    /// Takes back what a failed write may have left behind `position`, durably: its records are reported as failed and
    /// must not appear after a crash.
    fn cut_back(&mut self, segment: &mut Segment, error: Error) -> Failure {
        let cut = segment.cut(self.position);
        match cut.and_then(|()| self.prerequisites.sync(&*segment.file)) {
            Ok(()) => {
                self.synced = self.position;
                Failure::Clean(error)
            }
            Err(_) => Failure::Fatal(error),
        }
    }

    /// Makes everything before `position` durable.
    pub(super) fn sync(&mut self) -> Result<(), Failure> {
        if let Some(segment) = self.segment.as_ref().filter(|_| self.synced < self.position) {
            self.prerequisites.sync(&*segment.file).map_err(Failure::Fatal)?;
            self.synced = self.position;
        }
        Ok(())
    }

    /// What has to be synced for `lsn` to be durable, and up to where everything is then; None if it is.
    pub(super) fn unsynced(&self, lsn: Lsn) -> Option<(Arc<dyn File>, Lsn)> {
        // Segments before the newest were synced when it began.
        let segment = self.segment.as_ref().filter(|_| self.synced < lsn)?;
        Some((segment.file.clone(), self.position))
    }
}
