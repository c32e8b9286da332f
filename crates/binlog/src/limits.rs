//! How much memory bytes may ask for.

use super::error::Problem;

/// How much memory bytes from a log may ask for, whatever lengths they tell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// The longest event in bytes, compressed or not, and the longest value.
    pub event_bytes: u64,
    /// Tables that a statement may have.
    pub tables: usize,
}

impl Default for Limits {
    /// What servers write at most: an event is as long as the longest packet (1 GiB), and its headers.
    fn default() -> Limits {
        Limits { event_bytes: (1 << 30) + (64 << 10), tables: 1 << 16 }
    }
}

impl Limits {
    /// The length of something, if it is within the limit of an event.
    pub(crate) fn bounded(&self, what: &'static str, bytes: u64) -> Result<usize, Problem> {
        match usize::try_from(bytes) {
            Ok(length) if bytes <= self.event_bytes => Ok(length),
            _ => Err(Problem::TooLarge { what, bytes, limit: self.event_bytes }),
        }
    }
}
