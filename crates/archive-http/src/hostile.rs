//! What anybody may send to WebDAV, as functions that take any bytes at all: the feature `hostile`, for `fuzz/`. The
//! tests here attack them as the decoders of the core are attacked (`crates/core/tests/hostile`), with a corpus
//! (`tests/hostile`) of what clients send, and mutations of it.
//!
//! What must hold: whatever the bytes are, nothing panics, the memory is in proportion to them, and what was read means
//! the same when it is written and read again.

#[cfg(test)]
#[path = "../../core/tests/hostile/attack.rs"]
mod attack;
#[cfg(test)]
#[path = "../../core/tests/hostile/counting.rs"]
#[allow(unsafe_code)]
mod counting;
#[cfg(test)]
#[path = "../../core/tests/hostile/mutate.rs"]
mod mutate;

/// A body of XML.
pub fn xml(bytes: &[u8]) {
    crate::dav::read_xml(bytes);
}

/// The header `If`, and the places that it names.
pub fn condition(bytes: &[u8]) {
    crate::dav::read_condition(&String::from_utf8_lossy(bytes));
}

#[cfg(test)]
mod tests {
    use super::attack::{attack, Attacked};
    use super::{condition, counting, xml};
    use std::path::Path;

    /// Whatever the length.
    const FIXED_BYTES: usize = 64 << 10;
    /// An element of four bytes is a name, two lists, and a place in another list.
    const TIMES: usize = 200;

    #[global_allocator]
    static ALLOCATOR: counting::Counting = counting::Counting;

    #[test]
    fn anybody_can_send_anything() {
        let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/hostile");
        let memory_for = |bytes: usize| FIXED_BYTES + TIMES * bytes;
        attack(&corpus, &Attacked { name: "xml", decode: xml, memory_for: &memory_for });
        attack(&corpus, &Attacked { name: "condition", decode: condition, memory_for: &memory_for });
    }
}
