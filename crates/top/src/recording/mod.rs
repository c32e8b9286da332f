//! Samples in a file, to be looked at later.
//!
//! ```text
//!  "teak top recording 1\n"            the format's version
//!  length, zstd frame                  a sample: 4 bytes, little-endian; JSON, with zstd's checksum
//!  length, zstd frame                  ... each later than the one before
//! ```
//!
//! A sample is written at once, so that a program that is killed leaves at most one that is torn, at the end; whoever
//! goes on with the file cuts it off. A file is read with bounds, as if anybody had written it.

mod read;
#[cfg(test)]
mod tests;
mod write;

#[cfg(any(test, feature = "hostile"))]
pub(crate) use read::decoded;
pub use read::{End, Recording};
pub use write::Recorder;

use teak_console::Status;

const MAGIC: &str = "teak top recording ";
/// What this program writes, and reads.
const VERSION: u32 = 1;
/// The magic, a version and the end of its line take no more.
const MOST_HEADER: usize = 32;
/// Of a sample, compressed and as JSON.
const MOST_FRAME: u32 = 4 << 20;
const MOST_SAMPLE: usize = 16 << 20;
/// Of a recording that is looked at: two months of one each half second.
const MOST_SAMPLES: usize = 10_000_000;

/// Why a recording cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub enum RecordingError {
    /// The file.
    #[error("{0}")]
    File(#[from] std::io::Error),
    /// It is something else.
    #[error("this is no recording of teak top")]
    NotARecording,
    /// It is of another version of this program.
    #[error("it has the format {0}, and this version of teak top knows the format {VERSION} only")]
    Version(String),
    /// A sample that is not what was written.
    #[error("the sample at byte {at} is damaged: {why}")]
    Damaged {
        /// Where it begins.
        at: u64,
        /// What is wrong.
        why: String,
    },
    /// There is no sample in it.
    #[error("there is no whole sample in it")]
    Empty,
    /// What is behind them is not looked at.
    #[error("there are more than {MOST_SAMPLES} samples in it")]
    TooMany,
    /// Another program writes to it.
    #[error("another teak top records to it")]
    InUse,
    /// What samples should be added to.
    #[error("{0}. Move it away, or give another name")]
    Refused(Box<RecordingError>),
    /// More than a sample can be.
    #[error("a sample of {0} bytes is too large to be recorded")]
    TooLarge(usize),
}

impl RecordingError {
    /// The exit status.
    pub fn status(&self) -> Status {
        match self {
            RecordingError::File(_) => Status::InputOutput,
            RecordingError::Refused(_) | RecordingError::InUse => Status::Usage,
            _ => Status::Damage,
        }
    }
}
