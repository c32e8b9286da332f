//! What a dump holds, as a function that takes any bytes at all: the feature `hostile`,
//! for `fuzz/`. The tests here attack them as those of the core are attacked (`crates/core/tests/hostile`), with a
//! corpus (`tests/hostile`) and mutations of it.
//!
//! What must hold: whatever the bytes are, nothing panics, and no more memory is asked for than [`memory_for`] says.

#[cfg(test)]
#[path = "../../core/tests/hostile/attack.rs"]
mod attack;
#[cfg(test)]
#[path = "../../core/tests/hostile/counting.rs"]
mod counting;
#[cfg(test)]
#[path = "../../core/tests/hostile/mutate.rs"]
mod mutate;

use crate::load;

/// A decoder.
pub struct Target {
    /// As directories of the corpus are called.
    pub name: &'static str,
    /// Takes any bytes.
    pub decode: fn(&[u8]),
}

/// All of them.
pub const TARGETS: &[Target] = &[Target { name: "dump", decode: load::hostile::dump }];

/// A splitter begins with a buffer of 2 MiB.
const FIXED_BYTES: usize = 20 << 20;

/// Bytes of memory that a target may hold at a time for so many of input.
pub fn memory_for(input: usize) -> usize {
    64 * input + FIXED_BYTES
}

/// Runs one of [`TARGETS`]: for `fuzz/`, which watches memory by itself.
///
/// # Panics
/// If there is none of that name, and if the decoder has a defect.
pub fn run(name: &str, bytes: &[u8]) {
    let target = TARGETS.iter().find(|target| target.name == name);
    (target.unwrap_or_else(|| panic!("no decoder is called {name}")).decode)(bytes);
}

#[cfg(test)]
mod tests {
    use super::*;
    use attack::{attack, Attacked};
    use std::path::Path;

    #[global_allocator]
    static ALLOCATOR: counting::Counting = counting::Counting;

    fn attack_target(name: &str) {
        let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/hostile");
        let target = TARGETS.iter().find(|target| target.name == name).unwrap();
        attack(&corpus, &Attacked { name, decode: target.decode, memory_for: &memory_for });
    }

    #[test]
    fn a_dump_can_be_anything() {
        attack_target("dump");
    }
}
