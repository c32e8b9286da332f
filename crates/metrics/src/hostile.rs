//! What anybody may send, as a function that takes any bytes at all: the feature `hostile`, for `fuzz/`. The tests here
//! attack it as the decoders of the core are attacked (`crates/core/tests/hostile`), with a corpus (`tests/hostile`)
//! and mutations of it.
//!
//! What must hold: whatever the bytes are, nothing panics, no more memory is asked for than a request may be long, and
//! the answer is none or a whole one.

#[cfg(test)]
#[path = "../../core/tests/hostile/attack.rs"]
mod attack;
#[cfg(test)]
#[path = "../../core/tests/hostile/counting.rs"]
mod counting;
#[cfg(test)]
#[path = "../../core/tests/hostile/mutate.rs"]
mod mutate;

use crate::{answer, Answer, Peer, Site};
use std::io::{Error, Read, Write};
use std::time::Duration;

/// Whose bytes come in parts, and who takes what he is sent.
struct Anybody<'b> {
    bytes: &'b [u8],
    taken: Vec<u8>,
}

impl Read for Anybody<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> Result<usize, Error> {
        let at_once = buffer.len().min(99);
        self.bytes.read(&mut buffer[..at_once])
    }
}

impl Write for Anybody<'_> {
    fn write(&mut self, bytes: &[u8]) -> Result<usize, Error> {
        self.taken.write(bytes)
    }

    fn flush(&mut self) -> Result<(), Error> {
        Ok(())
    }
}

impl Peer for Anybody<'_> {
    fn limit(&self, _: Duration) -> Result<(), Error> {
        Ok(())
    }
}

/// A request, and what may be behind it.
pub fn request(bytes: &[u8]) {
    let site = Site::default().with("/metrics", || Answer::metrics("x 1\n".into()));
    let mut peer = Anybody { bytes, taken: Vec::new() };
    let answered = answer(&mut peer, &site);
    assert!(answered.is_ok());
    let text = String::from_utf8_lossy(&peer.taken);
    let status = text.strip_prefix("HTTP/1.1 ").and_then(|rest| rest.split(' ').next());
    assert!(text.is_empty() || matches!(status, Some("200" | "404" | "405")), "{text}");
}

#[cfg(test)]
mod tests {
    use super::attack::{attack, Attacked};
    use super::{counting, request};
    use std::path::Path;

    /// The request, what it grows by, and the answer.
    const FIXED_BYTES: usize = 32 << 10;

    #[global_allocator]
    static ALLOCATOR: counting::Counting = counting::Counting;

    #[test]
    fn anybody_can_ask_for_anything() {
        let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/hostile");
        attack(&corpus, &Attacked { name: "request", decode: request, memory_for: &|_| FIXED_BYTES });
    }
}
