//! Reads recordings, whatever is in them.

use super::{RecordingError, MAGIC, MOST_FRAME, MOST_HEADER, MOST_SAMPLE, MOST_SAMPLES, VERSION};
use crate::sample::{Answer, Part, Sample, MOST_ROWS};
use std::io::{Read, Seek, SeekFrom};

/// zstd's windows are no larger than what a sample can be.
const MOST_WINDOW_LOG: u32 = 24;
/// No part has more.
const MOST_COLUMNS: usize = 64;

/// How a recording ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// Behind a sample.
    Whole,
    /// Within one: whoever wrote it was ended, or is about to write it.
    Torn {
        /// Where that one begins.
        at: u64,
    },
    /// At what is no sample; what is behind it cannot be found.
    Damaged {
        /// Where.
        at: u64,
    },
    /// There are more samples than are looked at.
    TooMany,
}

/// A recording of which each sample can be had.
pub struct Recording<S> {
    source: S,
    /// Where the frames of samples begin, and how long they are.
    frames: Vec<(u64, u32)>,
    end: End,
}

impl<S: Read + Seek> Recording<S> {
    /// Finds the samples.
    pub fn open(mut source: S) -> Result<Recording<S>, RecordingError> {
        let length = source.seek(SeekFrom::End(0))?;
        source.rewind()?;
        let mut at = header(&mut source)?;
        let mut frames = Vec::new();
        let end = loop {
            if at == length {
                break End::Whole;
            }
            if frames.len() == MOST_SAMPLES {
                break End::TooMany;
            }
            if length - at < 4 {
                break End::Torn { at };
            }
            let mut bytes = [0; 4];
            source.seek(SeekFrom::Start(at))?;
            source.read_exact(&mut bytes)?;
            let size = u32::from_le_bytes(bytes);
            if size == 0 || size > MOST_FRAME {
                break End::Damaged { at };
            }
            if length - at - 4 < u64::from(size) {
                break End::Torn { at };
            }
            frames.push((at + 4, size));
            at += 4 + u64::from(size);
        };
        Ok(Recording { source, frames, end })
    }

    /// How many samples there are.
    pub fn len(&self) -> usize {
        self.frames.len()
    }

    /// How it ends.
    pub fn end(&self) -> End {
        self.end
    }

    /// Where the last whole sample ends.
    pub fn whole_bytes(&self) -> Option<u64> {
        self.frames.last().map(|(at, size)| at + u64::from(*size))
    }

    /// One of them.
    pub fn sample(&mut self, number: usize) -> Result<Sample, RecordingError> {
        let (at, size) = *self.frames.get(number).ok_or(RecordingError::Empty)?;
        let damaged = |why: String| RecordingError::Damaged { at, why };
        let mut frame = vec![0; size as usize];
        self.source.seek(SeekFrom::Start(at))?;
        self.source.read_exact(&mut frame)?;
        let mut json = Vec::new();
        let mut decoder = zstd::Decoder::new(frame.as_slice())?;
        decoder.window_log_max(MOST_WINDOW_LOG)?;
        decoder
            .take(MOST_SAMPLE as u64 + 1)
            .read_to_end(&mut json)
            .map_err(|error| damaged(error.to_string()))?;
        if json.len() > MOST_SAMPLE {
            return Err(damaged(format!("more than {MOST_SAMPLE} bytes")));
        }
        decoded(&json).map_err(damaged)
    }
}

/// A sample of JSON that may be anything.
pub(crate) fn decoded(json: &[u8]) -> Result<Sample, String> {
    let sample: Sample = serde_json::from_slice(json).map_err(|error| error.to_string())?;
    match sample.parts.iter().all(|(part, answer)| is_bounded(*part, answer)) {
        true => Ok(sample),
        false => Err("more rows or columns than are asked for".into()),
    }
}

/// Whether it is no larger than what is asked for, which is what chains of waits are made for.
fn is_bounded(part: Part, answer: &Answer) -> bool {
    let most = if part.has_limit() { MOST_ROWS } else { 10 * MOST_ROWS };
    answer.rows.len() <= most && answer.columns.len() <= MOST_COLUMNS
}

/// How long it is.
fn header(source: &mut impl Read) -> Result<u64, RecordingError> {
    let mut bytes = Vec::new();
    source.take(MOST_HEADER as u64).read_to_end(&mut bytes)?;
    let Some(behind) = bytes.strip_prefix(MAGIC.as_bytes()) else {
        return Err(RecordingError::NotARecording);
    };
    let end = behind.iter().position(|byte| *byte == b'\n').ok_or(RecordingError::NotARecording)?;
    let version = String::from_utf8_lossy(&behind[..end]);
    match version.parse::<u32>() {
        Ok(VERSION) => Ok((MAGIC.len() + end + 1) as u64),
        Ok(_) => Err(RecordingError::Version(version.into_owned())),
        Err(_) => Err(RecordingError::NotARecording),
    }
}
